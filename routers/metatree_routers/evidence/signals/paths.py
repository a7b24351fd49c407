"""What paths say: the words of a question that folders and file names are made of.

People name files for what they are about, so `sympy/algebras/quaternion.py` is a good guess for a report on
quaternions, however seldom the word is in the file. A word counts the more the fewer paths have it, and a long path
counts for less than a short one that holds the same words.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from metatree_routers.evidence.signals.clause_words import spelled
from metatree_routers.index.node_table import Ints, NodeTable
from metatree_routers.index.postings import Postings

MOST_WEIGHT = 3.0
"""A word of a question counts at most this much: that of a word in its title."""

Floats = npt.NDArray[np.float32]


def path_scores(table: NodeTable, postings: Mapping[str, Postings], weights: Mapping[str, float]) -> Floats:
    """Score each home by the words of a question in its path: (h,), not normalised.

    Args:
        postings: of the words; the title of a file is its path.
        weights: of the words in the question.
    """
    scores = np.zeros(len(table.homes), dtype=np.float32)
    for term, rows in _holders(table, postings).items():
        scores[rows] += np.float32(min(weights.get(term, 0.0), MOST_WEIGHT) * _idf(len(rows), len(scores)))
    lengths = table.lengths[table.homes, 0]
    return np.asarray(scores / np.sqrt(np.maximum(lengths, np.float32(1))), dtype=np.float32)


def path_words(
    table: NodeTable, postings: Mapping[str, Postings], weights: Mapping[str, float], file: int
) -> list[str]:
    """Return the words of a question that are in the path of a file, the heaviest first."""
    row = int(table.home_row[file])
    words = {
        term: min(weights.get(term, 0.0), MOST_WEIGHT) * _idf(len(rows), len(table.homes))
        for term, rows in _holders(table, postings).items()
        if row in rows
    }
    return sorted(words, key=lambda term: (-words[term], term))


def clauses(in_path: Sequence[str], spellings: Mapping[str, str]) -> Iterator[str]:
    """Say which words are in the path of a file, as `path_words` gives those that tell something."""
    if in_path:
        yield f"its path says {spelled(in_path, spellings)}"


def _holders(table: NodeTable, postings: Mapping[str, Postings]) -> dict[str, Ints]:
    """Return, for each word that is in some path, the rows of the homes that have it there."""
    holders = {}
    for term, rows in postings.items():
        nodes = rows["node"][rows["title"] > 0]
        nodes = nodes[(table.home[nodes] == nodes) & (table.home_row[nodes] >= 0)]
        if len(nodes):
            holders[term] = table.home_row[nodes]
    return holders


def _idf(df: int, n: int) -> float:
    return math.log(1.0 + n / (df + 0.5))
