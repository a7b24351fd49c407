"""Cut a text into passages of about twelve lines, each filled from its own section.

A passage begins where a block begins (after a blank line, at a heading, at an item of a list) and takes the blocks
after it as long as they fit and belong to the same section. So passages overlap, and none is cut off before the block
that holds the answer. Lost: single blocks, six-line windows, windows that slide by the line; each put the answer into
the next passage more often.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

LINES = 12
"""Lines of a passage, about."""
LINE_CHARS = 100
"""A longer line counts as several."""
LONG_CHARS = 1_000
"""A line that is longer is cut where its sentences end."""
_SENTENCES_CHARS = 250
"""The least that is left of it in one."""
MAX_CHARS = 400_000
"""A text is cut up to here."""
MAX_PASSAGES = 2_000
_STEP = 6
"""Lines between two beginnings in a block that has no other."""
_MOST_LEADS = 3

_MARKDOWN = re.compile(r"\s{0,3}(#{1,6})\s+(\S.*)")
_UNDERLINE = re.compile(r"([=\-~^\"'`*+#.:_])\1{2,}\s*$")
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]]*[ \t]+(?=[\"'(\[]*[A-Z0-9])")
_RULES = "=-~^\"'`*+#.:_ \n"
_ITEM = re.compile(r"\s*(?:[-*+•]|\(?\d{1,3}[.)]|:\w[\w ]*:)\s+\S|\s*-{1,2}\w")


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a text: where it lies, and how far it is indented (-1 when blank)."""

    start: int
    end: int
    indent: int


@dataclass(frozen=True, slots=True)
class Span:
    """A passage before it is scored."""

    first: int
    """Number of its first line in the text, from 0."""
    last: int
    """Number of its last line; it belongs to the passage."""
    leads: tuple[str, ...]
    """What stands above it: headings of its section, then lines that it is indented under, outermost first."""


def lines_of(text: str) -> list[Line]:
    """Return the lines of a text, up to `MAX_CHARS`; a paragraph in one line is several, cut where sentences end."""
    lines, start = [], 0
    for raw in text[:MAX_CHARS].split("\n"):
        stripped = raw.lstrip()
        indent = len(raw.expandtabs(4)) - len(stripped.expandtabs(4)) if stripped else -1
        at, end = start, start + len(raw)
        if len(raw) > LONG_CHARS:
            for match in _SENTENCE_END.finditer(raw):
                if start + match.start() - at >= _SENTENCES_CHARS:
                    lines.append(Line(at, start + match.start(), indent))
                    at = start + match.end()
        lines.append(Line(at, end, indent))
        start = end + 1
    return lines


def spans_of(
    text: str, lines: list[Line], *, is_code: bool = False, pieces: Collection[int] = ()
) -> Iterator[Span]:
    """Yield the passages of a text in their order, at most `MAX_PASSAGES`; code has no headings.

    Args:
        pieces: where those pieces of it begin that do not follow what stands before them; no passage is of two.
    """
    headings = {} if is_code else _headings(text, lines)
    breaks = {number for number, line in enumerate(lines) if line.start in pieces}
    ends = sorted({*headings, *breaks})
    beginnings = list(_beginnings(text, lines, {*headings, *breaks}))
    at_section = 0
    for number, first in enumerate(beginnings[:MAX_PASSAGES]):
        while at_section < len(ends) and ends[at_section] <= first:
            at_section += 1
        stop = ends[at_section] if at_section < len(ends) else len(lines)
        last = _fill(lines, first, stop)
        if number and last < beginnings[number - 1]:
            continue
        above = max((at for at in breaks if at <= first), default=0)
        yield Span(first, last, _leads(text, lines, headings, first, above))


def heading_end(text: str) -> int:
    """Return where the heading that a passage begins with ends, 0 if it has none or is one: its node says it too.

    A heading with a number stays, since a version or a date may be what is asked for.

    Example:
        >>> text = "Refunds\\n-------\\n\\nThey are paid within 14 days."
        >>> text[heading_end(text):], heading_end("## 0.2 (2024)\\nMore."), heading_end("# Only")
        ('They are paid within 14 days.', 0, 0)
    """
    lines = lines_of(text)
    at = next(iter(_headings(text, lines)), -1)
    if at < 0 or text[: lines[at].start].strip(_RULES):
        return 0
    after = (
        at + 1 + bool(at + 1 < len(lines) and _UNDERLINE.match(text, lines[at + 1].start, lines[at + 1].end))
    )
    rest = next((line for line in lines[after:] if line.indent >= 0), None)
    has_number = any(map(str.isdigit, text[lines[at].start : lines[at].end]))
    return 0 if rest is None or has_number else rest.start


def _fill(lines: list[Line], first: int, stop: int) -> int:
    """Return the last line of the passage that begins at `first`: whole blocks that fit, else part of the first."""
    size, last, whole = 0, first, None
    for number in range(first, stop):
        line = lines[number]
        if line.indent < 0:
            if size:
                whole = last
            continue
        size += 1 + (line.end - line.start) // LINE_CHARS
        if size > LINES and number > first:
            # A block that only began is left out if what comes before it is enough of a passage.
            if whole is not None and whole - first >= LINES // 3:
                return whole
            return last
        last = number
    return last


def _beginnings(text: str, lines: list[Line], ends: Collection[int]) -> Iterator[int]:
    since = 0
    blank = True
    for number, line in enumerate(lines):
        if line.indent < 0:
            blank = True
            continue
        since += 1 + (line.end - line.start) // LINE_CHARS
        starts = blank or number in ends or since > _STEP
        if not starts and since > 1 and _ITEM.match(text, line.start, line.end):
            starts = True
        if starts:
            yield number
            since = 1 + (line.end - line.start) // LINE_CHARS
        blank = False


def _headings(text: str, lines: list[Line]) -> dict[int, tuple[int, str]]:
    """Find headings of Markdown and reStructuredText: line -> (level, words); levels of underlines by first use."""
    found: dict[int, tuple[int, str]] = {}
    marks: list[str] = []
    fenced = False
    for number, line in enumerate(lines):
        if line.indent < 0 or line.indent > 3:
            continue
        raw = text[line.start : line.end]
        if raw.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
            continue
        if fenced:
            continue
        if heading := _MARKDOWN.match(raw):
            found[number] = (len(heading[1]), heading[2].rstrip().rstrip("#").rstrip() or heading[2])
        elif number + 1 < len(lines) and (
            under := _UNDERLINE.match(text, lines[number + 1].start, lines[number + 1].end)
        ):
            words = raw.strip()
            if (
                len(words) > 1
                and not _UNDERLINE.match(raw)
                and len(under[0].rstrip()) >= min(len(words) - 2, 8)
            ):
                mark = under[1]
                if mark not in marks:
                    marks.append(mark)
                found[number] = (marks.index(mark) + 1, words)
    return found


def _leads(
    text: str, lines: list[Line], headings: dict[int, tuple[int, str]], first: int, above: int
) -> tuple[str, ...]:
    leads: list[str] = []
    level = 99
    for number in sorted((n for n in headings if n <= first), reverse=True):
        at, words = headings[number]
        if at < level:
            level = at
            if number != first:
                leads.insert(0, words)
        if level == 1 or len(leads) >= _MOST_LEADS:
            break
    bottom = max((n for n in headings if n <= first), default=above - 1)
    indent = lines[first].indent
    under: list[str] = []
    for number in range(first - 1, bottom, -1):
        if indent <= 0 or len(under) >= _MOST_LEADS or first - number > 400:
            break
        line = lines[number]
        if 0 <= line.indent < indent:
            indent = line.indent
            under.insert(0, text[line.start : line.end].strip()[:160])
    return (*leads, *under)
