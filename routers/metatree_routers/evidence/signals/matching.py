"""BM25 over all nodes at once: of each node's own text, and of each whole that is read as one text."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from metatree_routers.index.bm25 import BM25
from metatree_routers.index.index import Reader
from metatree_routers.index.node_table import Ints, Records
from metatree_routers.index.postings import Postings

Floats = npt.NDArray[np.float32]

MAX_TERMS = 1_000
"""Of a question, those of the greatest weight."""

WHOLE = BM25(k1=2.0, b=0.85)
PART = BM25(k1=1.5, b=0.75)

WHOLE_TITLE_WEIGHT = 1.0
PART_WEIGHTS = (2.0, 1.0, 1.0)
"""Of title, about and content of a part."""
BEST_PARTS = 3


@dataclass(slots=True)
class Matches:
    """What the posting lists say about all nodes."""

    whole: Floats
    """(h,) BM25 of each home."""
    parts: Floats
    """(n,) BM25 of each node's own text."""
    covered: Floats
    """(n,) summed weight of the question's terms that the node itself has."""
    covered_whole: Floats
    """(h,) the same for each home."""
    total: float
    """Summed weight of all terms of the question."""
    weights: dict[str, float]
    """Weight of each term that some node has: its own, times its inverse document frequency."""


def match(reader: Reader, weights: dict[str, float], postings: dict[str, Postings] | None = None) -> Matches:
    """Score every node and every home for weighted terms by BM25."""
    records = reader.records
    if len(weights) > MAX_TERMS:
        weights = dict(sorted(weights.items(), key=lambda item: -item[1])[:MAX_TERMS])
    if postings is None:
        postings = reader.postings(weights)
    n, n_homes = len(records), len(records.homes)
    out = Matches(
        np.zeros(n_homes, np.float32),
        np.zeros(n, np.float32),
        np.zeros(n, np.float32),
        np.zeros(n_homes, np.float32),
        0.0,
        {},
    )
    part_norms = _part_norms(records)
    home_norms, is_home = _home_norms(records), np.zeros(n, dtype=bool)
    is_home[records.homes] = True
    title, about, content = (np.float32(weight) for weight in PART_WEIGHTS)
    for term, weight in weights.items():
        found = postings.get(term)
        if found is None:
            out.total += weight * PART.idf(0, records.n_texts)
            continue
        nodes = found["node"]
        idf = PART.idf(len(nodes), records.n_texts)
        out.total += weight * idf
        out.weights[term] = weight * idf
        tf = np.asarray(
            title * found["title"] + about * found["about"] + content * found["content"], dtype=np.float32
        )
        out.parts[nodes] += np.float32(weight * idf) * PART.saturate(tf, part_norms[nodes])
        out.covered[nodes] += np.float32(weight * idf)
        if n_homes:
            _match_homes(out, records, found, is_home, home_norms, weight, idf)
    return out


def _match_homes(
    out: Matches,
    records: Records,
    found: Postings,
    is_home: npt.NDArray[np.bool_],
    norms: Floats,
    weight: float,
    idf: float,
) -> None:
    nodes = found["node"]
    rows = records.home_row[nodes]
    tf = found["content"] + np.where(
        is_home[nodes], np.float32(WHOLE_TITLE_WEIGHT) * found["title"], np.float32(0)
    )
    inside = (rows >= 0) & (tf > 0)
    if not inside.any():
        return
    sums = np.bincount(rows[inside], weights=tf[inside], minlength=len(records.homes)).astype(np.float32)
    holding = np.flatnonzero(sums)
    whole_idf = WHOLE.idf(len(holding), len(records.homes))
    out.whole[holding] += np.float32(weight * whole_idf) * WHOLE.saturate(sums[holding], norms[holding])
    out.covered_whole[holding] += np.float32(weight * idf)


def _part_norms(records: Records) -> Floats:
    lengths = np.asarray(records.lengths @ np.array(PART_WEIGHTS, dtype=np.float32), dtype=np.float32)
    with_content = records.alive & (records.lengths[:, 2] > 0)
    counted = lengths[with_content] if with_content.any() else lengths[records.alive]
    return PART.norms(lengths, float(counted.mean()) if len(counted) else 0.0)


def _home_norms(records: Records) -> Floats:
    inside = records.home_row >= 0
    lengths = np.bincount(
        records.home_row[inside], weights=records.lengths[inside, 2], minlength=len(records.homes)
    ).astype(np.float32)
    lengths += np.float32(WHOLE_TITLE_WEIGHT) * records.lengths[records.homes, 0]
    return WHOLE.norms(lengths, float(lengths.mean()) if len(lengths) else 0.0)


def best_parts(records: Records, parts: Floats) -> Floats:
    """Sum the best parts of each home: (h,)."""
    nodes = np.flatnonzero((parts > 0) & (records.home_row >= 0))
    nodes = nodes[np.argsort(-parts[nodes], kind="stable")]
    rows = records.home_row[nodes]
    by_row = np.argsort(rows, kind="stable")
    sorted_rows = rows[by_row]
    first = np.ones(len(rows), dtype=bool)
    first[1:] = sorted_rows[1:] != sorted_rows[:-1]
    position = np.arange(len(rows))
    rank = position - np.maximum.accumulate(np.where(first, position, 0)) if len(rows) else position
    kept = nodes[by_row[rank < BEST_PARTS]]
    return np.bincount(records.home_row[kept], weights=parts[kept], minlength=len(records.homes)).astype(
        np.float32
    )


def best_of(rows: Ints, values: Floats, count: int) -> Floats:
    """Give the greatest value of each row: (count,)."""
    best = np.zeros(count, dtype=np.float32)
    np.maximum.at(best, rows, values)
    return best


def share_of_best(scores: Floats) -> Floats:
    """Divide by the greatest score; zeros stay zeros."""
    best = float(scores.max()) if len(scores) else 0.0
    return scores / np.float32(best) if best > 0 else np.zeros_like(scores)
