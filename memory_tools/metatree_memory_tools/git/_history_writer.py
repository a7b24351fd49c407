"""Writing a history into the index store: commits in the order of their time, and files through all their names.

Files are numbered through their names while commits are read, oldest first, so that a file's commits are one look-up.
Lost: following renames at each question, as git does (seconds for each file of a large repository).
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from metatree.storage.store import Store
from metatree.trees.history import state_key


@dataclass(frozen=True, slots=True)
class ReadCommit:
    """One commit as it was read, with what it did: (status, path, name before a rename)."""

    hash: str
    parents: str
    at: int
    author: str
    subject: str
    body: str
    touched: Sequence[tuple[str, str, str | None]]


class HistoryWriter:
    """Adds commits of one source, older ones first; every call belongs into a transaction of the store."""

    def __init__(self, store: Store, source: str) -> None:
        self.store = store
        self.source = source
        self._number = self._last("history_commit")
        self._file = self._last("history_file")
        rows = store.rows("SELECT path, file FROM history_name WHERE source = ?", (source,))
        self._names: dict[str, int] = dict(rows)
        self._paths: defaultdict[int, set[str]] = defaultdict(set)
        """The names that stand for each file: `_names` from the other side."""
        for path, file in self._names.items():
            self._paths[file].add(path)
        rows = store.rows("SELECT number, path FROM history_file WHERE source = ?", (source,))
        self._now: dict[int, str] = dict(rows)
        self._changed: set[str] = set()
        self._merged: dict[int, int] = {}
        """Of each file that was made one with another, which."""
        self._removed: set[int] = set()

    @property
    def names(self) -> int:
        """How many names the files have had."""
        return len(self._names)

    def _last(self, table: str) -> int:
        return int(self.store.rows(f"SELECT ifnull(max(number), 0) FROM {table}")[0][0])

    def add(self, commits: Iterable[ReadCommit]) -> int:
        """Add commits with what they touched; return how many."""
        rows: list[tuple[Any, ...]] = []
        touched: list[tuple[Any, ...]] = []
        for commit in commits:
            self._number += 1
            rows.append(
                (
                    self._number,
                    self.source,
                    commit.hash,
                    commit.parents,
                    commit.at,
                    commit.author,
                    commit.subject,
                    commit.body,
                    len(commit.touched),
                )
            )
            moved = self._moved({path: old for status, path, old in commit.touched if status == "R" and old})
            for status, path, old in commit.touched:
                file = moved[path] if path in moved else self._file_of(status, path)
                touched.append((file, self._number, status, path, old))
        self.store.execute_many("INSERT INTO history_commit VALUES (?,?,?,?,?,?,?,?,?)", rows)
        self.store.execute_many("INSERT OR REPLACE INTO history_touch VALUES (?,?,?,?,?)", touched)
        merged = [(self._now_of(file), file) for file in self._merged]
        self.store.execute_many("UPDATE OR REPLACE history_touch SET file = ? WHERE file = ?", merged)
        self._merged.clear()
        return len(rows)

    def _moved(self, renames: Mapping[str, str]) -> dict[str, int]:
        """Carry out the renames of one commit together, since files may swap names; return the file of each path."""
        numbers = {path: self._names.get(old) or self._new(old) for path, old in renames.items()}
        moved = set(numbers.values())
        for path in numbers:
            known, file = self._names.get(path), self._now_of(numbers[path])
            if known is not None and known not in moved and self._now.get(known) == path:
                moved.add(self._merge(known, file))
        for path, file in numbers.items():
            numbers[path] = self._now_of(file)
            self._name(path, numbers[path])
        return numbers

    def _merge(self, known: int, file: int) -> int:
        """Make one file of two: two lines of development, or two files of which one was moved over the other.

        The one with more names stays, so that a file into which thousands are moved is not renamed each time.
        """
        gone, stays = sorted((known, file), key=lambda number: len(self._paths[number]))
        self._merged[gone] = stays
        for path in self._paths.pop(gone, ()):
            self._name_alone(path, stays)
        self._now.pop(gone, None)
        self._removed.add(gone)
        return stays

    def _now_of(self, file: int) -> int:
        """Return what a file has become."""
        while file in self._merged:
            file = self._merged[file]
        return file

    def _file_of(self, status: str, path: str) -> int:
        """Return the number of the file that a name stands for at this point of the history."""
        known = self._names.get(path)
        # A file that was renamed on one line of development may still be changed under its old name on another.
        if known is None or (status == "A" and self._now.get(known) != path):
            return self._new(path)
        return known

    def _name(self, path: str, file: int) -> None:
        self._name_alone(path, file)
        self._now[file] = path

    def _name_alone(self, path: str, file: int) -> None:
        self._paths[self._names.get(path, file)].discard(path)
        self._names[path] = file
        self._paths[file].add(path)
        self._changed.add(path)

    def _new(self, path: str) -> int:
        self._file += 1
        self._name(path, self._file)
        return self._file

    def finish(self) -> None:
        """Write down the names as they are now."""
        names = [(self.source, path, self._names[path]) for path in self._changed]
        self.store.execute_many("INSERT OR REPLACE INTO history_name VALUES (?,?,?)", names)
        # Two files may have swapped their names: none keeps one while the others are written.
        files = {self._names[path] for path in self._changed}
        out = files | self._removed
        self.store.execute_many("DELETE FROM history_file WHERE number = ?", ((number,) for number in out))
        rows = [(number, self.source, self._now[number]) for number in files]
        self.store.execute_many("INSERT OR REPLACE INTO history_file VALUES (?,?,?)", rows)
        self._changed.clear()
        self._removed.clear()

    def forget(self, hashes: Iterable[str]) -> None:
        """Take commits out that are not part of the history any more."""
        store, numbers = self.store, "SELECT value FROM json_each(?)"
        rows = store.rows(
            "SELECT number FROM history_commit WHERE source = ? AND hash IN (SELECT value FROM json_each(?))",
            (self.source, json.dumps(list(hashes))),
        )
        forgotten = json.dumps([row[0] for row in rows])
        store.execute(f"DELETE FROM history_touch WHERE number IN ({numbers})", (forgotten,))
        store.execute(f"DELETE FROM history_commit WHERE number IN ({numbers})", (forgotten,))

    def clear(self) -> None:
        """Take the whole history of the source out."""
        clear_history(self.store, self.source)
        self._names, self._now, self._changed, self._removed = {}, {}, set(), set()


def clear_history(store: Store, source: str) -> None:
    """Take the history of a source out; belongs into a transaction."""
    for sql in (
        "DELETE FROM history_touch WHERE number IN (SELECT number FROM history_commit WHERE source = ?)",
        "DELETE FROM history_commit WHERE source = ?",
        "DELETE FROM history_file WHERE source = ?",
        "DELETE FROM history_name WHERE source = ?",
    ):
        store.execute(sql, (source,))
    store.execute("DELETE FROM meta WHERE key = ?", (state_key(source),))
