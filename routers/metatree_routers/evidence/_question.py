"""Rank the nodes of a tree for a question of a sentence or a few; a long report goes through `_ranking.rank`.

The signals, in this order: the words that count (`query.wording`, `finance_synonyms`), BM25 of each node in its place
(`context`), figures where an amount is asked for (`digit_density`), nearness in meaning (`meaning`), tools that are
used together (`tool_diversification`), what the best nodes name (`multi_hop`), and what finds the inputs of the best
tools (`input_finders`). docs/benchmarks/retrieval.md has what each of them carries.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from metatree_routers.embeddings.static import Embedder
from metatree_routers.evidence._code import rank_code
from metatree_routers.evidence._ranking import Ranking, combine, confidence, in_order, readable_mask
from metatree_routers.evidence.signals.code_files import is_code
from metatree_routers.evidence.signals.context import score_in_context
from metatree_routers.evidence.signals.digit_density import add_digit_density
from metatree_routers.evidence.signals.finance_synonyms import WEIGHT as STATEMENT_WEIGHT
from metatree_routers.evidence.signals.finance_synonyms import statement_terms
from metatree_routers.evidence.signals.input_finders import add_finders
from metatree_routers.evidence.signals.linker import Linker, by_home
from metatree_routers.evidence.signals.matching import Matches, best_of, match, share_of_best
from metatree_routers.evidence.signals.meaning import add_meaning
from metatree_routers.evidence.signals.multi_hop import MultiHop, add_multi_hop
from metatree_routers.evidence.signals.tool_diversification import put_in_order, take_together
from metatree_routers.index.index import IndexSnapshot
from metatree_routers.index.node_table import NodeTable
from metatree_routers.index.roles import factors
from metatree_routers.query.mentions import find_mentions
from metatree_routers.query.names import name_parts, squashed
from metatree_routers.query.parse import Sections, sections
from metatree_routers.query.wording import (
    asking_terms,
    wants_amount,
    without_asking,
)

Floats = npt.NDArray[np.float32]
Nodes = npt.NDArray[np.intp]

MOST_CANDIDATES = 200
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

    def importers(self, ids: Collection[str]) -> dict[str, int]:
        """Return by how many files each of these files is imported."""
        ...


def question_weights(
    snapshot: IndexSnapshot, question: str, parts: Sections
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the weights of the question's own terms, and of those that statements use for them."""
    own = without_asking(parts.term_weights())
    heaviest = max(own.values(), default=0.0)
    related = dict.fromkeys(statement_terms(snapshot, question), STATEMENT_WEIGHT * heaviest)
    return own, {term: weight for term, weight in related.items() if weight > own.get(term, 0.0)}


def rank_question(
    snapshot: IndexSnapshot,
    question: str,
    embedder: Callable[[], Embedder | None] | None = None,
    texts: Texts | None = None,
    under: int | None = None,
    *,
    shown: bool = False,
) -> Ranking:
    """Rank all nodes, or those below one, for a question.

    Args:
        embedder: gives what adds embeddings; None for words alone.
        texts: None for a ranking without the second hop.
        under: nodes that do not lie at or below this one get no score.
        shown: whether nodes are to be listed: a tree of code then has a ranking of its own, and so has a name that some
            definition has. Lost: to read by it too, which puts code that has some of a question before the note that
            answers it.
    """
    table, parts = snapshot.table, sections(question)
    inside = table.alive.copy() if under is None else _below(table, under)
    if shown and (is_code(table, inside, readable_mask(table)) or _is_definition(snapshot, question, inside)):
        return rank_code(snapshot, question, texts, inside)
    own, related = question_weights(snapshot, question, parts)
    postings = snapshot.postings({**own, **related})
    matches = match(snapshot, own, postings)
    weights = {**own, **related}
    matches.parts = score_in_context(table, weights, postings)
    part_scores = matches.parts.copy()
    matches.parts[~inside] = 0
    competing = inside & readable_mask(table)
    competing[:1] = False
    if wants_amount(question):
        add_digit_density(table, matches.parts, np.flatnonzero(competing & (matches.parts > 0)))
    candidates = _candidates(matches.parts, competing)
    static = embedder() if embedder is not None else None
    if static is not None and len(table):
        candidates = add_meaning(snapshot, matches, static, question, texts, candidates, competing)
    take_together(table, matches.parts, weights, postings, candidates, competing)
    put_in_order(table, matches.parts, weights, postings, candidates)
    hops, inputs = MultiHop(), dict[int, tuple[int, str]]()
    if texts is not None:
        subject = {term: weight for term, weight in weights.items() if term not in asking_terms()}
        hops = add_multi_hop(snapshot, matches.parts, subject, postings, texts, candidates, competing)
        inputs = add_finders(snapshot, matches.parts, question, texts.signatures, candidates, competing)
    np.maximum(matches.parts, 0, out=matches.parts)
    mention_matches = by_home(snapshot, Linker(snapshot, find_mentions(parts)).matches())
    role_factors = factors(parts.heading, of="question")[table.role]
    scores = combine(table, matches, mention_matches, role_factors, by_whole=False)
    scores = _combined(table, matches, role_factors, scores)
    scores[~inside] = 0
    scores *= np.float32(_confidence(table, matches, scores, part_scores))
    weights = {**{term: STATEMENT_WEIGHT * weight for term, weight in related.items()}, **matches.weights}
    weights = {term: weight for term, weight in weights.items() if term in postings}
    return Ranking(
        scores,
        table.best_below(scores),
        mention_matches,
        matches.parts,
        weights,
        in_order(scores),
        named=hops.named,
        by_shared_name=hops.by_shared_name,
        inputs=inputs,
    )


def _confidence(table: NodeTable, matches: Matches, scores: Floats, part_scores: Floats) -> float:
    """Say how much of the question the best node covers, in its own text or in its place; see `_ranking.confidence`."""
    if not scores.any():
        return 0.0
    own = confidence(table, matches, scores)
    placed = float(part_scores[int(np.argmax(scores))]) / matches.total if matches.total > 0 else 0.0
    return max(own, math.sqrt(min(1.0, placed)), LEAST_CONFIDENCE if part_scores.any() else 0.0)


def _below(table: NodeTable, under: int) -> npt.NDArray[np.bool_]:
    mask: npt.NDArray[np.bool_] = (
        table.nearest(np.arange(len(table), dtype=np.int32), [under]) >= 0
    ) & table.alive
    return mask


def _combined(table: NodeTable, matches: Matches, role_factors: Floats, scores: Floats) -> Floats:
    """Keep files as they are, read as one text; elsewhere the place of a node has been looked at already."""
    if not len(table.homes):
        return scores
    is_file = table.of_kind({"file"})[table.homes]
    rows = table.home_row
    plain = (rows >= 0) & ~is_file[rows]
    if not plain.any():
        return scores
    own = share_of_best(matches.parts * role_factors)
    scores = scores.copy()
    scores[plain] = own[plain]
    homes = table.homes[~is_file]
    best = best_of(rows[plain], own[plain], len(table.homes))
    scores[homes] = np.maximum(own[homes], best[~is_file])
    return share_of_best(scores)


def _is_definition(snapshot: IndexSnapshot, question: str, inside: npt.NDArray[np.bool_]) -> bool:
    """Whether a question is the name of a definition, and nothing else."""
    term = "".join(f":{squashed(part)}" for part in name_parts(question)[-1:])
    found = snapshot.postings([term]) if term else {}
    definitions = snapshot.table.of_kind({"definition"}) & inside
    return any(bool(definitions[rows["node"]].any()) for rows in found.values())


def _candidates(parts: Floats, competing: npt.NDArray[np.bool_]) -> Nodes:
    candidates = np.flatnonzero(competing & (parts > 0))
    if len(candidates) > MOST_CANDIDATES:
        candidates = candidates[np.argpartition(-parts[candidates], MOST_CANDIDATES)[:MOST_CANDIDATES]]
    return candidates
