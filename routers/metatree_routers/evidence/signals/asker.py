"""Who asks what they brought up is shown what people said: the replies of a machine repeat it, at greater length."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from metatree.notes.wishes import MACHINES
from metatree_routers.evidence._ranking import Ranking, in_order
from metatree_routers.index.index import IndexSnapshot

KEPT = 0.25
"""Of the score of a turn that a machine said."""
_LOOKED_AT = 400
"""So many of the best are looked at."""


def is_of_talk(snapshot: IndexSnapshot) -> bool:
    """Whether there are conversations in the tree."""
    return bool(snapshot.table.of_kind({"turn"}).any())


def people_first(
    snapshot: IndexSnapshot, ranking: Ranking, titles: Callable[[Sequence[int]], Sequence[str]]
) -> Ranking:
    """Return a ranking in which turns of machines have a share of their scores.

    Args:
        titles: gives the titles of nodes, which are the speakers of turns.
    """
    table = snapshot.table
    best = ranking.order[:_LOOKED_AT]
    turns = best[table.of_kind({"turn"})[best]].tolist()
    said = [turn for turn, who in zip(turns, titles(turns), strict=True) if who.casefold() in MACHINES]
    scores = ranking.scores.copy()
    scores[said] *= np.float32(KEPT)
    return replace(
        ranking,
        scores=scores,
        best_below=table.best_below(scores),
        order=in_order(scores),
        _source_nodes=None,
    )
