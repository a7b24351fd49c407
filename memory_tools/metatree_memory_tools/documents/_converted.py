"""Presentations, workbooks, books, notebooks and OpenDocument texts as text, by libraries that make Markdown of them.

markitdown makes Markdown of presentations, books and notebooks, odfdo of OpenDocument. markitdown's converters are
called one by one: its front class guesses formats by a model, looks for plug-ins and may fetch addresses, which no
document of strangers should have it do. They unpack each part as a whole, so that what says it is large is refused
before; a part that says less than it holds is read no further than it says (`zipfile`).

Lost: markitdown for workbooks too. It reads them by pandas (84 MB), which makes 7.0 of a 7 beside an empty cell, `NaN`
of the empty one, and a heading of the first row; openpyxl has the values as they are.
"""

from __future__ import annotations

import io
import re
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import IO, Any, Final

from metatree._util.secret_text import apart_elements
from metatree_memory_tools.documents._document_text import (
    MOST_CHARS,
    Extracted,
    Heading,
    PageStart,
    shaped,
    tidy,
)
from metatree_memory_tools.text.descriptions import cut_masked, shorten_masked
from metatree_memory_tools.text.markdown import headings_of

CONVERTED: Final = frozenset({"pptx", "xlsx", "epub", "odt", "notebook"})

_SLIDE = re.compile(r"\s*<!-- Slide number: \d+ -->\s*$")
_IMAGE = re.compile(r"!\[([^\]\n]{0,500})\]\([^)\n]{0,500}\)")
_TAG = re.compile(r"(<[^<>]{0,5000}>)")
_BLOCK_TAG = re.compile(
    r"</?(?:address|aside|audio|button|canvas|center|details|dialog|dir|embed|fieldset|figure|footer|form|header|hgroup"
    r"|iframe|img|input|label|legend|main|math|menu|meter|nav|object|optgroup|option|progress|search|select|summary|svg"
    r"|textarea|video)\b",
    re.IGNORECASE,
)
_EMPTY_BLOCK = re.compile(
    r"<(p|div|section|article|blockquote|pre|ul|ol|dl|table|h[1-6])\b[^<>]{0,5000}(?:/>|>\s{0,100}</\1\s{0,10}>)",
    re.IGNORECASE,
)
"""A new line, which the converter takes for nothing."""
_LINK = re.compile(r"\]\((https?://[^)\s]{1,500})\)")
_LINKED = re.compile(r"\]\([^\s<>]{1,10000}")
_QUOTED = re.compile(r"%(2[1-9A-F]|3[A-F]|40|5[B-F]|60|7[B-E])", re.IGNORECASE)
"""The punctuation of ASCII, percent-encoded."""
_FACT = re.compile(r"\*\*(Title|Authors|Description|Publisher|Language):\*\* (?!.*---- ?BEGIN )(.+)$")
"""One in which a private key begins stays with the lines of the key, so that these are masked."""
_MOST_BYTES = 200_000_000
"""A document that unpacks to more is not read."""
_MOST_LINKS = 1_000
_TITLE_CHARS = 120


def extract_converted(kind: str, data: bytes) -> Extracted:
    """Return the text of a document as Markdown, with its headings, and the slides of a presentation as its pages.

    Args:
        kind: one of `CONVERTED`.
        data: the file.

    Raises:
        Exception: whatever the libraries raise for a damaged file.
    """
    if kind != "notebook" and (size := _unpacked_bytes(data)) > _MOST_BYTES:
        return Extracted(problem=f"refused: it unpacks to {size / 1e6:,.0f} MB, as a zip bomb does")
    text = _CONVERT[kind](data) if kind in _CONVERT else _by_markitdown(kind, data)
    result = Extracted()
    if len(text) > MOST_CHARS:
        text = cut_masked(text, MOST_CHARS)
        result.problem = "only the beginning: there is too much text"
    result.lines = list(_lines(kind, text, result))
    while result.lines and not result.lines[-1]:
        result.lines.pop()
    for level, title, line in headings_of(result.lines):
        result.headings.append(Heading(level, shorten_masked(tidy(title), _TITLE_CHARS), line))
    result.links = list(dict.fromkeys(_LINK.findall(text)))[:_MOST_LINKS]
    return result


def _unpacked_bytes(data: bytes) -> int:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return sum(info.file_size for info in archive.infolist())


@contextmanager
def _without_magika() -> Iterator[None]:
    """Give markitdown's front class, which is not used, an empty module for its model of formats.

    That model loads onnxruntime, which sends telemetry some seconds later.
    """
    absent = "magika" not in sys.modules
    if absent:
        sys.modules["magika"] = ModuleType("magika")
    try:
        yield
    finally:
        if absent:
            del sys.modules["magika"]


def _by_markitdown(kind: str, data: bytes) -> str:
    with _without_magika():
        from markitdown import StreamInfo, converters

    by_kind = {
        "pptx": converters.PptxConverter,
        "epub": converters.EpubConverter,
        "notebook": converters.IpynbConverter,
    }
    suffix = ".ipynb" if kind == "notebook" else f".{kind}"
    info = StreamInfo(extension=suffix, charset="utf-8")
    converter: Any = by_kind[kind]()
    if kind == "epub":
        converter._html_converter = _Chapters(converter._html_converter)
    text = str(converter.convert(io.BytesIO(data), info).markdown)
    return _LINKED.sub(_unquoted, text) if kind == "epub" else text


def _unquoted(link: re.Match[str]) -> str:
    """Return a link as the book has it: the converter writes `=` as `%3D`, and behind a letter no key is known."""
    return _QUOTED.sub(lambda sign: chr(int(sign[1], 16)), link[0])


class _Chapters:
    """Converts the chapters of a book as the converter given does, with a blank between what stands apart in them.

    That converter puts nothing between blocks of HTML 5, in the place of an empty block, and between a key and the
    element beside it.
    """

    def __init__(self, converter: Any) -> None:
        self._converter = converter

    def convert(self, stream: IO[bytes], info: Any, **options: Any) -> Any:
        page = stream.read().decode("latin-1")  # whatever it is in: tags and keys are ASCII
        pieces = _TAG.split(_EMPTY_BLOCK.sub(r"<br/>\g<0>", page))
        pieces[::2] = apart_elements(pieces[::2])
        page = "".join(f" {piece}" if _BLOCK_TAG.match(piece) else piece for piece in pieces)
        return self._converter.convert(io.BytesIO(page.encode("latin-1")), info, **options)


def _open_document(data: bytes) -> str:
    from odfdo import Document

    return str(Document(io.BytesIO(data)).to_markdown())


def _workbook(data: bytes) -> str:
    from openpyxl import load_workbook

    book = load_workbook(io.BytesIO(data), read_only=True, data_only=True)
    lines: list[str] = []
    chars = 0
    for sheet in book.worksheets:
        lines += ["", f"## {' '.join(sheet.title.split())}"]
        for row in sheet.iter_rows(values_only=True):
            cells = ["" if value is None else " ".join(str(value).split()) for value in row]
            while cells and not cells[-1]:
                cells.pop()
            if cells:
                lines.append(f"| {' | '.join(cells)} |")
                chars += len(lines[-1])
            if chars > MOST_CHARS:
                return "\n".join(lines)
    return "\n".join(lines)


_CONVERT: Final[dict[str, Callable[[bytes], str]]] = {"odt": _open_document, "xlsx": _workbook}


def _name_of_image(image: re.Match[str]) -> str:
    """Return the name of an image, apart from what stands directly beside it."""
    before, after = (
        image.string[max(0, image.start() - 1) : image.start()],
        image.string[image.end() : image.end() + 1],
    )
    return f"{' ' * bool(before.strip())}{image[1]}{' ' * bool(after.strip())}"


def _lines(kind: str, text: str, result: Extracted) -> Iterator[str]:
    """Yield the lines of a text; what they say of pages, title and author goes into the result."""
    count, is_head = 0, kind == "epub"
    for row in text.split("\n"):
        if kind == "pptx" and _SLIDE.match(row):
            result.pages.append(PageStart(count + 1))
            continue
        if is_head and (fact := _FACT.match(row)):
            name, value = fact[1].lower(), tidy(fact[2])
            if name == "title":
                result.title = shorten_masked(value, _TITLE_CHARS)
            else:
                result.facts["author" if name == "authors" else name] = shorten_masked(value, 300)
            continue
        line = shaped(_IMAGE.sub(_name_of_image, row))
        if kind == "pptx" and line == "### Notes:":
            line = "Notes:"
        if kind == "odt" and line.startswith("|"):
            line = tidy(line)  # its columns are filled up to one width
        if not line and not count:
            continue
        is_head = is_head and not line
        count += 1
        yield line
