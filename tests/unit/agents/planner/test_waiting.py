"""Tasks that wait: for how long, across processes, and no longer than somebody wants them."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from metatree_agents.planner import Agents, Domain, TaskContext
from metatree_agents.planner.domain.given import goal_of


def napping(seconds: Any = 0.05) -> Domain:
    domain = Domain("naps")
    domain.task("nap(?s)", does={"sleep": "?s"})
    domain.task("wait(?when)", does={"until": "?when"})

    @domain.task("work()")
    def work() -> str:
        return "done"

    domain.rule("day()", subgoals=[f"nap({seconds})", "work()"])
    return domain


def test_what_follows_a_nap_comes_after_it() -> None:
    with Agents(":memory:", napping(0.2)) as agents:
        info = agents.run(agents.start("day()"))
    assert info.status == "complete"
    at = {(entry["event"], entry.get("action")): entry["at"] for entry in info.trace}
    begun = next(e["at"] for e in info.trace if e["event"] == "active" and e["goal"][0] == "nap")
    worked = next(e["at"] for e in info.trace if e["event"] == "active" and e["goal"][0] == "work")
    assert worked - begun >= 0.2, at


def test_a_worker_lets_go_of_an_agent_that_sleeps_and_another_takes_it_up_in_time(tmp_path: Path) -> None:
    """No process is needed while it sleeps, and none is kept from other work."""
    with Agents(tmp_path / "a.db", napping(2)) as agents:
        listed = [agents.start("day()") for _ in range(3)]
        agents.work(until_idle=True, at_once=1)
        assert [agents.show(one).status for one in listed] == ["waiting"] * 3
        wakes_s = agents.journal.wakes_in("planner")
        assert wakes_s is not None
        assert wakes_s <= 2
        assert "its time" in agents.show(listed[0]).waits[2]
    with Agents(tmp_path / "a.db", napping(2)) as agents:
        agents.work(stop=lambda: agents.show(listed[2]).status == "complete", poll_s=0.05)
        info = agents.show(listed[2])
    begun = next(e["at"] for e in info.trace if e["event"] == "active" and e["goal"][0] == "nap")
    worked = next(e["at"] for e in info.trace if e["event"] == "active" and e["goal"][0] == "work")
    assert worked - begun >= 2, "it counts from when it was first begun"


def test_a_time_that_is_over_is_not_waited_for() -> None:
    domain = Domain("naps")
    domain.task("wait(?when)", does={"until": "?when"})
    with Agents(":memory:", domain) as agents:
        for when in ("2020-12-01T08:00:00+01:00", (datetime.now(UTC)).isoformat()):
            assert agents.run(agents.start(("wait", when))).status == "complete"
        far = agents.start(("wait", "2999-01-01T00:00:00Z"))
        agents.work(until_idle=True)
        assert "2999-01-01 00:00:00 UTC" in agents.show(far).waits[1]


@pytest.mark.parametrize(
    ("goal", "says"),
    [
        ("nap(soon)", "sleeps 'soon': give seconds"),
        ("nap(-1)", "give seconds, as a number from 0"),
        ("nap(1e99)", "give seconds"),
        ("wait(tomorrow)", "give a date and a time with its zone"),
        ("wait(2026-12-01)", "with its zone"),
    ],
)
def test_what_is_no_time_fails_the_intent_and_says_so(goal: str, says: str) -> None:
    with Agents(":memory:", napping()) as agents:
        info = agents.run(agents.start(goal_of(goal)))
    assert info.status == "failed"
    assert says in info.detail


def test_an_agent_that_sleeps_is_cancelled(tmp_path: Path) -> None:
    with Agents(tmp_path / "a.db", napping(3600), lease_s=0.6) as agents:
        agent = agents.start("day()")

        def cancel() -> None:
            with Agents(tmp_path / "a.db", napping(3600)) as others:
                while not any(entry["event"] == "active" for entry in others.show(agent).trace):
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
