"""Score a short menu for questions, from titles and descriptions alone."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from metatree.protocols import Option
from metatree_routers.embeddings.static import Embedder
from metatree_routers.query.parse import sections
from metatree_routers.query.terms import term_counts

TITLE_WEIGHT = 2
COSINE_WEIGHT = 1.0
LEAST_COSINE = 0.25
"""Below, without a word in common, an option has nothing to do with the question."""


@dataclass(frozen=True, slots=True)
class MenuScore:
    """What speaks for an option."""

    score: float
    words: tuple[str, ...]
    """Terms that it has in common with the questions, the rarest first."""
    cosine: float


def score_menu(
    questions: Sequence[str], options: Sequence[Option], embedder: Embedder | None
) -> list[MenuScore]:
    """Score options for questions: the share of the question's words, rare ones first, plus the cosine."""
    texts = [" ".join([option.parent or "", option.title, option.description]) for option in options]
    counts = [term_counts(text) for text in texts]
    for option, count in zip(options, counts, strict=True):
        for term, times in term_counts(option.title).items():
            count[term] += (TITLE_WEIGHT - 1) * times
    df = Counter(term for count in counts for term in count)
    best = [MenuScore(0.0, (), 0.0)] * len(options)
    for question in questions:
        parts = sections(question)
        wanted = {
            term: weight * math.log1p((len(options) + 0.5) / (df[term] + 0.5))
            for term, weight in parts.term_weights().items()
        }
        cosine = _cosines(question if not parts.is_long else parts.title, texts, embedder)
        total = sum(wanted.values()) or 1.0
        for number, count in enumerate(counts):
            words = sorted((term for term in wanted if count[term]), key=lambda term: (-wanted[term], term))
            share = sum(wanted[term] * count[term] / (count[term] + 1.0) for term in words) / total
            score = (
                share + COSINE_WEIGHT * max(0.0, cosine[number])
                if words or cosine[number] >= LEAST_COSINE
                else 0.0
            )
            if score > best[number].score:
                best[number] = MenuScore(score, tuple(words), cosine[number])
    return best


def _cosines(question: str, texts: Sequence[str], embedder: Embedder | None) -> list[float]:
    if embedder is None or not texts:
        return [0.0] * len(texts)
    vectors = embedder.embed([question, *texts])
    return [float(value) for value in vectors[1:] @ vectors[0]]
