"""Where a memory comes from, and what it replaced: from what the tree keeps of it, nothing is guessed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from metatree.node import Node
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
    """The source file with its lines, or the id of the turn or memory that it was taken from; empty for a memory."""
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
    said = mentions(found) or [{**each, "export": export} for each in claims(found)] or made_by(found)
    return Audit(
        found,
        found.description
        if found.kind == WISH
        else tree.content(found)
        if found.has_content
        else found.description,
        tree.parent(found) or "",
        tuple(said),
        _stands_in(found),
        tuple(replaced),
        tuple(wish.id for wish in wishes_of(tree, found.id)),
        holds,
    )


def _stands_in(node: Node) -> str:
    if node.path is not None:
        first_last = node.lines
        return node.path if first_last is None else f"{node.path}:{first_last[0]}-{first_last[1]}"
    return str(node.attributes.get("from") or node.provenance.get("from") or "")
