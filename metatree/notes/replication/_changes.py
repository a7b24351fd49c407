"""What people and agents add to a tree, as changes that go from machine to machine.

A change names one row of the memory layer (a node, or what is said of a built node) or one flag, and says all of
it, or that it is gone. Whoever applies the same changes in the same order has the same memory; the last one to say
something of a row wins. Parents are named as they were requested: where one is missing in a copy, its node hangs under
the nearest that is there, as it does when a source changes.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, Final

from metatree.node import Node, Source, digest_of
from metatree.notes.feedback import FLAG, flag_ids
from metatree.notes.notes import erase, note_text
from metatree.notes.placement import MEMORY_KIND
from metatree.notes.replication._change_schema import RowChange, is_well_formed
from metatree.notes.replication._move_conflicts import attach_at_root, may_attach
from metatree.trees.layer import ROOT, Layer
from metatree.trees.overlay import above
from metatree.trees.tree import Tree

_PLACE: Final = "ifnull(home, parent), position"
_log = logging.getLogger("metatree")
_OVERRIDE_COLUMNS: Final = ("parent", "position", "hidden", "title", "description", "provenance", "basis")


def changes_since(tree: Tree, since: int) -> tuple[list[RowChange], int]:
    """Return what changed in the memory layer of a tree after a number, in order, and the number to go on from."""
    layer = Layer(tree.memory)
    with tree.memory.transaction():
        last = layer.last_seq()
        ids = dict.fromkeys(node_id for _, node_id, _ in layer.changes(since, last) if node_id != ROOT)
        return [change for node_id in ids for change in _changes_of(layer, node_id)], last


def flag_changes(tree: Tree, known: Collection[str]) -> list[RowChange]:
    """Return which flags came and which went, compared with the ids of those that were there; what they say stays."""
    layer, now = Layer(tree.memory), set(flag_ids(tree.memory))
    came = [RowChange("flag", flag, _json(layer.fact(flag))) for flag in sorted(now.difference(known))]
    return came + [RowChange("flag", flag, None) for flag in sorted(set(known) - now)]


def _changes_of(layer: Layer, node_id: str) -> Iterable[RowChange]:
    body = _override_body(layer, node_id)
    node = _node_body(layer, node_id)
    if body is not None:
        yield RowChange("override", node_id, body)
    if node is not None or body is None:
        yield RowChange("node", node_id, node)


def _node_body(layer: Layer, node_id: str, imported: bool | None = None) -> str | None:
    """Return what a node row says, None when there is none or it hangs nowhere.

    Args:
        imported: say so of whether it came by an import; None for what is so.
    """
    place = layer.store.row(f"SELECT {_PLACE}, parent FROM node WHERE id = ?", (node_id,))
    if place is None or place[2] is None:
        return None
    node = layer.node(node_id)
    assert node is not None
    source = node.source
    links = layer.store.rows(
        "SELECT source, kind, target FROM link WHERE source = :id OR target = :id ORDER BY 1, 2, 3",
        {"id": node_id},
    )
    return _json(
        {
            "parent": place[0],
            "position": place[1],
            "kind": node.kind,
            "title": node.title,
            "description": node.description,
            "content": node.content,
            "source": source
            and [source.type, source.path, source.start_line, source.end_line, list(map(list, source.parts))],
            "provenance": dict(node.provenance),
            "attributes": dict(node.attributes),
            "links": [list(link) for link in links],
        }
        | ({"imported": True} if (layer.is_imported(node_id) if imported is None else imported) else {})
    )


def _override_body(layer: Layer, node_id: str) -> str | None:
    row = layer.store.row(
        f"SELECT {_PLACE}, hidden, title, description, provenance, basis FROM override WHERE id = ?",
        (node_id,),
    )
    return None if row is None else _json(dict(zip(_OVERRIDE_COLUMNS, row, strict=True)))


def apply_changes(tree: Tree, changes: Sequence[RowChange]) -> int:
    """Make rows of the memory layer say what changes say, in their order; return how many were changed.

    A row that says so already is left alone, so that it does not count as a change here. A change out of form is
    logged and skipped. The caller holds a transaction of the memory.
    """
    layer, count = Layer(tree.memory), 0
    nodes: list[RowChange] = []
    for change in changes:
        if not is_well_formed(change):
            _log.warning("a change of %s %.100r is out of form and left out", change.what, change.id)
        elif change.what == "flag":
            count += _apply_flag(layer, change)
        elif change.what == "override":
            count += _apply_override(tree, layer, change)
        elif change.body is None:
            count += _apply_removal(tree, layer, change.id)
        else:
            nodes.append(change)
    pending = {change.id for change in nodes}
    while nodes:  # parents before their children, whatever changed last
        ready = [c for c in nodes if json.loads(c.body or "")["parent"] not in pending - {c.id}] or nodes[:1]
        for change in ready:
            count += _apply_node(tree, layer, change)
            pending.discard(change.id)
        nodes = [change for change in nodes if change.id in pending]
    tree._overlay.wrote()
    return count


def _apply_node(tree: Tree, layer: Layer, change: RowChange) -> int:
    body = json.loads(change.body or "")
    imported = body.get("imported") is True  # a change may say so of a row, and none takes it back
    if imported and change.id in tree and not layer.has(change.id):
        _log.warning("a node of somebody else has the id %.100r of a built one and is left out", change.id)
        return 0
    same = _node_body(layer, change.id, imported) == change.body
    if imported:
        layer.mark_imported(change.id)
    if same:
        return 0
    parent, position = str(body["parent"]), int(body["position"])
    node = _node(change.id, body)
    tree._overlay.wrote()
    place = next((i for i in chain([parent], above(parent)) if i in tree and i != node.id), ROOT)
    if not may_attach(tree, layer, node.id, place):
        place = parent = ROOT
    known = layer.has(node.id)
    if known:
        layer.rewrite(layer.next_seq(), node)
    else:
        layer.insert([(layer.next_seq(), node, place, position)])
    layer.put(node.id, layer.next_seq(), place, position, None if place == parent else parent)
    if not known:
        _gather_children(tree, layer, node.id)
    for source, kind, target in body["links"]:
        layer.store.execute(
            "INSERT OR IGNORE INTO link(source, kind, target) VALUES (?, ?, ?)", (source, kind, target)
        )
    if node.kind == MEMORY_KIND and node.content is not None and node.provenance.get("by") == "remember":
        note_text(tree, node)
    return 1


def _apply_removal(tree: Tree, layer: Layer, node_id: str) -> int:
    node = layer.node(node_id)
    if node is not None:
        tree._overlay.wrote()
        _leave_children(tree, layer, node_id)
        if node_id in tree:
            erase(tree, layer, (tree.get(node_id),))
        else:
            layer.erase(layer.next_seq(), [node_id])
    elif not layer.store.row("SELECT 1 FROM gone WHERE id = ?", (node_id,)):
        layer.erase(layer.next_seq(), [node_id])  # the text index of a copy may know it
    else:
        return 0
    return 1


def _leave_children(tree: Tree, layer: Layer, node_id: str) -> None:
    """Hang what lies under a node that goes where it would hang in a copy that never had the node.

    What went with it on the other machine has a change of its own; what is still here came from elsewhere meanwhile.
    """
    place = next((each for each in above(node_id) if each in tree), ROOT)
    for table in ("node", "override"):
        rows = layer.store.rows(f"SELECT id, position, home FROM {table} WHERE parent = ?", (node_id,))
        for child, position, home in rows:
            missed = home or node_id
            if table == "node":
                layer.put(child, layer.next_seq(), place, position, missed)
            else:
                tree._overlay.put_override(layer.next_seq(), child, parent=place, home=missed)
    tree._overlay.wrote()


def _gather_children(tree: Tree, layer: Layer, node_id: str) -> None:
    """Hang what missed a node under it, now that it is there."""
    tree._overlay.wrote()
    for child, position in layer.store.rows("SELECT id, position FROM node WHERE home = ?", (node_id,)):
        if may_attach(tree, layer, child, node_id):
            layer.put(child, layer.next_seq(), node_id, position)
            tree._overlay.wrote()
        else:
            attach_at_root(tree, layer, child)
    for (child,) in layer.store.rows("SELECT id FROM override WHERE home = ?", (node_id,)):
        if may_attach(tree, layer, child, node_id):
            tree._overlay.put_override(layer.next_seq(), child, parent=node_id, home=None)
        else:
            attach_at_root(tree, layer, child)


def _apply_flag(layer: Layer, change: RowChange) -> int:
    if not change.id.startswith(FLAG) or (layer.fact(change.id) is None) == (change.body is None):
        return 0
    if change.body is None:
        return layer.drop_fact(change.id)
    layer.set_fact(change.id, json.loads(change.body))
    return 1


def _apply_override(tree: Tree, layer: Layer, change: RowChange) -> int:
    if change.body is None or tree.index is tree.memory or _override_body(layer, change.id) == change.body:
        return 0
    body: dict[str, Any] = json.loads(change.body)
    fields = {name: body[name] for name in _OVERRIDE_COLUMNS} | {"home": None}
    parent = body["parent"]
    if parent is not None:
        tree._overlay.wrote()
        place = next((i for i in chain([parent], above(parent)) if i in tree), ROOT)
        if not may_attach(tree, layer, change.id, place):
            fields |= {"parent": ROOT}
        elif place != parent:
            fields |= {"parent": place, "home": parent}
    tree._overlay.put_override(layer.next_seq(), change.id, **fields)
    return 1


def _node(node_id: str, body: dict[str, Any]) -> Node:
    source = None
    if body["source"] is not None:
        kind, path, first, last, parts = body["source"]
        ranges = tuple((int(a), int(b)) for a, b in parts)
        source = Source(type=kind, path=path, start_line=first, end_line=last, parts=ranges)
    node = Node(
        node_id,
        body["title"],
        body["description"],
        body["content"],
        body["kind"],
        source,
        body["provenance"],
        body["attributes"],
    )
    return replace(node, digest=digest_of(node))


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
