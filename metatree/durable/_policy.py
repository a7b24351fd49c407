"""How effects are executed: how often they are tried, for how long, what they count, what may not be repeated."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from metatree.durable._machine import Effect


def _ignored(_: Any) -> None:
    pass


@dataclass(slots=True)
class Attempt:
    """What a handler gets besides the effect."""

    number: int
    """From 1."""
    key: str
    """Idempotency key: the same at every repetition of this effect, in every process."""
    errors: tuple[str, ...] = ()
    """What went wrong in the earlier attempts."""
    progress: Any = None
    """What an earlier attempt reported last."""
    report: Callable[[Any], None] = _ignored
    """Shows, from any thread, that it is at work, and keeps how far it is (JSON, or None) for an attempt after it."""


Handler = Callable[[Effect, Attempt], "Awaitable[Any] | Any"]
"""Carries an effect out and returns JSON; may be a coroutine function or, for what is quick and local, a function."""


class InDoubt(Exception):
    """Raised by a handler: the effect was started once, may have happened, and may not happen twice."""


@dataclass(frozen=True, slots=True)
class Policy:
    """How an effect of one kind is executed."""

    attempts: int = 1
    """How often it is tried when it fails; each attempt is journaled and counted."""
    timeout_s: float | None = None
    """For each attempt."""
    heartbeat_s: float | None = None
    """An attempt that reports nothing for so long is given up, as when its time is over."""
    backoff_s: float = 0.5
    """Wait before the second attempt at something that is out of reach; doubles each time."""
    repeatable: bool | Callable[[Effect], bool] = True
    """False: its start is journaled, and an effect that was in flight when the process died is in doubt."""
    announced: bool = False
    """Its start is journaled, too, and the machine is notified of it by the signal `began` (`effect`, `attempt`)."""
    guard: Handler | None = None
    """Called before its start is written down; an error that it raises is the outcome, without an attempt."""
    recover: Handler | None = None
    """For effects in doubt: returns what came of one, if that is known elsewhere, or raises InDoubt."""
    external: bool = False
    """Its outcome comes from outside (a person); the run waits for it, across restarts of the process."""
    due: Callable[[Effect], float] | None = None
    """When it comes about by itself, with the value None, in seconds since the epoch; without a process until then."""
    fatal: tuple[type[Exception], ...] = ()
    """Errors that are no outcome: the run stops there as failed, and can be taken up when they are fixed."""
    counts: tuple[str, ...] = ()
    """Counters that each attempt raises by one; a limit on one of them is kept to the call."""

    def once(self, effect: Effect) -> bool:
        """Say whether this effect may not happen twice."""
        return not (self.repeatable(effect) if callable(self.repeatable) else self.repeatable)
