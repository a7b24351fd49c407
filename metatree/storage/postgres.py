"""One connection to a PostgreSQL database, shared by threads and opened again when it was lost."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, TypeVar

from metatree.errors import MissingExtra, TransientError, UserError

T = TypeVar("T")

NOW: Final = "extract(epoch FROM clock_timestamp())"
"""The time by the clock of the database, in seconds since the epoch: clocks of machines may differ."""
_LOCK: Final = 0x6D747265
_FIRST_PAUSE_S: Final = 0.1
_MOST_PAUSE_S: Final = 2.0


def is_postgres(place: object) -> bool:
    """Say whether a place is the address of a PostgreSQL database.

    Example:
        >>> is_postgres("postgresql://ann@db.example.org/memory"), is_postgres("runs.db")
        (True, False)
    """
    return isinstance(place, str) and place.startswith(("postgresql://", "postgres://"))


class PostgresConnection:
    """A connection that threads take turns with.

    Args:
        address: `postgresql://…`.
        schema: statements that make the tables, each `IF NOT EXISTS`.
        what: what it is for, in the error when psycopg is not installed.
        patience_s: for how long work is tried again when the server cannot be reached; 0 raises at once.
        lock_s: how long to wait for a lock, and how long a transaction may stand still: a process that is stopped
            inside one must not keep others out for ever.
        space: the schema of the database that the tables are in, made when it is not there; None for the default.

    Raises:
        MissingExtra: psycopg is not installed.
        UserError: the database cannot be reached.
    """

    def __init__(
        self,
        address: str,
        *,
        schema: str,
        what: str,
        patience_s: float = 0.0,
        lock_s: float = 60.0,
        space: str | None = None,
    ) -> None:
        try:
            import psycopg
        except ImportError as exc:
            raise MissingExtra("postgres", what=what) from exc
        self.psycopg = psycopg
        self.address = address
        self.raw: Any = None
        """The connection of psycopg; None until it is first needed."""
        self._schema = schema
        self._lost = (
            psycopg.OperationalError,
            psycopg.InterfaceError,
            psycopg.errors.IdleInTransactionSessionTimeout,
        )
        lock_ms = max(1, int(lock_s * 1000))
        names = ("idle_in_transaction_session_timeout", "lock_timeout")
        self._settings = [f"SET {name} = {lock_ms}" for name in names]
        if space is not None:
            self._settings.append(f'SET search_path TO "{space}"')
        self._space = space
        self._lock = threading.RLock()
        self._closed = False
        self._patience_s = 0.0
        try:
            self.run(lambda _: self._prepare())
        except TransientError as exc:
            raise UserError(f"cannot use the database: {exc}; check its address and that it runs") from exc
        self._patience_s = patience_s

    def _prepare(self) -> None:
        with self.raw.transaction():
            self.rows("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
            # Asked for first: `IF NOT EXISTS` takes the right to make one even where it is there.
            known = self.rows("SELECT 1 FROM pg_namespace WHERE nspname = %s", (self._space,))
            if self._space is not None and not known:
                self.raw.execute(f'CREATE SCHEMA "{self._space}"')
            self.raw.execute(self._schema)

    def run(self, work: Callable[[bool], T]) -> T:
        """Do something with the connection, opened again when it was lost.

        Args:
            work: told whether it was begun before: then the database may have done all of it already.

        Raises:
            TransientError: the server cannot be reached, or a lock was not given, for as long as patience lasts.
        """
        with self._lock:
            deadline, pause, again = time.monotonic() + self._patience_s, _FIRST_PAUSE_S, False
            while True:
                if self._closed:
                    raise UserError("the database was closed: open it again")
                try:
                    if self.raw is None or self.raw.closed:
                        self.raw = self._connect()
                    return work(again)
                except self._lost as exc:
                    with suppress(Exception):
                        self.raw.close()
                    again = True
                    if time.monotonic() >= deadline:
                        said = " ".join(str(exc).split())
                        raise TransientError(f"PostgreSQL: {said}", retry_after_s=1.0) from exc
                    time.sleep(pause)
                    pause = min(2 * pause, _MOST_PAUSE_S)

    def _connect(self) -> Any:
        connection = self.psycopg.connect(self.address, autocommit=True)
        for setting in self._settings:
            connection.execute(setting)
        return connection

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run one statement, inside `run`, and return all its rows."""
        cursor = self.raw.execute(sql, parameters, prepare=True)
        return list(cursor.fetchall()) if cursor.description else []

    def changed(self, sql: str, parameters: Sequence[Any] = ()) -> int:
        """Run one statement, inside `run`, and return the number of rows that it changed."""
        return int(self.raw.execute(sql, parameters, prepare=True).rowcount)

    @contextmanager
    def open_transaction(self) -> Iterator[None]:
        """Keep all statements of the block, or none of them; only its beginning is tried again.

        Raises:
            TransientError: the server cannot be reached, or went away.
        """
        with self._lock:
            self.run(lambda _: self.rows("SELECT 1"))  # a connection that was lost meanwhile is noticed here
            try:
                with self.raw.transaction():
                    yield
            except self._lost as exc:
                with suppress(Exception):
                    self.raw.close()
                raise TransientError(f"PostgreSQL: {' '.join(str(exc).split())}", retry_after_s=1.0) from exc

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Keep the other threads of this process out."""
        with self._lock:
            yield

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed

    def close(self) -> None:
        """Close the connection; closing twice is allowed."""
        with self._lock:
            self._closed = True
            if self.raw is not None:
                self.raw.close()
