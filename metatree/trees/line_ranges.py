"""Passages that share no lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")


def without_shared_lines(
    passages: Iterable[T],
    place_of: Callable[[T], tuple[str, Sequence[int] | None]],
    *,
    most: int | None = None,
) -> list[T]:
    """Return the passages that share no line with one before them; those without lines are kept.

    Args:
        passages: the best first; no more are taken than are needed.
        place_of: the file or node of a passage, with its first and last line.
        most: how many are returned at most.

    Example:
        >>> without_shared_lines([("a", (1, 4)), ("a", (4, 9)), ("b", (4, 9)), ("a", (5, 6))], lambda each: each)
        [('a', (1, 4)), ('b', (4, 9)), ('a', (5, 6))]
    """
    kept: list[T] = []
    taken: list[tuple[str, int, int]] = []
    for passage in passages:
        if most is not None and len(kept) >= most:
            break
        place, lines = place_of(passage)
        if lines is not None:
            first, last = lines
            if any(place == other and first <= end and begin <= last for other, begin, end in taken):
                continue
            taken.append((place, first, last))
        kept.append(passage)
    return kept
