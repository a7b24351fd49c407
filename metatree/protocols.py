"""The small protocols that a search talks to, and the plain data that passes through them.

Each protocol has one method. An implementation may be a class of ten lines: it gets one frozen request and
returns one frozen answer; it never sees the tree, the marks or the journal. Everything it is told and
everything it may say is in these classes, so it can be recorded, replayed, cached, limited or faked.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from metatree.node import Node


@dataclass(frozen=True, slots=True)
class Option:
    """One line of the menu that a router chooses from."""

    id: str
    title: str
    description: str = ""
    parent: str | None = None
    """Title of the node it lies under, when that is not the node being routed."""
    score: float | None = None
    """Best evidence for the questions in or below this option, in [0, 1]; None when no evidence was asked."""
    hints: tuple[str, ...] = ()
    """Titles or lines in or below this option that match the questions, best first."""


@dataclass(frozen=True, slots=True)
class RouteRequest:
    """What a router is asked: which of these options leads to an answer?"""

    questions: tuple[str, ...]
    """The questions that are still open."""
    context: str
    """What the caller said besides, and what the search has learned."""
    node: Node
    """The node whose options these are."""
    options: tuple[Option, ...]
    """In tree order; never empty."""
    errors: tuple[str, ...] = ()
    """What was wrong with the earlier answers to this very request."""


@dataclass(frozen=True, slots=True)
class RouteDecision:
    """A choice or none, and the options that are ruled out. Nothing said at all rules out everything offered."""

    choice: str | None = None
    unviable: Mapping[str, str] = field(default_factory=dict)
    """id -> reason."""
    reason: str = ""


@runtime_checkable
class Router(Protocol):
    """Picks one of the offered options, or rules options out.

    A router may also have a method `capacity(request) -> int`: how many of the request's options, from the first,
    fit one prompt. Longer menus then come in groups, and shorter ones may show two levels. One with the attribute
    `uses_model = True` counts against `Limits.model_calls`; one with a method `suite()` brings its own reader,
    tool caller, composer and describer, or with `suite_for(evidence)` those for a tree.
    """

    async def route(self, request: RouteRequest) -> RouteDecision:
        """Choose one of the offered options, or rule options out.

        Returns:
            A choice or None, and the ids ruled out with a reason each. Only ids that were offered count.

        Raises:
            BadModelAnswer: the answer has no usable form; the request comes again with the error in it.
            TransientError: the model could not be reached.
        """
        ...


@dataclass(frozen=True, slots=True)
class Answer:
    """What one piece of content says about one question."""

    question: str
    answer: str
    quote: str = ""
    """The words of the content that support it, exactly."""
    complete: bool = True
    """Whether it closes the question; a part is shown to later reads."""


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """What a reader is asked: what does this content say about these questions?"""

    node: Node
    content: str
    questions: tuple[str, ...]
    context: str = ""
    """What the caller said, and the facts that concern this node, among them answers to what it asked."""
    partial_answers: tuple[Answer, ...] = ()
    errors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reading:
    """What a reader found."""

    answers: tuple[Answer, ...] = ()
    new_questions: tuple[str, ...] = ()
    """What must be known before this content can answer; each opens a nested search at once."""
    notes: str = ""
    """Worth keeping for the rest of the search."""
    useful: bool = True


@runtime_checkable
class Reader(Protocol):
    """Takes one node's content and says what it answers."""

    async def read(self, request: ReadRequest) -> Reading:
        """Say what this content answers, with exact quotes; an empty `Reading` when it answers nothing."""
        ...


@dataclass(frozen=True, slots=True)
class ComposeRequest:
    """Several answers that are to become one text."""

    questions: tuple[str, ...]
    answers: tuple[Answer, ...]
    open_questions: tuple[str, ...]
    context: str = ""


@runtime_checkable
class Composer(Protocol):
    """Joins several answers into one text."""

    async def compose(self, request: ComposeRequest) -> str:
        """Return one text that answers all the questions; asked only when there are several."""
        ...


@dataclass(frozen=True, slots=True)
class Description:
    """A title of a few words and a description of one or two sentences."""

    title: str
    description: str


@dataclass(frozen=True, slots=True)
class DescribeRequest:
    """A node, made by a tool or a builder, that needs a title and a description."""

    content: str
    node: Node | None = None
    parent: Node | None = None
    questions: tuple[str, ...] = ()
    tool: str = ""
    """Id of the tool that made it, empty when a builder asks."""


@runtime_checkable
class Describer(Protocol):
    """Writes titles and descriptions."""

    async def describe(self, request: DescribeRequest) -> Description:
        """Return a title and a description for the content."""
        ...


@dataclass(frozen=True, slots=True)
class Scored:
    """A node with the evidence for it."""

    node_id: str
    score: float
    """In [0, 1], higher is better; comparable within one call."""
    line: str = ""
    """The line of the node that matched best."""


@runtime_checkable
class Evidence(Protocol):
    """Scores nodes for questions without asking a model.

    Evidence may also have a method `rank` with the same parameters: the order in which nodes are collected, where
    `score` may say that nothing can answer.
    """

    def score(
        self,
        questions: Sequence[str],
        *,
        under: str | None = None,
        among: Collection[str] | None = None,
        k: int = 10,
    ) -> list[Scored]:
        """Return at most `k` nodes, best first; only below `under` (itself included), only `among` these ids, or both.

        Nodes without any evidence are left out.
        """
        ...


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """What a tool caller must know of a tool."""

    id: str
    title: str
    description: str
    kind: Literal["exploratory", "interactive"]
    schema: Mapping[str, Any]
    """JSON Schema of its arguments."""
    version: str = "1"


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """What a tool caller is asked: which arguments fit?"""

    tool: ToolSpec
    node: Node
    questions: tuple[str, ...]
    context: str = ""
    errors: tuple[str, ...] = ()
    """What was wrong with the earlier arguments."""


@runtime_checkable
class ToolCaller(Protocol):
    """Fills in a tool's arguments."""

    async def fill(self, request: ToolRequest) -> dict[str, Any]:
        """Return arguments that fit the tool's schema.

        Raises:
            BadModelAnswer: no arguments can be given; it comes again with the error, a bounded number of times.
        """
        ...


@dataclass(frozen=True, slots=True)
class Suite:
    """The parts that think, as one set: what a router's package offers for each of the five tasks."""

    router: Router
    reader: Reader
    tool_caller: ToolCaller
    composer: Composer
    describer: Describer
