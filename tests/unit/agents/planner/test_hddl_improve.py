"""Cheaper plans: valid, the cheapest where a problem is small, and not lost by an interrupt."""

from __future__ import annotations

import random
from collections import deque

import pytest
from metatree_agents.planner.hddl._compiled import Compiled
from metatree_agents.planner.hddl._depth_first import search
from metatree_agents.planner.hddl._improve import cost_of, improve
from metatree_agents.planner.hddl._language import Problem
from metatree_agents.planner.hddl._progression import progress
from metatree_agents.planner.hddl._windows import Pieces, Windows, whole
from metatree_agents.planner.hddl.limits import LimitReached, SolverLimits
from metatree_agents.planner.hddl.parse import parse_domain, parse_problem
from metatree_agents.planner.hddl.plan import plan_cost
from metatree_agents.planner.hddl.solve import solve
from metatree_agents.planner.hddl.verify import verify_plan

from benchmarks.planning import transport
from tests.unit.agents.planner.hddl_texts import DELIVERY, TWO_PARCELS


class Steps(SolverLimits):
    """SolverLimits that end after a number of steps, on any machine the same."""

    def __init__(self, left: int) -> None:
        super().__init__()
        self.left = left

    def step(self, weight: int = 1) -> None:
        self.left -= weight
        if self.left < 0:
            raise LimitReached("time")


WALK = """
(define (domain walk) (:predicates (at ?x) (next ?x ?y) (seen ?x)) (:task go :parameters (?to))
  (:method there :parameters (?to) :task (go ?to) :precondition (at ?to) :subtasks ())
  (:method on :parameters (?to ?a ?b) :task (go ?to) :precondition (and (at ?a) (next ?a ?b) (not (seen ?b)))
    :ordered-subtasks (and (step ?a ?b) (go ?to)))
  (:action step :parameters (?a ?b) :precondition (and (at ?a) (next ?a ?b))
    :effect (and (not (at ?a)) (at ?b) (seen ?a))))
"""


def walk(width: int, ways: list[tuple[str, str]]) -> Problem:
    cells = [f"c{x}-{y}" for x in range(width) for y in range(width)]
    links = [
        (f"c{x}-{y}", f"c{x + i}-{y + j}")
        for x in range(width)
        for y in range(width)
        for i, j in ((0, 1), (1, 0), (0, -1), (-1, 0))
        if 0 <= x + i < width and 0 <= y + j < width
    ]
    facts = " ".join(f"(next {a} {b})" for a, b in links)
    return parse_problem(
        f"(define (problem p) (:objects {' '.join(cells)}) (:htn :ordered-subtasks (and"
        f" {' '.join(f'(go {b})' for _, b in ways)})) (:init (at {ways[0][0]}) {facts}) (:goal ()))",
        parse_domain(WALK),
    )


def test_a_walk_through_a_grid_becomes_a_shortest_one() -> None:
    problem = walk(12, [("c0-0", "c11-11")])
    first = solve(problem, Steps(150_000))
    assert first.plan is not None
    assert len(first.plan) > 22, "the first plan leaves nothing to be found"
    best = solve(problem, Steps(150_000), improve_for_s=100.0)
    assert best.plan is not None
    verify_plan(best.plan, problem)
    assert len(best.plan) == 22
    costs = [cost for _, cost in best.found]
    assert costs == sorted(set(costs), reverse=True)
    assert (costs[0], costs[-1]) == (len(first.plan), 22)


@pytest.mark.parametrize("ordered", [True, False])
def test_deliveries_take_fewer_steps(ordered: bool) -> None:
    problem = parse_problem(transport.problem(90, ordered=ordered), parse_domain(transport.DOMAIN))
    first, best = solve(problem), solve(problem, Steps(300_000), improve_for_s=100.0)
    assert first.plan is not None
    assert best.plan is not None
    verify_plan(best.plan, problem)
    assert len(best.plan) < 0.95 * len(first.plan)


def least(
    actions: dict[str, tuple[set[str], set[str], set[str]]],
    ways: dict[str, list[list[str]]],
    roots: list[str],
    goal: set[str],
    start: set[str],
) -> int | None:
    """Return the fewest steps of a plan, by breadth-first search over states and what is left to do."""
    queue = deque([(0, frozenset(start), tuple(roots))])
    seen = set()
    while queue:
        steps, state, tasks = queue.popleft()
        if (state, tasks) in seen:
            continue
        seen.add((state, tasks))
        if not tasks:
            if goal <= state:
                return steps
        elif tasks[0] in actions:
            needs, adds, deletes = actions[tasks[0]]
            if needs <= state:
                queue.append((steps + 1, (state - deletes) | adds, tasks[1:]))
        else:
            queue.extendleft((steps, state, (*way, *tasks[1:])) for way in ways[tasks[0]])
    return None


@pytest.mark.parametrize("seed", range(40))
def test_what_is_found_in_the_end_is_the_cheapest(seed: int) -> None:
    rng = random.Random(seed)
    facts = "pqrs"
    actions = {
        f"a{n}": (
            set(rng.sample(facts, rng.randint(0, 1))),
            set(rng.sample(facts, 1)),
            set(rng.sample(facts, 1)),
        )
        for n in range(4)
    }
    names = [f"t{n}" for n in range(4)]
    ways = {
        name: [[rng.choice([*actions, *names[:n]]) for _ in range(rng.randint(1, 3))] for _ in range(3)]
        for n, name in enumerate(names)
    }
    roots, goal = [rng.choice(names[1:]) for _ in range(3)], set(rng.sample(facts, 2))
    wanted = least(actions, ways, roots, goal, {"p"})
    body = " ".join(
        f"(:action {name} :precondition (and {' '.join(f'({one})' for one in sorted(needs))})"
        f" :effect (and {' '.join(f'({one})' for one in sorted(adds))}"
        f" {' '.join(f'(not ({one}))' for one in sorted(deletes - adds))}))"
        for name, (needs, adds, deletes) in actions.items()
    )
    for name, listed in ways.items():
        body += f" (:task {name})"
        for n, way in enumerate(listed):
            subtasks = " ".join(f"({one})" for one in way)
            body += f" (:method {name}m{n} :parameters () :task ({name}) :ordered-subtasks (and {subtasks}))"
    problem = parse_problem(
        f"(define (problem p) (:htn :ordered-subtasks (and {' '.join(f'({one})' for one in roots)})) (:init (p))"
        f" (:goal (and {' '.join(f'({one})' for one in sorted(goal))})))",
        parse_domain(f"(define (domain d) (:predicates (p) (q) (r) (s)) {body})"),
    )
    solved = solve(problem, improve_for_s=20.0)
    assert (solved.plan is None) is (wanted is None)
    if solved.plan is not None:
        verify_plan(solved.plan, problem)
        assert len(solved.plan) == wanted


@pytest.mark.parametrize("seed", range(10))
def test_each_plan_on_the_way_is_valid(seed: int) -> None:
    problem = parse_problem(
        transport.problem(64, ordered=seed % 2 == 0, seed=seed), parse_domain(transport.DOMAIN)
    )
    compiled = Compiled(problem, Steps(80_000))
    trail = search(compiled, dead_ends=10_000, once=True).trail
    costs = [cost_of(compiled, trail)]
    try:
        for made in improve(compiled, trail, total=seed % 2 == 0, seed=seed):
            costs.append(cost_of(compiled, made))
            assert whole(made)
            pieces = Pieces(Windows(compiled, 0, None, False, 0, None, False), made)
            pieces.go(0)
            assert pieces._follows(1), "each precondition holds where it stands, and the goal at the end"
    except LimitReached:
        pass
    assert costs == sorted(set(costs), reverse=True)
    assert len(costs) > 1


def test_an_interrupt_keeps_the_best_plan() -> None:
    problem = walk(9, [("c0-0", "c8-8")])

    def found(seconds: float, cost: float) -> None:
        costs.append(cost)
        if len(costs) == 2:
            raise KeyboardInterrupt

    costs: list[float] = []
    solved = solve(problem, Steps(10_000_000), improve_for_s=1000.0, found=found)
    assert solved.interrupted
    assert solved.plan is not None
    verify_plan(solved.plan, problem)
    assert plan_cost(solved.plan, problem) == costs[1] < costs[0]


def test_a_plan_whose_tasks_are_done_in_between_each_other_is_not_cut() -> None:
    problem = parse_problem(TWO_PARCELS, parse_domain(DELIVERY))
    plain = search(Compiled(problem), dead_ends=10_000).trail
    assert whole(plain)
    between = parse_problem(
        "(define (problem p) (:htn :subtasks (and (t) (u))) (:init) (:goal ()))",
        parse_domain(
            "(define (domain d) (:predicates (p) (q)) (:task t) (:task u)"
            " (:method m :parameters () :task (t) :ordered-subtasks (and (a) (b)))"
            " (:method n :parameters () :task (u) :ordered-subtasks (and (c)))"
            " (:action a :effect (p)) (:action b :precondition (q)) (:action c :precondition (p) :effect (q)))"
        ),
    )
    trail = progress(Compiled(between), nodes=10_000).trail
    assert not whole(trail)
    solved = solve(between, Steps(100_000), improve_for_s=1.0)
    assert solved.plan is not None
    assert [step.name for step in solved.plan.steps] == ["a", "c", "b"]
