"""What a search came to, as the wire has it."""

from __future__ import annotations

from metatree_agents.service.engine.answering import said_of

from metatree import Tree, remember
from metatree.result import ClosestPassage, QuestionAnswer, Quote, SearchResult


def test_an_answer_in_paragraphs_keeps_the_spaces_of_code() -> None:
    code = "def send(self):\n    if a:\n        b()\n\n    if c:\n        d()\n"
    with Tree.create(":memory:") as tree:
        reply = said_of(tree, SearchResult(answer=code))
    assert reply.answer == ["def send(self):\n    if a:\n        b()", "    if c:\n        d()"]


def test_sources_and_passages_say_who_said_them() -> None:
    with Tree.create(":memory:") as tree:
        node = remember(tree, "Tea is at four.", who="ann", evidence=False, now=lambda: 0.0).node.id
        places = {node: "said by ann on 1970-01-01", tree.root: "", "gone": ""}
        quotes = tuple(Quote(place, "T", "Tea is at four.") for place in places)
        closest = tuple(
            ClosestPassage("q", place, "T", place, (1, 1), f"Tea {place}", 0.5) for place in places
        )
        answer = QuestionAnswer("q", "Tea is at four.", sources=quotes)
        reply = said_of(tree, SearchResult(answer="Tea is at four.", answers=(answer,), closest=closest))
    assert [source["SaidBy"] for source in reply.sources] == list(places.values())
    assert [passage["SaidBy"] for passage in reply.ending.closest] == list(places.values())


def test_no_two_passages_of_a_question_share_lines() -> None:
    with Tree.create(":memory:") as tree:
        closest = tuple(
            ClosestPassage(question, "n", "T", place, lines, f"{question} {place} {lines}", 0.5)
            for question, place, lines in (
                ("a", "x.md", (1, 4)),
                ("a", "x.md", (4, 8)),
                ("a", "y.md", (4, 8)),
                ("a", "x.md", (5, 6)),
                ("b", "x.md", (1, 4)),
            )
        )
        reply = said_of(tree, SearchResult(answer="", closest=closest, open_questions=("a", "b")))
    shown = [(each["Question"], each["Place"], each["Lines"]) for each in reply.ending.closest]
    assert shown == [
        ("a", "x.md", [1, 4]),
        ("a", "y.md", [4, 8]),
        ("a", "x.md", [5, 6]),
        ("b", "x.md", [1, 4]),
    ]
