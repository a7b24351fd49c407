"""Rank the files of a tree for an issue with all that is in each: its definitions, and the lines between them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from metatree.trees.tree import Tree
from metatree_routers.evidence._explain_files import reasons
from metatree_routers.evidence._ranking import Ranking
from metatree_routers.evidence.evidence import TextEvidence
from metatree_routers.evidence.report import best_files
from metatree_routers.index.index import IndexSnapshot
from metatree_routers.query.parse import sections


@dataclass(frozen=True, slots=True)
class PartOfFile:
    """A node of a file that has lines of its own."""

    node_id: str
    name: str
    """Dotted name inside the file; `<module>` and `A.<class>` for the lines between definitions."""
    ranges: tuple[tuple[int, int | None], ...]
    """Its lines, from 1, both included; None for the end of the file."""
    words: float
    """How well its words fit, in a unit of its own that is the same for all files."""
    named: float
    """How surely the issue names it; 0 when it does not."""
    terms: int
    """How many words it has."""


@dataclass(frozen=True, slots=True)
class FileOfParts:
    """A file that an issue speaks of, with its parts in the order of their lines."""

    node_id: str
    path: str
    score: float
    """In [0, 1]."""
    reason: str
    parts: tuple[PartOfFile, ...]


def rank_parts(
    evidence: TextEvidence,
    tree: Tree,
    issue: str,
    k: int,
    *,
    accept: Callable[[str], bool] | None = None,
) -> list[FileOfParts]:
    """Return at most `k` files, best first, as `rank_files` orders them.

    Args:
        accept: says of an id whether the file may be listed; None for all files.
    """
    if not issue.strip() or k <= 0:
        return []

    def find(
        snapshot: IndexSnapshot, ranking: Ranking
    ) -> list[tuple[str, float, str, list[tuple[str, float, float, int]]]]:
        chosen = best_files(snapshot, ranking, k, accept)
        ids = snapshot.ids(chosen)
        said = reasons(snapshot, ranking, chosen, sections(issue))
        return [
            (ids[file], float(ranking.scores[file]), said[file], _parts(snapshot, ranking, file))
            for file in chosen
        ]

    files = []
    for id_, score, reason, rows in evidence.file_query(issue, find):
        node = tree.find(id_)
        if node is not None:
            found = [part for row in rows if (part := _part(tree, row)) is not None]
            # Below a file of one part there may be what is none of its lines, such as its history.
            parts = [part for part in found if part.node_id != id_] or found
            parts.sort(key=lambda part: part.ranges[0][0])
            files.append(FileOfParts(id_, node.path or id_, min(1.0, score), reason, tuple(parts)))
    return files


def _parts(snapshot: IndexSnapshot, ranking: Ranking, file: int) -> list[tuple[str, float, float, int]]:
    """Return (id, words, named, terms) of each part of a file, and of the file itself."""
    table = snapshot.table
    is_part = (table.home == file) & table.alive & table.is_leaf
    is_part[file] = True
    inside = np.flatnonzero(is_part).astype(np.int32)
    named = dict.fromkeys(inside.tolist(), 0.0)
    for match in ranking.mention_matches.get(file, ()):
        below = [match.node] if match.node in named else inside[table.nearest(inside, [match.node]) >= 0]
        if match.node == file:
            continue
        for node in below:
            share = 1.0 if node == match.node else 1.0 / len(below)
            named[int(node)] += match.strength * match.mention.weight * share
    ids = snapshot.ids(inside)
    return [
        (ids[node], float(ranking.parts[node]), named[node], int(table.lengths[node, 2]))
        for node in inside.tolist()
        if node in ids
    ]


def _part(tree: Tree, row: tuple[str, float, float, int]) -> PartOfFile | None:
    id_, words, named, terms = row
    node = tree.find(id_)
    if node is None or node.source is None or node.source.type != "text":
        return None
    whole = (node.source.start_line or 1, node.source.end_line)
    name = id_.partition("::")[2] or node.title
    return PartOfFile(id_, name, node.source.parts or (whole,), words, named, terms)
