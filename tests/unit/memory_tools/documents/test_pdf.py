"""PDF documents as text and nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
from metatree_memory_tools.documents._document_text import Extracted, PageStart
from metatree_memory_tools.documents._outline import outline_of
from metatree_memory_tools.documents._pdf import extract_pdf

from metatree.trees.source_types import Outline, OutlinePart

Pdf = Callable[..., bytes]


def leaves(parts: Iterable[OutlinePart]) -> list[OutlinePart]:
    """Return the parts that hold text."""
    return [
        leaf for part in parts for leaf in (leaves(part.parts) if part.parts else [part]) if leaf.start_line
    ]


def outlined(data: bytes) -> tuple[Extracted, Outline]:
    document = extract_pdf(data)
    return document, outline_of(document, "a.pdf", "A PDF document")


def titles(parts: Iterable[OutlinePart]) -> list[object]:
    """Return titles as nested lists."""
    return [part.title if not part.parts else [part.title, *titles(part.parts)] for part in parts]


def test_bookmarks_become_sections_that_begin_at_the_lines_that_say_their_titles(pdf: Pdf) -> None:
    data = pdf(
        [
            [(12, "A Manual"), (12, "by nobody")],
            [(12, "1 Install"), (12, "Run the installer."), (12, "1.1 Linux"), (12, "Use apt.")],
            [(12, "More on apt."), (12, "2 Use"), (12, "Call it.")],
        ],
        [(1, "Install", 2), (2, "Linux", 2), (1, "Use", 3)],
        title="The Manual",
    )
    document, outline = outlined(data)
    assert document.lines == [
        "A Manual", "by nobody", "1 Install", "Run the installer.", "1.1 Linux", "Use apt.", "More on apt.",
        "2 Use", "Call it.",
    ]  # fmt: skip
    assert titles(outline.parts) == [
        "The Manual (introduction)",
        ["Install", "Install (introduction)", "Linux"],
        "Use",
    ]
    linux = outline.parts[1].parts[1]
    assert (linux.start_line, linux.end_line) == (5, 7)
    assert (linux.attributes["first_page"], linux.attributes["last_page"]) == (2, 3)
    assert outline.description == "The Manual: A Manual by nobody. Sections: Install, Use."
    assert outline.attributes["pages"] == 3


@pytest.mark.parametrize("pages", [1, 3])
def test_a_page_that_no_page_has_room_for_is_cut_into_pieces_with_all_of_its_text(pages: int) -> None:
    """Of one node the index knows all words at once: 760,000 Chinese letters on a page took hundreds of megabytes."""
    lines = [f"line {number} says {'x' * number}" for number in range(600)]
    document = Extracted(lines=[*lines, "on the next"][: 601 if pages > 1 else 600])
    document.pages = [PageStart(1), *(PageStart(601 + n) for n in range(pages - 1))]
    outline = outline_of(document, "a.pdf", "A PDF document")
    assert [part.kind for part in outline.parts] == ["page"] * len(outline.parts)
    found = leaves(outline.parts)
    assert [
        line for leaf in found for line in document.lines[leaf.start_line - 1 : leaf.end_line]
    ] == document.lines
    assert len(found) > 20 and len({leaf.id for leaf in found}) == len(found)
    assert {leaf.attributes["first_page"] for leaf in found[:20]} == {1}


def test_a_row_that_no_page_has_room_for_is_cut_between_words(pdf: Pdf) -> None:
    words = [f"word{number}" for number in range(3_000)]
    document = extract_pdf(pdf([[(0.001, " ".join(words))]]))
    assert len(document.lines) > 2 and max(map(len, document.lines)) <= 10_000
    assert " ".join(document.lines).split() == words


def test_a_long_section_has_its_pages_below_it(pdf: Pdf) -> None:
    pages = [[(12, f"Text of page {number}.")] for number in range(1, 6)]
    data = pdf([[(12, "All")], *pages, [(12, "End"), (12, "Done.")]], [(1, "All", 1), (1, "End", 7)])
    _, outline = outlined(data)
    section = outline.parts[0]
    assert [part.title for part in section.parts] == [f"All, page {number}" for number in range(1, 7)]
    assert [part.kind for part in section.parts] == ["page"] * 6
    assert section.parts[2].description == "Text of page 2."
    assert section.parts[2].attributes["first_page"] == 3


def test_without_bookmarks_lines_in_larger_letters_are_headings(pdf: Pdf) -> None:
    text = [(11.0, "Plain text of the usual size, a whole line of it.")] * 8
    data = pdf([[(24, "Report"), *text, (16, "Method"), *text], [(16, "Results"), *text]])
    document, outline = outlined(data)
    assert [(heading.title, heading.level) for heading in document.headings] == [
        ("Report", 1), ("Method", 2), ("Results", 2),
    ]  # fmt: skip
    assert outline.attributes["title"] == "Report"
    assert titles(outline.parts) == ["Report (introduction)", "Method", "Results"]


def test_without_bookmarks_and_headings_pages_are_leaves_in_groups(pdf: Pdf) -> None:
    data = pdf([[(12, f"Page {number} speaks.")] for number in range(1, 36)])
    _, outline = outlined(data)
    assert [part.title for part in outline.parts] == [
        "pages 1-10",
        "pages 11-20",
        "pages 21-30",
        "pages 31-35",
    ]
    assert [part.title for part in outline.parts[3].parts] == [f"page {number}" for number in range(31, 36)]


def test_a_page_without_text_says_so(pdf: Pdf) -> None:
    _, outline = outlined(pdf([[(12, "Words.")], [], [], [(12, "More words.")]]))
    assert [part.title for part in outline.parts] == ["page 1", "pages 2-3", "page 4"]
    scan = outline.parts[1]
    assert (scan.start_line, scan.end_line) == (0, 0)
    assert "no text" in scan.description and "no text" in scan.attributes["note"]


def test_running_heads_stay_in_the_text_and_out_of_descriptions(pdf: Pdf) -> None:
    drinks = ["tea", "milk", "water", "wine", "juice", "beer"]
    pages = [
        [
            (12, f"The Manual {number}"),
            *((12, f"This {word} line is about {drink}.") for word in ("first", "last")),
        ]
        for number, drink in enumerate(drinks, start=1)
    ]
    pages = [[*page, (12, f"- {number} -")] for number, page in enumerate(pages)]
    document, outline = outlined(pdf(pages))
    assert document.lines[0] == "The Manual 1"
    assert outline.parts[2].description == "This first line is about water."


def test_bookmarks_in_any_order_and_to_the_same_place_lose_no_line(pdf: Pdf) -> None:
    pages = [[(12, f"Line {number} a"), (12, f"Line {number} b")] for number in range(1, 5)]
    marks = [(1, "Last", 4), (1, "First", 1), (2, "Nowhere", 1), (2, "Again", 1), (3, "Deep", 3)]
    document, outline = outlined(pdf(pages, marks))
    owners = [line for leaf in leaves(outline.parts) for line in range(leaf.start_line, leaf.end_line + 1)]
    assert sorted(owners) == list(range(1, len(document.lines) + 1))


def test_titles_that_programs_make_up_are_no_titles(pdf: Pdf) -> None:
    text = [(11.0, "Plain text of the usual size.")] * 5
    document = extract_pdf(pdf([[(20, "Tea in China"), *text]], title="Microsoft Word - draft7.doc"))
    assert document.title == "Tea in China"
