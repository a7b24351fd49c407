"""Rank the nodes of a tree for a question of a sentence or a few; a long report goes through `ranking.rank`.

The evidence, in this order, each in a module of its own: the words that count (`phrasing`, `statements`), BM25 of
each node in its place (`context`), figures where an amount is asked for (`figures`), nearness in meaning
(`embedding`), tools that are used together (`toolsets`), what the best nodes name (`bridges`), and what finds the
inputs of the best tools (`inputs`). docs/benchmarks/retrieval.md has what each of them carries.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from metatree_routers.embeddings.static import Embedder, cosines
from metatree_routers.evidence._ranking import Ranking, combine, confidence, in_order, readable_mask
from metatree_routers.evidence.signals.context import score_in_context
from metatree_routers.evidence.signals.finance_synonyms import WEIGHT as STATEMENT_WEIGHT
from metatree_routers.evidence.signals.finance_synonyms import related_terms
from metatree_routers.evidence.signals.input_finders import add_finders
from metatree_routers.evidence.signals.linker import Resolver, by_home
from metatree_routers.evidence.signals.matching import Matches, best_of, match, share_of_best
from metatree_routers.evidence.signals.multi_hop import Hops, add_hops
from metatree_routers.evidence.signals.tool_diversification import TOOL_KINDS, put_in_order, take_together
from metatree_routers.index.digit_density import add_figures
from metatree_routers.index.index import Reader
from metatree_routers.index.node_table import Records
from metatree_routers.index.roles import factors
from metatree_routers.index.vectors import MOST_VECTORS
from metatree_routers.query.mentions import find_clues
from metatree_routers.query.parse import Sections, sections
from metatree_routers.query.wording import (
    asking_terms,
    steps_asked,
    wants_amount,
    without_asking,
    words_asked,
)

Floats = npt.NDArray[np.float32]
Nodes = npt.NDArray[np.intp]

MOST_CANDIDATES = 200
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
LEAST_CONFIDENCE = 0.05
"""Of a best node that has no word of the question, where others have some."""


class Texts(Protocol):
    """Gives the texts of nodes by number, where they are not kept in the index."""

    def heads(self, numbers: Sequence[int]) -> list[str]:
        """Return the beginnings that vectors are made of."""
        ...

    def titles(self, numbers: Sequence[int]) -> list[str]:
        """Return the titles."""
        ...

    def contents(self, numbers: Sequence[int]) -> list[str]:
        """Return the contents."""
        ...

    def signatures(self, numbers: Sequence[int]) -> list[str]:
        """Return the titles, descriptions and contents, where tools have the names of their inputs."""
        ...


def question_weights(question: str, parts: Sections) -> tuple[dict[str, float], dict[str, float]]:
    """Return the weights of the question's own terms, and of those that statements use for them."""
    own = without_asking(parts.term_weights())
    heaviest = max(own.values(), default=0.0)
    related = dict.fromkeys(related_terms(question), STATEMENT_WEIGHT * heaviest)
    return own, {term: weight for term, weight in related.items() if weight > own.get(term, 0.0)}


def rank_question(
    reader: Reader,
    question: str,
    embedder: Callable[[], Embedder | None] | None = None,
    texts: Texts | None = None,
    under: int | None = None,
) -> Ranking:
    """Rank all nodes, or those below one, for a question.

    Args:
        embedder: gives what adds embeddings; None for words alone.
        texts: None for a ranking without the second hop.
        under: nodes that do not lie at or below this one get no score.
    """
    records, parts = reader.records, sections(question)
    own, related = question_weights(question, parts)
    postings = reader.postings({**own, **related})
    matches = match(reader, own, postings)
    weights = {**own, **related}
    matches.parts = score_in_context(records, weights, postings)
    said = matches.parts.copy()
    inside = records.alive.copy() if under is None else _below(records, under)
    matches.parts[~inside] = 0
    competing = inside & readable_mask(records)
    competing[:1] = False
    if wants_amount(question):
        add_figures(records, matches.parts, np.flatnonzero(competing & (matches.parts > 0)))
    candidates = _candidates(matches.parts, competing)
    static = embedder() if embedder is not None else None
    if static is not None and len(records):
        candidates = _add_meaning(reader, matches, static, question, texts, candidates, competing)
    take_together(records, matches.parts, weights, postings, candidates, competing)
    put_in_order(records, matches.parts, weights, postings, candidates)
    hops, inputs = Hops(), dict[int, tuple[int, str]]()
    if texts is not None:
        subject = {term: weight for term, weight in weights.items() if term not in asking_terms()}
        hops = add_hops(reader, matches.parts, subject, postings, texts, candidates, competing)
        inputs = add_finders(reader, matches.parts, question, texts.signatures, candidates, competing)
    np.maximum(matches.parts, 0, out=matches.parts)
    pointers = by_home(reader, Resolver(reader, find_clues(parts)).pointers())
    role_factors = factors(parts.heading, is_report=False)[records.role]
    scores = combine(records, matches, pointers, role_factors, by_whole=False)
    scores = _combined(records, matches, role_factors, scores)
    scores[~inside] = 0
    scores *= np.float32(_confidence(records, matches, scores, said))
    weights = {**{term: STATEMENT_WEIGHT * weight for term, weight in related.items()}, **matches.weights}
    weights = {term: weight for term, weight in weights.items() if term in postings}
    return Ranking(
        scores,
        records.best_below(scores),
        pointers,
        matches.parts,
        weights,
        in_order(scores),
        named=hops.named,
        bridged=hops.bridged,
        inputs=inputs,
    )


def _confidence(records: Records, matches: Matches, scores: Floats, said: Floats) -> float:
    """Say how much of the question the best node covers, in its own text or in its place; see `ranking.confidence`."""
    if not scores.any():
        return 0.0
    own = confidence(records, matches, scores)
    placed = float(said[int(np.argmax(scores))]) / matches.total if matches.total > 0 else 0.0
    return max(own, math.sqrt(min(1.0, placed)), LEAST_CONFIDENCE if said.any() else 0.0)


def _below(records: Records, under: int) -> npt.NDArray[np.bool_]:
    mask: npt.NDArray[np.bool_] = (
        records.nearest(np.arange(len(records), dtype=np.int32), [under]) >= 0
    ) & records.alive
    return mask


def _combined(records: Records, matches: Matches, role_factors: Floats, scores: Floats) -> Floats:
    """Keep files as they are, read as one text; elsewhere the place of a node has been looked at already."""
    if not len(records.homes):
        return scores
    is_file = records.of_kind({"file"})[records.homes]
    rows = records.home_row
    plain = (rows >= 0) & ~is_file[rows]
    if not plain.any():
        return scores
    own = share_of_best(matches.parts * role_factors)
    scores = scores.copy()
    scores[plain] = own[plain]
    homes = records.homes[~is_file]
    best = best_of(rows[plain], own[plain], len(records.homes))
    scores[homes] = np.maximum(own[homes], best[~is_file])
    return share_of_best(scores)


def _candidates(parts: Floats, competing: npt.NDArray[np.bool_]) -> Nodes:
    found = np.flatnonzero(competing & (parts > 0))
    if len(found) > MOST_CANDIDATES:
        found = found[np.argpartition(-parts[found], MOST_CANDIDATES)[:MOST_CANDIDATES]]
    return found


def _add_meaning(
    reader: Reader,
    matches: Matches,
    embedder: Embedder,
    question: str,
    texts: Texts | None,
    candidates: Nodes,
    competing: npt.NDArray[np.bool_],
) -> Nodes:
    """Add the z-score of the nearness in meaning, a node's own and that of what it lies in; return the candidates.

    A tool does one step of a request, so it, and what it lies in, may be near to a step of it.
    """
    parts, records = matches.parts, reader.records
    is_tool = records.of_kind(TOOL_KINDS)
    steps = steps_asked(question) if is_tool[competing].any() else []
    queries = embedder.embed([words_asked(question), *steps])
    if not queries[0].any():
        return candidates
    if records.n_texts <= MOST_VECTORS:
        cosine = _by_steps(_kept_cosines(reader, queries), _with_above(records, is_tool))
        nearness = cosine.copy()
        for above in records.levels.above:
            nearness += np.float32(ABOVE_WEIGHT) * np.where(above >= 0, cosine[np.maximum(above, 0)], 0)
        near = np.flatnonzero(competing)
        near = near[np.argsort(-nearness[near], kind="stable")][:NEAREST]
        candidates = np.union1d(candidates, near[cosine[near] > 0])
        values = nearness[candidates]
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


def _kept_cosines(reader: Reader, queries: Floats) -> Floats:
    """Give the cosine of each node with each of m queries: (m, n); 0 for nodes that are gone."""
    alive = reader.records.alive
    vectors = reader.vectors()[: len(alive)]
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


def _with_above(records: Records, nodes: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Add to a mask of nodes what they lie in."""
    mask = nodes.copy()
    for above in records.levels.above:
        mask[above[nodes & (above >= 0)]] = True
    return mask
