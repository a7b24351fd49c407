"""The lines, headings and pages of a document as nodes.

Every line that is not blank lies in one leaf, except that a heading is the title of its node. A section is a leaf as
far as it is short; a long one has its pages below it, or pieces of bounded length where there are no pages.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any

from metatree.trees.source_types import Outline, OutlinePart
from metatree_memory_tools.documents._document_text import Extracted, Heading
from metatree_memory_tools.text.descriptions import beginning, first_sentence, shorten, with_names
from metatree_memory_tools.text.unique_names import UniqueNames, slug

SECTION_CHARS = 6_000
"""A longer section is cut, by pages or else into pieces of about this many characters."""

_PROSE_CHARS = 400
_PAGE_CHARS = 10 * SECTION_CHARS
"""No page is that long: one that was made for the purpose cost the index hundreds of megabytes in one node."""
_SECTION_PAGES = 2
_GROUP_PAGES = 10
_MOST_LINKS = 200
_CONTENTS_LINE = re.compile(
    r"(?:\.[ \t]?){4,}[ \t]*[\divxlc]{1,6}$|…{2,}[ \t]*[\divxlc]{1,6}$", re.IGNORECASE
)
"""A line of a table of contents: a title, dots, and its page."""
_RUNNING_SHARE = 0.3
"""A first or last line that so many pages share is a running head: it says nothing of the page."""
_Prose = Callable[[Iterable[str]], Iterator[str]]
"""Of a section the first sentence is said: no line behind it is looked at."""


@dataclass
class _Section:
    level: int
    title: str
    first: int
    last: int = 0
    below: list[_Section] = field(default_factory=list)


def outline_of(document: Extracted, name: str, what: str, prose: _Prose | None = None) -> Outline:
    """Return the nodes of a document.

    Args:
        document: its text.
        name: the file's name, for what has no title.
        what: the kind of document for a description that has nothing else to say, as in `A PDF document`.
        prose: yields lines as a description may say them, empty ones for what it may not; None: as they are.
    """
    headings = [each for each in document.headings if not _CONTENTS_LINE.search(each.title[-200:])]
    return _Outlining(replace(document, headings=headings), name, what, prose or iter).run()


class _Outlining:
    """One document on its way to nodes."""

    def __init__(self, document: Extracted, name: str, what: str, prose: _Prose) -> None:
        self.document = document
        self.name = name
        self.what = what
        self.prose = prose
        self.used = UniqueNames(".")
        self.running = _running_heads(document)
        self.heading_lines = {line for h in document.headings for line in range(h.line, h.line + h.span)}

    def run(self) -> Outline:
        document = self.document
        attributes: dict[str, Any] = {**document.facts, "lines": len(document.lines)}
        if document.pages:
            attributes["pages"] = len(document.pages)
        if document.links:
            attributes["links"] = document.links[:_MOST_LINKS]
        top = _nested(document.headings, len(document.lines))
        title = document.title
        begin = 1
        if len(top) == 1 and top[0].below and top[0].first <= 3:
            # One heading over all the others is the title of the document, not a level of its own.
            title = title or top[0].title
            top = top[0].below
        elif (
            len(top) == 1 and not top[0].below and top[0].first <= 3 and len(document.pages) <= _SECTION_PAGES
        ):
            title = title or top[0].title
            top = []
        if title:
            attributes["title"] = self.name = title
        summary = self._summary(title, top, begin)
        if document.problem:
            attributes["note"] = document.problem
        parts = tuple(map(self._digested, self._parts(top, begin)))
        return Outline(
            description=self._description(title, summary, top),
            parts=parts,
            attributes=attributes,
            summary=summary or title,
            problem=document.problem,
        )

    def _digested(self, part: OutlinePart) -> OutlinePart:
        """Return a part whose leaves know the hash of their text; one without any text has no lines."""
        if part.parts:
            return replace(part, parts=tuple(map(self._digested, part.parts)))
        lines = self.document.lines[max(0, part.start_line - 1) : part.end_line]
        if part.end_line < part.start_line or not any(lines):
            return replace(part, start_line=0, end_line=0)
        return replace(
            part, digest=blake2b("\n".join(lines).encode("utf-8", "replace"), digest_size=16).hexdigest()
        )

    def _summary(self, title: str, top: Sequence[_Section], begin: int) -> str:
        metadata = str(self.document.facts.get("description") or self.document.facts.get("subject") or "")
        if metadata:
            return first_sentence(metadata)
        last = top[0].first - 1 if top else len(self.document.lines)
        if top and self.document.pages and self.document.page_of(last) > _SECTION_PAGES:
            last = 0  # a cover, a table of contents: no introduction
        text = self._prose(begin, last) or (self._prose(top[0].first, top[0].last) if top else "")
        return "" if text == title else text

    def _description(self, title: str, summary: str, top: Sequence[_Section]) -> str:
        text = f"{title}: {summary}" if title and summary else title or summary
        if not text and not self.document.problem and not any(line.strip() for line in self.document.lines):
            text = f"{self.what} without text"
        if self.document.problem:
            text = (
                f"{shorten(text, 150)} ({self.document.problem})"
                if text
                else f"{self.what}, {self.document.problem}."
            )
        return with_names(shorten(text, 220), "Sections", [section.title for section in top]) or self.what

    def _parts(self, top: Sequence[_Section], begin: int) -> Iterator[OutlinePart]:
        document = self.document
        end = len(document.lines)
        if not top:
            yield from self._whole(begin, end)
            return
        yield from self._introduction("", begin, top[0].first - 1)
        for section in top:
            yield self._section(section)

    def _whole(self, begin: int, end: int) -> Iterator[OutlinePart]:
        """Yield the pages of a document without headings, in groups when there are many; nothing when it is short."""
        document = self.document
        count = len(document.pages)
        if not count:
            if self._chars(begin, end) > SECTION_CHARS * 3 // 2:
                yield from self._pieces("", begin, end)
            return
        if count == 1 and document.lines and self._chars(begin, end) <= _PAGE_CHARS:
            return
        if count <= 2 * _GROUP_PAGES:
            yield from self._pages(1, count, begin, end)
            return
        for first in range(1, count + 1, _GROUP_PAGES):
            last = min(first + _GROUP_PAGES - 1, count)
            start, stop = document.page_lines(first)[0], document.page_lines(last)[1]
            parts = tuple(self._pages(first, last, start, stop))
            if len(parts) < 2:
                yield from parts
                continue
            yield OutlinePart(
                id=self._id(f"pages-{first}-{last}"),
                title=f"pages {first}-{last}",
                description=self._prose(start, stop),
                start_line=start,
                end_line=stop,
                parts=parts,
                attributes={"first_page": first, "last_page": last},
            )

    def _section(self, section: _Section) -> OutlinePart:
        first = section.below[0].first - 1 if section.below else section.last
        part_id = self._id(slug(section.title)[:80])
        parts: tuple[OutlinePart, ...] = ()
        if section.below:
            inner = list(self._introduction(section.title, section.first, first, part_id))
            inner += [self._section(below) for below in section.below]
            parts = tuple(inner)
        elif self._is_long(section.first, section.last):
            parts = tuple(self._cut(section.title, section.first, section.last, part_id))
        return OutlinePart(
            id=part_id,
            title=section.title,
            description=with_names(
                self._prose(section.first, first), "Sections", [below.title for below in section.below]
            ),
            start_line=section.first,
            end_line=section.last,
            parts=parts,
            attributes={"level": section.level, **self._on_pages(section.first, section.last)},
        )

    def _introduction(self, title: str, first: int, last: int, above: str = "") -> Iterator[OutlinePart]:
        """Yield what stands before the first section of a document or a section, if it says anything."""
        if not any(
            line.strip() and number not in self.heading_lines
            for number, line in enumerate(self.document.lines[first - 1 : last], start=first)
        ):
            return
        if not title and self.document.pages and (count := self.document.page_of(last)) > _SECTION_PAGES:
            yield OutlinePart(
                id=self._id(f"pages-1-{count}"),
                title=f"pages 1-{count} (before the first section)",
                description=self._prose(first, last),
                start_line=first,
                end_line=last,
                parts=tuple(self._pages(1, count, first, last)),
                attributes={"first_page": 1, "last_page": count},
            )
            return
        part_id = self._id(f"{above.removeprefix('#')}.<intro>" if above else "<intro>")
        name = f"{title or self.name} (introduction)"
        parts = tuple(self._cut(name, first, last, part_id)) if self._is_long(first, last) else ()
        yield OutlinePart(
            id=part_id,
            title=name,
            description=self._prose(first, last),
            start_line=first,
            end_line=last,
            parts=parts,
            attributes=self._on_pages(first, last),
        )

    def _is_long(self, first: int, last: int) -> bool:
        document = self.document
        if document.pages and document.page_of(last) - document.page_of(first) >= _SECTION_PAGES:
            return True
        return self._chars(first, last) > SECTION_CHARS * 3 // 2

    def _chars(self, first: int, last: int) -> int:
        return sum(map(len, self.document.lines[first - 1 : last]))

    def _cut(self, title: str, first: int, last: int, above: str) -> Iterator[OutlinePart]:
        document = self.document
        if document.pages and document.page_of(last) > document.page_of(first):
            yield from self._pages(document.page_of(first), document.page_of(last), first, last, title)
        else:
            yield from self._pieces(above, first, last)

    def _pages(
        self, first_page: int, last_page: int, first: int, last: int, title: str = ""
    ) -> Iterator[OutlinePart]:
        """Yield the pages from one to another, as far as they lie between two lines; empty ones in a row as one."""
        page = first_page
        while page <= last_page:
            start, stop = self.document.page_lines(page)
            start, stop = max(start, first), min(stop, last)
            if start <= stop:
                yield self._page(page, start, stop, title)
                page += 1
                continue
            empty = page
            while page <= last_page and self._is_empty(page):
                page += 1
            if page == empty:
                page += 1  # it has text, and none of it here
            elif not title or first_page < empty:
                yield self._empty(empty, page - 1)

    def _is_empty(self, page: int) -> bool:
        start, stop = self.document.page_lines(page)
        return stop < start

    def _page(self, page: int, first: int, last: int, title: str) -> OutlinePart:
        label = self.document.pages[page - 1].label
        name = f"page {page}" + (f" ({label})" if label else "")
        attributes: dict[str, Any] = {"first_page": page, "last_page": page}
        if label:
            attributes["label"] = label
        part_id = self._id(f"page-{page}")
        long = self._chars(first, last) > _PAGE_CHARS
        return OutlinePart(
            id=part_id,
            title=f"{shorten(title, 80)}, {name}" if title else name,
            description=self._prose(first, last),
            kind="page",
            start_line=first,
            end_line=last,
            parts=tuple(self._pieces(part_id, first, last)) if long else (),
            attributes=attributes,
        )

    def _empty(self, first_page: int, last_page: int) -> OutlinePart:
        one = first_page == last_page
        note = (
            "no text: a picture, a scan, or an empty page"
            if one
            else "no text: pictures, scans, or empty pages"
        )
        name = f"page {first_page}" if one else f"pages {first_page}-{last_page}"
        return OutlinePart(
            id=self._id(name.replace(" ", "-")),
            title=name,
            description=f"{name.capitalize()}: {note}.",
            kind="page",
            start_line=0,
            end_line=0,
            attributes={"first_page": first_page, "last_page": last_page, "note": note},
        )

    def _pieces(self, above: str, first: int, last: int) -> Iterator[OutlinePart]:
        """Yield pieces of some length, cut between lines."""
        start, chars = first, 0
        for number in range(first, last + 1):
            chars += len(self.document.lines[number - 1]) + 1
            if chars >= SECTION_CHARS or number == last:
                name = f"{above.removeprefix('#')}.L{start}" if above else f"L{start}"
                yield OutlinePart(
                    id=self._id(name),
                    title=f"lines {start}-{number}",
                    description=self._prose(start, number),
                    start_line=start,
                    end_line=number,
                    attributes=self._on_pages(start, number),
                )
                start, chars = number + 1, 0

    def _on_pages(self, first: int, last: int) -> dict[str, Any]:
        if not self.document.pages:
            return {}
        last = max(last, first)
        return {"first_page": self.document.page_of(first), "last_page": self.document.page_of(last)}

    def _prose(self, first: int, last: int) -> str:
        """Return the first sentence between two lines, without headings and running heads."""
        lines: list[str] = []
        length = 0
        rows = self.prose(
            beginning(line, _PROSE_CHARS) for line in self.document.lines[first - 1 : min(last, first + 80)]
        )
        for number, row in enumerate(rows, start=first):
            line = row.strip()
            if (
                number in self.heading_lines
                or (self.running and _shape(line) in self.running)
                or not any(map(str.isalpha, line))
            ):
                if lines and not line:
                    break
                continue
            lines.append(line)
            length += len(line)
            if length > 500:
                break
        return first_sentence(" ".join(lines)) if lines else ""

    def _id(self, name: str) -> str:
        """Return an id for a part that no other part of the document has."""
        return f"#{self.used.take(name)}"


def _nested(headings: Sequence[Heading], last: int) -> list[_Section]:
    """Put each heading below the nearest one before it that is of a higher rank, and set where each ends."""
    top: list[_Section] = []
    above: list[_Section] = []
    for heading in headings:
        section = _Section(heading.level, heading.title, heading.line)
        while above and above[-1].level >= heading.level:
            above.pop().last = heading.line - 1
        (above[-1].below if above else top).append(section)
        above.append(section)
    for section in above:
        section.last = last
    return top


def _running_heads(document: Extracted) -> frozenset[str]:
    """Return the first and last lines that many pages share, without their numbers."""
    if len(document.pages) < 4:
        return frozenset()
    seen: Counter[str] = Counter()
    for number in range(1, len(document.pages) + 1):
        first, last = document.page_lines(number)
        if last - first < 3:
            continue
        ends = {*range(first, min(first + 2, last + 1)), *range(max(first, last - 1), last + 1)}
        seen.update({_shape(document.lines[line - 1].strip()) for line in ends})
    least = max(3.0, min(10.0, _RUNNING_SHARE * len(document.pages)))
    return frozenset(line for line, count in seen.items() if count >= least)


def _shape(line: str) -> str:
    return "".join("0" if char.isdigit() else char for char in line)
