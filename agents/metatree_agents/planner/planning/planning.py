"""Planning: from goals and facts to intents, depth first, as a function over plain data.

    take a goal whose predecessors are planned ─ candidates ─┬─ eligible: the cheapest, then its sub-goals
          ▲                                                  ├─ only potential: defer it, and what follows it
          └──────────── undo, and the next candidate ◄───────┴─ neither: it fails

The network is changed in place, and a trail takes the changes back. A place whose open goals, order and facts were met
before is not entered again. A goal that comes up again below itself while no fact has changed is a loop.

Source: Nau et al. 2003 (SHOP2) for ordered decomposition with partial order; deferring goals until what they depend on
can be read live makes planning and acting take turns.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random
from typing import Any, Final, Literal

from metatree.errors import UserError
from metatree_agents.planner.domain.candidates import Candidate, Candidates, candidates
from metatree_agents.planner.domain.conditions import atom_text, is_variable, substitute
from metatree_agents.planner.domain.facts import Facts
from metatree_agents.planner.domain.model import RESULT, Goal, Library
from metatree_agents.planner.domain.network import Intent, Network, candidate_key, lineage
from metatree_agents.planner.planning._interference import Effects, Interference
from metatree_agents.planner.planning._open_goals import OpenGoals
from metatree_agents.planner.planning._trail import Trail

Order = Callable[[Goal, Sequence[Candidate]], Sequence[Candidate]]
"""Puts candidates of equal cost into an order."""

Expand = Callable[[Candidate, Facts], tuple[Sequence[Goal], Sequence[tuple[int, int]]]]
"""Returns the sub-goals of a rule and their order; reads, and changes nothing."""

_CLOCK_EVERY: Final = 64
_STEPS_EVERY: Final = 2_000


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
    last_id: int = 0,
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
        last_id: the highest id that a goal of the agent has had; new ones have higher ones.

    Example:
        >>> from metatree_agents.planner import Domain
        >>> from metatree_agents.planner.domain.network import Intent, TOP
        >>> from metatree_agents.planner.domain.facts import Facts
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
    return search.run(network, facts, last_id)


class _OutOfTime(Exception):
    """Planning has taken as long as it may, inside one condition."""


@dataclass(slots=True, eq=False)
class _Search:
    library: Library
    seed: int
    limits: PlanLimits
    least_cost: bool
    interleave: bool
    done: frozenset[Goal]
    order: Order | None
    expand: Expand | None
    clock: Callable[[], float]
    trail: Trail = field(default_factory=Trail)
    open_goals: OpenGoals = field(init=False)
    interference: Interference = field(init=False)
    considered: dict[int, list[Considered]] = field(default_factory=dict)
    failed: tuple[int, str] | None = None
    next_id: int = 0
    loops: dict[int, tuple[Goal, int]] = field(default_factory=dict)
    """Rule intent -> its goal, and what tells the facts that it was planned in."""
    now: dict[str, Any] = field(default_factory=dict)
    """`facts`, `cost`, and the `number` of the last intent."""
    visited: dict[Any, dict[Any, float] | None] = field(default_factory=dict)
    live: dict[str, bool] = field(default_factory=dict)
    deadline: float = float("inf")
    steps: int = 0

    def run(self, network: Network, facts: Facts, last_id: int = 0) -> Planned:
        self.deadline = self.clock() + self.limits.seconds
        self.next_id = max(last_id, *network) if network else last_id
        going_on = sorted(
            (one for one in network.values() if one.status in ("pending", "active") and one.kind == "task"),
            key=lambda one: one.number,
        )
        facts = facts.changed((), step=self._step)
        for one in going_on:
            facts = facts.changed(self._static(one.effects))
        number = max((one.number for one in network.values()), default=0)
        self.now = {"facts": facts, "cost": 0.0, "number": number}
        trail = self.trail
        self.open_goals = OpenGoals(network, trail)
        self.interference = Interference(self.library, self.open_goals, trail)
        self.open_goals.begin()
        stack = [(iter([None]), trail.mark())]
        best: dict[int, Intent] | None = None
        least, nodes, ended = float("inf"), 0, "failed"
        while stack:
            ways, mark = stack[-1]
            trail.undo(mark)
            try:
                if next(ways, _END) is _END:
                    stack.pop()
                    continue
            except _OutOfTime:
                ended = "limit"
                break
            nodes += 1
            if nodes > self.limits.nodes or (nodes % _CLOCK_EVERY == 0 and self.clock() > self.deadline):
                ended = "limit"
                break
            if self.now["cost"] >= least:
                continue
            if not self.open_goals.counts["open"]:
                best, least = dict(self.open_goals.network), self.now["cost"]
                if self.least_cost:
                    continue
                break
            # Before anything has failed no place can come up again.
            if (self.failed is not None or self.least_cost) and self._was_met():
                continue
            stack.append((self._following(), trail.mark()))
        by_goal = self.considered.values()
        if best is None:
            considered = [one for listed in by_goal for one in listed]
            return Planned(ended, dict(network), 0.0, nodes, self.failed, considered)  # type: ignore[arg-type]
        considered = [
            replace(one, verdict="chosen") if _was_chosen(best.get(one.intent), one) else one
            for listed in by_goal
            for one in listed
            if one.intent in best
        ]
        return Planned("planned", best, least, nodes, None, considered)

    def _step(self) -> None:
        """Look at the clock now and then while conditions are solved: one of them can take for ever."""
        self.steps += 1
        if self.steps % _STEPS_EVERY == 0 and self.clock() > self.deadline:
            raise _OutOfTime

    def _static(self, effects: Effects) -> Effects:
        """Return the effects that planning may project."""
        return tuple(one for one in effects if not self.library.is_dynamic(one[1]))

    # Choosing a goal ----------------------------------------------------------------------------------------------

    def _following(self) -> Iterator[None]:
        """Make one change after the other that leads on from here; each finds things as they were here."""
        for goal in self.open_goals.next():
            if self._is_done(goal):
                self._nothing(goal)
                yield
                return
            result = candidates(
                self.library,
                goal.goal,
                self.now["facts"],
                supported=partial(self.open_goals.supported, goal),
                excluded=goal.excluded,
            )
            self._note(goal, result)
            if not result.eligible:
                if result.potential:
                    self.open_goals.defer(goal)
                    yield
                    return
                why = "; ".join(f"{name}: {reason}" for name, reason in result.out)
                self.failed = (goal.id, f"no candidate for {atom_text(goal.goal)}: {why}")
            else:
                for candidate in self._ordered(goal, result.eligible):
                    if self._choose(goal, candidate):
                        yield
            if not self.interleave:
                return

    def _is_done(self, goal: Intent) -> bool:
        """Say whether a goal is complete already, or will be when its turn comes."""
        if goal.goal[0] in self.library.again or goal.parent is None:
            return False
        return goal.goal in self.done or self.open_goals.is_asked_before(goal)

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

    def _note(self, goal: Intent, result: Candidates) -> None:
        self.considered[goal.id] = [
            *(Considered(goal.goal, goal.id, c.key, "eligible", f"cost {c.cost:g}") for c in result.eligible),
            *(
                Considered(goal.goal, goal.id, c.key, "potential", "it depends on what is read live, later")
                for c in result.potential
            ),
            *(
                Considered(goal.goal, goal.id, name, "struck" if why.startswith("struck") else "out", why)
                for name, why in result.out
            ),
        ]

    # Choosing a candidate -----------------------------------------------------------------------------------------

    def _nothing(self, goal: Intent) -> None:
        self.open_goals.plan(replace(goal, status="pending", kind="nothing", number=self._number()))

    def _choose(self, goal: Intent, candidate: Candidate) -> bool:
        """Choose a candidate for a goal; False where that leads nowhere, and nothing is changed."""
        action, binding = candidate.action, candidate.binding
        if action.name not in self.live:
            self.live[action.name] = self.library.depends_on_dynamic(action.precondition)
        intent = replace(
            goal,
            status="pending",
            kind=action.kind,
            action=action.name,
            binding=tuple(binding.items()),
            precondition=substitute(action.precondition, binding),
            live=self.live[action.name],
            effects=tuple(
                (adds, relation, tuple(_value(term, binding) for term in terms))
                for adds, relation, terms in action.effects
            ),
            cost=candidate.cost,
            number=self.now["number"] + 1,
        )
        subgoals = self._subgoals(intent, candidate) if action.kind == "rule" else ()
        if subgoals is None:
            return False
        self._number()
        self.trail.put(self.now, "cost", self.now["cost"] + candidate.cost)
        if intent.effects:
            self.trail.put(self.now, "facts", self.now["facts"].changed(self._static(intent.effects)))
        self.interference.plan(intent, subgoals)
        return True

    def _number(self) -> int:
        self.trail.put(self.now, "number", self.now["number"] + 1)
        return int(self.now["number"])

    def _subgoals(self, intent: Intent, candidate: Candidate) -> Sequence[Intent] | None:
        """Return the goals of a rule; None where it is too deep, or comes to itself."""
        mark = (intent.goal, self.now["facts"].key())
        above = list(lineage(self.open_goals.network, intent))
        if len(above) > self.limits.depth:
            self.failed = (intent.id, f"{atom_text(intent.goal)} is over {self.limits.depth} rules deep")
            return None
        if any(self.loops.get(one.id) == mark for one in above[1:]):
            self.failed = (intent.id, f"{atom_text(intent.goal)} comes to itself and nothing has changed")
            return None
        goals, order = self._expanded(candidate, self.now["facts"])
        first = self.next_id + 1
        self.next_id += len(goals)
        after: dict[int, list[int]] = {}
        for before, behind in order:
            after.setdefault(behind, []).append(first + before)
        self.trail.put(self.loops, intent.id, mark)
        return [
            Intent(first + index, goal, intent.id, tuple(after.get(index, ())))
            for index, goal in enumerate(goals)
        ]

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

    # Places that were met before ----------------------------------------------------------------------------------

    def _was_met(self) -> bool:
        """Say whether a place like this one was met before, at no higher cost.

        What tells places from each other takes as long as there are goals, so it is gathered only from the second of
        those that the facts and the goals alone do not tell apart.
        """
        likely = (self.now["facts"].key(), self.open_goals.counts["rest"])
        if likely not in self.visited:
            self.visited[likely] = None
            return False
        met = self.visited[likely]
        if met is None:
            met = self.visited[likely] = {}
        mark = self._mark()
        if met.get(mark, float("inf")) <= self.now["cost"]:
            return True
        met[mark] = self.now["cost"]
        return False

    def _mark(self) -> Any:
        """Return what tells the rest of the work from here from that at other places."""
        open_goals, facts = self.open_goals, self.now["facts"].key()
        network = open_goals.network
        names: dict[int, int] = {}
        for key in sorted(open_goals.waiting, key=open_goals.waiting.__getitem__):
            for one in lineage(network, network[key]):
                if one.id in names:
                    break
                names[one.id] = len(names)
        rest = []
        for key in names:
            one = network[key]
            loop = self.loops.get(key)
            waits, earlier = self._goals_before(one, names)
            rest.append(
                (
                    one.parent if one.parent is None else names[one.parent],
                    (one.goal, one.status, one.excluded) if key in open_goals.waiting else None,
                    loop[0] if loop is not None and loop[1] == facts else None,
                    waits,
                    earlier,
                    all(other in open_goals.finished for other in one.after),
                )
            )
        return facts, tuple(rest)

    def _goals_before(self, goal: Intent, names: Mapping[int, int]) -> tuple[frozenset[int], frozenset[Goal]]:
        """Return what a goal waits for among those that have names, and the goals that need not be asked for again."""
        network = self.open_goals.network
        waits, earlier = set(), set()
        waiting, seen = list(goal.after), set(goal.after)
        while waiting:
            one = network[waiting.pop()]
            if one.goal[0] not in self.library.again:
                earlier.add(one.goal)
            if one.id in names:
                waits.add(names[one.id])
            else:
                more = [before for before in one.after if before not in seen]
                seen.update(more)
                waiting += more
        return frozenset(waits), frozenset(earlier)


_END: Final = object()


def _value(term: Any, binding: Mapping[str, Any]) -> Any:
    return binding.get(term, term) if is_variable(term) and term != RESULT else term


def _was_chosen(intent: Intent | None, one: Considered) -> bool:
    if intent is None or one.verdict != "eligible":
        return False
    return candidate_key(intent.action, dict(intent.binding)) == one.candidate
