"""What people have flagged counts less: the scores of a ranking, after all evidence has spoken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from metatree.notes.feedback import Flag, flag_ids, flags, share_left
from metatree.storage.store import Store
from metatree_routers.evidence._ranking import Ranking, in_order
from metatree_routers.index.index import IndexSnapshot
from metatree_routers.query.parse import sections
from metatree_routers.query.wording import asking_terms

ALIKE = 0.5
"""Share of common words, of all words of two questions, from which one is about what the other is about."""
KEPT = 0.02
"""A score is not lowered further than to this: a flag changes the order, and does not say that nothing is found."""


@dataclass(frozen=True, slots=True)
class Flagged:
    """A node that was flagged for a question like the one that is asked."""

    left: float
    """The share of its score that is left."""
    flags: tuple[Flag, ...]


class Feedback:
    """The flags of a memory, by the words of their questions; looked at again when there are others."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._ids: tuple[str, ...] = ()
        self._known: list[tuple[Flag, frozenset[str]]] = []

    def token(self) -> tuple[str, ...]:
        """Return what differs whenever the flags do."""
        ids = flag_ids(self._store)
        if ids != self._ids:
            self._known = [(each, _words(each.question)) for each in flags(self._store)]
            self._ids = ids
        return ids

    def of(self, question: str) -> dict[str, Flagged]:
        """Return the nodes that were flagged for questions like this one, by id."""
        if not self.token():
            return {}
        question_words = _words(question)
        by_node: dict[str, list[tuple[Flag, float]]] = {}
        for each, words in self._known:
            like = len(question_words & words) / max(1, len(question_words | words))
            if like >= ALIKE:
                by_node.setdefault(each.node, []).append((each, like))
        return {
            node: Flagged(
                share_left((each.who, like) for each, like in flags_of), tuple(each for each, _ in flags_of)
            )
            for node, flags_of in by_node.items()
        }


def lowered(snapshot: IndexSnapshot, ranking: Ranking, flagged: Mapping[str, Flagged]) -> Ranking:
    """Return a ranking in which flagged nodes, and what lies below them, have a share of their scores."""
    numbers = snapshot.numbers(flagged)
    if not numbers:
        return ranking
    table, scores = snapshot.table, ranking.scores.copy()
    for node, number in numbers.items():
        below = [number]
        if not table.is_leaf[number]:
            below = np.flatnonzero(
                table.nearest(np.arange(len(table), dtype=np.int32), [number]) >= 0
            ).tolist()
        before = ranking.scores[below]
        least = np.minimum(before, np.float32(KEPT))
        scores[below] = np.minimum(scores[below], np.maximum(before * np.float32(flagged[node].left), least))
    return replace(
        ranking,
        scores=scores,
        best_below=table.best_below(scores),
        order=in_order(scores),
        _source_nodes=None,
    )


def flag_clause(flagged: Flagged | None) -> str:
    """Say in a clause what was said against a node; empty when nothing was."""
    if flagged is None:
        return ""
    first, more = flagged.flags[0], len(flagged.flags) - 1
    others = f" and {more} more" if more else ""
    return f"{first}{others}, so it counts {flagged.left:.0%}"


def _words(question: str) -> frozenset[str]:
    terms = frozenset(sections(question).term_weights())
    return terms - asking_terms() or terms


def flagged_for(known: Feedback | None, questions: Sequence[str]) -> dict[str, Flagged]:
    """Return what was flagged for any of these questions; the gentlest share counts, as the best question does."""
    result: dict[str, Flagged] = {}
    if known is None:
        return result
    each = [known.of(question) for question in questions]
    for node in set.intersection(*map(set, each)) if each else ():
        result[node] = max((one[node] for one in each), key=lambda one: one.left)
    return result
