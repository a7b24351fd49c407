"""How near a question is to short texts, such as what a standing wish is for: in meaning, or in words without that.

A question names the kind of its answer by a word of asking: *when* asks for a date, which a wish on dates is for.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from metatree_routers.embeddings.static import Embedder
from metatree_routers.query.terms import term_counts

_ASKS_FOR = tuple(
    (re.compile(pattern, re.IGNORECASE), words)
    for pattern, words in (
        (r"^(?:when|what (?:date|day|time)|how (?:soon|long))\b", "date time schedule"),
        (r"\bhow much\b", "amount cost price"),
        (r"\bhow many\b", "number count"),
        (r"^how (?:do|can|should|to)\b|\bshow me how\b", "steps practice implementation"),
        (r"\bwhat happened\b", "events outcome"),
        (r"^where\b", "place location"),
    )
)


def nearness(question: str, texts: Sequence[str], embedder: Embedder | None) -> list[float]:
    """Say how near a question is to each text, in [0, 1]."""
    asked = " ".join([question, *(words for pattern, words in _ASKS_FOR if pattern.search(question))])
    if embedder is None:
        wanted = set(term_counts(asked))
        return [_share(wanted, set(term_counts(text))) for text in texts]
    vectors = embedder.embed([asked, *texts])
    return [max(0.0, float(cosine)) for cosine in vectors[1:] @ vectors[0]]


def _share(one: set[str], other: set[str]) -> float:
    return len(one & other) / max(1, min(len(one), len(other)))
