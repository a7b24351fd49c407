"""The memory types of documents."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING
from weakref import ref

from metatree._util.process import installed_spec
from metatree.node import Source
from metatree.trees.source_types import Outline, SourceFile
from metatree.trees.text import cut_lines
from metatree_memory_tools.reading.own_process import SMALL_BYTES
from metatree_memory_tools.text.document_place import SLIDES
from metatree_memory_tools.text.text_files import TextFiles

if TYPE_CHECKING:
    from metatree_memory_tools.documents._document_text import Extracted


class _Document(TextFiles):
    """A document whose text is taken out of its bytes; nodes name ranges of the lines of that text.

    Its source type is its name, since the core cannot read it.
    """

    name: str
    version = "15"
    what: str
    suffixes: tuple[str, ...]
    max_file_bytes: int
    """A larger file becomes a node without content; documents are larger than the text in them."""
    needs = ""
    """The package that reads it; empty when the standard library does."""
    extra = "docs"
    """The extra that brings it."""
    _latest: tuple[ref[SourceFile], Extracted] | None = None

    def outline(self, file: SourceFile) -> Outline:
        """Return the sections and pages of a document; one that cannot be read is a node that says why."""
        if self.needs and not _is_installed(self.needs):
            note = f"not read: pip install 'metatree-memory[{self.extra}]' to have its text"
            return Outline(
                description=f"{self.what} ({note}).", attributes={"note": note}, problem=note, empty=True
            )
        from metatree_memory_tools.documents._outline import outline_of

        text = self.text(file)
        outline = outline_of(text, file.name, self.what)
        return replace(
            outline,
            attributes={"format": self.name, **outline.attributes},
            references=tuple(("link", link) for link in text.links),
            empty=not any(text.lines),
        )

    def content(self, file: SourceFile, source: Source) -> str:
        """Return the lines of the text that a node names, without empty ones around them."""
        lines = self.text(file).lines
        text = "\n".join(lines) if source.start_line is None else cut_lines(lines, source)
        return text.strip("\n")

    def text(self, file: SourceFile) -> Extracted:
        """Return the text of a document, which is taken out of its bytes once."""
        # It is asked for once for each of its nodes: hashing the bytes would cost the most, and keeping them as much.
        latest = self._latest
        if latest is None or latest[0]() is not file:
            from metatree_memory_tools.documents._extract import extracted

            self._latest = None
            text = extracted(self.name, self.version, file.data, secrets=file.secrets)
            latest = self._latest = (ref(file), text)
        return latest[1]


class Pdf(_Document):
    """PDF documents, by their bookmarks, else by the size of letters, else by pages."""

    name = source_type = "pdf"
    what = "A PDF document"
    max_file_bytes = 200_000_000
    needs = "pypdfium2"
    binary = True

    def recognises(self, path: str, head: bytes) -> bool:
        """Whether the name ends in .pdf, or the file begins as a PDF does."""
        return path.lower().endswith(".pdf") or head.startswith(b"%PDF-")


class Docx(_Document):
    """Word documents, by the styles of their headings."""

    name = source_type = "docx"
    what = "A Word document"
    max_file_bytes = 100_000_000
    binary = True

    def recognises(self, path: str, head: bytes) -> bool:
        """Whether the name ends as that of a Word document does."""
        return path.lower().endswith((".docx", ".docm", ".dotx"))


class Html(_Document):
    """HTML, by its headings; plain text as long as selectolax is not installed."""

    name = source_type = "html"
    what = "A web page"
    max_file_bytes = 20_000_000
    needs = "selectolax"

    def recognises(self, path: str, head: bytes) -> bool:
        """Whether the name ends as that of a web page does, and it can be read as one."""
        return path.lower().endswith((".html", ".htm", ".xhtml")) and _is_installed(self.needs)

    def encoded(self, path: str, head: bytes) -> bool:
        """Whether a key may stand in it in pieces, with marks between them, as in all pages."""
        return True


class _Converted(_Document):
    """A document that a library makes Markdown of."""

    max_file_bytes = 100_000_000
    needs = "markitdown"
    extra = "office"
    binary = True

    def recognises(self, path: str, head: bytes) -> bool:
        """Whether the name ends as such a document's does."""
        return path.lower().endswith(self.suffixes)


class Presentation(_Converted):
    """Presentations (pptx), by their slides."""

    name = source_type = "pptx"
    what = "A presentation"
    suffixes = SLIDES


class Workbook(_Converted):
    """Workbooks (xlsx), by their sheets."""

    name = source_type = "xlsx"
    what = "A workbook"
    suffixes = (".xlsx", ".xlsm")
    needs = "openpyxl"


class Book(_Converted):
    """Electronic books (EPUB), by the headings of their chapters."""

    name = source_type = "epub"
    what = "An electronic book"
    suffixes = (".epub",)


class OpenDocumentText(_Converted):
    """OpenDocument texts (odt), by their headings."""

    name = source_type = "odt"
    what = "An OpenDocument text"
    suffixes = (".odt",)
    needs = "odfdo"


class Notebook(_Converted):
    """Jupyter notebooks, by the headings of their text; JSON as plain text as long as markitdown is not installed."""

    name = source_type = "notebook"
    what = "A notebook"
    suffixes = (".ipynb",)
    binary = False

    def encoded(self, path: str, head: bytes) -> bool:
        """Return True: its texts stand in JSON, beside pictures that are larger than all of them."""
        return True

    def recognises(self, path: str, head: bytes) -> bool:
        """Whether the name ends as a notebook's does, and it can be read as one."""
        return super().recognises(path, head) and _is_installed(self.needs)


class ManualPage(_Document):
    """Manual pages (roff with man or mdoc), by their sections, as the text that `man` shows."""

    name = source_type = "man"
    version = "3"
    what = "A manual page"
    _page: tuple[bytes, bool, Extracted] | None = None

    def recognises(self, path: str, head: bytes) -> bool:
        """Whether the name ends as that of a manual page does, and it begins as one."""
        from metatree_memory_tools.documents._man import is_manual

        return is_manual(path, head)

    def text(self, file: SourceFile) -> Extracted:
        """Return the text of a page, read once for all of its nodes in a row; a long one in another process."""
        if len(file.data) > SMALL_BYTES:
            return super().text(file)
        page = self._page
        if page is None or page[0] is not file.data or page[1] != file.secrets:
            from metatree_memory_tools.documents._man import extract_man

            text = extract_man(file.text)
            page = (file.data, file.secrets, text if file.secrets else text.without_secrets())
            self._page = page
        return page[2]


class ReStructuredText(TextFiles):
    """reStructuredText, by its section titles."""

    name = "rst"
    version = "3"

    def recognises(self, path: str, head: bytes) -> bool:
        """Whether the name ends as reStructuredText does."""
        return path.lower().endswith((".rst", ".rest"))

    def outline(self, file: SourceFile) -> Outline:
        """Return the sections of a file, each with the lines up to the next one."""
        from metatree_memory_tools.documents._outline import outline_of
        from metatree_memory_tools.documents._rst import extract_rst, prose

        outline = outline_of(extract_rst(file.lines), file.name, "An empty file.", prose)
        return replace(outline, attributes={"language": "restructuredtext", **outline.attributes})


@cache
def _is_installed(package: str) -> bool:
    return installed_spec(package) is not None
