"""Planning: from goals and facts to intents, depth first, as a function over plain data.

    take a goal whose predecessors are planned ─ candidates ─┬─ eligible: the cheapest, then its sub-goals
          ▲                                                  ├─ only potential: defer it, and what follows it
          └──────────── undo, and the next candidate ◄───────┴─ neither: it fails

Each place of the search is a network of its own, so undoing is going back to an older place. A place whose open goals,
order and facts were met before is not entered twice. A goal that comes up again below itself while no fact has changed
is a loop.

Source: Nau et al. 2003 (SHOP2) for ordered decomposition with partial order; deferring goals until what they depend on
can be read live makes planning and acting take turns.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, Final, Literal

from metatree.errors import UserError
from metatree_agents.planner.candidates import Candidate, candidates
from metatree_agents.planner.conditions import is_variable, substituted, written_atom
from metatree_agents.planner.facts import Facts
from metatree_agents.planner.interference import Effects, ordered
from metatree_agents.planner.model import RESULT, Goal, Library
from metatree_agents.planner.network import (
    Intent,
    Network,
    candidate_key,
    lineage,
    planned,
    supported,
    supports,
)

Order = Callable[[Goal, Sequence[Candidate]], Sequence[Candidate]]
"""Puts candidates of equal cost into an order."""

Expand = Callable[[Candidate, Facts], tuple[Sequence[Goal], Sequence[tuple[int, int]]]]
"""Returns the sub-goals of a rule and their order; reads, and changes nothing."""

_CLOCK_EVERY: Final = 64


@dataclass(frozen=True, slots=True)
class PlanLimits:
    """How far planning goes."""

    depth: int = 200
    """Rules inside one another."""
    nodes: int = 100_000
    """Places that are looked at."""
    seconds: float = 30.0


@dataclass(frozen=True, slots=True)
class Considered:
    """What planning thought of one candidate, or of an action that gave none."""

    goal: Goal
    intent: int
    candidate: str
    verdict: Literal["chosen", "eligible", "potential", "struck", "out"]
    why: str = ""


@dataclass(slots=True)
class Planned:
    """What planning came to."""

    ended: Literal["planned", "failed", "limit"]
    network: dict[int, Intent]
    """With intents; on failure as it was."""
    cost: float = 0.0
    nodes: int = 0
    failed: tuple[int, str] | None = None
    """A goal that could not be planned and why, the last one that stopped the search."""
    considered: list[Considered] = field(default_factory=list)
    """For each goal of the result, or of the deepest try, what was thought of its candidates."""


def plan(
    library: Library,
    network: Network,
    facts: Facts,
    *,
    seed: int = 0,
    limits: PlanLimits | None = None,
    least_cost: bool = False,
    interleave: bool = True,
    done: frozenset[Goal] = frozenset(),
    order: Order | None = None,
    expand: Expand | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Planned:
    """Give intents to the open and deferred goals of a network.

    Args:
        library: the rules and tasks.
        network: all goals of an agent; those with an intent stay as they are.
        facts: what holds now; effects of intents that are pending or active are added here.
        seed: draws among candidates of equal cost; the same seed gives the same plan.
        limits: see `PlanLimits`.
        least_cost: find the plan of least total cost instead of the first one.
        interleave: try other orders of unordered goals, too, before a choice is undone.
        done: goals that are complete and do nothing when they are asked for again.
        order: puts candidates of equal cost into an order, instead of the draw.
        expand: gives the sub-goals of rules whose body is a function.

    Example:
        >>> from metatree_agents.planner import Domain
        >>> from metatree_agents.planner.network import Intent, TOP
        >>> from metatree_agents.planner.facts import Facts
        >>> home = Domain("home")
        >>> at = home.relation("at", 1)
        >>> _ = home.task("go(?to)", when="(at ?from)", effect="(and (not (at ?from)) (at ?to))")
        >>> library = home.library
        >>> made = plan(library, {TOP: Intent(TOP, ("go", "shop"))}, Facts(library, {"at": {("home",)}}))
        >>> made.ended, made.network[TOP].action, dict(made.network[TOP].binding)
        ('planned', 'go', {'?to': 'shop', '?from': 'home'})
    """
    search = _Search(
        library, seed, limits or PlanLimits(), least_cost, interleave, done, order, expand, clock
    )
    return search.run(network, facts)


@dataclass(frozen=True, slots=True)
class _Place:
    network: Mapping[int, Intent]
    agenda: tuple[int, ...]
    """Goals without an intent, the next first."""
    facts: Facts
    cost: float
    loops: Mapping[int, tuple[Any, ...]]
    """Rule intent -> its goal and the facts that it was planned in."""


class _Search:
    def __init__(
        self,
        library: Library,
        seed: int,
        limits: PlanLimits,
        least_cost: bool,
        interleave: bool,
        done: frozenset[Goal],
        order: Order | None,
        expand: Expand | None,
        clock: Callable[[], float],
    ) -> None:
        self.library = library
        self.seed = seed
        self.limits = limits
        self.least_cost = least_cost
        self.interleave = interleave
        self.done = done
        self.order = order
        self.expand = expand
        self.clock = clock
        self.considered: dict[int, list[Considered]] = {}
        self.failed: tuple[int, str] | None = None
        self.next_id = 0

    def run(self, network: Network, facts: Facts) -> Planned:
        deadline = self.clock() + self.limits.seconds
        self.next_id = max(network, default=0)
        going_on = sorted(
            (one for one in network.values() if one.status in ("pending", "active") and one.kind == "task"),
            key=lambda one: one.number,
        )
        for one in going_on:
            facts = facts.changed(self._static(one.effects))
        start = {
            key: replace(one, status="open") if one.status == "deferred" else one
            for key, one in network.items()
        }
        agenda = tuple(sorted(key for key, one in start.items() if one.status == "open"))
        stack = [iter([_Place(start, agenda, facts, 0.0, {})])]
        visited: dict[Any, float] = {}
        best: _Place | None = None
        nodes, ended = 0, "failed"
        while stack:
            place = next(stack[-1], None)
            if place is None:
                stack.pop()
                continue
            nodes += 1
            if nodes > self.limits.nodes or (nodes % _CLOCK_EVERY == 0 and self.clock() > deadline):
                ended = "limit"
                break
            if best is not None and place.cost >= best.cost:
                continue
            if all(place.network[key].status == "deferred" for key in place.agenda):
                best = place
                if self.least_cost:
                    continue
                break
            if self.failed is not None or self.least_cost:  # before, no place can come up again
                mark = self._mark(place)
                if mark in visited and visited[mark] <= place.cost:
                    continue
                visited[mark] = place.cost
            stack.append(self._following(place))
        thought = self.considered.values()
        if best is None:
            said = [one for listed in thought for one in listed]
            return Planned(ended, dict(network), 0.0, nodes, self.failed, said)  # type: ignore[arg-type]
        chosen = {one.id: one for one in best.network.values()}
        said = [
            replace(one, verdict="chosen") if _was_chosen(chosen.get(one.intent), one) else one
            for listed in thought
            for one in listed
            if one.intent in chosen
        ]
        return Planned("planned", dict(best.network), best.cost, nodes, None, said)

    def _static(self, effects: Effects) -> Effects:
        """Return the effects that planning may project."""
        return tuple(one for one in effects if not self.library.is_dynamic(one[1]))

    # Choosing a goal ----------------------------------------------------------------------------------------------

    def _available(self, place: _Place) -> Iterator[Intent]:
        """Yield open goals all of whose predecessors are planned, next first."""
        network = place.network
        for key in place.agenda:
            goal = network[key]
            if goal.status == "open" and all(
                self._settled(place, before) for before in supports(network, goal)
            ):
                yield goal

    def _settled(self, place: _Place, key: int) -> bool:
        """Say whether a goal and all below it are planned."""
        if not planned(place.network[key]):
            return False
        return not any(
            key in (above.id for above in lineage(place.network, place.network[waiting]))
            for waiting in place.agenda
        )

    def _following(self, place: _Place) -> Iterator[_Place]:
        place = self._deferred(place)
        if all(place.network[key].status == "deferred" for key in place.agenda):
            yield place
            return
        for goal in self._available(place):
            if self._is_done(place, goal):
                yield self._nothing(place, goal)
                return
            found = candidates(
                self.library,
                goal.goal,
                place.facts,
                supported=supported(place.network, goal),
                struck=goal.struck,
            )
            self._note(goal, found)
            if not found.eligible:
                if found.potential:
                    yield self._defer(place, goal)
                    return
                why = "; ".join(f"{name}: {reason}" for name, reason in found.out)
                self.failed = (goal.id, f"no candidate for {written_atom(goal.goal)}: {why}")
            else:
                for candidate in self._ordered(goal, found.eligible):
                    following = self._chosen(place, goal, candidate)
                    if following is not None:
                        yield following
            if not self.interleave:
                return

    def _deferred(self, place: _Place) -> _Place:
        """Defer the goals that follow a deferred one."""
        network = dict(place.network)
        waiting = {key for key in place.agenda if network[key].status == "deferred"}
        changed = False
        for key in place.agenda:
            goal = network[key]
            if goal.status != "open":
                continue
            before = supports(network, goal)
            if any(above.id in before for one in waiting for above in lineage(network, network[one])):
                network[key] = replace(goal, status="deferred")
                waiting.add(key)
                changed = True
        return replace(place, network=network) if changed else place

    def _defer(self, place: _Place, goal: Intent) -> _Place:
        return replace(place, network={**place.network, goal.id: replace(goal, status="deferred")})

    def _is_done(self, place: _Place, goal: Intent) -> bool:
        """Say whether a goal is complete already, or will be when its turn comes."""
        if goal.goal[0] in self.library.again or goal.parent is None:
            return False
        if goal.goal in self.done:
            return True
        return any(place.network[one].goal == goal.goal for one in supports(place.network, goal))

    def _ordered(self, goal: Intent, eligible: list[Candidate]) -> list[Candidate]:
        """Return candidates, the cheapest first, those of equal cost as they are drawn or as the router wants."""
        eligible = sorted(eligible, key=lambda one: one.key)
        Random(f"{self.seed}:{goal.id}:{goal.goal}").shuffle(eligible)
        eligible.sort(key=lambda one: one.cost)
        if self.order is None:
            return eligible
        ordered: list[Candidate] = []
        for cost in sorted({one.cost for one in eligible}):
            equal = [one for one in eligible if one.cost == cost]
            ordered += self.order(goal.goal, equal) if len(equal) > 1 else equal
        return ordered

    def _note(self, goal: Intent, found: Any) -> None:
        self.considered[goal.id] = [
            *(Considered(goal.goal, goal.id, c.key, "eligible", f"cost {c.cost:g}") for c in found.eligible),
            *(
                Considered(goal.goal, goal.id, c.key, "potential", "it depends on what is read live, later")
                for c in found.potential
            ),
            *(
                Considered(goal.goal, goal.id, name, "struck" if why.startswith("struck") else "out", why)
                for name, why in found.out
            ),
        ]

    # Choosing a candidate -----------------------------------------------------------------------------------------

    def _nothing(self, place: _Place, goal: Intent) -> _Place:
        intent = replace(goal, status="pending", kind="nothing", number=self._number(place))
        agenda = tuple(key for key in place.agenda if key != goal.id)
        return replace(place, network={**place.network, goal.id: intent}, agenda=agenda)

    def _chosen(self, place: _Place, goal: Intent, candidate: Candidate) -> _Place | None:
        action, binding = candidate.action, candidate.binding
        intent = replace(
            goal,
            status="pending",
            kind=action.kind,
            action=action.name,
            binding=tuple(binding.items()),
            precondition=substituted(action.precondition, binding),
            live=self.library.depends_on_dynamic(action.precondition),
            cost=candidate.cost,
            number=self._number(place),
        )
        if action.kind == "task":
            return self._with_task(place, intent, candidate)
        return self._with_rule(place, intent, candidate)

    def _number(self, place: _Place) -> int:
        return 1 + max((one.number for one in place.network.values()), default=0)

    def _with_task(self, place: _Place, intent: Intent, candidate: Candidate) -> _Place:
        effects = tuple(
            (adds, relation, tuple(_value(term, candidate.binding) for term in terms))
            for adds, relation, terms in candidate.action.effects
        )
        intent = replace(intent, effects=effects)
        intent = ordered(self.library, place.network, intent)
        agenda = tuple(key for key in place.agenda if key != intent.id)
        facts = place.facts.changed(self._static(effects))
        network = {**place.network, intent.id: intent}
        return _Place(network, agenda, facts, place.cost + candidate.cost, place.loops)

    def _with_rule(self, place: _Place, intent: Intent, candidate: Candidate) -> _Place | None:
        mark = (intent.goal, place.facts.key())
        above = list(lineage(place.network, intent))
        if len(above) > self.limits.depth:
            self.failed = (intent.id, f"{written_atom(intent.goal)} is over {self.limits.depth} rules deep")
            return None
        if any(place.loops.get(one.id) == mark for one in above[1:]):
            self.failed = (intent.id, f"{written_atom(intent.goal)} comes to itself and nothing has changed")
            return None
        goals, order = self._expanded(candidate, place.facts)
        first = self.next_id + 1
        self.next_id += len(goals)
        intent = ordered(self.library, place.network, intent)
        network = {**place.network, intent.id: intent}
        for index, goal in enumerate(goals):
            after = tuple(first + before for before, behind in order if behind == index)
            network[first + index] = Intent(first + index, goal, intent.id, after)
        made = tuple(range(first, first + len(goals)))
        agenda = (*made, *(key for key in place.agenda if key != intent.id))
        loops = {**place.loops, intent.id: mark}
        return _Place(network, agenda, place.facts, place.cost + candidate.cost, loops)

    def _expanded(
        self, candidate: Candidate, facts: Facts
    ) -> tuple[Sequence[Goal], Sequence[tuple[int, int]]]:
        action = candidate.action
        if action.does.get("function"):
            if self.expand is None:
                raise UserError(f"rule {action.name!r} is a function: plan with the domain that it is in")
            goals, order = self.expand(candidate, facts)
            return [tuple(goal) for goal in goals], order
        return [
            (goal[0], *(_value(term, candidate.binding) for term in goal[1:])) for goal in action.subgoals
        ], action.order

    # Places that were met before ---------------------------------------------------------------------------------

    def _mark(self, place: _Place) -> Any:
        """Return what tells the rest of the work from here from that at other places."""
        index = {key: number for number, key in enumerate(place.agenda)}
        facts = place.facts.key()
        rest = []
        for key in place.agenda:
            goal = place.network[key]
            before = supports(place.network, goal)
            waits = frozenset(
                number
                for other, number in index.items()
                if other != key and before & {one.id for one in lineage(place.network, place.network[other])}
            )
            above = frozenset(
                mark[0]
                for one in lineage(place.network, goal)
                if (mark := place.loops.get(one.id)) is not None and mark[1] == facts
            )
            earlier = frozenset(place.network[one].goal for one in before)
            open_before = any(place.network[one].status != "complete" for one in before)
            depth = sum(1 for _ in lineage(place.network, goal))
            rest.append((goal.goal, goal.status, goal.struck, waits, above, earlier, open_before, depth))
        return facts, tuple(rest)


def _value(term: Any, binding: Mapping[str, Any]) -> Any:
    return binding.get(term, term) if is_variable(term) and term != RESULT else term


def _was_chosen(intent: Intent | None, one: Considered) -> bool:
    if intent is None or one.verdict != "eligible":
        return False
    return candidate_key(intent.action, dict(intent.binding)) == one.candidate
