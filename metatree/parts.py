"""The parts that a search thinks with: those it was given, those that come with its router, or the embedded ones.

This is the one place that looks what a given part has: what it lacks of its protocol has the protocol's defaults from
here on. A part that declares nothing, or a function, gets them all.
"""

from __future__ import annotations

import inspect
import re
import uuid
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Final, cast

from metatree import plugins
from metatree.errors import UserError
from metatree.protocols import (
    AnyComposer,
    AnyDescriber,
    AnyEvidence,
    AnyReader,
    AnyRouter,
    AnyToolCaller,
    Composer,
    ComposeRequest,
    Describer,
    DescribeRequest,
    Description,
    Evidence,
    Reader,
    Reading,
    ReadRequest,
    RouteDecision,
    Router,
    RouteRequest,
    Scored,
    Suite,
    ToolCaller,
    ToolRequest,
    Traits,
)
from metatree.trees.tree import Tree

PART_OF = {
    "route": "router",
    "read": "reader",
    "fill": "tool_caller",
    "compose": "composer",
    "describe": "describer",
    "describe_many": "describer",
}
"""The part of a suite that has a method."""


class Delegate(Router, Reader, ToolCaller, Composer, Describer):
    """Any of the five parts, whose every request passes through one method: `delegated`."""

    traits: Traits = Traits()

    @abstractmethod
    async def delegated(self, method: str, request: Any) -> Any:
        """Return what somebody else answers to a request."""

    async def route(self, request: RouteRequest) -> RouteDecision:
        decision: RouteDecision = await self.delegated("route", request)
        return decision

    async def read(self, request: ReadRequest) -> Reading:
        reading: Reading = await self.delegated("read", request)
        return reading

    async def fill(self, request: ToolRequest) -> dict[str, Any]:
        arguments: dict[str, Any] = await self.delegated("fill", request)
        return arguments

    async def compose(self, request: ComposeRequest) -> str:
        text: str = await self.delegated("compose", request)
        return text

    async def describe(self, request: DescribeRequest) -> Description:
        description: Description = await self.delegated("describe", request)
        return description

    async def describe_many(self, requests: Sequence[DescribeRequest]) -> list[Description | None]:
        if not self.traits.describes_many:  # so that each request passes through by itself
            return [await self.describe(request) for request in requests]
        described: list[Description | None] = await self.delegated("describe_many", tuple(requests))
        return described


def _take(door: Router | Evidence, part: Any, name: str, method: str, *optional: str) -> Callable[..., Any]:
    """Return the method of a part, or the function that was given for it; what else the part has goes to its door.

    Args:
        door: what stands for the part from here on, with the defaults of its protocol.
        name: what a caller gives the part as.
        optional: what else of its protocol it may have.
    """
    if isinstance(part, type):
        raise UserError(f"{name} is the class {part.__name__}: give an object of it, {part.__name__}(…)")
    call: Callable[..., Any] = getattr(part, method, part)
    if not callable(call):
        raise UserError(f"{name} must have a method {method!r}, and {part!r} has none")
    whose = part if inspect.isroutine(part) else type(part)
    has = {each: getattr(part, each) for each in ("traits", *optional) if hasattr(part, each)}
    vars(door).update({"traits": Traits(cache_key=f"{whose.__module__}.{whose.__qualname__}")} | has)
    return call


class _GivenPart(Delegate):
    """A part as it was given, with the defaults of its protocol for what it lacks."""

    def __init__(self, part: Any, name: str, method: str, *optional: str) -> None:
        self._call = _take(self, part, name, method, *optional)
        self.name = name_of(part)

    async def delegated(self, method: str, request: Any) -> Any:
        answer = self._call(request)
        return await answer if inspect.isawaitable(answer) else answer


class _GivenEvidence(Evidence):
    traits: Traits = Traits()

    def __init__(self, part: Any) -> None:
        self._call = _take(
            self,
            part,
            "evidence",
            "score",
            "rank",
            "why",
            "reasons",
            "passages",
            "asked_for",
            "note",
            "near",
            "in_time",
        )

    def score(self, questions: Sequence[str], **where: Any) -> list[Scored]:
        scored: list[Scored] = self._call(questions, **where)
        return scored

    def rank(self, questions: Sequence[str], **where: Any) -> list[Scored]:
        return self.score(questions, **where)


def _is(part: Any, protocol: Any) -> bool:
    """Whether a part has all of a protocol; of a class that derives from it that is known without a look."""
    return protocol in type(part).__mro__ or (isinstance(part, protocol) and not isinstance(part, type))


def as_router(part: AnyRouter) -> Router:
    """Return a router with all of its protocol; raises `UserError` for what is none, as the functions below do."""
    return cast(Router, part) if _is(part, Router) else _GivenPart(part, "router", "route", "suite")


def as_reader(part: AnyReader) -> Reader:
    """Return a reader with all of its protocol."""
    return cast(Reader, part) if _is(part, Reader) else _GivenPart(part, "reader", "read")


def as_tool_caller(part: AnyToolCaller) -> ToolCaller:
    """Return a tool caller with all of its protocol."""
    return cast(ToolCaller, part) if _is(part, ToolCaller) else _GivenPart(part, "tool_caller", "fill")


def as_composer(part: AnyComposer) -> Composer:
    """Return a composer with all of its protocol."""
    return cast(Composer, part) if _is(part, Composer) else _GivenPart(part, "composer", "compose")


def as_describer(part: AnyDescriber) -> Describer:
    """Return a describer with all of its protocol."""
    return (
        cast(Describer, part)
        if _is(part, Describer)
        else _GivenPart(part, "describer", "describe", "describe_many")
    )


def as_evidence(part: AnyEvidence) -> Evidence:
    """Return evidence with all of its protocol."""
    return cast(Evidence, part) if _is(part, Evidence) else _GivenEvidence(part)


def suite_named(name: str) -> Suite:
    """Return the parts of an installed router by its name, which may say more after a slash: `openai/gpt-4.1`.

    An entry point of `metatree.routers` is a function that takes the name and returns a `Suite`, or a router itself.

    Raises:
        UserError: no router has this name, or what its entry point names gives no `Suite`.
    """
    name = f"openai/{name}" if _OF_OPENAI.match(name) else name
    plugin = name.partition("/")[0]
    installed = plugins.names(plugins.ROUTERS)
    if plugin not in installed:
        raise UserError(
            f"no router {name!r} is installed; there are {', '.join(sorted(installed))}{_instead(name)}"
        )
    part = plugins.load(plugins.ROUTERS, plugin)
    if takes_requests(part):
        return whole_suite(part)
    suite = part(name)
    if not isinstance(suite, Suite):
        raise UserError(
            f"the plug-in {plugin!r} of {plugins.ROUTERS!r} gives {suite!r} for a name, not a Suite"
        )
    return suite


def takes_requests(part: object) -> bool:
    """Whether an object is a router itself: it has `route`, or is a function of a `RouteRequest`."""
    if isinstance(part, type) or not callable(part):
        return hasattr(part, "route") and not isinstance(part, type)
    first = next(iter(inspect.signature(part).parameters.values()), None)
    return first is not None and getattr(first.annotation, "__name__", first.annotation) == "RouteRequest"


_OF_OPENAI: Final = re.compile(r"(gpt-|o\d\b|chatgpt-)[^/]*$")
_MEANT: Final = {"claude": "anthropic/{}", "gemini": "gemini/{}", "litellm": "", "azure": ""}


def _instead(name: str) -> str:
    """Return what to write for a name that no router has."""
    meant = next((how for beginning, how in _MEANT.items() if name.startswith(beginning)), None)
    if meant:
        return f"; write {meant.format(name)}"
    if ":" in name and "/" not in name:
        return f"; for a model of Ollama write ollama/{name}"
    model = name.partition("/")[2] or name
    return (
        "; for a server that speaks OpenAI's protocol (LiteLLM's proxy, vLLM, LM Studio, Azure) set OPENAI_BASE_URL"
        f" and write openai/{model}"
    )


def name_of(part: object) -> str:
    """Return what a part is called: the name of the function, or of the class."""
    if isinstance(part, _GivenPart):
        return part.name
    return str(getattr(part if inspect.isroutine(part) else type(part), "__qualname__", part))


def scope_of(permit: object) -> str:
    """Return what distinguishes calls, where the function that permits them has a `scope`."""
    return str(getattr(permit, "scope", ""))


class Embedded(Delegate):
    """The embedded suite, loaded when one of its parts is first asked.

    Args:
        evidence: that of the tree, which knows what its words are worth there; None for none.
    """

    traits = Traits(
        any_loop=True, cache_key="Embedded", follows_evidence=True, by_rules=True, by_passages=True
    )

    def __init__(self, evidence: Evidence | None = None) -> None:
        self._evidence = evidence
        if evidence is not None:  # what it answers then depends on the tree, which no request names
            self.traits = replace(self.traits, cache_key=f"embedded {uuid.uuid4().hex}")

    @cached_property
    def _parts(self) -> Suite:
        make = plugins.load(plugins.ROUTERS, "embedded")
        suite: Suite = make("embedded", evidence=self._evidence)
        return suite

    async def delegated(self, method: str, request: Any) -> Any:
        return await getattr(getattr(self._parts, PART_OF[method]), method)(request)


def embedded_parts(evidence: Evidence | None = None) -> Suite:
    """Return the embedded parts, which are loaded when one of them is first asked."""
    part = Embedded(evidence)
    return Suite(part, part, part, part, part)


def whole_suite(
    router: AnyRouter | None,
    reader: AnyReader | None = None,
    tool_caller: AnyToolCaller | None = None,
    composer: AnyComposer | None = None,
    describer: AnyDescriber | None = None,
    evidence: Evidence | None = None,
    others: Suite | None = None,
) -> Suite:
    """Return five parts with all of their protocols: those given, else the router's own, else the embedded ones.

    Args:
        evidence: what the parts that are filled in may ask about the tree's words.
        others: parts to take before the embedded ones, such as those of a suite that `suite_named` returned.

    Raises:
        UserError: something given is not what its protocol asks for.
    """
    given = None if router is None else as_router(router)
    others = (None if given is None else given.suite(evidence)) or others or embedded_parts(evidence)
    return Suite(
        given or as_router(others.router),
        as_reader(reader or others.reader),
        as_tool_caller(tool_caller or others.tool_caller),
        as_composer(composer or others.composer),
        as_describer(describer or others.describer),
    )


def find_evidence(tree: Tree, *, required: bool) -> Evidence | None:
    """Return the text index of a tree; None when it is not installed, or neither built nor required."""
    if "text" not in plugins.available(plugins.EVIDENCE):
        return None
    evidence: AnyEvidence | None = plugins.load(plugins.EVIDENCE, "text")(tree, required=required)
    return None if evidence is None else as_evidence(evidence)
