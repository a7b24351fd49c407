"""What the wrappers share: five parts in one hand, and one place that every request passes through."""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable
from typing import Any, Final, Self

from metatree.protocols import (
    ComposeRequest,
    DescribeRequest,
    Description,
    Evidence,
    Reading,
    ReadRequest,
    RouteDecision,
    Router,
    RouteRequest,
    Suite,
    ToolRequest,
)
from metatree.searches.parts import whole_suite

Through = Callable[[str, Any, Any], Awaitable[Any]]
"""Is given the method's name, the part that is wrapped and the request, and returns the answer."""


_MARKS: Final = ("capacity", "cache_key", "by_evidence", "by_rules")


class Part:
    """A part of a suite whose every request passes through one function.

    It says of itself what the wrapped part says: whether it uses a model, how much fits its prompt, whether it goes by
    evidence or by rules.
    """

    def __init__(self, inner: Any, through: Through) -> None:
        self._inner = inner
        self._pass = through
        self.uses_model: bool = getattr(inner, "uses_model", False)
        for name in _MARKS:
            if hasattr(inner, name):
                setattr(self, name, getattr(inner, name))

    async def route(self, request: RouteRequest) -> RouteDecision:
        decision: RouteDecision = await self._pass("route", self._inner, request)
        return decision

    async def read(self, request: Any) -> Reading:
        reading: Reading = await self._pass("read", self._inner, request)
        return reading

    async def fill(self, request: ToolRequest) -> dict[str, Any]:
        arguments: dict[str, Any] = await self._pass("fill", self._inner, request)
        return arguments

    async def compose(self, request: ComposeRequest) -> str:
        text: str = await self._pass("compose", self._inner, request)
        return text

    async def describe(self, request: DescribeRequest) -> Description:
        description: Description = await self._pass("describe", self._inner, request)
        return description


class Wrapper(Part):
    """A router that wraps another one, with all that comes along with it.

    Args:
        inner: a router, or a whole suite; parts that a router does not bring are the embedded ones.
    """

    def __init__(self, inner: Router | Suite) -> None:
        self._given = inner
        self.parts = parts_of(inner)
        super().__init__(self.parts.router, self.through)

    def suite(self) -> Suite:
        """Return all five parts, each wrapped."""
        return self.suite_for(None)

    def suite_for(self, evidence: Evidence | None) -> Suite:
        """Return all five parts, each wrapped; embedded ones know the words of the tree whose evidence this is."""
        bound = self if evidence is None else self.bound(evidence)
        parts = bound.parts
        others = (parts.reader, parts.tool_caller, parts.composer, parts.describer)
        return Suite(self, *(Part(part, bound.through) for part in others))

    def bound(self, evidence: Evidence) -> Self:
        """Return this wrapper, with all that it counts and keeps, around the parts for one tree."""
        bound = copy.copy(self)
        bound.parts = parts_of(self._given, evidence)
        return bound

    async def through(self, method: str, part: Any, request: Any) -> Any:
        """Answer one request; a subclass does here what it is for."""
        return await getattr(part, method)(request)


def parts_of(inner: Router | Suite, evidence: Evidence | None = None) -> Suite:
    """Return a suite as it is, and a router with the parts that come with it, else the embedded ones."""
    return inner if isinstance(inner, Suite) else whole_suite(inner, None, None, None, None, evidence)


REQUESTS: dict[str, type[Any]] = {
    "route": RouteRequest,
    "read": ReadRequest,
    "fill": ToolRequest,
    "compose": ComposeRequest,
    "describe": DescribeRequest,
}
