"""Rank the files of a tree for an issue, each with its reason and its best definitions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np

from metatree.node import Node
from metatree.protocols import Evidence, Scored
from metatree.trees.tree import Tree
from metatree_routers.evidence._explain_files import reasons
from metatree_routers.evidence._ranking import Ranking
from metatree_routers.evidence.evidence import TextEvidence
from metatree_routers.index.index import IndexSnapshot
from metatree_routers.query.parse import sections

MOST_DEFINITIONS = 5
LEAST_SHARE = 0.2
"""A definition is listed when its score is at least this share of the best one's in its file."""
LENGTH_POWER = 0.15
"""Of the number of words of a definition: BM25 weighs words down by it, but more of a long one can be wrong."""
CONTAINER_FACTOR = 0.3
"""Of the score of a definition that has definitions below it."""
_DEFINITION_KINDS = ("definition", "class", "function", "method")


@dataclass(frozen=True, slots=True)
class FoundDefinition:
    """A definition in a file, by its lines."""

    node_id: str
    name: str
    """Dotted name inside the file."""
    start_line: int
    end_line: int
    """Last line, included."""


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file that an issue speaks of."""

    node_id: str
    path: str
    score: float
    """In [0, 1]."""
    reason: str
    definitions: tuple[FoundDefinition, ...] = ()
    """Best first."""


def rank_files(
    evidence: TextEvidence,
    tree: Tree,
    issue: str,
    k: int = 10,
    *,
    accept: Callable[[str], bool] | None = None,
) -> list[FoundFile]:
    """Return at most `k` files, best first, that something speaks for.

    Args:
        accept: says of a path whether the file may be listed; None for all files.
    """
    if not issue.strip() or k <= 0:
        return []

    def find(snapshot: IndexSnapshot, ranking: Ranking) -> list[tuple[str, float, str, list[str]]]:
        chosen = best_files(snapshot, ranking, k, accept)
        ids = snapshot.ids(chosen)
        explanations = reasons(snapshot, ranking, chosen, sections(issue))
        return [
            (
                ids[number],
                float(ranking.scores[number]),
                explanations[number],
                _definitions(snapshot, ranking, number),
            )
            for number in chosen
        ]

    files = []
    for id_, score, reason, definitions in evidence.file_query(issue, find):
        node = tree.find(id_)
        if node is not None:
            defined = tuple(d for name in definitions if (d := _definition(tree, name)) is not None)
            files.append(FoundFile(id_, node.path or id_, min(1.0, score), reason, defined))
    return files


class FileEvidence(Evidence):
    """Scores files alone, as `rank_files` orders them; implements `metatree.Evidence` for searches of files.

    Args:
        accept: says which files are looked for; the others have no score, or a search would walk into them in vain.
    """

    def __init__(
        self, evidence: TextEvidence, tree: Tree, *, accept: Callable[[Node], bool] | None = None
    ) -> None:
        self.text = evidence
        self._tree = tree
        self._accept = accept

    def _accepts(self, id_: str) -> bool:
        if self._accept is None:
            return True
        node = self._tree.find(id_)
        return node is not None and self._accept(node)

    def score(
        self,
        questions: Sequence[str],
        *,
        under: str | None = None,
        among: Collection[str] | None = None,
        k: int = 10,
    ) -> list[Scored]:
        """Return at most `k` files, best first, without the lines that matched: `rank_files` gives the reasons."""
        issue = "\n".join(questions)
        allowed = None if among is None else frozenset(among)

        def find(snapshot: IndexSnapshot, ranking: Ranking) -> list[tuple[str, float]]:
            chosen = best_files(
                snapshot, ranking, k, self._accepts if allowed is None else allowed.__contains__
            )
            ids = snapshot.ids(chosen)
            return [(ids[number], float(ranking.scores[number])) for number in chosen]

        if not issue.strip() or k <= 0:
            return []
        scores = [Scored(id_, min(1.0, score)) for id_, score in self.text.file_query(issue, find)]
        if under is None or under == self._tree.root:
            return scores
        return [
            scored for scored in scores if under in (scored.node_id, *self._tree.ancestors(scored.node_id))
        ]


def best_files(
    snapshot: IndexSnapshot, ranking: Ranking, k: int, accept: Callable[[str], bool] | None
) -> list[int]:
    """Return the numbers of the best files that are accepted, best first."""
    files = np.flatnonzero(snapshot.table.of_kind(["file"]) & (ranking.scores > 0))
    files = files[np.argsort(-ranking.scores[files], kind="stable")].astype(np.int32)
    chosen: list[int] = []
    for start in range(0, len(files), 256):
        block = snapshot.ids(files[start : start + 256])
        for number in files[start : start + 256].tolist():
            if len(chosen) == k:
                return chosen
            if accept is None or accept(block[number]):
                chosen.append(number)
    return chosen


def _definition(tree: Tree, id_: str) -> FoundDefinition | None:
    node = tree.find(id_)
    if node is None:
        return None
    # A class with methods has no text of its own, and so no source; its attributes know its lines.
    lines = (node.attributes.get("start_line"), node.attributes.get("end_line"))
    if node.source is not None:
        lines = (node.source.start_line, node.source.end_line)
    start, end = lines
    if not isinstance(start, int) or not isinstance(end, int):
        return None
    return FoundDefinition(id_, id_.partition("::")[2] or node.title, start, end)


def _definitions(snapshot: IndexSnapshot, ranking: Ranking, file: int) -> list[str]:
    """Return the ids of the definitions in a file that fit best, those that the issue names outright first."""
    table = snapshot.table
    inside = np.flatnonzero((table.home == file) & table.alive & table.of_kind(_DEFINITION_KINDS))
    scores = ranking.parts[inside].astype(np.float64)
    best = float(scores.max()) if len(scores) else 0.0
    for mention_match in ranking.mention_matches.get(file, ()):
        scores[inside == mention_match.node] += best * mention_match.strength * mention_match.mention.weight
    scores *= np.maximum(table.lengths[inside, 2], 1) ** LENGTH_POWER
    # An issue names a class, whose description has the words of all its methods; the lines to edit are in one of them.
    scores[~table.is_leaf[inside]] *= CONTAINER_FACTOR
    order = np.argsort(-scores, kind="stable")[:MOST_DEFINITIONS]
    strongest = [
        int(inside[i]) for i in order if scores[i] > 0 and scores[i] >= LEAST_SHARE * scores[order[0]]
    ]
    ids = snapshot.ids(strongest)
    return [ids[number] for number in strongest]
