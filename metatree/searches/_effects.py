"""What a search asks of the world.

An effect is never written to the journal, since a replay computes it again: a journal holds what cannot be computed,
and a step may hand the marks of its frame to a handler without copying them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from metatree.searches._outcomes import FoundAnswer, NodeMade
from metatree.searches._state import Mark, ReadTarget


@dataclass(frozen=True, slots=True)
class ListNode:
    """List the children of a node."""

    kind: ClassVar = "list"
    node: str
    marks: Mapping[str, Mark]
    """Of the frame, as they are when the effect is executed: children with a mark are left out."""


@dataclass(frozen=True, slots=True)
class RouteMenu:
    """Choose among the children of a node, or among its tools."""

    kind: ClassVar = "route"
    node: str
    options: Sequence[str]
    tools: bool
    """Whether the options are tools."""
    callable: Sequence[str]
    """Which of the tools are none that hold others."""
    jumps: bool
    """Whether leaves that evidence points to may be offered besides."""
    marks: Mapping[str, Mark]
    questions: Sequence[str]
    context: str
    collected: Sequence[str] = ()
    """Nodes that have been collected: offered for what is below them alone."""
    wanted: int = 0
    """How many nodes may be collected from here on; 0 where none are."""
    embedded: bool = False
    """Whether the embedded part does it, since the model gives no usable answers."""


@dataclass(frozen=True, slots=True)
class RankMenu:
    """Choose by evidence alone what a router could not choose."""

    kind: ClassVar = "rank"
    menu: RouteMenu


@dataclass(frozen=True, slots=True)
class ReadText:
    """Read a text for answers."""

    kind: ClassVar = "read"
    target: ReadTarget
    questions: Sequence[str]
    context: str
    parts: Sequence[FoundAnswer]
    """What is known of the answers so far."""
    sure: float
    """How likely an answer must be right to be claimed."""
    embedded: bool = False
    """Whether the embedded part does it, since the model gives no usable answers."""


@dataclass(frozen=True, slots=True)
class ListTools:
    """List the tools that work on a node, at one place of the tool tree."""

    kind: ClassVar = "tools"
    node: str
    at: str
    marks: Mapping[str, Mark]
    may_create: bool


@dataclass(frozen=True, slots=True)
class FindCalls:
    """Find the tools that questions ask for outright."""

    kind: ClassVar = "calls"
    questions: Sequence[str]


@dataclass(frozen=True, slots=True)
class FillArguments:
    """Fill in the arguments of a tool."""

    kind: ClassVar = "fill"
    node: str
    tool: str
    questions: Sequence[str]
    context: str
    embedded: bool = False
    """Whether the embedded part does it, since the model gives no usable answers."""


@dataclass(frozen=True, slots=True)
class Grant:
    """What a person has said to a call that needs permission, and of which tool it was.

    So a run that waited for a week does not call what stands in its place by then.
    """

    how: Literal["once", "always"]
    fingerprint: str


@dataclass(frozen=True, slots=True)
class CallTool:
    """Call a tool."""

    kind: ClassVar = "call"
    node: str
    tool: str
    arguments: dict[str, Any]
    again: bool = False
    """Whether a person has said that a call which was interrupted is to be made again."""
    granted: Grant | None = None


@dataclass(frozen=True, slots=True)
class DescribeNode:
    """Give a title and a description to a node that a tool has made."""

    kind: ClassVar = "describe"
    parent: str
    node: NodeMade
    questions: Sequence[str]
    embedded: bool = False
    """Whether the embedded part does it, since the model gives no usable answers."""


@dataclass(frozen=True, slots=True)
class InsertNode:
    """Add a node that a tool has made to the tree."""

    kind: ClassVar = "insert"
    parent: str
    node: NodeMade


@dataclass(frozen=True, slots=True)
class RunFallback:
    """Run a function of the fallback chain."""

    kind: ClassVar = "fallback"
    index: int
    questions: Sequence[str]
    context: str
    may_create: int


@dataclass(frozen=True, slots=True)
class AskHuman:
    """Put a question to a person; the run waits for `{answer: …}`."""

    kind: ClassVar = "ask"
    question: str
    about: Literal["question", "permission", "call"]
    """See `metatree.PersonQuestion`."""
    fingerprint: str = ""
    """Of the tool that needs permission."""


@dataclass(frozen=True, slots=True)
class ComposeAnswers:
    """Make one text of several answers."""

    kind: ClassVar = "compose"
    questions: Sequence[str]
    answers: Sequence[FoundAnswer]
    open: Sequence[str]
    context: str
    embedded: bool = False
    """Whether the embedded part does it, since the model gives no usable answers."""


@dataclass(frozen=True, slots=True)
class FindClosest:
    """Find the passages that come closest to questions that nothing has answered."""

    kind: ClassVar = "closest"
    questions: Sequence[str]


SearchEffect = (
    ListNode
    | RouteMenu
    | RankMenu
    | ReadText
    | ListTools
    | FindCalls
    | FillArguments
    | CallTool
    | DescribeNode
    | InsertNode
    | RunFallback
    | AskHuman
    | ComposeAnswers
    | FindClosest
)

ByPart = RouteMenu | ReadText | FillArguments | DescribeNode | ComposeAnswers
"""Effects that a router or another part carries out, which may ask a model."""
