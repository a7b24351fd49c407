"""A router that is wrong at a set rate, to see what the walk makes of it."""

from __future__ import annotations

import random

from metatree.protocols import RouteDecision, Router, RouteRequest, SupportsRoute


class WrongRouter(Router):
    """Asks another router and, at a rate, picks another of the offered options instead.

    Args:
        rate: share of choices that are replaced, in [0, 1].
        seed: the same seed errs at the same calls.
    """

    def __init__(self, inner: SupportsRoute, rate: float, seed: str) -> None:
        self._inner = inner
        self._rate = rate
        self._rng = random.Random(seed)

    async def route(self, request: RouteRequest) -> RouteDecision:
        """Choose as the other router does, or wrongly; what it rules out stays, unless it is now the choice."""
        decision = await self._inner.route(request)
        others = [option.id for option in request.options if option.id != decision.choice]
        if decision.choice is None or not others or self._rng.random() >= self._rate:
            return decision
        return RouteDecision(self._rng.choice(others), {}, "wrong on purpose")
