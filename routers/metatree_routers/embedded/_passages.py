"""Find the passage of a text that answers a question: one to three sentences of prose, or some lines of code."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from metatree_routers.embedded._sentences import sentences
from metatree_routers.embeddings.static import Embedder
from metatree_routers.query.parse import MAX_CHARS as MAX_QUESTION_CHARS
from metatree_routers.query.parse import sections
from metatree_routers.query.terms import expand, raw_tokens, term_counts, terms

MAX_CHARS = 400_000
"""A longer content is read up to here."""
MAX_SPANS = 4_000
MAX_SENTENCES = 3
MAX_PASSAGE_CHARS = 900
MAX_CODE_LINES = 40
_MOST_NAMING = 4
"""Words that name a speaker and a day, at most, besides numbers."""
_NEAREST = 24
"""Passages whose cosine is computed: those with the most words."""


@dataclass(frozen=True, slots=True)
class Quotation:
    """A stretch of a text, and how well it answers."""

    start: int
    end: int
    coverage: float
    """Share of the question's weight that is in the passage, in [0, 1]."""
    cosine: float
    """Nearness in meaning; 0 without an embedder."""

    @property
    def score(self) -> float:
        """How sure it is that the passage answers, in [0, 1]."""
        return score(self.coverage, self.cosine)


def score(coverage: float, cosine: float) -> float:
    """Weigh the two to one score in [0, 1].

    A logistic fit on questions over papers, encyclopedia articles and conversations: passages that answer them
    against passages drawn at random.
    """
    return 1.0 / (1.0 + math.exp(-(7.6 * coverage + 3.2 * cosine - 1.7)))


def best_passage(
    text: str, question: str, *, is_code: bool = False, embedder: Embedder | None = None
) -> Quotation | None:
    """Return the passage that answers best, None when the text has no word of the question in it.

    Args:
        is_code: cut into lines instead of sentences.
    """
    text = text[:MAX_CHARS]
    parts = sections(question)
    spans = _lines(text) if is_code else list(sentences(text))[:MAX_SPANS]
    if not spans:
        return None
    counts = [term_counts(text[start:end]) for start, end in spans]
    own, wording = _question_terms(question)
    weights, total = _weights(own, counts)
    if not total:
        return None
    have = [count.keys() & weights.keys() for count in counts]
    windows = _code_windows(text, spans, have, weights) if is_code else _windows(spans, have, weights)
    windows = [
        window
        for window in windows
        if _adds_terms(passage := text[window[0] : window[1]], own) and not _is_question(passage, wording)
    ]
    if not windows:
        return None
    cosine = _cosines(parts.title if parts.is_long else question, text, windows, embedder)
    best = max(range(len(windows)), key=lambda i: (score(windows[i][2] / total, cosine[i]), -windows[i][0]))
    start, end, weight = windows[best]
    return Quotation(start, end, weight / total, cosine[best])


@lru_cache(maxsize=16)
def _question_terms(question: str) -> tuple[Mapping[str, float], frozenset[str]]:
    """Return the weights of a question's terms, and the terms: one question is asked of many texts."""
    return sections(question).term_weights(), frozenset(terms(question[:MAX_QUESTION_CHARS]))


def _adds_terms(passage: str, own: Collection[str]) -> bool:
    """Whether a passage has a word or a number besides those of the question; a heading often has none."""
    return any(
        raw.isdecimal() or (len(raw) > 1 and any(term not in own for term in _simple(raw)))
        for raw in raw_tokens(passage)
    )


_ASKS = re.compile(r"\?[\W_]*$")
_COLON = re.compile(r":\s")
_BRACKETED = re.compile(r"\[[^\]\n]*\]")


def _is_question(passage: str, wording: frozenset[str]) -> bool:
    """Whether a passage is the question itself, maybe with who asks it and when: `user: Where is the car?`."""
    if not _ASKS.search(passage):
        return False
    if set(terms(passage)) == wording:
        return True
    colon = _COLON.search(passage)
    if colon is None:
        return False
    naming = [raw for raw in raw_tokens(_BRACKETED.sub("", passage[: colon.start()])) if not raw.isdecimal()]
    return len(naming) <= _MOST_NAMING and set(terms(passage[colon.end() :])) == wording


def _simple(raw: str) -> tuple[str, ...]:
    """Give the terms of a raw token without the whole of a name: `_stream-download` has no more than its parts."""
    terms = expand(raw)
    return terms[:-1] if len(terms) > 1 else terms


def _weights(own: Mapping[str, float], counts: Sequence[Counter[str]]) -> tuple[dict[str, float], float]:
    """Weigh the question's terms: what every passage says tells them apart least.

    Returns:
        The weights of those that are in the text, and the sum of all.
    """
    n = len(counts)

    def factor(df: int) -> float:
        return 0.5 + math.log1p((n - df + 0.5) / (df + 0.5)) / math.log1p(2 * n + 1)

    df = Counter(term for count in counts for term in count if term in own)
    weights = {term: own[term] * factor(times) for term, times in df.items()}
    missing = factor(0)
    return weights, sum(
        weights[term] if term in weights else weight * missing for term, weight in own.items()
    )


Window = tuple[int, int, float]
"""Start, end, and the weight of the question's terms in it."""


def _windows(
    spans: Sequence[tuple[int, int]], matches: Sequence[Collection[str]], weights: dict[str, float]
) -> list[Window]:
    """Grow each sentence that matches by its neighbours as long as they bring another word of the question.

    Args:
        matches: the words of the question in each sentence; as with lines, so the length of the question counts once.
    """
    windows = []
    for middle, matched in enumerate(matches):
        if not matched:
            continue
        have = set(matched)
        first = last = middle
        while last - first + 1 < MAX_SENTENCES:
            gains = []
            for at in (last + 1, first - 1):
                if 0 <= at < len(spans):
                    low, high = min(first, at), max(last, at)
                    gain = math.fsum(weights[term] for term in matches[at] if term not in have)
                    if gain > 0 and spans[high][1] - spans[low][0] <= MAX_PASSAGE_CHARS:
                        gains.append((gain, at))
            if not gains:
                break
            _, at = max(gains)
            first, last = min(first, at), max(last, at)
            have.update(matches[at])
        windows.append((spans[first][0], spans[last][1], math.fsum(weights[term] for term in have)))
    windows.sort(key=lambda window: (-window[2], window[1] - window[0], window[0]))
    return windows[:_NEAREST]


def _lines(text: str) -> list[tuple[int, int]]:
    lines, start = [], 0
    for line in text.split("\n"):
        lines.append((start, start + len(line)))
        start += len(line) + 1
    return lines[: MAX_SPANS * 5]


def _code_windows(
    text: str, spans: Sequence[tuple[int, int]], matches: Sequence[Collection[str]], weights: dict[str, float]
) -> list[Window]:
    """Take short code whole; of long code, the lines around each match, blank lines at the ends left out."""
    if len(spans) <= MAX_CODE_LINES:
        starts = [0]
    else:
        at = [i for i, matched in enumerate(matches) if matched]
        starts = sorted({max(0, min(i - MAX_CODE_LINES // 3, len(spans) - MAX_CODE_LINES)) for i in at})
    windows = []
    for first in starts[:MAX_SPANS]:
        last = min(first + MAX_CODE_LINES, len(spans)) - 1
        have = set().union(*matches[first : last + 1])
        if not have:
            continue
        while not text[slice(*spans[first])].strip():
            first += 1
        while not text[slice(*spans[last])].strip():
            last -= 1
        windows.append((spans[first][0], spans[last][1], math.fsum(weights[term] for term in have)))
    windows.sort(key=lambda window: (-window[2], window[0]))
    return windows[:_NEAREST]


def _cosines(question: str, text: str, windows: Sequence[Window], embedder: Embedder | None) -> list[float]:
    if embedder is None:
        return [0.0] * len(windows)
    vectors = embedder.embed([question, *(text[start:end] for start, end, _ in windows)])
    return [float(value) for value in vectors[1:] @ vectors[0]]
