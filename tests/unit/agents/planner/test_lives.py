"""What becomes of agents: timeouts, children, messages, cancelling, undoing, trying again, versions, heartbeats."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from metatree_agents.planner import Agents, Domain, TaskContext
from metatree_agents.planner.agents.agents import AgentInfo

from metatree import UserError
from metatree.errors import RunExists
from metatree.storage.store import Store


def _statuses(info: AgentInfo) -> dict[str, str]:
    return {one.goal[0]: one.status for one in info.intents}


def _events(info: AgentInfo, *names: str) -> list[str]:
    return [f"{entry['event']} {entry['goal'][0]}" for entry in info.trace if entry["event"] in names]


class _Died(BaseException):
    """Stands for the end of a process."""


# Timeouts and deadlines -------------------------------------------------------------------------------------------


def _slow() -> Domain:
    domain = Domain("slow")
    domain.task("nap()", does={"sleep": 3600})

    @domain.task("work()")
    async def work() -> None:
        await asyncio.Event().wait()

    domain.task("other()")
    domain.rule("day()", name="long", cost=1, subgoals=["nap()"])
    domain.rule("day()", name="short", cost=2, subgoals=["other()"])
    domain.rule("toil()", subgoals=["work()"])
    return domain


@pytest.mark.parametrize("goal", ["day()", "toil()"])
def test_a_goal_that_takes_too_long_fails_and_what_is_at_work_for_it_is_called_off(goal: str) -> None:
    domain = _slow()
    domain.goal(goal[:-2], timeout_s=0.2)
    with Agents(":memory:", domain) as agents:
        info = agents.run(agents.start(goal))
    assert (info.status, info.detail) == ("failed", f"{goal}: it took too long: over 0.2 s")
    assert set(_statuses(info).values()) == {"failed", "cancelled"}


def test_a_goal_that_takes_too_long_is_reached_in_another_way_with_replan() -> None:
    domain = _slow()
    domain.goal("nap", timeout_s=0.1)
    with Agents(":memory:", domain) as agents:
        info = agents.run(agents.start("day()", replan=True))
    assert (info.status, _statuses(info)) == ("complete", {"day": "complete", "other": "complete"})


def test_an_agent_has_a_timeout_or_a_deadline() -> None:
    with Agents(":memory:", _slow()) as agents:
        timed: list[dict[str, Any]] = [{"timeout_s": 0.2}, {"deadline": "2020-01-01T00:00:00+00:00"}]
        for settings in timed:
            info = agents.run(agents.start("day()", **settings))
            assert (info.status, info.detail) == ("failed", "day(): it has not ended in time")
        assert agents.run(agents.start("other()", timeout_s=60)).status == "complete"
        for settings, says in (
            ({"timeout_s": 0}, "above 0"),
            ({"timeout_s": float("nan")}, "a finite number"),
            ({"deadline": "tomorrow"}, "with its zone"),
            ({"deadline": "2026-12-01T08:00:00"}, "with its zone"),
        ):
            with pytest.raises(UserError, match=says):
                agents.start("day()", **settings)


def test_a_deadline_wakes_an_agent_that_waits_for_a_person() -> None:
    domain = Domain("asks")
    domain.task("ask()", does={"ask": "Really?"})
    with Agents(":memory:", domain) as agents:
        agent = agents.start("ask()", timeout_s=1.5)
        assert agents.run(agent).status == "waiting", "it is not waited for in the process"
        agents.work(stop=lambda: agents.show(agent).status != "waiting", poll_s=0.05)
        assert agents.show(agent).status == "failed"


# Children ---------------------------------------------------------------------------------------------------------


def _family() -> Domain:
    domain = Domain("family")
    domain.relation("at", 1)

    @domain.task("double(?n)", when="(at ?where)")
    def double(n: int, where: str) -> Any:
        if n < 0:
            raise ValueError("below zero")
        return [2 * n, where]

    domain.task("child(?n)", does={"agent": "double(?n)", "facts": ["at(home)"]})
    domain.task("nap()", does={"sleep": 3600})
    domain.task("napping()", does={"agent": "nap()"})
    domain.rule("both()", subgoals=["child(1)", "child(2)"], order=False)
    return domain


def test_an_agent_waits_for_its_children_and_has_their_results() -> None:
    with Agents(":memory:", _family()) as agents:
        info = agents.run(agents.start("both()", id="p"))
        assert info.status == "complete"
        assert {one.goal: one.result for one in info.intents if one.goal[0] == "child"} == {
            ("child", 1): [2, "home"],
            ("child", 2): [4, "home"],
        }
        children = sorted(one[0] for one in agents.all() if one[0] != "p")
        assert len(children) == 2
        assert all(one.startswith("p.") and agents.show(one).parent == "p" for one in children)
        failed = agents.run(agents.start("child(-1)"))
        assert failed.status == "failed"
        assert "ended failed: double(-1): ValueError: below zero" in failed.detail


def test_children_are_driven_by_whoever_works(tmp_path: Path) -> None:
    with Agents(tmp_path / "a.db", _family()) as agents:
        agent = agents.start("both()")
        agents.work(until_idle=True, at_once=1)
        assert agents.show(agent).status == "complete"


def test_a_child_is_cancelled_with_its_parent() -> None:
    with Agents(":memory:", _family()) as agents:
        agent = agents.start("napping()", id="p")
        agents.work(until_idle=True)
        (child,) = agents.show(agent).children
        assert agents.show(agent).waits == {1: f"agent {child}"}
        assert agents.show(child).status == "waiting"
        agents.cancel(agent)
        agents.work(until_idle=True)
        assert (agents.show(agent).status, agents.show(child).status) == ("cancelled", "cancelled")


def test_a_child_that_was_begun_by_a_process_that_died_is_begun_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = Store.open(":memory:")
    first = Agents(store, _family())
    agent = first.start("child(3)", id="p")
    create = first.journal.create

    def dies(*given: Any) -> int:
        token = create(*given)
        first.journal.release(given[0], token, None)
        raise _Died

    monkeypatch.setattr(first.journal, "create", dies)
    with pytest.raises(_Died):
        first.run(agent)
    second = Agents(store, _family())
    second.journal.reopen(agent)
    second.work(until_idle=True)
    assert second.show(agent).result == [6, "home"]
    assert len(list(second.all())) == 2


# Messages ---------------------------------------------------------------------------------------------------------


def _paying() -> Domain:
    domain = Domain("paying")
    domain.relation("paid", 2, dynamic=True)
    domain.task("wait(?order)", does={"receive": "paid ?order"}, effect="(paid ?order ?result)")
    domain.rule("sell(?order)", subgoals=["wait(?order)"])
    return domain


def test_a_message_is_the_result_of_the_task_that_waits_for_it() -> None:
    with Agents(":memory:", _paying()) as agents:
        agent = agents.run(agents.start("sell(17)")).id
        assert agents.show(agent).waits == {2: "a message 'paid 17'"}
        agents.send(agent, "paid 18", 1)
        assert agents.run(agent).status == "waiting"
        agents.send(agent, "paid 17", 250)
        done = agents.run(agent)
        assert (done.status, done.facts) == ("complete", (("paid", 17, 250),))


def test_a_message_that_comes_early_is_kept() -> None:
    with Agents(":memory:", _paying()) as agents:
        agent = agents.start("sell(17)")
        agents.send(agent, "paid 17", {"euros": 3})
        assert agents.run(agent).intents[-1].result == {"euros": 3}


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [("", 1, "which message"), ("a", {1, 2}, "no JSON"), ("a", "x" * 2_000_000, "send 1000000 at most")],
)
def test_a_message_that_is_none_is_refused(name: str, value: Any, says: str) -> None:
    with Agents(":memory:", _paying()) as agents:
        agent = agents.start("sell(17)")
        with pytest.raises(UserError, match=says):
            agents.send(agent, name, value)


# Cancelling -------------------------------------------------------------------------------------------------------


def test_a_coroutine_is_cancelled_when_its_goal_is_and_the_agent_goes_on(tmp_path: Path) -> None:
    domain, seen = Domain("two"), []
    begun = threading.Event()

    @domain.task("dig()")
    async def dig() -> None:
        begun.set()
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    domain.task("rest()")
    domain.rule("both()", subgoals=["dig()", "rest()"])
    with Agents(tmp_path / "a.db", domain, lease_s=0.6) as agents:
        agent = agents.start("both()")

        def cancel() -> None:
            begun.wait()
            with Agents(tmp_path / "a.db", domain) as others:
                others.event(agent, "cancel", goal="dig()")

        thread = threading.Thread(target=cancel)
        thread.start()
        info = agents.run(agent)
        thread.join()
    assert seen == ["cancelled"]
    assert (info.status, _statuses(info)["dig"], _statuses(info)["rest"]) == (
        "complete",
        "cancelled",
        "complete",
    )


def test_when_a_task_fails_those_beside_it_are_cancelled() -> None:
    domain = Domain("two")
    begun = threading.Event()

    @domain.task("dig()")
    async def dig() -> None:
        begun.set()
        await asyncio.sleep(3600)

    @domain.task("break()")
    async def break_() -> None:
        await asyncio.to_thread(begun.wait)
        raise ValueError("broken")

    domain.rule("both()", subgoals=["dig()", "break()"], order=False)
    with Agents(":memory:", domain) as agents:
        info = agents.run(agents.start("both()"))
    assert (info.status, _statuses(info)["dig"]) == ("failed", "cancelled")


# Undoing ----------------------------------------------------------------------------------------------------------


def _trip(ledger: list[str], fails: str = "") -> Domain:
    domain = Domain("trip")
    domain.relation("booked", 1)

    def act(what: str) -> str:
        if what == fails:
            raise ValueError(f"no {what}")
        ledger.append(what)
        return f"number of {what}"

    @domain.task("book(?what)", effect="(booked ?what)", undo="release(?what, ?result)")
    def book(what: str) -> str:
        return act(f"book {what}")

    @domain.task(
        "release(?what, ?number)",
        when="(booked ?what)",
        effect="(not (booked ?what))",
        attempts=2,
        backoff_s=0,
    )
    def release(what: str, number: str) -> None:
        act(f"release {what} {number}")

    domain.task("nap()", does={"sleep": 3600})
    domain.rule("travel()", subgoals=["book(train)", "book(hotel)", "book(boat)"])
    domain.rule("wait()", subgoals=["book(train)", "book(hotel)", "nap()"])
    return domain


UNDONE = [
    "book train",
    "book hotel",
    "release hotel number of book hotel",
    "release train number of book train",
]


def test_what_was_done_is_undone_the_last_first_when_an_agent_fails() -> None:
    ledger: list[str] = []
    with Agents(":memory:", _trip(ledger, "book boat")) as agents:
        info = agents.run(agents.start("travel()"))
        assert ledger == UNDONE
        assert (info.status, info.facts) == ("failed", ())
        assert _events(info, "undo") == ["undo release", "undo release"]
        with pytest.raises(UserError, match="was undone: start another"):
            agents.retry(info.id)


def test_what_was_done_is_undone_when_an_agent_is_cancelled() -> None:
    ledger: list[str] = []
    with Agents(":memory:", _trip(ledger)) as agents:
        agent = agents.start("wait()")
        agents.work(until_idle=True)
        agents.cancel(agent)
        assert agents.run(agent).status == "cancelled"
    assert ledger == UNDONE


def test_what_cannot_be_undone_is_said_and_the_rest_is_undone() -> None:
    ledger: list[str] = []
    with Agents(":memory:", _trip(ledger, "release hotel number of book hotel")) as agents:
        agent = agents.start("wait()")
        agents.work(until_idle=True)
        agents.cancel(agent)
        info = agents.run(agent)
    assert ledger == ["book train", "book hotel", "release train number of book train"]
    assert (info.status, info.facts) == ("cancelled", (("booked", "hotel"),))
    assert "not undone: release(hotel, number of book hotel): ValueError" in info.detail


def test_what_succeeds_is_not_undone() -> None:
    ledger: list[str] = []
    with Agents(":memory:", _trip(ledger)) as agents:
        assert agents.run(agents.start("travel()")).status == "complete"
    assert ledger == ["book train", "book hotel", "book boat"]


def test_a_body_that_was_cancelled_at_work_is_undone_since_it_may_have_happened() -> None:
    domain, ledger, begun = Domain("one"), [], threading.Event()

    @domain.task("pay()", undo="refund(?result)")
    async def pay() -> None:
        begun.set()
        await asyncio.sleep(3600)

    @domain.task("refund(?number)")
    def refund(number: object) -> None:
        ledger.append(number)

    @domain.task("break()")
    async def break_() -> None:
        await asyncio.to_thread(begun.wait)
        raise ValueError("broken")

    domain.rule("both()", subgoals=["pay()", "break()"], order=False)
    with Agents(":memory:", domain) as agents:
        assert agents.run(agents.start("both()")).status == "failed"
    assert ledger == [None]


def test_a_function_at_work_that_can_be_undone_is_waited_for() -> None:
    domain, ledger, begun = Domain("one"), [], threading.Event()

    @domain.task("pay()", undo="refund(?result)")
    def pay(context: TaskContext) -> str:
        begun.set()
        while not context.cancelled:
            time.sleep(0.01)
        ledger.append("paid")
        return "receipt"

    @domain.task("refund(?number)")
    def refund(number: str) -> None:
        ledger.append(f"refund {number}")

    @domain.task("break()")
    def break_() -> None:
        begun.wait()
        raise ValueError("broken")

    domain.rule("both()", subgoals=["pay()", "break()"], order=False)
    with Agents(":memory:", domain) as agents:
        assert agents.run(agents.start("both()")).status == "failed"
    assert ledger == ["paid", "refund receipt"]


def test_what_nothing_undoes_is_refused_when_it_is_defined() -> None:
    domain = Domain("bad")
    domain.task("pay()", undo="refund()")
    with pytest.raises(UserError, match="no rule or task reaches 'refund', which undoes it"):
        domain.check()
    domain = Domain("bad")
    domain.task("refund(?x)")
    domain.task("pay()", undo="refund(?who)")
    with pytest.raises(UserError, match=r"undo: \?who has no value"):
        domain.check()


# Trying again -----------------------------------------------------------------------------------------------------


def test_an_agent_that_failed_is_tried_again_and_keeps_what_is_complete() -> None:
    domain, runs = Domain("again"), []

    @domain.task("first()")
    def first() -> None:
        runs.append("first")

    @domain.task("second()")
    def second() -> str:
        runs.append("second")
        if runs.count("second") == 1:
            raise ValueError("not yet")
        return "done"

    domain.task("third()")
    domain.rule("all()", subgoals=["first()", "second()", "third()"])
    with Agents(":memory:", domain) as agents:
        info = agents.run(agents.start("all()"))
        assert info.status == "failed"
        with pytest.raises(UserError, match="has ended"):
            agents.cancel(info.id)
        agents.retry(info.id)
        assert agents.show(info.id).status == "running"
        agents.work(until_idle=True)
        info = agents.show(info.id)
        assert (info.status, set(_statuses(info).values())) == ("complete", {"complete"})
        assert runs == ["first", "second", "second"]
        with pytest.raises(UserError, match=r"it has ended \(complete\)"):
            agents.retry(info.id)
        with pytest.raises(UserError, match="has not ended"):
            agents.retry(agents.start("all()"))


def test_an_agent_without_a_plan_is_tried_again() -> None:
    domain = Domain("again")
    domain.relation("open", 0, dynamic=True)
    is_open: list[tuple[()]] = []
    domain.reader("open")(lambda: is_open)
    domain.task("enter()", when="(open)")
    with Agents(":memory:", domain) as agents:
        info = agents.run(agents.start("enter()", replan=True))
        assert info.status == "failed"
        is_open.append(())
        agents.retry(info.id)
        assert agents.run(info.id).status == "complete"


# Keys of goals that were planned again ----------------------------------------------------------------------------


def test_a_goal_of_another_way_has_a_key_of_its_own() -> None:
    domain, keys = Domain("ways"), []
    for number in (1, 2):
        domain.rule("top()", name=f"way{number}", cost=number, subgoals=[f"do({number})"])

    @domain.task("do(?n)")
    def do(n: int, context: TaskContext) -> None:
        keys.append(context.key)
        if n == 1:
            raise ValueError("no")

    with Agents(":memory:", domain) as agents:
        assert agents.run(agents.start("top()", replan=True)).status == "complete"
    assert len(set(keys)) == 2


# Versions ---------------------------------------------------------------------------------------------------------


def _version(version: str, *, takes_over: tuple[str, ...] = (), goal: str = "end") -> Domain:
    domain = Domain("shop", version=version, takes_over=takes_over)
    domain.task("wait()", does={"receive": "go"})

    @domain.task(f"{goal}()")
    def end() -> str:
        return f"by version {version}"

    domain.rule("all()", name=f"all-{version}", subgoals=["wait()", f"{goal}()"])
    return domain


def test_an_agent_goes_on_with_the_version_that_it_began_with() -> None:
    store = Store.open(":memory:")
    first = Agents(store, _version("1"))
    agent = first.run(first.start("all()")).id
    first.send(agent, "go")
    with pytest.raises(UserError, match="version '1' of 'shop'"):
        Agents(store, _version("2")).run(agent)
    both = Agents(store, _version("2"), older=[_version("1")])
    info = both.run(agent)
    assert (info.status, info.version, info.intents[-1].result) == ("complete", "1", "by version 1")
    newer = both.run(both.start("all()")).id
    both.send(newer, "go")
    assert both.run(newer).intents[-1].result == "by version 2"


def test_an_agent_moves_to_a_version_that_takes_it_over_and_plans_the_rest_with_it() -> None:
    store = Store.open(":memory:")
    first = Agents(store, _version("1"))
    agent = first.run(first.start("all()")).id
    first.send(agent, "go")
    moved = Agents(store, _version("2", takes_over=("1",))).run(agent)
    assert (moved.status, moved.version, moved.intents[-1].result) == ("complete", "2", "by version 2")
    assert "moved" in [entry["event"] for entry in moved.trace]


def test_an_agent_that_does_not_fit_the_new_version_stays_where_it_is() -> None:
    store = Store.open(":memory:")
    first = Agents(store, _version("1"))
    agent = first.run(first.start("all()")).id
    first.send(agent, "go")
    other = Agents(store, _version("2", takes_over=("1",), goal="finish"))
    with pytest.raises(UserError, match="cannot move from version '1'"):
        other.run(agent)
    assert first.run(agent).intents[-1].result == "by version 1"


# Heartbeats -------------------------------------------------------------------------------------------------------


def test_how_far_a_body_was_is_known_to_the_attempt_after_it() -> None:
    domain, seen = Domain("long"), []

    @domain.task("count()", attempts=2, backoff_s=0)
    def count(context: TaskContext) -> str:
        seen.append(context.progress)
        if context.attempt == 1:
            context.heartbeat({"done": 40})
            time.sleep(0.3)
            raise ConnectionError("away")
        return "counted"

    with Agents(":memory:", domain) as agents:
        assert agents.run(agents.start("count()")).result == "counted"
    assert seen == [None, {"done": 40}]


def test_a_body_in_a_thread_that_shows_no_sign_of_life_is_given_up_and_one_that_does_is_not() -> None:
    domain, hang = Domain("long"), threading.Event()

    @domain.task("work(?hangs)", heartbeat_s=0.4)
    def work(hangs: str, context: TaskContext) -> str:
        for _ in range(8):
            time.sleep(0.1)
            context.heartbeat()
        if hangs == "yes":
            hang.wait()
        return "done"

    with Agents(":memory:", domain) as agents:
        assert agents.run(agents.start("work(no)")).result == "done"
        info = agents.run(agents.start("work(yes)"))
        hang.set()
    assert (info.status, info.detail) == ("failed", "work(yes): no sign of life for 0.4 s")


def test_an_agent_of_a_name_is_there_once() -> None:
    with Agents(":memory:", _family()) as agents:
        agents.start("nap()", id="a")
        with pytest.raises(RunExists):
            agents.start("nap()", id="a")


# Questions --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("goal", [None, ["may"]])
def test_a_question_that_nobody_waits_for_any_more_is_taken_back(goal: Any) -> None:
    domain = Domain("asking")
    domain.task("may()", does={"ask": "May I?"})
    domain.task("hear()", does={"receive": "go"})
    domain.rule("all()", subgoals=["may()", "hear()"], order=False)
    with Agents(":memory:", domain) as agents:
        agent = agents.run(agents.start("all()")).id
        assert agents.board is not None
        assert [one.get_value("question") for one in agents.board.open_questions()] == ["May I?"]
        agents.event(agent, "cancel", goal=goal)
        info = agents.run(agent)
        assert (info.status, info.questions) == ("cancelled" if goal is None else "waiting", ())
        assert agents.board.open_questions() == []


def test_a_question_that_was_answered_stays_on_the_board() -> None:
    domain = Domain("asking")
    domain.task("may()", does={"ask": "May I?"})
    with Agents(":memory:", domain) as agents:
        agent = agents.run(agents.start("may()")).id
        assert agents.board is not None
        agents.answer(agents.board.open_questions()[0].id, "yes")
        assert agents.run(agent).result == "yes"
        assert [one.get_value("answer") for one in agents.board.items("questions")] == ["yes"]
