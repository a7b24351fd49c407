"""Manuals that others wrote: PDFs with and without bookmarks, HTML."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from metatree_memory_tools import build_tree
from metatree_memory_tools.documents._document_text import Extracted
from metatree_memory_tools.documents.types import Html, Pdf

from metatree import Node, Tree, search
from metatree.trees.source_types import SourceFile

pytestmark = pytest.mark.real


def lies_in_one_leaf(tree: Tree, file: Node, text: Extracted) -> None:
    """Check that every line of a document lies in exactly one leaf, and each leaf on the pages that it says."""
    titles = {n for heading in text.headings for n in range(heading.line, heading.line + heading.span)}
    seen: dict[int, str] = {}
    for _, node in tree.walk(file):
        if node.source is None:
            continue
        first, last = node.source.start_line or 1, node.source.end_line or len(text.lines)
        for number in range(first, last + 1):
            assert number not in seen, (node.id, seen[number], number)
            seen[number] = node.id
        if text.pages and node.kind != "file":
            pages = (node.attributes["first_page"], node.attributes["last_page"])
            assert pages == (text.page_of(first), text.page_of(last)), node.id
        assert tree.content(node) == "\n".join(text.lines[first - 1 : last]).strip("\n")
    needed = {number for number, line in enumerate(text.lines, start=1) if line.strip()}
    assert needed - titles <= seen.keys(), file.id


@pytest.mark.parametrize(
    ("package", "name", "pages", "section"),
    [
        ("bash-doc", "bashref.pdf", 150, "bashref.pdf#readline-init-file-syntax"),
        ("bash-doc", "bash.pdf", 50, "bash.pdf#pages-1-10"),
        ("gnuplot-doc", "gnuplot.pdf", 200, "gnuplot.pdf#seeking-assistance"),
        ("octave-doc", "octave.pdf", 900, "octave.pdf#preface"),
        ("debmake-doc", "debmake-doc.ja.pdf", 100, "debmake-doc.ja.pdf#overview"),
    ],
)
def test_a_manual_is_a_tree(
    package: str, name: str, pages: int, section: str, real_files: Path, tmp_path: Path
) -> None:
    path = next((real_files / package).rglob(name))
    with build_tree(path, out=tmp_path / "tree") as tree:
        file = tree.get(name)
        assert file.attributes["pages"] > pages
        assert "note" not in file.attributes
        assert section in tree
        lies_in_one_leaf(tree, file, Pdf().text(SourceFile(name, path.read_bytes())))


def test_a_question_is_answered_from_its_page(real_files: Path, tmp_path: Path) -> None:
    path = next((real_files / "bash-doc").rglob("bashref.pdf"))
    with build_tree(path, out=tmp_path / "tree") as tree:
        result = search(["What does the readline variable bell-style control?"], tree=tree)
        assert "ring the terminal bell" in " ".join((result.answer or "").split())
        best = tree.get(result.answers[0].sources[0].node)
        assert "bell-style" in tree.content(best)
        assert best.attributes["first_page"] > 100


def test_pages_of_html_manuals_are_trees(real_files: Path, tmp_path: Path) -> None:
    manual = real_files / "octave-doc/usr/share/doc/octave/octave.html"
    (source := tmp_path / "manual").mkdir()
    for page in [
        *manual.glob("[A-F]*.html"),
        manual / "index.html",
    ]:  # five in six pages are anchors of the index
        shutil.copy(page, source)
    with build_tree(source, out=tmp_path / "tree") as tree:
        files = [node for _, node in tree.walk() if node.kind == "file" and node.id.endswith(".html")]
        assert len(files) > 100
        for file in files[::10]:
            lies_in_one_leaf(tree, file, Html().text(SourceFile(file.id, (source / file.id).read_bytes())))
        assert sum(len(tree.links(file, "links")) for file in files) > len(files)


def test_a_damaged_manual_says_so(real_files: Path, tmp_path: Path) -> None:
    data = next((real_files / "gnuplot-doc").rglob("gnuplot.pdf")).read_bytes()
    (tmp_path / "cut.pdf").write_bytes(data[: len(data) // 2])
    with build_tree(tmp_path / "cut.pdf", out=tmp_path / "tree") as tree:
        node = tree.get("cut.pdf")
        assert node.attributes.get("note") or node.attributes["pages"] > 0
