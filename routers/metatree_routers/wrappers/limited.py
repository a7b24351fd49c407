"""Let a router and its relatives answer only so many requests at once, or in a minute."""

from __future__ import annotations

from typing import Any

from metatree.protocols import AnyRouter, Suite
from metatree_routers.wrappers._wrapper import Wrapper
from metatree_routers.wrappers.limiter import Limiter


class LimitedRouter(Wrapper):
    """Makes requests wait for their turn, over all searches, loops and threads that share it.

    Args:
        inner: the router, with the parts it brings, or a suite.
        concurrency: how many requests are in progress at once, of all parts together.
        per_minute: how many may begin in a minute, evenly spaced; None for no bound.
    """

    def __init__(
        self, inner: AnyRouter | Suite, *, concurrency: int = 4, per_minute: float | None = None
    ) -> None:
        super().__init__(inner)
        self._limiter = Limiter(concurrency, per_minute=per_minute)

    async def through(self, method: str, part: Any, request: Any) -> Any:
        async with self._limiter.slot():
            return await getattr(part, method)(request)
