"""Where a memory comes from, and what it replaced: from what the tree keeps of it, nothing is guessed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from metatree.node import Node
from metatree.notes.left_out import IDENTITY
from metatree.notes.notes import claims, earlier_texts, made_by, mentions
from metatree.notes.wishes import KIND as WISH
from metatree.notes.wishes import standing, taken_back, wishes_of
from metatree.trees.tree import Tree


@dataclass(frozen=True, slots=True)
class Audit:
    """The history of one node."""

    node: Node
    text: str
    under: str
    """Id of the node that it lies below."""
    said: tuple[dict[str, Any], ...]
    """Who said it, when, and where from, each time; empty for what was built from a source.

    What an export of somebody else says of it has `export`, the file that says so.
    """
    stands_in: str
    """The source file with its lines, the export, or the id of the turn or memory that it was taken from; empty for a
    memory."""
    replaced: tuple[dict[str, Any], ...]
    """What it replaced: `text`, and `until` when that held; the earliest first."""
    wishes: tuple[str, ...]
    """Ids of the standing wishes that it states."""
    holds: bool
    """False for a wish that a later one took back."""


def audit(tree: Tree, node: str) -> Audit:
    """Return where a node comes from and what it replaced; raises `UnknownNode`."""
    found = tree.get(tree.resolve(node))
    replaced = earlier_texts(found)
    holds = True
    if found.kind == WISH:
        earlier = taken_back(tree).get(found.id)
        replaced = (
            [] if earlier is None else [{"text": earlier.text, "until": str(found.attributes.get("at", ""))}]
        )
        holds = any(wish.node == found.id for wish in standing(tree))
    export = str(found.provenance.get("file") or "an export")
    stands_in, wishes = _stands_in(found), [wish.id for wish in wishes_of(tree, found.id)]
    said = mentions(found) or [{**each, "export": export} for each in claims(found)] or made_by(found)
    if IDENTITY in found.attributes and (source := tree.source_of(found)) is not None:
        stands_in = export = str(found.attributes.get("export") or source.location)
        about = {
            name: str(found.attributes.get(key) or "") for name, key in (("who", "speaker"), ("at", "at"))
        }
        said = [{**about, "source": None, "export": export}]
        wishes = [wish.id for wish in _exported_wishes(tree, source.mount, found.id)]
    return Audit(
        found,
        found.description
        if found.kind == WISH
        else tree.content(found)
        if found.has_content
        else found.description,
        tree.parent(found) or "",
        tuple(said),
        stands_in,
        tuple(replaced),
        tuple(wishes),
        holds,
    )


def _exported_wishes(tree: Tree, mount: str, message: str) -> list[Node]:
    """Return the nodes of the wishes that a message of an export states; see `Chats`."""
    sql = (
        "SELECT id FROM node WHERE kind = ? AND id >= ? AND id < ? AND json_extract(attributes, '$.from') = ?"
        " ORDER BY seq"
    )
    inner = message.removeprefix(f"{mount}/")
    rows = tree.index.rows(sql, (WISH, f"{mount}/", f"{mount}0", inner))
    return [node for (node_id,) in rows if (node := tree.find(node_id)) is not None]


def _stands_in(node: Node) -> str:
    if (
        node.kind == WISH and node.path is not None
    ):  # of an export or a file, which names the message in its own way
        return f"{node.path}{node.attributes.get('from', '')}"
    if node.path is not None:
        first_last = node.lines
        return node.path if first_last is None else f"{node.path}:{first_last[0]}-{first_last[1]}"
    return str(node.attributes.get("from") or node.provenance.get("from") or "")
