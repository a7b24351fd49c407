"""Ask one router, and the next when it cannot answer."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any, Self

from metatree.errors import BadModelAnswer, TransientError, UserError
from metatree.parts import PART_OF
from metatree.protocols import AnyRouter, Evidence, Suite
from metatree_routers.wrappers._codec import errors_of
from metatree_routers.wrappers._wrapper import WrappedPart, Wrapper, parts_of

_log = logging.getLogger("metatree")


class FallbackRouter(Wrapper):
    """Asks the first router and its parts; the next one when a model is out of reach, cannot be used as it is set up,
    or keeps answering out of form.

    Args:
        first: the router, with the parts it brings, or a suite.
        others: asked in order.
        bad_answers: how many answers out of form a part may give to one request before the next is asked.

    Example:
        >>> import asyncio
        >>> from metatree import Node, Option, RouteRequest
        >>> from metatree.errors import RouterUnavailable
        >>> from metatree.testing.parts import ScriptedRouter
        >>> router = FallbackRouter(ScriptedRouter([RouterUnavailable("down")]), ScriptedRouter(["a"]))
        >>> request = RouteRequest(("q",), "", Node("n", "menu"), (Option("a", "A"),))
        >>> asyncio.run(router.route(request)).choice
        'a'
    """

    def __init__(self, first: AnyRouter | Suite, *others: AnyRouter | Suite, bad_answers: int = 2) -> None:
        super().__init__(first)
        self._fallbacks = others
        self._others = [parts_of(other) for other in others]
        self._bad_answers = bad_answers
        self._bind(self, "router")

    def suite(self, evidence: Evidence | None = None) -> Suite:
        """Return all five parts, each with those that are asked next."""
        suite = super().suite(evidence)
        for name in ("reader", "tool_caller", "composer", "describer"):
            self._bind(getattr(suite, name), name)
        return suite

    def _bind(self, part: WrappedPart, name: str) -> None:
        """Let a part be asked on the caller's loop where one of those that are asked next has to be."""
        free = all(getattr(other, name).traits.any_loop for other in self._others)
        part.traits = replace(part.traits, any_loop=part.traits.any_loop and free)

    def bound(self, evidence: Evidence) -> Self:
        """Return this wrapper around the parts for one tree."""
        bound = super().bound(evidence)
        bound._others = [parts_of(other, evidence) for other in self._fallbacks]
        return bound

    async def through(self, method: str, part: Any, request: Any) -> Any:
        patience = self._bad_answers - len(errors_of(request))
        chain = [part, *(getattr(suite, PART_OF[method]) for suite in self._others)]
        for number, one in enumerate(chain):
            last = number == len(chain) - 1
            try:
                return await getattr(one, method)(request)
            except BadModelAnswer as exc:
                if last or patience > 1:
                    raise
                failure: Exception = exc
            except (TransientError, UserError) as exc:
                if last:
                    raise
                failure = exc
            _log.info("%s gave up on %s, the next is asked: %s", type(one).__name__, method, failure)
        raise AssertionError("a chain has at least one link")
