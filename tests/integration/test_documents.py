"""Documents in a tree: read in a process of their own, once, within limits, whatever their bytes are."""

from __future__ import annotations

import gc
import io
import json
import os
import random
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from metatree_memory_tools import build_tree
from metatree_memory_tools.build import _pool
from metatree_memory_tools.documents._document_text import Extracted
from metatree_memory_tools.documents._extract import Extractor
from metatree_memory_tools.documents._text_cache import KeptTexts
from metatree_memory_tools.documents.types import Html
from pypdf import PdfReader, PdfWriter

from metatree.trees.source_types import SourceFile

pytestmark = pytest.mark.integration

Make = Callable[..., bytes]


@pytest.fixture
def extractor(tmp_path: Path) -> Iterator[Extractor]:
    made = Extractor(KeptTexts(tmp_path / "kept"), limit_s=5, grace_s=5)
    yield made
    made.close()


@pytest.fixture(scope="module")
def shared_extractor() -> Iterator[Extractor]:
    """One process for many documents, as a build has it; it is started again where one ended it."""
    made = Extractor(None, limit_s=5, grace_s=5)
    yield made
    made.close()


def encrypted(data: bytes) -> bytes:
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(data)))
    writer.encrypt("open sesame", algorithm="RC4-128")
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def bomb() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", b"<a>" + b" " * 50_000_000)
    return out.getvalue()


def test_signs_that_take_four_bytes_each_make_no_text_larger_than_others_may_be() -> None:
    lines = ["word " * 10 + sign for _ in range(100_000) for sign in ("x", "\U0001f600")]
    bounded = Extracted(lines).bounded()
    assert sum(map(sys.getsizeof, bounded.lines)) <= 48_000_000
    assert "of text" in bounded.problem and len(bounded.lines) < len(lines)


def test_a_type_keeps_no_bytes_of_a_document_that_it_has_read() -> None:
    data = bytes(bytearray(b"<p>The harbour.</p>"))
    held = sys.getrefcount(data)
    kind, file = Html(), SourceFile("a.html", data)
    assert kind.text(file) is kind.text(file)
    assert kind.text(file).lines == ["The harbour."]
    del file
    gc.collect()
    assert sys.getrefcount(data) == held
    assert kind.text(SourceFile("a.html", b"<p>The kettle.</p>")).lines == ["The kettle."]


def test_documents_become_nodes_and_their_text_is_read_when_it_is_asked_for(
    pdf: Make, docx: Make, tmp_path: Path
) -> None:
    (tmp_path / "guide.pdf").write_bytes(
        pdf(
            [[(12, "Tea"), (12, "Green or black.")], [(12, "Milk"), (12, "Cold.")]],
            [(1, "Tea", 1), (1, "Milk", 2)],
        )
    )
    (tmp_path / "page.html").write_text(
        "<title>Cups</title><h1>Big</h1><p>A pint.<h1>Small</h1><a href='guide.pdf'>g</a>"
    )
    (tmp_path / "letter.docx").write_bytes(docx("<w:p><w:r><w:t>Dear reader</w:t></w:r></w:p>"))
    (tmp_path / "notes.rst").write_text("Cake\n====\n\nWith tea.\n\nPie\n===\n\nWith milk.\n")
    with build_tree(tmp_path) as tree:
        assert tree.content("guide.pdf#milk") == "Milk\nCold."
        assert tree.get("guide.pdf#milk").attributes["first_page"] == 2
        assert tree.content("page.html#big") == "Big\nA pint."
        assert tree.links("page.html", "links") == [("links", "guide.pdf")]
        assert tree.content("letter.docx") == "Dear reader"
        assert tree.content("notes.rst#pie") == "Pie\n===\n\nWith milk."
        assert tree.omissions() == []


def test_a_document_alone_is_a_tree(pdf: Make, tmp_path: Path) -> None:
    (tmp_path / "handbook.pdf").write_bytes(pdf([[(12, "Chapter of tea")], [(12, "Chapter of milk")]]))
    with build_tree(tmp_path / "handbook.pdf", out=tmp_path / "tree") as tree:
        assert tree.content("handbook.pdf#page-2") == "Chapter of milk"


def test_an_edit_leaves_the_nodes_of_other_pages_as_they_were(pdf: Make, tmp_path: Path) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(pdf([[(12, "One")], [(12, "Two")], [(12, "Three")]]))
    with build_tree(tmp_path) as tree:
        before = {node.id: node.digest for _, node in tree.walk()}
    path.write_bytes(pdf([[(12, "One"), (12, "and a half")], [(12, "Two")], [(12, "Three")]]))
    with build_tree(tmp_path) as tree:
        changed = {node.id for _, node in tree.walk() if before.get(node.id) != node.digest}
    assert "a.pdf#page-1" in changed
    assert not {"a.pdf#page-2", "a.pdf#page-3"} & changed


def test_a_text_is_taken_out_of_a_document_once(
    pdf: Make, extractor: Extractor, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked = []
    ask = Extractor._ask

    def counted(self: Extractor, kind: str, data: bytes, secrets: bool) -> tuple[Extracted, bool]:
        asked.append(kind)
        return ask(self, kind, data, secrets)

    monkeypatch.setattr(Extractor, "_ask", counted)
    data = pdf([[(12, "Words.")]])
    first = extractor.extracted("pdf", "1", data)
    assert extractor.extracted("pdf", "1", data) is first
    assert extractor.extracted("pdf", "1", bytes(bytearray(data))) is first
    other = Extractor(KeptTexts(tmp_path / "kept"))
    assert other.extracted("pdf", "1", bytes(bytearray(data))).lines == ["Words."]
    assert asked == ["pdf"]
    assert extractor.extracted("pdf", "2", data).lines == ["Words."]
    assert asked == ["pdf", "pdf"]


def test_a_process_that_ended_for_want_of_work_is_started_again(
    pdf: Make, extractor: Extractor, monkeypatch: pytest.MonkeyPatch
) -> None:
    hasty = "from metatree_memory_tools.documents._worker import main; main(idle_s=0.01)"
    monkeypatch.setattr(Extractor, "_main", hasty)
    extractor.reader.start().wait(30)
    monkeypatch.undo()
    assert extractor.extracted("pdf", "1", pdf([[(12, "One")]])).lines == ["One"]


def test_a_document_that_takes_too_long_ends_with_a_note_and_is_tried_again_later(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(
        Extractor,
        "_main",
        "import time, sys; sys.stdin.buffer.readline(); time.sleep(600)",
    )
    slow = Extractor(KeptTexts(tmp_path / "kept"), limit_s=0.2, grace_s=0.1)
    found = slow.extracted("pdf", "1", b"%PDF-1.7")
    assert "takes more than" in found.problem
    assert slow.reader.process is None
    assert not (tmp_path / "kept").exists()


def test_what_was_read_of_a_slow_document_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    said = Extracted(
        ["One."], problem="only the first 1 of 9 pages: the others would take too long"
    ).as_json()
    ask = "import sys; asked = sys.stdin.buffer; asked.readline(); asked.read(8)"
    monkeypatch.setattr(Extractor, "_main", f"{ask}; print({json.dumps(said)!r}, flush=True); asked.read()")
    slow = Extractor(KeptTexts(tmp_path / "kept"))
    assert slow.extracted("pdf", "1", b"%PDF-1.7").lines == ["One."]
    slow.close()
    monkeypatch.setattr(Extractor, "_main", "import os; os.abort()")
    again = Extractor(KeptTexts(tmp_path / "kept")).extracted("pdf", "1", b"%PDF-1.7")
    assert (again.lines, again.problem) == (said["lines"], said["problem"])


def test_a_document_that_ends_the_process_is_damaged_and_harms_no_other(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, pdf: Make
) -> None:
    extractor = Extractor(None)
    with monkeypatch.context() as patch:
        patch.setattr(Extractor, "_main", "import os, sys; sys.stdin.buffer.readline(); os.abort()")
        assert "ended the process" in extractor.extracted("pdf", "1", b"%PDF-1.7").problem
    assert extractor.extracted("pdf", "1", pdf([[(12, "Well.")]])).lines == ["Well."]
    extractor.close()


def test_kept_texts_make_room_and_survive_damage(tmp_path: Path) -> None:
    kept = KeptTexts(tmp_path / "kept", most_bytes=3_000)
    noise = random.Random(1)
    for number in range(9):
        kept.put(f"pdf-{number}", Extracted([f"{noise.random()}" for _ in range(60)]))
    files = sorted((tmp_path / "kept").iterdir())
    assert 1 <= len(files) < 9
    assert sum(file.stat().st_size for file in files) <= 3_000
    files[0].write_bytes(b"nonsense")
    assert kept.get(files[0].name) is None
    assert (tmp_path / "kept").stat().st_mode & 0o077 == 0


LOOP = [
    b"<< /Type /Catalog /Pages 2 0 R >>",
    b"<< /Type /Pages /Kids [3 0 R 2 0 R] /Count 4 >>",
    b"<< /Type /Pages /Kids [2 0 R] /Count 2 /Parent 2 0 R >>",
]
HUGE = [
    b"<< /Type /Catalog /Pages 2 0 R >>",
    b"<< /Type /Pages /Kids [3 0 R] /Count 90000 >>",
    b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] >>",
]


def test_every_bad_document_is_a_node_with_a_clear_note(
    pdf: Make, docx: Make, assemble: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = pdf([[(12, f"Page {number}")] for number in range(20)])
    source = tmp_path / "source"
    source.mkdir()
    bad = {
        "truncated.pdf": (good[: len(good) // 3], "damaged"),
        "garbage.pdf": (b"%PDF-1.7\n" + random.Random(2).randbytes(50_000), "damaged"),
        "empty.pdf": (b"", "damaged"),
        "locked.pdf": (encrypted(good), "encrypted"),
        "loop.pdf": (assemble(LOOP), ""),
        "huge.pdf": (assemble(HUGE), "damaged"),
        "bomb.docx": (bomb(), "zip bomb"),
        "text.docx": (b"hello", "damaged"),
        "deep.html": (b"<div>" * 50_000 + b"deep", "nested"),
        "line.html": (b"<p>" + b"word " * 5_000_000, "too large"),
        "broken.html": (b"<p>caf\xe9 \xff\xfe \x80</p>", None),
    }
    for name, (data, _) in bad.items():
        (source / name).write_bytes(data)
    with build_tree(source, out=tmp_path / "tree") as tree:
        for name, (_, said) in bad.items():
            node = tree.get(name)
            note = node.attributes.get("note", "")
            if said is None:
                assert not note and "caf\xe9" in tree.content(name)
            elif said:
                assert said in note, (name, note)
                assert said in node.description, (name, node.description)
        assert {"truncated.pdf", "locked.pdf", "bomb.docx"} <= {path for path, _ in tree.omissions()}
    with build_tree(source, out=tmp_path / "tree") as tree:
        assert tree.get("locked.pdf").attributes["note"]


@pytest.mark.parametrize("seed", range(30))
def test_a_pdf_with_broken_bytes_never_raises(seed: int, pdf: Make, shared_extractor: Extractor) -> None:
    noise = random.Random(seed)
    data = bytearray(pdf([[(12, f"Page {n}")] for n in range(5)], [(1, "A", 1), (2, "B", 2), (1, "C", 4)]))
    for _ in range(noise.randrange(1, 40)):
        data[noise.randrange(len(data))] = noise.randrange(256)
    found = shared_extractor.extracted("pdf", "1", bytes(data))
    assert all(isinstance(line, str) for line in found.lines)


def test_without_the_extra_a_pdf_says_how_to_have_its_text(
    pdf: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from metatree_memory_tools.documents import types

    monkeypatch.setattr(types, "_is_installed", lambda package: False)
    (tmp_path / "a.pdf").write_bytes(pdf([[(12, "Words.")]]))
    (tmp_path / "a.html").write_text("<h1>Title</h1><p>Text.")
    with build_tree(tmp_path) as tree:
        assert "pip install 'metatree-memory[docs]'" in tree.get("a.pdf").description
        assert not tree.get("a.pdf").has_content
        assert tree.content("a.html") == "<h1>Title</h1><p>Text."


def test_a_large_pdf_is_read_and_an_unchanged_one_is_not_read_again(
    pdf: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = pdf([[(12, "Large.")]]) + b"%" * 3_000_000
    (tmp_path / "large.pdf").write_bytes(data)
    with build_tree(tmp_path) as tree:
        assert tree.content("large.pdf") == "Large."
    os.utime(tmp_path / "large.pdf", (1_600_000_000, 1_600_000_000))
    build_tree(tmp_path).close()
    monkeypatch.setattr(_pool, "read_file", lambda *_: pytest.fail("it was read again"))
    with build_tree(tmp_path) as tree:
        assert not tree.stale()


def test_a_document_of_python_docx_is_read_as_python_docx_reads_it(tmp_path: Path) -> None:
    from docx import Document

    made = Document()
    made.core_properties.title = "Tea & co"
    made.add_heading("Tea", 1)
    made.add_paragraph("Grün, schwarz and 白茶 — all hot.")
    made.add_heading("Cups", 2)
    made.add_paragraph("small", style="List Bullet")
    table = made.add_table(rows=2, cols=2)
    for number, cell in enumerate(cell for row in table.rows for cell in row.cells):
        cell.text = f"cell {number}"
    made.add_heading("Milk", 1)
    made.save(str(tmp_path / "a.docx"))
    theirs = [paragraph.text for paragraph in Document(str(tmp_path / "a.docx")).paragraphs]
    with build_tree(tmp_path) as tree:
        assert tree.get("a.docx").attributes["title"] == "Tea & co"
        assert [node.title for node in tree.children("a.docx")] == ["Tea", "Milk"]
        text = "\n".join(tree.content(node) for _, node in tree.walk("a.docx") if node.has_content)
        assert all(paragraph in text or paragraph == "Milk" for paragraph in theirs)
        assert "cell 0 | cell 1\ncell 2 | cell 3" in text
