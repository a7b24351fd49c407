"""The parts that a search thinks with: those it was given, those that come with its router, or the embedded ones."""

from __future__ import annotations

import uuid
from functools import cached_property
from typing import Any

from metatree import plugins
from metatree.errors import UserError
from metatree.protocols import (
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
    Suite,
    ToolCaller,
    ToolRequest,
)
from metatree.trees.tree import Tree


class Embedded:
    """The embedded suite, loaded when one of its parts is first asked.

    Args:
        evidence: that of the tree, which knows what its words are worth there; None for none.
    """

    by_evidence = True
    by_rules = True
    """Whether arguments of tools are filled in by rules, without a model or a person."""

    def __init__(self, evidence: Evidence | None = None) -> None:
        self._evidence = evidence
        if evidence is not None:
            self.cache_key = f"embedded {uuid.uuid4().hex}"
            """What it answers depends on the tree, which no request names."""

    @cached_property
    def _suite(self) -> Suite:
        make = plugins.load(plugins.ROUTERS, "embedded")
        made: Suite = make("embedded", evidence=self._evidence)
        return made

    async def route(self, request: RouteRequest) -> RouteDecision:
        return await self._suite.router.route(request)

    async def read(self, request: ReadRequest) -> Reading:
        return await self._suite.reader.read(request)

    async def fill(self, request: ToolRequest) -> dict[str, Any]:
        return await self._suite.tool_caller.fill(request)

    async def compose(self, request: ComposeRequest) -> str:
        return await self._suite.composer.compose(request)

    async def describe(self, request: DescribeRequest) -> Description:
        return await self._suite.describer.describe(request)


def whole_suite(
    router: Router | None,
    reader: Reader | None,
    tool_caller: ToolCaller | None,
    composer: Composer | None,
    describer: Describer | None,
    evidence: Evidence | None = None,
) -> Suite:
    """Fill in what was not given: from the router's own `suite()` when it has one, else the embedded parts.

    Args:
        evidence: what the embedded parts may ask about the tree's words.

    Raises:
        UserError: something given is not what its protocol asks for.
    """
    for part, name, method in (
        (router, "router", "route"),
        (reader, "reader", "read"),
        (tool_caller, "tool_caller", "fill"),
        (composer, "composer", "compose"),
        (describer, "describer", "describe"),
    ):
        if part is not None:
            require(part, name, method)
    own, own_for = getattr(router, "suite", None), getattr(router, "suite_for", None)
    if callable(own_for):
        others: Suite = own_for(evidence)
    elif callable(own):
        others = own()
    else:
        embedded = Embedded(evidence)
        others = Suite(embedded, embedded, embedded, embedded, embedded)
    return Suite(
        router or others.router,
        reader or others.reader,
        tool_caller or others.tool_caller,
        composer or others.composer,
        describer or others.describer,
    )


def require(part: object, name: str, method: str) -> None:
    """Raise a UserError unless a part is an object with the method that its protocol asks for."""
    if isinstance(part, type):
        raise UserError(f"{name} is the class {part.__name__}: give an object of it, {part.__name__}(…)")
    function = getattr(part, method, None)
    if not callable(function):
        raise UserError(f"{name} must have a method {method!r}, and {part!r} has none")


def find_evidence(tree: Tree, *, required: bool) -> Evidence | None:
    """Return the text index of a tree; None when it is not installed, or neither built nor required."""
    if "text" not in plugins.available(plugins.EVIDENCE):
        return None
    found: Evidence | None = plugins.load(plugins.EVIDENCE, "text")(tree, required=required)
    return found
