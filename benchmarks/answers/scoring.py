"""When an answer is right, and the figures over many answers."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from benchmarks.answers.dataset import Question
from benchmarks.answers.verify import normal, plain

BINS = 10
_TOKEN = re.compile(r"\d+(?:[.,]\d+)*|\w+")
_EMPTY = frozenset({"yes", "no", "none", "true", "false"})
"""Answers of the sets that any text may contain."""


@dataclass(frozen=True, slots=True)
class Passed:
    """A text that was shown, with the nodes that it is from."""

    text: str
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What one system made of one question."""

    set: str
    id: str
    kind: str
    source: str
    """Whose question it is."""
    asked: str
    """The source that it was asked of; another one than `source` for a wrong collection."""
    system: str
    question: str
    answerable: bool
    """Whether what it was asked of answers it."""
    claimed: bool
    text: str
    """The claim, or what a search that reached a limit had; cut."""
    right: bool = False
    partial: bool = False
    """Some of several things were answered rightly, and the others were said to be open: neither right nor wrong."""
    shown: bool = False
    """Whether the right words are in the text or in the three closest passages."""
    closest: int = 0
    """Number of closest passages."""
    closest_right: bool = False
    confidence: float | None = None
    ended: str = "answered"
    tool_calls: int = 0
    router_calls: int = 0
    length: int = 0
    """Characters of the text."""
    seconds: float = 0.0
    """Of CPU, which other work on the machine changes less than the clock."""

    @property
    def wrong_collection(self) -> bool:
        """Whether it was asked of a collection that it does not belong to."""
        return self.asked != self.source

    @property
    def verdict(self) -> str:
        """`right`, `part`, `wrong`, `false` (a claim where nothing answers), `limit` or `silent`."""
        if self.claimed:
            if not self.answerable:
                return "false"
            return "right" if self.right else "part" if self.partial else "wrong"
        return "limit" if self.ended == "limit" else "silent"


# when an answer is right


def is_right(question: Question, shown: Sequence[Passed]) -> bool:
    """Say whether what was shown answers all that is asked.

    Several things may be answered in several texts; one thing has to be in one of them.
    """
    if question.parts and answered_parts(question, shown) == len(question.parts):
        return True
    return any(_answers(question, text) for text in shown)


def answered_parts(question: Question, shown: Sequence[Passed]) -> int:
    """Return how many of several things are answered by what was shown."""
    return sum(any(_found(part, passed.text) for passed in shown) for part in question.parts)


def _answers(question: Question, passed: Passed) -> bool:
    if question.pattern:
        return _found(question.pattern, passed.text)
    return not question.gold.isdisjoint(passed.nodes) or contains(passed.text, question.answer)


def _found(pattern: str, text: str) -> bool:
    """Look for a pattern in a text with its markup and without."""
    return any(re.search(pattern, shown, re.IGNORECASE) for shown in (normal(text), plain(text)))


def contains(text: str, answer: str) -> bool:
    """Say whether the words and numbers of an answer stand in a text one after the other.

    Numbers are compared without separators and trailing zeros. An answer that any text may hold (yes, no, one short
    word or digit) is in none.

    Example:
        >>> contains("Net sales were $1,577.0 million", "$1577.00"), contains("No, he did not", "No")
        (True, False)
    """
    wanted = list(_words(answer))
    if not wanted or (len(wanted) == 1 and (len(wanted[0]) < 3 or wanted[0] in _EMPTY)):
        return False
    return f" {' '.join(wanted)} " in f" {' '.join(_words(text))} "


def _words(text: str) -> Iterator[str]:
    for token in _TOKEN.findall(text.casefold()):
        if token[0].isdigit():
            token = token.replace(",", "")
            if "." in token:
                token = token.rstrip("0").rstrip(".")
        yield token


# figures


@dataclass(frozen=True, slots=True)
class Share:
    """A number of cases of all; its 95 % interval is Wilson's (1927, score interval)."""

    count: int
    total: int

    @property
    def value(self) -> float:
        """The share; not a number where there are no cases."""
        return self.count / self.total if self.total else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        """Bounds in [0, 1]."""
        if not self.total:
            return math.nan, math.nan
        z, n, p = 1.959964, self.total, self.value
        middle = (p + z * z / (2 * n)) / (1 + z * z / n)
        half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
        return max(0.0, middle - half), min(1.0, middle + half)


@dataclass(frozen=True, slots=True)
class Figures:
    """What was measured of one system over some rows; the rows of wrong collections count for `elsewhere` alone."""

    questions: int
    precision: Share
    """Right claims of all claims; claims on questions that cannot be answered are wrong."""
    coverage: Share
    """Right claims of the questions that can be answered."""
    false: Share
    """Claims of the questions that cannot be answered."""
    elsewhere: Share
    """Claims of the questions that were asked of a wrong collection."""
    shown: Share
    """Right words in the text or in the closest passages, of the questions that can be answered."""
    closest: Share
    """Right words in the closest passages, of the questions that can be answered and have such passages."""
    at95: float
    """The most coverage that a threshold on confidence gives at a precision of .95."""
    at90: float
    calibration_error: float | None
    area: float
    """Under the curve of risk over coverage, see `area_under_risk`."""
    limits: Share
    """Searches that ended at a limit, of all on their own sources."""
    tool_calls: float
    router_calls: float
    length: float
    """Median characters of a claim."""
    seconds: float
    seconds90: float


def figures(rows: Sequence[Row], *, calibrated: bool = True) -> Figures:
    """Measure one system; `calibrated` says whether its confidences are probabilities."""
    own = [row for row in rows if not row.wrong_collection]
    elsewhere = [row for row in rows if row.wrong_collection]
    answerable = [row for row in own if row.answerable]
    absent = [row for row in own if not row.answerable]
    claims = _claims(own)
    seconds = sorted(row.seconds for row in own)
    return Figures(
        len(own),
        Share(_right(claims), len(claims)),
        Share(_right(claims), len(answerable)),
        Share(sum(row.claimed for row in absent), len(absent)),
        Share(sum(row.claimed for row in elsewhere), len(elsewhere)),
        Share(sum(row.shown for row in answerable), len(answerable)),
        Share(sum(row.closest_right for row in answerable), sum(row.closest > 0 for row in answerable)),
        coverage_at(0.95, own),
        coverage_at(0.90, own),
        calibration_error(own) if calibrated else None,
        area_under_risk(own),
        Share(sum(row.ended == "limit" for row in own), len(own)),
        _median(row.tool_calls for row in own),
        _median(row.router_calls for row in own),
        _median(row.length for row in claims),
        _median(seconds),
        seconds[max(0, math.ceil(0.9 * len(seconds)) - 1)] if seconds else math.nan,
    )


def curve(rows: Sequence[Row]) -> list[tuple[float, float]]:
    """Return (coverage, risk) for each threshold on confidence, the highest first; risk is wrong claims of all claims.

    Claims without a confidence, and those with the same, come in together.
    """
    answerable = sum(row.answerable for row in rows)
    points, right, made = [], 0, 0
    for tied in _by_confidence(rows):
        right, made = right + _right(tied), made + len(tied)
        points.append((right / answerable if answerable else math.nan, 1 - right / made))
    return points


def coverage_at(precision: float, rows: Sequence[Row]) -> float:
    """Return the most coverage that a threshold gives without falling below a precision; 0 where none does."""
    return max((covered for covered, risk in curve(rows) if 1 - risk >= precision - 1e-9), default=0.0)


def calibration_error(rows: Sequence[Row]) -> float | None:
    """Return the expected calibration error over ten bins of equally many claims; None without confidences."""
    known = sorted(
        (row.confidence, bool(_right([row]))) for row in _claims(rows) if row.confidence is not None
    )
    if not known:
        return None
    error = 0.0
    for number in range(BINS):
        part = known[len(known) * number // BINS : len(known) * (number + 1) // BINS]
        error += abs(sum(confidence for confidence, _ in part) - sum(right for _, right in part))
    return error / len(known)


def area_under_risk(rows: Sequence[Row]) -> float:
    """Return the mean, over every number of questions, of the share that is wrong among the surest so many.

    Questions without a claim come last and count as wrong there, so that systems that claim more and less can be
    compared; among equal confidences, the wrong ones are spread evenly. Lower is better.
    """
    if not rows:
        return math.nan
    total, wrong, seen = 0.0, 0.0, 0
    tied: list[tuple[int, int]] = [(len(group), len(group) - _right(group)) for group in _by_confidence(rows)]
    silent = len(rows) - sum(size for size, _ in tied)
    for size, bad in [*tied, (silent, silent)]:
        for _ in range(size):
            seen, wrong = seen + 1, wrong + bad / size
            total += wrong / seen
    return total / len(rows)


def silenced(rows: Sequence[Row], threshold: float, system: str) -> list[Row]:
    """Return the rows of a system that claims nothing below a confidence, under another name."""
    return [
        replace(row, system=system, claimed=row.claimed and (row.confidence or 0.0) >= threshold)
        for row in rows
    ]


def threshold_for(coverage: float, rows: Sequence[Row]) -> float:
    """Return the confidence whose coverage of these rows is nearest to the one wanted."""
    rows = [row for row in rows if not row.wrong_collection]
    answerable = sum(row.answerable for row in rows)
    best, threshold, right = math.inf, math.inf, 0
    for tied in _by_confidence(rows):
        right += _right(tied)
        if (off := abs(right / max(answerable, 1) - coverage)) < best:
            best, threshold = off, tied[0].confidence or 0.0
    return threshold


def _by_confidence(rows: Sequence[Row]) -> Iterator[list[Row]]:
    def sure(row: Row) -> float:
        return -1.0 if row.confidence is None else row.confidence

    for _, group in groupby(sorted(_claims(rows), key=sure, reverse=True), key=sure):
        yield list(group)


def _claims(rows: Iterable[Row]) -> list[Row]:
    """Return the claims; what answers a part and says so of the rest is none."""
    return [row for row in rows if row.claimed and not (row.answerable and row.partial)]


def _right(rows: Iterable[Row]) -> int:
    return sum(row.right and row.answerable for row in rows)


def _median(values: Iterable[float]) -> float:
    listed = list(values)
    return statistics.median(listed) if listed else math.nan


def halves(rows: Sequence[Row], of: Callable[[Row], str]) -> tuple[set[str], set[str]]:
    """Part sources, or sets, into two halves: every second by name."""
    names = sorted({of(row) for row in rows})
    return set(names[::2]), set(names[1::2])
