"""How long planning may take and how much memory it may use, looked at from inside its loops.

Memory is what the system says of the process, above what it had when planning began: what a host program holds is not
planning's. Lost: counting what is kept, which knows nothing of the lists inside generated loops.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Final, Literal

from metatree._util.process import resident_bytes
from metatree.errors import MetatreeError

MEMORY: Final = 1_000_000_000
"""Bytes that planning may add to the process, by default."""

_EVERY: Final = 2_000
"""Steps of a loop between two looks at clock and memory."""

Reason = Literal["time", "memory"]


class LimitReached(MetatreeError):
    """Planning has come to a limit; `reason` says to which."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(f"the limit of {reason} was reached", reason=reason)
        self.reason: Reason = reason


class SolverLimits:
    """Limits of one planning.

    Args:
        seconds: from now.
        memory: bytes that the process may have in memory above what it has now.
    """

    def __init__(
        self,
        seconds: float = float("inf"),
        memory: float = MEMORY,
        *,
        clock: Callable[[], float] = time.monotonic,
        resident: Callable[[], int] | None = None,
    ) -> None:
        self.clock = clock
        self.seconds = seconds
        self.deadline = clock() + seconds
        self.memory = memory
        self._resident = resident or resident_bytes
        self._before = self._resident()
        self._steps = 0

    def check(self) -> None:
        """Look at clock and memory; raises LimitReached."""
        if self.clock() > self.deadline:
            raise LimitReached("time")
        if self._added() > self.memory:
            raise LimitReached("memory")

    def step(self, weight: int = 1) -> None:
        """Count a step of a loop, a heavy one as several, and look now and then."""
        self._steps += weight
        if self._steps >= _EVERY:
            self._steps = 0
            self.check()

    def describe(self, reason: Reason) -> str:
        """Return a limit as words, to be put behind what did not succeed, and how to raise it."""
        if reason == "time":
            return f"in {self.seconds:g} s: raise --seconds"
        return f"in {self.memory / 1e6:g} MB: raise --memory"

    def has_room(self) -> bool:
        """Say whether there is room again, now that what a search knew is forgotten."""
        gc.collect()
        return self._added() < 0.75 * self.memory

    def _added(self) -> int:
        return self._resident() - self._before
