"""Tasks that wait: for how long, across processes, and no longer than somebody wants them."""

from __future__ import annotations

import asyncio
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from metatree_agents.planner import Agents, Domain, TaskContext
from metatree_agents.planner.agents.bodies import TaskRefused, World
from metatree_agents.planner.domain.domain import goal_of
from metatree_agents.planner.domain.facts import Facts


def napping(seconds: Any = 0.05) -> Domain:
    domain = Domain("naps")
    domain.task("nap(?s)", does={"sleep": "?s"})
    domain.task("wait(?when)", does={"until": "?when"})

    @domain.task("work()")
    def work() -> str:
        return "done"

    domain.rule("day()", subgoals=[f"nap({seconds})", "work()"])
    return domain


def context(since: float, wanted: Any = lambda: True) -> TaskContext:
    facts = Facts(Domain().library, {})
    return TaskContext("a", 1, ("nap", 1), 1, "a:1", facts, since=since, wanted=wanted)


def test_what_follows_a_nap_comes_after_it() -> None:
    with Agents(":memory:", napping(0.2)) as agents:
        info = agents.run(agents.start("day()"))
    assert info.status == "complete"
    at = {(entry["event"], entry.get("action")): entry["at"] for entry in info.trace}
    begun = next(e["at"] for e in info.trace if e["event"] == "active" and e["goal"][0] == "nap")
    worked = next(e["at"] for e in info.trace if e["event"] == "active" and e["goal"][0] == "work")
    assert worked - begun >= 0.2, at


@pytest.mark.parametrize(
    ("since", "now", "sleeps"), [(1000.0, 1000.0, 30.0), (1000.0, 1029.5, 0.5), (1000.0, 5000.0, 0.0)]
)
def test_the_time_counts_from_when_the_intent_was_first_begun(
    monkeypatch: pytest.MonkeyPatch, since: float, now: float, sleeps: float
) -> None:
    """Whichever process waits, and however late it comes."""
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    domain = napping()
    (action,) = domain.library.for_goal("nap")
    world = World(domain, clock=lambda: now + sum(slept))
    asyncio.run(world._wait(action, {"?s": 30}, context(since)))
    assert sum(slept) == sleeps
    assert all(part <= 0.5 for part in slept)


def test_a_time_with_its_zone_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    start = datetime(2026, 12, 1, 7, 0, tzinfo=UTC).timestamp()
    domain = napping()
    (action,) = domain.library.for_goal("wait")
    world = World(domain, clock=lambda: start - 2 + sum(slept))
    asyncio.run(world._wait(action, {"?when": "2026-12-01T08:00:00+01:00"}, context(0.0)))
    assert sum(slept) == 2


@pytest.mark.parametrize(
    ("goal", "says"),
    [
        ("nap(soon)", "sleeps 'soon': give seconds"),
        ("nap(-1)", "give seconds, as a number from 0"),
        ("nap(1e999)", "give seconds"),
        ("wait(tomorrow)", "give a date and a time with its zone"),
        ("wait(2026-12-01)", "with its zone"),
    ],
)
def test_what_is_no_time_fails_the_intent_and_says_so(goal: str, says: str) -> None:
    with Agents(":memory:", napping()) as agents:
        info = agents.run(agents.start(goal_of(goal)))
    assert info.status == "failed"
    assert says in info.detail


def test_a_nap_that_nobody_wants_any_more_ends() -> None:
    domain = napping()
    (action,) = domain.library.for_goal("nap")
    with pytest.raises(TaskRefused, match="nobody wants it"):
        asyncio.run(World(domain)._wait(action, {"?s": 3600}, context(time.time(), lambda: False)))


def test_an_agent_that_sleeps_is_cancelled(tmp_path: Path) -> None:
    with Agents(tmp_path / "a.db", napping(3600), lease_s=0.6) as agents:
        agent = agents.start("day()")

        def cancel() -> None:
            with Agents(tmp_path / "a.db", napping(3600)) as others:
                while others.show(agent).status != "running" or not any(
                    entry["event"] == "active" for entry in others.show(agent).trace
                ):
                    time.sleep(0.02)
                others.cancel(agent)

        thread = threading.Thread(target=cancel)
        thread.start()
        info = agents.run(agent)
        thread.join()
    assert info.status == "cancelled"


def test_a_body_sees_that_it_is_cancelled(tmp_path: Path) -> None:
    domain, begun, ended, saw = Domain("long"), threading.Event(), threading.Event(), []

    @domain.task("dig()")
    def dig(context: TaskContext) -> None:
        begun.set()
        while not context.cancelled:
            time.sleep(0.01)
        saw.append(context.since)
        ended.set()

    with Agents(tmp_path / "a.db", domain, lease_s=0.6) as agents:
        agent = agents.start("dig()")

        def cancel() -> None:
            begun.wait()
            with Agents(tmp_path / "a.db", domain) as others:
                others.cancel(agent)

        thread = threading.Thread(target=cancel)
        thread.start()
        info = agents.run(agent)
        thread.join()
        assert ended.wait(30)  # the agent does not wait for what it has cancelled
    assert info.status == "cancelled"
    assert len(saw) == 1
    assert saw[0] > 0
