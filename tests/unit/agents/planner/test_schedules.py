"""Schedules: when agents are begun, once each, whatever clocks and processes do."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime
from itertools import islice, takewhile
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from metatree_agents.planner import Agents, Domain
from metatree_agents.planner.agents import schedules
from metatree_agents.planner.agents.schedules import CronSchedule

from metatree import UserError

MINUTE = 60.0


def _domain() -> Domain:
    domain = Domain("mill")
    domain.relation("grain", 1)
    domain.task("grind()", when="(grain ?what)")
    domain.task("wait()", does={"receive": "go"})
    return domain


def _times(cron: str, zone: str, after: str, count: int) -> list[str]:
    at = datetime.fromisoformat(after).replace(tzinfo=ZoneInfo(zone)).timestamp()
    found = islice(CronSchedule("a", cron, zone, ("grind",)).times(at), count)
    return [datetime.fromtimestamp(one, ZoneInfo(zone)).isoformat()[5:] for one in found]


@pytest.mark.parametrize(
    ("cron", "after", "times"),
    [
        ("30 6 * * 1-5", "2026-11-27T12:00", ["11-30T06:30:00+01:00", "12-01T06:30:00+01:00"]),
        # Clocks go forward at 2 on the 29th of March, back at 3 on the 25th of October.
        ("30 2 * * *", "2026-03-28T12:00", ["03-29T03:00:00+02:00", "03-30T02:30:00+02:00"]),
        ("30 2 * * *", "2026-10-24T12:00", ["10-25T02:30:00+02:00", "10-26T02:30:00+01:00"]),
        (
            "30 * * * *",
            "2026-10-25T02:00",
            ["10-25T02:30:00+02:00", "10-25T02:30:00+01:00", "10-25T03:30:00+01:00"],
        ),
    ],
)
def test_times_are_those_of_the_zone(cron: str, after: str, times: list[str]) -> None:
    assert _times(cron, "Europe/Berlin", after, len(times)) == times


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"cron": "every day"}, "is no cron expression"),
        ({"cron": "61 * * * *"}, "bad minute"),
        ({"cron": ""}, "is no cron expression"),
        ({"zone": "Mars/Olympus"}, "no time zone"),
        ({"zone": "../../etc/passwd"}, "no time zone"),
        ({"name": "a b"}, "cannot be called"),
        ({"name": ""}, "cannot be called"),
        ({"goal": "dance()"}, "no rule and no task"),
        ({"missed": "some"}, "use one of last, all, none"),
        ({"overlap": "maybe"}, "use one of skip, start"),
        ({"timeout_s": -1}, "above 0"),
    ],
)
def test_what_is_no_schedule_is_refused_and_not_kept(given: dict[str, Any], says: str) -> None:
    with Agents(":memory:", _domain()) as agents:
        with pytest.raises(UserError, match=says):
            agents.schedule(**{"name": "daily", "cron": "0 6 * * *", "goal": "grind()", **given})
        assert agents.schedules() == []


def _due(agents: Agents, ago_s: float) -> None:
    """Have the times of all schedules be so long ago."""
    agents.journal.database.execute("UPDATE schedule SET next_at = ?", (time.time() - ago_s,))


def _begun(agents: Agents) -> list[str]:
    return sorted(one[0] for one in agents.all())


def test_a_worker_begins_what_is_due_once_and_notes_the_next_time(tmp_path: Path) -> None:
    place = tmp_path / "a.db"
    with Agents(place, _domain()) as agents:
        made = agents.schedule(
            "daily", "0 6 * * *", "grind()", facts=[("grain", "rye")], zone="Europe/Berlin"
        )
        assert made.next_at is not None
        agents.work(until_idle=True)
        assert _begun(agents) == []
        _due(agents, 1)
    with Agents(place, _domain()) as agents:
        agents.work(until_idle=True)
        agents.work(until_idle=True)
        (begun,) = _begun(agents)
        assert begun.startswith("daily@")
        assert agents.show(begun).status == "complete"
        (kept,) = agents.schedules()
        assert (kept.last, kept.zone) == (begun, "Europe/Berlin")
        assert kept.next_at is not None
        assert kept.next_at > time.time()
        agents.unschedule("daily")
        assert agents.schedules() == []
        with pytest.raises(UserError, match="no schedule is called 'daily'"):
            agents.unschedule("daily")


def test_one_agent_is_begun_when_a_process_dies_before_the_next_time_is_noted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with Agents(":memory:", _domain()) as agents:
        agents.schedule("daily", "0 6 * * *", "grind()", facts=[("grain", "rye")])
        _due(agents, 1)
        with monkeypatch.context() as patch:
            patch.setattr(agents._schedules, "_write", lambda *_: None)  # it died
            first = agents.begin_due()
        assert agents.begin_due() == first
        assert agents.begin_due() == []
        assert _begun(agents) == first


@pytest.mark.parametrize(("missed", "count"), [("last", 1), ("all", 4), ("none", 1)])
def test_times_that_were_missed_are_made_up_for_as_asked(missed: Any, count: int) -> None:
    with Agents(":memory:", _domain()) as agents:
        agents.schedule("often", "* * * * *", "grind()", [("grain", "rye")], missed=missed, overlap="start")
        _due(agents, 3 * MINUTE + time.time() % MINUTE)
        begun = len(agents.begin_due())
        assert begun - count in ((0,) if missed == "last" else (0, 1)), "another minute may just have begun"


@pytest.mark.parametrize("cron", ["* * * * *", "0 6 * * *", "0 0 1 1 *", "0 0 29 2 *"])
def test_years_that_were_missed_are_looked_for_from_now_backwards(
    cron: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 0
    times = CronSchedule.times

    def counted(self: CronSchedule, after: float) -> Iterator[float]:
        nonlocal count
        for at in times(self, after):
            count += 1
            yield at

    schedule, now = CronSchedule("a", cron, "UTC", ("grind",)), 1_790_000_000.0
    first = next(times(schedule, 1_300_000_000.0))
    listed = list(takewhile(lambda at: at <= now, times(schedule, max(first, now - 8 * 86_400))))
    monkeypatch.setattr(CronSchedule, "times", counted)
    due, next_at = schedules._due(schedule, first, now)
    assert count < 20_000 and len(due) <= schedules._MOST_AT_ONCE
    assert due[-len(listed) :] == listed[-len(due) :] or not listed
    assert next_at == next(times(schedule, now))


def test_missed_times_without_a_later_one_are_left_out() -> None:
    with Agents(":memory:", _domain()) as agents:
        agents.schedule("daily", "0 6 * * *", "grind()", [("grain", "rye")], missed="none")
        _due(agents, 2 * MINUTE)
        assert agents.begin_due() == []
        (kept,) = agents.schedules()
        assert kept.next_at is not None
        assert kept.next_at > time.time()


@pytest.mark.parametrize(("overlap", "count"), [("skip", 1), ("start", 2)])
def test_no_agent_is_begun_beside_one_that_has_not_ended_unless_wanted(overlap: Any, count: int) -> None:
    with Agents(":memory:", _domain()) as agents:
        agents.schedule("often", "0 6 * * *", "wait()", overlap=overlap)
        _due(agents, 2)
        agents.work(until_idle=True)
        _due(agents, MINUTE + 2)
        agents.work(until_idle=True)
        assert len(_begun(agents)) == count


def test_a_process_without_the_functions_leaves_a_schedule_to_others(tmp_path: Path) -> None:
    domain = _domain()

    @domain.task("sing()")
    def sing() -> str:
        return "la"

    place = tmp_path / "a.db"
    with Agents(place, domain) as agents:
        agents.schedule("sings", "0 6 * * *", "sing()")
        _due(agents, 1)
    with Agents(place) as others:
        assert others.begin_due() == []
    with Agents(place, domain) as agents:
        agents.work(until_idle=True)
        assert [one[2] for one in agents.all()] == ["complete"]
