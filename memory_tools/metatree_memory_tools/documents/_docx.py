"""Word documents (docx) as text: paragraphs, headings by their styles, tables row by row, notes at the end.

A docx is a zip archive of XML (ECMA-376). It is read with the standard library: `zipfile`, with a bound on what comes
out of each member whatever the archive says of its size, and expat, which is told to refuse document types, so that
no entity is ever expanded.

Lost: python-docx, which loads all of a package, pictures included, before it can be asked how large it is, and brings
lxml; it is the second opinion in a test.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from xml.parsers import expat

from metatree._util.secret_text import joined_elements
from metatree._util.zips import open_member
from metatree_memory_tools.documents._document_text import MOST_CHARS, Extracted, Heading, tidy
from metatree_memory_tools.text.descriptions import cut_masked, shorten_masked

MOST_MEMBER_BYTES = 200_000_000
"""A part of a document that unpacks to more is not read."""

_MOST_RATIO = 200
"""A part that is packed tighter than text and markup can be is no text."""

_SMALL_MEMBER = 5_000_000
_MOST_DEPTH = 500
_TITLE_CHARS = 120
_MOST_SAID = 20_000
"""What a document says of itself in more characters is no title and no name."""
_HEADING_NAME = re.compile(r"heading\s*([1-9])$", re.IGNORECASE)


class _Refused(Exception):
    """The document is built to do harm, or too large; the message says which."""


def extract_docx(data: bytes) -> Extracted:
    """Return the text of a Word document; never raises for what the bytes are."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return _extract(archive)
    except _Refused as exc:
        return Extracted(problem=str(exc))
    except (zipfile.BadZipFile, EOFError, OSError, NotImplementedError, RuntimeError, ValueError) as exc:
        if data.startswith(b"\xd0\xcf\x11\xe0"):
            return Extracted(problem="encrypted, or of the format before docx: it cannot be read")
        return Extracted(problem=f"damaged: it cannot be read as a docx ({type(exc).__name__})")


def _extract(archive: zipfile.ZipFile) -> Extracted:
    names = set(archive.namelist())
    body = next((name for name in ("word/document.xml", "word/document2.xml") if name in names), "")
    if not body:
        return Extracted(problem="damaged: there is no word/document.xml in it")
    styles, links = _Styles(), _Links()
    if "word/styles.xml" in names:
        _parse(archive, "word/styles.xml", styles)
    relations = f"word/_rels/{body.removeprefix('word/')}.rels"
    if relations in names:
        _parse(archive, relations, links)
    result = Extracted()
    text = _Text(result, styles.levels(), links.targets)
    problem = _parse(archive, body, text)
    for name, title in (("word/footnotes.xml", "Footnotes"), ("word/endnotes.xml", "Endnotes")):
        if name in names:
            text.notes(title)
            _parse(archive, name, text)
            text.end_notes()
    result.problem = problem or result.problem
    if "docProps/core.xml" in names:
        core = _Core()
        _parse(archive, "docProps/core.xml", core)
        result.title = shorten_masked(core.said("title"), _TITLE_CHARS)
        for name, key in (("creator", "author"), ("subject", "subject"), ("description", "description")):
            if value := core.said(name):
                result.facts[key] = shorten_masked(value, 300)
    result.title = result.title or text.title
    result.links = list(dict.fromkeys(text.links))[:1_000]
    return result


def _chunks(archive: zipfile.ZipFile, name: str) -> Iterator[bytes]:
    """Yield the bytes of a member, and stop one that is a bomb, whatever its header says."""
    info = archive.getinfo(name)
    seen = 0
    with open_member(archive, info) as member:
        while chunk := member.read(1 << 16):
            seen += len(chunk)
            if seen > MOST_MEMBER_BYTES or seen > max(_SMALL_MEMBER, _MOST_RATIO * info.compress_size):
                raise _Refused(
                    f"refused: {name} in it unpacks to more than {seen / 1e6:.0f} MB, as a zip bomb does"
                )
            yield chunk


def _parse(archive: zipfile.ZipFile, name: str, handler: Any) -> str:
    """Hand a member's elements to a handler; return what was wrong with it, in a few words."""
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    depth = 0

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > _MOST_DEPTH:
            raise _Refused(f"refused: {name} in it is nested more than {_MOST_DEPTH} deep")
        handler.start(_local(tag), {_local(key): value for key, value in attributes.items()})

    def end(tag: str) -> None:
        nonlocal depth
        depth -= 1
        handler.end(_local(tag))

    def refuse(*_: Any) -> None:
        raise _Refused(f"refused: {name} in it declares a document type, as an XML bomb does")

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = handler.text
    parser.StartDoctypeDeclHandler = refuse
    try:
        for chunk in _chunks(archive, name):
            parser.Parse(chunk, False)
        parser.Parse(b"", True)
    except expat.ExpatError as exc:
        return f"damaged: {name} in it is no valid XML (line {exc.lineno})"
    except (zipfile.BadZipFile, EOFError) as exc:
        return f"damaged: {name} in it cannot be unpacked ({exc})"
    except _TooMuch:
        return "only the beginning: there is too much text"
    return ""


class _TooMuch(Exception):
    pass


def _local(name: str) -> str:
    return name.rpartition(" ")[2]


class _Links:
    """The targets of hyperlinks, by the ids that the text has for them."""

    def __init__(self) -> None:
        self.targets: dict[str, str] = {}

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "Relationship" and attributes.get("Type", "").endswith("/hyperlink"):
            self.targets[attributes.get("Id", "")] = cut_masked(attributes.get("Target", ""), 500)

    def end(self, tag: str) -> None:
        pass

    def text(self, text: str) -> None:
        pass


class _Core:
    """What the document says of itself."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self._tag = ""

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self._tag = tag

    def end(self, tag: str) -> None:
        self._tag = ""

    def text(self, text: str) -> None:
        said = self.values.get(self._tag, "")
        if self._tag and len(said) <= _MOST_SAID:
            self.values[self._tag] = said + text

    def said(self, name: str) -> str:
        """Return what stands in an element, '' where that has no end: what is cut may be half of a key."""
        value = self.values.get(name, "")
        return "" if len(value) > _MOST_SAID else tidy(value)


class _Styles:
    """Which paragraph styles are headings, and of which level; level 0 is a title."""

    def __init__(self) -> None:
        self._own: dict[str, int] = {}
        self._based: dict[str, str] = {}
        self._style = ""

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "style":
            self._style = attributes.get("styleId", "") if attributes.get("type") == "paragraph" else ""
        elif self._style and tag == "name":
            name = attributes.get("val", "")
            if match := _HEADING_NAME.match(name):
                self._own[self._style] = int(match[1])
            elif name.lower() == "title":
                self._own[self._style] = 0
        elif self._style and tag == "basedOn":
            self._based[self._style] = attributes.get("val", "")
        elif self._style and tag == "outlineLvl":
            level = _level(attributes)
            if level:
                self._own.setdefault(self._style, level)

    def end(self, tag: str) -> None:
        if tag == "style":
            self._style = ""

    def text(self, text: str) -> None:
        pass

    def levels(self) -> dict[str, int]:
        """Return the level of each style that has one, of its own or from the style that it is based on."""
        levels = {}
        for style in {*self._own, *self._based}:
            at, seen = style, set()
            while at and at not in self._own and at not in seen:
                seen.add(at)
                at = self._based.get(at, "")
            if at in self._own and not (at != style and self._own[at] == 0):
                levels[style] = self._own[at]
        return levels


def _level(attributes: dict[str, str]) -> int:
    value = attributes.get("val", "")
    return int(value) + 1 if value in tuple("012345678") else 0


@dataclass
class _Paragraph:
    words: list[str] = field(default_factory=list)
    level: int | None = None
    is_item: bool = False


class _Text:
    """The paragraphs and tables of the document, in order, as lines."""

    def __init__(self, result: Extracted, levels: dict[str, int], targets: dict[str, str]) -> None:
        self.result = result
        self.levels = levels
        self.targets = targets
        self.links: list[str] = []
        self.title = ""
        self._open: list[_Paragraph] = []
        self._rows: list[list[list[str]]] = []
        """Of each table that is open: the cells of the row at hand, each a list of paragraphs."""
        self._skip = 0
        """How many elements are open whose text is not seen: deleted text, the second form of a drawing."""
        self._in_text = False
        self._chars = 0
        self._notes = ""

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if self._skip or tag in (
            "del",
            "moveFrom",
            "Fallback",
            "delText",
            "instrText",
            "rPrChange",
            "pPrChange",
        ):
            self._skip += 1
            return
        if tag == "p":
            self._open.append(_Paragraph())
        elif tag == "tbl":
            self._rows.append([])
        elif tag == "tr" and self._rows:
            self._rows[-1] = []
        elif tag == "tc" and self._rows:
            self._rows[-1].append([])
        elif tag == "hyperlink" and attributes.get("id") in self.targets:
            self.links.append(self.targets[attributes["id"]])
        elif self._open:
            self._in_paragraph(tag, attributes)

    def _in_paragraph(self, tag: str, attributes: dict[str, str]) -> None:
        paragraph = self._open[-1]
        if tag == "pStyle":
            paragraph.level = self.levels.get(attributes.get("val", ""), paragraph.level)
        elif tag == "outlineLvl":
            paragraph.level = _level(attributes) or paragraph.level
        elif tag == "numPr":
            paragraph.is_item = True
        elif tag == "t":
            self._in_text = True
        elif tag in ("tab", "ptab"):
            paragraph.words.append("\t")
        elif tag in ("br", "cr"):
            paragraph.words.append("\n")
        elif tag == "noBreakHyphen":
            paragraph.words.append("-")
        elif tag == "docPr":
            paragraph.words.append(f" {attributes.get('descr') or ''} ")
        elif tag in ("sym", "pict", "object"):  # a sign of a font of signs, or a picture
            paragraph.words.append(" ")

    def end(self, tag: str) -> None:
        if self._skip:
            self._skip -= 1
        elif tag == "t":
            self._in_text = False
        elif tag == "p" and self._open:
            self._paragraph(self._open.pop())
        elif tag == "tr" and self._rows:
            self._row(self._rows[-1])
        elif tag == "tbl" and self._rows:
            self._rows.pop()
            if not self._rows:
                self._blank()

    def text(self, text: str) -> None:
        if self._in_text and self._open and not self._skip:
            self._open[-1].words.append(text)

    def notes(self, title: str) -> None:
        """Have the paragraphs that follow under a heading of their own, if there are any."""
        self._notes = title

    def end_notes(self) -> None:
        """End them."""
        self._notes = ""

    def _paragraph(self, paragraph: _Paragraph) -> None:
        lines = [line for row in joined_elements(paragraph.words).split("\n") if (line := tidy(row))]
        if not lines:
            return
        if self._rows and self._rows[-1]:
            self._rows[-1][-1] += lines
            return
        if self._notes:
            self.result.headings.append(Heading(1, self._notes, len(self.result.lines) + 1))
            self._add([self._notes])
            self._notes = ""
        if paragraph.level == 0:
            self.title = self.title or shorten_masked(" ".join(lines), _TITLE_CHARS)
        elif paragraph.level is not None:
            self._blank()
            title = shorten_masked(" ".join(lines), _TITLE_CHARS)
            self.result.headings.append(Heading(paragraph.level, title, len(self.result.lines) + 1))
            lines = [" ".join(lines)]
        elif paragraph.is_item:
            lines[0] = f"- {lines[0]}"
        self._add(lines)
        if not paragraph.is_item:
            self._blank()

    def _row(self, cells: list[list[str]]) -> None:
        """Add a row as one line; one of a table in a table as text of the outer cell."""
        line = " | ".join(" ".join(cell) for cell in cells)
        self._rows[-1] = []
        if not line.strip(" |"):
            return
        if len(self._rows) > 1 and self._rows[-2]:
            self._rows[-2][-1].append(line)
        else:
            self._add([line])

    def _add(self, lines: list[str]) -> None:
        self.result.lines += lines
        self._chars += sum(map(len, lines))
        if self._chars > MOST_CHARS:
            raise _TooMuch

    def _blank(self) -> None:
        if self.result.lines and self.result.lines[-1]:
            self.result.lines.append("")
