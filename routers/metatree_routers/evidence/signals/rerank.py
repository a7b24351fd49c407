"""A closer look at the files that a report's words have found: what is too costly to know of all files.

The texts of the best files are read for the phrases of the report, and their definitions compared with its title in
meaning; where there is a history, the tests that fit the report, and the best of the files, lead to what was changed
with them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from metatree.node import Node
from metatree.storage.store import Store
from metatree_routers.embeddings.static import Embedder
from metatree_routers.evidence.signals._cochange import MOST_BEST, MOST_TESTS, touched_with
from metatree_routers.evidence.signals._phrases import phrase_scores, phrases_of
from metatree_routers.evidence.signals._title_similarity import nearness, said_of_itself
from metatree_routers.index.index import Reader
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

Floats = npt.NDArray[np.float32]
Rows = npt.NDArray[np.intp]
Join = Callable[[Iterable[float]], float]
_LEAST = 1e-3
_DEFINITIONS = ("definition", "class", "function", "method")


class Texts(Protocol):
    """Gives nodes and their contents by number, where they are not kept in the index."""

    def nodes(self, numbers: Sequence[int]) -> dict[int, tuple[Node, str]]:
        """Return (node, content) of those of the nodes that are there."""
        ...


@dataclass(slots=True)
class Seen:
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
class CloseLook:
    """Looks at the best files of one report.

    Args:
        texts: gives what is in the files.
        embedder: gives what compares meanings; None for words alone.
        history: the store with the history of the tree; None to look at no commits.
    """

    texts: Texts
    embedder: Callable[[], Embedder | None] | None = None
    history: Store | None = None

    def __call__(self, reader: Reader, parts: Sections, sums: Floats, factors: Floats) -> Seen:
        """Look at the files that most speaks for.

        Args:
            parts: the report.
            sums: (h,) what speaks for each home so far.
            factors: (h,) what that will be multiplied with, for the role of the home; 1 for those that are looked at.
        """
        is_file = reader.records.of_kind({"file"})[reader.records.homes]
        seen = Seen()
        rows = _best(np.flatnonzero(is_file & (factors >= 1) & (sums > 0)), sums, MOST_FILES)
        if len(rows):
            self._read(reader, parts, rows, len(sums), seen)
        if self.history is not None:
            self._follow(self.history, reader, sums, factors, seen)
        return seen

    def _read(self, reader: Reader, parts: Sections, rows: Rows, count: int, seen: Seen) -> None:
        records = reader.records
        files = records.homes[rows].tolist()
        numbers = np.flatnonzero(np.isin(records.home, files) & records.alive)
        is_told = records.of_kind((*_DEFINITIONS, "file"))
        row_of = {file: row for row, file in enumerate(files)}
        contents: list[list[str]] = [[] for _ in files]
        told: list[list[tuple[int, str]]] = [[] for _ in files]
        for number, (node, content) in self.texts.nodes(numbers.tolist()).items():
            row = row_of[int(records.home[number])]
            contents[row].append(content)
            if is_told[number]:
                told[row].append((number, said_of_itself(node)))
        found = phrase_scores(phrases_of(parts), contents)
        best = float(found.scores.max())
        if best > 0:
            seen.parts["phrases"] = _spread(PHRASE_WEIGHT * found.scores / best, rows, count)
            seen.phrases = dict(zip(files, found.said, strict=True))
        embedder = self.embedder() if self.embedder is not None else None
        if embedder is not None:
            near = nearness(parts.title, [[said for _, said in each] for each in told], embedder)
            seen.parts["nearness"] = _spread(NEARNESS_WEIGHT * near.scores, rows, count)
            for row, file in enumerate(files):
                if near.scores[row] > 1:
                    seen.near[file] = told[row][near.nearest[row]][0]

    def _follow(self, history: Store, reader: Reader, sums: Floats, factors: Floats, seen: Seen) -> None:
        records = reader.records
        roles = records.role[records.homes]
        ids = reader.ids(records.homes)
        names = [ids[int(home)] for home in records.homes]
        is_source = roles == Role.SOURCE

        def follow(part: str, weight: float, rows: Rows, fit: Floats, join: Join, to: Rows) -> dict[int, str]:
            """Score what was changed with the files in these rows; return the one that says most for each file."""
            among = {names[row]: row for row in to}
            said = {names[row]: float(fit[row] / fit[rows[0]]) ** 2 for row in rows}
            found = touched_with(history, said, among)
            scores = {file: join(by.values()) for file, by in found.items()}
            best = max(scores.values(), default=1.0)
            seen.parts[part] = np.zeros(len(sums), dtype=np.float32)
            for file, score in scores.items():
                seen.parts[part][among[file]] = weight * score / best
            return {
                int(records.homes[among[file]]): max(by, key=lambda other: by[other])
                for file, by in found.items()
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
