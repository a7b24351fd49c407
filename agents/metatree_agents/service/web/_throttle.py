"""Slows those who guess: after some failures in a row, each attempt has to wait, twice as long as the one before."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

FREE: Final = 5
"""How many failures cost nothing: people mistype."""
LONGEST_S: Final = 60.0
FORGOTTEN_S: Final = 900.0
KEPT: Final = 10_000


class Throttle:
    """Failures by key, such as an address or a name, in the memory of this process.

    Args:
        clock: seconds that only grow; another one for tests.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures: OrderedDict[str, tuple[int, float]] = OrderedDict()

    def wait_s(self, *keys: str) -> float:
        """Return how long the next attempt has to wait, 0 for not at all."""
        now = self._clock()
        return max(0.0, *(self._free_at(key) - now for key in keys))

    def _free_at(self, key: str) -> float:
        count, at = self._failures.get(key, (0, 0.0))
        return at if count < FREE else at + min(LONGEST_S, 2.0 ** (count - FREE))

    def failed(self, *keys: str) -> None:
        """Note a failed attempt."""
        now = self._clock()
        for key in keys:
            count, at = self._failures.pop(key, (0, now))
            self._failures[key] = (1 if now - at > FORGOTTEN_S else count + 1, now)
        while len(self._failures) > KEPT:
            self._failures.popitem(last=False)

    def succeeded(self, *keys: str) -> None:
        """Forget the failures of those who got in."""
        for key in keys:
            self._failures.pop(key, None)
