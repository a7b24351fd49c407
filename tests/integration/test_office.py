"""Presentations, workbooks, books, notebooks and OpenDocument texts, made by the libraries that people use."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from metatree_agents.tools.locations import passage_place, source_place
from metatree_memory_tools import build_tree
from metatree_memory_tools.documents import _converted, types
from metatree_memory_tools.documents._converted import extract_converted
from metatree_memory_tools.documents._extract import Extractor

from metatree import Tree, search

pytest.importorskip("markitdown")
pytestmark = pytest.mark.integration

Change = Callable[[str, bytes], bytes]
SECRET = "outside the folder"


def presentation() -> bytes:
    from pptx import Presentation
    from pptx.util import Inches

    made = Presentation()
    slide = made.slides.add_slide(made.slide_layouts[1])
    slide.shapes.title.text = "Plan for tea"
    slide.placeholders[1].text = "Buy leaves\nBoil water"
    slide.notes_slide.notes_text_frame.text = "Speak slowly"
    slide = made.slides.add_slide(made.slide_layouts[5])
    slide.shapes.title.text = "Costs"
    table = slide.shapes.add_table(2, 2, Inches(1), Inches(1), Inches(3), Inches(1)).table
    for number, text in enumerate(["item", "price", "leaves", "7"]):
        table.cell(number // 2, number % 2).text = text
    return saved(made.save)


def workbook() -> bytes:
    from openpyxl import Workbook

    made = Workbook()
    first = made.active
    first.title = "Prices"
    for row in (["item", "price"], ["leaves", 7], ["# no heading", None]):
        first.append(row)
    made.create_sheet("Stock")["C3"] = "forty boxes"
    return saved(made.save)


def book(about: str = "") -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("mimetype", "application/epub+zip")
        archive.writestr(
            "META-INF/container.xml",
            '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
            '<rootfile full-path="OEBPS/content.opf"/></rootfiles></container>',
        )
        archive.writestr(
            "OEBPS/content.opf",
            '<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata>'
            "<dc:title>The tea book</dc:title><dc:creator>Ann Leaf</dc:creator>"
            f"{about}</metadata><manifest>"
            '<item id="a" href="a.xhtml"/><item id="b" href="b.xhtml"/></manifest>'
            '<spine><itemref idref="a"/><itemref idref="b"/></spine></package>',
        )
        for name, title, text in (
            ("a", "Green", "Steep for two minutes."),
            ("b", "Black", "Steep for four."),
        ):
            page = f"<html><body><h1>{title}</h1><p>{text}</p></body></html>"
            archive.writestr(f"OEBPS/{name}.xhtml", page)
    return out.getvalue()


def notebook() -> bytes:
    cells = [
        {"cell_type": "markdown", "metadata": {}, "source": ["# Steeping\n", "How long?\n", "## Data"]},
        {"cell_type": "code", "metadata": {}, "source": ["# no heading\n", "minutes = 4"], "outputs": []},
    ]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).encode()


def open_document() -> bytes:
    from odfdo import Document, Header, Paragraph, Table

    made = Document("text")
    made.body.clear()
    made.body.append(Header(1, "Tea rules"))
    made.body.append(Paragraph("Warm the pot."))
    made.body.append(Header(2, "Prices"))
    table = Table("prices", width=2, height=2)
    table.set_values([["item", "price"], ["leaves", 7]])
    made.body.append(table)
    return saved(made.save)


def saved(save: Callable[[io.BytesIO], object]) -> bytes:
    out = io.BytesIO()
    save(out)
    return out.getvalue()


MADE = {
    "a.pptx": presentation, "a.xlsx": workbook, "a.epub": book, "a.ipynb": notebook, "a.odt": open_document,
}  # fmt: skip


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    folder = tmp_path_factory.mktemp("office")
    for name, make in MADE.items():
        (folder / name).write_bytes(make())
    return build_tree(folder)


def test_a_presentation_is_its_slides(tree: Tree) -> None:
    assert [node.title for node in tree.children("a.pptx")] == ["Plan for tea", "Costs"]
    first, second = tree.children("a.pptx")
    assert tree.content(first).splitlines() == [
        "# Plan for tea", "Buy leaves", "Boil water", "", "Notes:", "Speak slowly"
    ]  # fmt: skip
    assert (first.attributes["first_page"], second.attributes["first_page"]) == (1, 2)
    assert "| leaves | 7 |" in tree.content(second)


def test_a_source_in_a_presentation_names_its_slide(tree: Tree) -> None:
    result = search("How much are the leaves?", tree=tree, start_node="a.pptx")
    places = [source_place(tree, source) for answer in result.answers for source in answer.sources]
    places += [passage_place(tree, passage) for passage in result.closest]
    assert {place for place in places if "pptx" in place} == {"a.pptx, slide 2"}


def test_a_workbook_is_its_sheets(tree: Tree) -> None:
    assert [node.title for node in tree.children("a.xlsx")] == ["Prices", "Stock"]
    prices, stock = map(tree.content, tree.children("a.xlsx"))
    assert "| leaves | 7 |" in prices
    assert "| # no heading |" in prices
    assert "|  |  | forty boxes |" in stock


def test_a_book_is_its_chapters(tree: Tree) -> None:
    assert tree.get("a.epub").attributes["title"] == "The tea book"
    assert tree.get("a.epub").attributes["author"] == "Ann Leaf"
    assert [node.title for node in tree.children("a.epub")] == ["Green", "Black"]
    assert "Steep for four." in tree.content(tree.children("a.epub")[1])


def test_a_key_in_the_description_of_a_book_is_masked(tmp_path: Path) -> None:
    line = "QyaHGG3NtX8z5dK1vPw2Jc7RmEoU4bTfYs6LiZhDqAxWnVkCgBpFuSeOIj09MlHr"
    key = f"-----BEGIN OPENSSH PRIVATE KEY-----\n{line}\n{line}\n-----END OPENSSH PRIVATE KEY-----"
    (tmp_path / "a.epub").write_bytes(book(f"<dc:description>Of tea. {key}</dc:description>"))
    with build_tree(tmp_path) as tree:
        nodes = [node for _, node in tree.walk("a.epub")]
        said = "".join(tree.content(node) for node in nodes if node.has_content) + repr(nodes)
    assert "Steep for four." in said and line[:30] not in said


def test_a_notebook_is_its_headings_and_comments_of_code_are_none(tree: Tree) -> None:
    below = [node for _, node in tree.walk("a.ipynb")]
    assert "Data" in {node.title for node in below}
    assert "no heading" not in {node.title for node in below}
    assert "minutes = 4" in "".join(tree.content(node) for node in below if node.has_content)


def test_an_open_document_is_its_headings(tree: Tree) -> None:
    assert tree.get("a.odt").attributes["title"] == "Tea rules"
    text = "\n".join(tree.content(node) for _, node in tree.walk("a.odt") if node.has_content)
    assert "Warm the pot." in text
    assert "| leaves | 7 |" in text


def test_nothing_is_left_out(tree: Tree) -> None:
    assert list(tree.omissions()) == []


def test_without_the_extra_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.xlsx").write_bytes(workbook())
    (tmp_path / "a.ipynb").write_bytes(notebook())
    monkeypatch.setattr(types, "_is_installed", lambda name: name not in ("markitdown", "odfdo", "openpyxl"))
    with build_tree(tmp_path) as made:
        assert "pip install 'metatree-memory[office]'" in made.get("a.xlsx").attributes["note"]
        assert "minutes = 4" in made.content("a.ipynb"), "as the text that it is"


@pytest.mark.parametrize("name", ["a.pptx", "a.xlsx", "a.epub", "a.odt"])
def test_a_damaged_file_is_one_note(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(MADE[name]()[:-300])
    (tmp_path / "b.md").write_text("# Fine")
    with build_tree(tmp_path) as made:
        assert "damaged" in made.get(name).attributes["note"]
        assert made.get("b.md").description


def _with_type(name: str, data: bytes, entity: str, used: str) -> bytes:
    """Return a document whose main parts declare an entity, and use it where `used` stands."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        for info in old.infolist():
            part = old.read(info)
            if info.filename.endswith((".xml", ".opf", ".xhtml", ".rels")) and used.encode() in part:
                text = part.decode().replace(used, "&x;")
                head, _, rest = text.partition("?>") if text.startswith("<?xml") else ("", "", text)
                start = f"{head}?>" if head else ""
                part = f"{start}<!DOCTYPE x [{entity}]>{rest}".encode()
            new.writestr(info.filename, part)
    return out.getvalue()


@pytest.mark.parametrize(
    ("name", "used"),
    [("a.pptx", "Buy leaves"), ("a.xlsx", "leaves"), ("a.epub", "Ann Leaf"), ("a.odt", "Warm the pot.")],
)
def test_an_entity_of_a_document_reads_no_file(name: str, used: str, tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text(SECRET)
    source = tmp_path / "source"
    source.mkdir()
    entity = f'<!ENTITY x SYSTEM "{outside.as_uri()}">'
    (source / name).write_bytes(_with_type(name, MADE[name](), entity, used))
    with build_tree(source) as made:
        nodes = [node for _, node in made.walk(name)]
        texts = [made.content(node) for node in nodes if node.has_content]
        assert SECRET not in "".join([*texts, *(str(node) for node in nodes)])


def _packed_tight(name: str, size: int) -> bytes:
    """Return a document with blanks in its first part of text."""
    out = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(MADE[name]())) as old,
        zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as new,
    ):
        for info in old.infolist():
            part = old.read(info)
            if info.filename.endswith(("slide1.xml", "sheet1.xml", "content.xml", "a.xhtml")):
                part = part.replace(b"><", b">" + b" " * size + b"<", 1)
            new.writestr(info.filename, part)
    return out.getvalue()


@pytest.mark.parametrize("name", ["a.pptx", "a.xlsx", "a.epub", "a.odt"])
def test_what_unpacks_to_more_than_text_can_be_is_refused_before(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_converted, "_MOST_BYTES", 3_000_000)
    kind = name.removeprefix("a.")
    assert "zip bomb" in extract_converted(kind, _packed_tight(name, 3_000_000)).problem
    assert not extract_converted(kind, MADE[name]()).problem


def test_a_document_that_takes_too_much_memory_is_one_note() -> None:
    extractor = Extractor(memory_bytes=150_000_000)
    try:
        result = extractor.extracted("pptx", "1", _packed_tight("a.pptx", 120_000_000))
    finally:
        extractor.close()
    assert "not read" in result.problem or "damaged" in result.problem
    assert not any(result.lines)


def test_no_model_is_loaded_to_read_a_notebook(tmp_path: Path) -> None:
    """The one that markitdown guesses formats by loads onnxruntime, which sends telemetry."""
    (tmp_path / "a.ipynb").write_text(
        json.dumps({"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
    )
    reads = (
        "import sys; from metatree_memory_tools.documents._converted import extract_converted as read;"
        f" read('notebook', open({str(tmp_path / 'a.ipynb')!r}, 'rb').read());"
        " print(sorted({'markitdown', 'magika', 'onnxruntime'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", reads], capture_output=True, text=True, check=True)
    assert done.stdout == "['markitdown']\n"
