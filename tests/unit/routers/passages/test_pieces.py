"""Passages of a content that was put together of several ranges of lines."""

from __future__ import annotations

from dataclasses import replace

import pytest
from metatree_routers.embedded._excerpt import shown
from metatree_routers.passages.asked import read_question
from metatree_routers.passages.candidates import Text, candidates_of, weigh
from metatree_routers.passages.pieces import piece_at
from metatree_routers.passages.ranking import best_apart, joined

from metatree.node import Node, Source

IMPORTS = "import socket\nfrom somewhere import Limit"
CONSTANTS = "# Of a connection, in seconds.\nDEFAULT_TIMEOUT = 30\nDEFAULT_RETRIES = 2"
LAST = "register(Limit)\nsocket.setdefaulttimeout(DEFAULT_TIMEOUT)"
CONTENT = f"{IMPORTS}\n{CONSTANTS}\n{LAST}"
NODE = Node(
    id="net.py::<module>",
    title="net.py (module level)",
    kind="code",
    source=Source(type="python", path="net.py", parts=((1, 2), (40, 42), (90, 91))),
)


def _passages(question: str) -> list[str]:
    asked = read_question(question, embeddings=False)
    text = Text(NODE, CONTENT, 1.0)
    found = candidates_of(asked, [text], weigh(asked, {}, 1), None)
    return [each.text for each in best_apart([(each, 1.0) for each in found], 3, {NODE.id: text}, {})]


@pytest.mark.parametrize("question", ["What is the default timeout?", "How many retries by default?"])
def test_a_passage_lies_in_one_range_of_its_file(question: str) -> None:
    assert all(text.strip() in (IMPORTS, CONSTANTS, LAST) for text in _passages(question))
    assert _passages(question)[0] == CONSTANTS


def test_what_follows_in_another_range_is_not_part_of_an_answer() -> None:
    asked = read_question("What is the default timeout of a socket?", embeddings=False)
    text = Text(NODE, CONTENT, 1.0)
    found = candidates_of(asked, [text], weigh(asked, {}, 1), None)
    assert len(found) > 1 and joined(found, text) == found[0]


def test_of_a_range_no_line_of_another_is_shown() -> None:
    assert shown(NODE, CONTENT, CONSTANTS) == CONSTANTS
    assert shown(NODE, CONTENT, "DEFAULT_RETRIES = 2") == "DEFAULT_RETRIES = 2"


def test_a_text_that_is_not_of_these_ranges_is_one_piece() -> None:
    assert piece_at(NODE, "another text\nof two lines", 15) == (0, 25)


MANUAL = """Settings
--------

These are the settings.

.. py:data:: COOKIE_NAME

    The name of the cookie. Change it where another cookie has the same one.

    Default: ``'session'``

.. py:data:: COOKIE_DOMAIN

    The domain that the cookie is sent to.

    Default: ``None``

.. note::
    Both are read once.
"""


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("What is the default name of the cookie?", ("COOKIE_NAME", "'session'")),
        ("What is the default domain of the cookie?", ("COOKIE_DOMAIN", "None")),
    ],
)
def test_what_a_manual_describes_is_quoted_with_its_name_and_no_further(
    question: str, answer: tuple[str, str]
) -> None:
    node = Node(id="config.rst#settings", title="Settings", kind="section")
    asked = read_question(question, embeddings=False)
    text = Text(node, MANUAL, 1.0)
    found = candidates_of(asked, [text], weigh(asked, {}, 1), None)
    best = next(each for each in found if answer[1] in each.text)
    begins = best.text.index("    The")  # as where what is described is long
    best = replace(best, text=best.text[begins:], start=best.start + begins, first=best.first + 2)
    (passage, *_) = best_apart([(best, 1.0)], 1, {node.id: text}, {})
    assert passage.text.startswith(f".. py:data:: {answer[0]}\n") and answer[1] in passage.text
    assert {"COOKIE_NAME", "COOKIE_DOMAIN"} & set(passage.text.split()) == {answer[0]}
    assert passage.lines[0] == MANUAL[: MANUAL.index(passage.text)].count("\n") + 1
