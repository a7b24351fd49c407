"""What speaks for a passage: a few numbers for each of a question's candidates, computed together.

All are shares, cosines or yes and no, so that they mean the same in a small tree and in a large one. Kept are those
that bring something on sources that they were not fitted on; docs/benchmarks/answers.md has what each carries.

Lost: BM25 of the passage, its pairs of words, the best window of thirty words, the length, the words of titles and of
headings by themselves, where in its text it lies, whether it speaks of a default when one is asked for, and whether it
is in a changelog: nothing more beside these.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from metatree_routers.embeddings.static import Embedder
from metatree_routers.passages._exact import holds, is_defined
from metatree_routers.passages._wanted import has_wanted, lacks_default, lacks_kind
from metatree_routers.passages.asked import Asked
from metatree_routers.query.derived import derived_terms, with_originals
from metatree_routers.query.key_terms import STRONG
from metatree_routers.query.terms import expand, raw_tokens

Floats = npt.NDArray[np.float64]

FEATURES: Final = (
    "distinct_words", "line_cosine", "soft_cover_of_best", "exact", "cosine", "name_missing",
    "is_code", "lead_cosine", "defines", "heaviest_missing", "key_missing", "evidence_of_best", "short",
    "is_test", "cover", "exact_missing", "soft_cover", "wanted_in_entry", "title_cover",
    "line_cover", "title_cosine", "pairs", "is_readme", "cover_with_head", "of_its_node", "changes_if_still",
    "code_by_code", "defines_exact", "entry_cover", "kind_missing", "default_missing",
)  # fmt: skip
"""Distinct words of the question, of eight; cosine of the nearest line; words of the question by the nearest word of
the passage, against the best candidate; exact things of the question that are there; cosine of all its lines; whether
a name or rare word is missing; code; cosine of headings and title; whether it defines something, when `what` is
asked; weight of the heaviest word that is missing; share of the names and rare words that are missing; evidence of
its node, against the best; fewer than twelve words; a test or an example; share of the question's words that are
there, by weight; exact things of the question that are missing; words of the question by the nearest word of the
passage; whether what is asked for is in the entry or paragraph that says most of the question: nearly every passage
has a number somewhere; share of the question's words in the title of its node; the most that one line says of the
question, by its nearest words; cosine of the title; share of the question's pairs of words that are there; a README;
share of the question's words that are there, in what it stands under or in the title; how many candidates its node
has (logarithm); a changelog, when it is asked whether something still holds; code, when code is asked for; whether it
says what an exact thing of the question is; the most that one entry says of the question, by its nearest words;
whether a person, a day, a number or a version is asked for and that entry has none that answers; nothing said of a
default, when one is asked for."""

LEAST_NEAR: Final = 0.4
"""Cosine of two words below which one does not stand for the other."""
DERIVED_NEAR: Final = 0.8
"""Of two words of which one is derived from the other, at least."""
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
    release: str = ""
    """Heading of the release that it stands under, in a changelog."""

    @property
    def head(self) -> str:
        """What it stands under: headings and lines that it is indented under, and the title of its node."""
        above = [self.release] if self.release and self.release not in (*self.leads, self.title) else []
        return " ".join([*above, *self.leads, self.title])


_DEFINES = re.compile(
    r"\b(?:is|are|means|stands for|returns?|represents?|refers to|specif\w+|contains?|holds?)\b",
    re.IGNORECASE,
)
_ITEM = re.compile(r"\s*(?:[-*+•]|\(?\d{1,3}[.)]|:\w[\w ]*:)\s+\S|\s*-{1,2}\w|\.TP\b|\.PP\b|\.IP\b|[QA][:.] ")
_README = re.compile(r"(?:^|/)(?:read[-_]?me|pkg-info)", re.IGNORECASE)
_STILL = re.compile(
    r"\b(?:still|now|nowadays|yet|any ?more|any longer|no longer|already|by now|these days|at the moment)\b",
    re.IGNORECASE,
)
_CHANGES = re.compile(r"change|news|history|release|announce|whats.?new", re.IGNORECASE)
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
    covers, line_covers, entry_covers, entries = _soft_cover(asked, candidates, weights, embedder)
    rows[:, FEATURES.index("soft_cover")] = rows[:, FEATURES.index("soft_cover_of_best")] = covers
    rows[:, FEATURES.index("line_cover")] = line_covers
    rows[:, FEATURES.index("entry_cover")] = entry_covers
    for number, (entry, candidate) in enumerate(zip(entries, candidates, strict=True)):
        wanted = has_wanted(asked, f"{entry}\n{candidate.release}")
        rows[number, FEATURES.index("wanted_in_entry")] = wanted
        rows[number, FEATURES.index("kind_missing")] = lacks_kind(
            asked, entry, candidate.release, candidate.head
        )
    of_node = Counter(candidate.node for candidate in candidates)
    rows[:, FEATURES.index("of_its_node")] = [math.log1p(of_node[each.node]) for each in candidates]
    if embedder is not None:
        rows[:, _COLUMNS] = _cosines_of(asked, candidates, embedder)
    for name in ("soft_cover_of_best", "evidence_of_best"):
        column = rows[:, FEATURES.index(name)]
        best = column.max()
        rows[:, FEATURES.index(name)] = column / best if best > 0 else 0.0
    return rows


_COLUMNS = [FEATURES.index(name) for name in ("line_cosine", "cosine", "lead_cosine", "title_cosine")]


def _words_of(asked: Asked, candidate: PassageCandidate, weights: Mapping[str, float]) -> list[float]:
    """Return a row without what embeddings say."""
    tokens = raw_tokens(candidate.text)
    words = [terms for raw in tokens if (terms := expand(raw))]
    here = {term for terms in words for term in terms}
    derived = derived_terms(asked.text)
    above = {term for raw in raw_tokens(f"{candidate.head} {candidate.about}") for term in expand(raw)}
    place = here | with_originals(above, derived)
    strong = [word for word in asked.key_terms if word.weight >= STRONG]
    missing = [word for word in strong if not word.is_in(place)]
    heaviest = max(weights.values(), default=0.0)
    row = dict.fromkeys(FEATURES, 0.0)
    pairs = _pairs(_asked_words(asked.text))
    row["pairs"] = len(pairs & _pairs(words)) / max(1, len(pairs))
    row["is_readme"] = float(bool(_README.search(candidate.node)))
    row["changes_if_still"] = float(bool(_STILL.search(asked.text)) and bool(_CHANGES.search(candidate.node)))
    row["code_by_code"] = float(asked.kind == "code" and candidate.is_code)
    defined = {one for one in asked.exact if len(one) > 1 and is_defined(candidate.text, one)}
    row["defines_exact"] = float(bool(defined))
    row["default_missing"] = float(lacks_default(asked, candidate.text))
    row["distinct_words"] = min(len(here & weights.keys()), _MOST_DISTINCT) / _MOST_DISTINCT
    if asked.exact:
        whole = f"{candidate.text}\n{candidate.head}\n{candidate.about}"
        row["exact"] = sum(one in defined or holds(whole, one) for one in asked.exact) / len(asked.exact)
        row["exact_missing"] = 1.0 - row["exact"]
    row["name_missing"] = float(bool(missing))
    if missing:
        row["key_missing"] = sum(word.weight for word in missing) / sum(word.weight for word in strong)
    row["is_code"] = float(candidate.is_code)
    row["defines"] = float(asked.kind == "what" and bool(_DEFINES.search(candidate.text[:300])))
    if heaviest > 0:
        row["heaviest_missing"] = (
            max((w for t, w in weights.items() if t not in place), default=0.0) / heaviest
        )
    row["evidence_of_best"] = candidate.evidence
    row["short"] = float(len(tokens) < _SHORT)
    row["is_test"] = float(bool(_TEST.search(candidate.node)))
    if total := sum(weights.values()):
        row["cover"] = sum(weight for term, weight in weights.items() if term in here) / total
        title = with_originals({term for raw in raw_tokens(candidate.title) for term in expand(raw)}, derived)
        row["cover_with_head"] = sum(weight for term, weight in weights.items() if term in place) / total
        row["title_cover"] = sum(weight for term, weight in weights.items() if term in title) / total
    return list(row.values())


def _pairs(words: Sequence[tuple[str, ...]]) -> set[tuple[str, str]]:
    """Return the pairs of words that follow each other, given by their terms, stop words left out."""
    return set(itertools.pairwise(terms[0] for terms in words))


@lru_cache(maxsize=64)
def _asked_words(text: str) -> tuple[tuple[str, ...], ...]:
    return tuple(terms for raw in raw_tokens(text) if (terms := expand(raw)))


def _cosines_of(asked: Asked, candidates: Sequence[PassageCandidate], embedder: Embedder) -> Floats:
    """Return (n, 4): cosine of the nearest line, of all lines together, of what it stands under, and of the title.

    All lines, since an embedder takes no more than the beginning of a text.
    """
    n = len(candidates)
    vectors = embedder.embed([asked.text, *(c.head for c in candidates), *(c.title for c in candidates)])
    above = (vectors[1:] @ vectors[0]).reshape(2, n)
    lines = [
        (number, line.strip())
        for number, candidate in enumerate(candidates)
        for line in candidate.text.split("\n")
        if len(line.strip()) > _LINE_CHARS
    ]
    nearest, together = np.zeros(n), np.zeros((n, vectors.shape[1]))
    if lines:
        of, of_lines = [number for number, _ in lines], embedder.embed([line for _, line in lines])
        np.maximum.at(nearest, of, of_lines @ vectors[0])
        np.add.at(together, of, of_lines * np.array([[len(line)] for _, line in lines]))
    together /= np.maximum(np.linalg.norm(together, axis=1, keepdims=True), 1e-9)
    return np.column_stack([nearest, together @ vectors[0], *above])


def _soft_cover(
    asked: Asked,
    candidates: Sequence[PassageCandidate],
    weights: Mapping[str, float],
    embedder: Embedder | None,
) -> tuple[Floats, Floats, Floats, list[str]]:
    """Return how much of a question each passage says, by its nearest words, its best line and entry; that entry."""
    wanted = {
        raw: weight
        for raw in dict.fromkeys(raw_tokens(asked.text))
        if (weight := max((weights.get(term, 0.0) for term in expand(raw)), default=0.0)) > 0
    }
    lines = [[line for line in c.text.split("\n") if line.strip()] for c in candidates]
    words = [[_words(line) for line in of_one] for of_one in lines]
    heads = [_words(c.head) for c in candidates]
    every = sorted(set().union(*heads, *(words_ for of_one in words for words_ in of_one)))[:MOST_WORDS]
    if not wanted or not every:
        none = np.zeros(len(candidates))
        return none, none, none, [""] * len(candidates)
    column = {word: number for number, word in enumerate(every)}
    near = _nearness(list(wanted), every, embedder)
    above = _with_derived(near, list(wanted), column)
    share = np.array(list(wanted.values())) / sum(wanted.values())
    covers, line_covers, entry_covers = np.zeros((3, len(candidates)))
    entries = list[str]()
    for number, (of_one, head) in enumerate(zip(words, heads, strict=True)):
        by_line = np.array(
            [*(_nearest(near, column, line) for line in of_one), _nearest(above, column, head)]
        )
        covers[number] = min(1.0, by_line.max(axis=0) @ share)
        line_covers[number] = (by_line[:-1] @ share).max(initial=0.0)
        begins = _entries(candidates[number].text)
        by_entry = np.maximum.reduceat(by_line[:-1], begins, axis=0) @ share if of_one else np.zeros(1)
        best = int(np.argmax(by_entry))
        entry_covers[number] = by_entry[best]
        entries.append("\n".join(lines[number][slice(*[*begins, len(of_one)][best : best + 2])]))
    return covers, line_covers, entry_covers, entries


def _entries(text: str) -> list[int]:
    """Return with which of the lines of a text that are not blank its entries and paragraphs begin."""
    starts, number, blank = list[int](), 0, True
    for line in text.split("\n"):
        if line.strip():
            if blank or _ITEM.match(line):
                starts.append(number)
            number += 1
        blank = not line.strip()
    return starts or [0]


def _words(text: str) -> frozenset[str]:
    return frozenset(raw.lower() for raw in raw_tokens(text) if expand(raw))


def _nearness(wanted: Sequence[str], every: Sequence[str], embedder: Embedder | None) -> Floats:
    """Return (words of the question, all words): cosines, 0 below `LEAST_NEAR`; 1 for words that share a term."""
    near = np.zeros((len(wanted), len(every)))
    if embedder is not None:
        near += embedder.embed(wanted) @ embedder.embed(every).T
        near[near < LEAST_NEAR] = 0.0
    holding: dict[str, list[int]] = {}
    for number, word in enumerate(every):
        for term in expand(word):
            holding.setdefault(term, []).append(number)
    for number, word in enumerate(wanted):
        for term in expand(word):
            near[number, holding.get(term, [])] = 1.0
    return near


def _with_derived(near: Floats, wanted: Sequence[str], column: Mapping[str, int]) -> Floats:
    """Return how near the words of headings are: at least `DERIVED_NEAR` where one is derived from the other."""
    above, derived = near.copy(), derived_terms(" ".join(wanted))
    for word, number in column.items() if derived else ():
        for term in expand(word):
            if term in derived:
                rows = [row for row, one in enumerate(wanted) if derived[term] in expand(one)]
                above[rows, number] = np.maximum(above[rows, number], DERIVED_NEAR)
    return above


def _nearest(near: Floats, column: Mapping[str, int], words: Collection[str]) -> Floats:
    columns = [column[word] for word in words if word in column]
    return np.asarray(near[:, columns].max(axis=1) if columns else np.zeros(len(near)))
