"""The entry of a page that answers: what stands between two headings around the best lines, without the running head.

A page of a PDF has no structure but its lines, and a reader quotes most of it: of a reference, other functions too.

Lost: the lines that share words alone (half of an entry, and the signature without what it does).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

from metatree_routers.query.terms import terms

LEFT_OUT: Final = "…"
MOST_LINES: Final = 12
"""A text that is not longer is shown whole, and an entry goes on so far at most where no heading ends it."""
_HEADING_SHARE: Final = 0.6
"""How long a heading is at most, as a share of a long line: a line of a paragraph is longer, but for its last."""
_NAME: Final = re.compile(r"(?<![\w.])(?![A-Za-z]+\.\d+(?!\w))(?:\w+(?:[_.:-]+\w+)+|\w*\d\w*)")
"""An identifier, or what has a number, but not what all of a manual is about (`ASN.1`)."""
_NAME_WEIGHT: Final = 10.0
_ENDS: Final = (".", "!", "?")
_MARKS: Final = (*_ENDS, ",", ";", ":", ")", "]")
_RUNNING_HEAD: Final = re.compile(r"\s*(?:\d{1,4}\s+\S.*|\S.*\s\d{1,4})\s*$")


def entry_of(question: str, lines: Sequence[str]) -> tuple[int, int]:
    """Return the first line of the entry that answers best, from 0, and the one after its last; all of a short text.

    Example:
        >>> page = ["Chapter 4 9", "open it", "It opens.", "", "close it", "Closes the lamp at once, and for good."]
        >>> page += ["It is safe to be called twice, since the second call", "does nothing."] * 4
        >>> entry_of("How do I close it?", page)
        (4, 14)
    """
    if len(lines) <= MOST_LINES:
        return 0, len(lines)
    best = _best(question, lines)
    # Not the longest: one may be a whole paragraph.
    most = _HEADING_SHARE * sorted(map(len, lines))[len(lines) * 3 // 4]
    headings = {number for number in range(len(lines)) if _is_heading(lines, number, most)}
    above = [number for number in headings if number <= best]
    start = max(above, default=0)
    if start == 0 and _RUNNING_HEAD.match(lines[0]) and best > 0:
        start = 1
    # A heading that is the best line by itself has its text below it.
    end = min((number for number in headings if number > max(start, best)), default=len(lines))
    if end - start > 2 * MOST_LINES:
        start, end = _around(best, start, end, lines)
    return start, end


def entry_text(question: str, text: str, mark: str = "") -> str:
    """Return the entry of a text that answers, with `…` in lines of their own where something is left out.

    Args:
        question: what was asked.
        text: what is quoted of a page.
        mark: put behind what is left out at the end, as it stood there.
    """
    lines = text.strip("\n").split("\n")
    start, end = entry_of(question, lines)
    before = [LEFT_OUT] if start else []
    after = [f"{LEFT_OUT} {mark}".rstrip()] if end < len(lines) else []
    return "\n".join([*before, *lines[start:end], *after])


def _best(question: str, lines: Sequence[str]) -> int:
    """Return the line that shares most with a question: names as they stand, and words by how rare they are here."""
    names = [re.compile(rf"(?<!\w){re.escape(name)}(?!\w)") for name in _NAME.findall(question)]
    asked = {term for term in terms(question) if len(term) > 1}  # the 1 of `ASN.1` is any number
    shared = [asked.intersection(terms(line)) for line in lines]
    counts = Counter(term for each in shared for term in each)
    scores = [
        sum(1 / counts[term] for term in each) + sum(_NAME_WEIGHT for name in names if name.search(line))
        for each, line in zip(shared, lines, strict=True)
    ]
    first = 1 if _RUNNING_HEAD.match(lines[0]) else 0
    return max(range(first, len(lines)), key=lambda number: (scores[number], -number))


def _is_heading(lines: Sequence[str], number: int, most_chars: float) -> bool:
    """Whether a line begins an entry: it is short, ends no sentence, and stands behind one that ended."""
    line = lines[number].strip()
    if number == 0 or number + 1 == len(lines) or not line or line.endswith(_MARKS):
        return False
    before = lines[number - 1].strip()
    ended = not before or before.endswith(_ENDS) or (number == 1 and _RUNNING_HEAD.match(before) is not None)
    return ended and len(line) <= most_chars


def _around(best: int, start: int, end: int, lines: Sequence[str]) -> tuple[int, int]:
    """Return the lines around the best one, from the end of a sentence to the end of one where that is near."""
    first = next(
        (n for n in range(best, max(start, best - MOST_LINES // 2), -1) if _ended(lines[n - 1])),
        max(start, best - 1),
    )
    last = min(end, first + MOST_LINES)
    return first, next(
        (n for n in range(last, min(end, last + MOST_LINES // 2)) if _ended(lines[n - 1])), last
    )


def _ended(line: str) -> bool:
    return not line.strip() or line.rstrip().endswith(_ENDS)
