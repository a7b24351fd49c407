"""Where a search runs, so that it never blocks the loop of its caller.

    the caller's loop                          a loop in a thread beside it (`side_loop`)
    asearch, aresume, astream  ─────────────►  the machine, its journal and its board, the tree, evidence and its index,
                                               parts that say `any_loop`, the records of calls
    parts that do not say `any_loop`, tools, ◄─ `Home.run`: their clients may be bound to the caller's loop
    `permit`, fallbacks, `on_event`

`search` and `resume` have a loop and a thread of their own, and all of it runs there.

Lost: the machine on the caller's loop, with a thread for each read of the tree and each append to the journal. Between
two calls of a model there are several of these and one way there and back, so this makes fewer hops between threads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from metatree._util.threads import run_on, side_loop
from metatree.protocols import HasTraits

T = TypeVar("T")
Q = TypeVar("Q")


class Home:
    """The caller's loop; None when the search itself is on it."""

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self._loop = loop

    async def run(self, make: Callable[[], Awaitable[T]]) -> T:
        """Run a coroutine on the caller's loop; cancelling this cancels it there."""
        return await (make() if self._loop is None else run_on(self._loop, make))

    def asks(self, part: HasTraits, method: Callable[[Q], Awaitable[T]]) -> Callable[[Q], Awaitable[T]]:
        """Return what asks a part: on the caller's loop, unless it says that any will do."""
        if self._loop is None or part.traits.any_loop:
            return method
        return partial(self._on_home, method)

    async def _on_home(self, method: Callable[[Q], Awaitable[T]], request: Q) -> T:
        return await self.run(lambda: method(request))

    def tell(self, function: Callable[..., object], *what: Any) -> None:
        """Call a function on the caller's loop, without waiting for it; calls come in order."""
        if self._loop is None:
            function(*what)
        else:
            with suppress(RuntimeError):  # the loop is closed: nobody listens
                self._loop.call_soon_threadsafe(function, *what)


async def off_caller_loop(work: Callable[[Home], Awaitable[T]]) -> T:
    """Run a search in the thread beside the running loop."""
    here, beside = asyncio.get_running_loop(), side_loop()
    return await run_on(beside, lambda: work(Home(None if beside is here else here)))
