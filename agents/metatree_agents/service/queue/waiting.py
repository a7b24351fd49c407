"""Waiting for something to happen without sleeping in a loop: those who wait are woken when there is something.

Within one process a change wakes at once. What other processes of the same database did is heard from the database.
Leases that end, and what was not heard, are seen by one watcher a process, which looks only while somebody waits.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final
from weakref import WeakSet

from metatree.errors import MetatreeError
from metatree_agents.service.accounts.tree_rights import UNNAMED
from metatree_agents.service.database.database import QueueChange, ServiceDatabase, rows_with
from metatree_agents.service.queue.queue import Queue

LOOK_S: Final = 1.0
"""How often the watcher looks for leases that have ended, and for what was not heard."""
COMMIT_S: Final = 1.0
"""How long an answer may take to be seen after its time was read."""


class Notifier:
    """Those who wait for one thing each, first come first served.

    One who is woken and goes away without taking anything must notify the next.
    """

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def notify(self, times: int = 1) -> None:
        """Wake as many as there are new things."""
        while times > 0 and self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                times -= 1

    def notify_all(self) -> None:
        """Wake all who wait now."""
        self.notify(len(self._waiting))

    @asynccontextmanager
    async def waiter(self) -> AsyncIterator[asyncio.Future[None]]:
        """Wait; the future is done when it is one's turn to look.

        Begin to wait before looking, so that what comes between looking and waiting is not missed.
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


class WaitingEngines:
    """Engines that wait for a topic, by the sets of trees that they have.

    What is new is told in each set: which of them can have it, the queue knows.
    """

    def __init__(self) -> None:
        self._of: dict[int, Notifier] = {}

    def __len__(self) -> int:
        return sum(map(len, self._of.values()))

    def notify(self, times: int = 1) -> None:
        """Wake as many of each set as there are new things."""
        for notifier in list(self._of.values()):
            notifier.notify(times)

    def with_trees(self, trees: int) -> int:
        """Return how many wait that have all trees of a set."""
        return sum(len(notifier) for its, notifier in self._of.items() if not trees & ~its)

    def counts(self) -> list[tuple[int, Notifier]]:
        """Return the sets in which any wait, with those who do."""
        return [(trees, notifier) for trees, notifier in self._of.items() if notifier]

    @asynccontextmanager
    async def waiter(self, trees: int = UNNAMED) -> AsyncIterator[asyncio.Future[None]]:
        """Wait, as an engine that has these trees."""
        notifier = self._of.setdefault(trees, Notifier())
        try:
            async with notifier.waiter() as waiter:
                yield waiter
        finally:
            if not notifier and self._of.get(trees) is notifier:
                del self._of[trees]


class Waiting:
    """Who waits at one process: engines for queries, and callers for answers."""

    def __init__(self, database: ServiceDatabase, queue: Queue) -> None:
        self.engines = WaitingEngines()
        self._answers: dict[tuple[str, int], Notifier] = {}
        self._searching: Counter[tuple[str, int]] = Counter()
        """How many of those who wait for a query are engines that search for it."""
        self._database = database
        self._queue = queue
        self.ended = False
        """Whether the server is about to stop, so nobody should wait here any more."""
        self._guests: WeakSet[asyncio.Future[None]] = WeakSet()
        self._tasks: list[asyncio.Task[None]] = []
        self._unknown = asyncio.Event()
        """Whether something was heard that is not known."""
        self._since: tuple[float, int] | None = None
        """From which time, and after which step, the watcher looks; None when nobody waited at the last look."""

    def answered(self, topic: str, seq: int) -> None:
        """Wake those who wait for this answer, or watch how it comes to be."""
        notifier = self._answers.get((topic, seq))
        if notifier is not None:
            notifier.notify_all()

    def look_again(self) -> None:
        """Wake all who wait for answers: what they see of their queries has changed otherwise."""
        for notifier in list(self._answers.values()):
            notifier.notify_all()

    def removed(self, topic: str) -> None:
        """Wake those who wait for answers in a topic that is not there any more."""
        for its, seq in [*self._answers]:
            if its == topic:
                self.answered(its, seq)

    @asynccontextmanager
    async def answer(
        self, topic: str, seq: int, *, engine: bool = False
    ) -> AsyncIterator[asyncio.Future[None]]:
        """Wait for a change of one query; an engine that does is no caller."""
        notifier = self._answers.setdefault((topic, seq), Notifier())
        self._searching[topic, seq] += engine
        try:
            async with notifier.waiter() as waiter:
                yield waiter
        finally:
            self._searching[topic, seq] -= engine
            if not self._searching[topic, seq]:
                del self._searching[topic, seq]
            if not notifier and self._answers.get((topic, seq)) is notifier:
                del self._answers[topic, seq]

    def callers(self) -> int:
        """Return how many wait for answers."""
        return sum(len(notifier) for notifier in self._answers.values()) - self._searching.total()

    def callers_of(self, topic: str, seq: int) -> int:
        """Return how many wait for the answer to one query."""
        return len(self._answers.get((topic, seq), ())) - self._searching[topic, seq]

    def on_change(self, change: QueueChange | None) -> None:
        """Wake those who wait for what another process did; None is looked for."""
        if change is None:
            self._unknown.set()
        elif change.query is None:
            self.engines.notify()
        else:
            self.answered(*change.query)

    def until_end(self, left: asyncio.Future[None]) -> None:
        """Have a future that says when a caller has left be cancelled, and so done, when the server stops."""
        self._guests.add(left)
        if self.ended:
            left.cancel()

    def end(self) -> None:
        """Let all who wait go, as if their time was over: they ask again, elsewhere or here."""
        self.ended = True
        for left in list(self._guests):
            left.cancel()

    def start(self) -> None:
        """Begin to watch for what other processes do."""
        loop = asyncio.get_running_loop()
        self._tasks = [
            loop.create_task(self._database.watch(self.on_change)),
            loop.create_task(self._look_often()),
        ]

    async def stop(self) -> None:
        """Stop watching."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _look_often(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await self._unknown.wait()
            self._unknown.clear()
            with suppress(MetatreeError):  # a database that is away for a moment: who waits goes on waiting
                await self._look()

    async def _look(self) -> None:
        for trees, engines in self.engines.counts():
            engines.notify(await self._queue.ready(len(engines), trees=trees))
        if not self._answers:
            self._since = None
            return
        now, last = self._database.clock(), await self._last_step()
        if self._since is None:  # nobody waited before, so nothing is known of what came meanwhile
            rows: list[tuple[Any, ...]] = list(self._answers)
        else:
            answered_at, step = self._since
            rows = await self._database.rows(
                "SELECT topic, seq FROM query WHERE answered_at >= ?", answered_at
            )
            rows += await self._database.rows(
                "SELECT topic, seq FROM progress WHERE number > ? GROUP BY topic, seq", step
            )
            for topic in await self._removed():
                self.removed(topic)
        self._since = (now - COMMIT_S, last)
        for topic, seq in rows:
            self.answered(topic, int(seq))

    async def _removed(self) -> list[str]:
        """Return the topics in which somebody waits that are not there any more."""
        waited = {topic for topic, _ in self._answers}
        rows = await rows_with(self._database, "SELECT id FROM topic WHERE id IN", waited)
        return sorted(waited - {str(row[0]) for row in rows})

    async def _last_step(self) -> int:
        row = await self._database.row("SELECT coalesce(max(number), 0) FROM progress")
        return int(row[0]) if row else 0


async def first_of(timeout_s: float, *futures: asyncio.Future[Any]) -> None:
    """Wait until one of these is done, or the time is over."""
    await asyncio.wait(futures, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
