"""What comes of the effects of a search: JSON, journaled as it is, and read from there by a replay.

These are TypedDicts, so that there is no second form of an outcome and no codec. Lost: dataclasses, which each step
would have to decode once more, and each replay.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NotRequired, TypedDict, final


class Listing(TypedDict, total=False):
    """Comes of `ListNode`."""

    gone: bool
    """The node is no longer in the tree; then nothing else is there."""
    id: str
    title: str
    version: str
    content: bool
    """Whether it has content to read."""
    tools: bool
    """Whether any tool works on it."""
    accept: bool
    """Whether it could be collected."""
    children: list[str]
    collectable: bool
    """Whether its first child could be."""
    ruled_out: list[str]
    """Where no child is left: those that were ruled out, here or in a menu of two levels further up."""


class Chosen(TypedDict):
    """An option that was chosen, or none."""

    choice: str | None
    title: str
    score: float
    hint: str
    accept: bool
    path: NotRequired[str | None]
    """Of its file; see `NodeRef`."""
    lines: NotRequired[list[int] | None]
    at: NotRequired[str]
    """When it was said, where the node knows."""
    inner: NotRequired[bool]
    """Whether anything right below it could be collected too."""


def unscored(choice: str | None) -> Chosen:
    """Return a choice of which nothing else is known, or that there is none."""
    return {"choice": choice, "title": "", "score": 0.0, "hint": "", "accept": False}


class Ranked(Chosen):
    """Comes of `RankMenu`."""

    why: str
    """What the evidence says of why it was found."""


@final
class Routed(Chosen):
    """Comes of `RouteMenu`."""

    why: NotRequired[str]
    by_model: NotRequired[bool]
    """Whether the router thought, and did not just take the best by evidence."""
    more: NotRequired[list[Ranked]]
    """What it would choose next, and next after that, of what is collected."""
    unviable: dict[str, str]
    """Id -> why it was ruled out."""
    probabilities: NotRequired[Mapping[str, float]]
    """Id -> how likely it leads to an answer; of none where the router cannot tell."""
    reason: str
    offered: list[str]


@final
class MenuSplit(TypedDict):
    """Comes of `RouteMenu` when the menu is too long for one prompt."""

    split: list[list[str]]
    """Groups of ids, to be routed one after the other."""
    gone: dict[str, str]


class EarlierFound(TypedDict):
    """What was said before that an answer contradicts."""

    node: str
    title: str
    at: str
    quote: str
    place: str
    lines: list[int] | None


class FoundAnswer(TypedDict):
    """An answer to a question, or a part of one."""

    question: str
    answer: str
    quote: str
    complete: bool
    confidence: NotRequired[float | None]
    verified: NotRequired[bool]
    """Whether the words that were given for it stand in what was read."""
    place: NotRequired[str]
    """The path of the file, or the id of the node, in which the quote stands."""
    lines: NotRequired[list[int] | None]
    """Its first and last line there, from 1."""
    pages: NotRequired[list[int] | None]
    """The first and last page of its node, from 1."""
    earlier: NotRequired[list[EarlierFound]]
    node: NotRequired[str]
    title: NotRequired[str]


class ReadResult(TypedDict):
    """Comes of `ReadText`."""

    answers: list[FoundAnswer]
    new_questions: list[str]
    notes: str
    useful: bool
    unread: NotRequired[bool]
    """There was nothing to show: the source has changed, or is gone; `notes` says which."""


class ToolListing(TypedDict):
    """Comes of `ListTools`."""

    options: list[str]
    callable: list[str]


class AskedCall(TypedDict):
    """A tool that a question asks for outright."""

    node: str
    tool: str
    question: str


class CallsFound(TypedDict):
    """Comes of `FindCalls`."""

    calls: list[AskedCall]


class FilledArguments(TypedDict):
    """Comes of `FillArguments`."""

    arguments: dict[str, Any]


class NodeMade(TypedDict):
    """A node that a tool has made, as JSON."""

    id: str
    title: str
    description: str
    content: str | None
    kind: str
    attributes: dict[str, Any]
    provenance: dict[str, Any]
    there: NotRequired[str]
    """The digest of the same node, where it is in the tree already."""
    kept: NotRequired[bool]
    """Whether it is in the tree already."""


class ToolOutput(TypedDict, total=False):
    """Comes of `CallTool`: a text, a node, or a permission that a person has to give."""

    text: str
    node: NodeMade
    call: str
    """Names the call: the same for the same arguments."""
    changes: bool
    """Whether the tool says that it changes something."""
    reused: bool
    at: str
    """Of a reused call: on which node it was made."""
    from_run: str
    """Of a reused call: by which run."""
    own: bool
    """Of a reused call: whether this run made it."""
    asks: str
    """The question to a person; then there is `fingerprint` besides, and nothing else."""
    fingerprint: str


class NodeDescription(TypedDict):
    """Comes of `DescribeNode`."""

    title: str
    description: str


class NodeInserted(TypedDict, total=False):
    """Comes of `InsertNode`."""

    gone: bool
    """Its parent is no longer in the tree; then nothing else is there."""
    id: str
    title: str


class NodeAdded(TypedDict):
    """A node that a fallback has found, and that is in the tree now."""

    id: str
    title: str
    accept: bool
    trail: list[str]
    """The ids above it."""


class FallbackOutput(TypedDict):
    """Comes of `RunFallback`."""

    answers: list[FoundAnswer]
    nodes: list[NodeAdded]
    left_out: int


class Composed(TypedDict):
    """Comes of `ComposeAnswers`."""

    text: str


class PassageFound(TypedDict):
    """A passage that comes close to a question."""

    question: str
    node: str
    title: str
    place: str
    lines: list[int]
    """First and last, from 1, of the file; of the node's content where it is part of none."""
    quote: str
    score: float


class ClosestFound(TypedDict):
    """Comes of `FindClosest`."""

    passages: list[PassageFound]
