"""Planning as a function: which candidate and order, what is deferred or fails; and against a planner by force."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from metatree_agents.planner.domain.domain import Domain, ordered, unordered
from metatree_agents.planner.domain.facts import Facts
from metatree_agents.planner.domain.model import BadDefinition, library_data, library_from
from metatree_agents.planner.domain.network import TOP, Intent, children, is_ready, without
from metatree_agents.planner.planning.planning import PlanLimits, Planned, plan

from tests.profiles import examples


def _plan(
    domain: Domain,
    goal: tuple[Any, ...],
    facts: dict[str, set[tuple[Any, ...]]] | None = None,
    **options: Any,
) -> Planned:
    world = Facts(domain.library, facts or {})
    return plan(domain.library, {TOP: Intent(TOP, goal)}, world, expand=domain.expand, **options)


def _tasks(planned: Planned) -> list[str]:
    intents = sorted(planned.network.values(), key=lambda one: one.number)
    return [one.action for one in intents if one.kind == "task" and one.status == "pending"]


def test_the_cheapest_candidate_wins_and_a_failure_below_it_restores_the_state() -> None:
    """Trace 4: the cheapest rule fails below: the second is used and state is restored."""
    domain = Domain()
    for name in ("clean", "dirty"):
        domain.relation(name, 0)
    domain.rule("go()", name="cheap", cost=1, subgoals=["spoil()", "impossible()"])
    domain.rule("go()", name="dear", cost=5, subgoals=["polish()"])
    domain.task("spoil()", effect="(and (dirty) (not (clean)))")
    domain.task("impossible()", when="(and (clean) (dirty))")
    domain.task("polish()", when="(and (clean) (not (dirty)))")
    made = _plan(domain, ("go",), {"clean": {()}})
    assert made.ended == "planned"
    assert (made.network[TOP].action, _tasks(made)) == ("dear", ["polish"])


def test_equal_costs_are_drawn_by_the_seed() -> None:
    """Trace 5: both outcomes occur over seeds, the same seed gives the same plan."""
    domain = Domain()
    for name in ("left", "right"):
        domain.task("turn()", name=name)
    chosen = [_plan(domain, ("turn",), seed=seed).network[TOP].action for seed in range(20)]
    assert set(chosen) == {"left", "right"}
    assert chosen == [_plan(domain, ("turn",), seed=seed).network[TOP].action for seed in range(20)]


def test_a_router_orders_candidates_of_equal_cost_only() -> None:
    domain = Domain()
    domain.task("turn()", name="left")
    domain.task("turn()", name="right")
    domain.task("turn()", name="cheap", cost=0.5)
    offered: list[list[str]] = []

    def order(goal: Any, equal: Any) -> Any:
        offered.append(sorted(one.action.name for one in equal))
        return sorted(equal, key=lambda one: one.action.name, reverse=True)

    assert _plan(domain, ("turn",), order=order).network[TOP].action == "cheap"
    excluded = {TOP: Intent(TOP, ("turn",), excluded=("cheap",))}
    made = plan(domain.library, excluded, Facts(domain.library), order=order)
    assert made.network[TOP].action == "right"
    assert offered == [["left", "right"]] * 2


def test_a_dynamic_precondition_is_deferred_behind_what_supports_it() -> None:
    """Trace 2, the planning half: B is not planned until A is complete, nor is what follows it."""
    domain = Domain()
    domain.relation("open", 0, dynamic=True)
    domain.task("a()")
    domain.task("b()", when="(open)")
    domain.task("c()")
    domain.rule("all()", subgoals=["a()", "b()", "c()"])
    made = _plan(domain, ("all",))
    assert made.ended == "planned"
    assert [(one.goal[0], one.status) for one in children(made.network, TOP)] == [
        ("a", "pending"),
        ("b", "deferred"),
        ("c", "deferred"),
    ]
    done = {
        key: replace(one, status="complete") if one.goal == ("a",) else one
        for key, one in made.network.items()
    }
    shut = plan(domain.library, done, Facts(domain.library))
    assert shut.ended == "failed"
    opened = plan(domain.library, done, Facts(domain.library, {"open": {()}}))
    assert _tasks(opened) == ["b", "c"]


def test_a_dynamic_precondition_without_support_is_eligible_or_fails_at_once() -> None:
    """Trace 3: unordered, B is eligible or fails at once, also through a derived relation or a negation."""
    domain = Domain()
    domain.relation("open", 0, dynamic=True)
    domain.derived("shut()", "(not (open))")
    domain.task("a()", effect="(open)")
    domain.task("b()", when="(not (shut))")
    domain.rule("all()", subgoals=["a()", "b()"], order=False)
    assert _plan(domain, ("all",)).ended == "failed"
    assert sorted(_tasks(_plan(domain, ("all",), {"open": {()}}))) == ["a", "b"]


def test_constraints_pass_through_levels_and_an_empty_rule() -> None:
    """Trace 6: what follows a goal three levels up waits, also where a rule in between has no sub-goals."""
    domain = Domain()
    domain.relation("open", 0, dynamic=True)
    domain.task("first()")
    domain.task("last()", when="(open)")
    domain.rule("empty()")
    domain.rule("inner()", subgoals=["last()"])
    domain.rule("outer()", subgoals=["inner()"])
    domain.rule("all()", subgoals=["first()", "empty()", "outer()"])
    made = _plan(domain, ("all",), {"open": {()}})
    last = next(one for one in made.network.values() if one.goal == ("last",))
    assert last.status == "deferred", "its support goals are those of its ancestors"
    after = {
        key: replace(one, status="complete") if one.goal[0] in ("first", "empty") else one
        for key, one in made.network.items()
    }
    assert _tasks(plan(domain.library, after, Facts(domain.library, {"open": {()}}))) == ["last"]


def test_unordered_tasks_that_interfere_are_ordered() -> None:
    domain = Domain()
    domain.relation("lamp", 0)
    domain.relation("note", 1)
    domain.task("on()", effect="(lamp)")
    domain.task("read()", when="(lamp)", effect="(note done)")
    domain.task("sing()")
    domain.rule("all()", subgoals=["read()", "on()", "sing()"], order=False)
    made = _plan(domain, ("all",))
    by_name = {one.action: one for one in made.network.values()}
    assert made.ended == "planned", "another order of unordered goals is tried"
    assert by_name["read"].after_end == (by_name["on"].id,)
    assert by_name["sing"].after_end == ()
    assert _plan(domain, ("all",), interleave=False).ended == "failed"


def _three_at_one_lamp() -> dict[int, Intent]:
    """Return a network in which `first`, `second` and `third` are unordered and wait for each other in this order."""
    domain = Domain()
    domain.relation("lamp", 1)
    for name in ("first", "second", "third"):
        domain.task(f"{name}()", when="(lamp ?state)", effect="(and (not (lamp ?state)) (lamp on))")
    domain.rule("all()", subgoals=["first()", "second()", "third()"], order=False)
    made = _plan(domain, ("all",), {"lamp": {("off",)}})
    assert [one.after_end for one in children(made.network, TOP)] == [(), (2,), (3,)], (
        "the last one stands for all"
    )
    return {**made.network, TOP: replace(made.network[TOP], status="active")}


def test_a_cancelled_intent_does_not_let_what_waits_for_it_by() -> None:
    network = _three_at_one_lamp()
    network |= {2: replace(network[2], status="active"), 3: replace(network[3], status="cancelled")}
    assert not is_ready(network, network[4]), "the first is still at work"
    network[2] = replace(network[2], status="complete")
    assert is_ready(network, network[4])


def test_intents_after_a_removed_intent_wait_for_its_predecessors() -> None:
    network = _three_at_one_lamp()
    assert without(network, network[4], {3}).after_end == (2,)
    assert without(network, network[4], {2}) is network[4]


def test_a_task_that_disturbs_a_rule_waits_until_it_has_started() -> None:
    domain = Domain()
    domain.relation("door", 0)
    domain.rule("enter()", when="(door)", subgoals=["step()"])
    domain.task("step()")
    domain.task("shut()", effect="(not (door))")
    domain.rule("all()", subgoals=["enter()", "shut()"], order=False)
    made = _plan(domain, ("all",), {"door": {()}})
    by_name = {one.action: one for one in made.network.values()}
    assert by_name["shut"].after_start == (by_name["enter"].id,)


def test_a_goal_comes_to_itself_only_when_something_has_changed() -> None:
    domain = Domain()
    domain.relation("count", 1)
    domain.relation("next", 2)
    domain.rule("loop()", name="again", cost=0, subgoals=["loop()"])
    domain.rule("loop()", name="stop", cost=1)
    made = _plan(domain, ("loop",))
    assert [one.action for one in made.network.values()] == ["again", "stop"] or made.network[
        TOP
    ].action == "stop"
    domain.rule(
        "climb()", name="up", when="(and (count ?n) (next ?n ?m))", subgoals=["step(?n, ?m)", "climb()"]
    )
    domain.rule("climb()", name="top", when="(and (count ?n) (not (exists (?m) (next ?n ?m))))")
    domain.task("step(?n, ?m)", effect="(and (not (count ?n)) (count ?m))")
    climbed = _plan(domain, ("climb",), {"count": {(0,)}, "next": {(0, 1), (1, 2), (2, 3)}})
    assert _tasks(climbed) == ["step", "step", "step"]


@pytest.mark.parametrize("limits", [PlanLimits(nodes=3), PlanLimits(seconds=0.0, nodes=10**9)])
def test_limits(limits: PlanLimits) -> None:
    domain = Domain()
    domain.relation("count", 1)
    domain.task("step(?n)", when="(count ?n)")
    domain.rule("walk()", subgoals=[("step", n) for n in range(300)])
    made = _plan(domain, ("walk",), {"count": {(n,) for n in range(300)}}, limits=limits)
    assert made.ended == "limit"


def test_least_total_cost_beats_the_cheapest_first_step() -> None:
    domain = Domain()
    domain.rule("go()", name="cheap", cost=1, subgoals=["dear()"])
    domain.rule("go()", name="dearer", cost=2, subgoals=["little()"])
    domain.task("dear()", cost=10)
    domain.task("little()", cost=1)
    assert _plan(domain, ("go",)).cost == 11
    assert _plan(domain, ("go",), least_cost=True).cost == 3


def test_a_cost_can_be_a_variable_and_has_to_be_a_number() -> None:
    domain = Domain()
    domain.relation("way", 2)
    domain.task("take(?w)", when="(way ?w ?km)", cost="?km")
    domain.rule("go()", when="(way ?w ?any)", subgoals=["take(?w)"])
    assert _plan(domain, ("go",), {"way": {("a", 7), ("b", 3)}}, least_cost=True).cost == 3
    with pytest.raises(BadDefinition.__mro__[1], match="no number"):
        _plan(domain, ("take", "a"), {"way": {("a", "far")}})


def test_a_complete_goal_does_nothing_when_asked_for_again() -> None:
    domain = Domain()
    domain.task("wash()")
    domain.rule("all()", subgoals=["wash()", "wash()"])
    assert [one.kind for one in children(_plan(domain, ("all",)).network, TOP)] == ["task", "nothing"]
    assert [
        one.kind for one in children(_plan(domain, ("all",), done=frozenset({("wash",)})).network, TOP)
    ] == [
        "nothing",
        "nothing",
    ]
    domain.goal("wash", again=True)
    assert [one.kind for one in children(_plan(domain, ("all",)).network, TOP)] == ["task", "task"]


def test_rules_as_functions_read_the_plan_state() -> None:
    domain = Domain()
    domain.relation("guest", 1)
    domain.task("greet(?who)", effect="(not (guest ?who))")
    domain.task("close()")

    @domain.rule("party(?name)")
    def party(name: str, facts: Facts) -> Any:
        guests = [row[0] for row in facts.matching("guest", ("?g",))]
        return ordered(
            *[("greet", g) for g in guests], ("close",), order=[(n, len(guests)) for n in range(len(guests))]
        )

    made = _plan(domain, ("party", "garden"), {"guest": {("ann",), ("bob",)}})
    close = next(one for one in made.network.values() if one.goal == ("close",))
    assert len(close.after) == 2
    assert unordered(("greet", "a")).order == ()


def test_explain_says_what_was_thought_of_every_candidate() -> None:
    domain = Domain()
    domain.relation("key", 0)
    domain.task("open()", name="unlock", when="(key)")
    domain.task("open()", name="push", cost=3)
    domain.task("open()", name="kick", cost=2)
    made = _plan(domain, ("open",))
    assert {(one.candidate, one.verdict) for one in made.considered} == {
        ("unlock", "out"),
        ("push", "eligible"),
        ("kick", "chosen"),
    }
    assert "does not hold: (key)" in next(one.why for one in made.considered if one.candidate == "unlock")


# Definitions ------------------------------------------------------------------------------------------------------


def test_definitions_are_checked() -> None:
    domain = Domain()
    domain.relation("at", 1)
    domain.task("go(?to)", effect="(at ?to)")
    with pytest.raises(BadDefinition, match="primitive and compound"):
        domain.rule("go(?to)")
    with pytest.raises(BadDefinition, match="declared twice"):
        domain.relation("at", 2)
    for wrong, error in (
        ({"when": "(near ?x)"}, "no relation is called 'near'"),
        ({"when": "(or (at ?to) (exists (?x - town) (at ?x)))"}, "no relation is called 'town'"),
        ({"when": "(at ?x ?y)"}, "takes 1 arguments"),
        ({"effect": "(at ?where)"}, "has no value"),
        ({"effect": "(at ?result)"}, "has no value"),
        ({"cost": "?km"}, "has no value"),
        ({"attempts": 3, "repeatable": False}, "not repeatable"),
        ({"when": "(forall (?x) (at ?x))"}, "ranges over"),
    ):
        other = Domain()
        other.relation("at", 1)
        other.task("do()", **wrong)
        with pytest.raises(BadDefinition, match=error):
            other.check()
    circle = Domain()
    circle.derived("a(?x)", "(b ?x)")
    circle.derived("b(?x)", "(a ?x)")
    with pytest.raises(BadDefinition, match="circle"):
        circle.check()
    rule = Domain()
    rule.rule("do()", subgoals=["nothing()"])
    with pytest.warns(UserWarning, match="no rule or task reaches"):
        rule.check()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert _plan(rule, ("do",)).ended == "failed"


def test_a_library_survives_json() -> None:
    domain = Domain("home")
    domain.relation("at", 1)
    domain.relation("open", 1, dynamic=True)
    domain.derived("near(?x)", "(or (at ?x) (open ?x))")
    domain.task(
        "go(?to)", when="(and (at ?x) (not (near ?to)))", effect="(and (at ?to) (not (at ?x)))", cost="?to"
    )
    domain.rule("all()", subgoals=["go(a)", "go(b)"], order=[(0, 1)])
    domain.goal("go", again=True)
    assert library_from(library_data(domain.library)) == domain.library


# Against a planner by force ---------------------------------------------------------------------------------------

_NAMES = ("p", "q", "r")


@st.composite
def _domains(draw: st.DrawFn) -> Domain:
    domain = Domain()
    for name in _NAMES:
        domain.relation(name, 0)
    literal = st.tuples(st.sampled_from(_NAMES), st.booleans())

    def written(parts: list[tuple[str, bool]]) -> str:
        return f"(and {' '.join(f'({n})' if yes else f'(not ({n}))' for n, yes in parts)})"

    condition = st.lists(literal, max_size=2).map(written)
    effect = st.lists(literal, max_size=2, unique_by=lambda one: one[0]).map(written)
    for number in range(draw(st.integers(2, 4))):
        for _ in range(draw(st.integers(1, 2))):
            domain.task(
                f"t{number % 3}()", when=draw(condition), effect=draw(effect), cost=draw(st.integers(1, 3))
            )
    primitive = sorted({action.goal for action in domain.library.actions.values()})
    below = list(primitive)
    for level in ("m", "top"):
        for number in range(2 if level == "m" else 1):
            goal = f"{level}{number}"
            for _ in range(draw(st.integers(1, 2))):
                goals = draw(st.lists(st.sampled_from(below), max_size=3))
                pairs = [(a, b) for b in range(len(goals)) for a in range(b) if draw(st.booleans())]
                domain.rule(
                    f"{goal}()",
                    when=draw(condition),
                    subgoals=[f"{g}()" for g in goals],
                    order=pairs,
                    cost=draw(st.integers(0, 2)),
                )
        below += ["m0", "m1"] if level == "m" else []
    for goal in (*primitive, "m0", "m1"):
        domain.goal(goal, again=True)
    return domain


Open = tuple[tuple[str, frozenset[int]], ...]


def _by_force(
    domain: Domain, facts: frozenset[str], tasks: dict[int, tuple[str, frozenset[int]]], fresh: int
) -> Iterator[float]:
    """Yield the cost of every plan: any goal that nothing precedes, any action, in any order."""
    if not tasks:
        yield 0.0
        return
    for key, (goal, before) in tasks.items():
        if before & tasks.keys():
            continue
        for action in domain.library.for_goal(goal):
            world = Facts(domain.library, {name: {()} for name in facts})
            if not world.holds(action.precondition):
                continue
            cost = float(action.cost)
            rest = {k: v for k, v in tasks.items() if k != key}
            if action.kind == "task":
                removed = {name for adds, name, _ in action.effects if not adds}
                added = {name for adds, name, _ in action.effects if adds}
                for more in _by_force(domain, (facts - removed) | added, rest, fresh):
                    yield cost + more
            else:
                made = {
                    fresh + n: (g[0], before | {fresh + a for a, b in action.order if b == n})
                    for n, g in enumerate(action.subgoals)
                }
                rest = {k: (g, b | made.keys() if key in b else b) for k, (g, b) in rest.items()}
                for more in _by_force(domain, facts, {**rest, **made}, fresh + len(made)):
                    yield cost + more


@settings(max_examples=examples(60))
@given(domain=_domains(), start=st.frozensets(st.sampled_from(_NAMES)), seed=st.integers(0, 10))
def test_plans_are_those_that_force_finds(domain: Domain, start: frozenset[str], seed: int) -> None:
    costs = []
    for number, cost in enumerate(_by_force(domain, start, {0: ("top0", frozenset())}, 1)):
        costs.append(cost)
        if number > 2_000:
            return
    facts = {name: {()} for name in start}
    made = _plan(domain, ("top0",), facts, seed=seed)
    assert (made.ended == "planned") == bool(costs)
    if costs:
        assert made.cost in costs
        best = _plan(domain, ("top0",), facts, seed=seed, least_cost=True)
        assert best.cost == min(costs)
        for planned in (made, best):
            _every_order_works(domain, planned, start, Random(seed))


def _every_order_works(domain: Domain, made: Planned, start: frozenset[str], rng: Random) -> None:
    """Carry a plan out in a random order that its network allows: each precondition holds, and nothing is left."""
    network = dict(made.network)
    facts = Facts(domain.library, {name: {()} for name in start})
    while True:
        for one in list(network.values()):
            below = children(network, one.id)
            if one.status == "active" and one.kind == "rule" and all(c.status == "complete" for c in below):
                network[one.id] = replace(one, status="complete")
        able = [one for one in network.values() if is_ready(network, one)]
        able += [one for one in network.values() if one.status == "active" and one.kind == "task"]
        if not able:
            if all(one.status == "complete" for one in network.values()):
                return
            if any(
                one.status == "active" and all(c.status == "complete" for c in children(network, one.id))
                for one in network.values()
            ):
                continue
            raise AssertionError("stuck")
        one = rng.choice(able)
        if one.status == "pending":
            assert facts.holds(one.precondition), (one, start)
            network[one.id] = replace(one, status="active")
        else:
            facts = facts.changed(one.effects)
            network[one.id] = replace(one, status="complete")
