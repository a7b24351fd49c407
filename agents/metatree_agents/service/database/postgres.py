"""The service's database in PostgreSQL, for servers on many machines; needs psycopg (`metatree-memory[postgres]`)."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, Final

from metatree._util.numbers import whole_number
from metatree.errors import TransientError
from metatree.storage.postgres import LOST, numbered, psycopg, refusal, session_settings, storage_error
from metatree.storage.postgres_address import PostgresAddress, address_of
from metatree_agents.service.database._postgres_pool import Connection, Pool
from metatree_agents.service.database._postgres_tables import make_tables
from metatree_agents.service.database.database import QueueChange, ServiceDatabase, Transaction
from metatree_agents.service.database.schema import SCHEMA

CONNECTIONS: Final = 8
LOCK_S, IDLE_S, STATEMENT_S = 10, 20, 30
"""How long a statement waits for a row, a transaction may do nothing (a process that was stopped inside one), and a
statement may take; the server ends what takes longer."""
BEAT_S: Final = 20.0
"""How often the connection that listens is tried, and the server's clock read."""
RECONNECT_S: Final = 0.2
COMPLAIN_S: Final = 5.0
_SERVED: Final = "hashtextextended(current_schema() || ' served', 0)"
"""The lock that every server shares for as long as it listens."""
_log = logging.getLogger("metatree.service")


class PostgresDatabase(ServiceDatabase):
    """A schema of its own in a database.

    Statements are prepared once on each connection. Times are the server's, so clocks of machines may differ. What the
    server could not do now is a `TransientError`. So is a connection that was lost inside a transaction; whether it was
    kept is unknown when that was at its end. A connection that was lost before is replaced without a word, and a
    SELECT by itself is tried again.

    Args:
        address: `postgresql://…`, or where that leads.
        create: whether tables are made where there are none.
        connections: how many are used at most, beside one that listens.
    """

    # Not FOR UPDATE, which would also keep out what only refers to a topic.
    for_update = " FOR NO KEY UPDATE"
    skip_locked = for_update + " SKIP LOCKED"

    def __init__(
        self, address: str | PostgresAddress, *, create: bool = True, connections: int = CONNECTIONS
    ) -> None:
        self._address = address_of(address, schema=SCHEMA, what="a service on PostgreSQL")
        self._create = create
        self._pool = Pool(self._connect, connections)
        self._started = False
        self.clock: Callable[[], float] = lambda: time.time() + self._ahead_s
        self._ahead_s = 0.0
        """What the server's clock is ahead of this machine's."""
        self._complained_at = -COMPLAIN_S

    def opened_again(self) -> ServiceDatabase:
        return PostgresDatabase(self._address, create=False, connections=1)

    @property
    def place(self) -> str:
        return f"{self._address.shown} {self._address.schema}"

    async def start(self) -> None:
        if self._started:
            return
        try:
            async with self._pool.connection() as connection:
                await make_tables(connection, self._address, create=self._create)
                await self._read_clock(connection)
        except BaseException as exc:
            await self._pool.close()
            if not isinstance(exc, psycopg.Error):
                raise
            raise refusal(self._address, exc) from None  # the driver's error may hold the password
        self._started = True

    async def _connect(self) -> Connection:
        connection = await psycopg.AsyncConnection.connect(
            **self._address.arguments,
            autocommit=True,
            prepare_threshold=0,
            cursor_factory=psycopg.AsyncRawCursor,
        )
        connection.prepared_max = 500
        settings = session_settings(self._address, lock_s=LOCK_S, idle_s=IDLE_S, statement_s=STATEMENT_S)
        try:
            await connection.execute(settings.encode(), prepare=False)
        except BaseException:  # a server that stops while it connects cancels this, too
            await connection.close()
            raise
        return connection

    async def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        connection: Connection | None = None
        with self._translated():
            try:
                async with self._pool.connection() as connection:
                    return await _Statements(connection).rows(sql, *values)
            except psycopg.OperationalError:
                if connection is None or not connection.closed or not sql.startswith("SELECT"):
                    raise
            async with self._pool.connection() as connection:
                return await _Statements(connection).rows(sql, *values)

    async def execute(self, sql: str, *values: Any) -> int:
        with self._translated():
            async with self._pool.connection() as connection:
                return await _Statements(connection).execute(sql, *values)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        with self._translated():
            async with self._pool.connection() as connection:
                statements = _Statements(connection)
                await statements.execute("BEGIN")
                try:
                    yield statements
                except BaseException:
                    with suppress(psycopg.Error):
                        await statements.execute("ROLLBACK")
                    raise
                if await statements.end() != "COMMIT":
                    raise TransientError("the database did not keep this: try again", retry_after_s=1.0)

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Transaction]:
        with self._translated():
            async with self._pool.connection() as connection:
                statements = _Statements(connection)
                await statements.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                try:
                    yield statements
                finally:
                    with suppress(psycopg.Error):
                        await statements.execute("ROLLBACK")

    async def columns(self, do: Transaction, table: str) -> list[str]:
        sql = (
            "SELECT column_name FROM information_schema.columns"
            " WHERE table_schema = current_schema() AND table_name = ? ORDER BY ordinal_position"
        )
        return [row[0] for row in await do.rows(sql, table)]

    async def recount(self, do: Transaction, tables: Sequence[str]) -> None:
        for table in tables:
            await do.rows(
                f"SELECT setval(pg_get_serial_sequence('{table}', 'number'),"
                f" COALESCE((SELECT max(number) FROM {table}), 0) + 1, false)"
            )

    async def in_use(self) -> bool:
        row = await self.row(f"SELECT pg_try_advisory_xact_lock({_SERVED})")
        return row is not None and not row[0]

    async def _read_clock(self, connection: Connection) -> None:
        before = time.time()
        cursor = await connection.execute("SELECT extract(epoch FROM clock_timestamp())::float8")
        row = await cursor.fetchone()
        after = time.time()
        # It was read at some moment in between. What fits to that is left as it is, so that servers whose clocks agree
        # have the very same time, however long the way to the database takes.
        if row is not None and not before <= row[0] - self._ahead_s <= after:
            self._ahead_s = row[0] - (before + after) / 2

    async def watch(self, on_change: Callable[[QueueChange | None], None]) -> None:
        """Listen for what the triggers of the tables tell; see `postgres_tables`."""
        wait_s = RECONNECT_S
        while True:
            try:
                connection = await self._connect()
                try:
                    await connection.execute(f"SELECT pg_advisory_lock_shared({_SERVED})")
                    await connection.execute(f'LISTEN "{self._address.schema}"')
                    on_change(None)  # notices that were sent while nobody listened
                    wait_s = RECONNECT_S
                    while True:
                        await self._read_clock(connection)
                        async for notice in connection.notifies(timeout=BEAT_S):
                            change = change_of(notice.payload)
                            # A topic that this process opened is known here already.
                            if change is None or change.query or notice.pid not in self._pool.pids:
                                on_change(change)
                finally:
                    await connection.close()
            except psycopg.Error as exc:
                self._complain(exc)
                await asyncio.sleep(wait_s)
                wait_s = min(wait_s * 2, COMPLAIN_S)

    async def close(self) -> None:
        await self._pool.close()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except LOST as exc:
            self._complain(exc)
            # What the server said is for the log: callers of the service need not know where it is.
            raise TransientError("the database is away or busy: try again", retry_after_s=1.0) from None
        except psycopg.Error as exc:
            raise storage_error(self._address, exc) from None

    def _complain(self, exc: psycopg.Error) -> None:
        """Log what went wrong, now and then."""
        if time.monotonic() - self._complained_at >= COMPLAIN_S:
            self._complained_at = time.monotonic()
            _log.warning("PostgreSQL at %s: %s", self._address.shown, self._address.cleaned(exc))


class _Statements(Transaction):
    """Statements on one connection; raises psycopg's errors."""

    def __init__(self, connection: Connection) -> None:
        self._cursor = connection.cursor()

    async def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        await self._cursor.execute(numbered(sql), values)
        return await self._cursor.fetchall()

    async def execute(self, sql: str, *values: Any) -> int:
        await self._cursor.execute(numbered(sql), values)
        return self._cursor.rowcount

    async def alone(self, name: str) -> None:
        lock = "SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || ' ' || $1, 0))"
        await self._cursor.execute(lock, (name,))

    async def end(self) -> str | None:
        """Keep the transaction; returns `ROLLBACK` when the server did not, after an error inside."""
        await self._cursor.execute("COMMIT")
        return self._cursor.statusmessage


def change_of(payload: str) -> QueueChange | None:
    """Return what a notice tells.

    Example:
        >>> change_of("3 DGQIn+5troxI")
        QueueChange(query=('DGQIn+5troxI', 3))
        >>> change_of("")
        QueueChange(query=None)
    """
    if not payload:
        return QueueChange()
    seq, _, topic = payload.partition(" ")
    number = whole_number(seq)
    return QueueChange((topic, number)) if topic and number is not None else None
