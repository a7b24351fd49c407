"""A journal in a SQLite store: durable, shared by processes, each run held by one of them at a time."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable
from typing import Any

from metatree._util.process import is_dead, this_process
from metatree.durable._journal import MAIL, STOP, Record, RunInfo, given_of
from metatree.durable.renewal import SHARE
from metatree.errors import BrokenStore, LeaseLost, MetatreeError, RunExists, UnknownRun
from metatree.storage.store import Store

LEASE_S = 60.0
"""How long a run stays held after its holder's last write; a holder on this machine that died loses it at once."""


class SqliteJournal:
    """Implements `metatree.durable.Journal` in the tables `run` and `journal` of a store.

    Each append is one statement, and one commit, that also proves that the run is still held (a fencing token).
    """

    def __init__(
        self,
        store: Store,
        *,
        now: Callable[[], float] = time.time,
        owner: str | None = None,
        lease_s: float = LEASE_S,
    ) -> None:
        self.renew_every_s: float | None = lease_s / SHARE
        self._lease_s = lease_s
        self._store = store
        self._now = now
        self._owner = owner or this_process()
        self._numbers: dict[str, int] = {}

    def create(self, run_id: str, machine: str, first: Record) -> int:
        with self._store.transaction():
            if self._store.row("SELECT 1 FROM run WHERE id = ?", (run_id,)):
                raise RunExists(run_id)
            made = self._store.rows(
                "INSERT INTO run(id, machine, owner, token, expires_at) VALUES (?, ?, ?, 1, ?) RETURNING number",
                (run_id, machine, self._owner, self._now() + self._lease_s),
            )
            number = int(made[0][0])
            self._insert(number, 1, 0, first)
        self._numbers[run_id] = number
        return 1

    def acquire(self, run_id: str) -> int:
        number = self._number(run_id)
        with self._store.transaction():
            found = self._store.row("SELECT owner, token, expires_at FROM run WHERE number = ?", (number,))
            assert found is not None
            owner, token, expires_at = found
            if owner is not None and expires_at > self._now() and not is_dead(owner):
                raise LeaseLost(run_id)
            self._store.execute(
                "UPDATE run SET owner = ?, token = ?, expires_at = ?, cancel = cancel & ?, ended = NULL"
                " WHERE number = ?",
                (self._owner, token + 1, self._now() + self._lease_s, MAIL, number),
            )
        return int(token) + 1

    def append(self, run_id: str, token: int, seq: int, record: Record) -> int:
        number = self._numbers[run_id]
        try:
            return self._insert(number, token, seq, record)
        except LeaseLost:
            self._refused(number)
            raise LeaseLost(run_id) from None

    def post(self, run_id: str, name: str, value: Any) -> None:
        number = self._number(run_id)
        with self._store.transaction():
            self._store.execute(
                "INSERT INTO mail(run, name, value, at) VALUES (?, ?, ?, ?)",
                (number, name, _dump(value), self._now()),
            )
            self._store.execute("UPDATE run SET cancel = cancel | ? WHERE number = ?", (MAIL, number))

    def take(self, run_id: str, token: int, seq: int) -> list[Record]:
        number = self._numbers[run_id]
        if not self._store.rows("SELECT 1 FROM mail WHERE run = ? LIMIT 1", (number,)):
            return []
        with self._store.transaction():
            letters = self._store.rows(
                "SELECT number, name, value, at FROM mail WHERE run = ? ORDER BY number", (number,)
            )
            found = []
            for index, (_, name, value, at) in enumerate(letters):
                found.append(Record("signal", at, body={"name": name, "value": json.loads(value)}))
                try:
                    self._insert(number, token, seq + index, found[-1])
                except LeaseLost:
                    raise LeaseLost(run_id) from None
            self._store.execute("DELETE FROM mail WHERE run = ? AND number <= ?", (number, letters[-1][0]))
            self._store.execute("UPDATE run SET cancel = cancel & ? WHERE number = ?", (~MAIL, number))
        return found

    def renew(self, run_id: str, token: int) -> int:
        kept = self._store.rows(
            "UPDATE run SET expires_at = ? WHERE number = ? AND token = ? RETURNING cancel",
            (self._now() + self._lease_s, self._numbers[run_id], token),
        )
        if not kept:
            self._refused(self._numbers[run_id])
            raise LeaseLost(run_id)
        return int(kept[0][0])

    def _refused(self, number: int) -> None:
        """Count a write that came after another process had taken the run over."""
        self._store.execute("UPDATE run SET refused = refused + 1 WHERE number = ?", (number,))

    def refused(self, run_id: str) -> int:
        """Return how many writes to a run were refused, since another process held it by then. Raises UnknownRun."""
        found = self._store.row("SELECT refused FROM run WHERE number = ?", (self._number(run_id),))
        return 0 if found is None else int(found[0])

    def claimable(self, machine: str, *, limit: int = 100) -> list[str]:
        """Return runs of a machine that somebody should take up, the oldest first.

        Those that did not stop and whose holder died or let its hold run out, and those that wait and have mail.
        """
        now = self._now()
        found = self._store.rows(
            "SELECT id, owner, expires_at FROM run WHERE machine = ? AND (ended IS NULL OR ended = 'waiting')"
            " AND (ended IS NULL OR cancel & ?) ORDER BY number",
            (machine, MAIL),
        )
        free = (
            run_id for run_id, owner, expires in found if owner is None or expires <= now or is_dead(owner)
        )
        return [run_id for run_id, _ in zip(free, range(limit), strict=False)]

    def is_waiting(self, run_id: str, machine: str) -> bool:
        """Say whether there is such a run and it has not ended."""
        return bool(
            self._store.rows(
                "SELECT 1 FROM run WHERE id = ? AND machine = ? AND (ended IS NULL OR ended = 'waiting')",
                (run_id, machine),
            )
        )

    def reopen(self, run_id: str) -> None:
        """Let somebody take up a run that stopped before its end. Raises UnknownRun."""
        self._store.execute(
            "UPDATE run SET ended = NULL, cancel = cancel & ? WHERE number = ? AND owner IS NULL",
            (MAIL, self._number(run_id)),
        )

    def _insert(self, number: int, token: int, seq: int, record: Record) -> int:
        body = None if record.body is None else _dump(record.body)
        used = _dump(record.used) if record.used else None
        try:
            written = self._store.rows(
                "INSERT INTO journal(run, seq, kind, at, effect, body, used)"
                " SELECT number, ?, ?, ?, ?, ?, ? FROM run WHERE number = ? AND token = ?"
                " RETURNING (SELECT cancel FROM run WHERE number = ?)",
                (seq, record.kind, record.at, record.effect, body, used, number, token, number),
            )
        except MetatreeError as exc:
            if isinstance(exc.__cause__, sqlite3.IntegrityError):  # the number is taken
                raise LeaseLost("") from exc
            raise
        if not written:
            raise LeaseLost("")
        return int(written[0][0])

    def release(self, run_id: str, token: int, ended: str | None) -> None:
        self._store.execute(
            "UPDATE run SET owner = NULL, ended = ? WHERE number = ? AND token = ?",
            (ended, self._numbers[run_id], token),
        )

    def read(self, run_id: str) -> list[Record]:
        found = self._store.rows(
            "SELECT seq, kind, at, effect, body, used FROM journal WHERE run = ? ORDER BY seq",
            (self._number(run_id),),
        )
        if not found:
            raise self._broken(run_id, 0, "it is missing")
        return [self._record(run_id, number, row) for number, row in enumerate(found)]

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
        path = str(self._store.path or ":memory:")
        return BrokenStore(
            f"record {number} of run {run_id!r} in {path} is damaged ({why}):"
            " the run cannot be taken up, begin another",
            path=path,
        )

    def runs(self) -> list[RunInfo]:
        found = self._store.rows(
            "SELECT r.id, r.machine, r.ended, f.at, (SELECT max(at) FROM journal WHERE run = r.number), f.body"
            " FROM run r JOIN journal f ON f.run = r.number AND f.seq = 0 ORDER BY 5 DESC, r.number DESC"
        )
        return [
            RunInfo(run_id, machine, ended, began, updated, self._given(run_id, body))
            for run_id, machine, ended, began, updated, body in found
        ]

    def _given(self, run_id: str, body: str) -> Any:
        return given_of(self._record(run_id, 0, (0, "begin", 0.0, None, body, None)))

    def cancel(self, run_id: str) -> None:
        self._store.execute(
            "UPDATE run SET cancel = cancel | ? WHERE number = ?", (STOP, self._number(run_id))
        )

    def _number(self, run_id: str) -> int:
        number = self._numbers.get(run_id)
        if number is None:
            found = self._store.row("SELECT number FROM run WHERE id = ?", (run_id,))
            if found is None:
                raise UnknownRun(run_id)
            number = self._numbers[run_id] = int(found[0])
        return number


_compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str).encode


def _dump(value: Any) -> str:
    text = _compact(value)
    try:
        text.encode()
    except UnicodeEncodeError:  # half a surrogate pair, from a broken model: SQLite takes it escaped only
        text = json.dumps(value, separators=(",", ":"), default=str)
    return text
