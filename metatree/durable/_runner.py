"""Drive a machine: start its effects, write down what comes of them, apply it, and stop where it must."""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from metatree.durable._journal import SIGNALS, STOP, Journal, Record
from metatree.durable._machine import Effect, Machine
from metatree.durable._policy import Attempt, Handler, InDoubt, Policy
from metatree.durable._replay import Replayed, apply
from metatree.durable.renewal import Renewal
from metatree.errors import LeaseLost, ToolFailed, TransientError, UserError

S = TypeVar("S")

MAX_ERROR_CHARS = 500
MAX_BACKOFF_S = 30.0
IN_DOUBT = "in_doubt"
_LONGEST_S = 30.0
"""How long a timer is waited for until the clock is looked at again, which may have been set."""
_NAP_S = 0.25
"""How often a pause between two attempts looks whether the run is to stop."""
_LINGER_S = 1.0
"""A run that has nothing to do but to wait for a time is let go of when that is farther away."""
_PROGRESS_S = 1.0
"""What an effect reports is written down no more often than this."""
_PLAIN = Policy()


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


_memory: contextvars.ContextVar[dict[str, Any] | None] = contextvars.ContextVar(
    "metatree_run_memory", default=None
)


def run_memory() -> dict[str, Any]:
    """Return what the effects of the run in progress keep for one another, in this process; outside a run, nothing."""
    memory = _memory.get()
    return {} if memory is None else memory


def report_usage(**amounts: Any) -> None:
    """Add numbers to what the effect in progress has used (`tokens_in=…`, `cost_usd=…`).

    Outside a run nothing happens. Any thread that has the effect's context variables may call it.
    """
    meter = _meter.get()
    if meter is not None:
        for name, amount in amounts.items():
            meter[name] = meter.get(name, 0) + (amount if isinstance(amount, int) else float(amount))


@contextmanager
def metered() -> Iterator[dict[str, float]]:
    """Yield the sums of what is reported inside; what is around it counts them in the end."""
    used = dict[str, float]()
    outer = _meter.set(used)
    try:
        yield used
    finally:
        _meter.reset(outer)
        report_usage(**used)


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
        self._lost = False
        self._late = False
        self._has_signals = True
        self._wake = asyncio.Event()
        self._driving: asyncio.Task[Any] | None = None
        self._memory: dict[str, Any] = {}
        self._timers: dict[int, tuple[float, Effect]] = {}

    def stop(self) -> None:
        """Ask the run to stop after the effects in flight; may be called from any thread."""
        self._stopping = "cancelled"

    async def drive(self, replayed: Replayed[S], *, answers: Mapping[int, Any] | None = None) -> Finish[S]:
        """Carry the run on until it ends, waits, is stopped or reaches a limit.

        Args:
            replayed: the run as `replay` gives it; its state is changed in place.
            answers: outcomes of external effects, by effect id.

        Raises:
            LeaseLost: another process took the run over; nothing more was written.
            Exception: the journal or the machine failed, or an effect failed as its policy calls fatal. What the
                journal holds is whole, and the run can be taken up from there.
        """
        self._replayed = replayed
        self._began = self._now() - replayed.used.get("seconds", 0.0)
        self._queue: deque[Effect] = deque()
        self._waiting: dict[int, Effect] = {}
        self._timers = {}
        self._wake = asyncio.Event()
        self._driving = asyncio.current_task()
        try:
            with self._renewal():
                for effect in list(replayed.pending.values()):
                    if answers and effect.id in answers:
                        self._settle(effect, {"=": answers[effect.id]}, {})
                    else:
                        self._enqueue(effect)
                detail = await self._loop()
            return self._finish(detail)
        except LeaseLost:
            raise
        except asyncio.CancelledError:
            if self._lost and (task := asyncio.current_task()) is not None:
                task.uncancel()
                raise LeaseLost(self._run_id) from None
            self._stopping = "cancelled"
            with suppress(Exception):
                self._finish("")
            raise
        except BaseException:
            replayed.used["seconds"] = self._now() - self._began
            with suppress(Exception):  # what stopped the run may hinder this too; the hold runs out by itself
                self._journal.release(self._run_id, self._token, "failed")
            raise
        finally:
            self._driving = None

    def _renewal(self) -> AbstractContextManager[object]:
        """Keep the hold while effects are in flight; give them up when it is lost, since another process makes them."""
        every_s = self._journal.renew_every_s
        if every_s is None:
            return nullcontext()
        loop = asyncio.get_running_loop()

        def renew() -> None:
            loop.call_soon_threadsafe(self._check_flags, self._journal.renew(self._run_id, self._token))

        return Renewal(renew, every_s=every_s, lost=lambda: loop.call_soon_threadsafe(self._give_up))

    def _give_up(self) -> None:
        if self._driving is not None:
            self._lost = True
            self._driving.cancel()

    async def _loop(self) -> str:
        """Start and await effects until nothing more can be done; return the limit that was reached, or ''."""
        state = self._replayed.state
        queue = self._queue
        running: set[asyncio.Task[None]] = set()
        wake_task: asyncio.Task[Any] | None = None
        detail = ""
        try:
            while self._machine.ended(state) is None:
                if self._has_signals:
                    self._take_signals()
                    if self._machine.ended(state) is not None:
                        break
                self._settle_due()
                if self._machine.ended(state) is not None:
                    break
                while queue and len(running) < self._concurrency and not self._stopping and not detail:
                    detail = self._limit_reached(queue[0])
                    if detail:
                        break
                    effect = queue.popleft()
                    # Nothing runs beside it: no task is needed, but where signals may call a long one off.
                    if not running and not queue and not self._policies.get(effect.kind, _PLAIN).announced:
                        await self._execute(effect)
                        if self._machine.ended(state) is not None:
                            break
                    else:
                        running.add(asyncio.get_running_loop().create_task(self._execute(effect)))
                if not running:
                    if self._has_signals:  # it came with the last effect
                        continue
                    due_s = self._until_due()
                    if due_s is None or due_s > _LINGER_S or self._stopping or detail:
                        break
                if wake_task is None or wake_task.done():
                    self._wake.clear()
                    wake_task = asyncio.get_running_loop().create_task(self._wake.wait())
                left_s, due_s = self._seconds_left(), self._until_due()
                done, _ = await asyncio.wait(
                    {*running, wake_task},
                    timeout=min((one for one in (left_s, due_s) if one is not None), default=None),
                    return_when=asyncio.FIRST_COMPLETED,
                )
                running -= done
                failures = [failure for task in done if (failure := task.exception()) is not None]
                if failures:
                    raise failures[0]
                if not done and self._seconds_left() == 0:
                    detail = "seconds"
                    break
        finally:
            if wake_task is not None:
                wake_task.cancel()
            for task in running:
                task.cancel()
            if running:
                await asyncio.gather(*running, return_exceptions=True)
        return detail

    def _finish(self, detail: str) -> Finish[S]:
        replayed = self._replayed
        ended = self._machine.ended(replayed.state)
        if ended is None:
            detail = detail or ("" if self._waiting and not self._queue else self._timed_out())
            ended = self._stopping or ("limit" if detail else "waiting")
        self._append(Record("stop", self._now(), body={"ended": ended, "detail": detail}))
        wake_at = min((at for at, _ in self._timers.values()), default=None)
        if ended == "waiting" and wake_at is not None:
            self._journal.release(self._run_id, self._token, ended, wake_at=wake_at)
        else:
            self._journal.release(self._run_id, self._token, ended)
        replayed.used["seconds"] = self._now() - self._began
        return Finish(replayed.state, ended, detail, replayed.used, tuple(self._waiting.values()))

    def _enqueue(self, effect: Effect) -> None:
        policy = self._policies.get(effect.kind, _PLAIN)
        if policy.external:
            self._waiting[effect.id] = effect
        elif policy.due is not None:
            self._timers[effect.id] = (policy.due(effect), effect)
        else:
            self._queue.append(effect)

    def _until_due(self) -> float | None:
        """Return how long it takes until the first timer is due, or until the clock is looked at again."""
        at = min((at for at, _ in self._timers.values()), default=None)
        return None if at is None else min(max(0.0, at - self._now()), _LONGEST_S)

    def _settle_due(self) -> None:
        """Let come about whose time has come, the first of them first."""
        while not self._stopping:
            effect = min(self._timers, key=lambda key: (self._timers[key][0], key), default=None)
            if effect is None or self._timers[effect][0] > self._now():
                return
            self._settle(self._timers.pop(effect)[1], {"=": None}, {})
            if self._machine.ended(self._replayed.state) is not None:
                return

    def _limit_reached(self, effect: Effect) -> str:
        limits = self._limits
        if not limits:
            return ""
        used = self._replayed.used
        for counter in self._policies.get(effect.kind, _PLAIN).counts:
            limit = limits.get(counter)
            if limit is not None and used.get(counter, 0) >= limit:
                return counter
        limit = limits.get("tokens")
        if limit is not None and used.get("tokens_in", 0) + used.get("tokens_out", 0) >= limit:
            return "tokens"
        limit = limits.get("cost_usd")
        if limit is not None and used.get("cost_usd", 0) >= limit:
            return "cost_usd"
        return self._timed_out()

    def _timed_out(self) -> str:
        return "seconds" if self._seconds_left() == 0 else ""

    def _seconds_left(self) -> float | None:
        limit = self._limits.get("seconds")
        if self._late:
            return 0.0
        if limit is None:
            return None
        remaining_s = self._began + limit - self._now()
        return remaining_s if remaining_s > 0 else 0.0

    async def _execute(self, effect: Effect) -> None:
        """Try an effect once; settle it, or put it back in the queue when its policy allows another attempt."""
        policy = self._policies.get(effect.kind, _PLAIN)
        errors = self._replayed.errors.get(effect.id, ())
        used: dict[str, float] = dict.fromkeys(policy.counts, 1)
        handler: Handler | None = self._handlers[effect.kind]
        once = policy.repeatable is not True and policy.once(effect)
        started = self._replayed.started.get(effect.id, 0)
        number = (started if policy.announced else len(errors)) + 1
        if once and started:
            handler, used = policy.recover, {}
        else:
            if policy.guard is not None and not await self._check_guard(
                effect, policy.guard, number, tuple(errors)
            ):
                return
            if once or policy.announced:
                body = {"attempt": started + 1} if policy.announced else None
                self._keep(Record("start", self._now(), effect.id, body))
        if used:
            self._count(used)
        meter, memory = _meter.set(used), _memory.set(self._memory)
        counted = dict(used)
        pause, final = 0.0, False
        reports = None
        if policy.announced or policy.heartbeat_s is not None:
            reports = _Reports(
                asyncio.get_running_loop(), partial(self._report, effect.id), policy.heartbeat_s
            )
        try:
            if handler is None:
                raise InDoubt("it was interrupted and may have happened")
            attempt = Attempt(number, f"{self._run_id}:{effect.id}", tuple(errors))
            if reports is not None:
                attempt.progress = self._replayed.progress.get(effect.id)
                attempt.report = reports.report
            value = handler(effect, attempt)
            if hasattr(value, "__await__"):
                watched = value if reports is None else reports.watched(value)
                value = await self._within(watched, policy.timeout_s)
        except LeaseLost:
            raise
        except _OutOfTime:
            self._record_interruption(effect, used, counted)
            self._late = True
            self._queue.appendleft(effect)
            return
        except asyncio.CancelledError:
            with suppress(Exception):
                self._record_interruption(effect, used, counted)
            raise
        except InDoubt as exc:
            error, kind, final = str(exc), IN_DOUBT, True
        except TimeoutError as exc:
            error, kind = str(exc) or f"no answer within {policy.timeout_s or 0:g} s", "timeout"
        except Exception as exc:  # whatever a plug-in raises is an outcome, not the end of the run
            error, kind = _error_text(exc), type(exc).__name__
            final = isinstance(exc, UserError | ToolFailed)
            lasting = not isinstance(exc, TransientError) or len(errors) + 1 >= policy.attempts
            if lasting and isinstance(exc, policy.fatal):
                with suppress(Exception):
                    self._record_interruption(effect, used, counted, anew=True)
                raise
            if isinstance(exc, TransientError):
                pause = min(exc.retry_after_s or policy.backoff_s * 2 ** len(errors), MAX_BACKOFF_S)
        else:
            if used:
                self._count(used, counted)
            self._settle(effect, {"=": value}, used)
            return
        finally:
            _meter.reset(meter)
            _memory.reset(memory)
            if reports is not None:
                reports.close()
        error = error[:MAX_ERROR_CHARS]
        used["failed_attempts"] = used.get("failed_attempts", 0) + 1
        self._count(used, counted)
        if final or once or len(errors) + 1 >= policy.attempts:
            self._settle(effect, {"!": error, "kind": kind}, used)
            return
        self._keep(Record("attempt", self._now(), effect.id, error, used))
        await self._pause(pause)
        self._queue.appendleft(effect)

    def _report(self, effect: int, value: Any) -> None:
        """Write down what an effect in flight has come to."""
        try:
            self._append(Record("progress", self._now(), effect, value))
        except LeaseLost:
            self._give_up()
            return
        self._replayed.progress[effect] = value

    async def _check_guard(
        self, effect: Effect, guard: Handler, number: int, errors: tuple[str, ...]
    ) -> bool:
        """Ask an effect's guard; when it raises, that is the outcome."""
        memory = _memory.set(self._memory)
        try:
            value = guard(effect, Attempt(number, f"{self._run_id}:{effect.id}", errors))
            if hasattr(value, "__await__"):
                await value
        except LeaseLost:
            raise
        except Exception as exc:
            self._settle(effect, {"!": _error_text(exc)[:MAX_ERROR_CHARS], "kind": type(exc).__name__}, {})
            return False
        finally:
            _memory.reset(memory)
        return True

    def _take_signals(self) -> None:
        """Take up what was posted to the run."""
        self._has_signals = False
        replayed = self._replayed
        for record in self._journal.take(self._run_id, self._token, replayed.seq):
            replayed.seq += 1
            self._apply(record)

    def _check_flags(self, flags: int) -> None:
        """Check what the journal says about the run."""
        if flags & STOP:
            self._stopping = "cancelled"
        if flags & SIGNALS:
            self._has_signals = True
            self._wake.set()

    async def _pause(self, seconds: float) -> None:
        remaining_s = self._seconds_left()
        deadline = time.monotonic() + (seconds if remaining_s is None else min(seconds, remaining_s))
        while not self._stopping and (nap := deadline - time.monotonic()) > 0:
            await asyncio.sleep(min(nap, _NAP_S))

    def _record_interruption(
        self, effect: Effect, used: dict[str, float], counted: Mapping[str, float], *, anew: bool = False
    ) -> None:
        """Write down what an attempt used that came to nothing, since the run is to stop.

        Args:
            anew: whether its attempts are counted from one again when the run is taken up.
        """
        self._count(used, counted)
        self._append(Record("cut", self._now(), effect.id, {"anew": anew}, used))

    def _count(self, used: Mapping[str, float], counted: Mapping[str, float] | None = None) -> None:
        """Add to the run's counters, without what was counted when the attempt began."""
        total = self._replayed.used
        for name, amount in used.items():
            total[name] = total.get(name, 0) + amount - (counted.get(name, 0) if counted else 0)

    async def _within(self, awaitable: Awaitable[Any], timeout_s: float | None) -> Any:
        remaining_s = self._seconds_left()
        if timeout_s is None and remaining_s is None:
            return await awaitable
        limit_s = min(x for x in (timeout_s, remaining_s) if x is not None)
        try:
            async with asyncio.timeout(limit_s) as guard:
                return await awaitable
        except TimeoutError as exc:
            if guard.expired() and remaining_s is not None and (timeout_s is None or remaining_s < timeout_s):
                raise _OutOfTime from exc
            raise

    def _settle(self, effect: Effect, body: dict[str, Any], used: dict[str, float]) -> None:
        self._keep(Record("outcome", self._now(), effect.id, body, used))

    def _keep(self, record: Record) -> None:
        """Write down what happened, then apply it."""
        self._append(record)
        self._apply(record)

    def _apply(self, record: Record) -> None:
        following = apply(self._machine, self._replayed, record)
        if following is None:
            return
        for effect in following:
            self._enqueue(effect)
        if self._on_step is not None:
            self._on_step(self._replayed.state)

    def _append(self, record: Record) -> None:
        if flags := self._journal.append(self._run_id, self._token, self._replayed.seq, record):
            self._check_flags(flags)
        self._replayed.seq += 1


class _Reports:
    """What one attempt reports of itself, from whichever thread: taken down on the loop, now and then."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, keep: Callable[[Any], None], silent_s: float | None
    ) -> None:
        self._loop, self._keep, self._silent_s = loop, keep, silent_s
        self._guard: asyncio.Timeout | None = None
        self._next_at_s = 0.0
        self._later: asyncio.TimerHandle | None = None
        self._closed = False

    def report(self, value: Any) -> None:
        """Show that it is at work, and keep a value that is not None."""
        with suppress(RuntimeError):  # the loop is closed: nobody listens
            self._loop.call_soon_threadsafe(self._reported, value)

    async def watched(self, awaitable: Awaitable[Any]) -> Any:
        """Await what makes the attempt, for as long as it reports.

        Raises:
            TimeoutError: it was silent for too long.
        """
        if self._silent_s is None:
            return await awaitable
        try:
            async with asyncio.timeout(self._silent_s) as self._guard:
                return await awaitable
        except TimeoutError as exc:
            if self._guard is not None and self._guard.expired():
                raise TimeoutError(f"no sign of life for {self._silent_s:g} s") from exc
            raise

    def close(self) -> None:
        """Take nothing down any more."""
        self._closed = True
        if self._later is not None:
            self._later.cancel()

    def _reported(self, value: Any) -> None:
        if self._closed:
            return
        now_s = self._loop.time()
        if self._guard is not None and self._silent_s is not None and not self._guard.expired():
            self._guard.reschedule(now_s + self._silent_s)
        if value is None:
            return
        if self._later is not None:
            self._later.cancel()
        if now_s >= self._next_at_s:
            self._write(value)
        else:  # the last one is kept
            self._later = self._loop.call_at(self._next_at_s, self._write, value)

    def _write(self, value: Any) -> None:
        self._next_at_s = self._loop.time() + _PROGRESS_S
        if not self._closed:
            self._keep(value)


class _OutOfTime(Exception):
    """The run's own time is over; the effect in flight has no outcome."""


def _error_text(exc: Exception) -> str:
    """Return what an error says, with its class when it is not one of our own."""
    try:
        text = str(exc)
    except Exception:
        text = ""
    name = type(exc).__name__
    if type(exc).__module__.startswith("metatree"):
        return text or name
    return f"{name}: {text}"
