"""Who waits here, and whether they may still: the calls of a user who was taken out end, whoever took them out."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from metatree.errors import MetatreeError
from metatree_agents.service.accounts.users import Caller
from metatree_agents.service.database.database import ServiceDatabase, rows_with

CHECK_S: Final = 1.0
"""How often it is asked whether those who wait are still there; nothing is asked while nobody waits."""


class Revocation:
    """Ends the waiting of those at one process of the service who may not wait any more."""

    def __init__(self, database: ServiceDatabase) -> None:
        self._database = database
        self._waiting: dict[Caller, set[asyncio.Future[None]]] = {}
        self._checking: asyncio.Task[None] | None = None

    @contextmanager
    def of(self, who: Caller) -> Iterator[asyncio.Future[None]]:
        """Give a future that is done once a caller who waits is no user with this role and secret any more."""
        out: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(who, set()).add(out)
        try:
            yield out
        finally:
            out.cancel()
            left = self._waiting.get(who)
            if left is not None:
                left.discard(out)
                if not left:
                    del self._waiting[who]

    async def check(self) -> None:
        """End the waiting of those who are no users with their roles and secrets any more."""
        checked = frozenset(who.name for who in self._waiting)
        sql = "SELECT name, role, secret FROM service_user WHERE name IN"
        known = {name: row for name, *row in await rows_with(self._database, sql, checked)}
        for who, waiting in list(self._waiting.items()):
            # Who came while the database was asked is looked at the next time.
            if who.name in checked and not who.is_still(*known.get(who.name, (None, None))):
                for out in waiting:
                    if not out.done():
                        out.set_result(None)

    def start(self) -> None:
        """Begin to look."""
        self._checking = asyncio.get_running_loop().create_task(self._check_often())

    async def stop(self) -> None:
        """Stop looking."""
        if self._checking is not None:
            self._checking.cancel()
            await asyncio.gather(self._checking, return_exceptions=True)

    async def _check_often(self) -> None:
        while True:
            await asyncio.sleep(CHECK_S)
            with suppress(MetatreeError):  # a database that is away for a moment: who waits goes on waiting
                await self.check()
