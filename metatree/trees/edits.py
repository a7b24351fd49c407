"""Changing a tree: what is written to the memory layer when nodes are added, described, moved and deleted.

A deleted node is detached, not erased, so deleting costs the depth; `purge` reclaims rows later, and what an index must
forget below the node is found when the index asks (`Tree.changes`).
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterable
from dataclasses import replace

from metatree.errors import UnknownNode, UserError
from metatree.node import Node, digest_of
from metatree.trees.layer import APPENDED, GAP, ROOT, Layer
from metatree.trees.overlay import Overlay

_BATCH = 5_000
_KNOWN = 100_000


class Editor:
    """Writes the changes that `Tree` is asked for; see there for what each means and raises.

    Args:
        overlay: the tree's layers.
    """

    def __init__(self, overlay: Overlay) -> None:
        self._overlay = overlay
        self._memory = overlay.memory
        self._store = overlay.memory.store
        self._built = overlay.built

    def name_files(self, nodes: Iterable[Node]) -> None:
        """Keep which files this user's program names to a tree that is made by hand: those are read, and no others."""
        if self._built is None:
            self._memory.name_files(
                node.source.path for node in nodes if node.source is not None and node.content is None
            )

    def begin_list_of_files(self) -> None:
        """Begin the list of files that may be read, with those that a tree from before there was one names."""
        rows = self._store.rows(
            "SELECT DISTINCT source_path FROM node WHERE source_path IS NOT NULL AND NOT kept"
        )
        self._memory.name_files(["", *(path for (path,) in rows)])

    def add(self, node: Node, parent: str, before: str | None, *, own: bool = True) -> Node:
        """Add a node under a parent, before another one or as the last; one that is not one's `own` names no file."""
        node = ready(node)
        with self._store.transaction():
            self._overlay.require(parent)
            self._free(node.id)
            position = self._position(parent, before)
            self._memory.insert([(self._memory.next_seq(), node, parent, position)])
            if own:
                self.name_files([node])
                self._memory.forget_imported([node.id])
            else:
                self._memory.mark_imported(node.id)
            self._overlay.wrote()
        return node

    def add_many(self, nodes: Iterable[tuple[Node, str]]) -> int:
        """Add nodes with the ids of their parents, all of them or none; return how many."""
        total = 0
        known: set[str] = set()
        with self._store.transaction():
            self._overlay.sync()
            batch: dict[str, tuple[Node, str]] = {}
            for node, parent in nodes:
                if node.id in batch:
                    raise UserError(f"node {node.id!r} comes twice: give each node an id of its own")
                if parent not in batch and parent not in known:
                    self._overlay.require(parent)
                    if len(known) > _KNOWN:
                        known.clear()
                    known.add(parent)
                batch[node.id] = (ready(node), parent)
                if len(batch) >= _BATCH:
                    total += self._add_batch(batch)
                    known.update(batch) if len(known) < _KNOWN else None
                    batch = {}
            total += self._add_batch(batch)
        return total

    def _add_batch(self, batch: dict[str, tuple[Node, str]]) -> int:
        for node_id in set().union(*(layer.which(batch) for layer in self._overlay.layers)):
            self._free(node_id)
        first = self._memory.next_seq()
        self._memory.insert(
            (seq, node, parent, APPENDED + seq * GAP)
            for seq, (node, parent) in enumerate(batch.values(), start=first)
        )
        self.name_files(node for node, _ in batch.values())
        self._memory.forget_imported(batch)
        self._overlay.wrote()
        return len(batch)

    def update(self, node: Node) -> Node:
        """Give a node other words, and one of the memory layer other content; return it."""
        with self._store.transaction():
            current = self._overlay.required(node.id)
            if node.content is None and node.content_kept and current.content is not None:
                node = replace(node, content=current.content)
            node = ready(replace(node, digest=""))
            seq = self._memory.next_seq()
            if self._memory.has(node.id):
                self._memory.rewrite(seq, node)
                if node.source != current.source:  # who gives an imported node other words names nothing
                    self.name_files([node])
                self._overlay.wrote()
                return node
            same = ("content", "kind", "source", "attributes")
            if any(getattr(node, name) != getattr(current, name) for name in same):
                raise UserError(
                    f"{node.id!r} is built from its source, only its title and description can be changed:"
                    " edit the source, or add a note below it"
                )
            assert self._built is not None
            built = self._built.node(node.id)
            assert built is not None
            self._overlay.put_override(
                seq,
                node.id,
                title=None if node.title == built.title else node.title,
                description=None if node.description == built.description else node.description,
                provenance=json.dumps(dict(node.provenance)) if node.provenance else None,
                basis=built.digest,
            )
            return self._overlay.required(node.id)

    def move(self, node_id: str, parent_id: str, before: str | None) -> None:
        """Put a node below another parent."""
        if node_id == ROOT:
            raise UserError("the root cannot be moved")
        with self._store.transaction():
            self._overlay.require(node_id)
            if node_id in self._overlay.required_chain(parent_id):
                raise UserError(f"{node_id!r} cannot be moved below itself ({parent_id!r})")
            if before == node_id:
                raise UserError(f"{node_id!r} cannot be moved before itself")
            position = self._position(parent_id, before)
            seq = self._memory.next_seq()
            if self._memory.has(node_id):
                self._memory.put(node_id, seq, parent_id, position)
            else:
                self._overlay.put_override(seq, node_id, parent=parent_id, position=position, home=None)
            self._overlay.wrote()

    def delete(self, node_id: str) -> None:
        """Take a node out, with all that lies under it."""
        if node_id == ROOT:
            raise UserError("the root cannot be deleted")
        with self._store.transaction():
            self._overlay.require(node_id)
            seq = self._memory.next_seq()
            if self._memory.has(node_id):
                self._memory.put(node_id, seq, None, 0)
                seq += 1
            if self._built is not None and self._built.has(node_id):
                self._overlay.put_override(seq, node_id, hidden=1, parent=None, position=None, home=None)
            self._overlay.wrote()

    def purge(self, rows: int) -> int:
        """Reclaim at most so many rows of what was deleted; return how many it were."""
        count = 0
        with self._store.transaction():
            while count < rows:
                deleted_rows = self._store.rows(
                    "SELECT id FROM node WHERE parent IS NULL AND id <> ? LIMIT ?",
                    (ROOT, min(1000, rows - count)),
                )
                if not deleted_rows:
                    break
                ids = [row[0] for row in deleted_rows]
                for node_id in ids:
                    self._detach_children(node_id)
                self._memory.erase(self._memory.next_seq(), ids)
                count += len(ids)
            self._overlay.wrote()
        return count

    def _detach_children(self, node_id: str) -> None:
        """Detach the children that the memory layer put under a node that is not in the tree."""
        first = self._memory.next_seq()
        rows = self._store.rows("SELECT id FROM node WHERE parent = ?", (node_id,))
        changes = [(seq, row[0]) for seq, row in enumerate(rows, start=first)]
        self._store.execute_many("UPDATE node SET seq = ?, parent = NULL, home = NULL WHERE id = ?", changes)
        rows = self._store.rows("SELECT id FROM override WHERE parent = ?", (node_id,))
        changes = [(seq, row[0]) for seq, row in enumerate(rows, start=first + len(changes))]
        hide = "UPDATE override SET seq = ?, hidden = 1, parent = NULL, home = NULL WHERE id = ?"
        self._store.execute_many(hide, changes)

    def _free(self, node_id: str) -> None:
        """Make room for a node with this id; raises `UserError` when it is in use."""
        if self._overlay.contains(node_id):
            raise UserError(f"node {node_id!r} exists: choose another id, or change it with `update`")
        self._detach_children(node_id)
        if self._memory.has(node_id):
            self._memory.erase(self._memory.next_seq(), [node_id])
        if self._built is not None and self._built.has(node_id):
            seq = self._memory.next_seq()
            self._overlay.put_override(seq, node_id, hidden=1, parent=None, position=None, home=None)
        self._overlay.wrote()

    def _position(self, parent: str, before: str | None) -> int:
        if before is None:
            return APPENDED + self._memory.next_seq() * GAP
        for _ in range(2):
            previous = None
            for position, child in self._overlay.children(parent):
                if child.id == before:
                    low = position - 2 * GAP if previous is None else previous
                    if position - low > 1:
                        return (low + position) // 2
                    break
                previous = position
            else:
                raise UnknownNode(before)
            self._spread(parent)
        raise AssertionError("spreading made no room")

    def _spread(self, parent: str) -> None:
        """Give the children of a node new positions with room between them, in the same order."""
        seq = self._memory.next_seq()
        for number, (_, child) in enumerate(self._overlay.children(parent)):
            position = APPENDED + (seq + number) * GAP
            if self._memory.has(child.id):
                self._memory.put(child.id, seq + number, parent, position)
            else:
                self._overlay.put_override(seq + number, child.id, parent=parent, position=position)
        self._overlay.wrote()


def create_root(layer: Layer, root: Node) -> None:
    """Give a layer its root and an identity; a layer that has a root keeps it."""
    with layer.store.transaction():
        if not layer.has(ROOT):
            layer.insert([(layer.next_seq(), ready(root), None, 0)])
            layer.set_fact("generation", uuid.uuid4().hex)
            layer.set_fact("made_at", time.time())


def ready(node: Node) -> Node:
    """Check what can be kept of a node, and give it a digest."""
    if not isinstance(node, Node):
        raise UserError(f"a tree holds nodes, not {type(node).__name__}: give Node(id=..., title=...)")
    if not isinstance(node.id, str) or not node.id:
        raise UserError(f"a node needs an id that is a text and not empty, not {node.id!r}")
    try:
        if node.provenance or (node.digest and node.attributes):
            json.dumps([dict(node.provenance), dict(node.attributes)])
        return node if node.digest else replace(node, digest=digest_of(node))
    except (TypeError, ValueError) as exc:
        raise UserError(
            f"node {node.id!r} has attributes or a provenance that JSON cannot hold: {exc}"
        ) from exc
