"""Find a plan for a problem: runs of the depth-first search, the first in the written order, the others at random."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Literal

from metatree_agents.planner.hddl.compiled import Compiled, compile_problem
from metatree_agents.planner.hddl.depth_first import search
from metatree_agents.planner.hddl.language import Problem
from metatree_agents.planner.hddl.order import loosened
from metatree_agents.planner.hddl.plan import HtnPlan
from metatree_agents.planner.hddl.progression import progress

FIRST_NODES = 20_000
"""Nodes of the first run; each fourth run may look at twice as many."""

SHORTER_NODES = 5_000
"""Nodes of a run that looks for a shorter plan; more when nothing is found."""

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


def solve(
    problem: Problem,
    *,
    seconds: float = 60.0,
    seed: int = 0,
    shorter_s: float = 0.0,
    clock: Callable[[], float] = time.monotonic,
) -> Solved:
    """Find a plan, or say that there is none, or that the time was over.

    Args:
        problem: as `read_problem` gives it.
        seconds: at most.
        seed: of the runs that draw at random; the same seed gives the same plan where the time does not end a run.
        shorter_s: how long to look for plans with fewer steps once there is one.

    Example:
        >>> from metatree_agents.planner.hddl.parse import parse_domain, parse_problem
        >>> domain = parse_domain('''(define (domain d) (:predicates (done)) (:task t :parameters ())
        ...     (:method m :parameters () :task (t) :subtasks (a)) (:action a :effect (done)))''')
        >>> problem = parse_problem("(define (problem p) (:htn :subtasks (t)) (:init) (:goal (done)))", domain)
        >>> [step.name for step in solve(problem).plan.steps]
        ['a']
    """
    began = clock()
    deadline = began + seconds
    compiled = compile_problem(problem)
    total = problem.totally_ordered()
    nodes, runs, budget = 0, 0, FIRST_NODES

    def done(plan: HtnPlan | None, ended: SolveEnd) -> Solved:
        if plan is not None and shorter_s > 0:
            plan = _shorter(compiled, plan, seed, clock() + shorter_s, clock)
        if plan is not None and not total:
            plan = loosened(plan, problem)
        return Solved(plan, ended, nodes, runs, clock() - began)

    while True:
        rng = None if runs == 0 else Random(f"{seed}:{runs}")
        found = search(compiled, nodes=budget, deadline=deadline, rng=rng, clock=clock)
        nodes, runs = nodes + found.nodes, runs + 1
        if found.plan is not None:
            return done(found.plan, "solved")
        if found.exhausted and total:
            return done(None, "none")
        if clock() >= deadline:
            return done(None, "limit")
        if found.tried_all or runs % 4 == 0:
            # What depth-first search leaves out: tasks that are done in between, and recursion that comes to itself.
            wider = progress(compiled, nodes=budget, deadline=deadline, clock=clock)
            nodes += wider.nodes
            if wider.plan is not None:
                return done(wider.plan, "solved")
            if wider.exhausted:
                return done(None, "none")
            budget *= 2


def _shorter(
    compiled: Compiled, plan: HtnPlan, seed: int, deadline: float, clock: Callable[[], float]
) -> HtnPlan:
    """Look for a plan with fewer steps until the time is over, by both searches in turns."""
    nodes, run = SHORTER_NODES, 0
    while clock() < deadline:
        run += 1
        rng = Random(f"{seed}:shorter:{run}") if run % 3 else None
        found = search(
            compiled, nodes=nodes, deadline=deadline, rng=rng, fewer_than=len(plan), clock=clock
        ).plan
        if found is None and run % 3 == 1:
            found = progress(compiled, nodes=nodes, deadline=deadline, clock=clock).plan
        if found is not None and len(found) < len(plan):
            plan = found
        elif run % 3 == 0:
            nodes *= 2
    return plan
