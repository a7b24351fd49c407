"""A journal in a PostgreSQL database: shared by machines, each run held by one process of one of them at a time."""

from __future__ import annotations

import json
from typing import Any, Final

from metatree._util.process import is_dead, this_process
from metatree.durable._journal import MAIL, STOP, Record, RunInfo, given_of
from metatree.durable.renewal import SHARE
from metatree.errors import BrokenStore, LeaseLost, RunExists, UnknownRun
from metatree.storage.postgres import NOW, PostgresConnection

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

# The row of the run is locked while a record is added, so that nobody takes the run over in between.
_APPEND: Final = """
WITH held AS (SELECT number, flags FROM metatree_run WHERE number = %s AND token = %s FOR SHARE)
INSERT INTO metatree_journal(run, seq, kind, at, effect, body, used)
SELECT number, %s, %s, %s, %s, %s, %s FROM held RETURNING (SELECT flags FROM held)
"""


class PostgresJournal:
    """Implements `metatree.durable.Journal` in tables of its own of a PostgreSQL database.

    Leases run by the clock of the database, so clocks of machines may differ. A lock that somebody keeps for longer
    than a lease is a `TransientError`.

    Args:
        address: `postgresql://…`.
        owner: a name for this process.
        lease_s: how long a run stays held after its holder's last write.
        space: the schema of the database that it is in; None for the default.
        patience_s: for how long a write is tried again while the server cannot be reached; see `PostgresConnection`.

    Raises:
        MissingExtra: psycopg is not installed.
        UserError: the database cannot be reached.
    """

    def __init__(
        self,
        address: str,
        *,
        owner: str | None = None,
        lease_s: float = LEASE_S,
        patience_s: float = 0.0,
        space: str | None = None,
    ) -> None:
        self.renew_every_s: float | None = lease_s / SHARE
        self._lease_s = lease_s
        self._owner = owner or this_process()
        self._numbers: dict[str, int] = {}
        self._database = PostgresConnection(
            address,
            schema=_SCHEMA,
            what="a journal in PostgreSQL",
            patience_s=patience_s,
            lock_s=lease_s,
            space=space,
        )
        self._run = self._database.run
        self._rows = self._database.rows

    @property
    def _connection(self) -> Any:
        return self._database.raw

    def close(self) -> None:
        """Close the connection."""
        self._database.close()

    def create(self, run_id: str, machine: str, first: Record) -> int:
        def work(again: bool) -> int:
            with self._connection.transaction():
                made = self._rows(
                    "INSERT INTO metatree_run(id, machine, owner, token, expires_at)"
                    f" VALUES (%s, %s, %s, 1, {NOW} + %s) ON CONFLICT (id) DO NOTHING RETURNING number",
                    (run_id, machine, self._owner, self._lease_s),
                )
                if made:
                    self._insert(int(made[0][0]), 1, 0, first)
                    return int(made[0][0])
            mine = "SELECT number FROM metatree_run WHERE id = %s AND owner = %s AND token = 1"
            made = self._rows(mine, (run_id, self._owner)) if again else []
            if not made or not self._is_kept(int(made[0][0]), 0, first):
                raise RunExists(run_id)
            return int(made[0][0])

        self._numbers[run_id] = self._run(work)
        return 1

    def acquire(self, run_id: str) -> int:
        number = self._number(run_id)

        def work(again: bool) -> int:
            with self._connection.transaction():
                found = self._rows(
                    f"SELECT owner, token, expires_at > {NOW} FROM metatree_run WHERE number = %s FOR UPDATE",
                    (number,),
                )
                owner, token, held = found[0]
                taken = again and owner == self._owner  # perhaps by the attempt whose answer was lost
                if owner is not None and held and not taken and not is_dead(owner, shared=True):
                    raise LeaseLost(run_id)
                self._rows(
                    f"UPDATE metatree_run SET owner = %s, token = %s, expires_at = {NOW} + %s, flags = flags & %s,"
                    " ended = NULL WHERE number = %s",
                    (self._owner, token + 1, self._lease_s, MAIL, number),
                )
                return int(token) + 1

        return self._run(work)

    def append(self, run_id: str, token: int, seq: int, record: Record) -> int:
        number = self._numbers[run_id]

        def work(again: bool) -> int:
            try:
                return self._insert(number, token, seq, record)
            except LeaseLost:
                kept = again and self._is_kept(number, seq, record)
                flags = self._flags(number, token) if kept else None
                if flags is None:
                    self._refused(number)
                    raise LeaseLost(run_id) from None
                return flags

        return self._run(work)

    def _is_kept(self, number: int, seq: int, record: Record) -> bool:
        """Say whether a record is there already, as the attempt wrote it whose answer was lost."""
        found = self._rows(
            "SELECT kind, at, effect, body, used FROM metatree_journal WHERE run = %s AND seq = %s",
            (number, seq),
        )
        return found == [_row(record)]

    def _flags(self, number: int, token: int) -> int | None:
        """Return the flags of a run that is still held, None for one that is not."""
        found = self._rows("SELECT flags FROM metatree_run WHERE number = %s AND token = %s", (number, token))
        return int(found[0][0]) if found else None

    def _insert(self, number: int, token: int, seq: int, record: Record) -> int:
        try:
            written = self._rows(_APPEND, (number, token, seq, *_row(record)))
        except self._database.psycopg.errors.UniqueViolation as exc:
            raise LeaseLost("") from exc
        if not written:
            raise LeaseLost("")
        return int(written[0][0])

    def post(self, run_id: str, name: str, value: Any) -> None:
        number = self._number(run_id)

        def work(again: bool) -> None:
            with self._connection.transaction():
                # Locked first, so that whoever takes mail at this moment sees the letter or the flag.
                self._rows("UPDATE metatree_run SET flags = flags | %s WHERE number = %s", (MAIL, number))
                self._rows(
                    f"INSERT INTO metatree_mail(run, name, value, at) VALUES (%s, %s, %s, {NOW})",
                    (number, name, _dump(value)),
                )

        self._run(work)

    def take(self, run_id: str, token: int, seq: int) -> list[Record]:
        number = self._numbers[run_id]

        def work(again: bool) -> list[Record]:
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

        def work(again: bool) -> int:
            kept = self._rows(
                f"UPDATE metatree_run SET expires_at = {NOW} + %s WHERE number = %s AND token = %s RETURNING flags",
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
            lambda _: int(self._rows("SELECT refused FROM metatree_run WHERE number = %s", (number,))[0][0])
        )

    def release(self, run_id: str, token: int, ended: str | None) -> None:
        number = self._numbers[run_id]
        self._run(
            lambda _: self._rows(
                "UPDATE metatree_run SET owner = NULL, ended = %s WHERE number = %s AND token = %s",
                (ended, number, token),
            )
        )

    def reopen(self, run_id: str) -> None:
        """Let somebody take up a run that stopped before its end. Raises UnknownRun."""
        number = self._number(run_id)
        self._run(
            lambda _: self._rows(
                "UPDATE metatree_run SET ended = NULL, flags = flags & %s WHERE number = %s AND owner IS NULL",
                (MAIL, number),
            )
        )

    def read(self, run_id: str) -> list[Record]:
        number = self._number(run_id)
        found = self._run(
            lambda _: self._rows(
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
            lambda _: self._rows(
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
            lambda _: self._rows(
                f"SELECT id, owner, expires_at <= {NOW} FROM metatree_run WHERE machine = %s"
                " AND (ended IS NULL OR (ended = 'waiting' AND flags & %s <> 0)) ORDER BY number",
                (machine, MAIL),
            )
        )
        free = [
            run_id for run_id, owner, late in found if owner is None or late or is_dead(owner, shared=True)
        ]
        return free[:limit]

    def is_waiting(self, run_id: str, machine: str) -> bool:
        """Say whether there is such a run and it has not ended."""
        return bool(
            self._run(
                lambda _: self._rows(
                    "SELECT 1 FROM metatree_run WHERE id = %s AND machine = %s"
                    " AND (ended IS NULL OR ended = 'waiting')",
                    (run_id, machine),
                )
            )
        )

    def cancel(self, run_id: str) -> None:
        number = self._number(run_id)
        self._run(
            lambda _: self._rows(
                "UPDATE metatree_run SET flags = flags | %s WHERE number = %s", (STOP, number)
            )
        )

    def _number(self, run_id: str) -> int:
        number = self._numbers.get(run_id)
        if number is None:
            found = self._run(
                lambda _: self._rows("SELECT number FROM metatree_run WHERE id = %s", (run_id,))
            )
            if not found:
                raise UnknownRun(run_id)
            number = self._numbers[run_id] = int(found[0][0])
        return number


def _row(record: Record) -> tuple[Any, ...]:
    body = None if record.body is None else _dump(record.body)
    return record.kind, record.at, record.effect, body, _dump(record.used) if record.used else None


def _dump(value: Any) -> str:
    # PostgreSQL's text cannot hold a zero character; escaped it can.
    return json.dumps(value, separators=(",", ":"), default=str)
