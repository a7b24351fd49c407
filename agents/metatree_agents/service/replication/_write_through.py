"""Shared runs whose additions to memory are on all machines before a journal says that they were made.

A run that goes on elsewhere finds in its journal that a node was added; it must find the node, too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import cached_property
from typing import Any, Final, TypeVar

from metatree.durable import Journal, Record
from metatree.errors import TransientError
from metatree.shared import Shared
from metatree.storage.database import Database
from metatree.tools.call_log import CallLog
from metatree_agents.service.replication._memory_sync import MemorySync

T = TypeVar("T")
WAIT_S: Final = 120.0


class WriteThrough:
    """What a tree shares of its runs; implements `metatree.shared.Sharing`.

    Args:
        shared: where runs, calls and boards are kept.
        sync: sends what was added to memory, before each record, on the event loop that runs now.
    """

    def __init__(self, shared: Shared, sync: MemorySync) -> None:
        self._shared = shared
        self.journal: Journal = _FirstJournal(shared.journal, sync)
        self.calls: CallLog = shared.calls

    @cached_property
    def boards(self) -> Database:
        """The database of the blackboards."""
        return self._shared.boards


class _FirstJournal:
    """A journal that sends what was added to memory before each record; all else is the journal's own."""

    def __init__(self, journal: Journal, sync: MemorySync) -> None:
        self._journal = journal
        self._sync = sync
        self._call = called_from(asyncio.get_running_loop())

    def append(self, run_id: str, token: int, seq: int, record: Record) -> int:
        if self._sync.pending():
            self._call(self._sync.push())
        return self._journal.append(run_id, token, seq, record)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._journal, name)


def called_from(loop: asyncio.AbstractEventLoop) -> Callable[[Coroutine[Any, Any, T]], T]:
    """Return a function that runs a coroutine on a loop for the thread of a search, and waits for it."""

    def call(what: Coroutine[Any, Any, T]) -> T:
        try:
            here: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            here = None
        if here is loop or loop.is_closed():
            what.close()
            raise TransientError("the service cannot be asked from its own loop", retry_after_s=1.0)
        waited = asyncio.run_coroutine_threadsafe(what, loop)
        try:
            return waited.result(WAIT_S)
        except TimeoutError as exc:
            waited.cancel()
            raise TransientError("the service cannot be reached", retry_after_s=1.0) from exc

    return call
