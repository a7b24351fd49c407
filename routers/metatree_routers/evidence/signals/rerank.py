"""A closer look at the files that a report's words have found: what is too costly to know of all files.

The texts of the best files are read for the phrases of the report, and their definitions compared with its title in
meaning; where there is a history, the tests that fit the report, and the best of the files, lead to what was changed
with them.

So the index did not grow. Lost: the whole report in place of its title for meaning (half the gain), and weights
learned for each kind of evidence (no better than round ones). Definitions are compared by static embeddings, also
where MiniLM is set, which gained nothing on 169 issues. Lost: the ten best files compared again by it, the five
definitions of each that the static embeddings find nearest (a second a question); all definitions of sixty files (11
to 23 s); keeping vectors, since after tens of issues half of a question's texts were still new.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from metatree.node import Node
from metatree.storage.store import Store
from metatree_routers.embeddings.static import Embedder
from metatree_routers.evidence.signals._cochange import MOST_BEST, MOST_TESTS, touched_with
from metatree_routers.evidence.signals._phrases import phrase_scores, phrases_of
from metatree_routers.evidence.signals._title_similarity import name_and_summary, title_similarity
from metatree_routers.index.index import IndexSnapshot
from metatree_routers.index.roles import Role
from metatree_routers.query.parse import Sections

MOST_FILES = 60
"""Nineteen in twenty files that an issue wanted edited were among so many of the best by words."""
PHRASE_WEIGHT = 0.3
NEARNESS_WEIGHT = 0.075
"""Of one standard deviation among the files that are looked at."""
COCHANGE_WEIGHT = 0.3
"""Of what was changed together with tests."""
BEST_WEIGHT = 0.25
"""Of what was changed together with the best files."""

MOST_PHRASES = 2
"""Phrases that the reason of a file repeats."""

Floats = npt.NDArray[np.float32]
Rows = npt.NDArray[np.intp]
Join = Callable[[Iterable[float]], float]
_LEAST = 1e-3
_DEFINITIONS = ("definition", "class", "function", "method")


class FileTexts(Protocol):
    """Gives nodes and their contents by number, where they are not kept in the index."""

    def nodes(self, numbers: Sequence[int]) -> dict[int, tuple[Node, str]]:
        """Return (node, content) of those of the nodes that are there."""
        ...


@dataclass(slots=True)
class Reranked:
    """What a closer look has found."""

    parts: dict[str, Floats] = field(default_factory=dict)
    """`phrases`, `nearness`, `cochange`, `best` -> (h,) what is added to what speaks for each home."""
    phrases: dict[int, Sequence[tuple[str, str]]] = field(default_factory=dict)
    """File -> the phrases of the report that it has, as pairs of terms, the heaviest first."""
    near: dict[int, int] = field(default_factory=dict)
    """File that is nearer in meaning than most -> its definition that is nearest."""
    tests: dict[int, str] = field(default_factory=dict)
    """File -> the test that it was most changed with."""
    companions: dict[int, str] = field(default_factory=dict)
    """File -> that of the best files that it was most changed with."""

    def total(self, sums: Floats) -> Floats:
        """Return (h,) what to add to what speaks for each home, such that what words have found stays found."""
        added = np.zeros_like(sums)
        for scores in self.parts.values():
            added += scores
        return np.asarray(np.maximum(added, np.minimum(np.float32(_LEAST) - sums, np.float32(0))))


@dataclass(slots=True)
class Reranker:
    """Looks at the best files of one report.

    Args:
        texts: gives what is in the files.
        embedder: gives what compares meanings; None for words alone.
        history: the store with the history of the tree; None to look at no commits.
    """

    texts: FileTexts
    embedder: Callable[[], Embedder | None] | None = None
    history: Store | None = None

    def __call__(self, snapshot: IndexSnapshot, parts: Sections, sums: Floats, factors: Floats) -> Reranked:
        """Look at the files that most speaks for.

        Args:
            parts: the report.
            sums: (h,) what speaks for each home so far.
            factors: (h,) what that will be multiplied with, for the role of the home; 1 for those that are looked at.
        """
        is_file = snapshot.table.of_kind({"file"})[snapshot.table.homes]
        seen = Reranked()
        rows = _best(np.flatnonzero(is_file & (factors >= 1) & (sums > 0)), sums, MOST_FILES)
        if len(rows):
            self._read(snapshot, parts, rows, len(sums), seen)
        if self.history is not None:
            self._follow(self.history, snapshot, sums, factors, seen)
        return seen

    def _read(self, snapshot: IndexSnapshot, parts: Sections, rows: Rows, count: int, seen: Reranked) -> None:
        table = snapshot.table
        files = table.homes[rows].tolist()
        numbers = np.flatnonzero(np.isin(table.home, files) & table.alive)
        is_told = table.of_kind((*_DEFINITIONS, "file"))
        row_of = {file: row for row, file in enumerate(files)}
        contents: list[list[str]] = [[] for _ in files]
        texts: list[list[tuple[int, str]]] = [[] for _ in files]
        for number, (node, content) in self.texts.nodes(numbers.tolist()).items():
            row = row_of[int(table.home[number])]
            contents[row].append(content)
            if is_told[number]:
                texts[row].append((number, name_and_summary(node)))
        phrases = phrase_scores(phrases_of(parts), contents)
        best = float(phrases.scores.max())
        if best > 0:
            seen.parts["phrases"] = _spread(PHRASE_WEIGHT * phrases.scores / best, rows, count)
            seen.phrases = dict(zip(files, phrases.pairs, strict=True))
        embedder = self.embedder() if self.embedder is not None else None
        if embedder is not None:
            near = title_similarity(parts.title, [[text for _, text in each] for each in texts], embedder)
            seen.parts["nearness"] = _spread(NEARNESS_WEIGHT * near.scores, rows, count)
            for row, file in enumerate(files):
                if near.scores[row] > 1:
                    seen.near[file] = texts[row][near.nearest[row]][0]

    def _follow(
        self, history: Store, snapshot: IndexSnapshot, sums: Floats, factors: Floats, seen: Reranked
    ) -> None:
        table = snapshot.table
        roles = table.role[table.homes]
        ids = snapshot.ids(table.homes)
        names = [ids[int(home)] for home in table.homes]
        is_source = roles == Role.SOURCE

        def follow(part: str, weight: float, rows: Rows, fit: Floats, join: Join, to: Rows) -> dict[int, str]:
            """Score what was changed with the files in these rows; return the one that says most for each file."""
            candidates = {names[row]: row for row in to}
            weights = {names[row]: float(fit[row] / fit[rows[0]]) ** 2 for row in rows}
            cochanged = touched_with(history, weights, candidates)
            scores = {file: join(by.values()) for file, by in cochanged.items()}
            best = max(scores.values(), default=1.0)
            seen.parts[part] = np.zeros(len(sums), dtype=np.float32)
            for file, score in scores.items():
                seen.parts[part][candidates[file]] = weight * score / best
            return {
                int(table.homes[candidates[file]]): max(by, key=lambda other: by[other])
                for file, by in cochanged.items()
            }

        now = (sums + sum(seen.parts.values())) * factors
        tests = _best(np.flatnonzero((roles == Role.TEST) & (sums > 0)), sums, MOST_TESTS)
        if len(tests):
            seen.tests = follow("cochange", COCHANGE_WEIGHT, tests, sums, sum, np.flatnonzero(is_source))
        spoken_for = np.flatnonzero(is_source & (now > 0))
        best = _best(spoken_for, now, MOST_BEST)
        if len(best):
            seen.companions = follow("best", BEST_WEIGHT, best, now, max, spoken_for)


def _best(rows: Rows, scores: Floats, count: int) -> Rows:
    return rows[np.argsort(-scores[rows], kind="stable")[:count]]


def _spread(values: npt.NDArray[np.float64], rows: Rows, count: int) -> Floats:
    scores = np.zeros(count, dtype=np.float32)
    scores[rows] = values
    return scores


def look_clauses(
    seen: Reranked, snapshot: IndexSnapshot, file: int, spellings: Mapping[str, str], key_terms: Set[str]
) -> Iterator[str]:
    """Say which phrases a file has, and what in it is near in meaning.

    Args:
        key_terms: the terms of the report that tell something; a phrase has one of them.
    """
    phrases = [
        f"“{spellings.get(a, a)} {spellings.get(b, b)}”"
        for a, b in seen.phrases.get(file, ())
        if min(len(a), len(b)) > 2 and a not in b and b not in a and not key_terms.isdisjoint((a, b))
    ]
    if phrases:
        yield f"has {' and '.join(list(dict.fromkeys(phrases))[:MOST_PHRASES])} in a row"
    near = seen.near.get(file)
    if near is not None:
        name = snapshot.ids([near])[near].partition("::")[2]
        yield f"{f'`{name}`' if name else 'what it is for'} is near in meaning to the title"


def together_clauses(seen: Reranked, file: int) -> Iterator[str]:
    """Say which test, or which of the best files, a file was changed with."""
    other = seen.tests.get(file) or seen.companions.get(file)
    if other:
        yield f"changed together with {other}"
