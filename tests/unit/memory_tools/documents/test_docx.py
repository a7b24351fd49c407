"""Word documents as text and nodes."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable

import pytest
from metatree_memory_tools.documents import _document_text
from metatree_memory_tools.documents import _docx as docx_text
from metatree_memory_tools.documents._document_text import Extracted, Heading, PageStart
from metatree_memory_tools.documents._docx import extract_docx
from metatree_memory_tools.documents._outline import outline_of

Docx = Callable[..., bytes]
STYLES = """
<w:style w:type="paragraph" w:styleId="H1"><w:name w:val="heading 1"/></w:style>
<w:style w:type="paragraph" w:styleId="Own"><w:name w:val="My chapter"/><w:basedOn w:val="H1"/></w:style>
<w:style w:type="paragraph" w:styleId="H2"><w:name w:val="heading 2"/></w:style>
<w:style w:type="paragraph" w:styleId="T"><w:name w:val="Title"/></w:style>
<w:style w:type="paragraph" w:styleId="Lvl"><w:name w:val="x"/><w:pPr><w:outlineLvl w:val="1"/></w:pPr></w:style>
"""


def p(text: str, style: str = "", inside: str = "") -> str:
    properties = f'<w:pPr><w:pStyle w:val="{style}"/>{inside}</w:pPr>' if style or inside else ""
    return f"<w:p>{properties}<w:r><w:t>{text}</w:t></w:r></w:p>"


def test_headings_by_their_styles_are_sections(docx: Docx) -> None:
    body = (
        p("The Report", "T") + p("Before.") + p("One", "H1") + p("Text.") + p("Two", "H2") + p("More.")
        + p("Three", "Own") + p("Four", "Lvl") + p("End.")
    )  # fmt: skip
    document = extract_docx(docx(body, styles=STYLES))
    assert document.title == "The Report"
    assert [(h.level, h.title) for h in document.headings] == [
        (1, "One"),
        (2, "Two"),
        (1, "Three"),
        (2, "Four"),
    ]
    outline = outline_of(document, "a.docx", "A Word document")
    assert [part.title for part in outline.parts] == ["The Report (introduction)", "One", "Three"]
    assert outline.parts[1].description == "Text. Sections: Two."


def test_tables_are_lines_of_cells_and_lists_are_marked(docx: Docx) -> None:
    def row(*cells: str) -> str:
        return "<w:tr>" + "".join(f"<w:tc>{cell}</w:tc>" for cell in cells) + "</w:tr>"

    inner = "<w:tbl>" + row(p("x"), p("y")) + "</w:tbl>"
    table = "<w:tbl>" + row(p("Tea"), p("Price")) + row(p("green"), p("3") + inner) + "</w:tbl>"
    document = extract_docx(docx(table + p("item", inside="<w:numPr/>")))
    assert [line for line in document.lines if line] == ["Tea | Price", "green | 3 x | y", "- item"]


def test_deleted_text_and_fields_are_no_text_and_notes_come_last(docx: Docx) -> None:
    body = (
        "<w:p><w:r><w:t>kept</w:t></w:r><w:del><w:r><w:delText>gone</w:delText><w:t>gone</w:t></w:r></w:del>"
        "<w:r><w:instrText>PAGE</w:instrText><w:tab/><w:t>too</w:t></w:r></w:p>"
    )
    notes = '<w:footnotes xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main">'
    document = extract_docx(docx(body, word__footnotes=f"{notes}{p('A note.')}</w:footnotes>"))
    assert [line for line in document.lines if line] == ["kept too", "Footnotes", "A note."]
    assert document.headings[-1].title == "Footnotes"


def test_text_that_was_moved_is_where_it_was_moved_to_alone(docx: Docx) -> None:
    def run(text: str) -> str:
        return f"<w:r><w:t>{text}</w:t></w:r>"

    body = (
        '<w:p><w:moveFromRangeStart w:id="1" w:name="m"/>' + run("first")
        + f'<w:moveFrom w:id="2">{run(" wandered")}</w:moveFrom><w:moveFromRangeEnd w:id="1"/></w:p>'
        + p("second")
        + '<w:p><w:moveToRangeStart w:id="3" w:name="m"/>'
        + f'<w:moveTo w:id="4">{run("wandered")}</w:moveTo><w:moveToRangeEnd w:id="3"/></w:p>'
    )  # fmt: skip
    assert [line for line in extract_docx(docx(body)).lines if line] == ["first", "second", "wandered"]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "damaged"),
        (b"PK\x03\x04 nothing", "damaged"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "encrypted, or of the format before docx"),
    ],
)
def test_what_is_no_docx_is_damaged(data: bytes, said: str) -> None:
    assert said in extract_docx(data).problem


def test_a_truncated_docx_is_damaged(docx: Docx) -> None:
    data = docx(p("word " * 5_000))
    assert "damaged" in extract_docx(data[: len(data) // 2]).problem


def test_a_zip_bomb_is_refused_by_what_comes_out_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", b" " * 30_000_000)
    read = 0
    chunks = docx_text._chunks

    def counted(archive: zipfile.ZipFile, name: str) -> object:
        nonlocal read
        for chunk in chunks(archive, name):
            read += len(chunk)
            yield chunk

    monkeypatch.setattr(docx_text, "_chunks", counted)
    assert "zip bomb" in extract_docx(out.getvalue()).problem
    assert read < 10_000_000


def test_an_xml_bomb_is_refused_before_anything_is_expanded() -> None:
    entities = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 10))
    xml = f'<!DOCTYPE x [<!ENTITY a0 "ha">{entities}]><x>&a9;</x>'
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("word/document.xml", xml)
    assert "XML bomb" in extract_docx(out.getvalue()).problem


def test_deep_nesting_is_refused(docx: Docx) -> None:
    assert "nested" in extract_docx(docx("<w:p>" * 5_000)).problem


def test_broken_xml_keeps_what_came_before(docx: Docx) -> None:
    document = extract_docx(docx(p("One.") + p("Two.") + "<w:p></w:q>"))
    assert [line for line in document.lines if line] == ["One.", "Two."]
    assert "no valid XML" in document.problem


def test_a_document_has_so_many_lines_headings_and_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    headings = [Heading(1, "H", line) for line in range(1, 12_001)]
    cut = Extracted(["H"] * 12_000, headings, [PageStart(1)] * 60_000, problem="damaged").bounded()
    assert (len(cut.lines), len(cut.headings), len(cut.pages)) == (12_000, 10_000, 50_000)
    assert cut.problem == "damaged; only its first 10,000 headings; only its first 50,000 pages"
    monkeypatch.setattr(_document_text, "_MOST_TEXT_LINES", 100)
    cut = Extracted(["H"] * 12_000, headings, [PageStart(1), PageStart(102)]).bounded()
    assert (len(cut.lines), len(cut.headings), len(cut.pages)) == (100, 100, 1)
    whole = Extracted(["H"] * 100, headings[:100], [PageStart(1)])
    assert whole.bounded() is whole
