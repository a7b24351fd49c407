"""The words that a question turns on: names, and words that are rare in any text.

A passage on pools does not say how a pool of PostgreSQL connections is made, however many of the other words it
holds. Whether a word is rare is decided without counting any collection, so that a reader, which sees one text at a
time, can tell: by its shape (a capital inside a sentence, several capitals, digits, underscores), and by the tokens
that the static embeddings cut it into, whose numbers follow their frequency in a large corpus.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import lru_cache

from metatree_routers.embeddings.static import StaticEmbedder, static_embedder
from metatree_routers.query.parse import sections
from metatree_routers.query.terms import expand, raw_tokens

NAME = 2.0
"""Weight added for what is written like a name."""
STRONG = 1.6
"""A word of at least this weight has to be said; below, another word may stand for it."""
NOTABLE = 0.9
"""A word of at least this weight that is the heaviest of a question has to be in the passage that closes it."""
MOST_MISSING = 0.45
"""With more than this share of its weight in words that are in no text, nothing answers a question."""
MOST_STRONG_MISSING = 0.4
"""The same for the weight of its strong words alone."""
_COMMON, _RARE = 6.0, 10.4
"""Logarithms of the numbers of frequent and of the rarest tokens."""
_MOST_WORDS = 60
_PLACE = re.compile(r"\bin\s+$", re.IGNORECASE)
_SENTENCE = re.compile(r"(?:^|[.!?:]\s+|\n)\W*$")
_LETTERS = re.compile(r"[^\W\d_]")


@dataclass(frozen=True, slots=True)
class KeyTerm:
    """A word of a question."""

    text: str
    terms: tuple[str, ...]
    weight: float
    """How much the question turns on it: near 0 for a frequent word, above `STRONG` for names and rare words."""

    def is_in(self, terms: Collection[str]) -> bool:
        """Say whether a text with these terms says it: as it is written, or in all its parts."""
        whole, *parts = reversed(self.terms)
        return whole in terms or (bool(parts) and all(part in terms for part in parts))


def key_terms_of(question: str, *, embeddings: bool = True) -> tuple[KeyTerm, ...]:
    """Return the words of a question that count, each once, the heaviest first; none of a long report.

    Example:
        >>> [word.text for word in key_terms_of("How is the Redis cache used?", embeddings=False)]
        ['Redis', 'cache', 'used']
    """
    return _words(sections(question).title, embeddings) if not sections(question).is_long else ()


@lru_cache(maxsize=256)
def _words(question: str, embeddings: bool) -> tuple[KeyTerm, ...]:
    embedder = static_embedder() if embeddings else None
    terms_by_text: dict[str, KeyTerm] = {}
    at = 0
    for raw in raw_tokens(question):
        at = question.index(raw, at)
        before = question[max(0, at - 20) : at]
        # `in Flask` says where: what is asked for there need not name it.
        plain = _SENTENCE.search(before) or _PLACE.search(before)
        at += len(raw)
        terms = expand(raw)
        if not terms or len(raw) < 2 or not _LETTERS.search(raw):
            continue
        weight = _rarity(raw, embedder)
        if _is_name(raw, plain=bool(plain)):
            weight += NAME
        known = terms_by_text.get(terms[-1])
        if known is None or known.weight < weight:
            terms_by_text[terms[-1]] = KeyTerm(raw, terms, weight)
    return tuple(sorted(terms_by_text.values(), key=lambda word: -word.weight)[:_MOST_WORDS])


def _is_name(raw: str, *, plain: bool) -> bool:
    if any(map(str.isupper, raw[1:])) or any(map(str.isdigit, raw)) or "_" in raw.strip("_") or "." in raw:
        return True
    return raw[0].isupper() and not plain


def _rarity(raw: str, embedder: StaticEmbedder | None) -> float:
    """Weigh a word by its tokens: one frequent token near 0, one rare token near 1, more for each further token."""
    if embedder is None:
        return 0.5
    tokens = embedder.tokens(raw.lower())
    if not tokens:
        return 0.5
    rank = math.log(max(max(tokens), 1))
    first = min(1.0, max(0.1, (rank - _COMMON) / (_RARE - _COMMON)))
    return first if len(tokens) == 1 else first + 0.35 * (len(tokens) - 1)


def missing(words: Collection[KeyTerm], is_known: Callable[[KeyTerm], bool]) -> tuple[str, ...]:
    """Return the words without which nothing answers and that are not known; none when enough is known.

    Strong words of more than `MOST_STRONG_MISSING` of the weight of all strong ones suffice, or words of more than
    `MOST_MISSING` of the weight of all.
    """
    strong = [word for word in words if word.weight >= STRONG]
    for counted, most in ((strong, MOST_STRONG_MISSING), (words, MOST_MISSING)):
        unknown = [word for word in counted if not is_known(word)]
        if sum(word.weight for word in unknown) > most * sum(word.weight for word in counted):
            return tuple(word.text for word in unknown)
    return ()
