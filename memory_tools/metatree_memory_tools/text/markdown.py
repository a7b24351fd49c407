"""Markdown files as trees of headings."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any

from metatree.trees.source_types import Outline, OutlinePart, SourceFile
from metatree_memory_tools.text._notes import Note, day_of, note_of, shown
from metatree_memory_tools.text.descriptions import (
    MOST_HEADINGS,
    beginning,
    cut_masked,
    first_sentence,
    shorten,
    shorten_masked,
    unmarked_by,
    with_names,
)
from metatree_memory_tools.text.text_files import TextFiles
from metatree_memory_tools.text.unique_names import UniqueNames, slug

if TYPE_CHECKING:
    from markdown_it import MarkdownIt


_IMAGE = re.compile(r"!\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])")
_LINK = re.compile(r"\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])")
_TAG = re.compile(r"(?:<!--.*?(?:-->|\Z)|</?[A-Za-z][^<>]*>)+", re.DOTALL)
_MARKS = re.compile(r"(\*\*|(?<!`)`++|~~|(?<!\w)__)(.*?)\1")
_EMPHASIS = re.compile(r"(?<!\w)[*_](\S(?:.*?\S)?)[*_](?!\w)")
_MOST_CHARS = 1_000
_MOST_LINES = 200
_HEADING = re.compile(r"^ {0,3}(?:#{1,6}(?:[ \t]|$)|=+[ \t]*$|-+[ \t]*$)", re.MULTILINE)
"""What may be one, or the line below one."""
_BLOCK = re.compile(r"^|>|(?<!\S)(?:[-+*]|\d{1,9}[.)])(?!\S)", re.MULTILINE)
"""What a parser may begin a block at."""
_MOST_BLOCKS = 200_000
"""Where more may begin, in which a parser takes up to 2 KB for each, the rest of the text is not looked through."""
_LABEL = re.compile(r"\{[^{}]{0,200}\}|\([\w.:-]{1,200}\)=")
"""Attributes, and the name of the next heading for links, in a line of their own, as MyST and Pandoc have them."""
_FENCE = re.compile(r"^ {0,3}(```+|~~~+)")


@dataclass
class _Heading:
    level: int
    title: str
    line: int
    """Counted from 1."""
    end: int = 0
    slug: str = ""
    below: list[_Heading] = field(default_factory=list)


class Markdown(TextFiles):
    """Markdown, by its headings; `#` in code is no heading."""

    name = "markdown"
    version = "7"

    def recognises(self, path: str, head: bytes) -> bool:
        """Whether the name ends as Markdown does."""
        return path.lower().endswith((".md", ".markdown", ".mdown", ".mkd"))

    def outline(self, file: SourceFile) -> Outline:
        """Return the headings of a file, each with the lines up to the next one."""
        note = note_of(file.text, _outside_code)
        text = note.body
        lines = text.split("\n")
        read, cut = _bounded(text)
        headings = _headings(read, file.lines)
        starts = {heading.line for heading in headings}
        top = _nested(headings, len(file.lines))
        begin = 1
        attributes: dict[str, Any] = {"language": "markdown", "lines": len(file.lines)}
        if cut:
            attributes["note"] = f"only {cut} are sections; the last holds the rest"
        title = note.text("title")
        if len(top) == 1 and top[0].below and all(h.level > top[0].level for h in headings[1:]):
            # One heading over all the others is the title of the file, not a level of its own.
            title = title or top[0].title
            top = top[0].below
        elif len(top) == 1 and not top[0].below:
            title = title or top[0].title
            top = []
        if title:
            attributes["title"] = title
        attributes |= _noted(note, file.name)
        summary = note.text("description", "summary")
        first = top[0].line - 1 if top else len(file.lines)
        summary = first_sentence(summary or _prose(lines[begin - 1 : first]) or title)
        described = f"{title}: {summary}" if title and summary != title else summary
        called = f" Also called {', '.join(note.aliases[:5])}." if note.aliases else ""
        described = shorten(described, 220) + called
        description = with_names(described, "Sections", [heading.title for heading in top])
        if not description:
            description = (
                "An empty file." if not file.text.strip() else shorten(" ".join(file.lines[:5]), 200)
            )
        parts: list[OutlinePart] = []
        if top:
            if _has_prose(file.lines, starts, 1, first):
                parts.append(_introduction("#<intro>", title or file.name, 1, first, lines))
            parts.extend(_part(heading, file, starts, lines) for heading in top)
        return Outline(
            description=description,
            parts=tuple(parts),
            attributes=attributes,
            summary=summary,
            references=tuple(note.links),
            declares=tuple(("note", name) for name in note.aliases),
        )


def _noted(note: Note, name: str) -> dict[str, Any]:
    """Return what a note says of itself: who wrote it, when and why, its tags and other names, its properties."""
    noted: dict[str, Any] = {"who": note.text("who", "author", "authors"), "why": note.text("why")}
    noted["at"] = note.text("when", "date", "created", "created_at") or day_of(name)
    noted["tags"] = note.tags
    noted["aliases"] = note.aliases
    noted["blocks"] = note.blocks
    noted["properties"] = shown(note.properties)
    return {name: value for name, value in noted.items() if value}


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt  # slow to import, and a source may have no Markdown

    parser = MarkdownIt("commonmark")
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


def _bounded(text: str) -> tuple[str, str]:
    """Return a text as far as headings are looked for, and which are found when more may come; else nothing."""
    cut = ""
    if len(text) > 2 * _MOST_BLOCKS and (
        far := next(islice(_BLOCK.finditer(text), _MOST_BLOCKS, None), None)
    ):
        at = text.rfind("\n", 0, far.start()) + 1
        text, cut = text[:at], f"the headings of its first {text.count(chr(10), 0, at):,} lines"
    if after := next(islice(_HEADING.finditer(text), MOST_HEADINGS, None), None):
        text, cut = text[: after.start()], f"its first {MOST_HEADINGS:,} headings"
    return text, cut


def _headings(text: str, lines: Sequence[str]) -> list[_Heading]:
    try:
        tokens = _parser().parse(text)
    except (RecursionError, ValueError, IndexError):
        return []
    headings = []
    for token, inline in pairwise(tokens):
        if token.type == "heading_open" and token.level == 0 and token.map:
            title = shorten_masked(plain(inline.content), 120)
            headings.append(_Heading(int(token.tag[1]), title or "(untitled)", token.map[0] + 1))
    slugs = UniqueNames("-", first=1)
    for heading in headings:
        heading.slug = slugs.take(slug(heading.title))
    return headings


def headings_of(lines: Sequence[str]) -> list[tuple[int, str, int]]:
    """Return level, title and line, counted from 1, of the first `MOST_HEADINGS` headings of a Markdown text."""
    text, _ = _bounded("\n".join(lines))
    return [(heading.level, heading.title, heading.line) for heading in _headings(text, lines)]


def plain(text: str) -> str:
    """Return a line of Markdown without its marks.

    Example:
        >>> plain("Use **[metatree](x.md)** with `run`")
        'Use metatree with run'
    """
    text = cut_masked(text, _MOST_CHARS)  # the patterns take the square of it for marks that nothing closes
    text = unmarked_by(_LINK, unmarked_by(_IMAGE, unmarked_by(_TAG, text)))
    for _ in range(3):
        text = unmarked_by(_MARKS, text)
    return unmarked_by(_EMPHASIS, text).strip()


def _nested(headings: Sequence[_Heading], last: int) -> list[_Heading]:
    """Put each heading below the nearest one before it that is of a higher rank, and set where each ends."""
    top: list[_Heading] = []
    above: list[_Heading] = []
    for heading in headings:
        while above and above[-1].level >= heading.level:
            above.pop().end = heading.line - 1
        (above[-1].below if above else top).append(heading)
        above.append(heading)
    for heading in above:
        heading.end = last
    return top


def _has_prose(lines: Sequence[str], starts: Collection[int], first: int, last: int) -> bool:
    """Whether there is more between two lines than headings, whose first lines are given, and blank lines."""
    line = first
    while line <= last:
        text = lines[line - 1].strip()
        if line in starts and not text.startswith(
            "#"
        ):  # underlined: the heading goes down to its line of = or -
            while line <= last and not re.fullmatch(r"=+|-+", lines[line - 1].strip()):
                line += 1
        elif text and line not in starts:
            return True
        line += 1
    return False


def _part(heading: _Heading, file: SourceFile, starts: Collection[int], lines: Sequence[str]) -> OutlinePart:
    first = heading.below[0].line - 1 if heading.below else heading.end
    summary = first_sentence(_prose(lines[heading.line : min(first, heading.line + _MOST_LINES)]))
    parts: list[OutlinePart] = []
    if heading.below:
        if _has_prose(file.lines, starts, heading.line, first):
            parts.append(_introduction(f"#{heading.slug}.<intro>", heading.title, heading.line, first, lines))
        parts.extend(_part(inner, file, starts, lines) for inner in heading.below)
    return OutlinePart(
        id=f"#{heading.slug}",
        title=heading.title,
        description=with_names(summary, "Sections", [inner.title for inner in heading.below]),
        start_line=heading.line,
        end_line=heading.end,
        parts=tuple(parts),
        attributes={"level": heading.level},
    )


def _introduction(part_id: str, title: str, first: int, last: int, lines: Sequence[str]) -> OutlinePart:
    return OutlinePart(
        id=part_id,
        title=f"{title} (introduction)",
        description=first_sentence(_prose(lines[first - 1 : min(last, first + _MOST_LINES)])),
        start_line=first,
        end_line=last,
    )


def _prose(lines: Sequence[str]) -> str:
    """Return the first paragraph that is text: no heading, badge, table, code or comment."""
    paragraphs: list[str] = []
    for line in _outside_code(
        unmarked_by(_TAG, "\n".join(beginning(line, _MOST_CHARS) for line in lines[:_MOST_LINES])).split("\n")
    ):
        text = line.strip()
        if _LABEL.fullmatch(text):
            continue
        if re.fullmatch(r"[=\-*_~|:\s]+", text) or text.startswith(("#", "|", "[!", "![")):
            if paragraphs and re.fullmatch(r"=+|-+", text):
                paragraphs.clear()  # it was an underlined heading
            text = ""
        text = plain(re.sub(r"^(?:>+|[-*+]|\d+[.)])\s+", "", text))
        if text:
            paragraphs.append(text)
        elif paragraphs:
            break
    return " ".join(paragraphs)


def _outside_code(lines: Sequence[str]) -> Iterator[str]:
    fence = ""
    for line in lines:
        mark = _FENCE.match(line)
        if fence:
            if mark and mark[1].startswith(fence):
                fence = ""
            yield ""
        elif mark:
            fence = mark[1]
            yield ""
        else:
            yield line
