"""A heading says a question's word by one that is derived from it."""

from __future__ import annotations

from metatree_routers import text_evidence

from metatree import Node, Tree

TEXTS = {
    "Pager Support": "In some situations, you might want to show long texts on the terminal and let a user scroll"
    " through them. This is done by the function echo_via_pager.",
    "Printing": "The output is text or bytes. A long line of output ends with a line break.",
    "Wrapping": "Lines of help that are long are wrapped. The output goes to the terminal.",
    "Number of Workers": "The workers are two where nothing else is said.",
}


def _titles(question: str) -> list[str]:
    with Tree.create(":memory:") as tree:
        for title, text in TEXTS.items():
            tree.add(Node(id=title, title=title, content=text, kind="section"))
        return [passage.title for passage in text_evidence(tree).passages(question, k=4)]


def test_a_heading_says_who_does_what_the_question_asks_for() -> None:
    assert "Pager Support" in _titles("How do I page long output?")[:2]


def test_other_words_in_er_say_nothing_of_a_question() -> None:
    assert "Number of Workers" not in _titles("Which numb hand is it?")[:1]
