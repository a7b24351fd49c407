"""What planning costs as goals become more: counted in calls and lines, not in seconds."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest
from metatree_agents.planner.domain.domain import Domain
from metatree_agents.planner.domain.facts import Facts
from metatree_agents.planner.domain.network import TOP, Intent
from metatree_agents.planner.planning.planning import plan

World = dict[str, set[tuple[Any, ...]]]


def _steps(count: int) -> tuple[Domain, World]:
    domain = Domain()
    domain.task("step(?n)")
    domain.rule("all()", subgoals=[("step", n) for n in range(count)])
    return domain, {}


def _walk(count: int) -> tuple[Domain, World]:
    domain = Domain()
    domain.relation("at", 1)
    domain.relation("next", 2)
    domain.task("step(?n)", when="(and (next ?n ?m) (at ?n))", effect="(and (not (at ?n)) (at ?m))")
    domain.rule("all()", subgoals=[("step", n) for n in range(count)])
    return domain, {"at": {(0,)}, "next": {(n, n + 1) for n in range(count)}}


def _deliveries(count: int, *, order: bool, blind: bool = False) -> tuple[Domain, World]:
    domain = Domain()
    domain.relation("at", 2)
    domain.relation("never", 0)
    domain.task("move(?t, ?to)", when="(at ?t ?from)", effect="(and (not (at ?t ?from)) (at ?t ?to))")
    domain.task(
        "take(?p, ?t)", when="(and (at ?p ?x) (at ?t ?x))", effect="(and (not (at ?p ?x)) (at ?p ?t))"
    )
    domain.task(
        "drop(?p, ?t)", when="(and (at ?p ?t) (at ?t ?x))", effect="(and (not (at ?p ?t)) (at ?p ?x))"
    )
    domain.task("fly()", when="(never)")
    for goal in ("move", "take", "drop"):
        domain.goal(goal, again=True)
    if blind:
        domain.rule("deliver(?p, ?to)", name="blind", cost=0.5, subgoals=["move(truck, ?to)", "fly()"])
    domain.rule(
        "deliver(?p, ?to)",
        name="by-truck",
        when="(at ?p ?from)",
        subgoals=["move(truck, ?from)", "take(?p, truck)", "move(truck, ?to)", "drop(?p, truck)"],
    )
    domain.rule("all()", subgoals=[("deliver", f"p{n}", f"h{n % 7}") for n in range(count)], order=order)
    return domain, {"at": {("truck", "depot"), *((f"p{n}", f"d{n % 5}") for n in range(count))}}


def _twice(count: int) -> tuple[Domain, World]:
    domain = Domain()
    domain.task("wash(?n)")
    domain.rule("all()", subgoals=[("wash", n % (count // 2)) for n in range(count)])
    return domain, {}


def _against_the_order(count: int) -> tuple[Domain, World]:
    domain = Domain()
    domain.task("step(?n)")
    order = [(n + 1, n) for n in range(count - 1)]
    domain.rule("all()", subgoals=[("step", n) for n in range(count)], order=order)
    return domain, {}


def _read_live(count: int) -> tuple[Domain, World]:
    domain = Domain()
    domain.relation("open", 1, dynamic=True)
    domain.task("look(?n)")
    domain.task("enter(?n)", when="(open ?n)")
    domain.rule("visit(?n)", subgoals=["look(?n)", "enter(?n)"])
    domain.rule("all()", subgoals=[("visit", n) for n in range(count)], order=False)
    return domain, {}


def _work(do: Callable[[], Any]) -> int:
    """Count the calls, also of what is written in C, and the lines, each turn of a loop in one line as one."""
    counted = 0

    def called(frame: Any, event: str, value: Any) -> None:
        nonlocal counted
        counted += event in ("call", "c_call")

    def traced(frame: Any, event: str, value: Any) -> Any:
        nonlocal counted
        counted += event == "line"
        return traced

    before = sys.getprofile(), sys.gettrace()
    sys.setprofile(called)
    sys.settrace(traced)
    try:
        do()
    finally:
        sys.settrace(before[1])
        sys.setprofile(before[0])
    return counted


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(_steps, id="steps in order"),
        pytest.param(_walk, id="steps that read and change one fact"),
        pytest.param(lambda n: _deliveries(n, order=True), id="deliveries by one truck"),
        pytest.param(lambda n: _deliveries(n, order=False), id="deliveries by one truck in any order"),
        pytest.param(lambda n: _deliveries(n, order=True, blind=True), id="a blind alley at each"),
        pytest.param(_twice, id="goals that come twice"),
        pytest.param(_against_the_order, id="an order against that of the goals"),
        pytest.param(_read_live, id="goals that are deferred"),
    ],
)
def test_planning_grows_hardly_faster_than_the_goals(made: Callable[[int], tuple[Domain, World]]) -> None:
    small, large = _work_of(made, 160), _work_of(made, 640)
    assert large < 4.1 * small, f"four times the goals take {large / small:.1f} times the work"


def test_thousands_of_ordered_goals_cost_what_hundreds_do_for_each() -> None:
    small, large = _work_of(_steps, 500), _work_of(_steps, 5_000)
    assert large < 10.2 * small, f"ten times the goals take {large / small:.1f} times the work"


def _work_of(made: Callable[[int], tuple[Domain, World]], count: int) -> int:
    domain, facts = made(count)
    domain.check()

    def do() -> None:
        world = Facts(domain.library, facts)
        result = plan(domain.library, {TOP: Intent(TOP, ("all",))}, world, seed=1)
        assert result.ended == "planned"

    return _work(do)


def test_an_order_is_checked_in_the_time_that_it_has_pairs() -> None:
    def work(count: int) -> int:
        domain, _ = _steps(count)
        return _work(domain.check)

    assert work(640) < 4.1 * work(160)


def test_facts_that_changed_are_still_what_they_were_in_older_copies() -> None:
    domain = Domain()
    domain.relation("at", 2)
    first = Facts(domain.library, {"at": {("a", 1), ("b", 2)}})
    second = first.changed([(False, "at", ("a", 1)), (True, "at", ("a", 3)), (True, "at", ("b", 2))])
    third = second.changed([(True, "at", ("c", 1)), (False, "at", ("c", 1)), (False, "at", ("x", 9))])
    other = first.changed([(True, "at", ("c", 1))])
    rows = {
        first: [("a", 1), ("b", 2)],
        second: [("a", 3), ("b", 2)],
        third: [("a", 3), ("b", 2), ("c", 1)],
        other: [("a", 1), ("b", 2), ("c", 1)],
    }
    for _ in range(2):
        for facts, expected in [*rows.items(), *reversed(rows.items())]:
            assert list(facts.matching("at", ("?x", "?y"))) == expected
            assert list(facts.matching("at", ("?x", 1))) == [row for row in expected if row[1] == 1]
            assert list(facts.matching("at", ("b", 2))) == [("b", 2)]
            assert facts.key() == Facts(domain.library, {"at": set(expected)}).key()
