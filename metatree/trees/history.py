"""The history of a source: commits, the files that they touched, and the names that these files had.

A reader of version control fills the tables of the index store (see `metatree_memory_tools.git.log`); what is here
reads them, and knows nothing of where they come from. Paths are relative to the source, with `/`, as in the tree.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from metatree.storage.store import Store
from metatree.trees.layer import Layer

_COLUMNS = "number, hash, parents, at, author, subject, body, files"
_PAGE = 500


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit."""

    number: int
    """Grows from older to newer commits of a store; another one after the history was read anew."""
    hash: str
    parents: tuple[str, ...]
    at: int
    """When it was written, in seconds of Unix time."""
    author: str
    subject: str
    """First paragraph of the message, on one line."""
    body: str
    """The rest of the message."""
    files: int
    """How many files of the source it touched; 0 also where that is not known, as at the end of a shallow clone."""


@dataclass(frozen=True, slots=True)
class Touch:
    """What a commit did to a file."""

    number: int
    """That of the commit."""
    status: str
    """`A` added, `M` changed, `D` deleted, `R` renamed, `T` made something else, such as a link."""
    path: str
    """The name after the commit."""
    now: str
    """The name that the file has, or had when it was deleted."""
    old: str | None = None
    """The name before a rename."""


@dataclass(frozen=True, slots=True)
class HistoryState:
    """How far a history was read."""

    head: str
    """Hash of the commit that was checked out; empty when nothing could be read."""
    commits: int
    note: str = ""
    """What is missing and why, for people; empty when nothing is."""
    epoch: int = 0
    """Raised when commits that were known are gone; while it stays, only higher numbers come."""


def history_state(store: Store, source: str = "") -> HistoryState | None:
    """Return how far the history of a source was read, None when it was not asked for.

    Args:
        store: the index store of a tree, `tree.index`.
        source: the mount of the source; empty where a tree has one source alone.
    """
    state = Layer(store).fact(state_key(source))
    return (
        None
        if state is None
        else HistoryState(state["head"], state["commits"], state["note"], state["epoch"])
    )


def history_sources(store: Store) -> list[str]:
    """Return the mounts of the sources whose history was asked for; `""` where a tree has one source alone."""
    return [key.partition(":")[2] for key in Layer(store).fact_keys(state_key(""))]


def state_key(source: str) -> str:
    """Return the key of `meta` that the state of a history is kept under."""
    return f"history:{source}"


def commits(store: Store, source: str = "", *, since: int = 0) -> Iterator[Commit]:
    """Yield the commits of a source, newest first; memory stays flat.

    Args:
        store: the index store of a tree.
        source: the mount of the source.
        since: only commits with a higher number.
    """
    return (_commit(row) for row in _newest_first(store, _COLUMNS, source, since))


def messages(store: Store, source: str, since: int, most_chars: int) -> Iterator[tuple[int, str, str]]:
    """Yield number, subject and beginning of the body of the commits of a source, newest first, as `commits` does.

    Args:
        store: the index store of a tree.
        source: the mount of the source.
        since: only commits with a higher number.
        most_chars: of the body, at most so many characters.
    """
    return _newest_first(store, f"number, subject, substr(body, 1, {most_chars:d})", source, since)


def _newest_first(store: Store, columns: str, source: str, since: int) -> Iterator[tuple[Any, ...]]:
    """Yield columns, of which the first is `number`, of the commits of a source."""
    below = 1 << 62
    while rows := store.rows(
        f"SELECT {columns} FROM history_commit WHERE number < ? AND number > ? AND source = ?"
        " ORDER BY number DESC LIMIT ?",
        (below, since, source, _PAGE),
    ):
        yield from rows
        below = rows[-1][0]


def commits_of(store: Store, path: str, source: str = "", *, limit: int = -1) -> list[Commit]:
    """Return the commits that touched a file under any of its names, newest first.

    Args:
        store: the index store of a tree.
        path: a name that the file has or had.
        source: the mount of the source.
        limit: at most so many, the newest; negative for all.
    """
    rows = store.rows(
        f"SELECT DISTINCT {_COLUMNS} FROM history_touch JOIN history_commit USING (number) WHERE file ="
        " (SELECT file FROM history_name WHERE source = ? AND path = ?) ORDER BY number DESC LIMIT ?",
        (source, path, limit),
    )
    return [_commit(row) for row in rows]


def said_of(store: Store, path: str, source: str = "", *, limit: int = -1) -> list[tuple[str, int, str, str]]:
    """Return hash, time, author and subject of what `commits_of` returns."""
    return store.rows(
        "SELECT hash, at, author, subject FROM history_commit WHERE number IN (SELECT number FROM history_touch"
        " WHERE file = (SELECT file FROM history_name WHERE source = ? AND path = ?)) ORDER BY number DESC LIMIT ?",
        (source, path, limit),
    )


def commits_below(store: Store, folder: str, source: str = "", *, limit: int = -1) -> list[Commit]:
    """Return the commits that touched files which lie in a folder now, newest first; `.` for the whole source."""
    inside = ""
    place: tuple[str, ...] = ()
    if folder not in ("", "."):
        inside = (
            " AND number IN (SELECT touched.number FROM history_file AS file JOIN history_touch AS touched"
            " ON touched.file = file.number WHERE file.source = ? AND file.path >= ? AND file.path < ?)"
        )
        place = (source, folder + "/", folder + "0")  # `0` is the character behind `/`
    rows = store.rows(
        f"SELECT {_COLUMNS} FROM history_commit WHERE source = ?{inside} ORDER BY number DESC LIMIT ?",
        (source, *place, limit),
    )
    return [_commit(row) for row in rows]


def find_commits(store: Store, prefix: str, source: str | None = None) -> list[Commit]:
    """Return the commits whose hash begins so, at most ten; of any source with None."""
    if not prefix or not set(prefix.lower()) <= set("0123456789abcdef"):
        return []
    rows = store.rows(
        f"SELECT {_COLUMNS} FROM history_commit WHERE hash >= ? AND hash < ? AND (? IS NULL OR source = ?)"
        " ORDER BY number DESC LIMIT 10",
        (prefix.lower(), prefix.lower() + "g", source, source),
    )
    return [_commit(row) for row in rows]


def touches(store: Store, numbers: Iterable[int]) -> dict[int, list[Touch]]:
    """Return what commits did to files, by the number of the commit, in order of paths."""
    by_commit: dict[int, list[Touch]] = {}
    rows = store.rows(
        "SELECT history_touch.number, status, history_touch.path, history_file.path, old FROM history_touch"
        " JOIN history_file ON history_file.number = file"
        " WHERE history_touch.number IN (SELECT value FROM json_each(?)) ORDER BY history_touch.path",
        (json.dumps(list(numbers)),),
    )
    for row in rows:
        by_commit.setdefault(row[0], []).append(Touch(*row))
    return by_commit


def all_touches(store: Store, source: str = "", *, since: int = 0) -> Iterator[tuple[int, str]]:
    """Yield the number of each commit with the present path of each file that it touched, oldest commit first.

    Files that were deleted are among them, under their last names.
    """
    page = "SELECT number FROM history_commit WHERE source = ? AND number > ? ORDER BY number LIMIT ?"
    while (last := store.value(f"SELECT max(number) FROM ({page})", (source, since, _PAGE))) is not None:
        yield from store.rows(
            "SELECT history_touch.number, history_file.path FROM history_touch"
            f" JOIN history_file ON history_file.number = file WHERE history_touch.number IN ({page}) ORDER BY 1, 2",
            (source, since, _PAGE),
        )
        since = last


def names_of(store: Store, path: str, source: str = "") -> list[str]:
    """Return all names that a file had, newest first; the path itself when nothing is known of it."""
    rows = store.rows(
        "SELECT path, max(number) FROM history_touch WHERE file ="
        " (SELECT file FROM history_name WHERE source = ? AND path = ?) GROUP BY path ORDER BY 2 DESC",
        (source, path),
    )
    return [row[0] for row in rows] or [path]


def _commit(row: tuple[Any, ...]) -> Commit:
    number, name, parents, *rest = row
    return Commit(number, name, tuple(parents.split()), *rest)
