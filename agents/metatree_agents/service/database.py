"""The database behind the service: one small interface, SQLite in a file or PostgreSQL, the same SQL for both.

Statements are written for both: `?` for a value, `RETURNING`, `ON CONFLICT`; what differs is in `SKIP LOCKED`, which
SQLite does not need since it has one writer.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

from metatree.store import Store
from metatree_agents.service.schema import SCRIPTS, statements


class Transaction(Protocol):
    """Statements that are kept together or not at all."""

    async def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Run one statement and return all its rows."""
        ...

    async def row(self, sql: str, *values: Any) -> tuple[Any, ...] | None:
        """Run one statement and return its first row, None when there is none."""
        ...

    async def execute(self, sql: str, *values: Any) -> int:
        """Run one statement and return the number of rows that it changed."""
        ...


class Database(Protocol):
    """Gives transactions, and says how a row is claimed that others may be claiming."""

    skip_locked: str
    """What ends a SELECT that takes a row for this transaction and passes over rows that others took."""

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

    def changed(self) -> bool:
        """Whether another process may have written since this was last asked; quick."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...


class SqliteDatabase:
    """A database in one file, or in memory.

    Statements run on the event loop: each takes some microseconds, and a hop into a thread would take longer.
    """

    skip_locked = ""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._version = store.version()

    @classmethod
    def open(cls, path: str | Path) -> SqliteDatabase:
        """Open a database, or make it; raises as `Store.open`."""
        store = Store.open(path, busy_timeout_s=10.0)
        with store.transaction():
            _bring_up_to_date(store)
        return cls(store)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        # Nothing inside suspends, so no other task can get between the statements.
        with self._store.transaction():
            yield _SqliteTransaction(self._store)

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Transaction]:
        # A connection of its own reads in one transaction without keeping writers out, as the write-ahead log allows.
        if self._store.path is None:
            async with self.transaction() as do:
                yield do
            return
        with Store.open(self._store.path, create=False) as reader:
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

    def changed(self) -> bool:
        before, self._version = self._version, self._store.version()
        return self._version != before

    async def close(self) -> None:
        self._store.close()


class _SqliteTransaction:
    __slots__ = ("_store",)

    def __init__(self, store: Store) -> None:
        self._store = store

    async def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        return self._store.rows(sql, values)

    async def row(self, sql: str, *values: Any) -> tuple[Any, ...] | None:
        found = self._store.rows(sql, values)  # all of it: a statement that RETURNs ends when it was read
        return found[0] if found else None

    async def execute(self, sql: str, *values: Any) -> int:
        return self._store.execute(sql, values)


def _bring_up_to_date(store: Store) -> None:
    store.execute("CREATE TABLE IF NOT EXISTS service_schema(version BIGINT NOT NULL)")
    found = store.row("SELECT version FROM service_schema")
    if found is None:
        store.execute("INSERT INTO service_schema VALUES (0)")
    for script in SCRIPTS[found[0] if found else 0 :]:
        for statement in statements(script, serial="INTEGER PRIMARY KEY AUTOINCREMENT"):
            store.execute(statement)
    store.execute("UPDATE service_schema SET version = ?", (len(SCRIPTS),))


def placeholders(values: Sequence[object]) -> str:
    """Return `?, ?, …` for a list of values."""
    return ", ".join("?" for _ in values)
