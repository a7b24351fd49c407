"""Widen a stretch of a text to whole statements: to where its first sentence begins and what it says ends.

A passage is cut by its number of lines. What is shown of it goes on to the end of its paragraph, list or entry, and
what a colon announces (a list, a command, a block of code) belongs to it, as far as that takes few lines more.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

MORE_LINES: Final = 14
"""By which the end may move in all."""
_BEFORE_LINES: Final = 6
"""By which the beginning may."""
_BLOCK_LINES: Final = 8
"""Of the rest of a paragraph or of code; what is longer stays cut."""
LEFT_OUT: Final = "…"

_ITEM = re.compile(r"\s*(?:[-*+•]|\(?\d{1,3}[.)]|:[\w][\w `.*~-]*:)(?=\s|$)")
_HEADING = re.compile(r" {0,3}#{1,6}\s")
_UNDERLINE = re.compile(r"\s*([=\-~^\"'`*+#.:_])\1{2,}\s*$")
_FENCE = re.compile(r"\s*(?:```|~~~)")
_DIRECTIVE = re.compile(r"\s*\.\. [\w:+.-]+::.*$")
_DEFINITION = re.compile(r"\s*(?:[rRuU]?(?:\"{3}|'{3})|(?:async )?def\b|class\b|@\w)")
_ANNOUNCES = re.compile(r".*:\s*$|\s*\*\*[^*]+\*\*\s*$")
"""A line that ends in a colon, or is bold as a heading without a rank is."""
_OPTION = re.compile(r"\s+:[\w-]+:")
_ENDS = re.compile(r"[.!?…][\"')\]*`_]*\s*$")


def whole_statement(content: str, start: int, end: int, *, is_code: bool = False) -> tuple[int, int]:
    """Return where the statements begin and end that a stretch of a text is part of; it is never shorter.

    Args:
        is_code: take a block that a colon announces only where all of it fits.

    Example:
        >>> text = "One.\\n\\nRun this\\nfirst:\\n\\n    make\\n    make test\\n\\nThen rest."
        >>> first, last = whole_statement(text, text.index("first"), text.index("first") + 6)
        >>> text[first:last]
        'Run this\\nfirst:\\n\\n    make\\n    make test'
    """
    lines = content.split("\n")
    first = content.count("\n", 0, start + len(content[start:end]) - len(content[start:end].lstrip("\n")))
    last = content.count("\n", 0, start + len(content[start:end].rstrip()))
    if not content[start:end].strip():
        return start, end
    first, last = _beginning(lines, first), _end(lines, first, last, is_code=is_code)
    begins = sum(len(line) + 1 for line in lines[:first])
    ends = begins + sum(len(line) + 1 for line in lines[first : last + 1]) - 1
    return min(start, begins), max(end, ends)


def is_cut(content: str, end: int) -> bool:
    """Whether a text goes on within the same statement, list or block at a place."""
    before = content[:end].rstrip().split("\n")
    line, (rest, *after) = before[-1], content[end:].split("\n")
    if rest.strip():
        return True
    below = next((each for each in after if each.strip()), "")
    if not below or not line.strip():
        return False
    if _ANNOUNCES.match(line) or _DIRECTIVE.match(line):
        return True
    if not after[0].strip():
        return False
    if _ITEM.match(below):
        last = next((each for each in reversed(before) if not each.strip() or _ITEM.match(each)), "")
        return bool(_ITEM.match(last)) and _indent(last) == _indent(below)
    return not _begins_block(below) and _ENDS.search(line) is None


def _beginning(lines: Sequence[str], first: int) -> int:
    """Return the first line of the paragraph or item that a line is part of, with the line that announces it."""
    at = first
    while at > 0 and lines[at - 1].strip() and not _begins_block(lines[at]) and not _is_heading(lines, at):
        at -= 1
        if first - at > _BEFORE_LINES:
            at = next((n for n in range(first, at, -1) if _ENDS.search(lines[n - 1])), first)
            break
    above = next((n for n in range(at - 1, max(-1, at - 3), -1) if lines[n].strip()), None)
    is_mark = lines[at].strip() == "::"  # of reStructuredText, by itself: it says nothing
    announced = is_mark or _ITEM.match(lines[at]) or _FENCE.match(lines[at]) or lines[at][:1].isspace()
    ends = above is not None and (is_mark or lines[above].rstrip().endswith(":"))
    if above is not None and announced and ends and at - above <= 2:
        begin = above
        while begin > 0 and lines[begin - 1].strip() and not _begins_block(lines[begin]):
            if _ENDS.search(lines[begin - 1]):
                break
            begin -= 1
        if first - begin <= _BEFORE_LINES:
            return begin
    return at


def _end(lines: Sequence[str], first: int, last: int, *, is_code: bool) -> int:
    """Return the last line of what is said up to a line, and of what it announces."""
    most = min(last + MORE_LINES, len(lines) - 1)
    fences = sum(_FENCE.match(line) is not None for line in lines[first : last + 1])
    if fences % 2:
        closing = _closing_fence(lines, last + 1, most)
        last = last if closing is None else closing
    for _ in range(3):
        at = _paragraph_end(lines, last)
        at = _list_end(lines, first, at, most)
        above = _announcing(lines, first, at)
        at = max(at, _announced_end(lines, at if above is None else above, most, is_code=is_code))
        if at == last or at > most:
            break
        last = at
    return min(last, len(lines) - 1)


def _paragraph_end(lines: Sequence[str], last: int) -> int:
    """Return the last line of a paragraph; of a long one, the last at which a sentence ends."""
    at = last
    whole = last if _ENDS.search(lines[last]) else None
    while at + 1 < len(lines) and lines[at + 1].strip() and not _begins_block(lines[at + 1]):
        if _is_heading(lines, at + 1):
            return at
        at += 1
        if at - last > _BLOCK_LINES:
            return last if whole is None else whole
        if _ENDS.search(lines[at]):
            whole = at
    return at


def _list_end(lines: Sequence[str], first: int, last: int, most: int) -> int:
    """Return the last line of the list that a line is part of; the line itself where there is none, or a long one."""
    item = next(
        (n for n in range(last, first - 1, -1) if _ITEM.match(lines[n]) and not _UNDERLINE.match(lines[n])),
        None,
    )
    if item is None or any(not line.strip() for line in lines[item:last]):
        return last
    indent, at, end = _indent(lines[item]), last + 1, last
    while at < len(lines) and at <= most:
        line = lines[at]
        if not line.strip():
            at += 1
            continue
        if (
            _indent(line) < indent
            or (_indent(line) == indent and not _ITEM.match(line))
            or _is_heading(lines, at)
        ):
            return end
        if not lines[at - 1].strip() and not (_indent(line) == indent and _ITEM.match(line)):
            return end  # a paragraph of its own below the item
        end = at
        at += 1
    return end if at >= len(lines) else last


def _announcing(lines: Sequence[str], first: int, last: int) -> int | None:
    """Return the line with a colon, or the directive, whose block a line is in; None where there is none."""
    indent = _indent(lines[last])
    for n in range(last - 1, first - 1, -1):
        if lines[n].strip() and _indent(lines[n]) < indent:
            return n if lines[n].rstrip().endswith(":") or _DIRECTIVE.match(lines[n]) else None
    return None


def _announced_end(lines: Sequence[str], last: int, most: int, *, is_code: bool) -> int:
    """Return the last line of the block that a colon or a directive announces; as much of a long one as is allowed."""
    line = lines[last]
    directive = _DIRECTIVE.match(line) is not None
    if not directive and not _ANNOUNCES.match(line):
        return last
    at = last + 1
    while at < len(lines) and (not lines[at].strip() or (directive and _OPTION.match(lines[at]))):
        at += 1
    if at >= len(lines) or at > most or _is_heading(lines, at):
        return last
    if _FENCE.match(lines[at]):
        closing = _closing_fence(lines, at + 1, most)
        return most if closing is None else closing
    if _DIRECTIVE.match(lines[at]) and _indent(lines[at]) <= _indent(line):
        return at  # the next look takes what it announces
    if _ITEM.match(lines[at]):
        return max(at, _list_end(lines, at, _paragraph_end(lines, at), most))
    if _indent(lines[at]) <= _indent(line):
        return _paragraph_end(lines, at)
    inner, end, blank = _indent(lines[at]), at, last
    while at < len(lines) and (not lines[at].strip() or _indent(lines[at]) >= inner):
        if at > most:
            return last if is_code or blank <= last else blank
        end, blank = (at, blank) if lines[at].strip() else (end, end)
        at += 1
    return end


def _closing_fence(lines: Sequence[str], start: int, most: int) -> int | None:
    return next((n for n in range(start, min(len(lines), most + 1)) if _FENCE.match(lines[n])), None)


def _begins_block(line: str) -> bool:
    return any(pattern.match(line) for pattern in (_ITEM, _HEADING, _FENCE, _DIRECTIVE, _DEFINITION))


def _is_heading(lines: Sequence[str], at: int) -> bool:
    """Whether a heading begins at a line."""
    if _HEADING.match(lines[at]):
        return True
    below = lines[at + 1] if at + 1 < len(lines) else ""
    return bool(lines[at].strip()) and not lines[at][:1].isspace() and _UNDERLINE.match(below) is not None


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
