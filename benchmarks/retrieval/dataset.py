"""What a benchmark of retrieval is: questions with the nodes that answer them, and what each system ranked."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from metatree import Node

BASELINE, OURS = "BM25", "metatree"
BESIDE = "wishes"
"""What is offered beside what we found."""


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line asks for; a benchmark looks at what concerns it."""

    data: Path
    """The folder with `documents/`, `memory/`, `multihop/`, `tools/`, `code/`."""
    limit: int | None = None
    """Only the first so many questions."""
    mirrors: Path | None = None
    """Git directories, for code."""
    work: Path | None = None
    """Where checkouts and trees are kept; a temporary folder when None."""
    keep: bool = False
    """Whether a copy of the tree of each commit is kept in `work`, for code."""
    again: bool = False
    """Whether issues that were ranked before are ranked anew, for code."""
    wrong: float = 0.0
    """Share of its choices in which the router picks another option at random."""
    words: int | None = None
    """Descriptions of the tree are cut to so many words."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the systems ranked for one question."""

    id: str
    gold: frozenset[str]
    ranked: Mapping[str, Sequence[str]]
    """System -> ids, best first."""
    seconds: float = 0.0
    """Of our search."""
    calls: int = 0
    """Of our router."""
    groups: tuple[str, ...] = ()
    """As of its query."""


@dataclass(slots=True)
class Notes:
    """What else is worth printing of a run."""

    nodes: int = 0
    build_seconds: float = 0.0
    index_seconds: float = 0.0


class Benchmark(Protocol):
    """One set of questions over one or several trees."""

    name: str
    about: str
    """What is ranked for what, in a line."""
    metrics: Sequence[str]
    """`R@5`, `Hit@1`, `Acc@10`, …; see `scores.metric`."""
    goals: Mapping[str, float]
    """Metric -> what is aimed at."""
    notes: Notes

    def outcomes(self, options: Options) -> Iterator[Outcome]:
        """Build the tree through the public API, search for each question, and yield what was ranked.

        Raises:
            FileNotFoundError: the data is not there.
        """
        ...


@dataclass(frozen=True, slots=True)
class Query:
    """One question."""

    id: str
    text: str
    gold: frozenset[str]
    under: str | None = None
    """The node that the search starts at: a filing, a conversation; None for the whole tree."""
    groups: tuple[str, ...] = ()
    """Kinds of questions that it counts in, each with lines of its own."""


@dataclass(slots=True)
class Corpus:
    """What is searched, read from the data: nodes for the tree, and the plain texts for the baseline."""

    nodes: list[tuple[Node, str]]
    """(node, id of its parent), parents first; `.` is the root."""
    texts: dict[str, str]
    """What BM25 sees of each thing that can be found."""
    queries: list[Query]
    scopes: dict[str, str] = field(default_factory=dict)
    """Id of a thing -> the `under` that it belongs to, where questions are asked of a part."""
    accept: tuple[str, ...] = ()
    """Kinds of the nodes that can be found."""


def rows(file: Path) -> list[dict[str, Any]]:
    """Read a file of JSON lines, packed or not."""
    if file.suffix == ".gz":
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            return [json.loads(line) for line in lines if line.strip()]
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]


def first_words(text: str, count: int) -> str:
    """Return the first words of a text."""
    return " ".join(text.split()[:count])
