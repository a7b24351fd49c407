"""The control shell: what fires, what is told, what a failure does, and that a run can be cut anywhere."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from metatree.durable import MemoryJournal, Policy, replay, report_usage
from metatree.errors import BadModelAnswer, RunExists, UserError
from metatree.protocols import RouteDecision
from metatree.rules import (
    AskRouter,
    ControlShell,
    Firing,
    First,
    KnowledgeSource,
    OverridingSelfTransition,
    Priority,
    Recency,
    Resolver,
    SelfTransition,
    ShellLimits,
    StopWhen,
    Trivial,
    why_not,
)
from metatree.rules.language.values import value_text
from metatree.rules.shell.control import ending_lines, trace_lines
from metatree.testing.parts import FunctionRouter, ScriptedRouter

PRODUCTIONS = """
((<x> is raw) -{(<x> is cut)} -> "cut")
((<x> is cut) -{(<x> is cooked)} -> "cook")
((<x> is cooked) -{(<x> is served)} -> "serve")
"""
FACTS = "(carrot is raw) (leek is raw) (potato is raw)"
SCHEDULE = "cut = 0; cook = 1; serve = 2; main = (cut | cook)+ serve+;"
NEXT = {"cut": "cut", "cook": "cooked", "serve": "served"}


def kitchen(names: str = "cut cook serve", **options: Any) -> KnowledgeSource:
    source = KnowledgeSource("kitchen", PRODUCTIONS)
    for name in names.split():

        @source.fires(name, **options)
        def work(firing: Firing) -> None:
            token = firing.to_add[0]
            firing.commit(token)
            firing.add(token["x"], "is", NEXT[firing.production])

    return source


def order(resolver: Resolver | None, seed: int = 0, schedule: str | None = SCHEDULE) -> str:
    report = ControlShell([kitchen()], schedule=schedule, resolver=resolver).run(FACTS, seed=seed)
    assert report.ended == "accepted"
    return " ".join(entry["production"] for entry in report.trace)


def test_resolvers() -> None:
    ready = "cut cut cut cook cook cook serve serve serve"
    assert order(First()) == ready
    assert order(Priority({"cook": 2, "serve": -1})) == "cut cook cut cook cut cook serve serve serve"
    assert order(Recency()).startswith("cut cook")
    assert order(OverridingSelfTransition(["cook"])) == "cut cook cut cook cut cook serve serve serve"
    assert order(SelfTransition(First())) == ready


def test_random_choice_is_repeated_by_its_seed() -> None:
    orders = {order(Trivial(), seed) for seed in range(8)}
    assert len(orders) > 2
    assert order(Trivial(), 3) == order(Trivial(), 3)


def test_a_run_that_is_stuck_says_what_was_expected() -> None:
    schedule = "cut = 0; cook = 1; serve = 2; main = cut cook+ serve{4};"
    report = ControlShell([kitchen()], schedule=schedule).run(FACTS, seed=0)
    assert (report.ended, report.cycles) == ("stuck", 3)
    assert "Production" in trace_lines(report.trace[0])[1]
    (expected,) = report.expected
    assert expected.production == "serve"
    assert str(expected) == '"serve" cannot fire: no fact fits: (<x> is cooked)' or expected.unmet
    assert "The run is stuck in state" in "\n".join(ending_lines(report))


def test_why_not_names_the_condition() -> None:
    report = ControlShell([kitchen()], schedule=SCHEDULE).run(FACTS, seed=0)
    memory = report.memory
    explanation = why_not(memory, "serve")
    assert explanation.unmet == "-{(<x> is served)}"
    assert explanation.reason == "always some facts meet what must not be"
    assert explanation.nearest == "<x>=carrot"
    memory.add_production('((<x> is <s>) (<x> costs <p>) -> "sell")')
    assert str(why_not(memory, "sell")).startswith('"sell" cannot fire: no fact fits: (<x> costs <p>)')
    memory.state("(leek costs 3)")
    assert "can fire: 4 to add" in str(why_not(memory, "sell"))
    memory.add_production('((<x> costs <p>) (<p> > 5) -> "sell dear")')
    assert "no values meet the test: (<p> > 5)" in str(why_not(memory, "sell dear"))
    memory.add_production('((<x> costs <p>) (<x> grows <w>) (<w> is far) -> "import")')
    memory.state("(fig grows south) (south is far)")
    explanation = why_not(memory, "import")
    assert explanation.unmet == "(<x> grows <w>)"
    assert "none together" in explanation.reason
    memory.commit("sell", add=memory.agenda("sell").tokens())
    assert "has 4 tokens, and all of them were dealt with" in str(why_not(memory, "sell"))
    with pytest.raises(UserError, match="no production 'fly'"):
        why_not(memory, "fly")


def test_logic_that_raises_is_tried_again_recorded_and_set_aside() -> None:
    source = kitchen("cut serve")
    attempts: list[int] = []

    @source.fires("cook", policy=Policy(attempts=3))
    def cook(firing: Firing) -> None:
        attempts.append(firing.attempt)
        firing.commit(firing.to_add[0])
        firing.add("kitchen", "is", "on fire")
        raise ValueError("too hot")

    report = ControlShell([source], schedule=SCHEDULE, resolver=First()).run(FACTS, seed=0)
    assert attempts == [1, 2, 3] * 5, "three tokens, the first, the other two, the second, the third"
    assert report.ended == "failed"
    assert [one["tokens"] for one in report.failures] == [["(x=carrot)"], ["(x=leek)"], ["(x=potato)"]]
    assert {(one["what"], one["error"]) for one in report.failures} == {("cook", "ValueError: too hot")}
    assert ("kitchen", "is", "on fire") not in report.facts, "what raised has done nothing"
    assert report.used["failed_attempts"] == 15
    assert any("Failed: (x=potato): ValueError: too hot" in line for line in trace_lines(report.trace[-1]))


def test_an_asynchronous_failure_heals_at_the_second_attempt() -> None:
    source = kitchen("cut serve")

    @source.fires("cook")
    async def cook(firing: Firing) -> None:
        await asyncio.sleep(0)
        if firing.attempt == 1:
            raise RuntimeError("spilled")
        token = firing.to_add[0]
        firing.commit(token)
        firing.add(token["x"], "is", "cooked")

    report = ControlShell([source], schedule=SCHEDULE).run(FACTS, seed=0)
    assert (report.ended, len(report.failures), report.cycles) == ("accepted", 0, 9)


def test_logic_that_does_nothing_is_not_asked_again() -> None:
    source = kitchen("cut serve")
    source.fires("cook")(lambda firing: firing.note("not today"))
    report = ControlShell([source], schedule=SCHEDULE, resolver=First()).run(FACTS, seed=0)
    assert report.ended == "stuck"
    assert [e["production"] for e in report.trace].count("cook") == 1
    assert "set aside" in report.trace[-1]["notes"][-1]
    assert "did nothing" in report.detail


def test_limits_end_a_run_and_it_goes_on_from_there() -> None:
    journal = MemoryJournal()
    shell = ControlShell([kitchen()], schedule=SCHEDULE, resolver=First())
    report = shell.run(FACTS, seed=0, run_id="r", journal=journal, limits=ShellLimits(cycles=4))
    assert (report.ended, report.detail, report.cycles) == ("limit", "cycles", 4)
    assert shell.resume("r", journal=journal).ended == "limit", "a look changes nothing"
    report = shell.resume("r", journal=journal, limits=ShellLimits(cycles=50))
    assert (report.ended, report.cycles) == ("accepted", 9)
    with pytest.raises(RunExists):
        shell.run(FACTS, run_id="r", journal=journal)
    with pytest.raises(UserError, match="another set of schedule"):
        ControlShell([kitchen()], resolver=First()).resume("r", journal=journal)


def test_a_limit_on_firings_is_kept_to_the_call() -> None:
    report = ControlShell([kitchen()], schedule=SCHEDULE).run(FACTS, seed=0, limits=ShellLimits(firings=2))
    assert (report.ended, report.detail, report.used["firings"]) == ("limit", "firings", 2)


def test_tokens_that_a_source_reports_count_against_the_limit() -> None:
    source = kitchen("cut serve")

    @source.fires("cook")
    def cook(firing: Firing) -> None:
        report_usage(tokens_in=60, tokens_out=5)
        firing.commit(firing.to_add[0])
        firing.add(firing.to_add[0]["x"], "is", "cooked")

    limits = ShellLimits(tokens=100)
    report = ControlShell([source], schedule=SCHEDULE, resolver=First()).run(FACTS, seed=0, limits=limits)
    assert (report.ended, report.detail) == ("limit", "tokens")
    assert report.used["tokens_in"] == 120


def test_a_run_cut_anywhere_ends_the_same_and_repeats_nothing() -> None:
    journal = MemoryJournal()
    shell = ControlShell([kitchen()], schedule=SCHEDULE, resolver=Trivial())
    whole = shell.run(FACTS, seed=4, run_id="r", journal=journal)
    records = [r for r in journal.read("r") if r.kind != "stop"]
    for cut in range(1, len(records)):
        again = MemoryJournal()
        token = again.create("r", "shell", records[0])
        for number, record in enumerate(records[1:cut], start=1):
            again.append("r", token, number, record)
        again.release("r", token, None)
        report = shell.resume("r", journal=again)
        assert report.trace == whole.trace
        assert report.facts == whole.facts
        assert report.used["firings"] == whole.used["firings"]


def test_the_journal_alone_gives_the_same_trace() -> None:
    journal = MemoryJournal()
    shell = ControlShell([kitchen()], schedule=SCHEDULE)
    report = shell.run(FACTS, seed=9, run_id="r", journal=journal)
    state = replay(shell.machine, journal.read("r")).state
    assert tuple(state.trace) == report.trace
    assert state.ended == "accepted"


def test_every_token_fires_on_its_own_and_at_once() -> None:
    source = kitchen("cut serve")
    at_work: list[int] = []
    together = 0

    @source.fires("cook", each=True)
    async def cook(firing: Firing) -> None:
        nonlocal together
        (token,) = firing.to_add
        at_work.append(1)
        together = max(together, len(at_work))
        await asyncio.sleep(0.01)
        at_work.pop()
        firing.commit(token)
        firing.add(token["x"], "is", "cooked")
        firing.add("meal", "has", firing.new_id("dish"))

    report = ControlShell([source], schedule=SCHEDULE, resolver=First()).run(FACTS, seed=0)
    assert report.ended == "accepted"
    assert together == 3
    assert [e["production"] for e in report.trace].count("cook") == 1
    dishes = {v for i, _, v in report.facts if i == "meal"}
    assert len(dishes) == 3, "ids made at the same time differ"


def test_tokens_to_remove_reach_logic_that_asks_for_them() -> None:
    source = KnowledgeSource("lamp", '((door is open) -> "light") ((<x> pushed <y>) -> "push")')
    undone = []

    @source.fires("light", removals=True)
    def light(firing: Firing) -> None:
        for token in firing.to_add:
            firing.commit(token)
            firing.add("lamp", "is", "on")
        for token in firing.to_remove:
            firing.commit(token)
            firing.retract("lamp", "is", "on")
            undone.append(token)

    @source.fires("push")
    def push(firing: Firing) -> None:
        firing.commit(*firing.to_add)
        firing.retract("door", "is", "open")

    shell = ControlShell([source], resolver=First())
    report = shell.run("(door is open) (bob pushed door)", seed=0)
    assert len(undone) == 1
    assert ("lamp", "is", "on") not in report.facts
    assert report.ended == "accepted"


def test_a_resolver_can_stop_the_run() -> None:
    def enough(conflict: Any) -> bool:
        return len(conflict.memory.query("(<x> is cooked)")) >= 2

    shell = ControlShell([kitchen()], schedule=SCHEDULE, resolver=StopWhen(enough, Priority({"cook": 1})))
    report = shell.run(FACTS, seed=0)
    assert (report.ended, report.cycles) == ("stopped", 4)
    free = ControlShell([kitchen()], resolver=StopWhen(enough, Priority({"cook": 1}))).run(FACTS, seed=0)
    assert (free.ended, free.detail) == ("accepted", "the resolver stopped the run")
    assert list(ending_lines(free)) == ["The run ended: accepted (the resolver stopped the run)"]


def test_a_router_can_resolve() -> None:
    router = FunctionRouter(lambda request: request.options[-1].id)
    shell = ControlShell([kitchen()], schedule=SCHEDULE, resolver=AskRouter(router, "cook a meal"))
    report = shell.run(FACTS, seed=0)
    assert report.ended == "accepted"
    assert router.requests[0].questions == ("cook a meal",)
    assert [option.id for option in router.requests[0].options] == ["cut", "cook"]


def test_a_router_that_says_nothing_or_nonsense_leaves_it_to_another_resolver() -> None:
    silent = ScriptedRouter([RouteDecision(unviable={"cut": "no"})] + [None] * 20)
    shell = ControlShell(
        [kitchen()], schedule=SCHEDULE, resolver=AskRouter(silent, "goal", otherwise=First())
    )
    report = shell.run(FACTS, seed=0)
    assert [e["production"] for e in report.trace][:2] == ["cut", "cook"]
    broken = ScriptedRouter([BadModelAnswer("no JSON")] * 99)
    shell = ControlShell(
        [kitchen()], schedule=SCHEDULE, resolver=AskRouter(broken, "goal", otherwise=First())
    )
    report = shell.run(FACTS, seed=0)
    assert report.ended == "accepted"
    assert any("the resolver failed (no JSON)" in entry["remark"] for entry in report.trace)


def test_a_resolver_that_chooses_what_was_not_offered_fails_the_run() -> None:
    class Wrong:
        def choose(self, conflict: Any) -> str:
            return "serve"

    report = ControlShell([kitchen()], schedule=SCHEDULE, resolver=Wrong()).run(FACTS, seed=0)
    assert report.ended == "failed"
    assert "which was not offered" in report.detail


def test_a_fact_that_cannot_be_fails_the_firing() -> None:
    source = kitchen("cook serve")

    @source.fires("cut")
    def cut(firing: Firing) -> None:
        firing.add("x", "is", float("nan"))

    report = ControlShell([source], schedule=SCHEDULE).run(FACTS, seed=0)
    assert report.ended == "failed"
    assert "numbers must be finite" in report.failures[0]["error"]


def test_inferences_apply_between_firings() -> None:
    shell = ControlShell(
        [kitchen()],
        inferences='((<n> <- #count(<x>)) from {(<x> is served)} (<n> = 3) -> (! meal is ready) "ready")',
        schedule=SCHEDULE,
    )
    report = shell.run(FACTS, seed=0)
    assert ("meal", "is", "ready") in report.facts
    assert report.trace[-1]["asserted"][-1] == "(meal is ready)"


def test_two_productions_of_one_name_are_refused() -> None:
    with pytest.raises(UserError, match="two knowledge sources"):
        ControlShell([kitchen(), kitchen()])
    with pytest.raises(UserError, match="has no production 'boil'"):
        kitchen().fires("boil")


def test_traces_are_json() -> None:
    import json

    report = ControlShell([kitchen()], schedule=SCHEDULE).run(FACTS, seed=0)
    assert json.loads(json.dumps(report.trace)) == list(report.trace)
    first: Mapping[str, Any] = report.trace[0]
    assert first["candidates"] == [{"production": "cut", "to_add": 3, "to_remove": 0, "leads_to": 2}]
    assert first["asserted"] == [value_text(("carrot", "is", "cut"))]
