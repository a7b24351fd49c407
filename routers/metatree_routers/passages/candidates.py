"""The passages that may answer a question, out of all that some texts hold."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

import numpy as np

from metatree.node import Node
from metatree.trees.masking import is_code as is_program
from metatree_routers.embeddings.static import Embedder
from metatree_routers.passages._cut import Line, Span, heading_end, lines_of, spans_of
from metatree_routers.passages._exact import holds
from metatree_routers.passages.asked import Asked
from metatree_routers.passages.features import Floats, PassageCandidate
from metatree_routers.passages.pieces import pieces_of
from metatree_routers.passages.release import IS_CHANGES, is_release, release_above, releases_of
from metatree_routers.query.derived import derived_terms, with_originals
from metatree_routers.query.terms import expand, raw_tokens, term_counts

KEPT: Final = 40
"""Candidates that the ranker sees."""
_OF_A_TEXT = 10
_COMPARED = 150
_MEAN_WORDS = 80
_K1, _B = 1.2, 0.75
_ABOVE = 0.5
"""Of the weight of a term that stands above a passage and not in it."""
_ABOVE_TOO = 0.15
"""Of the weight of one that stands in both."""
_EXACT, _EXACT_LEAD, _EXACT_TITLE = 1.0, 0.6, 0.4
"""Of the heaviest term, for what must be found as it stands and is there."""
_MOST_OVERLAP = 0.5
_MOST_CODE_CHARS = 3_000
"""Of a passage of code. What has longer lines was made by a program, as an index of words that a page searches: it has
every word of every question."""
_DESCRIPTION_CHARS = 160

_PROSE_SUFFIXES = frozenset({".md", ".rst", ".txt", ".html", ".htm", ".pdf", ".adoc", ".tex", ""})
_DATA_SUFFIXES = frozenset(
    {
        ".json",
        ".jsonl",
        ".yaml",
        ".yml",
        ".toml",
        ".ini",
        ".cfg",
        ".conf",
        ".xml",
        ".csv",
        ".tsv",
        ".po",
        ".service",
    }
)
_CODE_KINDS = frozenset({"definition", "class", "function", "method", "code"})


@dataclass(frozen=True, slots=True)
class Text:
    """The content of a node, and the evidence for the node."""

    node: Node
    content: str
    evidence: float = 0.0
    under: str = ""
    """The release that it stands under, where it is a part of a changelog whose headings are nodes."""


def weigh(asked: Asked, df: Mapping[str, int], n: int) -> dict[str, float]:
    """Weigh the question's terms by how rare they are; those that no text has weigh as much as the rarest.

    Args:
        df: in how many texts each term is.
        n: how many texts there are.
    """
    return {
        term: weight * math.log1p((n - df.get(term, 0) + 0.5) / (df.get(term, 0) + 0.5))
        for term, weight in asked.weights.items()
    }


def candidates_of(
    asked: Asked, texts: Iterable[Text], weights: Mapping[str, float], embedder: Embedder | None
) -> list[PassageCandidate]:
    """Return at most `KEPT` passages, best first by words and nearness in meaning; of copies the first."""
    known = _Held(weights.keys())
    every = [pair for text in texts for pair in _of_text(asked, text, weights, known)]
    every.sort(key=lambda pair: -pair[0])
    # A copy, as of a page that is there as source and as HTML, would halve what speaks for the first.
    scored = list({" ".join(pair[1].text.split()): pair for pair in reversed(every)}.values())[::-1]
    del scored[_COMPARED:]
    candidates = [candidate for _, candidate in scored]
    if embedder is None or len(candidates) < 2:
        return candidates[:KEPT]
    by_words = np.array([score for score, _ in scored])
    vectors = embedder.embed([asked.text, *(f"{' '.join(c.leads)} {c.text}" for c in candidates)])
    order = np.argsort(-(_standard(by_words) + _standard(vectors[1:] @ vectors[0])), kind="stable")
    return [candidates[number] for number in order[:KEPT]]


def _standard(values: Floats) -> Floats:
    return np.asarray((values - values.mean()) / max(float(values.std()), 1e-6))


def _of_text(
    asked: Asked, text: Text, weights: Mapping[str, float], known: _Held
) -> list[tuple[float, PassageCandidate]]:
    """Score the passages of a text by their words, and keep the best that do not overlap much."""
    node, content = text.node, text.content
    is_code = is_code_text(node, content)
    lines = lines_of(content)
    counts = [_counts(content[line.start : line.end], known) for line in lines]
    about = f"{node.path or node.id} {node.description[:_DESCRIPTION_CHARS]}"
    derived = derived_terms(asked.text)
    titles = term_counts(f"{node.title} {node.path or node.id}").keys()
    called = with_originals(titles, derived) & weights.keys()
    raw_lines = content.split("\n") if IS_CHANGES.search(f"{node.id} {node.title}") else []
    releases = releases_of(raw_lines)
    above_all = text.under or (node.title if is_release(node.title) else "")

    def release_at(start: int) -> str:
        return (
            release_above(raw_lines, releases, content.count("\n", 0, start), above_all) if raw_lines else ""
        )

    in_title = [one for one in asked.exact if holds(node.title, one)]
    heaviest = max(weights.values(), default=0.0)
    scored: list[tuple[float, Span]] = []
    for span in spans_of(content, lines, is_code=is_code, pieces=pieces_of(node, content)):
        own = content[lines[span.first].start : lines[span.last].end]
        if (is_code and len(own) > _MOST_CODE_CHARS) or asked.is_repeated_by(own[heading_end(own) :]):
            continue
        leads = " ".join([*span.leads, release_at(lines[span.first].start)])
        above = called | (with_originals(term_counts(leads).keys(), derived) & weights.keys())
        score = _bm25(counts[span.first : span.last + 1], _words_in(content, lines, span), above, weights)
        stretch = content[lines[span.first].start : lines[span.last].end] if asked.exact else ""
        for one in asked.exact:
            if holds(stretch, one):
                score += _EXACT * heaviest
            elif holds(leads, one):
                score += _EXACT_LEAD * heaviest
            elif one in in_title:
                score += _EXACT_TITLE * heaviest
        scored.append((score, span))
    return [
        (
            score,
            PassageCandidate(
                node.id,
                node.title,
                about,
                lines[span.first].start,
                span.first,
                span.last,
                span.leads,
                content[lines[span.first].start : lines[span.last].end],
                is_code,
                text.evidence,
                release_at(lines[span.first].start),
            ),
        )
        for score, span in _apart(scored)
    ]


class _Held(dict[str, tuple[str, ...]]):
    """Raw token -> those of its terms that a question has, looked up once."""

    def __init__(self, wanted: Collection[str]) -> None:
        self._wanted = wanted

    def __missing__(self, raw: str) -> tuple[str, ...]:
        held = self[raw] = tuple(term for term in expand(raw) if term in self._wanted)
        return held


def _counts(text: str, held: _Held) -> dict[str, int]:
    """Count the terms of a question in a text."""
    counts: dict[str, int] = {}
    for raw in raw_tokens(text):
        for term in held[raw]:
            counts[term] = counts.get(term, 0) + 1
    return counts


def _bm25(counts: list[dict[str, int]], words: int, above: set[str], weights: Mapping[str, float]) -> float:
    times: dict[str, int] = {}
    for line in counts:
        for term, number in line.items():
            times[term] = times.get(term, 0) + number
    norm = _K1 * (1 - _B + _B * words / _MEAN_WORDS)
    own = math.fsum(weights[term] * tf * (_K1 + 1) / (tf + norm) for term, tf in times.items())
    return own + math.fsum(weights[term] * (_ABOVE_TOO if term in times else _ABOVE) for term in above)


def _words_in(content: str, lines: list[Line], span: Span) -> int:
    return content.count(" ", lines[span.first].start, lines[span.last].end) + span.last - span.first + 1


def _apart(scored: list[tuple[float, Span]]) -> list[tuple[float, Span]]:
    """Keep the best spans of a text, each overlapping no better one by more than half of the shorter."""
    kept: list[tuple[float, Span]] = []
    for score, span in sorted(scored, key=lambda pair: -pair[0]):
        if len(kept) >= _OF_A_TEXT:
            break
        if all(
            min(span.last, other.last) - max(span.first, other.first) + 1
            <= _MOST_OVERLAP * (min(span.last - span.first, other.last - other.first) + 1)
            for _, other in kept
        ):
            kept.append((score, span))
    return kept


def is_code_text(node: Node, content: str) -> bool:
    """Say whether a content is code or data: by the kind of its node, the name of its file, or its lines.

    A suffix that says nothing is one of prose: `README.Debian`, `NEWS.old`, `INSTALL.linux`, `units.1`.
    """
    if node.kind in _CODE_KINDS:
        return True
    path = node.path or node.title
    suffix = PurePosixPath(path).suffix.lower()
    named = suffix not in _PROSE_SUFFIXES and (suffix in _DATA_SUFFIXES or is_program(path))
    return named or looks_like_code(content)


_CODE = re.compile(
    r"^\s*(?:def |class |async def |import |from \w+ import |@\w|return\b|if .*:$|#include|function |\}|\{)"
)


def looks_like_code(text: str) -> bool:
    """Whether most of the lines that say something are code."""
    lines = [line for line in text[:20_000].split("\n") if line.strip()]
    return bool(lines) and sum(bool(_CODE.match(line)) for line in lines) * 5 >= len(lines)
