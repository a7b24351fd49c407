"""The fragments of a tree that are nearest to a text, as lookups want them: distance is 1 - cosine similarity."""

from __future__ import annotations

import hashlib
from typing import Final

import numpy as np
from metatree_routers import text_evidence
from metatree_routers.embeddings.static import StaticEmbedder

from metatree import Node, Tree
from metatree.errors import MetatreeError

CANDIDATES: Final = 200
_TEXT_CHARS: Final = 2_000
_embedder: list[StaticEmbedder] = []


def index_of(tree: Tree) -> str:
    """Return what differs whenever a lookup in a tree may find something else."""
    place = hashlib.sha256(str(tree.path or "").encode("utf-8", "surrogateescape")).hexdigest()[:12]
    return f"{place}@{tree.sequence}"


def matches_of(tree: Tree, fragment: str, count: int, threshold: float) -> list[tuple[float, str]]:
    """Return at most `count` fragments with a distance of at most `threshold`, nearest first, each with its distance
    and as the wire has it: lines of what is known of it, a line of five dots, and the text.

    Candidates are those that the text index ranks first, `CANDIDATES` or ten times `count` of them.
    """
    if not _embedder:
        _embedder.append(StaticEmbedder())
    ranked = text_evidence(tree).rank([fragment], k=max(CANDIDATES, count * 10))
    nodes = [tree.get(scored.node_id) for scored in ranked if scored.node_id in tree]
    nodes = [node for node in nodes if node.has_content]
    if not nodes:
        return []
    texts = [_text(tree, node) for node in nodes]
    vectors = _embedder[0].embed(
        [fragment, *(f"{node.title}\n{text}" for node, text in zip(nodes, texts, strict=True))]
    )
    distances = 1.0 - vectors[1:] @ vectors[0]
    matches = []
    for at in np.argsort(distances, kind="stable")[:count]:
        if distances[at] <= threshold:
            matches.append((float(distances[at]), _match(tree, nodes[at], float(distances[at]), texts[at])))
    return matches


def _text(tree: Tree, node: Node) -> str:
    try:
        return tree.content(node)[:_TEXT_CHARS]
    except MetatreeError:
        return node.description


def _match(tree: Tree, node: Node, distance: float, text: str) -> str:
    above = [tree.get(each).title for each in tree.ancestors(node)]
    fields = {
        "Distance": f"{max(0.0, distance):.4f}",
        "Title": node.title,
        "Kind": node.kind,
        "Under": " / ".join(above),
    }
    if node.path:
        fields["Path"] = node.path
    fields["Node"] = node.id
    lines = [f"{name}: {' '.join(value.split())}" for name, value in fields.items()]
    return "\n".join([*lines, ".....", text])
