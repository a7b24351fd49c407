"""Where nodes are when a memory layer lies over a built layer.

The built layer can be made again from its sources at any time; the memory layer says what people and agents added,
moved, hid or described otherwise, and refers to built nodes by id. Whatever such a reference points to may vanish
and come back with the sources: then its node hangs under the nearest folder or file that is left, and its *home*
is kept, so that it returns.

A file that is gone and one that appeared with the same bytes are a rename, and what hung on it goes along.

Lost: attaching one file to the other in SQL (one lock for both, so a build would stop those who write notes), and
copying built nodes into the memory layer (edits of the source would never show).
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import chain
from typing import Any

from metatree.errors import UnknownNode
from metatree.node import Node
from metatree.storage.trust import IMPORTED_NODE
from metatree.trees._suggest import suggest
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


_AT_ONCE = 1_000
_MOST_STEPS = 10_000_000
"""So many places are looked at for loops; what is left then goes back to where it was built."""
_OVERRIDE = "id, parent, position, home, hidden, title, description, provenance"


class _Synced(threading.local):
    """Whether this thread is within `Overlay.synced`."""

    within = False


class Overlay:
    """A built layer, or none, with a memory layer over it, seen as one tree.

    A node is in the tree when climbing from it reaches the root without meeting a hidden or detached node.
    """

    def __init__(self, memory: Layer, built: Layer | None) -> None:
        self.memory = memory
        self.built = built
        self.layers = (memory,) if built is None else (built, memory)
        self._memory_version = -1
        self._built_version = -1
        self._synced = _Synced()
        self._has_edits: bool | None = None
        self._has_hidden: bool | None = None

    # freshness

    def sync(self) -> None:
        """Notice what other connections have written since the last call; nothing new within `synced`."""
        if self._synced.within:
            return
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

    @contextmanager
    def synced(self) -> Iterator[None]:
        """Notice now what other connections have written, and not again in this thread until the block ends."""
        self.sync()
        before, self._synced.within = self._synced.within, True
        try:
            yield
        finally:
            self._synced.within = before

    def wrote(self) -> None:
        """Forget what was concluded from the memory layer: it is being changed."""
        self._has_edits = self._has_hidden = None

    @property
    def has_edits(self) -> bool:
        """Whether the memory layer says anything about nodes, so that the built layer alone is not the tree."""
        if self._has_edits is None:
            sql = "SELECT EXISTS(SELECT 1 FROM node) OR EXISTS(SELECT 1 FROM override)"
            self._has_edits = bool(self.memory.store.value(sql))
        return self._has_edits

    @property
    def has_hidden(self) -> bool:
        """Whether there are rows that are not in the tree; while there are none, a row is proof enough."""
        if self._has_hidden is None:
            hidden = "SELECT 1 FROM override WHERE hidden LIMIT 1"
            self._has_hidden = self.memory.has_detached() or self.memory.store.row(hidden) is not None
        return self._has_hidden

    @property
    def _only(self) -> Layer | None:
        """The layer that is the whole tree by itself; None while both have a say."""
        if self.built is None:
            return self.memory
        return None if self.has_edits else self.built

    # looking up

    def require(self, node_id: str) -> None:
        """Look whether a node is in the tree, as it is now; raises `UnknownNode`."""
        self.sync()
        if not self.contains(node_id):
            raise self.unknown(node_id)

    def required(self, node_id: str) -> Node:
        """Return a node with the content that is kept, as it is now; raises `UnknownNode`."""
        self.sync()
        node = self.node(node_id)
        if node is None:
            raise self.unknown(node_id)
        return node

    def required_chain(self, node_id: str) -> list[str]:
        """Return the ids from a node up to the root, as it is now; raises `UnknownNode`."""
        self.sync()
        chain = self.chain(node_id)
        if chain is None:
            raise self.unknown(node_id)
        return chain

    def unknown(self, node_id: str) -> UnknownNode:
        """Return the error for an id that is not in the tree, with what may have been meant."""
        return UnknownNode(node_id, suggestions=suggest(node_id, self.layers, self.contains))

    def chain(self, node_id: str) -> list[str] | None:
        """Return the ids from a node up to the root, None when the node is not in the tree."""
        if (layer := self._only) is not None:
            ids = layer.chain(node_id)
            return ids if ids and ids[-1] == ROOT else None
        path: list[str] = []
        current: str | None = node_id
        seen: set[str] = set()  # a loop in a damaged file ends
        while current is not None and current not in seen:
            seen.add(current)
            place = self.memory.place(current)
            if place is not None:
                path.append(current)
                current = place[0]
                continue
            current = self._climb_built(current, path)
            if current == ROOT and path[-1] == ROOT:
                return path
        return None

    def chains(self, ids: Iterable[str]) -> dict[str, list[str]]:
        """Return what `chain` does for those of some nodes that are in the tree, a few statements a level."""
        asked = list(dict.fromkeys(ids))
        above = self._above(asked, whole=True)
        result: dict[str, list[str]] = {}
        for node_id in asked:
            way: dict[str, None] = {}  # a loop in a damaged file ends
            current: str | None = node_id
            while current is not None and current in above and current not in way:
                way[current] = None
                current = above[current]
            if way and next(reversed(way)) == ROOT:
                result[node_id] = list(way)
        return result

    def _climb_built(self, node_id: str, path: list[str]) -> str | None:
        """Climb in the built layer while the memory layer says nothing else; return where to go on."""
        assert self.built is not None
        ids = self.built.chain(node_id)
        rows = self._memory_rows(ids)
        covered = {row[0] for row in rows if row[1] == "node"}
        overrides = {row[0]: row[2:] for row in rows if row[1] == "override"}
        for current in ids:
            hidden, parent = overrides.get(current, (0, None))
            if hidden:
                return None
            if current in covered and current != node_id:
                return current
            path.append(current)
            if current == ROOT:
                return ROOT
            if parent is not None:
                return str(parent)
        return None

    def _memory_rows(self, ids: list[str]) -> list[tuple[Any, ...]]:
        return self.memory.store.rows(
            "SELECT id, 'node', 0, parent FROM node WHERE id IN (SELECT value FROM json_each(:ids)) UNION ALL"
            " SELECT id, 'override', hidden, parent FROM override WHERE id IN (SELECT value FROM json_each(:ids))",
            {"ids": json.dumps(ids)},
        )

    def contains(self, node_id: str, *, row: bool = False) -> bool:
        """Whether a node is in the tree; `row` tells that one of the layers is known to have a row for it."""
        if not self.has_hidden:
            return row or self.memory.has(node_id) or (self.built is not None and self.built.has(node_id))
        return self.chain(node_id) is not None

    def node(self, node_id: str) -> Node | None:
        """Return a node with the content that is kept, None when it is not in the tree."""
        if self.has_hidden and self.chain(node_id) is None:
            return None
        if (layer := self._only) is not None:
            return layer.node(node_id)
        node = self.memory.node(node_id)
        if node is not None:
            return node
        assert self.built is not None
        node = self.built.node(node_id)
        return None if node is None else _with_override(node, self.override(node_id))

    def nodes(self, ids: list[str]) -> dict[str, tuple[Node, str | None]]:
        """Return those of the nodes that are in the tree, with the content that is kept, each with its parent."""
        if not self.has_hidden and (layer := self._only) is not None:
            return layer.nodes(ids)
        parents = self._parents(ids)
        nodes = self.memory.nodes(parents)
        built = {} if self.built is None else self.built.nodes(parents.keys() - nodes.keys())
        overrides = self._overrides("id IN (SELECT value FROM json_each(?))", json.dumps(list(built)))
        nodes |= {key: (_with_override(node, overrides.get(key)), None) for key, (node, _) in built.items()}
        return {key: (nodes[key][0], parents[key]) for key in dict.fromkeys(ids) if key in parents}

    def _parents(self, ids: Iterable[str]) -> dict[str, str | None]:
        """Return the parents of those of the nodes that are in the tree."""
        asked = list(dict.fromkeys(ids))
        above = self._above(asked, whole=self.has_hidden)
        if not self.has_hidden:  # a row is proof enough
            return {key: above[key] for key in asked if key in above}
        in_tree = {ROOT: ROOT in above}
        for key in asked:
            way: dict[str, None] = {}
            current: str | None = key
            while current is not None and current in above and current not in in_tree and current not in way:
                way[current] = None
                current = above[current]
            in_tree |= dict.fromkeys(way, current is not None and in_tree.get(current, False))
        return {key: above[key] for key in asked if in_tree.get(key)}

    def _above(self, ids: Iterable[str], *, whole: bool) -> dict[str, str | None]:
        """Return the parents of some nodes that have a row, and with `whole` of all above them; each is looked at once.

        A built node below a hidden one has none here.
        """
        layer = self._only
        above: dict[str, str | None] = {}
        # What hides all that the built layer has below it, also where the memory layer has a node in its place.
        hiding: set[str] = set()
        built_below: set[str] = set()
        pending = list(dict.fromkeys(ids))
        seen = set(pending)
        while pending:
            if layer is not None:
                above |= layer.parents(pending)
            else:
                assert self.built is not None
                rows = self._memory_rows(pending)
                known = {row[0]: row[3] for row in rows if row[1] == "node"}
                other = {row[0]: row[2:] for row in rows if row[1] == "override" and row[0] not in known}
                above |= known
                hiding |= {row[0] for row in rows if row[1] == "override" and row[2]}
                for key, parent in self.built.parents(key for key in pending if key not in known).items():
                    hidden, moved = other.get(key, (0, None))
                    if not hidden:
                        above[key] = parent if moved is None else str(moved)
                        if moved is None:
                            built_below.add(key)
            if not whole:
                break
            parents = dict.fromkeys(map(above.get, pending))
            pending = [key for key in parents if key is not None and key not in seen]
            seen.update(pending)
        for key in built_below if hiding else ():
            if above[key] in hiding:
                del above[key]
        return above

    def override(self, node_id: str) -> Override | None:
        """Return what the memory layer says about a built node."""
        row = self.memory.store.row(f"SELECT {_OVERRIDE} FROM override WHERE id = ?", (node_id,))
        return None if row is None else _override(row)

    def children(self, parent: str) -> list[Placed]:
        """Return the children of a node in order, with positions, without kept content; also of a detached node."""
        if (layer := self._only) is not None:
            return layer.children(parent)
        assert self.built is not None
        placed = [] if self._hides_children(parent) else self.built.children(parent)
        ids = [node.id for _, node in placed]
        overrides = self._overrides("id IN (SELECT value FROM json_each(?))", json.dumps(ids))
        covered = self.memory.which(ids)
        result: list[Placed] = []
        for position, node in placed:
            override = overrides.get(node.id)
            if node.id not in covered and (override is None or not (override.hidden or override.parent)):
                result.append((position, _with_override(node, override)))
        for override in self._overrides("parent = ? AND NOT hidden", parent).values():
            moved = None if self.memory.has(override.id) else self.built.node(override.id)
            if moved is not None:
                result.append(
                    (override.position or 0, _with_override(replace(moved, content=None), override))
                )
        result.extend(self.memory.children(parent))
        result.sort(key=lambda pair: (pair[0], pair[1].id))
        return result

    def child_count(self, parent: str) -> int:
        """Return the number of children of a node."""
        layer = self._only
        return len(self._child_ids(parent)) if layer is None else layer.child_count(parent)

    def child_total(self, parents: Sequence[str]) -> int:
        """Return the number of children of these nodes together."""
        layer = self._only
        return sum(map(self.child_count, parents)) if layer is None else layer.child_total(parents)

    def child_counts(self, parents: Sequence[str]) -> dict[str, int]:
        """Return the number of children of each of these nodes."""
        layer = self._only
        if layer is None:
            return {parent: self.child_count(parent) for parent in parents}
        return dict.fromkeys(parents, 0) | layer.child_counts(parents)

    def child_page(self, parent: str, start: int, count: int) -> list[str]:
        """Return the ids of `count` children of a node from number `start` on, in the order of `children`."""
        if (layer := self._only) is not None:
            return [node_id for _, node_id in layer.child_places(parent, start=start, count=count)]
        return self._child_ids(parent)[start : start + count]

    def child_number(self, parent: str, node_id: str) -> int:
        """Return how many children of a node come before this one."""
        if (layer := self._only) is not None:
            return layer.child_number(parent, node_id)
        return self._child_ids(parent).index(node_id)

    def _child_ids(self, parent: str) -> list[str]:
        """Return what `children` does, as ids: without reading the nodes, of which there may be very many."""
        if (layer := self._only) is not None:
            return [node_id for _, node_id in layer.child_places(parent)]
        assert self.built is not None
        placed = [] if self._hides_children(parent) else self.built.child_places(parent)
        if placed:
            ids = json.dumps([node_id for _, node_id in placed])
            away = "(hidden OR parent IS NOT NULL) AND id IN (SELECT value FROM json_each(?))"
            moved_ids = set(self._overrides(away, ids))
            moved_ids |= self.memory.which(node_id for _, node_id in placed)
            if moved_ids:
                placed = [place for place in placed if place[1] not in moved_ids]
        moved = [
            (override.position or 0, override.id)
            for override in self._overrides("parent = ? AND NOT hidden", parent).values()
            if not self.memory.has(override.id) and self.built.has(override.id)
        ]
        return [node_id for _, node_id in sorted([*placed, *moved, *self.memory.child_places(parent)])]

    def _hides_children(self, parent: str) -> bool:
        """Whether a node was added under the id of a hidden one, whose children it does not take over."""
        own = self.override(parent)
        return own is not None and own.hidden and self.memory.has(parent)

    def _overrides(self, condition: str, value: str) -> dict[str, Override]:
        rows = self.memory.store.rows(f"SELECT {_OVERRIDE} FROM override WHERE {condition}", (value,))
        return {row[0]: _override(row) for row in rows}

    def below(self, node_id: str) -> Iterator[str]:
        """Yield the ids under a node, also under one that is not in the tree."""
        return _under(node_id, self.children)

    def covered(self, node_id: str) -> Iterator[str]:
        """Yield the ids that the built layer has under a node of its own which a node of the memory layer covers."""
        if self.built is None or not self.memory.has(node_id) or not self.built.has(node_id):
            return iter(())
        return _under(node_id, self.built.children)

    def count(self) -> int:
        """Return the number of nodes in the tree; all that is deleted and not purged yet is looked through."""
        rows = sum(layer.count() for layer in self._layers())
        return rows - sum(1 for _ in self._covered()) - len(self._hidden_ids())

    def kinds(self) -> dict[str, int]:
        """Return how many nodes of each kind are in the tree; costs as `count` does."""
        counts: Counter[str] = Counter()
        for layer in self._layers():
            counts.update(dict(layer.store.rows("SELECT kind, count(*) FROM node GROUP BY kind")))
        for node_id in self._covered():
            assert self.built is not None
            counts[self.built.kind(node_id)] -= 1
        for node_id in self._hidden_ids():
            layer = self.memory if self.built is None or self.memory.has(node_id) else self.built
            counts[layer.kind(node_id)] -= 1
        return {kind: number for kind, number in sorted(counts.items()) if number}

    def _layers(self) -> tuple[Layer, ...]:
        return self.layers if (layer := self._only) is None else (layer,)

    def _covered(self) -> Iterator[str]:
        """Yield the ids that both layers have a row for."""
        last = ""
        while self.built is not None and self.has_edits:
            sql = "SELECT id FROM node WHERE id > ? ORDER BY id LIMIT 1000"
            ids = [row[0] for row in self.memory.store.rows(sql, (last,))]
            if not ids:
                return
            yield from self.built.which(ids)
            last = ids[-1]

    def _hidden_ids(self) -> set[str]:
        """Return the ids that have a row and are not in the tree."""
        away: set[str] = set()
        for top in self._detached_roots() if self.has_hidden else ():
            if self.chain(top) is None:
                away.update(self.below(top))
                if any(layer.has(top) for layer in self._layers()):
                    away.add(top)
        return away

    def _detached_roots(self) -> Iterator[str]:
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
        anchored = self.memory.fact("anchored") or {}
        if anchored == state or self.memory.store.read_only:
            return
        with self.memory.store.transaction():
            self.wrote()
            self._drop_in_place_of_built()
            if self.has_edits:
                anchored = self.memory.fact("anchored") or {}
                same = anchored.get("store") == state["store"]
                if same:
                    self._follow_renames(anchored["rename"])
                self._reattach(anchored["seq"] if same else None)
                self.undo_loops()
            self.memory.set_fact("anchored", state)
            self.wrote()

    def undo_loops(self) -> None:
        """Take back where built nodes were put below themselves: they were in no list any more, or in endless ones.

        No edit does that, but one that is followed by a rename on the disk, and what somebody else says of places.
        """
        store = self.memory.store
        sound = {ROOT}
        places: dict[str, str | None] = {}
        steps = 0
        for node_id, parent in store.rows("SELECT id, parent FROM override WHERE parent IS NOT NULL"):
            way, current = {node_id}, parent
            while current is not None and current not in sound and current not in way:
                if current not in places:
                    places[current] = self._place_above(current)
                way.add(current)
                current = places[current]
            steps += len(way)
            if node_id == ROOT or current == node_id or steps > _MOST_STEPS:
                store.execute("UPDATE override SET parent = NULL, position = NULL WHERE id = ?", (node_id,))
                places.pop(node_id, None)
                self.wrote()
            elif current not in way:
                sound |= way

    def _place_above(self, node_id: str) -> str | None:
        """Return the parent of a node in whichever layer has it; None for one that no layer has, or a detached one."""
        override = self.override(node_id)
        if override is not None and override.parent is not None:
            return override.parent
        place = self.memory.place(node_id) or (None if self.built is None else self.built.place(node_id))
        return None if place is None else place[0]

    def _drop_in_place_of_built(self) -> None:
        """Remove nodes of somebody else that have the id of a built one: what they say would pass for the file's."""
        assert self.built is not None
        theirs = [key.removeprefix(IMPORTED_NODE) for key in self.memory.fact_keys(IMPORTED_NODE)]
        for at in range(0, len(theirs), _AT_ONCE):
            some = self.memory.which(theirs[at : at + _AT_ONCE])
            same = sorted(some & (self.built.which(some) | {ROOT}))
            if same:
                self.memory.erase(self.memory.next_seq(), same)

    def _last_rename(self) -> int:
        assert self.built is not None
        return int(self.built.store.value("SELECT ifnull(max(number), 0) FROM rename"))

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

    def _reattach(self, since: int | None) -> None:
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
                missed_home = None if place == home else home
                sql = f"UPDATE {table} SET seq = ?, parent = ?, home = ? WHERE id = ? AND (parent, home) IS NOT (?, ?)"
                store.execute(sql, (self.memory.next_seq(), place, missed_home, node_id, place, missed_home))

    def _vanished(self, since: int) -> Iterable[str]:
        assert self.built is not None
        return [row[0] for row in self.built.store.rows("SELECT id FROM gone WHERE seq > ?", (since,))]

    def _nearest(self, home: str) -> str:
        """Return the home itself, if it is there or was deleted on purpose, or the nearest such one above it."""
        assert self.built is not None
        for path in chain([home], above(home)):
            override = self.override(path)
            if self.memory.has(path) or self.built.has(path) or (override is not None and override.hidden):
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


def _under(node_id: str, children: Callable[[str], list[Placed]]) -> Iterator[str]:
    """Yield the ids under a node, whatever says which children a node has."""
    pending = [node_id]
    while pending:
        for _, node in children(pending.pop()):
            yield node.id
            pending.append(node.id)


def _override(row: tuple[Any, ...]) -> Override:
    return Override(row[0], row[1], row[2], row[3], bool(row[4]), row[5], row[6], row[7])


def _with_override(node: Node, override: Override | None) -> Node:
    if override is None or (override.title is None and override.description is None):
        return node
    title = node.title if override.title is None else override.title
    description = node.description if override.description is None else override.description
    digest = blake2b(f"{node.digest}\0{title}\0{description}".encode(), digest_size=16).hexdigest()
    provenance = json.loads(override.provenance) if override.provenance else node.provenance
    return replace(node, title=title, description=description, digest=digest, provenance=provenance)
