"""The database behind the service: one small interface, SQLite in a file or PostgreSQL, the same SQL for both.

Statements are written for both: `?` for a value, `RETURNING`, `ON CONFLICT`. SQLite has one writer, so a transaction
there is alone. On PostgreSQL others run at the same time, and each statement sees what was committed before it (READ
COMMITTED), so a transaction takes the row that its other statements rely on first: the topic's, then queries'. So
numbers are dense, the first answer wins, and a delete leaves nothing behind. Lost: SERIALIZABLE, each of whose retries
runs a request again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from metatree.errors import BrokenStore, MetatreeError, TransientError
from metatree.storage.schema import DEFINITIONS, SQLITE, run_steps
from metatree.storage.store import Store
from metatree.storage.store_files import LEAVE_LOG
from metatree_agents.service.database._change_notify import ChangeNotifier
from metatree_agents.service.database.schema import SERVICE

TICK_S: Final = 0.05
"""How often a SQLite file is asked whether another process wrote, when no other server says so."""
PACE_S: Final = 0.01
"""How long it is not asked again after another server said so: one that writes all the time says so all the time."""
CHECKPOINT_S: Final = 2.0
COMMAND_WAIT_S: Final = 10.0
"""How long a statement waits for another process that writes, before anybody is served: commands, and migrations."""
SERVER_WAIT_S: Final = 0.2
"""The same within a server, which nobody else can call meanwhile; callers are told to come again."""
_SOME: Final = 500
"""How many values one statement has."""
WAL_PAGES: Final = 20_000
"""Size of the write-ahead log, in pages of 4 kB, from which commits checkpoint by themselves after all."""


@dataclass(frozen=True, slots=True)
class QueueChange:
    """What another process did that somebody may wait for: to one query, or a topic can be claimed now."""

    query: tuple[str, int] | None = None
    """Topic and number; None for a topic that can be claimed."""


class Statements(Protocol):
    """Runs statements."""

    async def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Run one statement and return all its rows."""
        ...

    async def row(self, sql: str, *values: Any) -> tuple[Any, ...] | None:
        """Run one statement and return its first row, None when there is none."""
        rows = await self.rows(sql, *values)  # all of it: a statement that RETURNs ends when it was read
        return rows[0] if rows else None

    async def execute(self, sql: str, *values: Any) -> int:
        """Run one statement and return the number of rows that it changed."""
        ...


class Transaction(Statements, Protocol):
    """Statements that are kept together or not at all."""

    async def alone(self, name: str) -> None:
        """Let no two transactions go on from here at the same time, until the one has ended.

        Numbers that the database counts up are then seen in their order: otherwise the higher one may be committed
        first, and a reader that asks for what came after it never sees the lower one.
        """
        ...


class ServiceDatabase(Statements, Protocol):
    """Runs statements by themselves and in transactions, and says what other processes did.

    Raises `TransientError` where the same may work later.
    """

    for_update: str
    """What ends a SELECT that takes its rows for this transaction, and waits for those that others took."""
    skip_locked: str
    """The same, passing over rows that others took; empty where nobody else can have taken any."""
    clock: Callable[[], float]
    """Returns the seconds since 1970, by one clock for all processes of this database."""

    def opened_again(self) -> ServiceDatabase:
        """Return the same database over connections of its own, to be started and closed, for another thread."""
        ...

    @property
    def place(self) -> str:
        """What tells this database from others; without secrets."""
        ...

    async def start(self) -> None:
        """Connect, and bring the tables up to date; starting twice is allowed.

        Raises:
            UserError: the database cannot be used as it is named.
        """
        ...

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        """Keep all statements of the block, or none of them."""
        ...

    def snapshot(self) -> AbstractAsyncContextManager[Transaction]:
        """Read all as it is at one moment, whatever others write meanwhile; nothing can be written."""
        ...

    async def columns(self, do: Transaction, table: str) -> list[str]:
        """Return the names of the columns of a table."""
        ...

    async def recount(self, do: Transaction, tables: Sequence[str]) -> None:
        """Let the keys that the database counts up go on after the largest that is there."""
        ...

    async def in_use(self) -> bool:
        """Say whether a server, or on SQLite any other process, is at work on this database."""
        ...

    async def watch(self, on_change: Callable[[QueueChange | None], None]) -> None:
        """Say what other processes did, until this is cancelled; None for what is not known."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...


class SqliteDatabase(ServiceDatabase):
    """A database in one file, or in memory.

    Statements run on the event loop: each takes some microseconds, and a hop into a thread would take longer.
    """

    for_update = skip_locked = ""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.clock: Callable[[], float] = time.time
        self._version = store.version()
        self._notifier = None if store.path is None else ChangeNotifier(store.path)
        self._statements = _SqliteTransaction(store)

    @classmethod
    def open(cls, path: str | Path) -> SqliteDatabase:
        """Open a database, or make it; raises as `Store.open`."""
        advice = "restore a backup (`metatree service restore`), or name another file with --database"
        # Secrets are in it.
        store = Store.open(path, busy_timeout_s=COMMAND_WAIT_S, mode=0o600, advice=advice)
        with store.transaction():
            run_steps(SERVICE.bring_up_to_date(SQLITE, store.name), store.rows)
        # With a default of its own, or without a key, a table of somebody else would answer, or take a proof twice.
        if table := SERVICE.differing(SERVICE.version, store.rows(DEFINITIONS)):
            store.close()
            raise BrokenStore(
                f"{store.name} defines {table!r} otherwise than metatree does: {advice}", path=store.name
            )
        return cls(store)

    async def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        return self._store.rows(sql, values)

    async def execute(self, sql: str, *values: Any) -> int:
        return self._store.execute(sql, values)

    def opened_again(self) -> ServiceDatabase:
        assert self._store.path is not None, "a database in memory has one connection"
        self._store.check_place()
        return SqliteDatabase.open(self._store.path)

    @property
    def place(self) -> str:
        return ":memory:" if self._store.path is None else str(self._store.path.resolve())

    async def start(self) -> None:
        """Do nothing: an open file is ready."""

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        # Nothing inside suspends, so no other task can get between the statements.
        with self._store.transaction():
            yield self._statements
        if self._notifier is not None:
            self._notifier.tell()

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Transaction]:
        # A connection of its own reads in one transaction without keeping writers out, as the write-ahead log allows.
        if self._store.path is None:
            async with self.transaction() as do:
                yield do
            return
        self._store.check_place()
        with await _opened(self._store.path) as reader:
            reader.freeze()
            reader.execute("BEGIN")
            try:
                yield _SqliteTransaction(reader)
            finally:
                reader.execute("ROLLBACK")

    async def columns(self, do: Transaction, table: str) -> list[str]:
        return [row[0] for row in await do.rows("SELECT name FROM pragma_table_info(?) ORDER BY cid", table)]

    async def recount(self, do: Transaction, tables: Sequence[str]) -> None:
        """Do nothing: SQLite counts what is inserted."""

    async def in_use(self) -> bool:
        if self._store.path is None:
            return False
        self._store.rows("PRAGMA busy_timeout=0")
        try:
            self._store.rows(LEAVE_LOG)
        except TransientError:
            return True
        finally:
            self._store.rows("PRAGMA journal_mode=WAL")
            self._store.rows(f"PRAGMA busy_timeout={round(COMMAND_WAIT_S * 1000)}")
        return False

    async def watch(self, on_change: Callable[[QueueChange | None], None]) -> None:
        """Say when another process wrote; meanwhile a thread does what SQLite would do inside some commit.

        From here on no statement waits long for another process, since the event loop waits with it.
        """
        self._store.rows(f"PRAGMA busy_timeout={round(SERVER_WAIT_S * 1000)}")
        checkpointing = asyncio.ensure_future(self._checkpoint_often())
        try:
            await self._watch(on_change)
        finally:
            checkpointing.cancel()

    async def _checkpoint_often(self) -> None:
        # A checkpoint waits for the disk, up to a second on one that is busy, and with it everybody who calls, when it
        # is inside the commit that fills 1,000 pages. Commits do it after all when this thread does not get through.
        if self._store.path is None:
            return
        # One connection, opened with all checks. Lost: a new one each time, which opens what git put there meanwhile.
        try:
            own = await _opened(self._store.path)
        except MetatreeError:
            return
        self._store.rows(f"PRAGMA wal_autocheckpoint={WAL_PAGES}")
        with own:
            while True:
                await asyncio.sleep(CHECKPOINT_S)
                with suppress(MetatreeError):
                    await asyncio.to_thread(own.rows, "PRAGMA wal_checkpoint(PASSIVE)")

    async def _watch(self, on_change: Callable[[QueueChange | None], None]) -> None:
        notified = asyncio.Event()
        if self._notifier is not None:
            self._notifier.listen(notified.set)
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(TICK_S):
                    await notified.wait()
            near = notified.is_set()
            notified.clear()
            with suppress(MetatreeError):  # a file that is locked for a moment
                before, self._version = self._version, self._store.version()
                if self._version != before:
                    on_change(None)
            if near:
                await asyncio.sleep(PACE_S)

    async def close(self) -> None:
        if self._notifier is not None:
            self._notifier.close()
        self._store.close()


async def _opened(path: Path) -> Store:
    """Open a file once more, in a thread: its locks are waited for, half a minute at worst, and callers must not."""
    loop = asyncio.get_running_loop()
    opening = loop.run_in_executor(
        None, lambda: Store.open(path, create=False, busy_timeout_s=COMMAND_WAIT_S)
    )
    try:
        return await asyncio.shield(opening)
    except asyncio.CancelledError:  # the thread goes on, and nobody else would close what it opens
        opening.add_done_callback(_close)
        raise


def _close(opening: asyncio.Future[Store]) -> None:
    if opening.exception() is None:
        opening.result().close()


class _SqliteTransaction(Transaction):
    def __init__(self, store: Store) -> None:
        self._store = store

    async def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        return self._store.rows(sql, values)

    async def execute(self, sql: str, *values: Any) -> int:
        return self._store.execute(sql, values)

    async def alone(self, name: str) -> None:
        """Do nothing: SQLite has one writer."""


async def rows_with(
    do: Statements, sql: str, values: Iterable[str], *, end: str = ""
) -> list[tuple[Any, ...]]:
    """Run a statement for any number of values, some hundred at a time, and return all rows.

    Args:
        sql: what stands before the list of values.
        end: what stands behind it.
    """
    listed, rows = sorted(values), list[tuple[Any, ...]]()
    for at in range(0, len(listed), _SOME):
        some = listed[at : at + _SOME]
        rows += await do.rows(f"{sql} ({', '.join('?' * len(some))}){end}", *some)
    return rows
