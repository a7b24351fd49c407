"""Quotes are taken as they stand in the text, whatever white space a model put between the words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metatree.searches._quotes import quote_in

TEXT = "The pool keeps\n    ten connections (a.b*c) open."


@pytest.mark.parametrize(
    ("quote", "there"),
    [
        ("ten connections", "ten connections"),
        ("keeps ten  connections", "keeps\n    ten connections"),
        ("(a.b*c) open", "(a.b*c) open"),
        ("(a.bbc) open", ""),
        ("Ten connections", ""),
        ("eleven connections", ""),
        ("keeps … (a.b*c) open.", "keeps\n    ten connections (a.b*c) open."),
        ("ten [...] open", "ten connections (a.b*c) open"),
        ("open … keeps", ""),
        ("keeps … eleven", ""),
        ("…", ""),
        ("", ""),
        (" \n ", ""),
    ],
)
def test_a_quote_is_returned_as_it_stands(quote: str, there: str) -> None:
    assert quote_in(TEXT, quote) == there


@given(st.text(), st.text())
def test_what_is_returned_stands_in_the_content(content: str, quote: str) -> None:
    there = quote_in(content, quote)
    assert there in content


def test_signs_that_models_straighten_are_taken_as_they_stand() -> None:
    assert quote_in("He said “no” – twice.", 'said "no" - twice') == "said “no” – twice"


def test_words_far_apart_are_no_quote() -> None:
    assert quote_in(f"begin {'x ' * 2_000} end", "begin … end") == ""
