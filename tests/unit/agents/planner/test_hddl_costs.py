"""Costs and `:metric`: what is read, what is refused, what a plan costs, and that cheaper ones are found."""

from __future__ import annotations

import heapq
import random

import pytest
from metatree_agents.planner.domain.syntax import PlannerSyntaxError
from metatree_agents.planner.hddl._language import Problem
from metatree_agents.planner.hddl.parse import parse_domain, parse_problem
from metatree_agents.planner.hddl.plan import plan_cost, plan_lines
from metatree_agents.planner.hddl.solve import solve
from metatree_agents.planner.hddl.verify import verify_plan

from metatree.errors import UserError

ROADS = """
(define (domain roads) (:types place) (:predicates (at ?p - place) (road ?a ?b - place))
  (:functions (total-cost) - number (length ?a ?b - place) - number)
  (:task go :parameters (?to - place))
  (:method there :parameters (?to - place) :task (go ?to) :precondition (at ?to) :subtasks ())
  (:method on :parameters (?to ?a ?b - place) :task (go ?to) :precondition (and (at ?a) (not (at ?to)) (road ?a ?b))
    :ordered-subtasks (and (drive ?a ?b) (go ?to)))
  (:action drive :parameters (?a ?b - place) :precondition (and (at ?a) (road ?a ?b))
    :effect (and (not (at ?a)) (at ?b) (increase (total-cost) (length ?a ?b)) (increase (total-cost) 1))))
"""


def roads(lengths: dict[tuple[str, str], float], names: str, metric: str) -> Problem:
    init = " ".join(f"(road {a} {b}) (= (length {a} {b}) {n})" for (a, b), n in lengths.items())
    return parse_problem(
        f"(define (problem p) (:domain roads) (:objects {' '.join(names)} - place) (:htn :subtasks (go {names[-1]}))"
        f" {metric} (:init (at {names[0]}) (= (total-cost) 0) {init}) (:goal (at {names[-1]})))",
        parse_domain(ROADS),
        "p.hddl",
    )


def cheapest(lengths: dict[tuple[str, str], float], start: str, end: str, extra: float) -> float | None:
    heap, done = [(0.0, start)], set[str]()
    while heap:
        cost, place = heapq.heappop(heap)
        if place == end:
            return cost
        if place not in done:
            done.add(place)
            for (a, b), length in lengths.items():
                if a == place:
                    heapq.heappush(heap, (cost + length + extra, b))
    return None


METRIC = "(:metric minimize (total-cost))"


def test_a_detour_that_costs_less_is_taken() -> None:
    lengths = {("a", "d"): 10.5, ("a", "b"): 2.0, ("b", "c"): 2.0, ("c", "d"): 2.0}
    problem = roads(lengths, "abcd", METRIC)
    plan = solve(problem, improve_for_s=5.0).plan
    assert plan is not None
    verify_plan(plan, problem)
    assert [step.arguments for step in plan.steps] == [("a", "b"), ("b", "c"), ("c", "d")]
    assert plan_cost(plan, problem) == 9.0
    assert "; cost 9" in list(plan_lines(plan, problem))
    without = roads(lengths, "abcd", "")
    shortest = solve(without, improve_for_s=5.0).plan
    assert shortest is not None
    assert (len(shortest), plan_cost(shortest, without)) == (1, 1.0)
    assert not any("cost" in line for line in plan_lines(shortest, without))


@pytest.mark.parametrize("seed", range(6))
def test_on_small_maps_the_cheapest_way_is_found(seed: int) -> None:
    rng = random.Random(seed)
    names = "abcde"
    pairs = [(a, b) for a in names for b in names if a != b]
    lengths = {pair: float(rng.randint(0, 9)) for pair in rng.sample(pairs, 11)}
    best = cheapest(lengths, "a", "e", 1.0)
    problem = roads(lengths, names, METRIC)
    solved = solve(problem, improve_for_s=5.0)
    if best is None:
        assert solved.plan is None
    else:
        assert solved.plan is not None
        assert plan_cost(solved.plan, problem) == best


def test_a_cost_without_a_value_is_an_error_that_names_it() -> None:
    text = f"""(define (problem p) (:domain roads) (:objects A B - place) (:htn :subtasks (go B)) {METRIC}
        (:init (at A) (road A B)) (:goal (at B)))"""
    problem = parse_problem(text, parse_domain(ROADS))
    with pytest.raises(UserError, match=r"`\(length A B\)` has no value in `:init`, and drive costs as much"):
        solve(problem, improve_for_s=0.1)


@pytest.mark.parametrize(
    ("effect", "metric", "place", "said"),
    [
        (
            "(increase (total-cost) 2)",
            "(:metric maximize (total-cost))",
            "p.hddl:1",
            "`maximize` is not supported",
        ),
        (
            "(increase (total-cost) 2)",
            "(:metric minimize (+ (total-cost) 1))",
            "p.hddl:1",
            r"`\+` is not supported",
        ),
        (
            "(increase (total-cost) 2)",
            "(:metric minimize total-time)",
            "p.hddl:1",
            "`total-time` is not supported",
        ),
        (
            "(increase (total-cost) 2)",
            "(:metric minimize (price))",
            "p.hddl:1",
            "no function is called `price`",
        ),
        (
            "(increase (total-cost) 2)",
            "(:metric minimize (fuel a))",
            "p.hddl:1",
            "with arguments is not supported",
        ),
        ("(increase (total-cost) 2)", "(:metric minimize)", "p.hddl:1", r"expected `\(:metric minimize"),
        ("(increase (total-cost) 2)", METRIC + METRIC, "p.hddl:1", "a second `:metric`"),
        ("(decrease (total-cost) 2)", METRIC, "d.hddl:3", "costs that `decrease` changes are not supported"),
        ("(assign (total-cost) 2)", METRIC, "d.hddl:3", "costs that `assign` changes are not supported"),
        ("(increase (total-cost) -2)", METRIC, "d.hddl:3", "costs that are computed are not supported"),
        (
            "(increase (total-cost) (* 2 (fuel a)))",
            METRIC,
            "d.hddl:3",
            "costs that are computed are not supported",
        ),
        ("(when (q) (increase (total-cost) 2))", METRIC, "d.hddl:3", "costs in `when` are not supported"),
        (
            "(forall (?x) (increase (total-cost) 2))",
            METRIC,
            "d.hddl:3",
            "costs in `forall` are not supported",
        ),
        (
            "(and (increase (total-cost) (fuel a)) (decrease (fuel a) 1))",
            METRIC,
            "d.hddl:3",
            "costs that `decrease` changes are not supported",
        ),
    ],
)
def test_what_no_metric_can_count_is_refused_with_its_place(
    effect: str, metric: str, place: str, said: str
) -> None:
    domain = (
        "(define (domain d) (:predicates (q)) (:constants a)\n (:functions (total-cost) (fuel ?x) - number)\n"
        f" (:action t :effect {effect}))"
    )
    init = "(:init (q) (= (total-cost) 0) (= (fuel a) 3))"
    problem = f"(define (problem p) (:htn :subtasks (t)) {metric} {init} (:goal ()))"
    with pytest.raises(PlannerSyntaxError, match=said) as caught:
        parse_problem(problem, parse_domain(domain, "d.hddl"), "p.hddl")
    assert str(caught.value).startswith(place)
    without = parse_problem(problem.replace(metric, ""), parse_domain(domain, "d.hddl"), "p.hddl")
    assert solve(without).ended == "solved", "without a metric costs make no difference"


@pytest.mark.parametrize(
    ("fact", "said"),
    [
        ("(= (total-cost) x)", "`x` is no number"),
        ("(= (total-cost) 1e999)", "is no number"),
        ("(= (length a) 1)", "function `length` takes 2 arguments, not 1"),
        ("(= (length a c) 1)", "no object is called `c`"),
        ("(= (width a b) 1)", "no function is called `width`"),
        ("(= (length a b) -1)", "is negative: costs are not"),
    ],
)
def test_values_of_functions_are_checked(fact: str, said: str) -> None:
    problem = f"""(define (problem p) (:objects a b - place) (:htn :subtasks (go b)) {METRIC}
        (:init (at a) {fact}) (:goal (at b)))"""
    with pytest.raises(PlannerSyntaxError, match=said):
        parse_problem(problem, parse_domain(ROADS))
