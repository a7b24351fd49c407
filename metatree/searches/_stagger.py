"""Searches that begin together on one event loop begin one after the other.

Left alone, an event loop sets all of them up before it looks at any connection, so the first request of the first
search waits until the last search is set up: of 64 searches, for 0.1 s in which nothing is in progress.
"""

from __future__ import annotations

import asyncio
from weakref import WeakKeyDictionary

_locks: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()


async def begin() -> None:
    """Wait until no other search of this loop is being set up; the next one goes on when this one first waits."""
    loop = asyncio.get_running_loop()
    lock = _locks.setdefault(loop, asyncio.Lock())
    await lock.acquire()
    # What is to be called soon is called after this task, which goes on until it has to wait for something.
    loop.call_soon(lock.release)
