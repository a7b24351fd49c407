"""What remaining tasks can still bring about: dead ends are seen where they begin, and no plan is lost by that."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import pairwise

import pytest
from metatree_agents.planner.hddl._compiled import Compiled
from metatree_agents.planner.hddl._depth_first import search
from metatree_agents.planner.hddl.parse import parse_domain, parse_problem
from metatree_agents.planner.hddl.solve import solve
from metatree_agents.planner.hddl.verify import verify_plan


def test_what_no_later_task_brings_about_is_missed_at_once() -> None:
    domain = parse_domain("""(define (domain switches) (:predicates (on ?x) (near ?x)) (:task set :parameters (?x))
        (:method leave :parameters (?x) :task (set ?x) :subtasks ())
        (:method turn :parameters (?x) :task (set ?x) :ordered-subtasks (and (come ?x) (flip ?x)))
        (:action come :parameters (?x) :effect (near ?x))
        (:action flip :parameters (?x) :precondition (near ?x) :effect (on ?x)))""")
    names = [f"s{n}" for n in range(60)]
    tasks, goal = (" ".join(f"({what} {name})" for name in names) for what in ("set", "on"))
    problem = parse_problem(
        f"(define (problem p) (:objects {' '.join(names)}) (:htn :ordered-subtasks (and {tasks}))"
        f" (:goal (and {goal})))",
        domain,
    )
    result = search(Compiled(problem), dead_ends=100)
    assert result.plan is not None, "two to the sixty ways are looked at else"
    assert len(result.plan) == 120


BLOCKS = """
(define (domain blocks)
  (:predicates (on ?x ?y) (table ?x) (clear ?x) (free) (held ?x))
  (:task put :parameters (?x ?y)) (:task down :parameters (?x)) (:task bare :parameters (?x))
  (:method done :parameters (?x ?y) :task (put ?x ?y) :precondition (on ?x ?y) :subtasks ())
  (:method work :parameters (?x ?y) :task (put ?x ?y) :precondition (free)
    :ordered-subtasks (and (bare ?x) (bare ?y) (down ?y) (bare ?x) (down ?x) (lift ?x) (stack ?x ?y)))
  (:method there :parameters (?x) :task (down ?x) :precondition (clear ?x) :subtasks ())
  (:method away :parameters (?x ?y) :task (down ?x) :precondition (and (clear ?x) (on ?x ?y))
    :ordered-subtasks (and (unstack ?x ?y) (lay ?x)))
  (:method is :parameters (?x) :task (bare ?x) :precondition (clear ?x) :subtasks ())
  (:method make :parameters (?x ?y) :task (bare ?x) :precondition (on ?y ?x)
    :ordered-subtasks (and (bare ?y) (unstack ?y ?x) (lay ?y)))
  (:action lift :parameters (?x) :precondition (and (clear ?x) (table ?x) (free))
    :effect (and (not (table ?x)) (not (clear ?x)) (not (free)) (held ?x)))
  (:action lay :parameters (?x) :precondition (held ?x)
    :effect (and (not (held ?x)) (clear ?x) (free) (table ?x)))
  (:action stack :parameters (?x ?y) :precondition (and (held ?x) (clear ?y))
    :effect (and (not (held ?x)) (not (clear ?y)) (clear ?x) (free) (on ?x ?y)))
  (:action unstack :parameters (?x ?y) :precondition (and (on ?x ?y) (clear ?x) (free))
    :effect (and (held ?x) (clear ?y) (not (clear ?x)) (not (free)) (not (on ?x ?y)))))
"""


@pytest.mark.parametrize("count", [40, 120])
def test_towers_of_blocks_are_built_again(count: int) -> None:
    rng = random.Random(count)
    names = [f"b{n}" for n in range(count)]

    def towers() -> list[list[str]]:
        left = rng.sample(names, count)
        made = []
        while left:
            size = rng.randint(1, 9)
            made.append(left[:size])
            del left[:size]
        return made

    init = ["(free)"]
    for tower in towers():
        init += [f"(table {tower[0]})", f"(clear {tower[-1]})"]
        init += [f"(on {b} {a})" for a, b in pairwise(tower)]
    goal = [(b, a) for tower in towers() for a, b in pairwise(tower)]
    tasks = " ".join(f"(put {b} {a})" for b, a in goal)
    wanted = " ".join(f"(on {b} {a})" for b, a in goal)
    problem = parse_problem(
        f"""(define (problem p) (:objects {" ".join(names)}) (:htn :ordered-subtasks (and {tasks}))
        (:init {" ".join(init)}) (:goal (and {wanted})))""",
        parse_domain(BLOCKS),
    )
    solved = solve(problem)
    assert solved.plan is not None
    assert solved.runs <= 3
    verify_plan(solved.plan, problem)


@pytest.mark.parametrize("seed", range(60))
def test_no_plan_is_lost(seed: int) -> None:
    rng = random.Random(seed)
    facts = "pqrs"
    actions = {
        f"a{n}": (
            rng.sample(facts, rng.randint(0, 1)),
            set(rng.sample(facts, 1)),
            set(rng.sample(facts, rng.randint(0, 2))),
        )
        for n in range(4)
    }
    networks = {
        f"t{n}": [
            [rng.choice([*actions, *(f"t{m}" for m in range(n))]) for _ in range(rng.randint(0, 2))]
            for _ in "xy"
        ]
        for n in range(4)
    }
    roots = [rng.choice([*networks]) for _ in range(4)]
    goal = {fact: rng.random() < 0.6 for fact in rng.sample(facts, 3)}

    def ends(state: frozenset[str], tasks: tuple[str, ...]) -> Iterator[frozenset[str]]:
        if not tasks:
            yield state
        elif tasks[0] in actions:
            needs, adds, deletes = actions[tasks[0]]
            if state.issuperset(needs):
                yield from ends((state - deletes) | adds, tasks[1:])
        else:
            for subtasks in networks[tasks[0]]:
                yield from ends(state, (*subtasks, *tasks[1:]))

    solvable = any(
        all((fact in end) is holds for fact, holds in goal.items())
        for end in ends(frozenset("p"), tuple(roots))
    )

    def every(words: set[str] | list[str], form: str) -> str:
        return " ".join(form.format(word) for word in sorted(words))

    body = " ".join(
        f"(:action {name} :precondition (and {every(needs, '({})')})"
        f" :effect (and {every(adds, '({})')} {every(deletes - adds, '(not ({}))')}))"
        for name, (needs, adds, deletes) in actions.items()
    )
    for name, ways in networks.items():
        body += f" (:task {name})"
        for n, subtasks in enumerate(ways):
            listed = " ".join(f"({one})" for one in subtasks)
            body += f" (:method {name}m{n} :parameters () :task ({name}) :ordered-subtasks (and {listed}))"
    domain = parse_domain(f"(define (domain d) (:predicates (p) (q) (r) (s)) {body})")
    wanted = " ".join(f"({fact})" if holds else f"(not ({fact}))" for fact, holds in goal.items())
    listed = " ".join(f"({one})" for one in roots)
    problem = parse_problem(
        f"(define (problem p) (:htn :ordered-subtasks (and {listed})) (:init (p)) (:goal (and {wanted})))",
        domain,
    )
    assert search(Compiled(problem), dead_ends=100_000).exhausted is not solvable
    assert search(Compiled(problem), dead_ends=100_000, thorough=True).exhausted is not solvable
    solved = solve(problem)
    assert solved.ended == ("solved" if solvable else "none")
    if solved.plan is not None:
        verify_plan(solved.plan, problem)


def test_a_way_that_cannot_bring_about_what_is_needed_is_not_gone() -> None:
    """A plan that has to hold one observed step: the other goals, and calls of others, are not looked into."""
    ways = " ".join(
        f"(:method m{n} :parameters (?a ?b ?c ?d - place) :task (top) :subtasks (and (go ?a) (go ?b) (go ?c) (go ?d)"
        f" (call {who})))"
        for n, who in enumerate(["fire", "water", "chief", "power"])
    )
    domain = parse_domain(f"""(define (domain calls) (:types place person) (:constants fire water chief power - person)
        (:predicates (heard)) (:task top) (:task call :parameters (?x - person)) {ways}
        (:method plain :parameters (?x - person) :task (call ?x) :subtasks (say ?x))
        (:method observed :parameters (?x - person) :task (call ?x) :precondition (= ?x chief) :subtasks (hear))
        (:action go :parameters (?x - place)) (:action say :parameters (?x - person))
        (:action hear :effect (heard)))""")
    places = " ".join(f"p{n}" for n in range(20))
    problem = parse_problem(
        f"(define (problem p) (:objects {places} - place) (:htn :subtasks (top)) (:goal (heard)))", domain
    )
    result = search(Compiled(problem), dead_ends=20)
    assert result.plan is not None, "some 160,000 ways of each other goal are looked at else"
    verify_plan(result.plan, problem)


@pytest.mark.parametrize("seed", range(60))
def test_no_plan_is_lost_where_methods_are_for_one_object(seed: int) -> None:
    rng = random.Random(seed)
    objects = "ab"

    def term() -> str:
        return str(rng.choice(["?x", "?x", *objects]))

    actions = {f"a{n}": (rng.random() < 0.7, rng.choice("pq"), term()) for n in range(4)}
    tasks: dict[str, list[tuple[str, list[tuple[str, str]]]]] = {}
    for n in range(4):
        below = [*actions, *tasks]
        tasks[f"t{n}"] = [
            (rng.choice(["", *objects]), [(rng.choice(below), term()) for _ in range(rng.randint(0, 2))])
            for _ in range(2)
        ]
    roots = tuple((rng.choice([*tasks]), rng.choice(objects)) for _ in range(3))
    goal = {(fact, one): rng.random() < 0.6 for fact in "pq" for one in objects if rng.random() < 0.7}

    def ends(
        state: frozenset[tuple[str, str]], left: tuple[tuple[str, str], ...]
    ) -> Iterator[frozenset[tuple[str, str]]]:
        if not left:
            yield state
            return
        (name, value), rest = left[0], left[1:]
        if name in actions:
            adds, fact, place = actions[name]
            change = {(fact, value if place == "?x" else place)}
            yield from ends(state | change if adds else state - change, rest)
            return
        for only, subtasks in tasks[name]:
            if only in ("", value):
                below = tuple((one, value if place == "?x" else place) for one, place in subtasks)
                yield from ends(state, (*below, *rest))

    solvable = any(
        all((fact in end) is holds for fact, holds in goal.items()) for end in ends(frozenset(), roots)
    )
    body = ""
    for name, (adds, fact, place) in actions.items():
        effect = f"({fact} {place})" if adds else f"(not ({fact} {place}))"
        body += f" (:action {name} :parameters (?x) :effect {effect})"
    for name, ways in tasks.items():
        body += f" (:task {name} :parameters (?x))"
        for n, (only, subtasks) in enumerate(ways):
            when = f":precondition (= ?x {only})" if only else ""
            listed = " ".join(f"({one} {place})" for one, place in subtasks)
            body += f" (:method {name}m{n} :parameters (?x) :task ({name} ?x) {when} :ordered-subtasks (and {listed}))"
    domain = parse_domain(f"(define (domain d) (:constants a b) (:predicates (p ?x) (q ?x)) {body})")
    wanted = " ".join(
        f"({fact} {one})" if holds else f"(not ({fact} {one}))" for (fact, one), holds in goal.items()
    )
    listed = " ".join(f"({name} {value})" for name, value in roots)
    problem = parse_problem(
        f"(define (problem p) (:htn :ordered-subtasks (and {listed})) (:init) (:goal (and {wanted})))", domain
    )
    assert search(Compiled(problem), dead_ends=100_000).exhausted is not solvable
    solved = solve(problem)
    assert solved.ended == ("solved" if solvable else "none")
    if solved.plan is not None:
        verify_plan(solved.plan, problem)
