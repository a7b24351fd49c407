"""What is wrong with a condition is said where it stands, and never by an error of Python."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from metatree_agents.planner.domain.conditions import NUMERIC, condition_of
from metatree_agents.planner.domain.syntax import PlannerSyntaxError


@pytest.mark.parametrize(
    ("text", "column", "said"),
    [
        ("(not)", 1, "`not` takes 1 argument, not 0"),
        ("(not (p) (q))", 1, "`not` takes 1 argument, not 2"),
        ("(imply (p))", 1, "`imply` takes 2 arguments, not 1"),
        ("(forall (?x))", 1, "`forall` takes 2 arguments, not 1"),
        ("(exists (x) (p x))", 10, "`x` is no variable: variables begin with `?`"),
        ("(= ?a)", 1, "`=` takes 2 arguments, not 1"),
        ("(= (+ 1 2) ?a)", 4, "`=` compares variables and constants: numbers are not supported"),
        ("(and (p) (= ?a (f ?b)))", 16, "`=` compares variables and constants: numbers are not supported"),
        ("(sortof ?x)", 1, "expected `(sortof ?variable - type)`"),
        ("(sort ?x - a b)", 1, "expected `(sortof ?variable - type)`"),
        *(
            (f"({sign} ?a 3)", 2, f"`{sign}`: numbers are not supported in conditions")
            for sign in sorted(NUMERIC)
        ),
        ("(p (q))", 4, "expected a variable or a constant, found a group in parentheses"),
        ("((p))", 2, "expected a condition, found a group in parentheses"),
        ("(p", 1, "this `(` is never closed"),
        ("p", 1, "expected a condition in parentheses, found `p`"),
        ("(p) (q)", 5, "expected one condition: put several into `(and …)`"),
    ],
)
def test_an_error_says_where_and_what(text: str, column: int, said: str) -> None:
    with pytest.raises(PlannerSyntaxError) as caught:
        condition_of(text, "d.toml")
    assert str(caught.value) == f"d.toml:1:{column}: {said}"


WORDS = ("(", "(", "(", ")", ")", "and", "or", "not", "imply", "forall", "exists", "=", "sortof", "-", ">=")


@given(st.lists(st.sampled_from((*WORDS, "p", "?x", "?y", "3", "thing")), max_size=25))
def test_any_words_are_a_condition_or_such_an_error(words: list[str]) -> None:
    try:
        condition_of(" ".join(words), "d.toml")
    except PlannerSyntaxError as exc:
        assert str(exc).startswith("d.toml:1:")
