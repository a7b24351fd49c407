"""Threads for what a page reads or draws, which is mostly short and may be long.

The event loop waits for a thread as long as a person takes an answer for immediate, and goes on with the requests of
others after that. So short work costs what it would cost in the loop, and long work stops everybody for a moment.

Lost: threads alone. Beside a busy loop a thread waits for its turn anew after each row of SQLite and each file that is
opened: with 50 people at once, a page of 5 ms took 300, and pages of the tree 3.5 to 5.5 times the p95 of `/healthz`. A
tenth of this wait: `/find` does not fit into it, and took 1.5 s for 54 ms of work. The loop alone: whoever opens a
document that has to be read anew, or a tree that is being refreshed, would stop everybody. A guess by what the like
took before: one such document among a hundred short texts is no less slow.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Final, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
THREADS: Final = 6
SHORT_S: Final = 0.1
"""How long the loop waits for a thread (Miller, "Response time in man-computer conversational transactions", 1968)."""


class Readers:
    """The threads of one process; made and used in its event loop."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="reader")
        self._long = 0

    async def read(self, what: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
        """Return what a function returns that runs in a thread; raises what it raises."""
        work = self._threads.submit(what, *given, **named)
        if self._long < THREADS:  # else it has not even begun
            wait([work], SHORT_S)
        if work.done():
            return work.result()
        self._long += 1
        try:
            return await asyncio.wrap_future(work)
        finally:
            self._long -= 1
