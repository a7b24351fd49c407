"""Agents: what runs when, what failing does, events, questions, and what is kept."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
from metatree_agents.planner import Agents, Domain, Done, TaskContext
from metatree_agents.planner.agents._driver import Driving
from metatree_agents.planner.agents._machine import PlannerMachine
from metatree_agents.planner.agents.agents import AgentInfo
from metatree_agents.planner.agents.bodies import World
from metatree_agents.planner.agents.state import AgentOptions, AgentState
from metatree_agents.planner.domain.model import Action
from metatree_agents.planner.domain.network import Intent

from metatree import Node, Tree, UserError, tool
from metatree.durable import Attempt, Effect, Record, replay
from metatree.errors import RunExists, UnknownRun
from metatree.storage import postgres_store
from metatree.storage.store import Store
from metatree.testing.parts import ScriptedRouter
from metatree.tools.call_log import CallLog
from metatree.tools.tool import Tool


def _statuses(info: AgentInfo) -> dict[str, str]:
    return {one.goal[0]: one.status for one in info.intents}


def _ran(info: AgentInfo) -> list[str]:
    return [entry["action"] for entry in info.trace if entry["event"] == "active" and entry["action"]]


def test_unordered_tasks_overlap_in_time() -> None:
    """Trace 1: two unordered tasks overlap in time: each waits for the other to have begun."""
    domain = Domain()
    meet = threading.Barrier(2, timeout=20)

    @domain.task("left()")
    def left() -> int:
        return meet.wait()

    @domain.task("right()")
    async def right() -> None:
        await asyncio.to_thread(meet.wait)

    domain.rule("both()", subgoals=["left()", "right()"], order=False)
    with Agents(":memory:", domain) as agents:
        assert agents.run(agents.start("both()")).status == "complete"


def test_what_is_read_live_is_planned_after_what_supports_it() -> None:
    """Trace 2: A before B, B's precondition dynamic: B is not planned until A is complete."""
    domain = Domain()
    domain.relation("door", 1, dynamic=True)
    seen: list[list[str]] = []

    @domain.task("look()")
    def look(context: TaskContext) -> Done:
        info = agents.show(context.agent)
        seen.append([f"{one.goal[0]} {one.status}" for one in info.intents])
        return Done("seen", facts=[("door", "green")])

    @domain.task("enter()", when="(door ?colour)")
    def enter(colour: str) -> str:
        return f"through the {colour} door"

    domain.rule("all()", subgoals=["look()", "enter()"])
    with Agents(":memory:", domain) as agents:
        info = agents.run(agents.start("all()"))
    assert seen == [["all active", "look active", "enter deferred"]]
    assert info.status == "complete"
    assert [one.result for one in info.intents if one.goal == ("enter",)] == ["through the green door"]


def test_a_failing_task_fails_its_rule_and_its_top_level_goal() -> None:
    """Trace 9, first half."""
    with Agents(":memory:", _two_ways()) as agents:
        info = agents.run(agents.start("go()"))
    assert info.status == "failed"
    assert _statuses(info) == {"go": "failed", "prepare": "complete", "break_down": "failed"}
    assert "ValueError: flat tyre" in info.detail


def test_with_replan_the_second_rule_completes_it() -> None:
    """Trace 9, second half: what is complete is kept and not done again."""
    with Agents(":memory:", _two_ways()) as agents:
        info = agents.run(agents.start("go()", replan=True))
        explained = agents.explain(info.id)
    assert info.status == "complete"
    assert [action for action in _ran(info) if action != "go"] == [
        "cheap",
        "prepare",
        "break_down",
        "dear",
        "walk",
    ]
    assert ("cheap", "struck") in {(one["candidate"], one["verdict"]) for one in explained}


def _two_ways() -> Domain:
    domain = Domain()
    domain.rule("go()", name="cheap", cost=1, subgoals=["prepare()", "break_down()"])
    domain.rule("go()", name="dear", cost=2, subgoals=["prepare()", "walk()"])
    domain.task("prepare()")
    domain.task("walk()")

    @domain.task("break_down()")
    def break_down() -> None:
        raise ValueError("flat tyre")

    return domain


def test_replan_strikes_candidates_from_the_nearest_goal_up() -> None:
    domain = Domain()
    domain.rule("top()", name="first", cost=1, subgoals=["middle()"])
    domain.rule("top()", name="second", cost=2, subgoals=["good()"])
    domain.rule("middle()", name="a", cost=1, subgoals=["bad(a)"])
    domain.rule("middle()", name="b", cost=2, subgoals=["bad(b)"])
    domain.task("good()")

    @domain.task("bad(?x)")
    def bad(x: str) -> None:
        raise ValueError(x)

    with Agents(":memory:", domain) as agents:
        info = agents.run(agents.start("top()", replan=True))
    assert info.status == "complete"
    assert _ran(info) == ["first", "a", "bad", "b", "bad", "second", "good"]


def test_a_goal_that_is_planned_again_does_not_wait_for_what_follows_it() -> None:
    domain = Domain()
    domain.relation("lamp", 0)

    @domain.task("light()", name="match", cost=1, effect="(lamp)")
    def match() -> None:
        raise ValueError("wet")

    domain.task("light()", name="switch", cost=2, effect="(lamp)")
    domain.task("sleep()", when="(lamp)", effect="(not (lamp))")
    domain.rule("all()", subgoals=["light()", "sleep()"])
    with Agents(":memory:", domain) as agents:
        info = agents.run(agents.start("all()", replan=True))
    assert (info.status, _ran(info)) == ("complete", ["all", "match", "switch", "sleep"])


def test_a_task_is_tried_again_and_keeps_its_key() -> None:
    domain = Domain()
    attempts: list[tuple[int, str]] = []

    @domain.task("post()", attempts=3, backoff_s=0.0)
    def post(context: TaskContext) -> str:
        attempts.append((context.attempt, context.key))
        if len(attempts) < 3:
            raise ConnectionError("not now")
        return "sent"

    with Agents(":memory:", domain) as agents:
        info = agents.run(agents.start("post()"))
    assert info.result == "sent"
    assert [number for number, _ in attempts] == [1, 2, 3]
    assert len({key for _, key in attempts}) == 1


def test_a_precondition_is_checked_again_when_its_turn_comes() -> None:
    domain = Domain()
    domain.relation("free", 0, dynamic=True)
    open_now = [True]
    domain.reader("free")(lambda: [()] if open_now[0] else [])

    @domain.task("wait()")
    def wait() -> None:
        open_now[0] = False

    domain.task("park()", when="(free)")
    domain.rule("all()", subgoals=["wait()", "park()"], order=False)
    with Agents(":memory:", domain) as agents:
        info = agents.run(agents.start("all()", concurrency=1))
    assert info.status == "failed"
    assert "does not hold any more: (free)" in info.detail
    assert "park" not in _ran(info)


def test_a_result_becomes_a_fact() -> None:
    domain = Domain()
    domain.relation("age", 2, dynamic=True)

    @domain.task("learn(?who)", effect="(age ?who ?result)")
    def learn(who: str) -> int:
        return len(who)

    with Agents(":memory:", domain) as agents:
        assert agents.run(agents.start("learn(ann)")).facts == (("age", "ann", 3),)


def test_a_body_may_change_dynamic_relations_only() -> None:
    domain = Domain()
    domain.relation("fixed", 0)

    @domain.task("change()")
    def change() -> Done:
        return Done(facts=[("fixed",)])

    with Agents(":memory:", domain) as agents:
        info = agents.run(agents.start("change()"))
    assert info.status == "failed"
    assert "dynamic relations only" in info.detail


# Events -----------------------------------------------------------------------------------------------------------


def _gate(on_stuck: str = "wait") -> tuple[Domain, dict[str, Any]]:
    domain = Domain()
    domain.relation("open", 0, dynamic=True)
    domain.task("ring()")
    domain.task("enter()", when="(open)")
    domain.task("sing()")
    domain.rule("visit()", subgoals=["ring()", "enter()"])
    return domain, {"on_stuck": on_stuck}


def test_a_stuck_agent_fails_or_waits_for_an_event() -> None:
    domain, _ = _gate()
    with Agents(":memory:", domain) as agents:
        failed = agents.run(agents.start("visit()"))
        assert (failed.status, _statuses(failed)["enter"]) == ("failed", "failed")
        waits = agents.run(agents.start("visit()", on_stuck="wait"))
        assert (waits.status, _statuses(waits)["enter"]) == ("waiting", "deferred")
        assert agents.run(waits.id).status == "waiting"
        agents.event(waits.id, "facts", add=[["open"]])
        agents.work(until_idle=True)
        assert agents.show(waits.id).status == "complete"


def test_goals_are_asserted_cancelled_and_failed_from_outside() -> None:
    domain, options = _gate()
    with Agents(":memory:", domain) as agents:
        first = agents.run(agents.start("visit()", **options)).id
        agents.event(first, "assert", goal="sing()")
        agents.event(first, "cancel", goal="enter()")
        done = agents.run(first)
        assert (done.status, _statuses(done)) == (
            "complete",
            {"visit": "complete", "ring": "complete", "enter": "cancelled", "sing": "complete"},
        )
        second = agents.run(agents.start("visit()", **options)).id
        agents.event(second, "fail", goal="enter()", why="the house is gone")
        assert (agents.run(second).status, agents.show(second).detail) == (
            "failed",
            "enter(): the house is gone",
        )
        third = agents.run(agents.start("visit()", **options)).id
        agents.cancel(third)
        assert agents.run(third).status == "cancelled"
        with pytest.raises(UserError, match="has ended"):
            agents.cancel(third)


def test_events_that_cannot_be_heeded_are_refused() -> None:
    domain, options = _gate()
    domain.relation("fixed", 0)
    with Agents(":memory:", domain) as agents:
        agent = agents.run(agents.start("visit()", **options)).id
        for name, value, error in (
            ("shout", {}, "no event"),
            ("facts", {"add": [["nix"]]}, "no relation"),
            ("facts", {"add": [["fixed"]]}, "static"),
            ("facts", {"remove": [["open", 1]]}, "takes 0 arguments"),
            ("assert", {"goal": "nix()"}, "no rule and no task"),
            ("cancel", {"goal": "nix()"}, "has no goal"),
        ):
            with pytest.raises(UserError, match=error):
                agents.event(agent, name, **value)
        with pytest.raises(UnknownRun):
            agents.event("nobody", "facts")


def test_an_event_that_comes_twice_creates_one_agent() -> None:
    domain, _ = _gate()
    with Agents(":memory:", domain) as agents:
        agents.start("sing()", id="order-17")
        with pytest.raises(RunExists, match="there is an agent 'order-17' already: go on with it"):
            agents.start("sing()", id="order-17")
        with pytest.raises(UserError, match="no rule and no task reaches the goal 'dance'"):
            agents.start("dance()")
        with pytest.raises(UserError, match="no fact of the domain"):
            agents.start("sing()", facts=[("open", 1)])
        with pytest.raises(UserError, match=r"'sing' with 1 arguments is reached by nothing: write sing\(\)"):
            agents.start("sing(loudly)")
        with pytest.raises(UserError, match=r"write sing\(\)"):
            agents.event("order-17", "assert", goal="sing(loudly)")
        with pytest.raises(UserError, match=r"write sing\(\)"):
            agents.schedule("mornings", "0 6 * * *", "sing(loudly)")


def test_an_agent_that_is_not_there_is_told_by_that_name() -> None:
    domain, _ = _gate()
    with Agents(":memory:", domain) as agents:
        for call in (agents.run, agents.show, agents.explain, agents.cancel, agents.retry):
            with pytest.raises(UnknownRun, match="no agent is called 'order-18': `metatree goals list`"):
                call("order-18")


def test_a_subgoal_with_arguments_that_nothing_takes_is_told_when_the_library_is_read() -> None:
    domain = Domain("choir")
    domain.task("sing()")
    domain.rule("concert()", subgoals=["sing(loudly)"])
    with pytest.warns(
        UserWarning, match=r"rule 'concert': the goal 'sing' with 1 arguments .* write sing\(\)"
    ):
        domain.check()


# Idempotency keys -------------------------------------------------------------------------------------------------


def test_two_tasks_of_one_agent_have_different_keys_also_for_equal_goals() -> None:
    domain = Domain()
    keys: list[tuple[str, str]] = []

    @domain.task("post(?letter)")
    def post(letter: str, context: TaskContext) -> None:
        keys.append((letter, context.key))

    domain.goal("post", again=True)
    domain.rule("morning()", subgoals=["post(one)", "post(two)", "post(one)"])
    with Agents(":memory:", domain) as agents:
        for agent in ("a", "b"):
            assert agents.run(agents.start("morning()", id=agent)).status == "complete"
    assert [letter for letter, _ in keys] == ["one", "two", "one"] * 2
    assert len({key for _, key in keys}) == 6, keys


def test_a_task_has_the_same_key_at_every_attempt_and_in_every_process() -> None:
    domain = Domain()
    keys: dict[str, list[str]] = {"left": [], "right": []}

    @domain.task("left()", attempts=2)
    def left(context: TaskContext) -> None:
        keys["left"].append(context.key)
        if context.attempt == 1:
            raise ValueError("not yet")

    @domain.task("right()")
    async def right(context: TaskContext) -> None:
        keys["right"].append(context.key)
        if len(keys["right"]) == 1:
            raise _Died

    domain.rule("both()", subgoals=["left()", "right()"])
    store = Store.open(":memory:")
    first = Agents(store, domain)
    agent = first.start("both()")
    with pytest.raises(_Died):
        first.run(agent)
    second = Agents(store, domain)
    second.journal.reopen(agent)
    assert second.run(agent).status == "complete"
    assert [len(attempts) for attempts in keys.values()] == [2, 2]
    assert len(set(keys["left"])) == len(set(keys["right"])) == 1
    assert set(keys["left"]).isdisjoint(keys["right"])


class _Died(BaseException):
    """Stands for the end of a process."""


# Persons ----------------------------------------------------------------------------------------------------------


def test_a_question_waits_for_its_answer() -> None:
    domain = Domain()
    domain.relation("said", 2, dynamic=True)
    domain.task("ask(?what)", does={"ask": "May ?what be sold?"}, effect="(said ?what ?result)")

    @domain.task("sell(?what)", when="(said ?what yes)")
    def sell(what: str) -> str:
        return f"sold {what}"

    domain.rule("clear(?what)", subgoals=["ask(?what)", "sell(?what)"])
    with Agents(":memory:", domain) as agents:
        info = agents.run(agents.start("clear(piano)"))
        assert (info.status, info.questions) == ("waiting", ("May piano be sold?",))
        assert agents.board is not None
        (question,) = agents.board.open_questions()
        agents.board.answer(question.id, "yes")
        agents.work(until_idle=True)
        done = agents.show(info.id)
        assert done.status == "complete"
        assert done.intents[-1].result == "sold piano"


def test_a_question_is_on_the_board_of_the_store_for_other_processes(tmp_path: Path) -> None:
    domain = Domain()
    domain.task("ask()", does={"ask": "May it be sold?"})
    with Agents(tmp_path / "agents.db", domain) as agents:
        agent = agents.start("ask()")
        agents.work(until_idle=True)
        assert agents.show(agent).status == "waiting"
        code = "(q,) = board.open_questions(); board.answer(q.id, 'to ' + q.get_value('question'))"
        script = f"import sys; from metatree import Blackboard; board = Blackboard(sys.argv[1]); {code}"
        subprocess.run([sys.executable, "-c", script, tmp_path / "agents.db"], check=True)
        agents.work(until_idle=True)
        assert agents.show(agent).result == "to May it be sold?"


def test_an_answer_that_comes_while_answers_are_passed_on_is_passed_on_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    domain = Domain()
    domain.task("ask(?what)", does={"ask": "May ?what be sold?"})
    with Agents(":memory:", domain) as agents:
        ids = [agents.start(("ask", what)) for what in ("piano", "lamp")]
        agents.work(until_idle=True)
        board = agents.board
        assert board is not None
        first, second = board.open_questions()
        board.answer(first.id, "yes")
        looked_up = board.changes

        def changes(*args: Any, **which: Any) -> Any:
            found = looked_up(*args, **which)
            if not board.get(second.id).get_value("answer"):
                board.answer(second.id, "yes")
            return found

        monkeypatch.setattr(board, "changes", changes)
        agents.work(until_idle=True)
        assert [agents.show(one).status for one in ids] == ["complete", "complete"]


def _interrupted(store: Store, domain: Domain) -> Agents:
    """Return agents, one of which died after its body was begun."""
    agents = Agents(store, domain)
    agents.start("pay()", id="a")
    journal = agents.journal
    token = journal.acquire("a")
    records = journal.read("a")
    planned = replay(PlannerMachine(), records)
    driving = Driving("a", agents.world, planned.state.library)
    (plan,) = planned.pending.values()
    value = asyncio.run(driving._plan(plan, Attempt(1, "")))
    journal.append("a", token, 1, Record("outcome", 1.0, plan.id, {"=": value}))
    (task,) = replay(PlannerMachine(), journal.read("a")).pending.values()
    journal.append("a", token, 2, Record("start", 2.0, task.id, {"attempt": 1}))
    journal.release("a", token, None)
    return agents


@pytest.mark.parametrize(
    ("answer", "status", "runs"), [("yes", "complete", 0), ("no", "complete", 1), ("fail", "failed", 0)]
)
def test_an_interrupted_body_that_may_not_happen_twice_is_put_to_a_person(
    answer: str, status: str, runs: int
) -> None:
    domain = Domain()
    paid: list[int] = []

    @domain.task("pay()", repeatable=False)
    def pay(context: TaskContext) -> None:
        paid.append(context.attempt)

    agents = _interrupted(Store.open(":memory:"), domain)
    info = agents.run("a")
    assert (info.status, paid) == ("waiting", [])
    assert "Did it happen?" in info.questions[0]
    assert agents.board is not None
    agents.answer(agents.board.open_questions()[0].id, answer)
    assert agents.run("a").status == status
    assert len(paid) == runs


def test_an_interrupted_body_that_may_be_repeated_is_run_again() -> None:
    domain = Domain()
    paid: list[int] = []

    @domain.task("pay()")
    def pay(context: TaskContext) -> None:
        paid.append(context.attempt)

    assert _interrupted(Store.open(":memory:"), domain).run("a").status == "complete"
    assert paid == [2]


# Bodies of other kinds, and the board --------------------------------------------------------------------------------


def test_a_task_is_a_tree_search() -> None:
    tree = Tree.create(":memory:")
    tree.add(
        Node(id="a", title="Login", description="tokens", content="Tokens live for one hour."),
        parent=tree.root,
    )
    domain = Domain()
    domain.relation("known", 2, dynamic=True)
    domain.task("learn(?what)", does={"search": "How long do ?what live?", "into": "known"})
    router = ScriptedRouter(["a"])
    with Agents(":memory:", domain, tree=tree, search_options={"router": router}) as agents:
        info = agents.run(agents.start("learn(tokens)"))
    assert info.status == "complete", info.detail
    assert "one hour" in info.facts[0][2]
    nothing = Agents(":memory:", domain)
    assert "none was given" in nothing.run(nothing.start("learn(tokens)")).detail


def test_planning_and_searches_leave_the_event_loop_free() -> None:
    """A body that ends while a thread plans is heeded, and what was planned meanwhile still holds."""
    tree = Tree.create(":memory:")
    tree.add(Node(id="a", title="Login", content="Tokens live for one hour."), parent=tree.root)
    domain = Domain()
    domain.relation("looked", 0, dynamic=True)
    planning, ended = threading.Event(), threading.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    @domain.task("look()")
    def look() -> Done:
        return Done(facts=[("looked",)])

    @domain.task("walk()")
    async def walk() -> str:
        loops.append(asyncio.get_running_loop())
        while not planning.is_set():
            await asyncio.sleep(0.01)
        return "walked"

    @domain.task("tell()")
    def tell() -> None:
        ended.set()

    domain.task("learn(?what)", does={"search": "How long do ?what live?"})
    for name in ("quick", "slow"):
        domain.rule("go()", name=name, when="(looked)", subgoals=["learn(tokens)"])
    domain.rule("move()", subgoals=["walk()", "tell()"])
    domain.rule("find()", subgoals=["look()", "go()"])
    domain.rule("both()", subgoals=["move()", "find()"], order=False)

    def order(goal: Any, candidates: Any) -> Any:
        planning.set()
        assert ended.wait(20)
        return candidates

    options = {"on_event": lambda _: loops.append(asyncio.get_running_loop())}
    with Agents(":memory:", domain, tree=tree, order=order, search_options=options) as agents:
        info = agents.run(agents.start("both()"))
    assert info.status == "complete", info.detail
    assert {one.status for one in info.intents} == {"complete"}
    walked, *searched = loops
    assert searched and walked not in searched


def test_a_plan_is_made_of_the_agent_as_it_was_when_planning_began() -> None:
    domain = Domain()
    domain.relation("place", 1)
    for name in ("quick", "slow"):
        domain.task("go(?to)", name=name, when="(place ?to)")
    domain.task("rest()")
    domain.rule("day()", subgoals=["rest()", "go(?to)"], order=False)
    library = domain.library
    day = Intent(1, ("day",), kind="rule", action="day", status="active")
    rest = Intent(2, ("rest",), 1, kind="task", action="rest", status="pending")
    state = AgentState(("day",), library, AgentOptions(), {1: day, 2: rest, 3: Intent(3, ("go", "sea"), 1)})
    state.facts["place"] = {("sea",)}

    def order(goal: Any, candidates: Any) -> Any:  # what the event loop does meanwhile
        state.put(rest, status="complete")
        state.network[4] = Intent(4, ("go", "hill"))
        state.facts["place"].clear()
        return candidates

    driving = Driving("a", World(domain), library, order)
    made = asyncio.run(driving._plan(Effect(1, "plan", {"state": state}), Attempt(1, "")))
    assert (made["ended"], [one["id"] for one in made["intents"]]) == ("planned", [3])


def test_a_task_is_a_tool_call_that_is_made_once() -> None:
    calls: list[str] = []

    @tool(kind="exploratory")
    def weigh(thing: str) -> str:
        """Weigh a thing."""
        calls.append(thing)
        return f"{len(thing)} kg"

    domain = Domain()
    domain.relation("weight", 2, dynamic=True)
    domain.task("weigh(?x)", does={"tool": "weigh", "arguments": {"thing": "?x"}, "into": "weight"})
    store = Store.open(":memory:")
    agents = Agents(store, domain, tools=[weigh])
    assert isinstance(agents.world.calls, CallLog)
    for _ in range(2):
        assert agents.run(agents.start("weigh(piano)")).facts == (("weight", "piano", "5 kg"),)
    assert calls == ["piano"]
    without = Agents(Store.open(":memory:"), domain)
    assert "which was not given" in without.run(without.start("weigh(piano)")).detail


class Killed(BaseException):
    """Stands for the end of the process."""


def _mailing(sent: list[str], **options: Any) -> tuple[Domain, Tool]:
    @tool(kind="exploratory", **{"changes": True, **options})
    def mail(to: str) -> str:
        """Send a letter."""
        sent.append(to)
        return f"sent to {to}"

    domain = Domain()
    domain.relation("said", 2, dynamic=True)
    domain.task("mail(?who)", does={"tool": "mail", "arguments": {"to": "?who"}, "into": "said"})
    domain.rule("thrice()", subgoals=["mail(ann)", "mail(ann)", "mail(bob)"])
    domain.goal("mail", again=True)
    return domain, mail


def test_a_tool_that_changes_something_is_called_once_for_each_intent() -> None:
    sent: list[str] = []
    domain, mail = _mailing(sent)
    agents = Agents(":memory:", domain, tools=[mail], permit=lambda *_: True)
    for name in ("one", "two", "three"):
        assert agents.run(agents.start("mail(ann)", id=name)).facts == (("said", "ann", "sent to ann"),)
    assert sent == ["ann"] * 3
    assert agents.run(agents.start("thrice()")).status == "complete"
    assert sent[3:] == ["ann", "ann", "bob"]


def test_agents_of_one_name_in_two_stores_are_two_agents() -> None:
    sent: list[str] = []
    domain, mail = _mailing(sent)
    tree = Tree.create(":memory:")
    for _ in range(2):
        with Agents(":memory:", domain, tools=[mail], tree=tree, permit=lambda *_: True) as agents:
            agents.run(agents.start("mail(ann)", id="daily"))
    assert sent == ["ann", "ann"]


def test_a_result_that_is_reused_says_so_in_the_trace_and_on_the_board() -> None:
    sent: list[str] = []
    domain, look = _mailing(sent, changes=False)
    agents = Agents(":memory:", domain, tools=[look])
    agents.run(agents.start("mail(ann)", id="one"))
    info = agents.run(agents.start("mail(ann)", id="two"))
    assert sent == ["ann"]
    details = [str(entry["detail"]) for entry in info.trace if entry["event"] == "complete"]
    assert details[0].startswith("mail was not called: this call was made before, by run one on 2")
    assert agents.board is not None
    lines = [
        item.data["action_representation"] for item in agents.board.items(run="two", sections="trajectories")
    ]
    assert any(details[0] in line for line in lines)


@pytest.mark.parametrize(("answer", "times"), [("yes", 1), ("no", 2), ("fail", 1)])
def test_a_change_that_was_cut_off_is_repeated_when_a_person_says_so_alone(answer: str, times: int) -> None:
    sent: list[str] = []
    domain, mail = _mailing(sent)
    agents = Agents(":memory:", domain, tools=[mail], permit=lambda *_: True)
    calls = agents.world.calls
    assert calls is not None
    dead = MagicMock(wraps=calls)  # the call has happened, and nothing of it is written any more
    dead.make = partial(CallLog.make, dead)
    dead.keep.side_effect = dead.unconfirmed.side_effect = dead.drop.side_effect = Killed
    agents.world.calls = dead
    agents.start("mail(ann)", id="a")
    with pytest.raises(Killed):
        agents.run("a")
    agents.world.calls = calls
    for _ in range(2):
        info = agents.run("a")
        assert (info.status, sent) == ("waiting", ["ann"])
    assert agents.board is not None
    agents.answer(agents.board.open_questions()[0].id, answer)
    assert agents.run("a").status == ("failed" if answer == "fail" else "complete")
    assert len(sent) == times


def test_relations_goals_and_intents_are_readable_on_the_board() -> None:
    domain, options = _gate()
    with Agents(":memory:", domain) as agents:
        agents.run(agents.start("visit()", id="a", **options))
        board = agents.board
        assert board is not None
        goals = board.get("a:goals").data["goals"]
        assert [(one["goal"], one["status"]) for one in goals] == [
            ("visit()", "active"),
            ("ring()", "complete"),
            ("enter()", "deferred"),
        ]
        agents.event("a", "facts", add=[["open"]])
        agents.run("a")
        assert board.get("a:relations").data["facts"] == ["open()"]
        assert [one["status"] for one in board.get("a:intents").data["intents"]] == ["complete"] * 3
        steps = [item.data["action_representation"] for item in board.trajectories]
        assert steps[0].startswith("planned")
        assert steps[-1] == "end complete"


def test_a_proposed_rule_is_checked_tried_and_kept_with_its_provenance() -> None:
    domain = Domain()
    domain.relation("hungry", 0)
    domain.task("cook()", when="(hungry)")
    domain.task("eat()", effect="(not (hungry))")
    domain.task("sleep()", when="(not (hungry))")
    reasons: list[str] = []

    def propose(goal: Any, library: Any, why: str) -> list[Action]:
        reasons.append(why)
        made = {"kind": "rule", "goal": goal[0], "terms": (), "provenance": {"by": "a test"}}
        return [
            Action("unknown", subgoals=(("fly",),), **made),
            Action("fails", subgoals=(("sleep",),), **made),
            Action("with a body", does={"function": True}, **made),
            Action("works", subgoals=(("cook",), ("eat",)), order=((0, 1),), **made),
        ]

    with Agents(":memory:", domain, propose=propose) as agents:
        info = agents.run(agents.start("dine()", facts=[("hungry",)]))
        assert info.status == "complete", info.detail
        actions = replay(PlannerMachine(), agents.journal.read(info.id)).state.library.actions
    assert "no rule and no task is declared" in reasons[0]
    assert set(actions) == {"cook", "eat", "sleep", "works"}
    assert actions["works"].provenance["by"] == "a test"
    assert actions["works"].provenance["proposed_for"] == ["dine"]


def test_a_process_without_the_functions_leaves_an_agent_alone() -> None:
    domain = Domain()

    @domain.task("greet()")
    def greet() -> str:
        return "hello"

    store = Store.open(":memory:")
    agent = Agents(store, domain).start("greet()")
    bare = Agents(store)
    with pytest.raises(UserError, match="needs functions"):
        bare.run(agent)
    bare.work(until_idle=True)
    assert Agents(store, domain).run(agent).result == "hello"


def test_a_journal_is_closed_when_the_tool_calls_cannot_be_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    journal = MagicMock(spec_set=["close"])
    opened = MagicMock(side_effect=[journal, UserError("cannot use it")])
    monkeypatch.setattr(postgres_store, "PostgresStore", opened)
    with pytest.raises(UserError, match="cannot use it"):
        Agents("postgresql://nobody@localhost:1/none", board=False)
    journal.close.assert_called_once_with()
