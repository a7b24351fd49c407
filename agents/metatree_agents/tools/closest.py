"""What comes closest to a question that stays open, cut to the lines that matter."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from metatree import ClosestPassage

LEFT_OUT = "…"


def of_question(closest: Iterable[ClosestPassage], question: str) -> list[ClosestPassage]:
    """Return the passages that come closest to one question, the likeliest first."""
    return [passage for passage in closest if passage.question == question]


def line_range(passage: ClosestPassage) -> str:
    """Return the lines of a passage as `12-40`, or as `12` when it is one."""
    first, last = passage.lines
    return str(first) if first == last else f"{first}-{last}"


def telling(passage: ClosestPassage, *, lines: int, chars: int) -> list[str]:
    """Return the first line of a passage, and those side by side that share the most words with its question.

    `…` stands in a line of its own where lines were left out, and at the end of a line that alone is too long.

    Args:
        lines: about how many are shown.
        chars: what they take at most together.
    """
    whole = passage.quote.strip("\n").splitlines()
    # Two marks for what is left out would take as much.
    most = len(whole) if len(whole) <= lines + 2 else lines
    start, end = _window(passage.question, whole, most, chars)
    before = []
    if start > 0:
        # A heading or a signature says what the rest is about.
        before = [_cut(whole[0], chars // 4)]
        start, end = _window(passage.question, whole[1:], most - 1, chars - len(before[0]))
        start, end = start + 1, end + 1
        before += [LEFT_OUT] if start > 1 else []
    after = [LEFT_OUT] if end < len(whole) else []
    return [*before, *_without_empty_ends([_cut(line, chars) for line in whole[start:end]]), *after]


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
