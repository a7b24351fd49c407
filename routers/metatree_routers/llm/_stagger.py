"""Calls that begin together on one event loop make and write their requests one after the other.

Left alone, an event loop carries all of them on step by step, so the first request is written when the last is nearly
made, and every wave of calls takes the latency and the work of all. One after the other, the server works on the first
while the others are made, and their answers come one after the other too.
"""

from __future__ import annotations

import asyncio
import contextvars
from weakref import WeakKeyDictionary

permit_of_call: contextvars.ContextVar[SendPermit | None] = contextvars.ContextVar(
    "metatree_permit", default=None
)
"""The permit of the call in progress, which is notified when its request is made."""


class SendPermits:
    """Gives permits, first come first served, to the calls of each event loop; one call holds one at a time."""

    def __init__(self) -> None:
        self._locks: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()

    async def acquire(self) -> SendPermit:
        """Wait for a permit, which must be released."""
        lock = self._locks.setdefault(asyncio.get_running_loop(), asyncio.Lock())
        await lock.acquire()
        return SendPermit(lock)


class SendPermit:
    """The permit of one call: from the making of its request until that is written, or waits for a connection."""

    __slots__ = ("_lock",)

    def __init__(self, lock: asyncio.Lock) -> None:
        self._lock: asyncio.Lock | None = lock

    def release(self) -> None:
        """Let the next call begin; releasing twice is allowed."""
        lock, self._lock = self._lock, None
        if lock is not None:
            lock.release()

    def release_when_waiting(self) -> None:
        """Release as soon as the call first waits: for a connection, or for its answer, whatever the transport."""
        # A task goes on until it has to wait for something, and what is to be called soon is called after it.
        # Lost: the end by httpcore's trace extension, which other transports do not have.
        asyncio.get_running_loop().call_soon(self.release)
