"""From a journal to the state of its run: the same records give the same state, whatever the world is today."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from metatree.durable._journal import Journal, Record
from metatree.durable._machine import Effect, Event, Machine, Outcome, Signal
from metatree.errors import BrokenStore, UserError

S = TypeVar("S")


@dataclass(slots=True)
class Replayed(Generic[S]):
    """A run as its journal tells it."""

    state: S
    pending: dict[int, Effect]
    """Effects without an outcome, in the order in which they were asked for."""
    errors: dict[int, list[str]]
    """Effect -> what went wrong in its attempts so far."""
    started: dict[int, int]
    """Effects without an outcome whose start was written down -> how often they were started."""
    used: dict[str, float]
    seq: int
    """The number of records."""
    began: float = 0.0
    """When it was started: distinguishes it from a run of the same name in another journal."""
    progress: dict[int, Any] = field(default_factory=dict)
    """Effects without an outcome -> what they reported last."""


def first_record(machine: Machine[Any], given: Any, now: float) -> Record:
    """Return the record that begins a run of a machine with an input (JSON)."""
    return Record("begin", now, body={"machine": machine.name, "version": machine.version, "given": given})


def replay(machine: Machine[S], records: Sequence[Record]) -> Replayed[S]:
    """Rebuild a run from its journal.

    Raises:
        UserError: the run is of another machine, or of another version of it.
        BrokenStore: a record does not fit what was before it.
    """
    first = records[0]
    try:
        made_by = (first.body["machine"], first.body["version"])
    except (TypeError, KeyError) as exc:
        raise _mismatch_error(0, exc) from exc
    if made_by != (machine.name, machine.version):
        raise UserError(
            f"this run was begun by version {made_by[1]} of the {made_by[0]} machine, and this is version"
            f" {machine.version} of {machine.name}: finish it with the metatree that began it, or begin another"
        )
    try:
        state, effects = machine.begin(first.body["given"], first.at)
    except Exception as exc:
        raise _mismatch_error(0, exc) from exc
    replayed: Replayed[S] = Replayed(state, {e.id: e for e in effects}, {}, {}, {}, len(records), first.at)
    working = first.at
    for number, record in enumerate(records[1:], start=1):
        for name, amount in record.used.items():
            replayed.used[name] = replayed.used.get(name, 0) + amount
        if record.kind == "resume":
            working = record.at
        else:
            replayed.used["seconds"] = replayed.used.get("seconds", 0) + max(0.0, record.at - working)
            working = max(working, record.at)
        try:
            apply(machine, replayed, record)
        except Exception as exc:
            raise _mismatch_error(number, exc) from exc
    return replayed


def take_up(
    machine: Machine[S],
    journal: Journal,
    run_id: str,
    *signals: tuple[str, Any],
    released_as: str | None = "failed",
) -> tuple[int, Replayed[S]]:
    """Acquire a run that was begun before; return the token of its lease, and the run as its journal tells it.

    Args:
        signals: names and values of what the machine is told as it goes on.
        released_as: what the run is released as when its journal cannot be replayed.

    Raises:
        LeaseLost: another process is at work on it.
    """
    token = journal.acquire(run_id)
    try:
        records = list(journal.read(run_id))  # now that nobody else writes
        now = time.time()
        told = [Record("signal", now, body={"name": name, "value": value}) for name, value in signals]
        for record in (Record("resume", now), *told):
            journal.append(run_id, token, len(records), record)
            records.append(record)
        return token, replay(machine, records)
    except BaseException:
        with suppress(Exception):
            journal.release(run_id, token, released_as)
        raise


def _mismatch_error(number: int, exc: Exception) -> BrokenStore:
    return BrokenStore(
        f"record {number} of the journal does not fit what was before it ({type(exc).__name__}: {exc}):"
        " the run cannot be taken up, begin another",
        path="",
    )


def apply(machine: Machine[S], replayed: Replayed[S], record: Record) -> Sequence[Effect] | None:
    """Apply what a record tells to a run, live or at a replay.

    Returns:
        The effects that follow from it; None when the machine is not told of such a record.
    """
    match record.kind:
        case "outcome" | "signal":
            if record.effect is not None:
                replayed.pending.pop(record.effect)
                replayed.errors.pop(record.effect, None)
                replayed.started.pop(record.effect, None)
                replayed.progress.pop(record.effect, None)
        case "start" if record.effect is not None:
            replayed.started[record.effect] = replayed.started.get(record.effect, 0) + 1
            if record.body is None:
                return None
        case "progress" if record.effect is not None:
            replayed.progress[record.effect] = record.body
            return None
        case "attempt" if record.effect is not None:
            replayed.errors.setdefault(record.effect, []).append(str(record.body))
            return None
        case "cut" if record.effect is not None and record.body["anew"]:
            replayed.errors.pop(record.effect, None)
            return None
        case _:
            return None
    following = machine.step(replayed.state, _event_of(record))
    for effect in following:
        replayed.pending[effect.id] = effect
    return following


def _event_of(record: Record) -> Event:
    """Return the event that a record of an outcome, a signal or a start tells of."""
    body = record.body
    if record.kind == "start":
        return Signal("began", {"effect": record.effect, **body}, record.at)
    if record.kind == "signal":
        return Signal(body["name"], body["value"], record.at)
    assert record.effect is not None
    if "!" in body:
        return Outcome(record.effect, error=body["!"], error_kind=body["kind"], now=record.at)
    return Outcome(record.effect, value=body["="], now=record.at)
