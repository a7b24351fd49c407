"""Find a plan: runs of the depth-first search, in the written order and at random, and of the best-first one.

Runs are short at first and may go twice as far in each round. The written order has its turn in each, so that no
problem is given up because it is a little larger than another one.

Source: Gomes, Selman, Kautz 1998 (restarts); Luby, Sinclair, Zuckerman 1993 (ever longer runs cost a constant factor).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Final, Literal

from metatree_agents.planner.hddl._compiled import Compiled
from metatree_agents.planner.hddl._depth_first import plan_of, search
from metatree_agents.planner.hddl._improve import cost_of, improve
from metatree_agents.planner.hddl._language import Problem
from metatree_agents.planner.hddl._order import relax_order
from metatree_agents.planner.hddl._progression import progress
from metatree_agents.planner.hddl._windows import Trail
from metatree_agents.planner.hddl.limits import LimitReached, Reason, SolverLimits
from metatree_agents.planner.hddl.plan import HtnPlan

FIRST_DEAD_ENDS: Final = 500
"""Dead ends of a run in the first round."""

WRITTEN: Final = 8
"""How many times as far as one at random a run in the written order goes."""

RUNS: Final = 8
"""Runs at random in a round."""

SolveEnd = Literal["solved", "none", "limit"]


@dataclass(frozen=True, slots=True)
class Solved:
    """What the search for a plan came to."""

    plan: HtnPlan | None
    ended: SolveEnd
    """`none`: there is no plan."""
    nodes: int
    runs: int
    seconds: float
    reached: Reason | None = None
    """The limit, where it ended at one."""
    found: tuple[tuple[float, float], ...] = ()
    """When plans were found, in seconds, and what each cost: less than the one before."""
    interrupted: bool = False
    """Whether the search for cheaper plans was interrupted."""


def solve(
    problem: Problem,
    limits: SolverLimits | None = None,
    *,
    seed: int = 0,
    improve_for_s: float = 0.0,
    found: Callable[[float, float], None] | None = None,
) -> Solved:
    """Find a plan, or say that there is none, or that a limit was reached.

    Args:
        problem: as `read_problem` gives it.
        limits: by default a minute and `MEMORY`.
        seed: of the runs that draw at random; the same seed gives the same plan where the time does not end a run.
        improve_for_s: how long to look for plans that cost less by the metric, or with fewer steps where there is none,
            once there is one; not beyond nine tenths of the limit. An interrupt ends it, with the best plan so far.
        found: is told of each plan when it was found, in seconds, and what it costs.

    Example:
        >>> from metatree_agents.planner.hddl.parse import parse_domain, parse_problem
        >>> domain = parse_domain('''(define (domain d) (:predicates (done)) (:task t :parameters ())
        ...     (:method m :parameters () :task (t) :subtasks (a)) (:action a :effect (done)))''')
        >>> problem = parse_problem("(define (problem p) (:htn :subtasks (t)) (:init) (:goal (done)))", domain)
        >>> [step.name for step in solve(problem).plan.steps]
        ['a']
    """
    return _Solve(problem, limits or SolverLimits(60.0), seed, found).run(improve_for_s)


@dataclass(slots=True)
class _Solve:
    problem: Problem
    limits: SolverLimits
    seed: int
    told: Callable[[float, float], None] | None
    nodes: int = 0
    runs: int = 0
    trail: Trail = field(default_factory=list)
    found: list[tuple[float, float]] = field(default_factory=list)
    interrupted: bool = False
    compiled: Compiled = field(init=False)

    def run(self, improve_for_s: float) -> Solved:
        limits = self.limits
        began = limits.clock()
        total = self.problem.totally_ordered()
        reached: Reason | None = None
        plan: HtnPlan | None = None
        ended: SolveEnd = "limit"
        try:
            self.compiled = Compiled(self.problem, limits)
            plan = self._first_plan(total)
            ended = "none" if plan is None else "solved"
        except LimitReached as exc:
            reached = exc.reason
        if plan is not None:
            self._note(began)
            if improve_for_s > 0:
                plan = self._improved(plan, began, improve_for_s, total)
            if not total:
                with suppress(LimitReached):  # it is a plan in its total order, too
                    plan = relax_order(plan, self.problem, limits)
        took = limits.clock() - began
        return Solved(plan, ended, self.nodes, self.runs, took, reached, tuple(self.found), self.interrupted)

    def _note(self, began: float) -> None:
        """Keep when the plan on the trail was found, and tell of it."""
        self.found.append((self.limits.clock() - began, cost_of(self.compiled, self.trail)))
        if self.told is not None:
            self.told(*self.found[-1])

    def _improved(self, plan: HtnPlan, began: float, seconds: float, total: bool) -> HtnPlan:
        """Return the cheapest plan that is found until the time is over; a tenth of the limit is left to check it."""
        limits, deadline = self.limits, self.limits.deadline
        latest = began + 0.9 * limits.seconds
        limits.deadline = min(limits.clock() + seconds, latest, deadline)
        best = self.trail
        try:
            for trail in improve(self.compiled, best, total=total, seed=self.seed):
                self.trail = trail
                self._note(began)
        except LimitReached:
            pass
        except KeyboardInterrupt:
            self.interrupted = True
        limits.deadline = deadline
        return plan if self.trail is best else plan_of(self.compiled, self.trail)

    def _first_plan(self, total: bool) -> HtnPlan | None:
        """Return a plan, None where there is none; raises LimitReached."""
        # In the written order: looking at each task once in a state, so but thoroughly, as often as one comes to it.
        dead_ends, written, wide, most = FIRST_DEAD_ENDS, [True] * 3, True, 1 << 62
        while True:
            for run in range(RUNS + len(written)):
                in_order = run < len(written)
                if in_order and not written[run]:
                    continue
                rng = Random(f"{self.seed}:{self.runs}") if not in_order else None
                self.runs += 1
                ends = dead_ends * (WRITTEN if in_order else 1)
                try:
                    once = run < 2 if in_order else run % 2 == 0
                    result = search(self.compiled, dead_ends=ends, rng=rng, once=once, thorough=run == 1)
                except LimitReached as exc:
                    self._freed(exc)
                    most = max(1, dead_ends // 2)
                    if in_order:
                        written[run] = False
                    continue
                self.nodes += result.nodes
                if result.plan is not None or (result.exhausted and total):
                    self.trail = result.trail
                    return result.plan
                if result.tried_all and in_order:
                    written[run] = False
            if wide:
                # What depth-first search leaves out: tasks that are done in between, recursion that comes to itself.
                try:
                    result = progress(self.compiled, nodes=dead_ends * RUNS)
                except LimitReached as exc:
                    self._freed(exc)
                    wide = False
                else:
                    self.nodes += result.nodes
                    if result.plan is not None or result.exhausted:
                        self.trail = result.trail
                        return result.plan
            dead_ends = min(2 * dead_ends, most)

    def _freed(self, exc: LimitReached) -> None:
        """Go on after a run that took too much memory, if that is free again."""
        exc.__traceback__ = None  # it holds all that the run knew
        if exc.reason == "time" or not self.limits.has_room():
            raise exc
