"""A journal in a PostgreSQL database: shared by machines, each run held by one process of one of them at a time."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar

from metatree.errors import (
    BrokenStore,
    LeaseLost,
    MissingExtra,
    RunExists,
    TransientError,
    UnknownRun,
    UserError,
)
from metatree.kernel.journal import MAIL, STOP, Record, RunInfo, given_of
from metatree.process import is_dead, this_process

T = TypeVar("T")

LEASE_S = 60.0

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS metatree_run(
    number BIGSERIAL PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    machine TEXT NOT NULL,
    owner TEXT,
    token BIGINT NOT NULL,
    expires_at DOUBLE PRECISION NOT NULL,
    flags INTEGER NOT NULL DEFAULT 0,
    ended TEXT,
    refused INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX IF NOT EXISTS metatree_run_open ON metatree_run(machine, number)
    WHERE ended IS NULL OR ended = 'waiting';
CREATE TABLE IF NOT EXISTS metatree_journal(
    run BIGINT NOT NULL,
    seq INTEGER NOT NULL,
    kind TEXT NOT NULL,
    at DOUBLE PRECISION NOT NULL,
    effect INTEGER,
    body TEXT,
    used TEXT,
    PRIMARY KEY(run, seq)
);
CREATE TABLE IF NOT EXISTS metatree_mail(
    number BIGSERIAL PRIMARY KEY,
    run BIGINT NOT NULL,
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    at DOUBLE PRECISION NOT NULL
);
CREATE INDEX IF NOT EXISTS metatree_mail_run ON metatree_mail(run);
"""
_LOCK: Final = 0x6D747265
_NOW: Final = "extract(epoch FROM clock_timestamp())"

# The row of the run is locked while a record is added, so that nobody takes the run over in between.
_APPEND: Final = """
WITH held AS (SELECT number, flags FROM metatree_run WHERE number = %s AND token = %s FOR SHARE)
INSERT INTO metatree_journal(run, seq, kind, at, effect, body, used)
SELECT number, %s, %s, %s, %s, %s, %s FROM held RETURNING (SELECT flags FROM held)
"""


class PostgresJournal:
    """Implements `metatree.kernel.Journal` in tables of its own of a PostgreSQL database.

    Leases run by the clock of the database, so clocks of machines may differ. A lock that somebody keeps for longer
    than a lease is a `TransientError`.

    Args:
        address: `postgresql://…`.
        owner: a name for this process.
        lease_s: how long a run stays held after its holder's last write.

    Raises:
        MissingExtra: psycopg is not installed.
        UserError: the database cannot be reached.
    """

    def __init__(self, address: str, *, owner: str | None = None, lease_s: float = LEASE_S) -> None:
        try:
            import psycopg
        except ImportError as exc:
            raise MissingExtra("postgres", what="a journal in PostgreSQL") from exc
        self.renew_every_s: float | None = lease_s / 4
        self._psycopg = psycopg
        self._lost = (
            psycopg.OperationalError,
            psycopg.InterfaceError,
            psycopg.errors.IdleInTransactionSessionTimeout,
        )
        self._address = address
        self._lease_s = lease_s
        self._owner = owner or this_process()
        self._numbers: dict[str, int] = {}
        self._renewed: dict[str, float] = {}
        self._lock = threading.RLock()
        self._connection: Any = None
        try:
            self._run(self._prepare)
        except TransientError as exc:
            raise UserError(f"cannot use the database: {exc}; check its address and that it runs") from exc

    def _prepare(self) -> None:
        with self._connection.transaction():
            self._rows("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
            self._connection.execute(_SCHEMA)

    def _run(self, work: Callable[[], T]) -> T:
        """Do something with the connection, opened again when it was lost."""
        with self._lock:
            try:
                if self._connection is None or self._connection.closed:
                    self._connection = self._connect()
                return work()
            except self._lost as exc:
                with suppress(Exception):
                    self._connection.close()
                raise TransientError(f"PostgreSQL: {' '.join(str(exc).split())}", retry_after_s=1.0) from exc

    def _connect(self) -> Any:
        """Connect; a process that is stopped inside a transaction must not keep others out for longer than a lease."""
        connection = self._psycopg.connect(self._address, autocommit=True)
        lease_ms = max(1, int(self._lease_s * 1000))
        for setting in ("idle_in_transaction_session_timeout", "lock_timeout"):
            connection.execute(f"SET {setting} = {lease_ms}")
        return connection

    def _rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        cursor = self._connection.execute(sql, parameters, prepare=True)
        return list(cursor.fetchall()) if cursor.description else []

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()

    def create(self, run_id: str, machine: str, first: Record) -> int:
        def work() -> int:
            with self._connection.transaction():
                made = self._rows(
                    "INSERT INTO metatree_run(id, machine, owner, token, expires_at)"
                    f" VALUES (%s, %s, %s, 1, {_NOW} + %s) ON CONFLICT (id) DO NOTHING RETURNING number",
                    (run_id, machine, self._owner, self._lease_s),
                )
                if not made:
                    raise RunExists(run_id)
                self._insert(int(made[0][0]), 1, 0, first)
                return int(made[0][0])

        self._numbers[run_id] = self._run(work)
        return 1

    def acquire(self, run_id: str) -> int:
        number = self._number(run_id)

        def work() -> int:
            with self._connection.transaction():
                found = self._rows(
                    f"SELECT owner, token, expires_at > {_NOW} FROM metatree_run WHERE number = %s FOR UPDATE",
                    (number,),
                )
                owner, token, held = found[0]
                if owner is not None and held and not is_dead(owner):
                    raise LeaseLost(run_id)
                self._rows(
                    f"UPDATE metatree_run SET owner = %s, token = %s, expires_at = {_NOW} + %s, flags = flags & %s,"
                    " ended = NULL WHERE number = %s",
                    (self._owner, token + 1, self._lease_s, MAIL, number),
                )
                return int(token) + 1

        return self._run(work)

    def append(self, run_id: str, token: int, seq: int, record: Record) -> int:
        number = self._numbers[run_id]

        def work() -> int:
            try:
                return self._insert(number, token, seq, record)
            except LeaseLost:
                self._refused(number)
                raise LeaseLost(run_id) from None

        return self._run(work)

    def _insert(self, number: int, token: int, seq: int, record: Record) -> int:
        body = None if record.body is None else _dump(record.body)
        used = _dump(record.used) if record.used else None
        try:
            written = self._rows(
                _APPEND, (number, token, seq, record.kind, record.at, record.effect, body, used)
            )
        except self._psycopg.errors.UniqueViolation as exc:
            raise LeaseLost("") from exc
        if not written:
            raise LeaseLost("")
        return int(written[0][0])

    def post(self, run_id: str, name: str, value: Any) -> None:
        number = self._number(run_id)

        def work() -> None:
            with self._connection.transaction():
                # Locked first, so that whoever takes mail at this moment sees the letter or the flag.
                self._rows("UPDATE metatree_run SET flags = flags | %s WHERE number = %s", (MAIL, number))
                self._rows(
                    f"INSERT INTO metatree_mail(run, name, value, at) VALUES (%s, %s, %s, {_NOW})",
                    (number, name, _dump(value)),
                )

        self._run(work)

    def take(self, run_id: str, token: int, seq: int) -> list[Record]:
        number = self._numbers[run_id]

        def work() -> list[Record]:
            asked = self._rows("SELECT flags FROM metatree_run WHERE number = %s", (number,))
            if not asked[0][0] & MAIL:
                return []
            with self._connection.transaction():
                flags = self._rows("SELECT flags FROM metatree_run WHERE number = %s FOR UPDATE", (number,))
                if not flags[0][0] & MAIL:
                    return []
                letters = self._rows(
                    "DELETE FROM metatree_mail WHERE run = %s RETURNING number, name, value, at", (number,)
                )
                found = []
                for index, (_, name, value, at) in enumerate(sorted(letters)):
                    found.append(Record("signal", at, body={"name": name, "value": json.loads(value)}))
                    try:
                        self._insert(number, token, seq + index, found[-1])
                    except LeaseLost:
                        raise LeaseLost(run_id) from None
                self._rows("UPDATE metatree_run SET flags = flags & %s WHERE number = %s", (~MAIL, number))
                return found

        return self._run(work)

    def renew(self, run_id: str, token: int) -> int:
        number = self._numbers[run_id]

        def work() -> int:
            kept = self._rows(
                f"UPDATE metatree_run SET expires_at = {_NOW} + %s WHERE number = %s AND token = %s RETURNING flags",
                (self._lease_s, number, token),
            )
            if not kept:
                self._refused(number)
                raise LeaseLost(run_id)
            return int(kept[0][0])

        return self._run(work)

    def _refused(self, number: int) -> None:
        self._rows("UPDATE metatree_run SET refused = refused + 1 WHERE number = %s", (number,))

    def refused(self, run_id: str) -> int:
        """Return how many writes to a run were refused, since another process held it by then. Raises UnknownRun."""
        number = self._number(run_id)
        return self._run(
            lambda: int(self._rows("SELECT refused FROM metatree_run WHERE number = %s", (number,))[0][0])
        )

    def release(self, run_id: str, token: int, ended: str | None) -> None:
        number = self._numbers[run_id]
        self._run(
            lambda: self._rows(
                "UPDATE metatree_run SET owner = NULL, ended = %s WHERE number = %s AND token = %s",
                (ended, number, token),
            )
        )

    def reopen(self, run_id: str) -> None:
        """Let somebody take up a run that stopped before its end. Raises UnknownRun."""
        number = self._number(run_id)
        self._run(
            lambda: self._rows(
                "UPDATE metatree_run SET ended = NULL, flags = flags & %s WHERE number = %s AND owner IS NULL",
                (MAIL, number),
            )
        )

    def read(self, run_id: str) -> list[Record]:
        number = self._number(run_id)
        found = self._run(
            lambda: self._rows(
                "SELECT seq, kind, at, effect, body, used FROM metatree_journal WHERE run = %s ORDER BY seq",
                (number,),
            )
        )
        records = []
        for index, (seq, kind, at, effect, body, used) in enumerate(found):
            if seq != index:
                raise BrokenStore(
                    f"record {index} of run {run_id!r} is missing: begin another", path="PostgreSQL"
                )
            records.append(
                Record(
                    kind,
                    at,
                    effect,
                    None if body is None else json.loads(body),
                    json.loads(used) if used else {},
                )
            )
        return records

    def runs(self) -> list[RunInfo]:
        found = self._run(
            lambda: self._rows(
                "SELECT r.id, r.machine, r.ended, f.at, (SELECT max(at) FROM metatree_journal WHERE run = r.number),"
                " f.body FROM metatree_run r JOIN metatree_journal f ON f.run = r.number AND f.seq = 0"
                " ORDER BY 5 DESC, r.number DESC"
            )
        )
        return [
            RunInfo(
                run_id,
                machine,
                ended,
                began,
                updated,
                given_of(Record("begin", began, None, None if body is None else json.loads(body))),
            )
            for run_id, machine, ended, began, updated, body in found
        ]

    def claimable(self, machine: str, *, limit: int = 100) -> list[str]:
        """Return runs of a machine that somebody should take up, the oldest first; see `SqliteJournal.claimable`."""
        found = self._run(
            lambda: self._rows(
                f"SELECT id, owner, expires_at <= {_NOW} FROM metatree_run WHERE machine = %s"
                " AND (ended IS NULL OR (ended = 'waiting' AND flags & %s <> 0)) ORDER BY number",
                (machine, MAIL),
            )
        )
        free = [run_id for run_id, owner, late in found if owner is None or late or is_dead(owner)]
        return free[:limit]

    def is_waiting(self, run_id: str, machine: str) -> bool:
        """Say whether there is such a run and it has not ended."""
        return bool(
            self._run(
                lambda: self._rows(
                    "SELECT 1 FROM metatree_run WHERE id = %s AND machine = %s"
                    " AND (ended IS NULL OR ended = 'waiting')",
                    (run_id, machine),
                )
            )
        )

    def cancel(self, run_id: str) -> None:
        number = self._number(run_id)
        self._run(
            lambda: self._rows("UPDATE metatree_run SET flags = flags | %s WHERE number = %s", (STOP, number))
        )

    def _number(self, run_id: str) -> int:
        number = self._numbers.get(run_id)
        if number is None:
            found = self._run(lambda: self._rows("SELECT number FROM metatree_run WHERE id = %s", (run_id,)))
            if not found:
                raise UnknownRun(run_id)
            number = self._numbers[run_id] = int(found[0][0])
        return number


def _dump(value: Any) -> str:
    # PostgreSQL's text cannot hold a zero character; escaped it can.
    return json.dumps(value, separators=(",", ":"), default=str)
