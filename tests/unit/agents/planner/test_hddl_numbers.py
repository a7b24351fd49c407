"""Numbers in conditions and effects: read, compared, changed, in the search and in the verifier."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise

import pytest
from metatree_agents.planner.hddl._language import Problem
from metatree_agents.planner.hddl.as_agent import as_agent
from metatree_agents.planner.hddl.parse import parse_domain, parse_problem
from metatree_agents.planner.hddl.plan import plan_lines
from metatree_agents.planner.hddl.solve import solve
from metatree_agents.planner.hddl.verify import InvalidPlan, verify

from metatree.errors import UserError

TANK = """
(define (domain tank) (:types truck place)
  (:predicates (at ?t - truck ?p - place) (pump ?p - place))
  (:functions (fuel ?t - truck) (tank ?t - truck) (far ?a ?b - place) - number)
  (:task go :parameters (?t - truck ?to - place))
  (:method there :parameters (?t - truck ?to - place) :task (go ?t ?to) :precondition (at ?t ?to) :subtasks ())
  (:method on :parameters (?t - truck ?to ?a ?b - place) :task (go ?t ?to)
    :precondition (and (at ?t ?a) (not (at ?t ?to)) (> (far ?a ?b) 0))
    :ordered-subtasks (and (drive ?t ?a ?b) (go ?t ?to)))
  (:method full :parameters (?t - truck ?to ?a - place) :task (go ?t ?to)
    :precondition (and (at ?t ?a) (not (at ?t ?to)) (pump ?a) (< (fuel ?t) (tank ?t)))
    :ordered-subtasks (and (fill ?t ?a) (go ?t ?to)))
  (:action drive :parameters (?t - truck ?a ?b - place)
    :precondition (and (at ?t ?a) (>= (fuel ?t) (* 2 (far ?a ?b))))
    :effect (and (not (at ?t ?a)) (at ?t ?b) (decrease (fuel ?t) (* 2 (far ?a ?b)))))
  (:action fill :parameters (?t - truck ?a - place) :precondition (and (at ?t ?a) (pump ?a))
    :effect (assign (fuel ?t) (tank ?t))))
"""


def tank(facts: str, goal: str = "(at red c)") -> Problem:
    return parse_problem(
        f"""(define (problem p) (:objects red - truck a b c - place) (:htn :subtasks (go red c))
        (:init (at red a) (= (tank red) 6) {facts}) (:goal {goal}))""",
        parse_domain(TANK),
    )


ROADS = "(pump b) (= (far a b) 1) (= (far b c) 2.5)"


def names_of(problem: Problem) -> list[str] | None:
    plan = solve(problem, improve_for_s=1.0).plan
    if plan is None:
        return None
    verify("\n".join(plan_lines(plan, problem)), problem)
    return [step.name for step in plan.steps]


def test_a_truck_fills_its_tank_where_it_would_not_come_through() -> None:
    assert names_of(tank(f"{ROADS} (= (fuel red) 7)")) == ["drive", "drive"]
    assert names_of(tank(f"{ROADS} (= (fuel red) 6.9)")) == ["drive", "fill", "drive"]
    assert names_of(tank(f"{ROADS} (= (fuel red) 1)")) is None
    assert names_of(tank(ROADS)) is None, "without a value no comparison holds"
    assert names_of(tank(f"{ROADS} (= (fuel red) 4)", "(and (at red c) (= (fuel red) 1))")) == [
        "drive",
        "fill",
        "drive",
    ]
    assert names_of(tank(f"{ROADS} (= (fuel red) 4)", "(> (fuel red) 1)")) is None


def test_the_verifier_counts_for_itself() -> None:
    problem = tank(f"{ROADS} (= (fuel red) 4)")
    plan = solve(problem).plan
    assert plan is not None
    text = "\n".join(plan_lines(plan, problem))
    assert "1 fill red b" in text
    for facts, said in [
        (f"{ROADS} (= (fuel red) 1)", "step 0: the precondition of drive does not hold"),
        (f"{ROADS} (= (fuel red) 6) (= (far b c) 4)", "step 2: the precondition of drive does not hold"),
        (f"{ROADS} (= (fuel red) 8)", "task 4: 'full' does not decompose go"),
    ]:
        with pytest.raises(InvalidPlan, match=said):
            verify(text, tank(facts))


def test_unordered_tasks_that_change_one_number_keep_the_order_that_its_readers_need() -> None:
    domain = parse_domain("""(define (domain d) (:functions (n) (m)) (:predicates (q))
        (:action first :precondition (= (n) 0) :effect (increase (n) 1))
        (:action second :precondition (= (n) 1) :effect (q))
        (:action apart :effect (assign (m) 1)))""")
    problem = parse_problem(
        "(define (problem p) (:htn :subtasks (and (second) (apart) (first))) (:init (= (n) 0)) (:goal ()))",
        domain,
    )
    plan = solve(problem).plan
    assert plan is not None
    assert plan.order is not None
    named = {step.id: step.name for step in plan.steps}
    assert {(named[a], named[b]) for a, b in plan.order} == {("first", "second")}


def test_numbers_are_exact() -> None:
    domain = parse_domain("""(define (domain d) (:functions (n)) (:task t)
        (:method more :parameters () :task (t) :precondition (< (n) 1) :ordered-subtasks (and (tenth) (t)))
        (:method done :parameters () :task (t) :precondition (= (n) 1) :subtasks ())
        (:action tenth :effect (increase (n) 0.1)))""")
    problem = parse_problem(
        "(define (problem p) (:htn :subtasks (t)) (:init (= (n) 0)) (:goal (= (n) 1)))", domain
    )
    assert names_of(problem) == ["tenth"] * 10


OPERATORS: dict[str, Callable[[Fraction, Fraction], Fraction]] = {
    "increase": lambda a, b: a + b,
    "decrease": lambda a, b: a - b,
    "scale-up": lambda a, b: a * b,
    "scale-down": lambda a, b: a / b,
    "assign": lambda a, b: b,
}
Change = tuple[str, str, str | int]


@pytest.mark.parametrize("seed", range(12))
def test_a_number_is_reached_in_as_few_steps_as_breadth_first_search_needs(seed: int) -> None:
    rng = random.Random(seed)
    amounts: list[str | int] = ["x", "y", 1, 2, 3]
    changes = [(rng.choice(list(OPERATORS)), rng.choice("xy"), rng.choice(amounts)) for _ in range(4)]

    def after(state: dict[str, Fraction], change: Change) -> dict[str, Fraction] | None:
        how, name, by = change
        amount = state[by] if isinstance(by, str) else Fraction(by)
        if how == "scale-down" and not amount:
            return None
        return {**state, name: OPERATORS[how](state[name], amount)}

    def reached(least: int) -> dict[tuple[Fraction, Fraction], int]:
        found = {(Fraction(1), Fraction(2)): 0}
        layer = list(found)
        for depth in range(1, least + 1):
            following = []
            for x, y in layer:
                for change in changes:
                    new = after({"x": x, "y": y}, change)
                    if new is not None and (key := (new["x"], new["y"])) not in found:
                        found[key] = depth
                        following.append(key)
            layer = following
        return found

    known = reached(4)
    wanted, depth = rng.choice([one for one in known.items() if one[1] >= max(known.values()) - 1])
    actions = " ".join(
        f"(:action a{n} :effect ({how} ({name}) {f'({by})' if isinstance(by, str) else by}))"
        for n, (how, name, by) in enumerate(changes)
    )
    methods = " ".join(
        f"(:method m{n}{k} :parameters () :task (t{n}) :ordered-subtasks (and (a{k}) (t{n + 1})))"
        for n in range(4)
        for k in range(4)
    )
    stops = " ".join(
        f"(:task t{n}) (:method s{n} :parameters () :task (t{n}) :subtasks ())" for n in range(5)
    )
    domain = parse_domain(f"(define (domain d) (:functions (x) (y)) {stops} {methods} {actions})")
    goal = " ".join(
        f"(= ({name}) (/ {value.numerator} {value.denominator}))"
        for name, value in zip("xy", wanted, strict=True)
    )
    problem = parse_problem(
        f"(define (problem p) (:htn :subtasks (t0)) (:init (= (x) 1) (= (y) 2)) (:goal (and {goal})))", domain
    )
    names = names_of(problem)
    assert names is not None
    assert len(names) == depth
    state: dict[str, Fraction] = {"x": Fraction(1), "y": Fraction(2)}
    for name in names:
        new = after(state, changes[int(name[1:])])
        assert new is not None
        state = new
    assert (state["x"], state["y"]) == wanted


def test_a_number_that_grows_without_end_has_no_value_in_the_end() -> None:
    domain = parse_domain("""(define (domain d) (:functions (n)) (:task t)
        (:method more :parameters () :task (t) :precondition (> (n) 1) :ordered-subtasks (and (square) (t)))
        (:method done :parameters () :task (t) :precondition (not (> (n) 1)) :subtasks ())
        (:action square :effect (scale-up (n) (n))))""")
    problem = parse_problem("(define (problem p) (:htn :subtasks (t)) (:init (= (n) 10)) (:goal ()))", domain)
    assert names_of(problem) == ["square"] * 9


def test_a_plan_that_numbers_decide_is_not_simulated() -> None:
    problem = tank(f"{ROADS} (= (fuel red) 7)")
    plan = solve(problem).plan
    assert plan is not None
    with pytest.raises(UserError, match="--run does not simulate numbers"):
        as_agent(plan, problem)


def test_a_function_that_only_a_metric_counts_does_not_tell_states_apart() -> None:
    problem = tank(f"{ROADS} (= (fuel red) 7)")
    assert problem.functions_read() == {"fuel", "far", "tank"}
    assert [a <= b for a, b in pairwise(sorted(problem.functions_read()))] == [True, True]
    costly = parse_domain(
        "(define (domain d) (:functions (total-cost) (n)) (:action a :effect (and (increase (n) 2)"
        " (increase (total-cost) (n)))))"
    )
    other = parse_problem("(define (problem p) (:htn :subtasks (a)) (:goal ()))", costly)
    assert other.functions_read() == set()
