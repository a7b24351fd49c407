"""Calls that begin together on one event loop make and write their requests one after the other.

Left alone, an event loop carries all of them on step by step, so the first request is written when the last is nearly
made, and every wave of calls takes the latency and the work of all. One after the other, the server works on the first
while the others are made, and their answers come one after the other too.
"""

from __future__ import annotations

import asyncio
from weakref import WeakKeyDictionary


class Turns:
    """Gives turns, first come first served, to the calls of each event loop; one call has one at a time."""

    def __init__(self) -> None:
        self._locks: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()

    async def wait(self) -> None:
        """Wait for a turn, which ends when this call first waits: for a connection, or for its answer."""
        loop = asyncio.get_running_loop()
        lock = self._locks.setdefault(loop, asyncio.Lock())
        await lock.acquire()
        # A task goes on until it has to wait for something, and what is to be called soon is called after it.
        # Lost: the end by httpcore's trace extension, which other transports do not have.
        loop.call_soon(lock.release)
