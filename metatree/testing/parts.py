"""Parts for tests: routers, readers and tool callers that say what they are told to say, and trees to search.

They pass the same contract tests as the real ones, and they keep what they were asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from metatree.errors import BadModelAnswer
from metatree.node import Node
from metatree.protocols import (
    Answer,
    Composer,
    ComposeRequest,
    Describer,
    DescribeRequest,
    Description,
    Reader,
    Reading,
    ReadRequest,
    RouteDecision,
    Router,
    RouteRequest,
    ToolCaller,
    ToolRequest,
    Traits,
)
from metatree.testing._model_server import ModelRequest as ModelRequest
from metatree.testing._model_server import ModelServer as ModelServer
from metatree.testing._model_server import Reply as Reply
from metatree.trees.tree import ROOT, Tree

Said = str | None | RouteDecision | Exception


class ScriptedRouter(Router):
    """Gives decisions from a list, one for each request; then it chooses nothing.

    An item may be the id of a choice, None for no choice, a whole decision, or an exception to raise.

    Example:
        >>> ScriptedRouter(["a", RouteDecision(unviable={"b": "old"})]).script[0]
        'a'
    """

    traits = Traits(any_loop=True)

    def __init__(self, script: Iterable[Said] = ()) -> None:
        self.script = list(script)
        self.requests: list[RouteRequest] = []

    async def route(self, request: RouteRequest) -> RouteDecision:
        self.requests.append(request)
        reply = self.script[len(self.requests) - 1] if len(self.requests) <= len(self.script) else None
        if isinstance(reply, Exception):
            raise reply
        return reply if isinstance(reply, RouteDecision) else RouteDecision(reply, {}, "scripted")


class FunctionRouter(Router):
    """Asks a function for each decision; it may return an id, None or a whole decision."""

    traits = Traits(any_loop=True)

    def __init__(self, function: Callable[[RouteRequest], Said]) -> None:
        self.function = function
        self.requests: list[RouteRequest] = []

    async def route(self, request: RouteRequest) -> RouteDecision:
        self.requests.append(request)
        reply = self.function(request)
        if isinstance(reply, Exception):
            raise reply
        return reply if isinstance(reply, RouteDecision) else RouteDecision(reply, {}, "by function")


class ScriptedReader(Reader):
    """Knows what nodes say: node id -> question -> answer; all else is not useful.

    A value may be a whole `Reading`, or a list of readings, one for each time the node is read.
    """

    traits = Traits(any_loop=True)

    def __init__(self, knows: Mapping[str, Reading | list[Reading] | Mapping[str, str]]) -> None:
        self.knows = knows
        self.requests: list[ReadRequest] = []

    async def read(self, request: ReadRequest) -> Reading:
        times = sum(r.node.id == request.node.id for r in self.requests)
        self.requests.append(request)
        reply = self.knows.get(request.node.id, {})
        if isinstance(reply, Reading):
            return reply
        if isinstance(reply, list):
            return reply[min(times, len(reply) - 1)]
        answers = tuple(Answer(q, reply[q], quote=reply[q]) for q in request.questions if q in reply)
        return Reading(answers, useful=bool(answers))


class ScriptedToolCaller(ToolCaller):
    """Gives arguments from a mapping of tool id to arguments, or to a list of them, one for each request."""

    traits = Traits(any_loop=True)

    def __init__(self, arguments: Mapping[str, dict[str, Any] | list[dict[str, Any]]]) -> None:
        self.arguments = arguments
        self.requests: list[ToolRequest] = []

    async def fill(self, request: ToolRequest) -> dict[str, Any]:
        times = sum(r.tool.id == request.tool.id for r in self.requests)
        self.requests.append(request)
        reply = self.arguments.get(request.tool.id)
        if reply is None:
            raise BadModelAnswer(f"no arguments for {request.tool.id!r}")
        return reply[min(times, len(reply) - 1)] if isinstance(reply, list) else reply


class PlainComposer(Composer):
    """Puts the answers one under the other."""

    traits = Traits(any_loop=True)

    async def compose(self, request: ComposeRequest) -> str:
        return "\n".join(answer.answer for answer in request.answers)


class PlainDescriber(Describer):
    """Takes the first line for a title and the first 200 characters for a description."""

    traits = Traits(any_loop=True)

    async def describe(self, request: DescribeRequest) -> Description:
        text = request.content.strip() or "empty"
        return Description(text.splitlines()[0][:60], text[:200])


Shape = Mapping[str, "str | Shape | tuple[str, Shape]"]
"""Ids with what lies there: a text is content, a mapping are children, a pair is both."""


def tree_of(shape: Shape, tree: Tree | None = None, *, parent: str = ROOT) -> Tree:
    """Make a tree in memory from its shape, or add to one; titles are the ids.

    Example:
        >>> tree = tree_of({"a": {"a1": "text of a1", "a2": ("text of a2", {"a2x": "text of a2x"})}})
        >>> [node.id for _, node in tree.walk()]
        ['.', 'a', 'a1', 'a2', 'a2x']
    """
    tree = Tree.create(":memory:") if tree is None else tree
    for node_id, what in shape.items():
        content, below = (
            what if isinstance(what, tuple) else (what, {}) if isinstance(what, str) else (None, what)
        )
        kind = "note" if content is not None else "folder"
        tree.add(Node(node_id, node_id, f"what {node_id} holds", content, kind), parent=parent)
        tree_of(below, tree, parent=node_id)
    return tree


class FakeClock:
    """A clock that moves when it is told to."""

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        """Move on."""
        self.now += seconds
