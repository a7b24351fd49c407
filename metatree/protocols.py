"""The small protocols that a search talks to, and the plain data that passes through them.

Each protocol has one method that does the work. An implementation may be a class of ten lines: it gets one frozen
request and returns one frozen answer; it never sees the tree, the marks or the journal. Everything it gets and
everything it may say is in these classes, so it can be recorded, replayed, cached, limited or faked.

What a part says of itself is in its `traits`, and all else that it may do has a default here, so a class that names its
protocol as its base writes what is different alone. A caller may also give an object with the one method, or a
function (`AnyRouter`, `AnyReader`, …): `metatree.parts` fills in the rest when a search takes it.

Lost: optional attributes that a search asks for by name. A wrapper forgot two of them, and a question that nothing
answers then ended with an answer, after eight tool calls.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol, runtime_checkable

from metatree.node import Node
from metatree.result import QuestionNote

SURE: Final = 0.65
"""How likely an answer must be right to be claimed.

On sources that the numbers were not fitted on, three to four of five claims were right then
(docs/benchmarks/answers.md)."""
ABSTAINED = 0.01
"""Scores of evidence up to here say that nothing can answer, where it `may_abstain`."""


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
    place: str = ""
    """Where it stands, `path` or `path:first-last` in lines; empty when it is part of no file."""


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
    probabilities: Mapping[str, float] = field(default_factory=dict)
    """id -> how likely the option leads to an answer, in [0, 1], of those that the router can tell it of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """What a part says of itself; the defaults are those of a part that says nothing."""

    uses_model: bool = False
    """Its calls count against `Limits.model_calls`."""
    any_loop: bool = False
    """Any event loop may await it, since it keeps no client or lock of one: `asearch` then does so in its own thread,
    where it may compute as long as it likes, and asks all others on the caller's loop."""
    cache_key: str = ""
    """What its answers depend on besides the request, such as a model and its prompts; '' for the name of its class."""
    capacity: Callable[[RouteRequest], int] | None = None
    """Of a router: how many of a request's options, from the first, fit one prompt. Longer menus then come in groups,
    and shorter ones may show two levels. None when all menus fit."""
    gives_probabilities: bool = False
    """Of a router: its decisions have calibrated `probabilities`, so that a search that comes back to a menu goes on
    with the next likeliest instead of asking again."""
    follows_evidence: bool = False
    """Of a router: it adds nothing to what the evidence says, which then gives the reasons of what is collected."""
    by_rules: bool = False
    """Of a tool caller: it fills in arguments by rules, without a model or a person. Tools that tell no more than the
    nodes of their files are then not offered."""
    describes_many: bool = False
    """Of a describer: `describe_many` is one call, not one for each request."""
    gives_passages: bool = False
    """Of evidence: it has `passages`, with how likely each answers."""
    by_passages: bool = False
    """Of a reader: it answers by what `Evidence.passages` gives, which then says where to go as well."""
    declines: Callable[[], str] | None = None
    """Of a part that asks a model: why it is not worth asking, since it was wrong too often where the evidence has an
    opinion; '' when it is. The embedded part then does its work."""
    may_abstain: bool = False
    """Of evidence: `score` says, by scores of at most `ABSTAINED`, that nothing can answer; `rank` never does."""


class HasTraits(Protocol):
    """What all parts have."""

    @property
    def traits(self) -> Traits:
        """What it says of itself; a class may have it as a plain attribute."""
        return Traits()


@runtime_checkable
class Router(HasTraits, Protocol):
    """Picks one of the offered options, or rules options out."""

    async def route(self, request: RouteRequest) -> RouteDecision:
        """Choose one of the offered options, or rule options out.

        Returns:
            A choice or None, and the ids ruled out with a reason each. Only ids that were offered count.

        Raises:
            BadModelAnswer: the answer has no usable form; the request comes again with the error in it.
            TransientError: the model could not be reached.
        """
        ...

    def suite(self, evidence: Evidence | None = None) -> Suite | None:
        """Return this router with the parts that belong to it; None for the embedded ones.

        Args:
            evidence: that of the tree, for parts that ask what its words are worth there.
        """
        return None


@dataclass(frozen=True, slots=True)
class EarlierStatement:
    """What was said before of what a question asks, and no longer holds: another passage says otherwise, later."""

    node_id: str
    title: str
    """Of the node."""
    text: str
    """Exactly as it stands there."""
    at: str
    """The day that it is of, as in 2025-03-02, or the version."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What one piece of content says about one question."""

    question: str
    answer: str
    quote: str = ""
    """The words of the content that support it, exactly."""
    complete: bool = True
    """Whether it closes the question; a part is shown to later reads."""
    confidence: float | None = None
    """How likely it is right, in [0, 1], calibrated; None when the reader cannot tell."""
    earlier: tuple[EarlierStatement, ...] = ()
    """What other nodes said before that it contradicts, the latest first."""


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
    sure: float = SURE
    """How likely an answer must be right to be claimed, in [0, 1], where the reader can tell."""
    asked_for: bool = False
    """Whether the content is what a tool gave that the one question asks for outright."""


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
class Reader(HasTraits, Protocol):
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
class Composer(HasTraits, Protocol):
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
class Describer(HasTraits, Protocol):
    """Writes titles and descriptions."""

    async def describe(self, request: DescribeRequest) -> Description:
        """Return a title and a description for the content."""
        ...

    async def describe_many(self, requests: Sequence[DescribeRequest]) -> list[Description | None]:
        """Return a description for each request; None for one that was left out."""
        return [await self.describe(request) for request in requests]


@dataclass(frozen=True, slots=True)
class Scored:
    """A node with the evidence for it."""

    node_id: str
    score: float
    """In [0, 1], higher is better; comparable within one call."""
    line: str = ""
    """The line of the node that matched best."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A stretch of a node's content that may answer a question."""

    node_id: str
    title: str
    """Of the node."""
    text: str
    """Exactly as it stands there."""
    start: int
    """Offset of its first character in the content."""
    lines: tuple[int, int]
    """Its first and last line in the content, from 1, both included."""
    score: float
    """How likely it answers, in [0, 1], calibrated."""
    earlier: tuple[EarlierStatement, ...] = ()
    """What contradicts it and was said before, the latest first."""
    release: str = ""
    """Heading of the release that it stands under, in a changelog: the version or the day is said there."""


@runtime_checkable
class Evidence(HasTraits, Protocol):
    """Scores nodes for questions without asking a model."""

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

    def rank(
        self,
        questions: Sequence[str],
        *,
        under: str | None = None,
        among: Collection[str] | None = None,
        k: int = 10,
    ) -> list[Scored]:
        """Score as `score` does, and never abstain: the order in which nodes are collected, whatever they say."""
        return self.score(questions, under=under, among=among, k=k)

    def why(self, questions: Sequence[str], node: str, *, under: str | None = None) -> str:
        """Say in a short sentence why a node was found; '' when it cannot tell.

        Args:
            under: the node below which alone nodes competed, if any.
        """
        return ""

    def reasons(
        self, questions: Sequence[str], nodes: Sequence[str], *, under: str | None = None
    ) -> dict[str, str]:
        """Say of each of these nodes what `why` says of one."""
        return {node: self.why(questions, node, under=under) for node in nodes}

    def passages(
        self, question: str, *, under: str | None = None, k: int = 3, text: tuple[Node, str] | None = None
    ) -> list[Passage]:
        """Return at most `k` passages that may answer a question, the likeliest first; none when it cannot tell.

        Args:
            under: only of this node and what lies below it.
            text: a node and a content: of this content too, which need not be the one in the tree.
        """
        return []

    def asked_for(self, question: str, offers: Sequence[tuple[ToolSpec, Node]]) -> Sequence[int]:
        """Return the numbers of the tools that a question asks for outright, the surest first.

        Args:
            offers: tools, each with a node that the question names.
        """
        return ()

    def note(self, question: str) -> QuestionNote | None:
        """Say how a question was read, where that is not as it stands."""
        return None

    def in_time(self, question: str) -> bool:
        """Whether a question wants what was said in the order of time, as one for a summary does."""
        return False

    def near(self, question: str, texts: Sequence[str]) -> Sequence[float]:
        """Say how near a question is in meaning to each of some short texts, in [0, 1]; zeros when it cannot tell."""
        return [0.0] * len(texts)


class GivenToTools:
    """Marks a class, such as that of blackboards, of which a search gives its own object to a tool.

    A parameter of the tool that has this type is no argument, and nobody fills it in.
    """


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
class ToolCaller(HasTraits, Protocol):
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


class SupportsRoute(Protocol):
    """Any object with the method of a router."""

    async def route(self, request: RouteRequest) -> RouteDecision: ...


class SupportsRead(Protocol):
    """Any object with the method of a reader."""

    async def read(self, request: ReadRequest) -> Reading: ...


class SupportsFill(Protocol):
    """Any object with the method of a tool caller."""

    async def fill(self, request: ToolRequest) -> dict[str, Any]: ...


class SupportsCompose(Protocol):
    """Any object with the method of a composer."""

    async def compose(self, request: ComposeRequest) -> str: ...


class SupportsDescribe(Protocol):
    """Any object with the method of a describer."""

    async def describe(self, request: DescribeRequest) -> Description: ...


class SupportsScore(Protocol):
    """Any object with the method of evidence."""

    def score(
        self,
        questions: Sequence[str],
        *,
        under: str | None = None,
        among: Collection[str] | None = None,
        k: int = 10,
    ) -> list[Scored]: ...


# What a caller may give: such an object, or a function in the place of its method.
AnyRouter = SupportsRoute | Callable[[RouteRequest], RouteDecision | Awaitable[RouteDecision]]
AnyReader = SupportsRead | Callable[[ReadRequest], Reading | Awaitable[Reading]]
AnyToolCaller = SupportsFill | Callable[[ToolRequest], dict[str, Any] | Awaitable[dict[str, Any]]]
AnyComposer = SupportsCompose | Callable[[ComposeRequest], str | Awaitable[str]]
AnyDescriber = SupportsDescribe | Callable[[DescribeRequest], Description | Awaitable[Description]]
AnyEvidence = SupportsScore | Callable[..., list[Scored]]
