"""The journal: everything that happened to a run, in order; appended before it is applied, never changed."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from metatree.errors import LeaseLost, RunExists, UnknownRun

STOP: Final = 1
SIGNALS: Final = 2
"""What a journal tells who writes to it, as bits: the run was asked to stop; something was posted to it."""


@dataclass(slots=True)
class Record:
    """One line of a journal."""

    kind: str
    """`begin`, `outcome`, `attempt` (failed, to be tried again), `cut` (stopped before it came to anything), `start`
    (of an effect that may not be repeated, or whose machine is notified of it), `progress` (what one in flight has
    come to), `signal`, `resume`, `stop`."""
    at: float
    """Seconds since the epoch."""
    effect: int | None = None
    body: Any = None
    """JSON."""
    used: dict[str, float] = field(default_factory=dict)
    """What this attempt used: counter -> amount."""


@dataclass(frozen=True, slots=True)
class RunInfo:
    """A run, as a list of runs shows it."""

    run_id: str
    machine: str
    ended: str | None
    """How it last stopped; None while it is at work, or when its process died."""
    began_at: float
    updated_at: float
    given: Any = None
    """The run's input."""


def given_of(first: Record) -> Any:
    """Return the input that a run began with, from its first record."""
    return first.body.get("given") if isinstance(first.body, dict) else None


class Journal(Protocol):
    """Where runs are kept. One process at a time holds a run; each write proves that it still does."""

    def create(self, run_id: str, machine: str, first: Record) -> int:
        """Begin a run and hold it; return the fencing token. Raises RunExists."""
        ...

    def acquire(self, run_id: str) -> int:
        """Take hold of an existing run; return the fencing token. Raises UnknownRun, LeaseLost (it is held)."""
        ...

    def append(self, run_id: str, token: int, seq: int, record: Record) -> int:
        """Add a record, durable when this returns; return STOP and SIGNALS as bits. Raises LeaseLost."""
        ...

    def post(self, run_id: str, name: str, value: Any) -> None:
        """Put a signal into the mailbox of a run, whoever holds it; the holder takes it up. Raises UnknownRun."""
        ...

    def take(self, run_id: str, token: int, seq: int) -> list[Record]:
        """Move what is in the mailbox into the journal as signals, all or nothing; return them. Raises LeaseLost."""
        ...

    renew_every_s: float | None
    """How often a holder that writes nothing has to renew its hold; None when a hold does not run out."""

    def renew(self, run_id: str, token: int) -> int:
        """Keep hold of a run while a long effect goes on; return STOP and SIGNALS as bits. Raises LeaseLost.

        Called from a thread of its own while others write.
        """
        ...

    def release(self, run_id: str, token: int, ended: str | None, *, wake_at: float | None = None) -> None:
        """Let go of a run and note how it stopped, and, in seconds since the epoch, when it goes on by itself."""
        ...

    def read(self, run_id: str) -> list[Record]:
        """Return all records in order. Raises UnknownRun, BrokenStore (a record is damaged)."""
        ...

    def runs(self) -> Iterable[RunInfo]:
        """List the runs, the last changed first."""
        ...

    def cancel(self, run_id: str) -> None:
        """Ask whoever holds this run to stop. Raises UnknownRun."""
        ...


@dataclass(slots=True)
class _StoredRun:
    machine: str
    records: list[Record]
    token: int = 1
    leased: bool = True
    ended: str | None = None
    flags: int = 0
    inbox: list[tuple[str, Any, float]] = field(default_factory=list)


class MemoryJournal:
    """A journal that lives as long as its process."""

    renew_every_s: float | None = None

    def __init__(self) -> None:
        self._runs: dict[str, _StoredRun] = {}
        self._lock = threading.Lock()

    def create(self, run_id: str, machine: str, first: Record) -> int:
        with self._lock:
            if run_id in self._runs:
                raise RunExists(run_id)
            self._runs[run_id] = _StoredRun(machine, [first])
        return 1

    def acquire(self, run_id: str) -> int:
        with self._lock:
            run = self._get(run_id)
            if run.leased:
                raise LeaseLost(run_id)
            run.token += 1
            run.leased, run.flags, run.ended = True, run.flags & SIGNALS, None
            return run.token

    def append(self, run_id: str, token: int, seq: int, record: Record) -> int:
        run = self._runs[run_id]
        if run.token != token or len(run.records) != seq:
            raise LeaseLost(run_id)
        run.records.append(record)
        return run.flags

    def post(self, run_id: str, name: str, value: Any) -> None:
        with self._lock:
            run = self._get(run_id)
            run.inbox.append((name, value, time.time()))
            run.flags |= SIGNALS

    def take(self, run_id: str, token: int, seq: int) -> list[Record]:
        with self._lock:
            run = self._runs[run_id]
            if run.token != token or len(run.records) != seq:
                raise LeaseLost(run_id)
            signals = [
                Record("signal", at, body={"name": name, "value": value}) for name, value, at in run.inbox
            ]
            run.records += signals
            run.inbox, run.flags = [], run.flags & ~SIGNALS
            return signals

    def renew(self, run_id: str, token: int) -> int:
        run = self._runs[run_id]
        if run.token != token:
            raise LeaseLost(run_id)
        return run.flags

    def release(self, run_id: str, token: int, ended: str | None, *, wake_at: float | None = None) -> None:
        run = self._runs[run_id]
        if run.token == token:
            run.leased, run.ended = False, ended

    def read(self, run_id: str) -> list[Record]:
        return list(self._get(run_id).records)

    def runs(self) -> list[RunInfo]:
        infos = [
            RunInfo(run_id, run.machine, run.ended, first.at, run.records[-1].at, given_of(first))
            for run_id, run in list(self._runs.items())
            if (first := run.records[0])
        ]
        return sorted(infos, key=lambda info: info.updated_at, reverse=True)

    def cancel(self, run_id: str) -> None:
        self._get(run_id).flags |= STOP

    def _get(self, run_id: str) -> _StoredRun:
        try:
            return self._runs[run_id]
        except KeyError:
            raise UnknownRun(run_id) from None
