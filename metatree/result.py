"""What a search is limited by, and what it gives back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal

Ended = Literal["answered", "exhausted", "waiting", "limit", "cancelled", "failed"]
TraceEvent = Literal[
    "frame",
    "route",
    "enter",
    "read",
    "mark",
    "collect",
    "fact",
    "tool",
    "missed_node",
    "create",
    "restart",
    "second_look",
    "without_model",
    "fallback",
    "dropped",
    "person",
    "compose",
    "end",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds of one run. Reaching one of the first seven ends it with the best partial answer; None is no bound."""

    router_calls: int | None = 200
    model_calls: int | None = 200
    """Calls that reach a model, of whatever kind, failed attempts included."""
    tool_calls: int | None = 50
    tokens: int | None = 1_000_000
    """Prompt and completion tokens together."""
    cost_usd: Decimal | None = None
    seconds: float | None = 600.0
    """Wall time at work; time spent waiting for a person between processes does not count."""
    reads: int | None = 200
    questions: int = 20
    """Questions that reads may open; more are dropped, and the trace says so."""
    depth: int = 3
    """How deep nested frames may lie; the root frame is 0."""
    nodes_created: int = 50
    restarts: int = 2
    """Restarts from the root with new knowledge, for each frame."""
    effect_seconds: float = 120.0
    """Time for one attempt at one call of a router, reader or other part; a tool has its own."""


@dataclass(slots=True)
class Usage:
    """What a run has used. Failed attempts are included."""

    router_calls: int = 0
    reads: int = 0
    model_calls: int = 0
    tool_calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cached: int = 0
    cost_usd: Decimal | None = None
    """None when no price is known for a model that was called."""
    cache_hits: int = 0
    failed_attempts: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Quote:
    """Where an answer comes from."""

    node: str
    title: str
    quote: str
    """The words of the node, exactly; empty when the words given were not found there."""
    number: int = 0
    """The `[1]` of `cited`; counted over all answers of a result, in the order in which the text uses them."""
    place: str = ""
    """The path of its file, or the id of its node."""
    lines: tuple[int, int] | None = None
    """First and last of the quote, from 1, both included: of the file, or of the node's content where that is part of
    none; None for a text that has no lines of its own, such as a PDF, and where there is no quote."""
    pages: tuple[int, int] | None = None
    """First and last page that the node is on, from 1, where its file has pages."""


@dataclass(frozen=True, slots=True)
class EarlierAnswer:
    """What a source said before, where the answer is from a later one that contradicts it."""

    node: str
    title: str
    at: str
    """The day that it is of, as in 2025-03-02, or the version."""
    quote: str
    """The words of the node, exactly."""
    place: str = ""
    """The path of its file, or the id of its node."""
    lines: tuple[int, int] | None = None
    """First and last of the quote, as those of a `Quote`."""


@dataclass(frozen=True, slots=True)
class QuestionAnswer:
    """The answer to one question."""

    question: str
    answer: str
    sources: tuple[Quote, ...]
    """In the order of their numbers: the first is that of the first sentence."""
    complete: bool = True
    confidence: float | None = None
    """How likely it is right, in [0, 1], calibrated; None when the reader cannot tell."""
    verified: bool = True
    """Whether the words that were given for it stand in a source; False where a model gave others, or none, even when
    it was asked once more."""
    cited: str = ""
    """The answer with the numbers of its sources behind what rests on them: `It is red. [1]`."""
    earlier: tuple[EarlierAnswer, ...] = ()
    """What was said before and no longer holds, the latest first."""


@dataclass(frozen=True, slots=True)
class QuestionNote:
    """What is to be said of how a question was read."""

    question: str
    read_as: str = ""
    """The question with the words corrected that no text has; empty when it was read as it is."""
    language: str = ""
    """The language that it is in, when no text is."""
    tree_languages: tuple[str, ...] = ()
    """The languages of the texts, the most frequent first, when the question is in none of them."""
    unknown: str = ""
    """The name that the question is, when nothing has it: what is found shares words with it."""


@dataclass(frozen=True, slots=True)
class ClosestPassage:
    """A passage that comes close to a question that nothing has answered."""

    question: str
    node: str
    title: str
    place: str
    """The path of its file, or the id of its node."""
    lines: tuple[int, int]
    """First and last, from 1, both included: of the file, or of the node's content where that is part of none."""
    quote: str
    """The words of the node, exactly."""
    score: float
    """How likely it answers, in [0, 1]."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What somebody wants always, which can apply to a question: data about them, never an order to who reads it."""

    node: str
    """Id of the wish."""
    text: str
    """The sentence, word for word."""
    what: Literal["rule", "preference", "withdrawal"]
    about: str
    """What it is for, where it says so; empty for everything."""
    who: str
    at: str
    """When it was said, in ISO 8601; empty where that is not known."""
    source: str
    """Id of the turn or the memory that it stands in."""
    file: str | None = None
    """Path of the file that says so: whoever wrote the file says whose wish it is. None for what the tree was told."""


@dataclass(frozen=True, slots=True)
class NodeRef:
    """A node that was found."""

    id: str
    title: str
    score: float
    """In [0, 1]."""
    reason: str
    path: str | None = None
    """Of the file that it is, or is of; None where there is none."""
    lines: tuple[int, int] | None = None
    """First and last line of it in its file, from 1; None for a whole file."""
    at: str = ""
    """When it was said, in ISO 8601; empty where that is not known."""


@dataclass(frozen=True, slots=True)
class TraceEntry:
    """One decision of a run."""

    step: int
    """Counts the events of the run, from 0; several entries may belong to one."""
    frame: int
    """0 is the root frame."""
    event: TraceEvent
    node: str | None
    reason: str
    data: Mapping[str, Any] = field(default_factory=dict)
    """For `route`: `offered` (ids), `choice`, `unviable` (id -> reason), `by` (`router`, `evidence`, `probabilities`)
    and, where the router can tell, `probabilities` (id -> how likely it leads to an answer). For `mark`: `mark`. For
    `read`: `answers`, `useful`, `known` (taken from the journal)."""


@dataclass(frozen=True, slots=True)
class PersonQuestion:
    """What a run asks a person before it goes on."""

    id: int
    """Its number in the run: the same question asked twice has two."""
    question: str
    about: Literal["question", "permission", "call"]
    """`question`: something to be known. `permission`: whether a tool that changes something may be called (yes, always
    or no). `call`: whether a call that was interrupted is made again (yes or no)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """What a search found, what it did, and what it cost.

    A question ends in one of three ways: answered (`answers`); open, with the passages that come closest to it
    (`open_questions` and `closest`); or open, with nothing that comes close.
    """

    answer: str
    """One text for all the questions; empty when nothing was found or `returns="nodes"`."""
    cited: str = ""
    """The same with the numbers of its sources behind what rests on them."""
    answers: tuple[QuestionAnswer, ...] = ()
    nodes: tuple[NodeRef, ...] = ()
    """`returns="nodes"`: what was collected, best first; in the order of time where that, or a summary, was asked for.
    `returns="answer"`: the nodes that the answers come from."""
    wishes: tuple[Wish, ...] = ()
    """What people want always that can apply here, at most three: beside what was found, and no part of it."""
    open_questions: tuple[str, ...] = ()
    """Those of the caller that no complete answer was found for."""
    notes: tuple[QuestionNote, ...] = ()
    """How questions were read, where that is not as they stand: corrected words, and a language that no text is in."""
    closest: tuple[ClosestPassage, ...] = ()
    """What comes closest to the questions that stayed open, at most three passages for each, the likeliest first.
    No two for one question share a line.

    Empty when the run ended at a limit or waits, and with `returns="nodes"`.
    """
    trace: tuple[TraceEntry, ...] = ()
    usage: Usage = field(default_factory=Usage)
    ended: Ended = "exhausted"
    detail: str = ""
    """Which limit was reached, whom it waits for, or what failed; empty otherwise."""
    asks: tuple[PersonQuestion, ...] = ()
    """What a person is asked, when it ended as `waiting`."""
    run_id: str = ""

    @property
    def sentences(self) -> list[str]:
        """How questions were read: with which words corrected, which name nothing has, and in which other language."""
        said = []
        for note in self.notes:
            if note.read_as:
                said.append(f"Read as: {note.read_as}")
            if note.language and note.question in self.open_questions:
                *before, last = note.tree_languages
                languages = " and ".join(filter(None, (", ".join(before), last)))
                said.append(f"The question is in {note.language}; the texts are in {languages}")
            if note.unknown:
                said.append(f"Nothing is called {note.unknown}; what is found only shares words with it")
        return said
