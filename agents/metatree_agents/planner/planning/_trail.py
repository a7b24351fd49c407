"""A trail: what a depth-first search has changed, so that going back costs what going on did.

Planning a goal so costs its depth and its order constraints, however many goals there are. Lost: a network of its own
for each place of the search, whose copies made planning cubic.

Source: Warren 1983, "An abstract Prolog instruction set" (the trail).
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable
from typing import Any


class Trail:
    """Changes dictionaries, sets of bits and sorted lists, and takes the changes back."""

    __slots__ = ("_log", "changes")

    def __init__(self) -> None:
        self._log: list[tuple[Callable[..., Any], Any, Any, Any]] = []
        self.changes = 0
        """How many there were; those that were taken back, too."""

    def mark(self) -> int:
        """Return a place to come back to."""
        return len(self._log)

    def undo(self, mark: int) -> None:
        """Take back what was changed since a place was marked."""
        log = self._log
        while len(log) > mark:
            undo, where, key, value = log.pop()
            undo(where, key, value)

    def _noted(self, undo: Callable[..., Any], where: Any, key: Any, value: Any = None) -> None:
        self.changes += 1
        self._log.append((undo, where, key, value))

    def put(self, into: dict[Any, Any], key: Any, value: Any) -> None:
        """Set an entry of a dictionary."""
        if key in into:
            self._noted(dict.__setitem__, into, key, into[key])
        else:
            self._noted(dict.pop, into, key)
        into[key] = value

    def drop(self, into: dict[Any, Any], key: Any) -> None:
        """Delete an entry of a dictionary."""
        self._noted(dict.__setitem__, into, key, into.pop(key))

    def set_bit(self, into: dict[Any, int], key: Any, bit: int) -> None:
        """Set a bit, by its number, in an entry that is a set of bits; only the number is kept."""
        before = into.get(key, 0)
        if not before >> bit & 1:
            self._noted(_clear_bit, into, key, bit)
            into[key] = before | 1 << bit

    def insert(self, into: list[Any], value: Any) -> None:
        """Insert into a sorted list."""
        self._noted(_remove, into, value)
        insort(into, value)

    def remove(self, into: list[Any], value: Any) -> None:
        """Remove from a sorted list."""
        self._noted(_insert, into, value)
        _remove(into, value)


def _clear_bit(into: dict[Any, int], key: Any, bit: int) -> None:
    into[key] ^= 1 << bit


def _remove(into: list[Any], value: Any, _: Any = None) -> None:
    del into[bisect_left(into, value)]


def _insert(into: list[Any], value: Any, _: Any = None) -> None:
    insort(into, value)
