"""Waiting for something to happen without sleeping in a loop: those who wait are woken when there is something.

Within one process a change wakes at once. What other processes of the same database did, and leases that end, are
seen by one watcher a process, which looks only while somebody waits.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

from metatree.errors import MetatreeError
from metatree_agents.service.database import Database
from metatree_agents.service.queue import Queue

TICK_S: Final = 0.05
"""How often the watcher asks whether another process wrote."""
LEASES_S: Final = 1.0
"""How often it looks for leases that have ended."""


class Line:
    """A line of those who wait for one thing each: a ring wakes the first of them.

    One who is woken and goes away without taking anything must ring again for the next.
    """

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def ring(self, times: int = 1) -> None:
        """Wake as many as there are new things, first come first served."""
        while times > 0 and self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                times -= 1

    def ring_all(self) -> None:
        """Wake all who wait now."""
        self.ring(len(self._waiting))

    @asynccontextmanager
    async def place(self) -> AsyncIterator[asyncio.Future[None]]:
        """Stand in the line; the future is done when it is one's turn to look.

        Stand in it before looking, so that what comes between looking and waiting is not missed.
        """
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        try:
            yield waiter
        finally:
            if not waiter.done():
                with suppress(ValueError):
                    self._waiting.remove(waiter)
                waiter.cancel()


class Waiting:
    """The lines of one process: engines that wait for queries, and callers that wait for answers."""

    def __init__(self, database: Database, queue: Queue) -> None:
        self.engines = Line()
        self._answers: dict[tuple[str, int], Line] = {}
        self._database = database
        self._queue = queue
        self._watcher: asyncio.Task[None] | None = None
        self._seen = time.time()
        self._last_step = 0

    def answered(self, topic: str, seq: int) -> None:
        """Wake those who wait for this answer, or watch how it comes to be."""
        line = self._answers.get((topic, seq))
        if line is not None:
            line.ring_all()

    def removed(self, topic: str) -> None:
        """Wake those who wait for answers in a topic that is not there any more."""
        for its, seq in [*self._answers]:
            if its == topic:
                self.answered(its, seq)

    @asynccontextmanager
    async def answer(self, topic: str, seq: int) -> AsyncIterator[asyncio.Future[None]]:
        """Wait for a change of one query."""
        line = self._answers.setdefault((topic, seq), Line())
        try:
            async with line.place() as waiter:
                yield waiter
        finally:
            if not line and self._answers.get((topic, seq)) is line:
                del self._answers[topic, seq]

    def callers(self) -> int:
        """Return how many wait for answers."""
        return sum(len(line) for line in self._answers.values())

    def start(self) -> None:
        """Begin to watch for what other processes do."""
        self._watcher = asyncio.get_running_loop().create_task(self._watch())

    async def stop(self) -> None:
        """Stop watching."""
        if self._watcher is not None:
            self._watcher.cancel()
            with suppress(asyncio.CancelledError):
                await self._watcher

    async def _watch(self) -> None:
        next_look = 0.0
        while True:
            await asyncio.sleep(TICK_S)
            if not self.engines and not self._answers:
                continue
            try:
                changed = self._database.changed()
                if changed or time.monotonic() >= next_look:
                    next_look = time.monotonic() + LEASES_S
                    await self._look()
            except MetatreeError:
                continue  # a database that is away for a moment; those who wait go on waiting

    async def _look(self) -> None:
        if self.engines and await self._queue.is_ready():
            self.engines.ring_all()
        if self._answers:
            since, self._seen = self._seen, time.time() - 1.0  # clocks of machines differ a little
            async with self._database.transaction() as do:
                rows = await do.rows("SELECT topic, seq FROM query WHERE answered_at >= ?", since)
                rows += await do.rows(
                    "SELECT topic, seq FROM progress WHERE number > ? GROUP BY topic, seq", self._last_step
                )
                last = await do.row("SELECT max(number) FROM progress")
            self._last_step = int(last[0] or 0) if last else 0
            for topic, seq in rows:
                self.answered(topic, int(seq))


async def first_of(timeout_s: float, *futures: asyncio.Future[Any]) -> None:
    """Wait until one of these is done, or the time is over."""
    await asyncio.wait(futures, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
