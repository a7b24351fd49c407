"""What was forgotten of an export: its messages are left out from then on, also of the export that is taken again.

A message of an export is known by its `identity`, a hash of what the export calls it, which says nothing of its words.
The memory of the tree keeps these, and whoever reads the export passes over them, so that neither the sessions nor
the wishes that are made of the messages quote them.

Lost: hiding the nodes (their words stay in the index, and in the descriptions of sessions).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from metatree.errors import UntrustedStore, UserError
from metatree.node import Node
from metatree.storage.store import Store
from metatree.trees.layer import Layer
from metatree.trees.tree import MEMORY, ROOT, Tree, memory_advice

IDENTITY: Final = "identity"
"""The attribute of a node that can be left out."""
OPTION: Final = "left_out"
"""The option of a source that holds the identities."""
_FACT: Final = "left-out:"
_OF_EXPORTS: Final = frozenset({"turn", "session", "conversation", "conversations", "period", "file"})


def messages_below(tree: Tree, node: Node) -> list[Node]:
    """Return the nodes at and below a node that the export which they are of can be read without.

    None for a folder, and for the root: in them lies more than what was said.
    """
    if node.id == ROOT or node.kind not in _OF_EXPORTS:
        return []
    return [each for _, each in tree.walk(node) if IDENTITY in each.attributes]


def leave_out(tree: Tree, messages: Sequence[Node]) -> None:
    """Read the exports again without some messages, and keep them out; what was added below them moves up.

    Raises:
        UserError: an export cannot be read now; its messages are left out as soon as it can.
    """
    by_mount: dict[str, set[str]] = {}
    for node in messages:
        source = tree.source_of(node)
        if source is not None:
            by_mount.setdefault(source.mount, set()).add(str(node.attributes[IDENTITY]))
    layer = Layer(tree.memory)
    with tree.memory.durable(), tree.memory.transaction():
        for mount, identities in by_mount.items():
            layer.set_fact(_FACT + mount, sorted(identities.union(layer.fact(_FACT + mount) or ())))
        tree.memory.execute_many("DELETE FROM override WHERE id = ?", ((node.id,) for node in messages))
    tree.refresh()
    # What was freed in the file still has the words.
    tree.index.execute("VACUUM")
    tree.index.rows("PRAGMA wal_checkpoint(TRUNCATE)")
    left = next((node.id for node in messages if node.id in tree), None)
    if left is not None:
        raise UserError(
            f"{left!r} is left out as soon as its export can be read, and is there until then: see `metatree show`"
        )


def left_out(place: Path, mount: str) -> list[str]:
    """Return the identities that the source with a mount is read without; `place` is the folder of the tree."""
    if not (place / MEMORY).exists():
        return []
    try:
        with Store.open(place / MEMORY, create=False, advice=memory_advice(place)) as store:
            return _texts(Layer(store).fact(_FACT + mount))
    except UntrustedStore:  # the tree is opened without it, too
        return []


def _texts(value: object) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, Iterable) else []
