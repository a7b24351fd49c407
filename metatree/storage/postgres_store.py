"""A store of blackboards in a PostgreSQL database, for agents on several machines.

Boards speak SQLite's SQL. What PostgreSQL says otherwise is little and is translated here, statement by statement; all
writers take one lock, as they do in SQLite, so that versions of a board count up and what is read in a transaction is
still true when it is written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Final

from metatree.errors import BrokenStore, MetatreeError, UserError
from metatree.storage.postgres import PostgresConnection
from metatree.storage.store import Store

# Ids are compared byte by byte, as SQLite does: other collations would not find those with a common beginning.
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS board(
    number BIGSERIAL PRIMARY KEY,
    name TEXT COLLATE "C" NOT NULL UNIQUE,
    parent BIGINT,
    made_at DOUBLE PRECISION NOT NULL
);
CREATE TABLE IF NOT EXISTS item(
    number BIGSERIAL PRIMARY KEY,
    board BIGINT NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    section TEXT COLLATE "C" NOT NULL,
    data TEXT NOT NULL,
    tokens BIGINT NOT NULL,
    version BIGINT NOT NULL,
    changed BIGINT NOT NULL,
    at DOUBLE PRECISION NOT NULL,
    agent TEXT NOT NULL,
    run TEXT NOT NULL,
    step BIGINT,
    round BIGINT,
    sources TEXT,
    audience TEXT,
    pinned INTEGER NOT NULL,
    image TEXT NOT NULL,
    removed INTEGER NOT NULL,
    base BIGINT,
    synced BIGINT,
    UNIQUE(board, id)
);
CREATE INDEX IF NOT EXISTS item_changed ON item(board, changed);
CREATE INDEX IF NOT EXISTS item_section ON item(board, section, removed, number);
CREATE TABLE IF NOT EXISTS image(
    name TEXT PRIMARY KEY,
    size BIGINT NOT NULL,
    width BIGINT,
    height BIGINT,
    look TEXT,
    thumbnail TEXT,
    thumbnail_width BIGINT,
    thumbnail_height BIGINT
);
CREATE TABLE IF NOT EXISTS board_waiter(
    port BIGINT PRIMARY KEY,
    token TEXT NOT NULL,
    board BIGINT NOT NULL,
    expires_at DOUBLE PRECISION NOT NULL
);
"""
SPACE: Final = "metatree_boards"
"""The schema of the database that they lie in: other programs may have tables of these names."""
_WRITERS: Final = 0x6D74626F
_EACH: Final = re.compile(r"json_each\((\w+|\?)\)")
_REPLACE: Final = re.compile(r"INSERT OR REPLACE INTO (\w+)\(((\w+)[\w, ]*)\)(.*)", re.DOTALL)


class PostgresStore(Store):
    """Implements what a `Blackboard` needs of a store, in a schema of its own of a PostgreSQL database.

    Images stay in a temporary folder of the machine that added them. Who waits for a change looks once a second.

    Args:
        address: `postgresql://…`.
        space: the schema of the database that they lie in.
        patience_s: for how long a statement outside of a transaction is tried again while the server is away.

    Raises:
        MissingExtra: psycopg is not installed.
        UserError: the database cannot be reached.
    """

    shared = True

    def __init__(self, address: str, *, space: str = SPACE, patience_s: float = 0.0) -> None:
        self.path = None
        self.read_only = False
        self._database = PostgresConnection(
            address,
            schema=_SCHEMA,
            what="a blackboard in PostgreSQL",
            patience_s=patience_s,
            space=space,
        )
        self._depth = 0

    def _run(self, sql: str, parameters: Sequence[Any] | dict[str, Any]) -> tuple[list[tuple[Any, ...]], int]:
        if isinstance(parameters, dict):
            raise UserError("a store in PostgreSQL takes values by their order")
        said, database = _translated(sql), self._database
        if said.startswith("PRAGMA"):
            return [], 0
        values = tuple(int(value) if isinstance(value, bool) else value for value in parameters)

        def do(_: bool) -> tuple[list[tuple[Any, ...]], int]:
            cursor = database.raw.execute(said, values, prepare=True)
            return (list(cursor.fetchall()) if cursor.description else []), cursor.rowcount

        try:
            if self._depth:
                return do(False)
            if said.startswith("SELECT"):
                return database.run(do)
            with self.transaction():
                return do(False)
        except (database.psycopg.DataError, UnicodeEncodeError) as exc:
            raise UserError(f"the database cannot keep a value: {exc}") from exc
        except database.psycopg.errors.UndefinedTable as exc:
            raise BrokenStore(
                f"the database lacks a table of the boards: {exc}", path=self._database.address
            ) from exc
        except database.psycopg.ProgrammingError as exc:
            raise MetatreeError(f"PostgreSQL: {exc}") from exc

    def rows(self, sql: str, parameters: Sequence[Any] | dict[str, Any] = ()) -> list[tuple[Any, ...]]:
        with self._database.turn():
            return self._run(sql, parameters)[0]

    def row(self, sql: str, parameters: Sequence[Any] | dict[str, Any] = ()) -> tuple[Any, ...] | None:
        found = self.rows(sql, parameters)
        return found[0] if found else None

    def execute(self, sql: str, parameters: Sequence[Any] | dict[str, Any] = ()) -> int:
        with self._database.turn():
            return self._run(sql, parameters)[1]

    def execute_many(self, sql: str, parameters: Iterable[Sequence[Any]]) -> int:
        with self.transaction():
            return sum(self.execute(sql, values) for values in parameters)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        database = self._database
        with database.turn():
            if self._depth:
                yield
                return
            with database.open_transaction():
                database.rows("SELECT pg_advisory_xact_lock(%s)", (_WRITERS,))
                self._depth += 1
                try:
                    yield
                finally:
                    self._depth -= 1

    @contextmanager
    def durable(self) -> Iterator[None]:
        yield  # every commit is

    @contextmanager
    def turn(self) -> Iterator[bool]:
        with self._database.turn():
            yield self._depth > 0

    def version(self) -> int:
        found = self.rows("SELECT coalesce(max(number), 0), coalesce(sum(version), 0) FROM item")
        return int(found[0][0] + found[0][1])

    def freeze(self, why: str = "") -> None:
        raise UserError("a store in PostgreSQL is made read-only by the rights of its user")

    def check(self) -> None:
        self.rows("SELECT 1")

    def size_bytes(self) -> int:
        return int(self.rows("SELECT pg_total_relation_size('item')")[0][0])

    @property
    def closed(self) -> bool:
        return self._database.closed

    def close(self) -> None:
        self._database.close()


@lru_cache(maxsize=500)
def _translated(sql: str) -> str:
    """Return a statement of SQLite's as PostgreSQL says it."""
    said = _EACH.sub(r"json_array_elements_text((\1)::json) AS each(value)", sql.strip())
    said = (
        said.replace(" NOT INDEXED", "")
        .replace(" IN ()", " IN (NULL)")
        .replace(") IS (", ") IS NOT DISTINCT FROM (")
    )
    replacing = _REPLACE.fullmatch(said)
    if replacing is not None:
        table, columns, key, rest = replacing.groups()
        sets = ", ".join(f"{name} = excluded.{name}" for name in columns.replace(" ", "").split(",")[1:])
        said = f"INSERT INTO {table}({columns}){rest} ON CONFLICT ({key}) DO UPDATE SET {sets}"
    return said.replace("%", "%%").replace("?", "%s")
