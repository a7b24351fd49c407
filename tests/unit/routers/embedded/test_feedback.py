"""What people flag ranks lower for questions like theirs, and for no other."""

from __future__ import annotations

import pytest
from metatree_routers import text_evidence

from metatree import Tree, search
from metatree.notes.feedback import flag, take_back
from metatree.testing.parts import tree_of

REFUND = "Who approves refunds?"
TEXTS = {
    "myth": "Refunds are approved by nobody, they are a myth.",
    "desk": "The desk looks at refunds; Ann approves them at the end of the month.",
    "trip": "Trips are approved by the head of the department.",
}


@pytest.fixture
def tree() -> Tree:
    return tree_of(TEXTS)


def ranks(tree: Tree, question: str) -> dict[str, float]:
    return {
        each.node_id: each.score for each in text_evidence(tree).score([question]) if each.node_id in TEXTS
    }


def test_the_rank_before_and_after_and_after_it_was_taken_back(tree: Tree) -> None:
    before = ranks(tree, REFUND)
    assert next(iter(before)) == "myth"
    made = flag(tree, "myth", REFUND, who="ann")
    after = ranks(tree, REFUND)
    assert next(iter(after)) == "desk"
    assert after["myth"] == pytest.approx(before["myth"] / 2)
    assert after["desk"] == before["desk"]
    take_back(tree, made.id)
    assert ranks(tree, REFUND) == before


def test_an_evidence_that_is_at_work_sees_the_flag(tree: Tree) -> None:
    evidence = text_evidence(tree)
    assert evidence.score([REFUND])[0].node_id == "myth"
    flag(tree, "myth", REFUND)
    assert evidence.score([REFUND])[0].node_id == "desk"


@pytest.mark.parametrize("question", ["Who approves trips?", "What is a myth?", "Is Ann at the desk?"])
def test_other_questions_are_not_touched(tree: Tree, question: str) -> None:
    before = ranks(tree, question)
    for node in TEXTS:
        flag(tree, node, REFUND, who="ann")
    assert ranks(tree, question) == before


def test_a_question_like_it_is(tree: Tree) -> None:
    before = ranks(tree, "Which team approves the refunds?")
    flag(tree, "myth", REFUND, who="ann")
    after = ranks(tree, "Which team approves the refunds?")
    assert before["myth"] / 2 < after["myth"] < before["myth"], "the less alike, the less"


def test_one_who_flags_everything_changes_no_order(tree: Tree) -> None:
    before = ranks(tree, REFUND)
    for node in TEXTS:
        for _ in range(20):
            flag(tree, node, REFUND, who="mallory")
            flag(tree, node, REFUND + " Please!", who="mallory")
    after = ranks(tree, REFUND)
    assert list(after) == list(before)
    assert all(after[node] >= before[node] * 0.49 for node in before)
    assert search(REFUND, tree=tree, sure=0.1).answer, "and it is found all the same"


def test_whoever_flags_it_a_text_that_alone_answers_is_still_found(tree: Tree) -> None:
    for number in range(30):
        flag(tree, "trip", "Who approves trips?", who=f"u{number}")
    assert "head of the department" in search("Who approves trips?", tree=tree, sure=0.2).answer


def test_what_lies_below_is_lowered_with_it() -> None:
    tree = tree_of({"old": {"one": TEXTS["myth"], "two": "Refunds need no approval."}, "desk": TEXTS["desk"]})
    below = [node.id for node in tree.children("old")]
    before = {each.node_id: each.score for each in text_evidence(tree).score([REFUND])}
    flag(tree, "old", REFUND)
    after = {each.node_id: each.score for each in text_evidence(tree).score([REFUND])}
    for node in below:
        assert after[node] == pytest.approx(before[node] / 2)


def test_the_reason_says_so(tree: Tree) -> None:
    flag(tree, "myth", REFUND, who="ann", now=lambda: 0.0)
    flag(tree, "myth", REFUND, who="bob", now=lambda: 1.0)
    why = text_evidence(tree).why([REFUND], "myth")
    assert "says “approves”" in why or "“refunds”" in why
    assert (
        "flagged as off topic for “Who approves refunds?” by" in why and "and 1 more, so it counts 33%" in why
    )
    assert "flagged" not in text_evidence(tree).why([REFUND], "desk")
    result = search(REFUND, tree=tree, returns="nodes", k=3)
    assert any("flagged" in node.reason for node in result.nodes if node.id == "myth")
