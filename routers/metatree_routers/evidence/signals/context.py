"""BM25 of nodes in their place: a word may be said in a node itself, or nearby, which counts less.

A word of the question is covered by a node as far as its own text says it, or else its title path, the text of the
group that it is in (section, document, session, group of tools), or its neighbours in the text. These are taken as
independent hints, so a word that is said twice counts little more than once:

    covered(word) = 1 - (1 - own) * product over places of (1 - weight * said there)

Source: BM25 (see `index.bm25`) for each `said`; the joint saturation of fields is that of BM25F (Robertson, Zaragoza,
Taylor 2004), with a noisy or in place of their sum, since places are not parts of the node.

Lost: the score of the group added to that of the node (counts a word twice that both have; papers lost ten points),
the better of the two (conversations fell apart), and frequencies inside the searched part alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from metatree_routers.evidence.signals.clause_words import Titles, has, title_of, words
from metatree_routers.index.ancestry import Ancestry
from metatree_routers.index.bm25 import BM25
from metatree_routers.index.node_table import NodeTable
from metatree_routers.index.postings import Postings

Floats = npt.NDArray[np.float32]

OWN = BM25(k1=1.5, b=0.75)
GROUP = BM25(k1=2.0, b=0.75)
FIELD_WEIGHTS = (2.0, 1.0, 1.0)
"""Of title, about and content."""
TITLE_PATH = 0.5
"""What a word in the title or the description of an ancestor counts, of the same in the node's own text."""
GROUP_TEXT = 0.3
"""What a word anywhere in and below an ancestor counts."""
NEIGHBOUR = 0.3
"""What a word in the text before or after counts, for a short text."""
MOST_NODES = 300_000
"""In a larger tree, nodes are scored by their own text alone: places cost about 40 ns a node and word."""


def score_in_context(
    table: NodeTable, weights: Mapping[str, float], postings: Mapping[str, Postings]
) -> Floats:
    """Score every node for weighted terms: (n,), in the unit of summed weight times inverse document frequency."""
    scores = np.zeros(len(table), dtype=np.float32)
    norms = _norms(table)
    ancestry = table.ancestry if len(table) <= MOST_NODES else None
    group_norms = _group_norms(ancestry) if ancestry is not None else None
    for term, weight in weights.items():
        rows = postings.get(term)
        if rows is None:
            continue
        tf = np.zeros(len(table), dtype=np.float32)
        tf[rows["node"]] = _frequencies(rows)
        own = OWN.saturate(tf, norms)
        idf = np.float32(weight * OWN.idf(len(rows), table.n_texts))
        if ancestry is None or group_norms is None:
            scores += idf * own
        else:
            scores += idf * covered(ancestry, own, tf, group_norms)
    return scores


def term_coverage(
    table: NodeTable,
    weights: Mapping[str, float],
    postings: Mapping[str, Postings],
    nodes: npt.NDArray[np.intp],
) -> Iterator[tuple[np.float32, Floats]]:
    """Yield, for each term that some node has, its weight and how far each of these nodes' own text says it: (m,)."""
    norms = _norms(table)[nodes]
    tf = np.zeros(len(table), dtype=np.float32)
    for term, weight in weights.items():
        rows = postings.get(term)
        if rows is None:
            continue
        tf[:] = 0
        tf[rows["node"]] = _frequencies(rows)
        yield np.float32(weight * OWN.idf(len(rows), table.n_texts)), OWN.saturate(tf[nodes], norms)


def _frequencies(rows: Postings) -> Floats:
    title, about, content = (np.float32(weight) for weight in FIELD_WEIGHTS)
    return np.asarray(title * rows["title"] + about * rows["about"] + content * rows["content"], np.float32)


def covered(ancestry: Ancestry, own: Floats, tf: Floats, group_norms: Floats) -> Floats:
    """Say how far each node covers a term: (n,) in [0, 1).

    Args:
        own: (n,) how far each node's own text says it.
        tf: (n,) how often it does.
    """
    missed = 1 - own
    if len(ancestry.by_depth) > 1:
        below = ancestry.sums_below(tf)
        coverage = np.where(
            ancestry.is_inner,
            1
            - (1 - np.float32(GROUP_TEXT) * GROUP.saturate(below, group_norms))
            * (1 - np.float32(TITLE_PATH) * own),
            np.float32(0),
        )
        if coverage.any():
            missed *= ancestry.products_above(1 - coverage)
    for beside in (ancestry.before, ancestry.after):
        near = np.flatnonzero(beside >= 0)
        missed[near] *= 1 - np.float32(NEIGHBOUR) * ancestry.nearness[near] * own[beside[near]]
    return 1 - missed


def _norms(table: NodeTable) -> Floats:
    lengths = np.asarray(table.lengths @ np.array(FIELD_WEIGHTS, dtype=np.float32), dtype=np.float32)
    counted = table.alive & (table.is_leaf | (table.lengths[:, 2] > 0))
    counted[0] = False
    return OWN.norms(lengths, float(lengths[counted].mean()) if counted.any() else 0.0)


def _group_norms(ancestry: Ancestry) -> Floats:
    """Compare the length of a group with those of the same depth."""
    norms = np.full(len(ancestry.lengths), np.float32(GROUP.k1))
    for nodes in ancestry.by_depth:
        inner = nodes[ancestry.is_inner[nodes]]
        if len(inner):
            norms[inner] = GROUP.norms(ancestry.lengths[inner], float(ancestry.lengths[inner].mean()))
    return norms


def clauses(
    table: NodeTable,
    postings: Mapping[str, Postings],
    terms: Sequence[str],
    spelled: Mapping[str, str],
    node: int,
    titles: Titles,
) -> Iterator[str]:
    """Say which terms that a node has not are in what lies above it, and which in the texts beside it.

    Args:
        terms: the heaviest first.
        spelled: how the question spells them.
    """
    if len(table) > MOST_NODES:
        return
    ancestry = table.ancestry
    left = list(terms)
    for group in ancestry.above(node):
        here = [term for term in left if has(postings, term, group)]
        if here:
            left = [term for term in left if term not in here]
            yield f"in {title_of(titles, group)}, which says {words(here, spelled)}"
    beside = [int(places[node]) for places in (ancestry.before, ancestry.after) if places[node] >= 0]
    near = [term for term in left if any(has(postings, term, text) for text in beside)]
    if near:
        yield f"next to a text that says {words(near, spelled)}"
