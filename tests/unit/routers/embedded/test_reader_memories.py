"""A memory whose title is a question was told as its answer, and is read so."""

from __future__ import annotations

import asyncio

import pytest
from metatree_routers.embedded.reader import EmbeddedReader

from metatree import Node, Reading, ReadRequest

ASKED = "Which mountain hut do the maintainers meet in?"


def read(node: Node, question: str) -> Reading:
    request = ReadRequest(
        node=node, content=node.content or "", questions=(question,), context="", partial_answers=()
    )
    return asyncio.run(EmbeddedReader().read(request))


def told(**given: str) -> Node:
    return Node("m", **{"title": ASKED, "content": "The Rifugio Boccalatte.\n", "kind": "memory", **given})  # type: ignore[arg-type]  # texts alone


@pytest.mark.parametrize("question", [ASKED, "In which hut do maintainers meet?"])
def test_its_content_answers_the_question_and_one_like_it(question: str) -> None:
    (answer,) = read(told(), question).answers
    assert (answer.answer, answer.quote, answer.complete) == ("The Rifugio Boccalatte.",) * 2 + (True,)


@pytest.mark.parametrize(
    ("node", "question"),
    [
        (told(), "Which mountain has the most huts?"),
        (told(), "Where do the users meet?"),
        (told(kind="section"), ASKED),
        (told(title="Mountain huts the maintainers meet in"), ASKED),
        (told(content=" "), ASKED),
    ],
)
def test_nothing_else_does(node: Node, question: str) -> None:
    # A passage may be claimed all the same, below a title that says the question: with how likely it is right.
    assert not any(answer.confidence is None for answer in read(node, question).answers)
