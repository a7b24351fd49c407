"""Resolvers: which of the productions that may fire and have something to do comes next, or whether to stop.

A resolver that only computes has `choose`; one that asks somebody has `ask` as well, which the shell awaits as an
effect, so that its answer is in the journal and never paid for twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from types import MappingProxyType
from typing import Final, Protocol, runtime_checkable

from metatree.errors import BadModelAnswer, UserError
from metatree.node import Node
from metatree.protocols import Option, RouteRequest, SupportsRoute
from metatree.rules._working_memory import WorkingMemory


class _Stop:
    """What a resolver returns to end the run."""

    def __repr__(self) -> str:
        return "STOP"


STOP: Final = _Stop()


@dataclass(frozen=True, slots=True)
class CandidateProduction:
    """A production that may fire now and has tokens."""

    production: str
    target: int
    """The state of the schedule that it leads to."""
    to_add: int
    to_remove: int
    newest: int
    """The event that its newest token came with; higher is later."""
    salience: int = 0
    """As its text says."""


@dataclass(frozen=True, slots=True)
class ConflictSet:
    """What a resolver is asked."""

    state: int
    """Of the schedule."""
    accepting: bool
    """Whether the run may end here."""
    candidates: tuple[CandidateProduction, ...]
    """In the order of the schedule's arrows; never empty."""
    cycle: int
    rng: Random
    """Seeded by the run and the cycle, so that a run can be repeated."""
    memory: WorkingMemory
    """To look at, not to change."""

    def named(self, production: str) -> CandidateProduction | None:
        """Return the candidate of a production."""
        return next((c for c in self.candidates if c.production == production), None)


Chosen = str | _Stop


class Resolver(Protocol):
    """Picks one of the candidates."""

    def choose(self, conflict: ConflictSet) -> Chosen:
        """Return the name of a candidate's production, or STOP to end the run."""
        ...


@runtime_checkable
class AskingResolver(Protocol):
    """Asks somebody to pick one of the candidates."""

    async def ask(self, conflict: ConflictSet, errors: tuple[str, ...]) -> Chosen:
        """Do what `choose` does; `errors` says what was wrong with the earlier answers."""
        ...


class Trivial:
    """Takes one at random."""

    def choose(self, conflict: ConflictSet) -> Chosen:
        return conflict.rng.choice(conflict.candidates).production


class First:
    """Takes the first in the order of the schedule."""

    def choose(self, conflict: ConflictSet) -> Chosen:
        return conflict.candidates[0].production


class SelfTransition:
    """Stays in the state as long as possible, so that `x* y` takes every x before y; asks another one otherwise."""

    def __init__(self, otherwise: Resolver | None = None) -> None:
        self.otherwise = otherwise or Trivial()

    def choose(self, conflict: ConflictSet) -> Chosen:
        staying = tuple(c for c in conflict.candidates if c.target == conflict.state)
        if len(staying) == 1:
            return staying[0].production
        return self.otherwise.choose(_narrowed(conflict, staying or conflict.candidates))


class Priority:
    """Takes the production with the highest priority, and leaves ties to another resolver.

    Args:
        priorities: by the names of productions; those not named have the salience of their text, which is 0 if it says
            nothing.
    """

    def __init__(
        self, priorities: Mapping[str, float] = MappingProxyType({}), otherwise: Resolver | None = None
    ) -> None:
        self.priorities = dict(priorities)
        self.otherwise = otherwise or First()

    def choose(self, conflict: ConflictSet) -> Chosen:
        ranks = [self.priorities.get(c.production, c.salience) for c in conflict.candidates]
        best = max(ranks)
        best_ones = tuple(c for c, r in zip(conflict.candidates, ranks, strict=True) if r == best)
        if len(best_ones) == 1:
            return best_ones[0].production
        return self.otherwise.choose(_narrowed(conflict, best_ones))


class OverridingSelfTransition(Priority):
    """Takes the first of these productions that can fire; asks `SelfTransition` when none can."""

    def __init__(self, precedence: Sequence[str], otherwise: Resolver | None = None) -> None:
        self.precedence = tuple(precedence)
        super().__init__(_descending(self.precedence), otherwise or SelfTransition())


class Recency:
    """Takes the production whose newest token came last."""

    def choose(self, conflict: ConflictSet) -> Chosen:
        return max(conflict.candidates, key=lambda c: c.newest).production


class StopWhen:
    """Ends the run when a condition holds; asks another resolver otherwise.

    Example:
        >>> enough = StopWhen(lambda conflict: len(conflict.memory.query("(<q> answer <a>)")) >= 2, First())
    """

    def __init__(self, condition: Callable[[ConflictSet], bool], otherwise: Resolver | None = None) -> None:
        self.condition = condition
        self.otherwise = otherwise or SelfTransition()

    def choose(self, conflict: ConflictSet) -> Chosen:
        return STOP if self.condition(conflict) else self.otherwise.choose(conflict)


class AskRouter:
    """Asks a router, such as one that asks a model; a router that chooses nothing leaves it to another resolver.

    Args:
        goal: what the run is for: the router's question.
        descriptions: production -> what firing it does.
    """

    def __init__(
        self,
        router: SupportsRoute,
        goal: str,
        *,
        descriptions: Mapping[str, str] | None = None,
        otherwise: Resolver | None = None,
    ) -> None:
        self.router = router
        self.goal = goal
        self.descriptions = dict(descriptions or {})
        self.otherwise = otherwise or SelfTransition()

    def choose(self, conflict: ConflictSet) -> Chosen:
        return self.otherwise.choose(conflict)

    async def ask(self, conflict: ConflictSet, errors: tuple[str, ...]) -> Chosen:
        options = tuple(
            Option(
                c.production,
                c.production,
                self.descriptions.get(c.production, f"{c.to_add} to add, {c.to_remove} to remove"),
            )
            for c in conflict.candidates
        )
        node = Node(id="schedule", title=f"state {conflict.state}", description="productions that may fire")
        context = f"cycle {conflict.cycle}; " + (
            "the run may end here" if conflict.accepting else "not at an end"
        )
        decision = await self.router.route(RouteRequest((self.goal,), context, node, options, errors))
        if decision.choice is None:
            remaining = tuple(c for c in conflict.candidates if c.production not in decision.unviable)
            return self.otherwise.choose(_narrowed(conflict, remaining or conflict.candidates))
        if conflict.named(decision.choice) is None:
            raise BadModelAnswer(
                f"{decision.choice!r} was not offered: choose one of {[o.id for o in options]}"
            )
        return decision.choice


def resolver_named(name: str, arguments: Sequence[str] = ()) -> Resolver:
    """Return a resolver by the name that programs use.

    Args:
        name: `trivial`, `first`, `self-transition`, `overriding-self-transition` (arguments: names of productions),
            `priority` (arguments: names, the highest first; none for the saliences of the text), `recency`.
    """
    match name:
        case "trivial":
            return Trivial()
        case "first":
            return First()
        case "self-transition":
            return SelfTransition()
        case "overriding-self-transition":
            return OverridingSelfTransition(arguments)
        case "priority":
            return Priority(_descending(arguments))
        case "recency":
            return Recency()
    raise UserError(
        f"there is no resolver {name!r}: use trivial, first, self-transition, overriding-self-transition, priority or "
        "recency"
    )


def _descending(productions: Sequence[str]) -> dict[str, float]:
    """Return priorities for productions, the first of which is the highest."""
    return {name: float(rank) for rank, name in enumerate(reversed(productions), start=1)}


def _narrowed(conflict: ConflictSet, candidates: tuple[CandidateProduction, ...]) -> ConflictSet:
    return replace(conflict, candidates=candidates)
