"""Names that no two parts of a file share: the second of a name is numbered, in the same time as the first."""

from __future__ import annotations

import re

_LONGEST = 500


class UniqueNames:
    """Hands out names, each once.

    Args:
        mark: stands between a name and its number.
        first: number of the second part of a name.

    Example:
        >>> names = UniqueNames("@")
        >>> names.take("read"), names.take("read"), names.take("read@2"), names.take("read")
        ('read', 'read@2', 'read@2@2', 'read@3')
    """

    def __init__(self, mark: str, first: int = 2) -> None:
        self._mark = mark
        self._first = first
        self._taken: set[str] = set()
        self._next: dict[str, int] = {}

    def take(self, name: str) -> str:
        """Return the name, its beginning where it is long, with the first number that nobody has when it is taken."""
        name = result = _cut(name)
        if name in self._taken:
            number = self._next.get(name, self._first)
            while (result := f"{name}{self._mark}{number}") in self._taken:
                number += 1
            self._next[name] = number + 1
        self._taken.add(result)
        return result


def prefix_of(qualified: str) -> str:
    """Return what the names of the definitions inside of one begin with.

    Example:
        >>> prefix_of("Shop.Order"), len(prefix_of("A" * 100_000))
        ('Shop.Order.', 502)
    """
    return f"{_cut(qualified)}."


def _cut(name: str) -> str:
    """Return a name, or the beginning of a long one.

    Each part has the names that it lies in: of a class whose name is a hundred thousand letters, twenty thousand
    methods took gigabytes.
    """
    return name if len(name) <= _LONGEST else f"{name[:_LONGEST]}…"


def slug(title: str) -> str:
    """Return a heading as the end of an address, as GitHub makes it.

    Example:
        >>> slug("What's new in 2.0?")
        'whats-new-in-20'
    """
    return re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") or "section"
