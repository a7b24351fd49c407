"""Runs, tool calls and boards in a PostgreSQL database, for processes of several machines."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, ClassVar, Final

from metatree.errors import BrokenStore, TransientError, UserError
from metatree.storage.database import Database, T
from metatree.storage.postgres import (
    LOST,
    numbered,
    prepared,
    psycopg,
    refusal,
    session_settings,
    storage_error,
)
from metatree.storage.postgres_address import BOARDS, PostgresAddress, address_of
from metatree.storage.schema import SHARED, Rows, run_steps

_ALONE: Final = 0x6D74626F
_FIRST_PAUSE_S: Final = 0.1
_MOST_PAUSE_S: Final = 2.0


class PostgresStore(Database):
    """Implements `Database` over one connection, which is opened again when it was lost.

    Transactions that are `alone` take one lock, as all do in SQLite, so that versions of a board count up. Images of
    boards stay in a temporary folder of the machine that added them. Who waits for a change looks once a second.

    Args:
        address: `postgresql://…`, or where that leads.
        schema: the schema of the database that the tables are in, where the address does not say it; made when it is
            not there.
        patience_s: for how long work is tried again when the server cannot be reached; 0 raises at once.
        lock_s: how long to wait for a lock, and how long a transaction may stand still.

    Raises:
        MissingExtra: psycopg is not installed.
        UserError: the database cannot be used.
        BrokenStore: its tables are of another version.
    """

    shared: ClassVar[bool] = True
    now: ClassVar[str] = "extract(epoch FROM clock_timestamp())::float8"
    for_update: ClassVar[str] = " FOR UPDATE"
    for_share: ClassVar[str] = " FOR SHARE"
    in_table_order: ClassVar[str] = ""

    def __init__(
        self,
        address: str | PostgresAddress,
        *,
        schema: str = BOARDS,
        patience_s: float = 0.0,
        lock_s: float = 60.0,
    ) -> None:
        self.path = None
        self.images_folder = None
        self.read_only = False
        self.address = address_of(address, schema=schema)
        self._settings = session_settings(self.address, lock_s=lock_s, idle_s=lock_s).encode()
        self._connection: psycopg.Connection[tuple[Any, ...]] | None = None
        self._lock = threading.RLock()
        self._attempting = False
        self._in_transaction = False
        self._closed = False
        self._patience_s = 0.0
        try:
            self.attempt(lambda _: self._prepare())
        except BaseException as exc:
            self.close()
            cause = exc if isinstance(exc, psycopg.Error) else exc.__cause__
            if isinstance(cause, psycopg.Error):
                raise refusal(self.address, cause) from None  # the driver's error may hold the password
            raise
        self._patience_s = patience_s

    def _prepare(self) -> None:
        with self.transaction(alone=False):
            run_steps(prepared(self.address, SHARED), self.rows)

    @property
    def name(self) -> str:
        return f"{self.address.schema} in {self.address.shown}"

    @staticmethod
    def json_each(array: str) -> str:
        return f"json_array_elements_text({array}::json) AS each(value)"

    # Connection -------------------------------------------------------------------------------------------------

    def attempt(self, work: Callable[[bool], T]) -> T:
        with self._lock:
            if self._attempting or self._in_transaction:
                return work(False)
            deadline, pause, again = time.monotonic() + self._patience_s, _FIRST_PAUSE_S, False
            while True:
                if self._closed:
                    raise UserError("the database was closed: open it again")
                try:
                    self._attempting = True
                    if self._connection is None or self._connection.closed:
                        self._connection = psycopg.connect(
                            **self.address.arguments, autocommit=True, cursor_factory=psycopg.RawCursor
                        )
                        self._connection.execute(self._settings)
                    return work(again)
                except LOST as exc:
                    self._drop()
                    if time.monotonic() >= deadline:
                        raise storage_error(self.address, exc) from exc
                finally:
                    self._attempting = False
                again = True
                time.sleep(pause)
                pause = min(2 * pause, _MOST_PAUSE_S)

    def _drop(self) -> None:
        if self._connection is not None:
            with suppress(psycopg.Error):
                self._connection.close()

    def _send(self, sql: str, parameters: Sequence[Any]) -> tuple[Rows, int]:
        """Run a statement; raises LOST as it is, for those who can try again."""
        assert self._connection is not None
        values = [int(value) if isinstance(value, bool) else value for value in parameters]
        try:
            cursor = self._connection.execute(numbered(sql), values, prepare=True)
            return (cursor.fetchall() if cursor.description else []), cursor.rowcount
        except LOST:
            raise
        except UnicodeEncodeError as exc:
            raise UserError(f"the database cannot keep a value: {exc}") from exc
        except psycopg.errors.UndefinedTable as exc:
            raise BrokenStore(f"{self.name} lacks a table: {exc}", path=self.name) from exc
        except psycopg.Error as exc:
            raise storage_error(self.address, exc) from exc

    def _run(self, sql: str, parameters: Sequence[Any]) -> tuple[Rows, int]:
        with self._lock:
            if self._attempting or self._in_transaction:
                return self._send(sql, parameters)
            if sql.startswith("SELECT"):
                return self.attempt(lambda _: self._send(sql, parameters))
            with self.transaction():
                return self._send(sql, parameters)

    # Statements -------------------------------------------------------------------------------------------------

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> Rows:
        return self._run(sql, parameters)[0]

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> int:
        return self._run(sql, parameters)[1]

    def execute_many(self, sql: str, parameters: Iterable[Sequence[Any]]) -> int:
        with self.transaction():
            return sum(self.execute(sql, values) for values in parameters)

    @contextmanager
    def transaction(self, *, alone: bool = True) -> Iterator[None]:
        """Keep all statements of the block, or none of them; only its beginning is tried again.

        Raises:
            TransientError: the server cannot be reached, or went away; unless `attempt` is to see it.
        """
        begin = b"BEGIN" + (b"; SELECT pg_advisory_xact_lock(%d)" % _ALONE if alone else b"")
        with self._lock:
            if self._in_transaction:
                yield
                return
            self.attempt(lambda _: self._end(begin))
            self._in_transaction = True
            try:
                yield
                if self._end(b"COMMIT") != "COMMIT":
                    raise TransientError("the database did not keep this: try again", retry_after_s=1.0)
            except BaseException as exc:
                try:
                    self._end(b"ROLLBACK")
                except psycopg.Error:
                    self._drop()
                if isinstance(exc, LOST) and not self._attempting:
                    raise storage_error(self.address, exc) from exc
                raise
            finally:
                self._in_transaction = False

    def _end(self, sql: bytes) -> str | None:
        """Begin or end a transaction; returns what became of it: a COMMIT after an error is a ROLLBACK."""
        assert self._connection is not None
        return self._connection.execute(sql, prepare=False).statusmessage

    @contextmanager
    def durable(self) -> Iterator[None]:
        yield  # every commit is

    @contextmanager
    def turn(self) -> Iterator[bool]:
        with self._lock:
            yield self._in_transaction

    def version(self) -> int:
        rows = self.rows("SELECT coalesce(max(number), 0), coalesce(sum(version), 0) FROM item")
        return int(rows[0][0] + rows[0][1])

    @property
    def closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._drop()
