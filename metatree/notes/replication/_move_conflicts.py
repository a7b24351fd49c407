"""Changes of two machines that together would hang a node below itself: one moved A under B, the other B under A.

Each is right by itself, so neither machine can know. The circle is cut at the node with the smallest id, which hangs
at the top from then on: whoever has heard of all changes cuts it at the same place, in whatever order they came.
"""

from __future__ import annotations

import logging
from typing import Final

from metatree.trees.layer import ROOT, Layer
from metatree.trees.tree import Tree

_log: Final = logging.getLogger("metatree")


def may_attach(tree: Tree, layer: Layer, node_id: str, parent: str) -> bool:
    """Return whether a node may hang under a parent, after a circle that this would close was cut elsewhere.

    False: it is cut at the node itself, which belongs at the top. The caller holds a transaction of the memory.
    """
    if node_id not in tree or parent not in tree:
        return True
    chain = [*tree.ancestors(parent), parent]
    if node_id not in chain:
        return True
    circle = chain[chain.index(node_id) :]
    lowest = min(each for each in circle if each == node_id or _was_placed(layer, each))
    _log.warning(
        "%r under %r would hang below itself: two machines moved them at the same time; %r is at the top now",
        *(node_id, parent, lowest),
    )
    if lowest == node_id:
        return False
    attach_at_root(tree, layer, lowest)
    return True


def attach_at_root(tree: Tree, layer: Layer, node_id: str) -> None:
    """Hang a node under the root, whatever parent was requested."""
    row = layer.store.row("SELECT position FROM node WHERE id = ?", (node_id,))
    if row is not None:
        layer.put(node_id, layer.next_seq(), ROOT, int(row[0]))
    else:
        tree._overlay.put_override(layer.next_seq(), node_id, parent=ROOT, home=None)
    tree._overlay.wrote()


def _was_placed(layer: Layer, node_id: str) -> bool:
    """Return whether somebody put a node where it is: one of the memory, or a built one that was moved."""
    if layer.has(node_id):
        return True
    sql = "SELECT 1 FROM override WHERE id = ? AND parent IS NOT NULL"
    return layer.store.row(sql, (node_id,)) is not None
