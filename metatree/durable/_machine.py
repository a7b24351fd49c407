"""What a machine is: plain state and a step without input or output.

Effects and outcomes are not frozen, though nobody changes them: making one takes a third of the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

S = TypeVar("S")


@dataclass(slots=True)
class Effect:
    """One outside request of a machine."""

    id: int
    """Unique in its run, and the same at every replay."""
    kind: str
    """Selects the handler and the policy."""
    payload: Any = None
    """What the handler needs, as each machine has it. Never written to the journal: a replay computes it again."""


@dataclass(slots=True)
class Outcome:
    """What came of an effect: a value, or an error after all its attempts."""

    effect: int
    value: Any = None
    """JSON."""
    error: str | None = None
    error_kind: str | None = None
    """Name of the error's class, `timeout`, or `in_doubt`: started once before a crash, and not repeatable."""
    now: float = 0.0
    """When it came, in seconds since the epoch."""


@dataclass(frozen=True, slots=True)
class Signal:
    """Something said to a machine from outside, such as other limits."""

    name: str
    value: Any = None
    now: float = 0.0


Event = Outcome | Signal


class Machine(Protocol[S]):
    """State that is plain data, and what happens to it.

    No method may do input or output, look at a clock or draw at random: all of it comes in with events, so that
    the same journal gives the same state. The state belongs to its machine and may be changed in place.
    """

    name: str
    version: int
    """Raised when an old journal would no longer replay to the same state."""

    def begin(self, given: Any, now: float) -> tuple[S, Sequence[Effect]]:
        """Make the first state and the first effects from the run's input (JSON)."""
        ...

    def step(self, state: S, event: Event) -> Sequence[Effect]:
        """Apply one event and return the effects that follow from it."""
        ...

    def ended(self, state: S) -> str | None:
        """Say how the run ended, or None while it goes on."""
        ...
