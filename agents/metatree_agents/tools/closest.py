"""What comes closest to a question that stays open, cut to the lines that matter."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from metatree_agents.tools.locations import LEFT_OUT, place_text

_MORE_LINES = 4
"""By which a window is widened at each end."""
_BEGINS = re.compile(r"\s*(?:[-*+•]|\d{1,3}[.)]|[\w.*]+:|def |class |@|#|return\b|if |for )")

if TYPE_CHECKING:
    from metatree import ClosestPassage


def of_question(closest: Iterable[ClosestPassage], question: str) -> list[ClosestPassage]:
    """Return the passages that come closest to one question, the likeliest first."""
    return [passage for passage in closest if passage.question == question]


def line_range(passage: ClosestPassage) -> str:
    """Return the lines of a passage as `12-40`, or as `12` when it is one."""
    return place_text("", passage.lines).removeprefix(":")


def telling(question: str, text: Sequence[str], *, lines: int, chars: int) -> list[str]:
    """Return the first line of a passage, and those side by side that share the most words with its question.

    `…` stands in a line of its own where lines were left out, and at the end of a line that alone is too long. What is
    shown begins and ends with a sentence where that takes few lines more.

    Args:
        question: what was asked.
        text: the lines of the passage.
        lines: about how many are shown.
        chars: what they take at most together, about.
    """
    whole = list(text)
    # Two marks for what is left out would take as much.
    most = len(whole) if len(whole) <= lines + 2 else lines
    start, end = _window(question, whole, most, chars)
    before = []
    if start > 0:
        # A heading or a signature says what the rest is about.
        before = [_cut(whole[0], chars // 4)]
        start, end = _window(question, whole[1:], most - 1, chars - len(before[0]))
        start, end = _whole_sentences(whole, start + 1, end + 1, chars)
        before += [LEFT_OUT] if any(line.strip() for line in whole[1:start]) else []
    else:
        start, end = _whole_sentences(whole, start, end, chars)
    after = [LEFT_OUT] if any(line.strip() for line in whole[end:]) else []
    return [*before, *_without_empty_ends([_cut(line, chars) for line in whole[start:end]]), *after]


def _whole_sentences(whole: Sequence[str], start: int, end: int, chars: int) -> tuple[int, int]:
    """Widen a window to where a sentence begins and ends, by some lines at most and within the characters."""
    first, last = start, end
    while first > 1 and not _is_cut(whole[first - 1], whole[first]):
        first -= 1
        if start - first > _MORE_LINES:
            first = start
            break
    while 0 < last < len(whole) and not _is_cut(whole[last - 1], whole[last]):
        last += 1
        if last - end > _MORE_LINES:
            last = end
            break
    return (first, last) if sum(map(len, whole[first:last])) <= chars else (start, end)


def _is_cut(line: str, below: str) -> bool:
    """Whether a text may be cut between two lines."""
    ends = not line.strip() or line.rstrip().endswith((".", "!", "?", ";", "{", "}", '"""'))
    return ends or not below.strip() or _BEGINS.match(below) is not None


def _window(question: str, whole: Sequence[str], lines: int, chars: int) -> tuple[int, int]:
    """Return the first line of the best window and the one after its last; of equals, the middle one."""
    from metatree_routers.query.terms import terms

    asked = set(terms(question))
    shared = [asked.intersection(terms(line)) for line in whole]
    windows: list[tuple[int, int]] = []
    for start in range(len(whole)):
        end, size = start + 1, len(whole[start])
        while end < min(len(whole), start + lines) and size + len(whole[end]) < chars:
            size += len(whole[end]) + 1
            end += 1
        windows.append((start, end))
        if end == len(whole):
            break
    counts = [len(set().union(*shared[start:end])) for start, end in windows]
    best = max(counts, default=0)
    if not best:
        return windows[0] if windows else (0, 0)
    # In the middle the words have lines on both sides; at an end, what answers may be just beyond it.
    equals = [window for window, count in zip(windows, counts, strict=True) if count == best]
    return equals[len(equals) // 2]


def _without_empty_ends(lines: list[str]) -> list[str]:
    filled = [number for number, line in enumerate(lines) if line.strip()]
    return lines[filled[0] : filled[-1] + 1] if filled else []


def _cut(line: str, chars: int) -> str:
    return line if len(line) <= chars else line[: chars - len(LEFT_OUT)] + LEFT_OUT
