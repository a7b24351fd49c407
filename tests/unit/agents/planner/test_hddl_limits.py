"""How far planning for HDDL goes: problems that are larger, time and memory that are over, and what checking costs."""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable
from itertools import count, product
from resource import RUSAGE_SELF, getrusage

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from metatree_agents.planner.domain.conditions import Condition, flat, free_variables
from metatree_agents.planner.domain.model import linear
from metatree_agents.planner.hddl._compiled import Compiled
from metatree_agents.planner.hddl._depth_first import search
from metatree_agents.planner.hddl._language import OBJECT, Problem, Variable, closure, is_total
from metatree_agents.planner.hddl._progression import progress
from metatree_agents.planner.hddl.limits import LimitReached, SolverLimits
from metatree_agents.planner.hddl.parse import parse_domain, parse_problem
from metatree_agents.planner.hddl.solve import solve
from metatree_agents.planner.hddl.verify import InvalidPlan, _Verifier, verify_plan

from benchmarks.planning import transport
from metatree._util.process import resident_bytes
from tests.profiles import examples
from tests.unit.agents.planner.hddl_texts import tiny


class Counted(SolverLimits):
    """SolverLimits that count steps, and end after a million."""

    def __init__(self) -> None:
        super().__init__()
        self.steps = 0

    def step(self, weight: int = 1) -> None:
        self.steps += weight
        if self.steps > 1_000_000:
            raise LimitReached("time")


def _read(domain: str, problem: str) -> Problem:
    return parse_problem(problem, parse_domain(domain))


def _transport(packages: int, *, ordered: bool = True) -> Problem:
    return _read(transport.DOMAIN, transport.problem(packages, ordered=ordered))


@pytest.mark.parametrize("ordered", [True, False])
def test_more_packages_take_more_steps_and_no_second_run(ordered: bool) -> None:
    """As many dead ends as a run has at first are fewer than those of a large problem in all."""
    for packages in (60, 240, 300):
        result = solve(_transport(packages, ordered=ordered), Counted())
        assert (result.ended, result.runs) == ("solved", 1), packages
        assert result.nodes < 2 * packages**2, packages


def test_dead_ends_are_counted_anew_when_it_comes_nearer_to_the_end() -> None:
    assert search(Compiled(_transport(120)), dead_ends=400, once=True).plan is not None


def test_an_order_that_is_written_backwards_is_closed_in_one_go() -> None:
    size = 300
    order = frozenset((n + 1, n) for n in range(size - 1))
    assert linear(size, order) == list(range(size - 1, -1, -1))
    assert is_total(size, order)
    assert not is_total(3, frozenset({(0, 1), (0, 2)}))
    assert [bits.bit_count() for bits in closure(size, order)] == list(range(size - 1, -1, -1))
    assert linear(2, frozenset({(0, 1), (1, 0)})) == []


def _ticking(seconds: float) -> SolverLimits:
    """Return limits whose clock goes on by a second whenever it is looked at."""
    ticks = count()
    return SolverLimits(seconds, clock=lambda: float(next(ticks)))


BOTTOMLESS = (
    "(:task t) (:method m :task (t) :ordered-subtasks (and (t) (noop))) (:method stop :task (t))"
    " (:action noop :effect (p a))"
)


def test_a_method_that_has_no_instance_among_millions_is_given_up_in_time() -> None:
    objects = " ".join(f"o{n}" for n in range(60))
    body = (
        "(:task t) (:method m :parameters (?a ?b ?c ?d ?e) :task (t) :precondition (imply (q) (and (p ?a) (p ?b)"
        " (p ?c) (p ?d) (p ?e))) :subtasks (do)) (:action do)"
    )
    domain, problem = tiny(body, init="(q)")
    result = solve(_read(domain, problem.replace("a b)", f"a b {objects})")), _ticking(20))
    assert (result.ended, result.reached) == ("limit", "time")


def test_memory_that_does_not_come_back_ends_the_search() -> None:
    sizes = iter([0] * 2 + [2_000] * 100)
    limits = SolverLimits(memory=1_000, resident=lambda: next(sizes))
    limits.clock = iter(range(200)).__next__
    limits.deadline = 150  # looks: so that it ends, too, if memory counts for nothing
    result = solve(_read(*tiny(BOTTOMLESS, goal="(q)")), limits)
    assert (result.ended, result.reached) == ("limit", "memory")


def test_memory_that_comes_back_lets_it_go_on() -> None:
    sizes = iter([0] * 2 + [2_000, 0] * 3)
    limits = SolverLimits(memory=1_000, resident=lambda: next(sizes, 0))
    limits.clock = iter(range(30)).__next__
    limits.deadline = 6
    result = solve(_read(*tiny(BOTTOMLESS, goal="(q)")), limits)
    assert (result.ended, result.reached) == ("limit", "time")


def test_memory_of_the_host_program_is_not_planning() -> None:
    limits = SolverLimits(memory=1_000, resident=iter([5_000, 5_900, 6_001]).__next__)
    limits.check()
    with pytest.raises(LimitReached):
        limits.check()


def test_by_default_planning_may_add_a_gigabyte() -> None:
    SolverLimits(resident=iter([0, 1_000_000_000]).__next__).check()
    with pytest.raises(LimitReached, match="memory"):
        SolverLimits(resident=iter([0, 1_000_000_001]).__next__).check()


def test_a_network_in_order_takes_the_memory_of_its_tasks_and_not_of_their_pairs() -> None:
    """One of 1,000 packages took 180 MB between two looks at the limit."""

    def peak(packages: int) -> int:
        problem = Compiled(_transport(packages))
        tracemalloc.start()
        try:
            progress(problem, nodes=1)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak(400) < 6 * peak(100)


def test_the_memory_of_this_process_is_known() -> None:
    most = getrusage(RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    assert 10_000_000 < resident_bytes() <= 1.1 * most


def test_checking_a_plan_grows_with_the_plan() -> None:
    def steps(packages: int) -> float:
        problem = _transport(packages)
        plan = solve(problem).plan
        assert plan is not None
        limits = Counted()
        verify_plan(plan, problem, limits)
        return limits.steps / len(plan)

    assert steps(120) < 2 * steps(30)


def test_what_a_plan_leaves_open_is_joined_and_not_multiplied() -> None:
    size = 40
    rows = " ".join(f"(r o{n} o{n + 1})" for n in range(size - 1))
    body = (
        "(:task t) (:method m :parameters (?a ?b ?c ?d ?e) :task (t)"
        " :precondition (and (r ?a ?b) (r ?b ?c) (r ?c ?d) (r ?d ?e) (last ?e)) :subtasks (do)) (:action do)"
    )
    domain, problem = tiny(body, init=f"{rows} (last o{size - 1})", predicates="(r ?x ?y) (last ?x)")
    read = _read(domain, problem.replace("a b)", " ".join(f"o{n}" for n in range(size)) + ")"))
    plan = solve(read).plan
    assert plan is not None
    limits = Counted()
    verify_plan(plan, read, limits)
    assert limits.steps < 10 * size


def test_checking_a_plan_keeps_to_the_time() -> None:
    problem = _transport(30)
    plan = solve(problem).plan
    assert plan is not None
    with pytest.raises(LimitReached, match="time"):
        verify_plan(plan, problem, _ticking(0.5))


# What the verifier finds by joins, beside all values one after the other -----------------------------------------

_OBJECTS = ("a", "b", "c")
_VARIABLES = ("?x", "?y", "?z")


def _conditions() -> st.SearchStrategy[Condition]:
    term = st.sampled_from([*_VARIABLES, *_OBJECTS])
    atom = st.one_of(
        st.tuples(st.just("atom"), st.just("p"), st.tuples(term)),
        st.tuples(st.just("atom"), st.just("r"), st.tuples(term, term)),
        st.tuples(st.just("="), term, term),
    )

    def wider(inner: st.SearchStrategy[Condition]) -> st.SearchStrategy[Condition]:
        bound = st.lists(st.sampled_from(_VARIABLES), min_size=1, max_size=2, unique=True).map(
            lambda names: tuple((name, (OBJECT,)) for name in names)
        )
        return st.one_of(
            st.tuples(st.sampled_from(["and", "or"]), inner, inner),
            st.tuples(st.just("not"), inner),
            st.tuples(st.just("imply"), inner, inner),
            st.tuples(st.sampled_from(["forall", "exists"]), bound, inner),
        )

    return st.recursive(atom, wider, max_leaves=6)


def _naive(condition: Condition, values: dict[str, str], facts: frozenset[tuple[str, ...]]) -> bool:
    def inner(one: Condition) -> bool:
        return _naive(one, values, facts)

    match condition[0]:
        case "atom":
            return (condition[1], *(values.get(t, t) for t in condition[2])) in facts
        case "=":
            return values.get(condition[1], condition[1]) == values.get(condition[2], condition[2])
        case "not":
            return not inner(condition[1])
        case "and":
            return all(map(inner, condition[1:]))
        case "or":
            return any(map(inner, condition[1:]))
        case "imply":
            return not inner(condition[1]) or inner(condition[2])
        case _:
            names = [name for name, _ in condition[1]]
            ways = (
                _naive(condition[2], {**values, **dict(zip(names, chosen, strict=True))}, facts)
                for chosen in product(_OBJECTS, repeat=len(names))
            )
            return all(ways) if condition[0] == "forall" else any(ways)


@settings(max_examples=examples(300))
@given(
    condition=_conditions(),
    facts=st.frozensets(
        st.one_of(
            st.tuples(st.just("p"), st.sampled_from(_OBJECTS)),
            st.tuples(st.just("r"), st.sampled_from(_OBJECTS), st.sampled_from(_OBJECTS)),
        )
    ),
    known=st.dictionaries(st.sampled_from(_VARIABLES), st.sampled_from(_OBJECTS)),
)
def test_joins_find_what_all_values_find(
    condition: Condition, facts: frozenset[tuple[str, ...]], known: dict[str, str]
) -> None:
    domain, text = tiny("(:action t)", predicates="(p ?x) (r ?x ?y)")
    problem = _read(domain, text.replace("a b)", "a b c)"))
    problem.init = set(facts)
    verifier = _Verifier(problem, [], [], {}, SolverLimits())
    open_ = {name: Variable(name) for name in _VARIABLES if name not in known}
    parts = [(free_variables(part) & open_.keys(), part) for part in flat(condition)]
    ways: Callable[[], bool] = lambda: any(  # noqa: E731
        _naive(condition, {**known, **dict(zip(open_, chosen, strict=True))}, facts)
        for chosen in product(_OBJECTS, repeat=len(open_))
    )
    assert verifier._joined(parts, open_, known, 0) == ways()


WINDOW = (
    "(:task t) (:method m :task (t) :precondition (q)) (:task u) (:method n :task (u) :subtasks (make))"
    " (:action make :effect (q)) (:action spoil :effect (not (q)))"
)


@pytest.mark.parametrize(
    ("network", "fits"),
    [
        (":ordered-subtasks (and (u) (t) (spoil))", True),
        (":ordered-subtasks (and (t) (u) (spoil))", False),
        (":ordered-subtasks (and (u) (spoil) (t))", False),
        (":subtasks (and (x (u)) (y (spoil)) (z (t))) :ordering (< x y)", True),
    ],
)
def test_a_method_without_steps_is_met_between_its_siblings(network: str, fits: bool) -> None:
    domain, text = tiny(WINDOW)
    problem = _read(domain, text.replace(":subtasks (t)", network))
    result = solve(problem)
    assert (result.ended == "solved") == fits
    if fits:
        assert result.plan is not None
        verify_plan(result.plan, problem)
        other = _read(domain, text.replace(":subtasks (t)", ":ordered-subtasks (and (u) (spoil) (t))"))
        moved = {step.name: step.id for step in result.plan.steps}
        if moved["make"] < moved["spoil"]:
            roots = {one.task: one.id for one in result.plan.decompositions} | {"spoil": moved["spoil"]}
            plan = type(result.plan)(
                result.plan.steps, (roots["u"], roots["spoil"], roots["t"]), result.plan.decompositions
            )
            with pytest.raises(InvalidPlan):
                verify_plan(plan, other)
