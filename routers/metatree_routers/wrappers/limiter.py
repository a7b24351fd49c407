"""A limit on concurrent calls that holds across event loops and threads."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import deque
from collections.abc import AsyncIterator
from concurrent.futures import Future

MAX_HOLD_S = 30.0


class Limiter:
    """Lets so many calls run at once, first come first served, whatever loop they run on.

    An `asyncio.Semaphore` belongs to one loop, and each `search` runs on a loop of its own.

    Args:
        concurrency: how many at once.
        per_minute: how many may begin in a minute, evenly spaced; None for no bound.
    """

    def __init__(self, concurrency: int, *, per_minute: float | None = None) -> None:
        self.concurrency = max(1, concurrency)
        self._gap_s = 60.0 / per_minute if per_minute else 0.0
        self._lock = threading.Lock()
        self._free = self.concurrency
        self._waiting: deque[tuple[asyncio.AbstractEventLoop, Future[None]]] = deque()
        self._not_before = 0.0

    @contextlib.asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Hold one of the places while the block runs."""
        await self._take()
        try:
            if self._not_before or self._gap_s:
                await self._wait_for_turn()
            yield
        finally:
            self._give()

    def hold(self, seconds: float) -> None:
        """Let no call begin for so long (at most 30 s): a server asked for patience."""
        self._not_before = max(self._not_before, time.monotonic() + min(seconds, MAX_HOLD_S))

    async def _wait_for_turn(self) -> None:
        with self._lock:
            begin = max(time.monotonic(), self._not_before)
            if self._gap_s:
                self._not_before = begin + self._gap_s
        await asyncio.sleep(max(0.0, begin - time.monotonic()))

    async def _take(self) -> None:
        with self._lock:
            if self._free > 0:
                self._free -= 1
                return
            turn: Future[None] = Future()
            self._waiting.append((asyncio.get_running_loop(), turn))
        try:
            await asyncio.wrap_future(turn)
        except BaseException:
            if not turn.cancel():  # handed over, and not taken
                self._give()
            raise

    def _give(self) -> None:
        with self._lock:
            while self._waiting:
                loop, turn = self._waiting.popleft()
                if not loop.is_closed() and turn.set_running_or_notify_cancel():
                    turn.set_result(None)
                    return
            self._free += 1
