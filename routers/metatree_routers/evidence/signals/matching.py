"""BM25 over all nodes at once: of each node's own text, and of each whole that is read as one text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from metatree_routers.evidence.signals.clause_words import MOST_SPELLED, spelled, words
from metatree_routers.index.bm25 import BM25
from metatree_routers.index.index import IndexSnapshot
from metatree_routers.index.node_table import Ints, NodeTable
from metatree_routers.index.postings import Postings
from metatree_routers.query.parse import Sections

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


def match(
    snapshot: IndexSnapshot, weights: dict[str, float], postings: dict[str, Postings] | None = None
) -> Matches:
    """Score every node and every home for weighted terms by BM25."""
    table = snapshot.table
    if len(weights) > MAX_TERMS:
        weights = dict(sorted(weights.items(), key=lambda item: -item[1])[:MAX_TERMS])
    if postings is None:
        postings = snapshot.postings(weights)
    n, n_homes = len(table), len(table.homes)
    out = Matches(
        np.zeros(n_homes, np.float32),
        np.zeros(n, np.float32),
        np.zeros(n, np.float32),
        np.zeros(n_homes, np.float32),
        0.0,
        {},
    )
    part_norms = table.once(_part_norms)
    home_norms, is_home = table.once(_home_norms), np.zeros(n, dtype=bool)
    is_home[table.homes] = True
    title, about, content = (np.float32(weight) for weight in PART_WEIGHTS)
    for term, weight in weights.items():
        rows = postings.get(term)
        if rows is None:
            out.total += weight * PART.idf(0, table.n_texts)
            continue
        nodes = rows["node"]
        idf = PART.idf(len(nodes), table.n_texts)
        out.total += weight * idf
        out.weights[term] = weight * idf
        tf = np.asarray(
            title * rows["title"] + about * rows["about"] + content * rows["content"], dtype=np.float32
        )
        out.parts[nodes] += np.float32(weight * idf) * PART.saturate(tf, part_norms[nodes])
        out.covered[nodes] += np.float32(weight * idf)
        if n_homes:
            _match_homes(out, table, rows, is_home, home_norms, weight, idf)
    return out


def _match_homes(
    out: Matches,
    table: NodeTable,
    term_rows: Postings,
    is_home: npt.NDArray[np.bool_],
    norms: Floats,
    weight: float,
    idf: float,
) -> None:
    nodes = term_rows["node"]
    rows = table.home_row[nodes]
    tf = term_rows["content"] + np.where(
        is_home[nodes], np.float32(WHOLE_TITLE_WEIGHT) * term_rows["title"], np.float32(0)
    )
    inside = (rows >= 0) & (tf > 0)
    if not inside.any():
        return
    sums = np.bincount(rows[inside], weights=tf[inside], minlength=len(table.homes)).astype(np.float32)
    holding = np.flatnonzero(sums)
    whole_idf = WHOLE.idf(len(holding), len(table.homes))
    out.whole[holding] += np.float32(weight * whole_idf) * WHOLE.saturate(sums[holding], norms[holding])
    out.covered_whole[holding] += np.float32(weight * idf)


def _part_norms(table: NodeTable) -> Floats:
    lengths = np.asarray(table.lengths @ np.array(PART_WEIGHTS, dtype=np.float32), dtype=np.float32)
    with_content = table.alive & (table.lengths[:, 2] > 0)
    counted = lengths[with_content] if with_content.any() else lengths[table.alive]
    return PART.norms(lengths, float(counted.mean()) if len(counted) else 0.0)


def _home_norms(table: NodeTable) -> Floats:
    inside = table.home_row >= 0
    lengths = np.bincount(
        table.home_row[inside], weights=table.lengths[inside, 2], minlength=len(table.homes)
    ).astype(np.float32)
    lengths += np.float32(WHOLE_TITLE_WEIGHT) * table.lengths[table.homes, 0]
    return WHOLE.norms(lengths, float(lengths.mean()) if len(lengths) else 0.0)


def best_parts(table: NodeTable, parts: Floats) -> Floats:
    """Sum the best parts of each home: (h,)."""
    nodes = np.flatnonzero((parts > 0) & (table.home_row >= 0))
    nodes = nodes[np.argsort(-parts[nodes], kind="stable")]
    rows = table.home_row[nodes]
    by_row = np.argsort(rows, kind="stable")
    sorted_rows = rows[by_row]
    first = np.ones(len(rows), dtype=bool)
    first[1:] = sorted_rows[1:] != sorted_rows[:-1]
    position = np.arange(len(rows))
    rank = position - np.maximum.accumulate(np.where(first, position, 0)) if len(rows) else position
    best = nodes[by_row[rank < BEST_PARTS]]
    return np.bincount(table.home_row[best], weights=parts[best], minlength=len(table.homes)).astype(
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


def clauses(key_terms: Sequence[str], spellings: Mapping[str, str]) -> Iterator[str]:
    """Say which terms a node has."""
    if key_terms:
        yield f"says {words(key_terms, spellings)}"


def file_clauses(
    table: NodeTable,
    postings: Mapping[str, Postings],
    parts: Sections,
    file: int,
    best: tuple[int, str],
    named: Set[str],
) -> Iterator[str]:
    """Say which words of a report are in the part of a file that speaks most for it, and which in all of the file.

    Args:
        best: the number of that part and its name, -1 and '' when there is none.
        named: terms that another clause has named.
    """
    part, name = best
    spellings = parts.spellings()
    in_part = parts.telling(terms_in(table, postings, [part])) if part >= 0 else []
    if in_part and name and not name.endswith(">"):
        yield f"`{name}` has {spelled(in_part, spellings)}"
        named = {*named, *in_part[:MOST_SPELLED]}
    others = parts.telling(terms_in(table, postings, np.flatnonzero(table.home == file)))
    others = [term for term in others if term not in named]
    if others and not (named and parts.are_small_numbers(others)):
        yield f"{'also has' if named else 'shares'} {spelled(others, spellings)}"


def terms_in(
    table: NodeTable, postings: Mapping[str, Postings], nodes: Sequence[int] | npt.NDArray[np.intp]
) -> list[str]:
    """Return the terms that any of these nodes has, in the order of the postings."""
    wanted = np.zeros(len(table), dtype=bool)
    wanted[nodes] = True
    return [term for term, rows in postings.items() if wanted[rows["node"]].any()]
