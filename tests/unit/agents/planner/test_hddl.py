"""HDDL: what is read, what is refused and where, and plans that an independent check accepts."""

from __future__ import annotations

import pytest
from metatree_agents.planner.domain.syntax import PlannerSyntaxError
from metatree_agents.planner.hddl._compiled import Compiled
from metatree_agents.planner.hddl._depth_first import search
from metatree_agents.planner.hddl._language import Problem
from metatree_agents.planner.hddl._progression import progress
from metatree_agents.planner.hddl._pullup import PullUp
from metatree_agents.planner.hddl.limits import SolverLimits
from metatree_agents.planner.hddl.parse import parse_domain, parse_problem
from metatree_agents.planner.hddl.plan import HtnPlan, plan_lines
from metatree_agents.planner.hddl.solve import Solved, solve
from metatree_agents.planner.hddl.verify import InvalidPlan, verify, verify_plan

from tests.unit.agents.planner.hddl_texts import DELIVERY, TWO_PARCELS, tiny


def _problem(domain: str, problem: str) -> Problem:
    return parse_problem(problem, parse_domain(domain, "domain.hddl"), "problem.hddl")


def _solved(domain: str, problem: str, *, seed: int = 0, seconds: float = 20.0) -> tuple[Solved, Problem]:
    read = _problem(domain, problem)
    result = solve(read, SolverLimits(seconds), seed=seed)
    if result.plan is not None:
        verify_plan(result.plan, read)
    return result, read


def _names(plan: HtnPlan | None) -> list[str]:
    assert plan is not None
    return [step.name for step in plan.steps]


def test_delivery_is_solved_and_written_with_the_names_of_the_files() -> None:
    result, problem = _solved(DELIVERY, TWO_PARCELS)
    assert result.ended == "solved"
    assert result.plan is not None
    text = list(plan_lines(result.plan, problem))
    assert "drive red Depot Park" in " ".join(text)
    assert text[-1] == "<=="
    assert any(line.startswith("root ") for line in text)
    verify("\n".join(text), problem)


def test_a_changed_plan_is_refused() -> None:
    result, problem = _solved(DELIVERY, TWO_PARCELS)
    assert result.plan is not None
    text = "\n".join(plan_lines(result.plan, problem))
    lines = text.splitlines()
    first = lines.index("==>") + 1
    for wrong in (
        text.replace("drive red Depot Park", "drive red Depot Harbour", 1),
        text.replace("by-truck", "there", 1),
        text.replace("root ", "root 0 ", 1),
        "\n".join([*lines[:first], *lines[first + 1 :]]),
        "\n".join([*lines[:first], lines[first + 1], lines[first], *lines[first + 2 :]]),
        text.replace("==>", "", 1),
    ):
        with pytest.raises(InvalidPlan):
            verify(wrong, problem)


def test_unordered_deliveries_that_do_not_meet_may_overlap() -> None:
    result, _ = _solved(
        DELIVERY,
        TWO_PARCELS.replace("red - truck", "red blue - truck")
        .replace("(at red Depot)", "(at red Depot) (at blue Harbour)")
        .replace("(deliver a Harbour)", "(deliver a Park)")
        .replace("(at a Harbour)", "(at a Park)"),
    )
    plan = result.plan
    assert plan is not None
    assert plan.order is not None
    of_b = {step.id for step in plan.steps if "b" in step.arguments}
    trucks = {argument for step in plan.steps for argument in step.arguments if argument in ("red", "blue")}
    if trucks == {"red", "blue"}:
        assert not [pair for pair in plan.order if (pair[0] in of_b) != (pair[1] in of_b)]


@pytest.mark.parametrize(
    ("body", "options", "steps"),
    [
        pytest.param("(:action t :parameters ())", {}, ["t"], id="only an action"),
        pytest.param("(:task t :parameters ()) (:method m :task (t))", {}, [], id="an empty method"),
        pytest.param(
            "(:task t) (:method m :parameters (?x) :task (t) :subtasks (do ?x)) (:action do :parameters (?x)"
            " :precondition (forall (?y) (imply (p ?y) (= ?x ?y))))",
            {"init": "(p b)"},
            ["do"],
            id="forall, imply and equality",
        ),
        pytest.param(
            "(:task t) (:method m :parameters (?x) :task (t) :subtasks (do ?x)) (:action do :parameters (?x)"
            " :precondition (exists (?y) (and (p ?y) (not (= ?x ?y))))"
            " :effect (forall (?z) (when (p ?z) (not (p ?z)))))",
            {"init": "(p b)", "goal": "(not (p b))"},
            ["do"],
            id="exists, and effects with forall and when",
        ),
        pytest.param(
            "(:task t) (:method m :task (t) :tasks (and (x (one)) (y (two))) :ordering (and (< y x)))"
            " (:action one :precondition (q)) (:action two :effect (q))",
            {},
            ["two", "one"],
            id="tasks with an ordering against their order",
        ),
        pytest.param(
            "(:task t) (:method m :parameters (?x) :task (t) :ordered-tasks (and (use ?x)) :constraints (not (= ?x a)))"
            " (:action use :parameters (?x) :precondition (p ?x))",
            {"init": "(p a) (p b)"},
            ["use"],
            id="constraints",
        ),
        pytest.param(
            "(:task t) (:method m :task (t) :ordered-subtasks (and (t) (give))) (:method stop :task (t))"
            " (:action give :effect (q))",
            {"goal": "(q)"},
            ["give"],
            id="a task that comes to itself, needed",
        ),
        pytest.param(
            "(:task t) (:task u) (:method m :task (t) :ordered-subtasks (and (make) (use)))"
            " (:method n :task (u) :ordered-subtasks (and (want) (close)))"
            " (:action make :effect (p a)) (:action use :precondition (q))"
            " (:action want :precondition (p a) :effect (q)) (:action close :effect (not (q)))",
            {"network": "(and (t) (u))"},
            ["make", "want", "use", "close"],
            id="tasks that have to be done in between each other",
        ),
    ],
)
def test_language(body: str, options: dict[str, str], steps: list[str]) -> None:
    result, _ = _solved(*tiny(body, **options))
    assert _names(result.plan) == steps


@pytest.mark.parametrize(
    ("body", "options"),
    [
        ("(:action t :precondition (q))", {}),
        ("(:action t)", {"goal": "(q)"}),
        (
            "(:task t) (:method m :parameters (?x) :task (t) :subtasks (do ?x))"
            " (:action do :parameters (?x) :precondition (p ?x))",
            {},
        ),
        (
            "(:task t) (:task u) (:method m :task (t)) (:method n :task (u) :precondition (q))",
            {"network": "(and (t) (u))"},
        ),
        ("(:task t)", {}),
    ],
)
def test_no_plan(body: str, options: dict[str, str]) -> None:
    result, _ = _solved(*tiny(body, **options))
    assert (result.plan, result.ended) == (None, "none")


def test_the_limit_is_distinguished_from_no_plan() -> None:
    grows = "(:task t) (:method m :task (t) :ordered-subtasks (and (t) (noop))) (:action noop :effect (p a))"
    result, _ = _solved(*tiny(grows, goal="(q)"), seconds=0.2)
    assert result.ended in ("none", "limit")
    waits = grows + " (:method stop :task (t))"
    assert _solved(*tiny(waits, goal="(q)"), seconds=0.2)[0].ended == "limit"


def test_the_same_seed_gives_the_same_plan() -> None:
    one, _ = _solved(DELIVERY, TWO_PARCELS, seed=3)
    other, _ = _solved(DELIVERY, TWO_PARCELS, seed=3)
    assert one.plan == other.plan


def test_a_shorter_plan_is_looked_for_on_demand() -> None:
    body = (
        "(:task t) (:method long :task (t) :ordered-subtasks (and (a) (b)))"
        " (:method short :task (t) :ordered-subtasks (and (idle) (b)))"
        " (:action a :effect (p a)) (:action b :precondition (q)) (:action idle)"
        " (:method longer :task (t) :ordered-subtasks (and (a) (a) (b)))"
        " (:method one :parameters (?x) :task (t) :precondition (p ?x) :ordered-subtasks (and (a) (a) (a)))"
        " (:method two :task (t) :precondition (q) :ordered-subtasks (and (b)))"
    )
    domain, problem = tiny(body, init="(q) (p b)")
    read = _problem(domain, problem)
    first, shortest = solve(read), solve(read, improve_for_s=0.05)
    assert first.plan is not None
    assert shortest.plan is not None
    verify_plan(shortest.plan, read)
    assert len(shortest.plan) == 1 <= len(first.plan)


def test_progression_alone_solves_and_is_complete() -> None:
    problem = _problem(DELIVERY, TWO_PARCELS)
    result = progress(Compiled(problem), nodes=100_000)
    assert result.plan is not None
    verify_plan(result.plan, problem)


DOUBLED = """
(define (domain D) (:types box - object box crate - box)
  (:predicates (open ?b - box))
  (:action Lift :parameters (?b - crate) :precondition (open ?b)))
"""


def test_what_other_readers_give_up_on_is_read() -> None:
    """Types declared twice, objects declared twice, names used for a type and an object, unknown domain names."""
    problem = _problem(
        DOUBLED,
        "(define (problem P) (:domain other) (:objects box C - box C - crate) (:init (open C))"
        " (:htn :subtasks (Lift C)))",
    )
    assert problem.objects == {"box": ("box",), "c": ("box", "crate")}
    result = solve(problem)
    assert result.plan is not None
    assert "0 Lift C" in list(plan_lines(result.plan, problem))


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("", "1:1", "empty"),
        ("(define (domain d)", "1:1", "never closed"),
        ("(define (domain d)))", "1:20", "closes nothing"),
        ("(define (problem p))", "1:9", "other file"),
        ("(define (domain d)\n  (:types a - ))", "2:13", "type has to follow"),
        ("(define (domain d)\n (:predicates (p ?x - nix)))", "2:23", "no type is called `nix`"),
        ("(define (domain d)\n (:colour red))", "2:3", "`:colour` is no section"),
        ("(define (domain d)\n (:action a :effect (p)))", "2:22", "no predicate is called `p`"),
        (
            "(define (domain d) (:predicates (p ?x))\n (:action a :precondition (p)))",
            "2:28",
            "takes 1 arguments, not 0",
        ),
        ("(define (domain d)\n (:action a :effects ()))", "2:13", "`:effects` is no part of a action"),
        ("(define (domain d)\n (:task t :parameters (x)))", "2:24", "no variable"),
        (
            "(define (domain d)\n (:task t)\n (:method m :task (t) :subtasks (u)))",
            "3:34",
            "no task or action is called `u`",
        ),
        (
            "(define (domain d)\n (:task t)\n (:method m :task (t) :subtasks (and (a (t)) (b (t)))"
            " :ordering (and (< a b) (< b a))))",
            "3:65",
            "circle",
        ),
        (
            "(define (domain d)\n (:task t)\n (:method m :task (t) :subtasks (and (a (t))) :ordering (< a c)))",
            "3:62",
            "no subtask is called `c`",
        ),
        ("(define (domain d)\n (:method m :parameters ()))", "2:11", "names no `:task`"),
        ("(define (domain d)\n (:task not))", "2:9", "something else"),
        ("(define (domain d)\n (:predicates (p) (p ?x)))", "2:20", "second predicate"),
        ("(define (domain d)\n (:task t) (:task t))", "2:19", "second task"),
        ("(define (domain d)\n (:task t) (:action t))", "2:21", "as a task and as an action"),
        ("(define (domain d)\n (:task t :parameters (?x ?x)))", "2:27", "second variable"),
        ("(define (domain d)\n (:requirements :magic))", "2:17", "no requirement"),
        (
            "(define (domain d)\n (:action a :duration (= ?duration 2)))",
            "2:13",
            "durations are not supported",
        ),
        (
            "(define (domain d)\n (:action a :effect (increase (fuel) 2)))",
            "2:32",
            "no function is called `fuel`",
        ),
        (
            "(define (domain d) (:functions (fuel) - number)\n (:action a :precondition (>= (fuel) 2 3)))",
            "2:27",
            "`>=` takes 2 arguments, not 3",
        ),
        (
            "(define (domain d) (:functions (fuel) - number)\n (:action a :precondition (= (fuel) (fule))))",
            "2:38",
            "no function is called `fule`",
        ),
        (
            "(define (domain d) (:functions (fuel) - number)\n (:action a :precondition (< 1 (/ (fuel) 2 3))))",
            "2:32",
            "`/` takes two numbers, not 3",
        ),
        (
            "(define (domain d) (:functions (fuel ?t) - number)\n (:action a :effect (assign (fuel) 2)))",
            "2:30",
            "function `fuel` takes 1 arguments, not 0",
        ),
        (
            "(define (domain d)\n (:action a :precondition (at start (p))))",
            "2:28",
            "`at start`: durations are not supported",
        ),
        (
            "(define (domain d)\n (:action a :effect (at end (p))))",
            "2:22",
            "`at end`: durations are not supported",
        ),
        ("(define (domain d) (:predicates (p))\n (:action a :effect (or (p))))", "2:22", "`or` is no effect"),
        ("(define (domain d) (:predicates (p))\n (:action a :effect (not (not (p)))))", "2:27", "one fact"),
        (
            "(define (domain d) (:predicates (p))\n (:action a :precondition (when (p) (p))))",
            "2:",
            "for effects|word|variable",
        ),
        (
            "(define (domain d) (:predicates (p ?x))\n (:action a :effect (p ?y)))",
            "2:24",
            "no variable is called `\\?y`",
        ),
        (
            "(define (domain d) (:predicates (p ?x))\n (:action a :precondition (exists (?y) (p ?z))))",
            "2:43",
            "no variable is called `\\?z`",
        ),
        ("(define (domain d)\n (:derived (p) (q)))", "2:3", "derived predicates are not supported"),
        (
            "(define (domain d) (:predicates (p))\n (:action a :precondition "
            + "(not " * 3000
            + "(p)"
            + ")" * 3002,
            "2:",
            "inside 60 other",
        ),
        ("(define (domain d)\n (:durative-action m))", "2:3", "durative actions are not supported"),
        ("; a comment alone", "1:1", r"the text is empty: expected `\(define \(domain NAME\) …\)`"),
        ("(domain d)", "1:1", r"expected `\(define \(domain NAME\) …\)`"),
        ("(define (domain d)) (define (domain e))", "1:21", "nothing may follow the domain"),
        ("(define)", "1:1", r"expected `\(domain NAME\)`"),
        ("(define (problem p))", "1:9", r"expected `\(domain NAME\)`: is this the other file\?"),
    ],
)
def test_errors_say_where_and_what(text: str, place: str, said: str) -> None:
    with pytest.raises(PlannerSyntaxError, match=said) as caught:
        parse_domain(text, "d.hddl")
    assert str(caught.value).startswith(f"d.hddl:{place.removesuffix(':')}:")


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("(define (problem p) (:htn :subtasks (go)))", "1:38", "no task or action"),
        ("(define (problem p) (:init (road depot nowhere)))", "1:40", "no object is called `nowhere`"),
        ("(define (problem p) (:objects x - ship))", "1:35", "no type is called `ship`"),
        ("(define (problem p) (:htn :subtasks (go ?t depot)))", "1:41", "no variable is called `\\?t`"),
        ("(define (problem p) (:goal))", "1:21", "expected one goal"),
        ("(define (problem p) (:objects a))", "1:1", "no `:htn`"),
        ("(define (problem p) (:htn) (:htn))", "1:29", "second `:htn`"),
        ("(define (problem p) (:htn) (:init (not (at a b))))", "1:36", "`not` is no fact"),
        ("(define (problem p) (:htn) (:goal (at red Depot)))", "1:39", "no object is called `red`"),
        ("(define (problem p) (:objects ?x - place))", "1:31", "is a variable"),
    ],
)
def test_errors_of_problems(text: str, place: str, said: str) -> None:
    with pytest.raises(PlannerSyntaxError, match=said) as caught:
        parse_problem(text.replace("(go)", "(walk)"), parse_domain(DELIVERY), "p.hddl")
    assert str(caught.value).startswith(f"p.hddl:{place}:")


def test_a_name_that_a_domain_assumes_is_missed_where_no_problem_declares_it() -> None:
    domain, problem = tiny("(:action t :precondition (p c))")
    with pytest.raises(PlannerSyntaxError, match=r"d.hddl:2:29: no constant is called `c`"):
        parse_problem(problem, parse_domain(domain, "d.hddl"), "p.hddl")


def test_costs_may_be_without_a_metric() -> None:
    domain, problem = tiny("(:functions (total-cost) - number) (:action t :effect (increase (total-cost) 2))")
    with_costs = problem.replace("(:init", "(:metric minimize (total-cost)) (:init (= (total-cost) 0)")
    assert _names(solve(_problem(domain, with_costs)).plan) == ["t"]


def test_more_parameters_than_python_nests_loops() -> None:
    names = " ".join(f"?v{n}" for n in range(40))
    body = (
        f"(:task t) (:method m :parameters ({names}) :task (t) :precondition (and (q) (p ?v39)"
        f" (forall ({names.replace('v', 'w')}) (q))) :subtasks (do)) (:action do :effect (forall ({names}) (q)))"
    )
    domain, problem = tiny(body, init="(q) (p a)")
    read = _problem(domain, problem.replace("a b)", "a)"))
    result = solve(read)
    assert _names(result.plan) == ["do"]
    assert result.plan is not None
    verify_plan(result.plan, read)


PULLED = (
    "(:task t) (:task get) (:method m :parameters (?x) :task (t) :ordered-subtasks (and (get) (use ?x) (close)))"
    " (:method g :task (get) :ordered-subtasks (and (make)))"
    " (:action make :effect (q)) (:action use :parameters (?x) :precondition (and (q) (p ?x)))"
    " (:action close :precondition (q))"
)


def test_preconditions_are_pulled_up_unless_an_earlier_subtask_brings_them_about() -> None:
    problem = _problem(*tiny(PULLED, init="(p b)"))
    (method,) = [one for one in problem.domain.methods if one.name == "m"]
    assert PullUp(problem).method_needs(method) == frozenset({(True, "p", ("?x",))})
    result = search(Compiled(problem), dead_ends=0)
    assert result.plan is not None, "?x = a is never looked at"
    assert [step.arguments for step in result.plan.steps] == [(), ("b",), ()]


def test_a_task_for_a_thing_of_another_type_is_not_done() -> None:
    declared = "(:task deliver :parameters (?x - parcel ?to - place))"
    assert declared in DELIVERY
    domain = DELIVERY.replace(declared, "(:task deliver :parameters (?x ?to - parcel))")
    result, read = _solved(domain, TWO_PARCELS)
    assert result.ended == "none"
    assert progress(Compiled(read), nodes=1_000).exhausted


def test_effects_on_things_of_another_type_bring_nothing_about() -> None:
    problem = _problem(DELIVERY, TWO_PARCELS)
    (method,) = [one for one in problem.domain.methods if one.name == "by-truck"]
    moved_by_others = (True, "at", ("?x", "?from"))  # `go` moves trucks, not parcels
    assert PullUp(problem).method_needs(method) == frozenset({moved_by_others, (False, "full", ("?t",))})
