"""Signals posted to a run that somebody else holds, starts that are told, guards, and who takes runs over."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from metatree.durable import (
    Attempt,
    Effect,
    Event,
    Finish,
    Journal,
    MemoryJournal,
    Policy,
    Record,
    Runner,
    Signal,
    first_record,
    replay,
    run_memory,
)
from metatree.durable.sql_journal import SqlJournal
from metatree.errors import LeaseLost, UnknownRun
from metatree.storage.store import Store


@dataclass
class Log:
    events: list[str] = field(default_factory=list)
    open: set[int] = field(default_factory=set)


class Listener:
    """Does what it is given, notes every event, and ends when it hears `stop`."""

    name = "listener"
    version = 1

    def begin(self, given: Any, now: float) -> tuple[Log, Sequence[Effect]]:
        effects = [Effect(number, kind) for number, kind in enumerate(given)]
        return Log(open={effect.id for effect in effects}), effects

    def step(self, state: Log, event: Event) -> Sequence[Effect]:
        if isinstance(event, Signal):
            state.events.append(f"{event.name} {event.value}")
            return []
        state.open.discard(event.effect)
        state.events.append(f"{event.effect}={event.value if event.error is None else event.error_kind}")
        return []

    def ended(self, state: Log) -> str | None:
        return "done" if "stop None" in state.events else None


@pytest.fixture(params=["memory", "sqlite"])
def journal(request: pytest.FixtureRequest) -> Journal:
    if request.param == "memory":
        return MemoryJournal()
    return SqlJournal(Store.open(":memory:"))


def _drive(journal: Journal, token: int, handlers: Any, policies: Any, **options: Any) -> Finish[Log]:
    machine = Listener()
    runner = Runner(machine, journal, "r", token, handlers=handlers, policies=policies, **options)
    return asyncio.run(runner.drive(replay(machine, journal.read("r"))))


def _create(journal: Journal, given: list[str]) -> int:
    return journal.create("r", "listener", first_record(Listener(), given, 0.0))


def test_signals_are_taken_up_in_order_and_survive_the_journal(journal: Journal) -> None:
    token = _create(journal, ["wait"])
    journal.post("r", "hello", {"a": 1})
    journal.post("r", "hello", 2)
    result = _drive(journal, token, {}, {"wait": Policy(external=True)})
    assert (result.ended, result.state.events) == ("waiting", ["hello {'a': 1}", "hello 2"])
    journal.post("r", "stop", None)
    again = _drive(journal, journal.acquire("r"), {}, {"wait": Policy(external=True)})
    assert (again.ended, again.state.events[-1]) == ("done", "stop None")
    assert replay(Listener(), journal.read("r")).state.events == again.state.events
    with pytest.raises(UnknownRun):
        journal.post("nobody", "hello", None)


def test_a_signal_that_comes_while_an_effect_is_in_flight_is_handled_after_it(journal: Journal) -> None:
    token = _create(journal, ["work", "wait"])

    def work(effect: Effect, attempt: Attempt) -> str:
        journal.post("r", "stop", None)
        return "worked"

    result = _drive(journal, token, {"work": work}, {"wait": Policy(external=True)})
    assert result.state.events == ["0=worked", "stop None"]


def test_a_stale_holder_takes_no_signals(journal: Journal) -> None:
    token = _create(journal, ["wait"])
    journal.release("r", token, None)
    journal.acquire("r")
    journal.post("r", "stop", None)
    with pytest.raises(LeaseLost):
        journal.take("r", token, 1)
    with pytest.raises(LeaseLost):
        journal.append("r", token, 1, Record("signal", 0.0, body={"name": "x", "value": 1}))


def test_a_machine_is_notified_of_starts_before_the_handler_runs(journal: Journal) -> None:
    token = _create(journal, ["work", "stop"])
    seen: list[list[str]] = []
    state_of: list[Log] = []

    def work(effect: Effect, attempt: Attempt) -> int:
        seen.append(list(replay(Listener(), journal.read("r")).state.events))
        if attempt.number == 1:
            raise ValueError("once more")
        return attempt.number

    def stop(effect: Effect, attempt: Attempt) -> None:
        journal.post("r", "stop", None)

    policies = {"work": Policy(announced=True, attempts=2)}
    result = _drive(journal, token, {"work": work, "stop": stop}, policies, on_step=state_of.append)
    first, second = (f"began {{'effect': 0, 'attempt': {n}}}" for n in (1, 2))
    assert seen == [[first], [first, second]], "the start is in the journal before the body runs"
    assert "0=2" in result.state.events
    assert replay(Listener(), journal.read("r")).state.events == result.state.events


def test_attempts_are_counted_on_after_a_crash(journal: Journal) -> None:
    token = _create(journal, ["work"])
    journal.append("r", token, 1, Record("start", 0.0, 0, {"attempt": 1}))
    journal.release("r", token, None)

    def work(effect: Effect, attempt: Attempt) -> int:
        journal.post("r", "stop", None)
        return attempt.number

    result = _drive(journal, journal.acquire("r"), {"work": work}, {"work": Policy(announced=True)})
    assert "0=2" in result.state.events


def test_what_a_guard_refuses_was_never_started(journal: Journal) -> None:
    token = _create(journal, ["work"])

    def guard(effect: Effect, attempt: Attempt) -> None:
        journal.post("r", "stop", None)
        raise ValueError("not now")

    def work(effect: Effect, attempt: Attempt) -> None:
        raise AssertionError("it was refused")

    policies = {"work": Policy(announced=True, repeatable=False, guard=guard)}
    result = _drive(journal, token, {"work": work}, policies)
    assert result.state.events[0] == "0=ValueError"
    assert [record.kind for record in journal.read("r")] == ["begin", "outcome", "signal", "stop"]


def test_a_guard_sees_what_the_effects_of_its_run_keep(journal: Journal) -> None:
    def work(effect: Effect, attempt: Attempt) -> int:
        run_memory()["tried"] = attempt.number
        return attempt.number

    def guard(effect: Effect, attempt: Attempt) -> None:
        if "tried" in run_memory():
            raise ValueError("tried before")

    first = _create(journal, ["work", "work"])
    result = _drive(journal, first, {"work": work}, {"work": Policy(guard=guard)})
    assert sorted(result.state.events) == ["0=1", "1=ValueError"]
    assert run_memory() == {}


def test_runs_are_taken_up_when_their_holder_is_gone_or_a_signal_has_come() -> None:
    clock = [100.0]
    store = Store.open(":memory:")
    store.clock = lambda: clock[0]
    mine = SqlJournal(store, owner="elsewhere:1", lease_s=10.0)
    token = mine.create("r", "listener", first_record(Listener(), ["wait"], 0.0))
    other = SqlJournal(store, owner="elsewhere:2", lease_s=10.0)
    assert other.claimable("listener") == []
    clock[0] += 10.0
    assert other.claimable("listener") == ["r"]
    assert other.claimable("another machine") == []
    other.release("r", other.acquire("r"), "waiting")
    assert other.claimable("listener") == []
    other.post("r", "hello", None)
    assert other.claimable("listener") == ["r"]
    assert mine.refused("r") == 0
    with pytest.raises(LeaseLost):
        mine.append("r", token, 1, Record("stop", 0.0))
    with pytest.raises(LeaseLost):
        mine.renew("r", token)
    assert mine.refused("r") == 2
    other.release("r", other.acquire("r"), "done")
    assert other.claimable("listener") == []
