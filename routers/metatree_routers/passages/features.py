"""What speaks for a passage: a few numbers for each of a question's candidates, computed together.

All are shares, cosines or yes and no, so that they mean the same in a small tree and in a large one. Kept are those
that bring something on sources that they were not fitted on; docs/benchmarks/answers.md has what each carries.

Lost: BM25 of the passage, its pairs of words, the best window of thirty words, the length, the words of titles and of
headings by themselves, and where in its text it lies: nothing more beside these.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from metatree_routers.embeddings.static import Embedder
from metatree_routers.passages.asked import Asked
from metatree_routers.query.key_terms import STRONG
from metatree_routers.query.terms import expand, raw_tokens

Floats = npt.NDArray[np.float64]

FEATURES: Final = (
    "distinct_words", "line_cosine", "soft_cover_of_best", "exact", "wanted_kind", "cosine_of_best", "name_missing",
    "is_code", "lead_cosine", "defines", "heaviest_missing", "default_said", "key_missing", "evidence_of_best", "short",
    "is_test", "cover", "exact_missing",
)  # fmt: skip
"""Distinct words of the question, of eight; cosine of the nearest line; words of the question by the nearest word of
the passage, against the best candidate; exact things of the question that are there; whether it holds the kind of thing
that is asked for; cosine, against the best; whether a name or rare word is missing; code; cosine of headings and title;
whether it defines something, when `what` is asked; weight of the heaviest word that is missing; whether it speaks of a
default, when one is asked for; share of the names and rare words that are missing; evidence of its node, against the
best; fewer than twelve words; a test or an example; share of the question's words that are there, by weight;
exact things of the question that are missing."""

LEAST_NEAR: Final = 0.4
"""Cosine of two words below which one does not stand for the other."""
MOST_WORDS: Final = 6_000
"""Different words of all candidates that are compared with those of the question."""
_LINE_CHARS = 12
_SHORT = 12
_MOST_DISTINCT = 8


@dataclass(frozen=True, slots=True)
class PassageCandidate:
    """A passage that may answer, and its place."""

    node: str
    title: str
    about: str
    """What else its node is called: path, and the first words of its description."""
    start: int
    first: int
    last: int
    """Lines of the content, from 0, both included."""
    leads: tuple[str, ...]
    text: str
    is_code: bool
    evidence: float
    """Of its node, in [0, 1]."""

    @property
    def head(self) -> str:
        """What it stands under: headings and lines that it is indented under, and the title of its node."""
        return " ".join([*self.leads, self.title])


_MONTH = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_WANTED: Final[Mapping[str, re.Pattern[str]]] = {
    "when": re.compile(
        rf"\b(?:19|20)\d\d\b|\b\d{{1,2}}[-./](?:\d{{1,2}}|{_MONTH})[-./]\d{{2,4}}\b"
        rf"|\b{_MONTH}[a-z]* \d{{1,2}}\b|\b\d{{1,2}}(?:st|nd|rd|th)? (?:of )?{_MONTH}"
        r"|\b(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)days?\b|\b\d{1,2}:\d\d\b|\b(?:noon|midnight)\b"
        r"|\b(?:\d+|an?|one) (?:second|minute|hour|day|week|month|year)s?\b"
    ),
    "version": re.compile(r"\bv?\d+\.\d+(?:\.\d+)*\b"),
    "amount": re.compile(
        r"(?<![\w.])\d+(?:[.,]\d+)*"
        r"|\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|hundred|half|twice)\b"
        r"|\bone (?:second|minute|hour|day|week|month|year|time)\b",
    ),
    "who": re.compile(
        r"\b[A-Z][a-zà-ÿš'-]+ (?:[A-Z]\. |van |von |de )?[A-Z][a-zà-ÿš'-]+\b|<[\w.+-]+@[\w.-]+>|(?<!\S)@\w+"
    ),
    "code": re.compile(
        r"\b(?:def|class|function|struct|const|var|let)\s+\w+|\b[a-z]+_\w+\b|\b[A-Z][a-z]+[A-Z]\w+|\w+\(\)"
    ),
    "where": re.compile(
        r"\b(?:in|on|at|under|behind|inside|near|beside|between|above|below|to|into) (?:the |an? |its |[A-Z~/`])"
        r"|\w[/\\]\w"
    ),
    "option": re.compile(r"(?<![\w-])--?[a-zA-Z][\w-]*|\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b|``[^`\n]+``"),
    "default": re.compile(
        r"\bdefaults?\b|\bnone is\b|\botherwise\b|\bif (?:not|no|omitted|unset)\b|\w=\S", re.IGNORECASE
    ),
    "how": re.compile(
        r"\b(?:use|set|run|call|pass|install|type|add|specify|you can|to \w+,|must|should)\b|\$ |>>> |::",
        re.IGNORECASE,
    ),
    "why": re.compile(
        r"\b(?:because|since|so that|in order to|reason|therefore|to avoid|due to)\b", re.IGNORECASE
    ),
}
_DEFINES = re.compile(
    r"\b(?:is|are|means|stands for|returns?|represents?|refers to|specif\w+|contains?|holds?)\b",
    re.IGNORECASE,
)
_ASKS_DEFAULT = re.compile(r"default|nothing|unless", re.IGNORECASE)
_TEST = re.compile(r"(?:^|/)(?:tests?|testing|spec|examples?|demo)[/_.]|test_", re.IGNORECASE)


def features(
    asked: Asked,
    candidates: Sequence[PassageCandidate],
    weights: Mapping[str, float],
    embedder: Embedder | None,
) -> Floats:
    """Return (n, len(FEATURES)) for the candidates of a question.

    Args:
        weights: of the question's terms, by how rare they are in the tree.
        embedder: for nearness in meaning; None for words alone, whose cosines are 0.
    """
    if not candidates:
        return np.zeros((0, len(FEATURES)))
    rows = np.array([_words_of(asked, candidate, weights) for candidate in candidates])
    if embedder is not None:
        rows[:, _COLUMNS] = _meaning_of(asked, candidates, weights, embedder)
    for name in ("soft_cover_of_best", "cosine_of_best", "evidence_of_best"):
        column = rows[:, FEATURES.index(name)]
        best = column.max()
        rows[:, FEATURES.index(name)] = column / best if best > 0 else 0.0
    return rows


_COLUMNS = [
    FEATURES.index(name) for name in ("line_cosine", "soft_cover_of_best", "cosine_of_best", "lead_cosine")
]


def _words_of(asked: Asked, candidate: PassageCandidate, weights: Mapping[str, float]) -> list[float]:
    """Return a row without what embeddings say."""
    tokens = raw_tokens(candidate.text)
    here = {term for raw in tokens for term in expand(raw)}
    place = here | {term for raw in raw_tokens(f"{candidate.head} {candidate.about}") for term in expand(raw)}
    strong = [word for word in asked.key_terms if word.weight >= STRONG]
    missing = [word for word in strong if not word.is_in(place)]
    heaviest = max(weights.values(), default=0.0)
    row = dict.fromkeys(FEATURES, 0.0)
    row["distinct_words"] = min(len(here & weights.keys()), _MOST_DISTINCT) / _MOST_DISTINCT
    if asked.exact:
        whole = f"{candidate.text}\n{candidate.head}\n{candidate.about}"
        row["exact"] = sum(holds(whole, one) for one in asked.exact) / len(asked.exact)
        row["exact_missing"] = 1.0 - row["exact"]
    row["wanted_kind"] = _has_wanted(asked, candidate.text)
    row["name_missing"] = float(bool(missing))
    if missing:
        row["key_missing"] = sum(word.weight for word in missing) / sum(word.weight for word in strong)
    row["is_code"] = float(candidate.is_code)
    row["defines"] = float(asked.kind == "what" and bool(_DEFINES.search(candidate.text[:300])))
    if heaviest > 0:
        row["heaviest_missing"] = (
            max((w for t, w in weights.items() if t not in place), default=0.0) / heaviest
        )
    asks_default = _ASKS_DEFAULT.search(asked.text)
    row["default_said"] = float(bool(asks_default) and bool(_WANTED["default"].search(candidate.text)))
    row["evidence_of_best"] = candidate.evidence
    row["short"] = float(len(tokens) < _SHORT)
    row["is_test"] = float(bool(_TEST.search(candidate.node)))
    if total := sum(weights.values()):
        row["cover"] = sum(weight for term, weight in weights.items() if term in here) / total
    return list(row.values())


def _has_wanted(asked: Asked, text: str) -> float:
    """Say whether a passage holds the kind of thing that is asked for, and not only what the question itself says."""
    pattern = _WANTED.get(asked.kind)
    if pattern is None:
        return 0.0
    own = asked.text.lower()
    words = (text[match.start() : match.start() + 40].split() for match in pattern.finditer(text))
    return float(any(word and word[0].lower().strip(",.;") not in own for word in words))


def _meaning_of(
    asked: Asked, candidates: Sequence[PassageCandidate], weights: Mapping[str, float], embedder: Embedder
) -> Floats:
    """Return (n, 4): cosine of the nearest line, cover by near words, cosine, cosine of what it stands under."""
    n = len(candidates)
    vectors = embedder.embed([asked.text, *(c.text for c in candidates), *(c.head for c in candidates)])
    lines = [
        (number, line.strip())
        for number, candidate in enumerate(candidates)
        for line in candidate.text.split("\n")
        if len(line.strip()) > _LINE_CHARS
    ]
    nearest = np.zeros(n)
    if lines:
        cosines = embedder.embed([line for _, line in lines]) @ vectors[0]
        np.maximum.at(nearest, [number for number, _ in lines], cosines)
    cosine = vectors[1 : n + 1] @ vectors[0]
    head = vectors[n + 1 :] @ vectors[0]
    return np.column_stack([nearest, _soft_cover(asked, candidates, weights, embedder), cosine, head])


def _soft_cover(
    asked: Asked, candidates: Sequence[PassageCandidate], weights: Mapping[str, float], embedder: Embedder
) -> Floats:
    """Return (n,) the share of the question's words in a passage, each by the cosine of its nearest word there."""
    wanted = {
        raw: weight
        for raw in dict.fromkeys(raw_tokens(asked.text))
        if (weight := max((weights.get(term, 0.0) for term in expand(raw)), default=0.0)) > 0
    }
    texts = [
        {raw.lower() for raw in raw_tokens(f"{c.text} {c.head}") if len(raw) > 2 and expand(raw)}
        for c in candidates
    ]
    vocabulary = {word: number for number, word in enumerate(sorted(set().union(*texts))[:MOST_WORDS])}
    if not wanted or not vocabulary:
        return np.zeros(len(candidates))
    table = embedder.embed(list(wanted)) @ embedder.embed(list(vocabulary)).T
    table[table < LEAST_NEAR] = 0.0
    share = np.array(list(wanted.values())) / sum(wanted.values())
    columns = [[vocabulary[word] for word in words if word in vocabulary] for words in texts]
    return np.array([min(1.0, share @ table[:, own].max(axis=1)) if own else 0.0 for own in columns])


def holds(text: str, exact: str) -> bool:
    """Say whether a text holds something as it stands, and not as a part of a longer word.

    Example:
        >>> holds("use --no-ff here", "--no-ff"), holds("no_ffx", "no_ff"), holds("SIGHUP", "sighup")
        (True, False, True)
    """
    at = text.find(exact)
    if at < 0 and len(exact) > 3:
        text, exact = text.lower(), exact.lower()
        at = text.find(exact)
    while at >= 0:
        before, after = text[at - 1 : at], text[at + len(exact) : at + len(exact) + 1]
        if not (_in_word(exact[0]) and _in_word(before)) and not (_in_word(exact[-1]) and _in_word(after)):
            return True
        at = text.find(exact, at + 1)
    return False


def _in_word(character: str) -> bool:
    return character.isalnum() or character == "_"
