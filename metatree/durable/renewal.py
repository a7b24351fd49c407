"""A lease that is renewed while the work under it goes on, whatever the work blocks.

Each lease has a thread of its own: on the event loop a body that blocks lost its lease, and another process did the
same work beside it.

Lost: one thread for all leases (one server that is away would hold up the others), renewals that come along with
writes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

from metatree.errors import LeaseLost

SHARE: Final = 3
"""A lease is renewed after this part of it: it outlives one renewal that fails."""
_AGAIN: Final = 5
"""After this part of the usual pause a renewal that failed is tried again."""
_LEAST_S: Final = 0.01


class Renewal:
    """Renews a lease in a thread of its own until the block ends; for one block.

    On an event loop a body that blocks would lose the lease, and another process would do the same work beside it.

    Args:
        renew: prolongs the lease, in the thread. Raises `LeaseLost` when somebody else has it; any other error is
            taken for one that passes, since the next write says what is wrong.
        every_s: how often; a third of the lease, see `SHARE`.
        lost: called in the thread, once, when somebody else has it, so that the work is given up.
        wait: waits for so many seconds, or until the block has ended, and says whether it has; tests give their own.
    """

    def __init__(
        self,
        renew: Callable[[], object],
        *,
        every_s: float,
        lost: Callable[[], object],
        wait: Callable[[float], bool] | None = None,
    ) -> None:
        self._renew = renew
        self._every_s = max(every_s, _LEAST_S)
        self._lost = lost
        self._over = threading.Event()
        self._wait = wait or self._over.wait
        self._thread = threading.Thread(target=self._work, name="metatree-lease", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Not waited for: a renewal may hang on a server that is away.
        self._over.set()

    def join(self) -> None:
        """Wait, after the block, for a renewal that is in progress."""
        self._thread.join()

    def _work(self) -> None:
        pause_s = self._every_s
        while not self._wait(pause_s):
            pause_s = self._every_s
            try:
                self._renew()
            except LeaseLost:
                if not self._over.is_set():
                    self._lost()
                return
            except Exception:
                pause_s = self._every_s / _AGAIN
