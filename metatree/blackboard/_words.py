"""The words of a board's items, kept in memory for `find`, and brought up to date before each use."""

from __future__ import annotations

import re
import threading
from array import array
from collections.abc import Iterator
from typing import Final, Protocol

_WORD: Final = re.compile(r"\w+")
_PAGE: Final = 1_000
_TRIES: Final = 3
_MOST_STALE: Final = 1_000


def words_of(text: str) -> list[str]:
    """Return the words of a text, in the form that they are compared in."""
    return _WORD.findall(text.casefold())


class Changing(Protocol):
    """What changed on a board."""

    def changed_texts(self, since: tuple[int, int], limit: int) -> list[tuple[int, int, int, str]]:
        """Return number, version, whether it was removed, and text of what changed after a version and number."""
        ...

    def count_and_version(self) -> tuple[int, int]:
        """Return how many items the board has, and its version at the same moment."""
        ...


class Words:
    """An inverted index: which items hold a word. Threads may use it at once.

    An item's text gets a place, a number that counts up; a text that changed gets another one, and the old place is
    stale. A place that is stale is passed over; when too many are, the index is made anew.

    Lost: the index in tables beside the items (SQLite's FTS5 knows no word's inner part, PostgreSQL's needs another
    form of each statement; each write would pay for it, and what is removed would have to be erased there, too).
    """

    def __init__(self, rows: Changing) -> None:
        self._rows = rows
        self._lock = threading.Lock()
        self._clear()

    def _clear(self) -> None:
        self._seen = (0, 0)
        """Version and number of the last change that was read."""
        self._numbers: list[int] = []
        """The item at each place, 0 for a stale one."""
        self._place_of: dict[int, int] = {}
        self._places: dict[str, array[int]] = {}
        """The places of each word, in order."""

    def holding(self, words: list[str]) -> tuple[list[tuple[set[int], set[int]]], int]:
        """Return for each word the items that hold it, also as a part of a longer one, and those with it as a whole.

        Returns:
            Their numbers, and how many items there are.
        """
        with self._lock:
            self._catch_up()
            number_at = self._numbers.__getitem__
            found = [
                (set(self._numbers_of(word)), set(filter(None, map(number_at, self._places.get(word, ())))))
                for word in words
            ]
            return found, len(self._place_of)

    def _numbers_of(self, word: str) -> Iterator[int]:
        for known, places in self._places.items():
            if word in known:
                yield from filter(None, map(self._numbers.__getitem__, places))

    def _catch_up(self) -> None:
        """Read what changed since the last time."""
        for _ in range(_TRIES):
            self._read_changes()
            items, version = self._rows.count_and_version()
            if version != self._seen[0]:
                continue  # somebody writes meanwhile
            stale = len(self._numbers) - len(self._place_of)
            # An item that was removed and forgotten since the last time is no change that could be read.
            if items == len(self._place_of) and stale <= _MOST_STALE + items:
                break
            self._clear()
        else:
            self._read_changes()

    def _read_changes(self) -> None:
        while page := self._rows.changed_texts(self._seen, _PAGE):
            for number, _, removed, text in page:
                if (place := self._place_of.pop(number, None)) is not None:
                    self._numbers[place] = 0
                if not removed:
                    self._place_of[number] = place = len(self._numbers)
                    self._numbers.append(number)
                    for word in set(words_of(text)):
                        if (places := self._places.get(word)) is None:
                            places = self._places[word] = array("I")
                        places.append(place)
            self._seen = (page[-1][1], page[-1][0])
