"""PDF documents as text, by pypdfium2: pages, bookmarks, and, where there are none, headings by the size of letters.

PDFium reads a page in a few milliseconds. It is native code on files of strangers, so `extracting` runs this module
in a process of its own; what can be bounded is bounded here, so that a part of a document is better than none.

pypdf takes 20 to 80 times as long for the same text (a manual of 196 pages: 10.7 s of CPU against 0.34; of 1,158
pages: 132 against 1.6) and is no more tolerant; PDFium reads bookmarks and sizes of letters too.
"""

from __future__ import annotations

import ctypes
import re
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

from metatree_memory_tools.documents._document_text import MOST_CHARS, Extracted, Heading, PageStart, tidy
from metatree_memory_tools.text.descriptions import shorten_masked

MOST_PAGES = 20_000
"""Later pages are left out, with a note."""

_MOST_BOOKMARKS = 20_000
_MOST_BAD_PAGES = 50
"""So many pages in a row that cannot be loaded are the end of the document, whatever its count says."""

_PASSWORD = 4
_LARGER = 1.12
"""A line whose letters are that much larger than those of the text is a heading."""

_HEADING_CHARS = 120
_ROW_CHARS = 10_000
_BETWEEN = (
    r"(?:\s|(?<=[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff])(?=[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff])|$)"
)
_PART_OF_ROW = re.compile(rf".{{1,{_ROW_CHARS - 1}}}{_BETWEEN}|.+?{_BETWEEN}", re.DOTALL)
"""As much as fits, up to a blank or between two signs of Chinese and the like; where there is none, up to the next."""
_NO_FACT = re.compile(r"\(?(?:unspecified|anonymous|unknown)\)?", re.IGNORECASE)
"""What programs write where nobody said anything."""
_NO_TITLE = re.compile(
    r"^(untitled.*|\(?null\)?|microsoft (word|powerpoint|excel).*"
    r"|.*\.(docx?|dvi|tex|eps|ps|pptx?|xlsx?|pdf|indd|qxd|fm)\)?)$",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"(?:(?:chapter|section|appendix|part)\s+)?(?:[a-z]?\d+(?:\.\d+)*|[a-z](?:\.\d+)*|[ivxlc]+)[.:)]*\s+",
    re.IGNORECASE,
)


def extract_pdf(data: bytes, limit_s: float = 60.0) -> Extracted:
    """Return the text of a PDF by pages; never raises for what the bytes are.

    Args:
        data: the file.
        limit_s: seconds after which the remaining pages are left out.
    """
    import pypdfium2 as pdfium

    try:
        document = pdfium.PdfDocument(data)
    except pdfium.PdfiumError as exc:
        # Not every error of pypdfium2 has a code.
        if getattr(exc, "err_code", None) == _PASSWORD:
            return Extracted(problem="encrypted: it cannot be read without its password")
        return Extracted(problem="damaged: it cannot be read as a PDF")
    try:
        return _PdfReader(document, time.monotonic() + limit_s).run()
    finally:
        document.close()


class _PdfReader:
    """One document while it is read."""

    def __init__(self, document: Any, until: float) -> None:
        self.document = document
        self.until = until
        self.result = Extracted()
        self.sizes: dict[int, float] = {}
        """Size of the letters of a line, where it was looked at."""

    def run(self) -> Extracted:
        result = self.result
        metadata = self.document.get_metadata_dict(skip_empty=True)
        for name, key in (("Author", "author"), ("Subject", "subject"), ("Keywords", "keywords")):
            text = shorten_masked(tidy(metadata.get(name, "")), 200)
            if text and not _NO_FACT.fullmatch(text):
                result.facts[key] = text
        bookmarks = self._bookmarks()
        self._pages(with_sizes=len(bookmarks) < 2)
        # Of a page that was too much, sizes are known and no lines.
        self.sizes = {line: size for line, size in self.sizes.items() if line < len(result.lines)}
        result.headings = self._placed(bookmarks) if len(bookmarks) > 1 else self._large_lines()
        title = tidy(metadata.get("Title", ""))
        result.title = "" if _NO_TITLE.match(title) else shorten_masked(title, _HEADING_CHARS)
        if not result.title:
            result.title = self._title_on_first_page()
        return result

    def _pages(self, *, with_sizes: bool) -> None:
        result, chars, bad = self.result, 0, 0
        count = len(self.document)
        for index in range(min(count, MOST_PAGES)):
            if time.monotonic() > self.until:
                result.problem = f"only the first {index} of {count} pages: the others would take too long"
                return
            page = PageStart(len(result.lines) + 1, self._label(index))
            try:
                lines = self._page(index, with_sizes=with_sizes or index == 0)
                bad = 0
            except Exception:  # whatever a page holds, the next one may be read
                lines, bad = [], bad + 1
                result.problem = result.problem or f"damaged: page {index + 1} cannot be read"
                if bad >= _MOST_BAD_PAGES:
                    del result.pages[index - bad + 1 :]
                    result.problem = (
                        f"damaged: it says that it has {count} pages, and {len(result.pages)} can be read"
                    )
                    return
            chars += sum(map(len, lines))
            if chars > MOST_CHARS:
                result.problem = f"only the first {index} of {count} pages: there is too much text"
                return
            result.pages.append(page)
            result.lines += lines
        if count > MOST_PAGES:
            result.problem = f"only the first {MOST_PAGES} of {count} pages"

    def _label(self, index: int) -> str:
        try:
            label = tidy(self.document.get_page_label(index))
        except Exception:  # a label is an ornament
            return ""
        return "" if label == str(index + 1) else shorten_masked(label, 20)

    def _page(self, index: int, *, with_sizes: bool) -> list[str]:
        page = self.document[index]
        try:
            text = page.get_textpage()
            try:
                raw = text.get_text_range()
                lines = []
                at = 0
                for row in raw.split("\n"):
                    for part in _wrapped(row):
                        line = tidy(part)
                        if line:
                            lines.append(line)
                            if with_sizes and len(line) <= _HEADING_CHARS:
                                size = _size(text, raw, at, part)
                                if size:
                                    self.sizes[len(self.result.lines) + len(lines)] = size
                            elif with_sizes:
                                self.sizes[len(self.result.lines) + len(lines)] = 0.0
                        at += len(part)
                    at += 1
                return lines
            finally:
                text.close()
        finally:
            page.close()

    def _bookmarks(self) -> list[tuple[int, str, int]]:
        """Return (level from 1, title, page from 1) of the bookmarks that lead to a page."""
        bookmarks = []
        try:
            for bookmark in self.document.get_toc(max_depth=12):
                title = shorten_masked(tidy(bookmark.get_title() or ""), _HEADING_CHARS)
                target = bookmark.get_dest()
                index = None if target is None else target.get_index()
                if title and index is not None and index >= 0:
                    bookmarks.append((bookmark.level + 1, title, index + 1))
                if len(bookmarks) >= _MOST_BOOKMARKS or time.monotonic() > self.until:
                    break
        except Exception:  # damaged bookmarks: those before are of use, and the pages are all there
            pass
        return bookmarks

    def _placed(self, bookmarks: Sequence[tuple[int, str, int]]) -> list[Heading]:
        """Return bookmarks as headings at the lines that say their titles, else where their pages begin."""
        result = self.result
        headings: list[Heading] = []
        for level, title, page in bookmarks:
            if page > len(result.pages):
                continue
            first, last = result.page_lines(page)
            after = headings[-1].line if headings else 0
            line = _line_of(title, result.lines, max(first, after + 1), last) or first
            # Bookmarks need not be in the order of the text; sections are.
            line = max(line, after)
            span = 1 + (line < last and not any(map(str.isalpha, result.lines[line - 1])))
            headings.append(Heading(level, title, line, span))
        return headings

    def _large_lines(self) -> list[Heading]:
        """Return the lines in larger letters than most of the text, by up to three sizes."""
        lines, sizes = self.result.lines, self.sizes
        weights: Counter[float] = Counter()
        for line, size in sizes.items():
            weights[round(size, 1)] += len(lines[line - 1])
        weights.pop(0.0, None)
        if not weights or len(self.result.pages) < 2:
            return []
        body = weights.most_common(1)[0][0]
        large = {
            line: round(size * 2) / 2
            for line, size in sizes.items()
            if size > body * _LARGER and sum(map(str.isalpha, lines[line - 1])) > 2
        }
        repeated = Counter(_shape(lines[line - 1]) for line in large)
        large = {line: size for line, size in large.items() if repeated[_shape(lines[line - 1])] < 4}
        if len(large) * 6 > len(lines):
            return []  # no few lines among many: these are no headings
        ranks = {
            size: rank for rank, size in enumerate(sorted(set(large.values()), reverse=True)[:6], start=1)
        }
        headings: list[Heading] = []
        for line, size in sorted(large.items()):
            if size not in ranks:
                continue
            before = headings[-1] if headings else None
            title = lines[line - 1]
            if before and large.get(line - 1) == size and len(before.title) + len(title) < _HEADING_CHARS:
                headings[-1] = Heading(before.level, f"{before.title} {title}", before.line, before.span + 1)
            elif before is None or before.line != line:
                headings.append(Heading(ranks[size], title, line))
        return headings

    def _title_on_first_page(self) -> str:
        """Return the lines of the first page in its largest letters, else its first line."""
        if not self.result.pages:
            return ""
        first, last = self.result.page_lines(1)
        lines = self.result.lines
        sizes = {line: self.sizes.get(line, 0.0) for line in range(first, last + 1)}
        known = sorted(size for size in sizes.values() if size)
        largest = known[-1] if known and known[-1] > _LARGER * known[len(known) // 2 - 1] else 0.0
        picked: list[str] = []
        for line, size in sizes.items():
            if largest and size > largest * 0.95 and any(map(str.isalpha, lines[line - 1])):
                picked.append(lines[line - 1])
            elif picked:
                break
        text = " ".join(picked) if picked else lines[first - 1] if first <= last else ""
        return shorten_masked(text, _HEADING_CHARS)


def _wrapped(row: str) -> list[str]:
    """Cut a row that no page has room for, where no word and no key is cut: no node is smaller than a line.

    Example:
        >>> [len(part) for part in _wrapped("word " * 3_000)], [len(part) for part in _wrapped("茶" * 15_000)]
        ([10000, 5000], [9999, 5001])
        >>> [len(part) for part in _wrapped("x" * 25_000 + " y")]
        [25001, 1]
    """
    return [row] if len(row) <= _ROW_CHARS else _PART_OF_ROW.findall(row)


def _size(text: Any, raw: str, at: int, row: str) -> float:
    """Return the height of the letters at the beginning of a line, in points; 0 when it is unknown."""
    import pypdfium2.raw as pdfium

    for offset, char in enumerate(row[:20]):
        if not char.isalnum():
            continue
        # The text leaves out some characters that have a place of their own, so the place is proven.
        if ord(char) > 0xFFFF or pdfium.FPDFText_GetUnicode(text.raw, at + offset) != ord(char):
            return 0.0
        box = pdfium.FS_RECTF()
        if not pdfium.FPDFText_GetLooseCharBox(text.raw, at + offset, ctypes.byref(box)):
            return 0.0
        return abs(float(box.top) - float(box.bottom))
    return 0.0


def _line_of(title: str, lines: Sequence[str], first: int, last: int) -> int | None:
    """Return the first line from first to last that says a title, perhaps after its number, perhaps on two lines."""
    wanted = _squeezed(title)
    if not wanted:
        return None
    for number in range(first, last + 1):
        line = lines[number - 1]
        if len(line) > 2 * len(title) + 40:
            continue
        if number < last and len(line) < len(title):
            longer = line + lines[number]
            if _has_title(longer, wanted, title):
                return number
        if _has_title(line, wanted, title):
            return number
    return None


def _has_title(text: str, wanted: str, title: str) -> bool:
    return _squeezed(text) == wanted or _squeezed(_unnumbered(text)) == _squeezed(_unnumbered(title))


def _unnumbered(text: str) -> str:
    number = _NUMBER.match(text)
    return text[number.end() :] if number and number.end() < len(text) else text


def _squeezed(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))


def _shape(text: str) -> str:
    """Return a line without its numbers: what running heads have in common."""
    return re.sub(r"\d+", "0", text)
