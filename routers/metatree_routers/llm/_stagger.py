"""Calls that begin together on one event loop make and write their requests one after the other.

Left alone, an event loop carries all of them on step by step, so the first request is written when the last is nearly
made, and every wave of calls takes the latency and the work of all. One after the other, the server works on the first
while the others are made, and their answers come one after the other too.
"""

from __future__ import annotations

import asyncio
import contextvars
from weakref import WeakKeyDictionary

turn_of_call: contextvars.ContextVar[Turn | None] = contextvars.ContextVar("metatree_turn", default=None)
"""The turn of the call that is under way, which is told when its request is made."""


class Turns:
    """Gives turns, first come first served, to the calls of each event loop."""

    def __init__(self) -> None:
        self._locks: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()

    async def take(self) -> Turn:
        """Wait for a turn; it must be given back with `end`."""
        lock = self._locks.setdefault(asyncio.get_running_loop(), asyncio.Lock())
        await lock.acquire()
        return Turn(lock)


class Turn:
    """The turn of one call: from the making of its request until that is written, or waits for a connection."""

    __slots__ = ("_lock",)

    def __init__(self, lock: asyncio.Lock) -> None:
        self._lock: asyncio.Lock | None = lock

    def end(self) -> None:
        """Let the next call begin; ending twice is allowed."""
        lock, self._lock = self._lock, None
        if lock is not None:
            lock.release()

    def end_when_waiting(self) -> None:
        """End the turn as soon as the call that has it first waits: for a connection, or for its answer."""
        # A task goes on until it has to wait for something, and what is to be called soon is called after it.
        asyncio.get_running_loop().call_soon(self.end)
