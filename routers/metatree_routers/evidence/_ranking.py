"""Rank all nodes of a tree for one question, without a model.

Scores are added, each a share of the best one: BM25 over a whole file (or page, or conversation: what is read as one
text), the best three of its parts by BM25 summed, and what the question names outright; for a report also the words
in the path, and the past commits like it. A part is ranked by its own score and by that of the whole it belongs to.
For a question of a sentence, static embeddings are added to the parts' scores: z-scores of the two are summed, over
the nodes that share words with the question.

k1, b, title weights and the number of parts move the result by less than a point either way over 441 issues, so they
stand at plain values. Lost: weights learned on the other repositories (no better than round ones for these parts,
five points worse for 62 features); imports, tests, folders and in-degrees as further parts
(docs/benchmarks/retrieval-code.md).

Reports and questions are ranked apart: a report is about files to change, a question about a text that answers it.
What helps one harms the other (files read as one text, figures, names).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from metatree_routers.evidence.signals.commit_scores import (
    by_file,
    commit_scores,
    named_scores,
    nearest_scores,
)
from metatree_routers.evidence.signals.linker import Linker, MentionMatch, by_home
from metatree_routers.evidence.signals.matching import Matches, best_of, best_parts, match, share_of_best
from metatree_routers.evidence.signals.paths import path_scores
from metatree_routers.evidence.signals.rerank import Reranked, Reranker
from metatree_routers.index.commits import SimilarCommit
from metatree_routers.index.index import IndexSnapshot
from metatree_routers.index.node_table import Ints, NodeTable
from metatree_routers.index.roles import factors
from metatree_routers.query.mentions import find_mentions
from metatree_routers.query.parse import sections
from metatree_routers.query.terms import term_counts

Floats = npt.NDArray[np.float32]

MENTION_WEIGHT = 0.2
PATH_WEIGHT = 0.5
"""Of the words of a report in the path of a file."""
TITLE_WEIGHT = 0.2
"""Of the title of a report alone, looked for in whole files: what the rest says cannot drown it."""
HISTORY_WEIGHT = 0.2
"""Of past commits like a report that touched a file, together."""
NEAREST_WEIGHT = 0.2
"""Of the one most like the report alone."""
NAMED_WEIGHT = 0.4
"""Of a past commit that the report names and that touched this file alone."""
MOST_MENTIONS = 4
"""Mentions of a file that count, the strongest whole, each further one half as much."""
UNSAID = 0.1
"""How sure it is of the best file when no text has a word of the report, but a path or a commit has."""


@dataclass(slots=True)
class CodeLook:
    """What is known of nodes where the tree is one of code."""

    surely: Floats
    """(n,) how surely the question names each node."""
    covered: Floats
    """(n,) summed weight of the question's words that each node has."""
    covered_whole: Floats
    """(h,) the same for each file."""
    about: frozenset[int]
    """The files that the question is about: it is the name of one, or has its path."""


@dataclass(slots=True)
class Ranking:
    """How much speaks for each node; index by node number."""

    scores: Floats
    """(n,) in [0, 1]."""
    best_below: Floats
    """(n,) the best score at or below each node."""
    mention_matches: dict[int, list[MentionMatch]]
    """What the question names in each file, strongest first."""
    parts: Floats
    """(n,) what speaks for each part alone, in a unit of its own."""
    weights: dict[str, float]
    """Weight of each term of the question that some node has."""
    order: Ints
    """Nodes with evidence, best first."""
    named: dict[int, int] = field(default_factory=dict)
    """Node -> the node that names it, where that brought it up."""
    by_shared_name: dict[int, tuple[int, str]] = field(default_factory=dict)
    """Node -> (the node with a name that it has too, the name), where that brought it up."""
    inputs: dict[int, tuple[int, str]] = field(default_factory=dict)
    """Tool -> (the tool whose input it finds, the name of the input), where that brought it up."""
    commits: dict[int, list[SimilarCommit]] = field(default_factory=dict)
    """Past commits like the question that touched a file, the most similar first; where a history was read."""
    named_commits: dict[int, list[SimilarCommit]] = field(default_factory=dict)
    """Past commits that the question names and that touched a file."""
    seen: Reranked | None = None
    """What a closer look at the best files has found."""
    code: CodeLook | None = None
    """In a tree of code: what decides between a file and what is in it."""
    wished: frozenset[int] = frozenset()
    """Turns that were brought up since they state a standing wish."""
    _source_nodes: Ints | None = None

    def source_nodes(self, table: NodeTable, nodes: Sequence[int]) -> list[int]:
        """Return the node whose line says why, for each node: itself, or the best part of what is read as one text."""
        if self._source_nodes is None:
            source_nodes = np.arange(len(table), dtype=np.int32)
            parts = readable(table, self.order)
            parts = parts[(table.home_row[parts] >= 0) & ~readable_mask(table)[table.home[parts]]]
            source_nodes[table.home[parts[::-1]]] = parts[::-1]  # the best is written last
            self._source_nodes = source_nodes
        return [int(self._source_nodes[node]) for node in nodes]


def mention_scores(table: NodeTable, mention_matches: dict[int, list[MentionMatch]]) -> Floats:
    """Score each home by what the question names in it: (h,); each thing counts once."""
    scores = np.zeros(len(table.homes), dtype=np.float32)
    for home, matches in mention_matches.items():
        row = table.home_row[home]
        if row < 0:
            continue
        seen: set[str] = set()
        for mention_match in matches:
            if mention_match.mention.text not in seen and len(seen) < MOST_MENTIONS:
                scores[row] += mention_match.strength * mention_match.mention.weight * 0.5 ** len(seen)
                seen.add(mention_match.mention.text)
    return scores


def rank(
    snapshot: IndexSnapshot,
    report: str,
    *,
    similar: Sequence[SimilarCommit] = (),
    named: Sequence[SimilarCommit] = (),
    look: Reranker | None = None,
) -> Ranking:
    """Rank all nodes for a report; a question of a sentence or a few goes through `_question.rank_question`.

    Args:
        snapshot: one moment of an index.
        report: what is to be fixed.
        similar: past commits like the report; what they touched is evidence.
        named: past commits that the report names.
        look: takes a closer look at the best files; None to go by words and commits alone.
    """
    table = snapshot.table
    parts = sections(report)
    weights = parts.term_weights()
    postings = snapshot.postings(weights)
    matches = match(snapshot, weights, postings)
    mention_matches = by_home(snapshot, Linker(snapshot, find_mentions(parts)).matches())
    role_factors = factors(parts.heading, of="report")[table.role]
    extra = np.float32(PATH_WEIGHT) * share_of_best(path_scores(table, postings, weights))
    if parts.is_long:
        title = {term: 1.0 + math.log(times) for term, times in term_counts(parts.title).items()}
        extra = extra + np.float32(TITLE_WEIGHT) * share_of_best(match(snapshot, title, postings).whole)
    commits = by_file(snapshot, similar)
    if commits:
        extra = extra + np.float32(HISTORY_WEIGHT) * share_of_best(commit_scores(snapshot, similar, commits))
        extra = extra + np.float32(NEAREST_WEIGHT) * nearest_scores(snapshot, similar, commits)
    by_name = by_file(snapshot, named)
    if by_name:
        extra = extra + np.float32(NAMED_WEIGHT) * named_scores(snapshot, named, by_name)
    seen = None
    if look is not None and len(table.homes):
        sums = whole_scores(table, matches, mention_matches, extra)
        seen = look(snapshot, parts, sums, role_factors[table.homes])
        extra = extra + seen.total(sums)
    scores = combine(table, matches, mention_matches, role_factors, by_whole=True, extra=extra)
    least = UNSAID if extra.any() else 0.0
    scores *= np.float32(max(least, confidence(table, matches, scores)))
    return Ranking(
        scores,
        table.best_below(scores),
        mention_matches,
        matches.parts,
        matches.weights,
        in_order(scores),
        commits=commits,
        named_commits=by_name,
        seen=seen,
    )


def together(rankings: Sequence[Ranking]) -> Ranking:
    """Join the rankings of several questions: a node is as good as the best of them says."""
    if len(rankings) == 1:
        return rankings[0]
    scores = np.maximum.reduce([ranking.scores for ranking in rankings])
    weights: dict[str, float] = {}
    mention_matches: dict[int, list[MentionMatch]] = {}
    for ranking in rankings:
        for term, weight in ranking.weights.items():
            weights[term] = max(weight, weights.get(term, 0.0))
        for home, matches in ranking.mention_matches.items():
            mention_matches.setdefault(home, []).extend(matches)
    return Ranking(
        scores=scores,
        best_below=np.maximum.reduce([ranking.best_below for ranking in rankings]),
        mention_matches=mention_matches,
        parts=np.maximum.reduce([share_of_best(ranking.parts) for ranking in rankings]),
        weights=weights,
        order=in_order(scores),
        named={node: naming for ranking in rankings for node, naming in ranking.named.items()},
        by_shared_name={node: by for ranking in rankings for node, by in ranking.by_shared_name.items()},
        inputs={node: by for ranking in rankings for node, by in ranking.inputs.items()},
        wished=frozenset[int]().union(*(ranking.wished for ranking in rankings)),
        code=_looks_together([ranking.code for ranking in rankings if ranking.code is not None]),
    )


def _looks_together(looks: Sequence[CodeLook]) -> CodeLook | None:
    if not looks:
        return None
    return CodeLook(
        np.maximum.reduce([look.surely for look in looks]),
        np.maximum.reduce([look.covered for look in looks]),
        np.maximum.reduce([look.covered_whole for look in looks]),
        frozenset[int]().union(*(look.about for look in looks)),
    )


def reordered(table: NodeTable, ranking: Ranking, scores: Floats) -> Ranking:
    """Return a ranking with other scores: (n,)."""
    return replace(
        ranking,
        scores=scores,
        best_below=table.best_below(scores),
        order=in_order(scores),
        _source_nodes=None,
    )


def in_order(scores: Floats) -> Ints:
    """Give the nodes with a score, best first."""
    order = np.flatnonzero(scores > 0)
    return order[np.argsort(-scores[order], kind="stable")].astype(np.int32)


def readable(table: NodeTable, nodes: Ints) -> Ints:
    """Keep what has text of its own, or nothing below it."""
    result: Ints = nodes[readable_mask(table)[nodes]]
    return result


def readable_mask(table: NodeTable) -> npt.NDArray[np.bool_]:
    """Say of every node whether it has text of its own, or nothing below it: (n,)."""
    return table.once(_readable)


def _readable(table: NodeTable) -> npt.NDArray[np.bool_]:
    mask: npt.NDArray[np.bool_] = (table.lengths[:, 2] > 0) | table.is_leaf
    return mask


def whole_scores(
    table: NodeTable,
    matches: Matches,
    mention_matches: dict[int, list[MentionMatch]],
    extra: Floats | None = None,
) -> Floats:
    """Add up what speaks for each home: (h,), without the factors of their roles.

    Args:
        extra: (h,) what else speaks for each home.
    """
    whole = share_of_best(matches.whole) + share_of_best(best_parts(table, matches.parts))
    whole += np.float32(MENTION_WEIGHT) * mention_scores(table, mention_matches)
    return whole if extra is None else whole + extra


def combine(
    table: NodeTable,
    matches: Matches,
    mention_matches: dict[int, list[MentionMatch]],
    role_factors: Floats,
    *,
    by_whole: bool,
    extra: Floats | None = None,
) -> Floats:
    """Add up what speaks for each node, as a share of what speaks for the best one.

    Args:
        role_factors: (n,) what each score is multiplied with, for the role of the file.
        by_whole: whether files decide, and parts come behind their file (a long report is about a file); else parts
            decide, and a file is as good as its best part (a question is answered by a part).
        extra: (h,) what else speaks for each home.
    """
    own = share_of_best(matches.parts * role_factors)
    if not len(table.homes):
        return own
    whole = whole_scores(table, matches, mention_matches, extra)
    whole = share_of_best(whole * role_factors[table.homes])
    inside = table.home_row >= 0
    rows = table.home_row[inside]
    best_in_home = best_of(rows, matches.parts[inside], len(table.homes))
    share = matches.parts[inside] / np.maximum(best_in_home[rows], np.float32(1e-9))
    scores = own.copy()
    scores[table.homes] = 0
    if by_whole:
        scores[inside] = np.float32(0.99) * whole[rows] * share
        scores[table.homes] = whole
    else:
        scores[inside] = np.float32(0.5) * own[inside] + np.float32(0.5) * whole[rows] * share
        scores[table.homes] = best_of(rows, scores[inside], len(table.homes))
    return share_of_best(scores)


def confidence(table: NodeTable, matches: Matches, scores: Floats) -> float:
    """Say how much of the question the best node covers, in [0, 1], so that scores can be compared across questions.

    The share of the question's weight (term weights times inverse document frequency; a word that no node has
    counts as the rarest) that is in the text of the best node, or of the file that it is in.
    """
    if matches.total <= 0 or not len(scores):
        return 0.0
    best = int(np.argmax(scores))
    covered = float(matches.covered[best])
    if table.home_row[best] >= 0:
        covered = max(covered, float(matches.covered_whole[table.home_row[best]]))
    return math.sqrt(min(1.0, covered / matches.total))
