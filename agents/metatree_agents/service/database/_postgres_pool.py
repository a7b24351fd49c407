"""Connections of one process to PostgreSQL: at most so many, and dead ones are noticed before they are used."""

from __future__ import annotations

import asyncio
import select
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

from psycopg import AsyncConnection, Error, OperationalError
from psycopg.pq import TransactionStatus

Connection = AsyncConnection[tuple[Any, ...]]

PATIENCE_S: Final = 5.0
"""How long a statement waits for a server that restarts, or for a connection that others use."""
RETRY_S: Final = 0.1


class Pool:
    """Gives out connections.

    Lost: psycopg's own pool, which sleeps for a second after it met a dead connection, and has no bound on how long it
    is until it tries again after a server was away: here both are milliseconds. The socket of a resting connection is
    looked at before it is used: what comes there is its end, so a restart of the server fails no request.

    Args:
        connect: opens a connection.
        size: how many there are at most.
    """

    def __init__(self, connect: Callable[[], Awaitable[Connection]], size: int) -> None:
        self._connect = connect
        self._free: list[Connection] = []
        self._turns = asyncio.Semaphore(size)
        self._closed = False
        self.pids: set[int] = set()
        """Processes of the server that work for this pool."""

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """Use a connection that is in no transaction; one that is left in another state is closed.

        Raises:
            psycopg.OperationalError: none was to be had.
        """
        if self._turns.locked():
            try:
                async with asyncio.timeout(PATIENCE_S):
                    await self._turns.acquire()
            except TimeoutError as exc:
                raise OperationalError("all connections are in use") from exc
        else:
            await self._turns.acquire()
        try:
            connection = await self._take()
            try:
                yield connection
            finally:
                if self._closed or connection.pgconn.transaction_status != TransactionStatus.IDLE:
                    await self._drop(connection)
                else:
                    self._free.append(connection)
        finally:
            self._turns.release()

    async def _take(self) -> Connection:
        while self._free:
            connection = self._free.pop()  # the one that was used last, so that the others may rest
            if _is_alive(connection):
                return connection
            await self._drop(connection)
        deadline = asyncio.get_running_loop().time() + PATIENCE_S
        while True:
            try:
                connection = await self._connect()
            except OperationalError:
                if self._closed or asyncio.get_running_loop().time() + RETRY_S > deadline:
                    raise
                await asyncio.sleep(RETRY_S)
            else:
                self.pids.add(connection.info.backend_pid)
                return connection

    async def _drop(self, connection: Connection) -> None:
        with suppress(Error):
            self.pids.discard(connection.info.backend_pid)
        await connection.close()

    async def close(self) -> None:
        """Close all connections; those that are in use once they are given back."""
        self._closed = True
        while self._free:
            await self._drop(self._free.pop())


def _is_alive(connection: Connection) -> bool:
    """Say whether nothing came on a connection that waits: what comes there is the end of it."""
    if connection.closed:
        return False
    if not hasattr(select, "poll"):
        return True
    poll = select.poll()
    poll.register(connection.pgconn.socket, select.POLLIN)
    return not poll.poll(0)
