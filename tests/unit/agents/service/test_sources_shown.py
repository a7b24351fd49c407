"""The page lists the sources of an answer in the order of their numbers, each with its lines or its page."""

from __future__ import annotations

from typing import Any

import pytest
from metatree_agents.service.web._markdown import prose
from metatree_agents.service.web._questions import _where


@pytest.mark.parametrize(
    ("source", "where"),
    [
        ({"Lines": [3, 3]}, ", line 3"),
        ({"Lines": [3, 9], "Pages": None}, ", lines 3–9"),
        ({"Lines": None, "Pages": [2, 2]}, ", page 2"),
        ({"Pages": [2, 4]}, ", pages 2–4"),
        ({}, ""),
        ({"Lines": "3"}, ""),
        ({"Lines": [1]}, ""),
    ],
)
def test_a_source_has_its_lines_or_its_pages(source: dict[str, Any], where: str) -> None:
    assert _where(source) == where


def test_quoted_words_have_no_markup_and_code_stays_as_it_is() -> None:
    words = "## Time\n\nIt is **30** s & [more](a.md)."
    assert prose(words.split("\n\n"), [words]) == (
        '<blockquote class="exact words">Time\n\nIt is 30 s &amp; more.</blockquote>'
    )
    code = "def f():\n    return __init__"
    assert "__init__" in prose([code], [code])
