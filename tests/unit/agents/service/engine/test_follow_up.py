"""What a question in a topic refers to, and what is claimed of it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from metatree_agents.service.engine._follow_up import follow_up, kept_tree, same_subject
from metatree_agents.service.engine.answering import answer_query
from metatree_agents.service.queue.models import NOT_SAID, EngineQuery

from metatree import Node, Tree
from metatree.protocols import Answer, Reader, Reading, ReadRequest

COMPLETION: list[Mapping[str, Any]] = [
    {"Seq": 1, "Query": "How does completion work?", "Answer": [NOT_SAID], "End": "closest"}
]


@pytest.mark.parametrize(
    ("question", "taken"),
    [
        ("Which shells does that work for?", "Which shells does that (completion) work for?"),
        ("Does it work on Windows?", "Does it (completion) work on Windows?"),
        ("Does Click support that?", "Does Click support that (completion)?"),
        ("How can I disable that?", "How can I disable that (completion)?"),
        ("How do I turn it off", "How do I turn it (completion) off"),
        ("What are its limits?", "What are its (completion) limits?"),
        ("And for zsh?", "And for zsh (completion)?"),
        ("What about fish?", "What about fish (completion)?"),
        ("Why?", "Why (completion)?"),
        ("Can you give me an example?", "Can you give me an example (completion)?"),
    ],
)
def test_a_question_that_refers_gets_its_subject(question: str, taken: str) -> None:
    found = follow_up(question, COMPLETION)
    assert found is not None and found.text == taken
    assert (
        found.note
        == "Read as a question about “How does completion work?” If something else is meant, ask again and name it."
    )


@pytest.mark.parametrize(
    "question",
    [
        "How do I page long output?",
        "Where does Context keep its parent?",
        "When the pager fails, what does it do?",
        "Which class is the one that prints a pager?",
        "What does this project do?",
        "Is it possible to nest groups?",
        "And what does Context do?",
        "And how do I ask twice?",
        "Why does the pager not start, and does it end? " * 5,
    ],
)
def test_a_question_that_stands_by_itself_is_left_as_it_is(question: str) -> None:
    assert follow_up(question, COMPLETION) is None
    assert follow_up("Does it work on Windows?", []) is None


def test_the_subject_goes_on_over_several_questions() -> None:
    earlier = [*COMPLETION, {"Query": "Which shells does that work for?"}]
    found = follow_up("And on Windows?", earlier)
    assert found is not None and found.text == "And on Windows (shells completion)?"
    assert found.before == "How does completion work?", "and not the one that refers to it itself"
    assert [turn["Query"] for turn in same_subject([{"Query": "Who pays?"}, *earlier])] == [
        turn["Query"] for turn in earlier
    ]


def test_an_answer_and_its_source_say_what_is_meant() -> None:
    turn: dict[str, Any] = {"Query": "Who pays for the lamps?", "Answer": ["The janitor Tom Berg does."]}
    found = follow_up("Where does he live?", [{**turn, "End": "answered"}])
    assert found is not None and found.subject.startswith("Tom Berg")
    found = follow_up("Where does he live?", [{**turn, "End": "closest"}])
    assert found is not None and "Tom" not in found.subject, "what was not answered names nobody"
    sourced = {
        "Query": "How does completion work?",
        "End": "answered",
        "Sources": [{"Title": "Shell Completion"}],
    }
    found = follow_up("Why is that?", [sourced])
    assert found is not None and found.subject == "completion Shell"


class Claims(Reader):
    """A reader that claims the whole of one node."""

    def __init__(self, node: str) -> None:
        self.node = node
        self.asked = list[str]()

    async def read(self, request: ReadRequest) -> Reading:
        self.asked += request.questions
        if request.node.id != self.node:
            return Reading(useful=False)
        text = request.content.strip()
        return Reading(tuple(Answer(question, text, text) for question in request.questions))


TEXTS = {
    "shells": "Completion is there for the shells bash, zsh and fish.",
    "lamps": "Which shells the lamps are made of is not known.",
    "other": "Completion is there, and what it is worth.",
}


@pytest.mark.parametrize(
    ("claimed", "end"), [("shells", "answered"), ("lamps", "closest"), ("other", "closest")]
)
def test_what_is_claimed_of_a_follow_up_speaks_of_its_subject(claimed: str, end: str) -> None:
    reader = Claims(claimed)
    with Tree.create(":memory:") as tree:
        for name, text in TEXTS.items():
            tree.add(Node(id=name, title=name, content=text), parent=tree.root)
        query = EngineQuery("t", 2, "Which shells does that work for?", {}, earlier=COMPLETION)
        reply = asyncio.run(answer_query(tree, query, parts={"reader": reader}))
    assert reader.asked and set(reader.asked) == {"Which shells does that (completion) work for?"}
    assert reply.ending.end == end
    assert reply.ending.notes[0].startswith("Read as a question about “How does completion work?”")
    if end == "closest":
        assert reply.answer == [NOT_SAID] and not reply.sources
        assert reply.ending.open == [query.text]
        assert reply.ending.closest[0]["Quote"] == TEXTS[claimed]
        assert {each["Question"] for each in reply.ending.closest} == {query.text}


def test_a_code_that_a_follow_up_names_is_what_it_is_about() -> None:
    """`E07` is nowhere by chance, so what says it need not say `completion`, too."""
    query = EngineQuery("t", 2, "What does error E07 of that mean?", {}, earlier=COMPLETION)
    with Tree.create(":memory:") as tree:
        tree.add(
            Node(id="e", title="e", content="Error E07 means that a shell is missing."), parent=tree.root
        )
        reply = asyncio.run(answer_query(tree, query, parts={"reader": Claims("e")}))
    assert reply.ending.end == "answered"


def test_what_says_the_own_words_of_a_follow_up_is_shown_where_its_answer_was_wrong() -> None:
    query = EngineQuery("t", 2, "And for lamps?", {}, earlier=COMPLETION)
    with Tree.create(":memory:") as tree:
        for name, text in TEXTS.items():
            tree.add(Node(id=name, title=name, content=text), parent=tree.root)
        reply = asyncio.run(answer_query(tree, query, parts={"reader": Claims("other")}))
    assert [each["Node"] for each in reply.ending.closest] == ["other", "lamps"]
    assert {each["Question"] for each in reply.ending.closest} == {query.text}


def test_what_was_quoted_on_another_subject_is_not_shown_again() -> None:
    quoted = {"Node": "lamps", "Title": "lamps", "Quote": TEXTS["lamps"]}
    lamps = {"Seq": 1, "Query": "What are the lamps of?", "Answer": ["Glass."], "End": "answered"}
    tom = {"Seq": 2, "Query": "Who is Tom Berg?", "Answer": [NOT_SAID], "End": "closest"}
    with Tree.create(":memory:") as tree:
        tree.add(Node(id="lamps", title="lamps", content=TEXTS["lamps"]), parent=tree.root)
        query = EngineQuery("t", 3, "And why is that?", {}, earlier=[{**lamps, "Sources": [quoted]}, tom])
        reply = asyncio.run(answer_query(tree, query, parts={"reader": Claims("")}))
    assert TEXTS["lamps"] not in [each["Quote"] for each in reply.ending.closest[:1]]


def test_a_first_question_is_asked_as_it_stands() -> None:
    reader = Claims("lamps")
    earlier: list[Mapping[str, Any]] = []
    with Tree.create(":memory:") as tree:
        tree.add(Node(id="lamps", title="lamps", content=TEXTS["lamps"]), parent=tree.root)
        query = EngineQuery("t", 1, "Which shells does that work for?", {}, earlier=earlier)
        reply = asyncio.run(answer_query(tree, query, parts={"reader": reader}))
    assert set(reader.asked) == {query.text} and reply.ending.end == "answered" and not reply.ending.notes


def test_what_was_quoted_before_of_a_pdf_names_its_page() -> None:
    source = {"Node": "lamp", "Title": "lamp", "Quote": "Nine watts.", "Path": "lamp.pdf", "Pages": [3, 3]}
    before = {"Seq": 1, "Query": "How bright is the lamp?", "Answer": ["Nine watts."], "End": "answered"}
    with Tree.create(":memory:") as tree:
        tree.add(Node(id="lamp", title="lamp", content="Nine watts.\n" * 30), parent=tree.root)
        query = EngineQuery("t", 2, "And why is that?", {}, earlier=[{**before, "Sources": [source]}])
        reply = asyncio.run(answer_query(tree, query, parts={"reader": Claims("")}))
    first = reply.ending.closest[0]
    assert (first["Place"], first["Lines"], first["Pages"]) == ("lamp.pdf", None, [3, 3])


ANSWERED = {"Seq": 1, "Query": "How does completion work?", "Answer": ["So."], "End": "answered"}
CLICK, BOTH = [{"Tree": "click"}], [{"Tree": "click"}, {"Tree": "manuals"}]


@pytest.mark.parametrize(
    ("question", "turn", "kept"),
    [
        ("Which shells does that work for?", {"Sources": CLICK}, "click"),
        ("Which shells does that work for?", {"Sources": BOTH}, None),
        ("Which shells does that work for?", {"Sources": CLICK, "End": "closest"}, None),
        ("Which shells does that work for in the old manuals?", {"Sources": CLICK}, None),
        ("Who pays for the lamp in the hall?", {"Sources": CLICK}, None),
        ("Which shells does that work for?", {"Sources": [{"Tree": "other"}]}, None),
    ],
)
def test_what_refers_to_an_answer_stays_in_its_tree(
    question: str, turn: dict[str, Any], kept: str | None
) -> None:
    query = EngineQuery("T", 2, question, {}, earlier=[{**ANSWERED, **turn}], trees=("click", "manuals"))
    titles = {"manuals": "Old manuals"}
    assert kept_tree(query, titles) == kept
    assert kept_tree(replace(query, trees=("click",)), titles) is None
