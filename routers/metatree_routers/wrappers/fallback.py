"""Ask one router, and the next when it cannot answer."""

from __future__ import annotations

import logging
from typing import Any, Self

from metatree.errors import BadModelAnswer, TransientError, UserError
from metatree.protocols import Evidence, Router, Suite
from metatree_routers.wrappers.wrapper import Wrapper, parts_of

_log = logging.getLogger("metatree")
_PARTS = {
    "route": "router",
    "read": "reader",
    "fill": "tool_caller",
    "compose": "composer",
    "describe": "describer",
}


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

    def __init__(self, first: Router | Suite, *others: Router | Suite, bad_answers: int = 2) -> None:
        super().__init__(first)
        self._asked_next = others
        self._others = [parts_of(other) for other in others]
        self._bad_answers = bad_answers

    def bound(self, evidence: Evidence) -> Self:
        """Return this wrapper around the parts for one tree."""
        bound = super().bound(evidence)
        bound._others = [parts_of(other, evidence) for other in self._asked_next]
        return bound

    async def through(self, method: str, part: Any, request: Any) -> Any:
        patience = self._bad_answers - len(getattr(request, "errors", ()))
        chain = [part, *(getattr(suite, _PARTS[method]) for suite in self._others)]
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
