"""Where nodes are when a memory layer lies over a built layer.

The built layer can be made again from its sources at any time; the memory layer says what people and agents added,
moved, hid or described otherwise, and refers to built nodes by id. Whatever such a reference points to may vanish
and come back with the sources: then its node hangs under the nearest folder or file that is left, and its *home*
is kept, so that it returns.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

from metatree.node import Node
from metatree.trees.layer import ROOT, Layer, Placed

PREFIX_ENDS = (("/", "0"), ("::", ":;"), ("#", "$"))
"""How ids below an id go on, each with the first text after all that begin so."""

_REFERENCES = (
    ("node", "parent"),
    ("node", "home"),
    ("override", "parent"),
    ("override", "home"),
    ("override", "id"),
    ("link", "source"),
    ("link", "target"),
)
"""Where a memory layer names nodes of the built layer."""


@dataclass(frozen=True, slots=True)
class Override:
    """What the memory layer says about one built node."""

    id: str
    parent: str | None = None
    position: int | None = None
    home: str | None = None
    hidden: bool = False
    title: str | None = None
    description: str | None = None
    provenance: str | None = None


_OVERRIDE = "id, parent, position, home, hidden, title, description, provenance"


class Overlay:
    """A built layer, or none, with a memory layer over it, seen as one tree.

    A node is in the tree when climbing from it reaches the root without meeting a hidden or detached node.
    """

    def __init__(self, memory: Layer, built: Layer | None) -> None:
        self.memory = memory
        self.built = built
        self._memory_version = -1
        self._built_version = -1
        self._laid: bool | None = None
        self._loose: bool | None = None

    # freshness

    def sync(self) -> None:
        """Notice what other connections have written since the last call."""
        version = self.memory.store.version()
        if version != self._memory_version:
            self._memory_version = version
            self.wrote()
        if self.built is None:
            return
        version = self.built.store.version()
        if version != self._built_version:
            self._built_version = version
            self.anchor()

    def wrote(self) -> None:
        """Forget what was concluded from the memory layer: it is being changed."""
        self._laid = self._loose = None

    @property
    def laid(self) -> bool:
        """Whether the memory layer says anything about nodes, so that the built layer alone is not the tree."""
        if self._laid is None:
            sql = "SELECT EXISTS(SELECT 1 FROM node) OR EXISTS(SELECT 1 FROM override)"
            self._laid = bool(self.memory.store.rows(sql)[0][0])
        return self._laid

    @property
    def loose(self) -> bool:
        """Whether there are rows that are not in the tree; while there are none, a row is proof enough."""
        if self._loose is None:
            hidden = "SELECT 1 FROM override WHERE hidden LIMIT 1"
            self._loose = self.memory.has_detached() or self.memory.store.row(hidden) is not None
        return self._loose

    # looking up

    def chain(self, node_id: str) -> list[str] | None:
        """Return the ids from a node up to the root, None when the node is not in the tree."""
        if self.built is None or not self.laid:
            ids = (self.memory if self.built is None else self.built).chain(node_id)
            return ids if ids and ids[-1] == ROOT else None
        found: list[str] = []
        current: str | None = node_id
        while current is not None and current not in found:
            place = self.memory.place(current)
            if place is not None:
                found.append(current)
                current = place[0]
                continue
            current = self._climb_built(current, found)
            if current == ROOT and found[-1] == ROOT:
                return found
        return None

    def _climb_built(self, node_id: str, found: list[str]) -> str | None:
        """Climb in the built layer while the memory layer says nothing else; return where to go on."""
        assert self.built is not None
        ids = self.built.chain(node_id)
        rows = self._said(ids)
        covered = {row[0] for row in rows if row[1] == "node"}
        said = {row[0]: row[2:] for row in rows if row[1] == "override"}
        for current in ids:
            hidden, parent = said.get(current, (0, None))
            if hidden:
                return None
            if current in covered and current != node_id:
                return current
            found.append(current)
            if current == ROOT:
                return ROOT
            if parent is not None:
                return str(parent)
        return None

    def _said(self, ids: list[str]) -> list[tuple[Any, ...]]:
        return self.memory.store.rows(
            "SELECT id, 'node', 0, parent FROM node WHERE id IN (SELECT value FROM json_each(:ids)) UNION ALL"
            " SELECT id, 'override', hidden, parent FROM override WHERE id IN (SELECT value FROM json_each(:ids))",
            {"ids": json.dumps(ids)},
        )

    def contains(self, node_id: str, *, row: bool = False) -> bool:
        """Whether a node is in the tree; `row` tells that one of the layers is known to have a row for it."""
        if not self.loose:
            return row or self.memory.has(node_id) or (self.built is not None and self.built.has(node_id))
        return self.chain(node_id) is not None

    def node(self, node_id: str) -> Node | None:
        """Return a node with the content that is kept, None when it is not in the tree."""
        if self.loose and self.chain(node_id) is None:
            return None
        node = self.memory.node(node_id) if self.built is None or self.laid else None
        if node is not None or self.built is None:
            return node
        node = self.built.node(node_id)
        if node is None or not self.laid:
            return node
        return _described(node, self.override(node_id))

    def nodes(self, ids: list[str]) -> dict[str, tuple[Node, str | None]]:
        """Return those of the nodes that are in the tree, with the content that is kept, each with its parent."""
        if not self.loose and (self.built is None or not self.laid):
            return (self.memory if self.built is None else self.built).nodes(ids)
        found = {}
        for node_id in ids:
            node, chain = self.node(node_id), self.chain(node_id)
            if node is not None and chain is not None:
                found[node_id] = (node, chain[1] if len(chain) > 1 else None)
        return found

    def override(self, node_id: str) -> Override | None:
        """Return what the memory layer says about a built node."""
        row = self.memory.store.row(f"SELECT {_OVERRIDE} FROM override WHERE id = ?", (node_id,))
        return None if row is None else _override(row)

    def children(self, parent: str) -> list[Placed]:
        """Return the children of a node in order, with positions, without kept content; also of a detached node."""
        if self.built is None:
            return self.memory.children(parent)
        placed = self.built.children(parent)
        if not self.laid:
            return placed
        ids = [node.id for _, node in placed]
        overrides = self._overrides("id IN (SELECT value FROM json_each(?))", json.dumps(ids))
        covered = self.memory.which(ids)
        own = self.override(parent)
        if own is not None and own.hidden and self.memory.has(parent):
            placed = []  # what was added under the id of a hidden node does not take over its children
        result: list[Placed] = []
        for position, node in placed:
            said = overrides.get(node.id)
            if node.id not in covered and (said is None or not (said.hidden or said.parent)):
                result.append((position, _described(node, said)))
        for said in self._overrides("parent = ? AND NOT hidden", parent).values():
            moved = None if self.memory.has(said.id) else self.built.node(said.id)
            if moved is not None:
                result.append((said.position or 0, _described(replace(moved, content=None), said)))
        result.extend(self.memory.children(parent))
        result.sort(key=lambda pair: (pair[0], pair[1].id))
        return result

    def child_count(self, parent: str) -> int:
        """Return the number of children of a node."""
        if self.built is None:
            return self.memory.child_count(parent)
        return len(self._child_ids(parent)) if self.laid else self.built.child_count(parent)

    def child_total(self, parents: Sequence[str]) -> int:
        """Return the number of children of these nodes together."""
        if self.built is not None and self.laid:
            return sum(map(self.child_count, parents))
        return (self.memory if self.built is None else self.built).child_total(parents)

    def child_page(self, parent: str, start: int, count: int) -> list[str]:
        """Return the ids of `count` children of a node from number `start` on, in the order of `children`."""
        if self.built is None or not self.laid:
            layer = self.memory if self.built is None else self.built
            return [node_id for _, node_id in layer.child_places(parent, start=start, count=count)]
        return self._child_ids(parent)[start : start + count]

    def child_number(self, parent: str, node_id: str) -> int:
        """Return how many children of a node come before this one."""
        if self.built is None or not self.laid:
            layer = self.memory if self.built is None else self.built
            return [child for _, child in layer.child_places(parent)].index(node_id)
        return self._child_ids(parent).index(node_id)

    def _child_ids(self, parent: str) -> list[str]:
        """Return what `children` does, as ids: without reading the nodes, of which there may be very many."""
        assert self.built is not None
        own = self.override(parent)
        placed = self.built.child_places(parent)
        if own is not None and own.hidden and self.memory.has(parent):
            placed = []
        if placed:
            ids = json.dumps([node_id for _, node_id in placed])
            away = "(hidden OR parent IS NOT NULL) AND id IN (SELECT value FROM json_each(?))"
            gone = set(self._overrides(away, ids))
            gone |= self.memory.which(node_id for _, node_id in placed)
            if gone:
                placed = [place for place in placed if place[1] not in gone]
        moved = [
            (said.position or 0, said.id)
            for said in self._overrides("parent = ? AND NOT hidden", parent).values()
            if not self.memory.has(said.id) and self.built.has(said.id)
        ]
        return [node_id for _, node_id in sorted([*placed, *moved, *self.memory.child_places(parent)])]

    def _overrides(self, condition: str, value: str) -> dict[str, Override]:
        rows = self.memory.store.rows(f"SELECT {_OVERRIDE} FROM override WHERE {condition}", (value,))
        return {row[0]: _override(row) for row in rows}

    def below(self, node_id: str) -> Iterator[str]:
        """Yield the ids under a node, also under one that is not in the tree."""
        pending = [node_id]
        while pending:
            for _, node in self.children(pending.pop()):
                yield node.id
                pending.append(node.id)

    def covered(self, node_id: str) -> Iterator[str]:
        """Yield the ids that the built layer has under a node of its own which a node of the memory layer covers."""
        if self.built is None or not self.memory.has(node_id) or not self.built.has(node_id):
            return
        pending = [node_id]
        while pending:
            for _, node in self.built.children(pending.pop()):
                yield node.id
                pending.append(node.id)

    def count(self) -> int:
        """Return the number of nodes in the tree; all that is deleted and not purged yet is looked through."""
        rows = sum(layer.count() for layer in self._layers())
        return rows - sum(1 for _ in self._covered()) - len(self._away())

    def kinds(self) -> dict[str, int]:
        """Return how many nodes of each kind are in the tree; costs as `count` does."""
        found: Counter[str] = Counter()
        for layer in self._layers():
            found.update(dict(layer.store.rows("SELECT kind, count(*) FROM node GROUP BY kind")))
        for node_id in self._covered():
            assert self.built is not None
            found[_kind(self.built, node_id)] -= 1
        for node_id in self._away():
            layer = self.memory if self.built is None or self.memory.has(node_id) else self.built
            found[_kind(layer, node_id)] -= 1
        return {kind: number for kind, number in sorted(found.items()) if number}

    def _layers(self) -> list[Layer]:
        if self.built is None:
            return [self.memory]
        return [self.built, self.memory] if self.laid else [self.built]

    def _covered(self) -> Iterator[str]:
        """Yield the ids that both layers have a row for."""
        last = ""
        while self.built is not None and self.laid:
            sql = "SELECT id FROM node WHERE id > ? ORDER BY id LIMIT 1000"
            ids = [row[0] for row in self.memory.store.rows(sql, (last,))]
            if not ids:
                return
            yield from self.built.which(ids)
            last = ids[-1]

    def _away(self) -> set[str]:
        """Return the ids that have a row and are not in the tree."""
        away: set[str] = set()
        for top in self._tops() if self.loose else ():
            if self.chain(top) is None:
                away.update(self.below(top))
                if any(layer.has(top) for layer in self._layers()):
                    away.add(top)
        return away

    def _tops(self) -> Iterator[str]:
        """Yield the ids under which everything lies that is not in the tree."""
        sql = "SELECT id FROM node WHERE parent IS NULL AND id <> ?"
        yield from (row[0] for row in self.memory.store.rows(sql, (ROOT,)))
        if self.built is None:
            return
        for (node_id,) in self.memory.store.rows("SELECT id FROM override WHERE hidden"):
            if self.memory.has(node_id):
                yield from (child for _, child in self.built.child_places(node_id))
            else:
                yield node_id

    # saying something about built nodes

    def put_override(self, seq: int, node_id: str, **fields: Any) -> None:
        """Say something about a built node; fields that are not given stay as they are."""
        names = ", ".join(fields)
        marks = ", ".join("?" * len(fields))
        sets = ", ".join(f"{name} = excluded.{name}" for name in fields)
        self.memory.store.execute(
            f"INSERT INTO override(seq, id, {names}) VALUES (?, ?, {marks})"
            f" ON CONFLICT(id) DO UPDATE SET seq = excluded.seq, {sets}",
            (seq, node_id, *fields.values()),
        )
        self.wrote()

    # anchors

    def anchor(self) -> None:
        """Hang what refers to built nodes where these are now: after renames, and what vanished or came back."""
        assert self.built is not None
        state = {
            "store": self.built.fact("generation"),
            "seq": self.built.last_seq(),
            "rename": self._last_rename(),
        }
        done = self.memory.fact("anchored") or {}
        if done == state or self.memory.store.read_only:
            return
        with self.memory.store.transaction():
            self.wrote()
            if self.laid:
                done = self.memory.fact("anchored") or {}
                same = done.get("store") == state["store"]
                if same:
                    self._follow_renames(done["rename"])
                self._hang(done["seq"] if same else None)
            self.memory.set_fact("anchored", state)
            self.wrote()

    def _last_rename(self) -> int:
        assert self.built is not None
        return int(self.built.store.rows("SELECT ifnull(max(number), 0) FROM rename")[0][0])

    def _follow_renames(self, since: int) -> None:
        assert self.built is not None
        store = self.memory.store
        for old, new in self.built.store.rows(
            "SELECT old, new FROM rename WHERE number > ? ORDER BY number", (since,)
        ):
            for table, column in _REFERENCES:
                change = f"UPDATE OR IGNORE {table} SET {column} = ? || substr({column}, ?) WHERE {column}"
                store.execute(f"{change} = ?", (new, len(old) + 1, old))
                for begin, end in PREFIX_ENDS:
                    store.execute(
                        f"{change} >= ? AND {column} < ?", (new, len(old) + 1, old + begin, old + end)
                    )

    def _hang(self, since: int | None) -> None:
        """Look at every reference that may have changed; with `since` None at every reference there is."""
        assert self.built is not None
        store = self.memory.store
        for table in ("node", "override"):
            own = f"SELECT id, ifnull(home, parent) FROM {table} WHERE "
            if since is None:
                rows = store.rows(f"{own} parent IS NOT NULL")
            else:
                rows = store.rows(f"{own} home IS NOT NULL")
                for parent in self._vanished(since):
                    rows += store.rows(f"{own} parent = ? AND home IS NULL", (parent,))
            for node_id, home in rows:
                place = self._nearest(home)
                away = None if place == home else home
                sql = f"UPDATE {table} SET seq = ?, parent = ?, home = ? WHERE id = ? AND (parent, home) IS NOT (?, ?)"
                store.execute(sql, (self.memory.next_seq(), place, away, node_id, place, away))

    def _vanished(self, since: int) -> Iterable[str]:
        assert self.built is not None
        return [row[0] for row in self.built.store.rows("SELECT id FROM gone WHERE seq > ?", (since,))]

    def _nearest(self, home: str) -> str:
        """Return the home itself, if it is there or was deleted on purpose, or the nearest such one above it."""
        assert self.built is not None
        for path in (home, *above(home)):
            said = self.override(path)
            if self.memory.has(path) or self.built.has(path) or (said is not None and said.hidden):
                return path
        return ROOT


def above(node_id: str) -> Iterator[str]:
    """Yield the ids that a built id says it lies under, nearest first, without the root.

    Example:
        >>> list(above("src/a.py::Class.method"))
        ['src/a.py::Class', 'src/a.py', 'src']
        >>> list(above("docs/a.md#install"))
        ['docs/a.md', 'docs']
    """
    path, mark, name = node_id.partition("::")
    while mark and "." in name:
        name = name.rpartition(".")[0]
        yield f"{path}::{name}"
    if mark:
        yield path
    else:
        path, mark, _ = node_id.rpartition("#")
        if mark:
            yield path
        else:
            path = node_id
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def _kind(layer: Layer, node_id: str) -> str:
    row = layer.store.row("SELECT kind FROM node WHERE id = ?", (node_id,))
    return str(row[0]) if row else ""


def _override(row: tuple[Any, ...]) -> Override:
    return Override(row[0], row[1], row[2], row[3], bool(row[4]), row[5], row[6], row[7])


def _described(node: Node, said: Override | None) -> Node:
    if said is None or (said.title is None and said.description is None):
        return node
    title = node.title if said.title is None else said.title
    description = node.description if said.description is None else said.description
    digest = blake2b(f"{node.digest}\0{title}\0{description}".encode(), digest_size=16).hexdigest()
    provenance = json.loads(said.provenance) if said.provenance else node.provenance
    return replace(node, title=title, description=description, digest=digest, provenance=provenance)
