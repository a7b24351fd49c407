"""reStructuredText as nodes: its sections, by the rules for titles."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from metatree_memory_tools.documents._rst import extract_rst, prose
from metatree_memory_tools.documents.types import ReStructuredText

from metatree.trees.source_types import SourceFile

TEXT = """\
.. _top:

=========
The Guide
=========

A guide to :mod:`tea` and `milk <https://example.org>`_.

Install
=======
.. code-block:: sh

    run
    ===

Use ``pip``.

On Windows
----------

Click.

=====  =====
A      B
=====  =====
1      2
=====  =====

Use
===

- one
- two
"""


def test_titles_are_sections_and_tables_and_literal_text_are_not() -> None:
    document = extract_rst(TEXT.split("\n"))
    assert [(h.level, h.title, h.line, h.span) for h in document.headings] == [
        (1, "The Guide", 3, 3), (2, "Install", 9, 2), (3, "On Windows", 18, 2), (2, "Use", 29, 2),
    ]  # fmt: skip


def test_the_outline_of_a_file() -> None:
    outline = ReStructuredText().outline(SourceFile("guide.rst", TEXT.encode()))
    assert outline.attributes["title"] == "The Guide"
    assert outline.description == "The Guide: A guide to tea and milk. Sections: Install, Use."
    assert [part.title for part in outline.parts] == ["The Guide (introduction)", "Install", "Use"]
    install = outline.parts[1]
    assert install.description == "Use pip. Sections: On Windows."
    assert [(part.title, part.start_line, part.end_line) for part in install.parts] == [
        ("Install (introduction)", 9, 17),
        ("On Windows", 18, 28),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "a paragraph\nand its next line\n---------\n",
        "text::\n\n  literal\n  =======\n",
        "ab\n-\n",
        "\n----\n\n",
        ":field: value\n=============\n",
    ],
)
def test_no_titles(text: str) -> None:
    assert extract_rst(text.split("\n")).headings == []


_LINES = st.lists(
    st.sampled_from(["", "=", "====", "----", "Title", "A b c.", "  ind", ".. x::", "::", "- it", "====  =="])
)


@given(_LINES)
def test_every_line_lies_in_one_leaf(lines: list[str]) -> None:
    file = SourceFile("a.rst", "\n".join(lines).encode())
    outline = ReStructuredText().outline(file)
    owned: list[int] = []
    pending = list(outline.parts)
    while pending:
        part = pending.pop()
        pending += part.parts
        if not part.parts and part.start_line:
            assert part.end_line <= len(file.lines)
            owned += range(part.start_line, part.end_line + 1)
    assert len(owned) == len(set(owned))
    titles = {n for h in extract_rst(file.lines).headings for n in range(h.line, h.line + h.span)}
    needed = {number for number, line in enumerate(file.lines, start=1) if line.strip()} - titles
    assert not outline.parts or needed <= set(owned)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("their pages. It can", "their pages. It can"),
        ("Pass it on (see a) and b) to all", "Pass it on (see a) and b) to all"),
        ("so. Then it ends", "so. Then it ends"),
        ("- an item. It can", "an item. It can"),
        ("12) twelve", "twelve"),
        ("iv. four", "four"),
        ("(a) first", "first"),
        ("#. next", "next"),
    ],
)
def test_marks_of_lists_are_taken_off_the_beginning_of_a_line_alone(line: str, said: str) -> None:
    assert list(prose([line])) == [said]
