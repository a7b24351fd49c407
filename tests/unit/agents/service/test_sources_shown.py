"""The page lists the sources of an answer in the order of their numbers, each with its lines or its page."""

from __future__ import annotations

from typing import Any

import pytest
from metatree_agents.service.openai.closest_passages import place_of, shown_quote
from metatree_agents.service.web._markdown import prose


@pytest.mark.parametrize(
    ("source", "where"),
    [
        ({"Lines": [3, 3], "Path": "a.md"}, "a.md, line 3"),
        ({"Lines": [3, 3]}, "line 3"),
        ({"Lines": [3, 9], "Pages": None}, "lines 3–9"),
        ({"Lines": None, "Pages": [2, 2]}, "page 2"),
        ({"Pages": [2, 4]}, "pages 2–4"),
        ({}, ""),
        ({"Lines": "3"}, ""),
        ({"Lines": [1]}, ""),
    ],
)
def test_a_source_has_its_lines_or_its_pages(source: dict[str, Any], where: str) -> None:
    assert place_of(source) == where


def test_quoted_words_have_no_markup_and_code_stays_as_it_is() -> None:
    words = "## Time\n\nIt is **30** s & [more](a.md)."
    assert prose(words.split("\n\n"), [words]) == (
        '<blockquote class="exact words">Time\n\nIt is 30 s &amp; more.</blockquote>'
    )
    code = "def f():\n    return __init__"
    assert "__init__" in prose([code], [code])


def test_what_is_quoted_has_a_mark_that_leads_to_its_source() -> None:
    quotes = ["Lamps use nine watts.", "Doors are blue.\n\nAll of them."]
    shown = prose([quotes[0], "And:", *quotes[1].split("\n\n")], quotes, numbers=[1, 2], anchor="source-7")
    mark = '<a class="mark" href="#source-7-{0}">[{0}]</a>'
    assert shown.count("watts.</blockquote>" + mark.format(1)) == 1
    assert shown.count("All of them.</blockquote>" + mark.format(2)) == 1 and shown.count("<a ") == 2
    assert "<a " not in prose([quotes[0]], quotes)


def test_a_quote_is_shown_without_markup_and_cut_between_words() -> None:
    source = {"Quote": "## Time\n\n" + "It is **30** seconds. " * 40, "Path": "a.md"}
    shown = shown_quote(source, chars=60)
    assert shown.startswith("Time\n\nIt is 30 seconds.") and shown.endswith(" …") and len(shown) < 66
