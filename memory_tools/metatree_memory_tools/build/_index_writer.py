"""Writing a built layer so that only what changed is touched."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from metatree.node import Node
from metatree.trees.layer import APPENDED, BUILT_GAP, ROOT, Layer
from metatree.trees.overlay import PREFIX_ENDS
from metatree_memory_tools.build._read_file import FileNodes


class BuiltFile(NamedTuple):
    """What was recorded of a file when it was built."""

    size: int
    mtime_ns: int
    """-1 when it was too fresh for its times to tell anything."""
    digest: str
    reader: str
    ctime_ns: int
    """-1 when it was not recorded."""

    def dated(self, size: int, mtime_ns: int, ctime_ns: int) -> bool:
        """Whether a file with this size and these times is the one that was built."""
        return (size, mtime_ns) == (self.size, self.mtime_ns) and self.ctime_ns in (-1, ctime_ns)


class IndexWriter:
    """Puts files and folders into a built layer; every call belongs into a transaction of its store.

    Args:
        layer: the layer.
        mount: id of the top node that all of it lies below; empty for a tree of one folder.
    """

    def __init__(self, layer: Layer, mount: str = "") -> None:
        self.layer = layer
        self.store = layer.store
        self.mount = mount

    def within(self, column: str) -> str:
        """Return the condition in SQL that a path or an id belongs to what this writer writes.

        The mount's name is in it as a literal: a condition with parameters could not be put into any statement.
        """
        if not self.mount:
            return "1"
        name = self.mount.replace("'", "''")
        ranges = [f"{column} >= '{name}{first}' AND {column} < '{name}{last}'" for first, last in PREFIX_ENDS]
        return f"({column} = '{name}' OR {' OR '.join(ranges)})"

    def known_folders(self) -> set[str]:
        """Return the ids of the folders as they were built, without the top."""
        top = self.mount or ROOT
        sql = f"SELECT id FROM node WHERE kind = 'folder' AND id <> ? AND {self.within('id')}"
        return {row[0] for row in self.store.rows(sql, (top,))}

    def file(
        self, file: FileNodes, position: int, paths: Container[str] | None, *, fresh: bool = False
    ) -> None:
        """Put a file with all its nodes in place of what was there under its path.

        Args:
            file: the file.
            position: its place among its siblings.
            paths: those of all files and folders of the source; None when none of them looks like a part of a file.
            fresh: whether nothing is there.
        """
        if file.same:
            self.store.execute(
                "UPDATE file SET size = ?, mtime_ns = ?, ctime_ns = ? WHERE path = ?",
                (file.size, file.mtime_ns, file.ctime_ns, file.path),
            )
            return
        existing = {} if fresh else self.layer.subtree(file.path)
        nodes = file.nodes if paths is None else self._apart(file, paths, existing)
        wanted = {node.id for node, _ in nodes}
        self.erase([node_id for node_id in existing if node_id not in wanted])
        self._put(nodes, existing, position)
        self.store.execute(_PUT_FILE, _record(file))
        if file.problem:
            self.store.execute(_PUT_OMISSION, (file.path, file.problem))
        elif not fresh:
            self.store.execute("DELETE FROM omission WHERE path = ?", (file.path,))

    def new_files(self, files: Sequence[tuple[FileNodes, int]]) -> None:
        """Put in files where nothing is, each with its position: a few statements for all of them.

        None of their nodes may have the id of another file or folder; see `file`.
        """
        rows: list[tuple[int, Node, str | None, int]] = []
        seq = self.layer.next_seq()
        for file, position in files:
            places = _places(file.nodes, {}, position)
            for node, parent in file.nodes:
                rows.append((seq + len(rows), node, parent, places[node.id]))
        self.layer.insert(rows)
        self.store.execute_many(_PUT_FILE, (_record(file) for file, _ in files))
        problems = ((file.path, file.problem) for file, _ in files if file.problem)
        self.store.execute_many(_PUT_OMISSION, problems)

    def _apart(
        self, file: FileNodes, paths: Container[str], existing: Container[str]
    ) -> list[tuple[Node, str]]:
        """Return the nodes of a file, with another id for a part whose id something else has.

        That takes a file or folder whose name looks like a part of a file, such as `a.md#b` beside `a.md`.
        """
        own = {node.id for node, _ in file.nodes}
        names: dict[str, str] = {}
        for node, _ in file.nodes[1:]:
            name = node.id
            while (
                name in paths
                or (name not in existing and self.layer.has(name))
                or (name != node.id and name in own)
            ):
                name += "~"
            if name != node.id:
                names[node.id] = name
                own.add(name)
        return [
            (replace(node, id=names.get(node.id, node.id)), names.get(parent, parent))
            for node, parent in file.nodes
        ]

    def _put(
        self,
        nodes: Sequence[tuple[Node, str]],
        existing: Mapping[str, tuple[str | None, int, Node]],
        position: int,
    ) -> None:
        places = _places(nodes, existing, position)
        seq = self.layer.next_seq()
        fresh: list[tuple[int, Node, str | None, int]] = []
        moved: list[tuple[int, str]] = []
        for node, parent in nodes:
            known = existing.get(node.id)
            if known is None:
                fresh.append((seq, node, parent, places[node.id]))
                seq += 1
                continue
            if known[0] != parent:
                self.layer.put(node.id, seq, parent, places[node.id])
                seq += 1
            elif known[1] != places[node.id]:
                moved.append((places[node.id], node.id))
            if known[2].digest != node.digest:
                self.layer.rewrite(seq, node)
                seq += 1
            elif known[2] != node:
                self.layer.rewrite(None, node)
        self.layer.insert(fresh)
        self.layer.reposition(moved)

    def folder(self, node: Node, position: int) -> None:
        """Put a folder's own node in place; what lies in it is left alone."""
        existing = self.layer.node(node.id)
        place = self.layer.place(node.id)
        if existing is None or place is None:
            self.layer.insert([(self.layer.next_seq(), node, parent_of(node.id), position)])
            return
        if existing.digest != node.digest:
            self.layer.rewrite(self.layer.next_seq(), node)
        elif existing != node:
            self.layer.rewrite(None, node)
        if node.id != ROOT and place[1] != position:
            self.layer.reposition([(position, node.id)])

    def remove_file(self, path: str) -> None:
        """Take a file out, with all its nodes."""
        self.erase(list(self.layer.subtree(path)))
        self.store.execute("DELETE FROM file WHERE path = ?", (path,))
        self.store.execute("DELETE FROM omission WHERE path = ?", (path,))

    def erase(self, ids: Sequence[str]) -> None:
        """Take nodes out for good."""
        if ids:
            self.layer.erase(self.layer.next_seq(), ids)

    def renamed(self, old: str, new: str) -> None:
        """Record that what lay under one path lies under another one now."""
        self.store.execute(
            "INSERT INTO rename(seq, old, new) VALUES (?, ?, ?)", (self.layer.next_seq(), old, new)
        )

    def omissions(self, current: Mapping[str, str]) -> None:
        """Replace the omissions of paths that are no files of the tree."""
        own = self.within("path")
        sql = f"SELECT path, reason FROM omission WHERE {own} AND path NOT IN (SELECT path FROM file)"
        known = dict(self.store.rows(sql))
        self.store.execute_many(
            "DELETE FROM omission WHERE path = ?", ((path,) for path in known.keys() - current.keys())
        )
        self.store.execute_many(
            _PUT_OMISSION,
            ((path, reason) for path, reason in current.items() if known.get(path) != reason),
        )

    def status_times(self, times: Iterable[tuple[int, str]]) -> None:
        """Record the times of status changes of files that are otherwise as they were: (ctime_ns, path)."""
        self.store.execute_many("UPDATE file SET ctime_ns = ? WHERE path = ?", times)

    def links(self, source: str, kind: str, targets: Iterable[str], *, fresh: bool = False) -> None:
        """Make these the links of one kind that leave a node; `fresh` says that there are none."""
        known: set[str] = set()
        if not fresh:
            rows = self.store.rows("SELECT target FROM link WHERE source = ? AND kind = ?", (source, kind))
            known = {row[0] for row in rows}
        wanted = set(targets)
        if gone := known - wanted:
            self.store.execute_many(
                "DELETE FROM link WHERE source = ? AND kind = ? AND target = ?",
                ((source, kind, target) for target in gone),
            )
        if added := sorted(wanted - known):
            self.store.execute_many(
                "INSERT INTO link(source, kind, target) VALUES (?, ?, ?)",
                ((source, kind, target) for target in added),
            )

    def all_links(self, wanted: set[tuple[str, str, str]]) -> None:
        """Make these (source, kind, target) the links that leave any node that this writer writes."""
        rows = self.store.rows(f"SELECT source, kind, target FROM link WHERE {self.within('source')}")
        known = {(row[0], row[1], row[2]) for row in rows}
        delete = "DELETE FROM link WHERE source = ? AND kind = ? AND target = ?"
        self.store.execute_many(delete, known - wanted)
        self.store.execute_many("INSERT INTO link(source, kind, target) VALUES (?, ?, ?)", wanted - known)

    def known_files(self) -> dict[str, BuiltFile]:
        """Return what was recorded of each file when it was built, by its path in the tree."""
        rows = self.store.rows(
            f"SELECT path, size, mtime_ns, digest, reader, ctime_ns FROM file WHERE {self.within('path')}"
        )
        return {row[0]: BuiltFile._make(row[1:]) for row in rows}


def _places(
    nodes: Sequence[tuple[Node, str]],
    existing: Mapping[str, tuple[str | None, int, Node]],
    position: int,
) -> dict[str, int]:
    """Return the positions of a file's nodes, each among its siblings; those that exist keep theirs if they can."""
    children: dict[str, list[str]] = {}
    for node, parent in nodes[1:]:
        children.setdefault(parent, []).append(node.id)
    places: dict[str, int] = {nodes[0][0].id: position} if nodes else {}
    for ids in children.values():
        places.update(arrange(ids, {known: existing[known][1] for known in ids if known in existing}))
    return places


_PUT_FILE = (
    "INSERT OR REPLACE INTO file(path, size, mtime_ns, ctime_ns, digest, encoding, reader, facts)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)
_PUT_OMISSION = "INSERT OR REPLACE INTO omission(path, reason) VALUES (?, ?)"


def _record(file: FileNodes) -> tuple[Any, ...]:
    """Return what is recorded of a file, as `_PUT_FILE` has it."""
    facts = json.dumps(file.facts) if file.facts else "{}"
    times = (file.size, file.mtime_ns, file.ctime_ns)
    return (file.path, *times, file.digest, file.encoding, file.reader, facts)


def parent_of(path: str) -> str:
    """Return the id of the folder that a path of the tree lies in."""
    return path.rpartition("/")[0] or ROOT


class SourceState:
    """What is remembered of one source of a built layer between two builds: small facts by name."""

    def __init__(self, layer: Layer, mount: str) -> None:
        self._layer = layer
        self._end = f":{mount}" if mount else ""

    def get(self, name: str) -> Any:
        """Return a fact, None when there is none."""
        return self._layer.fact(name + self._end)

    def set(self, name: str, value: Any) -> None:
        """Keep a JSON value."""
        self._layer.set_fact(name + self._end, value)


def arrange(wanted: Sequence[str], known: Mapping[str, int]) -> dict[str, int]:
    """Return positions that put ids in order, and leave those that are known where they are if that is possible.

    Example:
        >>> arrange(["a", "b", "c"], {"a": 10, "c": 20})
        {'a': 10, 'b': 15, 'c': 20}
    """
    result: dict[str, int] = {}
    low, waiting = 0, list[str]()
    for node_id in wanted:
        high = known.get(node_id)
        if high is None:
            waiting.append(node_id)
            continue
        step = (high - low) // (len(waiting) + 1)
        if high <= low or not step:
            break
        for number, between in enumerate(waiting, start=1):
            result[between] = low + number * step
        result[node_id] = low = high
        waiting = []
    else:
        for node_id in waiting:
            low += BUILT_GAP
            result[node_id] = low
        if low < APPENDED:
            return result
    return {node_id: (number + 1) * BUILT_GAP for number, node_id in enumerate(wanted)}
