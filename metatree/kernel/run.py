"""Drive a machine: start its effects, write down what comes of them, apply it, and stop where it must."""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from metatree.errors import BadModelAnswer, LeaseLost, TransientError
from metatree.kernel.journal import Journal, Record
from metatree.kernel.machine import Effect, Event, Machine, Outcome, Signal

S = TypeVar("S")

MAX_ERROR_CHARS = 500
MAX_BACKOFF_S = 30.0


@dataclass(frozen=True, slots=True)
class Policy:
    """How an effect of one kind is carried out."""

    attempts: int = 1
    """How often it is tried when it fails; each attempt is journaled and counted."""
    timeout_s: float | None = None
    """For each attempt."""
    backoff_s: float = 0.2
    """Wait before the second attempt at something that is out of reach; doubles each time."""
    repeatable: bool = True
    """False: its start is journaled, and an effect that was in flight when the process died is in doubt."""
    external: bool = False
    """Its outcome comes from outside (a person); the run waits for it, across restarts of the process."""
    counts: tuple[str, ...] = ()
    """Counters that each attempt raises by one; a limit on one of them is kept to the call."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """What a handler is told besides the effect."""

    number: int
    """From 1."""
    key: str
    """Idempotency key: the same at every repetition of this effect, in every process."""
    errors: tuple[str, ...] = ()
    """What went wrong in the earlier attempts."""


Handler = Callable[[Effect, Attempt], "Awaitable[Any] | Any"]
"""Carries an effect out and returns JSON; may be a coroutine function or, for what is quick and local, a function."""


@dataclass(slots=True)
class Folded(Generic[S]):
    """A run as its journal tells it."""

    state: S
    pending: dict[int, Effect]
    """Effects without an outcome, in the order in which they were asked for."""
    errors: dict[int, list[str]]
    started: set[int]
    used: dict[str, float]
    seq: int
    last_at: float


@dataclass(frozen=True, slots=True)
class Finish(Generic[S]):
    """How a drive of a run stopped."""

    state: S
    ended: str
    """What the machine said, or `limit`, `waiting`, `cancelled`."""
    detail: str
    used: dict[str, float]
    waiting: tuple[Effect, ...] = ()
    """External effects that the run waits for."""


_meter: contextvars.ContextVar[dict[str, float] | None] = contextvars.ContextVar(
    "metatree_meter", default=None
)


def report_usage(**amounts: float) -> None:
    """Add to what the effect in progress has used (`tokens_in=…`, `cost_usd=…`); outside a run nothing happens."""
    meter = _meter.get()
    if meter is not None:
        for name, amount in amounts.items():
            meter[name] = meter.get(name, 0) + amount


def fold(machine: Machine[S], records: Sequence[Record]) -> Folded[S]:
    """Rebuild a run from its journal: the same records give the same state, whatever the world is today."""
    first = records[0]
    state, effects = machine.begin(first.body, first.at)
    folded: Folded[S] = Folded(state, {e.id: e for e in effects}, {}, set(), {}, len(records), first.at)
    working = first.at
    for record in records[1:]:
        for name, amount in record.used.items():
            folded.used[name] = folded.used.get(name, 0) + amount
        if record.kind == "resume":
            working = record.at
        else:
            folded.used["seconds"] = folded.used.get("seconds", 0) + max(0.0, record.at - working)
            working = max(working, record.at)
        match record.kind:
            case "attempt" if record.effect is not None:
                folded.errors.setdefault(record.effect, []).append(str(record.body))
            case "start" if record.effect is not None:
                folded.started.add(record.effect)
            case "outcome" | "signal":
                if record.effect is not None and folded.pending.pop(record.effect, None) is None:
                    continue
                for effect in machine.step(state, _event(record)):
                    folded.pending[effect.id] = effect
    folded.last_at = working
    return folded


def _event(record: Record) -> Event:
    body = record.body
    if record.kind == "signal":
        return Signal(body["name"], body["value"], record.at)
    assert record.effect is not None
    if isinstance(body, dict) and "!" in body:
        return Outcome(record.effect, error=body["!"], error_kind=body["kind"], now=record.at)
    return Outcome(record.effect, value=body["="], now=record.at)


class Runner(Generic[S]):
    """Holds one run and drives it.

    Args:
        machine: what runs.
        journal: where it is kept; `create` or `acquire` gave `token`.
        handlers: kind -> function that carries the effect out.
        policies: kind -> how; a kind that is not there gets `Policy()`.
        limits: counter -> bound; `seconds` is time at work, `tokens` is `tokens_in` plus `tokens_out`.
        concurrency: how many effects may be in flight at once.
        on_step: called after each applied event with the state.
        now: the clock, in seconds since the epoch.
    """

    def __init__(
        self,
        machine: Machine[S],
        journal: Journal,
        run_id: str,
        token: int,
        *,
        handlers: Mapping[str, Handler],
        policies: Mapping[str, Policy],
        limits: Mapping[str, float] | None = None,
        concurrency: int = 1,
        on_step: Callable[[S], None] | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._machine = machine
        self._journal = journal
        self._run_id = run_id
        self._token = token
        self._handlers = handlers
        self._policies = policies
        self._limits = limits or {}
        self._concurrency = max(1, concurrency)
        self._on_step = on_step
        self._now = now
        self._stopping = ""

    def stop(self) -> None:
        """Ask the run to stop after the effects in flight; may be called from any thread."""
        self._stopping = "cancelled"

    async def drive(self, folded: Folded[S], *, answers: Mapping[int, Any] | None = None) -> Finish[S]:
        """Carry the run on until it ends, waits, is stopped or reaches a limit.

        Args:
            folded: the run as `fold` gives it; its state is changed in place.
            answers: outcomes of external effects, by effect id.

        Raises:
            LeaseLost: another process took the run over; nothing more was written.
        """
        self._folded = folded
        self._began = self._now() - folded.used.get("seconds", 0.0)
        self._queue: deque[Effect] = deque()
        self._waiting: dict[int, Effect] = {}
        pending = list(folded.pending.values())
        for effect in pending:
            if answers and effect.id in answers:
                self._settle(effect, {"=": answers[effect.id]}, {})
            else:
                self._admit(effect)
        try:
            detail = await self._loop()
        except LeaseLost:
            raise
        except asyncio.CancelledError:
            self._stopping = "cancelled"
            self._finish("")
            raise
        except BaseException:
            self._journal.release(self._run_id, self._token, "failed")
            raise
        return self._finish(detail)

    async def _loop(self) -> str:
        """Start and await effects until nothing more can be done; return the limit that was reached, or ''."""
        folded = self._folded
        running: set[asyncio.Task[None]] = set()
        detail = ""
        try:
            while self._machine.ended(folded.state) is None:
                while self._queue and len(running) < self._concurrency and not self._stopping and not detail:
                    detail = self._limit_reached(self._queue[0])
                    if detail:
                        break
                    effect = self._queue.popleft()
                    if not running and not self._queue:
                        await self._carry_out(effect)  # nothing runs beside it: no task needed
                        if self._machine.ended(folded.state) is not None:
                            break
                    else:
                        running.add(asyncio.get_running_loop().create_task(self._carry_out(effect)))
                if not running:
                    break
                patience = self._seconds_left()
                done, running = await asyncio.wait(
                    running, timeout=patience, return_when=asyncio.FIRST_COMPLETED
                )
                for task in done:
                    task.result()
                if not done:
                    detail = "seconds"
                    break
        finally:
            for task in running:
                task.cancel()
            if running:
                await asyncio.gather(*running, return_exceptions=True)
        return detail

    def _finish(self, detail: str) -> Finish[S]:
        folded = self._folded
        ended = self._machine.ended(folded.state)
        if ended is None:
            detail = detail or self._timed_out()
            ended = self._stopping or ("limit" if detail else "waiting")
        self._append(Record("stop", self._now(), body={"ended": ended, "detail": detail}))
        self._journal.release(self._run_id, self._token, ended)
        folded.used["seconds"] = self._now() - self._began
        return Finish(folded.state, ended, detail, folded.used, tuple(self._waiting.values()))

    def _admit(self, effect: Effect) -> None:
        policy = self._policies.get(effect.kind, _PLAIN)
        if policy.external:
            self._waiting[effect.id] = effect
        elif not policy.repeatable and effect.id in self._folded.started:
            self._settle(effect, {"!": "it was interrupted and may have happened", "kind": "in_doubt"}, {})
        else:
            self._queue.append(effect)

    def _limit_reached(self, effect: Effect) -> str:
        used = self._folded.used
        for counter in self._policies.get(effect.kind, _PLAIN).counts:
            bound = self._limits.get(counter)
            if bound is not None and used.get(counter, 0) >= bound:
                return counter
        bound = self._limits.get("tokens")
        if bound is not None and used.get("tokens_in", 0) + used.get("tokens_out", 0) >= bound:
            return "tokens"
        bound = self._limits.get("cost_usd")
        if bound is not None and used.get("cost_usd", 0) >= bound:
            return "cost_usd"
        return self._timed_out()

    def _timed_out(self) -> str:
        left = self._seconds_left()
        return "seconds" if left is not None and left <= 0 else ""

    def _seconds_left(self) -> float | None:
        bound = self._limits.get("seconds")
        return None if bound is None else max(0.0, self._began + bound - self._now())

    async def _carry_out(self, effect: Effect) -> None:
        """Try an effect once; settle it, or put it back in the queue when its policy allows another attempt."""
        policy = self._policies.get(effect.kind, _PLAIN)
        total = self._folded.used
        errors = self._folded.errors.get(effect.id, [])
        used: dict[str, float] = {}
        for counter in policy.counts:
            used[counter] = 1
            total[counter] = total.get(counter, 0) + 1
        if not policy.repeatable:
            self._append(Record("start", self._now(), effect.id))
        meter = _meter.set(used)
        pause = 0.0
        try:
            attempt = Attempt(len(errors) + 1, f"{self._run_id}:{effect.id}", tuple(errors))
            value = self._handlers[effect.kind](effect, attempt)
            if hasattr(value, "__await__"):
                value = await self._within(value, policy.timeout_s)
        except LeaseLost:
            raise
        except _OutOfTime:
            self._count(used, policy)
            return
        except TimeoutError:
            error, kind = f"no answer within {policy.timeout_s or 0:g} s", "timeout"
        except BadModelAnswer as exc:
            error, kind = str(exc), "BadModelAnswer"
        except TransientError as exc:
            error, kind = str(exc), type(exc).__name__
            pause = min(exc.retry_after_s or policy.backoff_s * 2 ** len(errors), MAX_BACKOFF_S)
        except Exception as exc:  # whatever a plug-in raises is an outcome, not the end of the run
            error, kind = f"{type(exc).__name__}: {exc}", type(exc).__name__
        else:
            self._count(used, policy)
            self._settle(effect, {"=": value}, used)
            return
        finally:
            _meter.reset(meter)
        error = error[:MAX_ERROR_CHARS]
        used["failed_attempts"] = used.get("failed_attempts", 0) + 1
        self._count(used, policy)
        if len(errors) + 1 >= policy.attempts or not policy.repeatable:
            self._settle(effect, {"!": error, "kind": kind}, used)
            return
        self._append(Record("attempt", self._now(), effect.id, error, used))
        self._folded.errors[effect.id] = [*errors, error]
        if pause:
            await asyncio.sleep(pause)
        self._queue.appendleft(effect)

    def _count(self, used: dict[str, float], policy: Policy) -> None:
        """Add what an attempt reported; its own counters were raised by one when it began."""
        total = self._folded.used
        for name, amount in used.items():
            total[name] = total.get(name, 0) + amount - (name in policy.counts)

    async def _within(self, awaitable: Awaitable[Any], timeout_s: float | None) -> Any:
        left = self._seconds_left()
        if timeout_s is None and left is None:
            return await awaitable
        bound = min(x for x in (timeout_s, left) if x is not None)
        try:
            async with asyncio.timeout(bound) as guard:
                return await awaitable
        except TimeoutError as exc:
            if guard.expired() and left is not None and (timeout_s is None or left < timeout_s):
                raise _OutOfTime from exc
            raise

    def _settle(self, effect: Effect, body: dict[str, Any], used: dict[str, float]) -> None:
        """Write an outcome down, then apply it."""
        record = Record("outcome", self._now(), effect.id, body, used)
        self._append(record)
        self._folded.pending.pop(effect.id, None)
        for following in self._machine.step(self._folded.state, _event(record)):
            self._folded.pending[following.id] = following
            self._admit(following)
        if self._on_step is not None:
            self._on_step(self._folded.state)

    def _append(self, record: Record) -> None:
        if self._journal.append(self._run_id, self._token, self._folded.seq, record):
            self._stopping = "cancelled"
        self._folded.seq += 1


class _OutOfTime(Exception):
    """The run's own time is over; the effect in flight has no outcome."""


_PLAIN = Policy()
