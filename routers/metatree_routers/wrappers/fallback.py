"""Ask one router, and the next when it cannot answer."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Self

from metatree.durable import run_memory
from metatree.errors import BadModelAnswer, TransientError, UserError
from metatree.parts import PART_OF
from metatree.protocols import AnyRouter, Evidence, HasTraits, RouteDecision, Suite
from metatree_routers.wrappers._codec import errors_of
from metatree_routers.wrappers._wrapper import WrappedPart, Wrapper, cache_key_of, parts_of

_log = logging.getLogger("metatree")


class FallbackRouter(Wrapper):
    """Asks the first router and its parts; the next one when a model is out of reach, cannot be used as it is set up,
    or keeps answering out of form. Why stands in the reasons of decisions, and in the log once for each run.

    Its traits hold whichever of them answers: a model is used when one of them uses one, a menu fits when it fits the
    narrowest, evidence is followed or rules are gone by when all do so, and a cache keeps its answers apart from those
    of any of them alone. Lost: the traits of the first, with which calls of a model behind the embedded router were
    not counted, and a cache gave the answer of the second for one of the first.

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
        self._combine_traits(self, "router")

    def suite(self, evidence: Evidence | None = None) -> Suite:
        """Return all five parts, each with those that are asked next."""
        suite = super().suite(evidence)
        for name in ("reader", "tool_caller", "composer", "describer"):
            self._combine_traits(getattr(suite, name), name)
        return suite

    def _combine_traits(self, part: WrappedPart, name: str) -> None:
        others: list[HasTraits] = [getattr(suite, name) for suite in self._others]
        chain = [part.traits, *(other.traits for other in others)]
        fits = [traits.capacity for traits in chain if traits.capacity is not None]
        declining = [traits.declines for traits in chain]
        part.traits = replace(
            part.traits,
            uses_model=any(traits.uses_model for traits in chain),
            any_loop=all(traits.any_loop for traits in chain),
            gives_probabilities=all(traits.gives_probabilities for traits in chain),
            follows_evidence=all(traits.follows_evidence for traits in chain),
            by_rules=all(traits.by_rules for traits in chain),
            declines=None if None in declining else lambda: _all_of(declining),
            by_passages=all(traits.by_passages for traits in chain),
            cache_key=" | ".join(dict.fromkeys([part.traits.cache_key, *map(cache_key_of, others)])),
            capacity=(lambda request: min(most(request) for most in fits)) if fits else None,
        )

    def bound(self, evidence: Evidence) -> Self:
        """Return this wrapper around the parts for one tree."""
        bound = super().bound(evidence)
        bound._others = [parts_of(other, evidence) for other in self._fallbacks]
        return bound

    async def through(self, method: str, part: Any, request: Any) -> Any:
        patience = self._bad_answers - len(errors_of(request))
        chain = [part, *(getattr(suite, PART_OF[method]) for suite in self._others)]
        why = list[str]()
        for number, one in enumerate(chain):
            last = number == len(chain) - 1
            try:
                return _told(await getattr(one, method)(request), why)
            except BadModelAnswer as exc:
                if last or patience > 1:
                    raise
                failure: Exception = exc
            except (TransientError, UserError) as exc:
                if last:
                    raise
                failure = exc
            why.append(f"{type(one).__name__} gave up: {failure}")
            told = run_memory().setdefault("fallbacks told", set())
            _log.log(logging.INFO if why[-1] in told else logging.WARNING, "%s; the next is asked", why[-1])
            told.add(why[-1])
        raise AssertionError("a chain has at least one link")


def _told(said: Any, why: Sequence[str]) -> Any:
    """Return a decision with why another router made it, for the trace; what other parts say is left as it is."""
    if not why or not isinstance(said, RouteDecision):
        return said
    return replace(said, reason="; ".join(filter(None, [said.reason, *why])))


def _all_of(declining: Sequence[Callable[[], str] | None]) -> str:
    """Return why none of the parts is worth asking; '' when one is."""
    reasons = [each() if each is not None else "" for each in declining]
    return reasons[0] if all(reasons) else ""
