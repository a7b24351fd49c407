"""What the wrappers share: five parts in one hand, and one place that every request passes through."""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Self

from metatree.parts import Delegate, whole_suite
from metatree.protocols import AnyRouter, Evidence, HasTraits, Suite

Through = Callable[[str, Any, Any], Awaitable[Any]]
"""Is given the method's name, the part that is wrapped and the request, and returns the answer."""


class WrappedPart(Delegate):
    """A part of a suite whose every request passes through one function; its traits are those of the wrapped part."""

    def __init__(self, inner: HasTraits, through: Through) -> None:
        self._inner = inner
        self._through = through
        self.traits = replace(inner.traits, cache_key=cache_key_of(inner))

    async def delegated(self, method: str, request: Any) -> Any:
        return await self._through(method, self._inner, request)


class Wrapper(WrappedPart):
    """A router that wraps another one, with all that comes along with it.

    Args:
        inner: a router, or a whole suite; parts that a router does not bring are the embedded ones.
    """

    def __init__(self, inner: AnyRouter | Suite) -> None:
        self._given = inner
        self.parts = parts_of(inner)
        super().__init__(self.parts.router, self.through)

    def suite(self, evidence: Evidence | None = None) -> Suite:
        """Return all five parts, each wrapped; embedded ones know the words of the tree whose evidence this is."""
        bound = self if evidence is None else self.bound(evidence)
        parts = bound.parts
        return Suite(
            self,
            WrappedPart(parts.reader, bound.through),
            WrappedPart(parts.tool_caller, bound.through),
            WrappedPart(parts.composer, bound.through),
            WrappedPart(parts.describer, bound.through),
        )

    def bound(self, evidence: Evidence) -> Self:
        """Return this wrapper, with all that it counts and keeps, around the parts for one tree."""
        bound = copy.copy(self)
        bound.parts = parts_of(self._given, evidence)
        return bound

    async def through(self, method: str, part: Any, request: Any) -> Any:
        """Answer one request; a subclass does here what it is for."""
        return await getattr(part, method)(request)


def parts_of(inner: AnyRouter | Suite, evidence: Evidence | None = None) -> Suite:
    """Return the parts of a suite, or a router with those that come with it, else the embedded ones."""
    if isinstance(inner, Suite):
        return whole_suite(inner.router, inner.reader, inner.tool_caller, inner.composer, inner.describer)
    return whole_suite(inner, evidence=evidence)


def cache_key_of(part: HasTraits) -> str:
    """Return what the answers of a part depend on besides the request."""
    return part.traits.cache_key or type(part).__qualname__
