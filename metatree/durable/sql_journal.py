"""A journal in a SQLite file or a PostgreSQL database: durable, each run held by one process at a time.

A signal for a run that somebody else holds goes into `mail`, and the holder moves it into the journal; its next write
tells it that there is some, so nobody polls. A write that was kept while its answer was lost knows itself again
(`again`).

Lost: writing into the journal from outside (only the holder writes).
"""

from __future__ import annotations

import json
from functools import cached_property
from itertools import islice
from typing import Any

from metatree._util.process import is_dead, this_process
from metatree.durable._journal import SIGNALS, STOP, Record, RunInfo, given_of
from metatree.durable.renewal import SHARE
from metatree.errors import BrokenStore, LeaseLost, RunExists, UnknownRun
from metatree.storage.database import Database
from metatree.storage.trust import IMPORTED_RUN

LEASE_S = 60.0
"""How long a run stays held after its holder's last write; a holder on this machine that died loses it at once."""


class SqlJournal:
    """Implements `metatree.durable.Journal` in the tables `run`, `journal` and `mail` of a database.

    Each append is one statement, and one commit, that also proves that the run is still held (a fencing token). Leases
    run by the clock of the database, so clocks of machines may differ.

    Args:
        database: where it is.
        owner: a name for this process; None for host, pid and when it started.
        lease_s: how long a run stays held after its holder's last write.
    """

    def __init__(self, database: Database, *, owner: str | None = None, lease_s: float = LEASE_S) -> None:
        self.renew_every_s: float | None = lease_s / SHARE
        self._lease_s = lease_s
        self.database = database
        self._owner = owner or this_process()
        self._numbers: dict[str, int] = {}

    def close(self) -> None:
        """Close the database."""
        self.database.close()

    def create(self, run_id: str, machine: str, first: Record) -> int:
        database = self.database

        def work(again: bool) -> int:
            with database.transaction(alone=False):
                rows = database.rows(
                    "INSERT INTO run(id, machine, owner, token, expires_at)"
                    f" VALUES (?, ?, ?, 1, {database.now} + ?) ON CONFLICT(id) DO NOTHING RETURNING number",
                    (run_id, machine, self._owner, self._lease_s),
                )
                if rows:
                    self._insert(int(rows[0][0]), 1, 0, first)
                    return int(rows[0][0])
            mine = "SELECT number FROM run WHERE id = ? AND owner = ? AND token = 1"
            rows = database.rows(mine, (run_id, self._owner)) if again else []
            if not rows or not self._is_stored(int(rows[0][0]), 0, first):
                raise RunExists(run_id)
            return int(rows[0][0])

        self._numbers[run_id] = database.attempt(work)
        return 1

    def acquire(self, run_id: str) -> int:
        number, database = self._number(run_id), self.database

        def work(again: bool) -> int:
            with database.transaction(alone=False):
                ((owner, token, leased),) = database.rows(
                    f"SELECT owner, token, expires_at > {database.now} FROM run WHERE number = ?{database.for_update}",
                    (number,),
                )
                is_retry = again and owner == self._owner  # perhaps by the attempt whose answer was lost
                if owner is not None and leased and not is_retry and not self._is_dead(owner):
                    raise LeaseLost(run_id)
                database.execute(
                    f"UPDATE run SET owner = ?, token = ?, expires_at = {database.now} + ?, flags = flags & ?,"
                    " ended = NULL WHERE number = ?",
                    (self._owner, token + 1, self._lease_s, SIGNALS, number),
                )
                return int(token) + 1

        return database.attempt(work)

    def append(self, run_id: str, token: int, seq: int, record: Record) -> int:
        number = self._numbers[run_id]

        def work(again: bool) -> int:
            flags = self._insert(number, token, seq, record)
            if flags is None and again and self._is_stored(number, seq, record):
                flags = self._flags(number, token)
            if flags is None:
                self._count_refused(number)
                raise LeaseLost(run_id)
            return flags

        return self.database.attempt(work)

    @cached_property
    def _insert_sql(self) -> str:
        # The row of the run is locked meanwhile, so that nobody takes the run over in between.
        return (
            "INSERT INTO journal(run, seq, kind, at, effect, body, used)"
            " SELECT number, ?, ?, ?, ?, ?, ? FROM run WHERE number = ? AND token = ?"
            f"{self.database.for_share} ON CONFLICT(run, seq) DO NOTHING"
            " RETURNING (SELECT flags FROM run WHERE number = ?)"
        )

    def _insert(self, number: int, token: int, seq: int, record: Record) -> int | None:
        """Add a record and return the flags of its run; None when the run or the number is somebody else's by now."""
        rows = self.database.rows(self._insert_sql, (seq, *_row(record), number, token, number))
        return int(rows[0][0]) if rows else None

    def _is_stored(self, number: int, seq: int, record: Record) -> bool:
        """Say whether a record is there already, as the attempt wrote it whose answer was lost."""
        sql = "SELECT kind, at, effect, body, used FROM journal WHERE run = ? AND seq = ?"
        return self.database.rows(sql, (number, seq)) == [_row(record)]

    def _flags(self, number: int, token: int) -> int | None:
        """Return the flags of a run that is still held, None for one that is not."""
        flags: int | None = self.database.value(
            "SELECT flags FROM run WHERE number = ? AND token = ?", (number, token)
        )
        return flags

    def post(self, run_id: str, name: str, value: Any) -> None:
        number, database = self._number(run_id), self.database

        def work(_: bool) -> None:
            with database.transaction(alone=False):
                # Locked first, so that whoever takes signals at this moment sees the row or the flag.
                database.execute("UPDATE run SET flags = flags | ? WHERE number = ?", (SIGNALS, number))
                database.execute(
                    f"INSERT INTO mail(run, name, value, at) VALUES (?, ?, ?, {database.now})",
                    (number, name, _dump(value)),
                )

        database.attempt(work)

    def take(self, run_id: str, token: int, seq: int) -> list[Record]:
        number, database = self._numbers[run_id], self.database

        def work(_: bool) -> list[Record]:
            if not database.rows("SELECT 1 FROM mail WHERE run = ? LIMIT 1", (number,)):
                return []
            with database.transaction(alone=False):
                database.rows(f"SELECT 1 FROM run WHERE number = ?{database.for_update}", (number,))
                posted = database.rows(
                    "DELETE FROM mail WHERE run = ? RETURNING number, name, value, at", (number,)
                )
                records = [
                    Record("signal", at, body={"name": name, "value": json.loads(value)})
                    for _, name, value, at in sorted(posted)
                ]
                for index, record in enumerate(records):
                    if self._insert(number, token, seq + index, record) is None:
                        raise LeaseLost(run_id)
                database.execute("UPDATE run SET flags = flags & ? WHERE number = ?", (~SIGNALS, number))
                return records

        return database.attempt(work)

    def renew(self, run_id: str, token: int) -> int:
        number, database = self._numbers[run_id], self.database

        def work(_: bool) -> int:
            rows = database.rows(
                f"UPDATE run SET expires_at = {database.now} + ? WHERE number = ? AND token = ? RETURNING flags",
                (self._lease_s, number, token),
            )
            if not rows:
                self._count_refused(number)
                raise LeaseLost(run_id)
            return int(rows[0][0])

        return database.attempt(work)

    def _count_refused(self, number: int) -> None:
        """Count a write that came after another process had taken the run over."""
        self.database.execute("UPDATE run SET refused = refused + 1 WHERE number = ?", (number,))

    def refused(self, run_id: str) -> int:
        """Return how many writes to a run were refused, since another process held it by then. Raises UnknownRun."""
        return int(
            self.database.value("SELECT refused FROM run WHERE number = ?", (self._number(run_id),)) or 0
        )

    def release(self, run_id: str, token: int, ended: str | None, *, wake_at: float | None = None) -> None:
        self._write(
            "UPDATE run SET owner = NULL, ended = ?, wake_at = ? WHERE number = ? AND token = ?",
            (ended, wake_at, self._numbers[run_id], token),
        )

    def reopen(self, run_id: str) -> None:
        """Let somebody take up a run that stopped before its end. Raises UnknownRun."""
        self._write(
            "UPDATE run SET ended = NULL, flags = flags & ? WHERE number = ? AND owner IS NULL",
            (SIGNALS, self._number(run_id)),
        )

    def cancel(self, run_id: str) -> None:
        self._write("UPDATE run SET flags = flags | ? WHERE number = ?", (STOP, self._number(run_id)))

    def _write(self, sql: str, values: tuple[Any, ...]) -> None:
        self.database.attempt(lambda _: self.database.execute(sql, values))

    def claimable(
        self, machine: str, *, limit: int = 100, family: str | None = None, begun: bool = False
    ) -> list[str]:
        """Return runs of a machine that somebody should take up, the oldest first.

        Those that did not stop and whose holder died or let its hold run out, and those that wait and have mail or
        whose time has come. Runs that somebody else began, in a store that was accepted or an import, go on only
        where one of theirs is named as the family.

        Args:
            family: that run alone, and those whose ids begin with it and a dot.
            begun: only those whose holder died or let its hold run out.
        """
        own, values = _of_family(family)
        if begun:
            own += " AND owner IS NOT NULL"
        if not self.database.shared:
            marked = "EXISTS (SELECT 1 FROM meta WHERE key ="
            named = f" OR {marked} ?)" if family else ""
            own += f" AND (NOT {marked} ? || run.id){named})"
            values = (*values, IMPORTED_RUN, *([IMPORTED_RUN + family] if family else []))
        rows = self.database.rows(
            f"SELECT id, owner, expires_at > {self.database.now} FROM run WHERE machine = ?{own}"
            " AND (ended IS NULL OR ended = 'waiting')"
            f" AND (ended IS NULL OR (flags & ?) <> 0 OR wake_at <= {self.database.now}) ORDER BY number",
            (machine, *values, SIGNALS),
        )
        free = (
            run_id for run_id, owner, leased in rows if owner is None or not leased or self._is_dead(owner)
        )
        return list(islice(free, limit))

    def wakes_in(self, machine: str, family: str | None = None) -> float | None:
        """Return after how many seconds the first of the runs that wait for a time goes on; None when none does."""
        own, values = _of_family(family)
        seconds: float | None = self.database.value(
            f"SELECT min(wake_at) - {self.database.now} FROM run WHERE machine = ?{own} AND ended = 'waiting'",
            (machine, *values),
        )
        return seconds

    def is_waiting(self, run_id: str, machine: str) -> bool:
        """Say whether there is such a run and it has not ended."""
        sql = "SELECT 1 FROM run WHERE id = ? AND machine = ? AND (ended IS NULL OR ended = 'waiting')"
        return self.database.row(sql, (run_id, machine)) is not None

    def read(self, run_id: str) -> list[Record]:
        rows = self.database.rows(
            "SELECT seq, kind, at, effect, body, used FROM journal WHERE run = ? ORDER BY seq",
            (self._number(run_id),),
        )
        if not rows:
            raise self._broken(run_id, 0, "it is missing")
        return [self._record(run_id, number, row) for number, row in enumerate(rows)]

    def _record(self, run_id: str, number: int, row: tuple[Any, ...]) -> Record:
        seq, kind, at, effect, body, used = row
        if seq != number:
            raise self._broken(run_id, number, "it is missing")
        try:
            return Record(
                kind, at, effect, None if body is None else json.loads(body), json.loads(used) if used else {}
            )
        except (ValueError, TypeError) as exc:
            raise self._broken(run_id, number, str(exc)) from exc

    def _broken(self, run_id: str, number: int, why: str) -> BrokenStore:
        return BrokenStore(
            f"record {number} of run {run_id!r} in {self.database.name} is damaged ({why}):"
            " the run cannot be taken up, begin another",
            path=self.database.name,
        )

    def runs(self) -> list[RunInfo]:
        rows = self.database.rows(
            "SELECT r.id, r.machine, r.ended, f.at, (SELECT max(at) FROM journal WHERE run = r.number), f.body"
            " FROM run r JOIN journal f ON f.run = r.number AND f.seq = 0 ORDER BY 5 DESC, r.number DESC"
        )
        return [
            RunInfo(run_id, machine, ended, began, updated, self._input(run_id, body))
            for run_id, machine, ended, began, updated, body in rows
        ]

    def _input(self, run_id: str, body: str) -> Any:
        return given_of(self._record(run_id, 0, (0, "begin", 0.0, None, body, None)))

    def _number(self, run_id: str) -> int:
        number = self._numbers.get(run_id)
        if number is None:
            number = self.database.value("SELECT number FROM run WHERE id = ?", (run_id,))
            if number is None:
                raise UnknownRun(run_id)
            self._numbers[run_id] = number
        return number

    def _is_dead(self, owner: str) -> bool:
        return is_dead(owner, shared=self.database.shared)


def _of_family(family: str | None) -> tuple[str, tuple[str, ...]]:
    """Return a condition on ids, and its values."""
    if family is None:
        return "", ()
    return " AND (id = ? OR (id > ? AND id < ?))", (family, f"{family}.", f"{family}/")  # `/` follows the dot


def _row(record: Record) -> tuple[Any, ...]:
    body = None if record.body is None else _dump(record.body)
    return record.kind, record.at, record.effect, body, _dump(record.used) if record.used else None


_compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str).encode


def _dump(value: Any) -> str:
    text = _compact(value)
    try:
        text.encode()
    except UnicodeEncodeError:  # half a surrogate pair, from a broken model: databases take it escaped only
        text = json.dumps(value, separators=(",", ":"), default=str)
    return text
