"""The state of a search: plain data, changed only by the machine that owns it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from metatree.durable import Effect
from metatree.searches._outcomes import AskedCall, EarlierFound, PassageFound, ReadResult, Routed

VISITED = "visited"
UNVIABLE = "unviable"
MOST_IN_VAIN = 3
"""A tool whose arguments a model filled in so often in a row for nothing is not offered again."""
MOST_UNUSABLE = 3
"""Requests to a model in a row that may come to nothing before a search goes on without it."""
MOST_FRUITLESS = 8
"""Requests to a model in a row of which nothing useful comes before a search goes on without it, where the evidence
leads: of 207 searches that models of 50, 70 and 85 % answered rightly, 205 took at most 8. The model still reads what
the evidence chooses from there, until it has led to nothing twice as often."""


@dataclass(slots=True)
class Mark:
    """What a frame knows of a node: nothing more to gain there."""

    kind: str
    """`visited` or `unviable`."""
    reason: str
    step: int
    menu: str | None
    """The node in whose menu it was offered."""


@dataclass(slots=True)
class Fact:
    """Something that a frame has learned and may show to later reads."""

    text: str
    node: str | None
    """The node that asked for it or said it."""
    question: str = ""
    """The question it answers; empty for a note."""


@dataclass(slots=True)
class Part:
    """One answer to one question, from one source."""

    question: str
    answer: str
    quote: str
    complete: bool
    node: str
    title: str
    confidence: float | None = None
    verified: bool = True
    place: str = ""
    lines: tuple[int, int] | None = None
    pages: tuple[int, int] | None = None
    earlier: Sequence[EarlierFound] = ()


@dataclass(slots=True)
class ToolVisit:
    """A walk through the tool tree of one memory node."""

    node: str
    path: list[str]
    """From the top of the tool tree to where the walk is."""
    marks: dict[str, Mark] = field(default_factory=dict)
    tool: str = ""
    """The tool whose arguments are being filled in, or that is being called."""
    arguments: dict[str, Any] = field(default_factory=dict)
    question: str = ""
    """The question that asks for the tool outright; '' when it is used for all that are open."""


@dataclass(frozen=True, slots=True)
class ReadTarget:
    """A text to be read: the content of a node, or what one of its tools returned."""

    node: str
    title: str
    version: str
    content: str | None
    """What a tool returned; None for the content of the node."""
    key: str
    """The same for reads that would give the same."""
    notice: str = ""
    """What the reader has to know of that text."""
    question: str = ""
    """The question that asks outright for the tool that returned it; '' for all that are open."""


@dataclass(slots=True)
class Knockout:
    """A menu too long for one prompt, routed in groups; the winners are routed at last."""

    groups: list[list[str]]
    winners: list[str] = field(default_factory=list)
    unviable: dict[str, str] = field(default_factory=dict)
    last: Routed | None = None
    """The decision that gave the last winner."""


@dataclass(slots=True)
class Frame:
    """One set of questions being answered."""

    id: int
    questions: list[str]
    trail: list[str]
    """From where the search came (the root, at first) to where it is."""
    parent: int | None = None
    """The frame that asked; None for a root frame."""
    asked_at: str | None = None
    """The node at whose reading these questions came up."""
    depth: int = 0
    open: list[str] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    marks: dict[str, Mark] = field(default_factory=dict)
    read: dict[str, int] = field(default_factory=dict)
    """Nodes whose content was read since the frame last started -> the step."""
    visits: dict[str, ToolVisit] = field(default_factory=dict)
    """Walks through the tool trees of nodes since the frame last started."""
    facts: list[Fact] = field(default_factory=list)
    asked: dict[str, int] = field(default_factory=dict)
    """Keys of questions that this frame has opened or dropped -> the step; none is opened twice."""
    interrupted: ReadTarget | None = None
    """The read that waits for a nested frame, to be taken up again."""
    options: list[str] = field(default_factory=list)
    """What the node at the end of the trail offers, as last listed."""
    tools: ToolVisit | None = None
    """The walk through a tool tree that the frame is in; None while it is among nodes."""
    calls: list[AskedCall] | None = None
    """Calls of tools that questions ask for outright, still to be made; None when the tree is walked."""
    likely: dict[str, Mapping[str, float]] = field(default_factory=dict)
    """Node -> what was last said of its options, of a router whose probabilities are kept."""
    knockout: Knockout | None = None
    learned: bool = False
    """Whether anything was learned since the frame last started."""
    restarts: int = 0
    looked_twice: bool = False
    fallback: int = 0
    """The next link of the fallback chain."""
    has_tools: bool = False
    """Whether the node at the end of the trail has a tool tree."""
    ended: str | None = None

    @property
    def visit(self) -> ToolVisit:
        """The walk through a tool tree that the frame is in, for steps that are made in one alone."""
        assert self.tools is not None
        return self.tools


@dataclass(slots=True)
class Collected:
    """A node that was collected for `returns="nodes"`."""

    id: str
    title: str
    score: float
    reason: str
    path: str | None = None
    lines: tuple[int, int] | None = None
    at: str = ""


@dataclass(slots=True)
class Waiting:
    """An effect without an outcome yet, and what it is for."""

    frame: int
    effect: Effect


@dataclass(slots=True)
class Tally:
    """How the effects of one kind have come out."""

    done: int = 0
    failed: int = 0
    error: str = ""
    """The last error."""
    failed_in_row: int = 0


@dataclass(slots=True)
class SearchState:
    """All that a run knows."""

    given: dict[str, Any]
    """The run's input; see `metatree.searches._machine.SearchMachine`."""
    limits: dict[str, Any]
    frames: dict[int, Frame] = field(default_factory=dict)
    waiting: dict[int, Waiting] = field(default_factory=dict)
    answered: dict[str, list[Part]] = field(default_factory=dict)
    """Key of a question -> its answer, for questions of finished frames; empty when none was found."""
    readings: dict[str, ReadResult] = field(default_factory=dict)
    """Key of a read -> what it gave, so that no read is paid for twice."""
    collected: list[Collected] = field(default_factory=list)
    trace: list[dict[str, Any]] = field(default_factory=list)
    composed: str | None = None
    closest: list[PassageFound] | None = None
    """The passages that come closest to what stayed open; None before they were looked for."""
    tallies: dict[str, Tally] = field(default_factory=dict)
    """Kind of effect -> how they came out."""
    unread: int = 0
    """Reads for which there was nothing to show: the source had changed, or was gone."""
    why_unread: str = ""
    """The last reason."""
    opened: int = 0
    """Questions that reads have opened."""
    created: int = 0
    """Nodes that tools and fallbacks have made."""
    unusable: int = 0
    """How many requests to a model in a row came to nothing, whatever they were for."""
    fruitless: int = 0
    """How many requests to a model in a row were answered, and nothing useful came of it."""
    without_router: bool = False
    """Whether the evidence chooses the way from here, while the model still reads."""
    without_model: bool = False
    """Whether the embedded parts do everything from here on, since the model gave no usable answers, or poor ones."""
    why_without: str = ""
    in_vain: dict[str, int] = field(default_factory=dict)
    """Tool -> how often in a row a model filled in its arguments and nothing came of it."""
    steps: int = 0
    next_effect: int = 0
    ended: str | None = None
