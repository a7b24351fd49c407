"""Choose what is shown of a ranking: of each file the part that carries its evidence first, and of copies one.

In a tree of code the best part of a file has the score of the file, so they tie. Shown is the part: the most specific
node. The file itself is shown where no part has half of the question's words that the file has, or where the question
names it and no part says nearly as much. What else is in a file comes behind what is best in others.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from metatree_routers.evidence._ranking import Ranking, in_order
from metatree_routers.index.node_table import NodeTable
from metatree_routers.query.terms import raw_tokens

Floats = npt.NDArray[np.float32]

SHARED = 0.5
"""A part that has less of the question's words that its file has shares the evidence with others."""
SHARED_NAMED = 0.75
"""The same where the question names the file, and not the part."""
SECOND = 0.5
"""What a further part of a file counts, of its own score."""
AROUND = 0.1
"""What a file counts, a part of which is shown."""
COPIED = 0.8
"""Two texts of one name are copies when they share so much of their neighbouring words."""
LOOKED_AT = 20
"""So many results are compared for copies."""


def shown_scores(table: NodeTable, ranking: Ranking, allowed: npt.NDArray[np.bool_]) -> Floats:
    """Score nodes for being shown beside each other: (n,), 0 for what may not be.

    Args:
        allowed: (n,) what may be shown.
    """
    scores = np.where(allowed, ranking.scores, np.float32(0))
    look = ranking.code
    if look is None or not len(table.homes):
        return scores
    homes, rows = table.homes, table.home_row
    is_part = (rows >= 0) & (scores > 0)
    is_part[homes] = False
    parts = in_order(np.where(is_part, scores, np.float32(0)))
    first = np.full(len(homes), -1, dtype=np.int32)
    first[rows[parts[::-1]]] = parts[::-1]  # the best is written last
    best = first[first >= 0]  # one part of each file that has any
    at = rows[best]
    share = look.covered[best] / np.maximum(look.covered_whole[at], np.float32(1e-9))
    named = look.surely[best] > 0
    floor = np.where(look.surely[homes[at]] > 0, np.float32(SHARED_NAMED), np.float32(SHARED))
    about = np.isin(homes[at], list(look.about))
    by_part = ~allowed[homes[at]] | (named & (share >= SHARED)) | ((share >= floor) & ~about)
    whole = scores[homes]
    shown = scores * np.where(is_part, np.float32(SECOND), np.float32(1))
    shown[best[by_part]] = scores[best[by_part]]
    shown[homes[at[by_part]]] = np.float32(AROUND) * whole[at[by_part]]
    return np.where(allowed & (shown <= 0), np.float32(AROUND) * ranking.best_below, shown)


def copies(ids: Sequence[str], texts: Callable[[Collection[str]], Mapping[str, str]]) -> set[str]:
    """Return which of these nodes repeat an earlier one: of one name, in another file, with nearly the same text.

    Args:
        ids: of the best nodes, the best first.
        texts: gives what nodes say; asked for those alone that share a name.
    """
    by_name: dict[str, list[str]] = {}
    for id_ in ids[:LOOKED_AT]:
        by_name.setdefault(_name(id_), []).append(id_)
    groups = [group for group in by_name.values() if len(group) > 1]
    said = texts([id_ for group in groups for id_ in group]) if groups else {}
    repeated: set[str] = set()
    for group in groups:
        kept: list[tuple[str, set[tuple[str, str]]]] = []
        for id_ in group:
            words = raw_tokens(said.get(id_, ""))
            pairs = set(itertools.pairwise(words))
            if any(_file(other) != _file(id_) and _alike(pairs, there) for other, there in kept):
                repeated.add(id_)
            else:
                kept.append((id_, pairs))
    return repeated


def _file(id_: str) -> str:
    return id_.partition("::")[0].partition("#")[0]


def _name(id_: str) -> str:
    """Return what a part is called in its file; of a file, how its name begins, so that `a.js` is like `a.min.js`."""
    part = id_[len(_file(id_)) :]
    return part or id_.rpartition("/")[2].partition(".")[0]


def _alike(one: set[tuple[str, str]], other: set[tuple[str, str]]) -> bool:
    return bool(one and other) and len(one & other) >= COPIED * len(one | other)
