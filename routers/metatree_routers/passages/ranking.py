"""Rank the passages that may answer a question, and say how likely the best one does.

Two small models whose numbers are in `_model`: a ranker, which orders forty candidates (a logistic model over the list:
one of them is right), and a claim model, which turns the features of its best one into a probability. Both are fitted
by `python -m benchmarks.answers.fit`, on questions over packages that nobody tuned on.

Source: the ranker is the list-wise loss of Cao et al. 2007 ("Learning to Rank: From Pairwise Approach to Listwise
Approach") with one linear layer. Lost: adding scores by hand (half as many right ones first), boosted trees, and a
threshold on BM25, which cannot tell a question that nothing answers from one in other words.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from metatree_routers.embeddings.static import Embedder
from metatree_routers.passages._model import BIAS, CLAIM, RANKER
from metatree_routers.passages.asked import Asked
from metatree_routers.passages.candidates import Text, candidates_of, weigh
from metatree_routers.passages.features import Floats, PassageCandidate, features

_ALONE = 2.0
"""Lead of a candidate that has no rival."""


def rank_passages(
    asked: Asked, texts: Iterable[Text], df: Mapping[str, int], n: int, embedder: Embedder | None
) -> list[tuple[PassageCandidate, float]]:
    """Return the candidates with how likely each answers, in [0, 1], the likeliest first.

    Args:
        texts: where to look.
        df: in how many texts of the tree each term of the question is.
        n: how many texts the tree has.
        embedder: for nearness in meaning; None for words alone.
    """
    weights = weigh(asked, df, n)
    candidates = candidates_of(asked, texts, weights, embedder)
    if not candidates:
        return []
    rows = features(asked, candidates, weights, embedder)
    scores = rows @ RANKER
    order = np.argsort(-scores, kind="stable")
    best = claim_probability(claim_features(asked, rows[order], scores[order]))
    likelihood = best * np.exp(scores[order] - scores[order[0]])
    return [(candidates[number], float(p)) for number, p in zip(order, likelihood, strict=True)]


def claim_features(asked: Asked, rows: Floats, scores: Floats) -> Floats:
    """Return what says whether the first candidate answers: (len(CLAIM),).

    Args:
        rows: features of the candidates, the best first.
        scores: what the ranker gave them.
    """
    shares = np.exp(scores - scores[0])
    lead = float(scores[0] - scores[1]) if len(scores) > 1 else _ALONE
    more = [scores[0], 1.0 / shares.sum(), min(lead, _ALONE), np.log1p(len(asked.weights))]
    return np.concatenate([rows[0], more])


def claim_probability(row: Floats) -> float:
    """Return how likely a claim with these features is right."""
    return float(1.0 / (1.0 + np.exp(-(row @ CLAIM + BIAS))))


def best_apart(
    ranked: Sequence[tuple[PassageCandidate, float]], k: int
) -> list[tuple[PassageCandidate, float]]:
    """Return the first `k` that share no line with a better one, and do not say the same."""
    kept: list[tuple[PassageCandidate, float]] = []
    for candidate, score in ranked:
        if len(kept) >= k:
            break
        if not any(_same_place(candidate, other) or candidate.text == other.text for other, _ in kept):
            kept.append((candidate, score))
    return kept


def _same_place(one: PassageCandidate, other: PassageCandidate) -> bool:
    return one.node == other.node and one.first <= other.last and other.first <= one.last
