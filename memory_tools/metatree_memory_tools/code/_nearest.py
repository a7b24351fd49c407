"""Files by how their paths end, and which of them lies nearest to a folder, in a time that does not grow with them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

_MOST_PARTS = 8
"""So many parts of an end choose among files; what stands before them must fit to the one that was chosen."""


class NearestFiles:
    """Files that one looks for by the end of their path.

    Args:
        files: what each is looked for by, and its path; the same path may come by several names.
        rank: of those that share as many folders the one of the lowest rank is meant: by default the shortest path.
    """

    def __init__(self, files: Iterable[tuple[str, str]], *, rank: Callable[[str], Any] = len) -> None:
        self._rank = rank
        self._named: dict[str, list[tuple[str, str]]] = {}
        for key, path in files:
            self._named.setdefault(key.rpartition("/")[2], []).append((key, path))
        self._tables: dict[tuple[str, int], dict[str, dict[str, tuple[str, str]]]] = {}
        """By the last part and the number of parts: by end, then by folder, the best file in it."""

    def nearest(self, end: str, near: str) -> str | None:
        """Return the path whose name ends so, of several the one that shares most folders with `near`."""
        parts = end.split("/")
        few = parts[-_MOST_PARTS:]
        below = self._table(few[-1], len(few)).get("/".join(few))
        if below is None:
            return None
        while near not in below and near:
            near = near.rpartition("/")[0]
        key, path = below[near]
        return path if len(few) == len(parts) or f"/{key}".endswith(f"/{end}") else None

    def _table(self, last: str, parts: int) -> dict[str, dict[str, tuple[str, str]]]:
        if last not in self._named:
            return {}
        if (table := self._tables.get((last, parts))) is None:
            table = self._tables[last, parts] = {}
            for key, path in self._named[last]:
                split = key.split("/")
                if len(split) >= parts:
                    self._add(table.setdefault("/".join(split[-parts:]), {}), key, path)
        return table

    def _add(self, below: dict[str, tuple[str, str]], key: str, path: str) -> None:
        folder = path.rpartition("/")[0]
        while True:
            if folder not in below or self._rank(path) < self._rank(below[folder][1]):
                below[folder] = key, path
            if not folder:
                return
            folder = folder.rpartition("/")[0]
