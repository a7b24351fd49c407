"""Nearness in meaning of a node to the question, added as a z-score among the candidates that words have found.

A node's own nearness counts, and half as much that of what it lies in. A tool does one step of a request, so it may
be near to a step of it.

Lost: comparing all vectors (nothing more on papers, conversations and encyclopedia articles), so vectors are kept for
small trees alone, where a menu may hold no word of the question. Of tools: vectors without their inputs (MetaTool +1
more, StableToolBench +1, LiveMCPBench -4), steps cut at each comma, synonyms by cosine, lists of verbs, of endings of
files and of words for dates (nothing, or a point on sets of 40 requests), the details of a thing for words that no
tool has (docs/benchmarks/retrieval.md). MiniLM in place of the static embeddings gains nothing on files to edit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from metatree_routers.embeddings.static import Embedder, cosines
from metatree_routers.evidence.signals.matching import Matches
from metatree_routers.index.fields import TOOL_KINDS
from metatree_routers.index.index import IndexSnapshot
from metatree_routers.index.vectors import MOST_VECTORS
from metatree_routers.query.wording import request_steps, request_words

Floats = npt.NDArray[np.float32]
Nodes = npt.NDArray[np.intp]

NEAREST = 50
"""In a small tree, so many nodes are candidates for their meaning alone."""
EMBEDDING_WEIGHT = 0.75
"""Of the z-score of the nearness in meaning, of one standard deviation of the scores."""
TOOL_MEANING = 1.0
"""The same for tools, which say in a line or two what they are for."""
STEP_SHARE = 0.5
"""Of the nearness of a tool, how much is that to the nearest step of the request; the rest is that to all of it."""
ABOVE_WEIGHT = 0.5
"""Of the nearness of each ancestor, of that of the node itself."""
CLAUSE = "near in meaning"
"""Said where nothing else speaks for a node."""


class Heads(Protocol):
    """Gives the beginnings of nodes by number, which vectors are made of."""

    def heads(self, numbers: Sequence[int]) -> list[str]: ...


def add_meaning(
    snapshot: IndexSnapshot,
    matches: Matches,
    embedder: Embedder,
    question: str,
    texts: Heads | None,
    candidates: Nodes,
    competing: npt.NDArray[np.bool_],
) -> Nodes:
    """Add the z-score of the nearness in meaning, a node's own and that of what it lies in; return the candidates.

    A tool does one step of a request, so it, and what it lies in, may be near to a step of it.
    """
    parts, table = matches.parts, snapshot.table
    is_tool = table.of_kind(TOOL_KINDS)
    steps = request_steps(question) if is_tool[competing].any() else []
    queries = embedder.embed([request_words(question), *steps])
    if not queries[0].any():
        return candidates
    if table.n_texts <= MOST_VECTORS:
        cosine = _by_steps(_kept_cosines(snapshot, queries), table.ancestry.with_above(is_tool))
        similarity = cosine + np.float32(ABOVE_WEIGHT) * table.ancestry.sums_above(cosine)
        near = np.flatnonzero(competing)
        near = near[np.argsort(-similarity[near], kind="stable")][:NEAREST]
        candidates = np.union1d(candidates, near[cosine[near] > 0])
        values = similarity[candidates]
    elif texts is not None:
        vectors = embedder.embed(texts.heads(candidates.tolist()))
        values = _by_steps(queries @ vectors.T, is_tool[candidates])
    else:
        return candidates
    if not len(candidates):
        return candidates
    spread = float(parts[candidates].std()) or 0.1 * matches.total
    z = (values - values.mean()) / max(float(values.std()), 1e-6)
    weight = np.where(is_tool[candidates], np.float32(TOOL_MEANING), np.float32(EMBEDDING_WEIGHT))
    added = parts[candidates] + weight * np.float32(spread) * z
    least = np.where(parts[candidates] > 0, np.float32(1e-3), np.float32(0))
    parts[candidates] = np.maximum(added, least * np.float32(matches.total))
    return candidates


def _kept_cosines(snapshot: IndexSnapshot, queries: Floats) -> Floats:
    """Give the cosine of each node with each of m queries: (m, n); 0 for nodes that are gone."""
    alive = snapshot.table.alive
    vectors = snapshot.vectors()[: len(alive)]
    cosine = np.zeros((len(queries), len(alive)), dtype=np.float32)
    if len(vectors):
        cosine[:, : len(vectors)] = cosines(vectors, queries)
    return np.where(alive, cosine, np.float32(0))


def _by_steps(cosines: Floats, by_step: npt.NDArray[np.bool_]) -> Floats:
    """Join the nearness to a request and to each of its steps, where steps count: (1 + steps, n) to (n,)."""
    whole: Floats = cosines[0]
    if len(cosines) == 1:
        return whole
    share = np.float32(STEP_SHARE)
    joined: Floats = np.where(by_step, (1 - share) * whole + share * cosines[1:].max(axis=0), whole)
    return joined
