"""Flags: kept once for each person, bounded, taken back."""

from __future__ import annotations

from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metatree import Tree
from metatree.errors import UserError
from metatree.notes import feedback
from metatree.notes.feedback import LEAST, flag, share_left, take_back
from metatree.testing.parts import tree_of


@pytest.fixture
def tree() -> Tree:
    return tree_of({"a": "A lamp.", "b": "A bulb."})


def test_the_same_flag_is_one_and_another_person_has_another(tree: Tree) -> None:
    one = flag(tree, "a", "Which  bulb fits?", who="ann", source="topic T", now=lambda: 0.0)
    assert flag(tree, "a", "which bulb fits?", who="ann", now=lambda: 9.0) == one
    other = flag(tree, "a", "Which bulb fits?", who="bob")
    assert {each.id for each in feedback.flags(tree.memory)} == {one.id, other.id}
    assert str(one) == "flagged as off topic for “Which bulb fits?” by ann on 1970-01-01"
    assert take_back(tree, one.id) == one
    assert [each.who for each in feedback.flags(tree.memory)] == ["bob"]
    with pytest.raises(UserError, match="no flag"):
        take_back(tree, one.id)
    with pytest.raises(UserError, match="no flag"):
        take_back(tree, "generation")


def test_only_the_latest_of_one_person_and_of_all_are_kept(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feedback, "MOST_OF_ONE", 3)
    monkeypatch.setattr(feedback, "MOST", 5)
    clock = count(1)
    flag(tree, "b", "What is a bulb?", who="bob", now=lambda: float(next(clock)))
    for number in range(6):
        flag(tree, "a", f"Question {number}?", who="ann", now=lambda: float(next(clock)))
    stored = {(each.who, each.question) for each in feedback.flags(tree.memory)}
    assert stored == {("bob", "What is a bulb?"), *(("ann", f"Question {number}?") for number in (3, 4, 5))}
    for number in range(6):
        flag(tree, "a", "What else?", who=f"c{number}", now=lambda: float(next(clock)))
    assert {each.who for each in feedback.flags(tree.memory)} == {f"c{number}" for number in range(1, 6)}


def test_a_flag_is_for_a_node_and_a_question(tree: Tree) -> None:
    with pytest.raises(UserError, match="say which"):
        flag(tree, "a", "  ")
    with pytest.raises(UserError):
        flag(tree, "nowhere", "Which?")


@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 1))))
def test_one_person_halves_at_most_and_all_leave_a_quarter(said: list[tuple[str, float]]) -> None:
    left = share_left(said)
    assert LEAST <= left <= 1.0
    assert share_left([(who, like) for who, like in said if who == "a"]) >= 0.5
    assert share_left([*said, ("a", 1.0)]) <= left
