"""What a search came to, as the wire has it."""

from __future__ import annotations

from metatree_agents.service.engine.answering import said_of
from metatree_agents.service.openai.closest_passages import place_of

from metatree import Node, Source, Tree, remember
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


def test_sources_and_passages_of_documents_have_their_file_and_pages_and_no_lines() -> None:
    with Tree.create(":memory:") as tree:
        pages = {"first_page": 12, "last_page": 12}
        tree.add(
            Node(
                "m.pdf#f",
                "f",
                source=Source(type="pdf", path="m.pdf", start_line=30, end_line=51),
                attributes=pages,
            )
        )
        tree.add(Node("w.docx#g", "g", source=Source(type="docx", path="w.docx", start_line=3, end_line=9)))
        nodes = ("m.pdf#f", "w.docx#g")
        closest = tuple(ClosestPassage("q", n, "T", n, (1, 21), f"Tea of {n}.", 0.5) for n in nodes)
        quotes = tuple(Quote(n, "T", "Tea.", 1, n, (1, 1)) for n in nodes)
        answer = QuestionAnswer("a", "Tea.", sources=quotes)
        reply = said_of(tree, SearchResult(answer="Tea.", answers=(answer,), closest=closest))
    for given in (reply.sources, reply.ending.closest):
        assert [place_of(each) for each in given] == ["m.pdf, page 12", "w.docx"]
