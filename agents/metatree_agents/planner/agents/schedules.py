"""Schedules: goals that an agent is begun for again and again, at the times of a cron expression.

A schedule is a row of data. Whoever drives agents begins what is due: each agent has the time in its id, so that of
several processes, and of one that is killed and another that goes on, one begins it.

Times are those of a time zone. A time that is left out when clocks go forward comes right after; one that happens
twice when they go back comes once, but for expressions that name every hour (cronsim, as Debian's cron has it).
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final, Literal

from metatree.durable.sql_journal import SqlJournal
from metatree.errors import MissingExtra, UserError

_log = logging.getLogger("metatree")

LATE_S: Final = 60.0
"""A time counts as missed when nobody began its agent for so long."""
_MOST_AT_ONCE: Final = 1_000
Begin = Callable[[str, "CronSchedule"], bool]
"""Begins an agent under an id; False when that cannot be done in this process."""


@dataclass(frozen=True, slots=True)
class CronSchedule:
    """When an agent is begun, and for what."""

    name: str
    cron: str
    zone: str
    goal: tuple[Any, ...]
    facts: tuple[tuple[Any, ...], ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    domain: str = ""
    library: Mapping[str, Any] = field(default_factory=dict)
    """That of the process that made it, for one that has no domain of this name."""
    missed: Literal["last", "all", "none"] = "last"
    """Which agents are begun for times at which no process was at work."""
    overlap: Literal["skip", "start"] = "skip"
    """Whether an agent is begun while the one before it has not ended."""
    last: str = ""
    """The agent that was begun last."""
    next_at: float | None = None
    """In seconds since the epoch; None for never again."""

    def __post_init__(self) -> None:
        for name, value, known in (
            ("missed", self.missed, ("last", "all", "none")),
            ("overlap", self.overlap, ("skip", "start")),
        ):
            if value not in known:
                raise UserError(f"{name}={value!r}: use one of {', '.join(known)}")

    def times(self, after: float) -> Iterator[float]:
        """Yield the times after one, in seconds since the epoch.

        Raises:
            UserError: the expression or the time zone is none.
        """
        from zoneinfo import ZoneInfo

        try:
            from cronsim import CronSim, CronSimError
        except ImportError as exc:
            raise MissingExtra("planner", what="a schedule") from exc
        try:
            zone = ZoneInfo(self.zone)
        except (KeyError, ValueError, OSError) as exc:
            raise UserError(
                f"zone={self.zone!r} is no time zone that is known here: use one such as Europe/Berlin or UTC"
            ) from exc
        try:
            listed = CronSim(self.cron, datetime.fromtimestamp(after, zone))
        except CronSimError as exc:
            raise UserError(
                f"{self.cron!r} is no cron expression ({str(exc).lower()}): minute, hour, day of the month, month, day"
                " of the week, such as '30 6 * * 1-5'"
            ) from exc
        return (one.timestamp() for one in listed)

    def after(self, at: float) -> float | None:
        """Return the next time; None for never again."""
        return next(self.times(at), None)


class Schedules:
    """The schedules of one store.

    Args:
        journal: that of the agents.
        machine: what is begun.
    """

    def __init__(self, journal: SqlJournal, machine: str) -> None:
        self._journal, self._database, self._machine = journal, journal.database, machine

    def put(self, schedule: CronSchedule) -> None:
        """Keep a schedule, in the place of one of this name."""
        sql = (
            "INSERT INTO schedule(name, machine, next_at, given) VALUES (?, ?, ?, ?) ON CONFLICT(name) DO UPDATE SET"
            " machine = excluded.machine, next_at = excluded.next_at, given = excluded.given"
        )
        self._write(sql, (schedule.name, self._machine, schedule.next_at, _dump(schedule)))

    def remove(self, name: str) -> bool:
        """Forget a schedule; agents that it has begun go on. False when there is none."""
        return self._write("DELETE FROM schedule WHERE name = ? AND machine = ?", (name, self._machine)) > 0

    def all(self) -> list[CronSchedule]:
        """Return the schedules by name."""
        sql = "SELECT given, next_at FROM schedule WHERE machine = ? ORDER BY name"
        return [_load(*row) for row in self._database.rows(sql, (self._machine,))]

    def fire(self, begin: Begin, now: float) -> list[str]:
        """Begin what is due; return the agents that were begun."""
        sql = "SELECT given, next_at FROM schedule WHERE machine = ? AND next_at <= ? ORDER BY next_at"
        begun: list[str] = []
        for row in self._database.rows(sql, (self._machine, now)):
            schedule = _load(*row)
            try:
                begun += self._fire(schedule, begin, now)
            except UserError as exc:  # such as a time zone that is not known on this machine
                _log.warning("schedule %s cannot be followed here: %s", schedule.name, exc)
        return begun

    def _fire(self, schedule: CronSchedule, begin: Begin, now: float) -> list[str]:
        assert schedule.next_at is not None
        due, next_at = _due(schedule, schedule.next_at, now)
        kept = [one for one in due if one > now - LATE_S]
        if schedule.missed == "all":
            kept = due
        elif schedule.missed == "last":
            kept = due[-1:]
        begun: list[str] = []
        last = schedule.last
        for at in kept:
            if schedule.overlap == "skip" and last and self._journal.is_waiting(last, self._machine):
                continue
            agent = f"{schedule.name}@{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%MZ}"
            if not begin(agent, schedule):
                return begun  # for a process that has its domain
            begun.append(agent)
            last = agent
        changed = replace(schedule, last=last, next_at=next_at)
        # Only once, though several processes have begun the same agents.
        self._write(
            "UPDATE schedule SET next_at = ?, given = ? WHERE name = ? AND machine = ? AND next_at = ?",
            (next_at, _dump(changed), schedule.name, self._machine, schedule.next_at),
        )
        return begun

    def _write(self, sql: str, values: tuple[Any, ...]) -> int:
        return self._database.attempt(lambda _: self._database.execute(sql, values))


def _due(schedule: CronSchedule, first: float, now: float) -> tuple[list[float], float | None]:
    """Return the last times from `first` until now, as many as are begun at once, and the next one.

    Looked for from now backwards, further and further: a machine may have been off for years.
    """
    back = 3_600.0
    while True:
        begin = max(first, now - back)
        following = schedule.times(begin)
        due = [first] if begin == first else []
        next_at = next(following, None)
        while next_at is not None and next_at <= now:
            due = [*due[-_MOST_AT_ONCE + 1 :], next_at]
            next_at = next(following, None)
        if begin == first or len(due) >= _MOST_AT_ONCE:
            return due, next_at
        back *= 8


def _dump(schedule: CronSchedule) -> str:
    return json.dumps(asdict(replace(schedule, next_at=None)))


def _load(given: str, next_at: float | None) -> CronSchedule:
    data = json.loads(given)
    data |= {
        "goal": tuple(data["goal"]),
        "facts": tuple(tuple(one) for one in data["facts"]),
        "next_at": next_at,
    }
    return CronSchedule(**data)
