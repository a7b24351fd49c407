"""A journal in a SQLite store: durable, shared by processes, each run held by one of them at a time."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

from metatree.errors import LeaseLost, MetatreeError, RunExists, UnknownRun
from metatree.kernel.journal import Record, RunInfo
from metatree.process import is_dead, this_process
from metatree.store import Store

LEASE_S = 60.0
"""How long a run stays held after its holder's last write; a holder on this machine that died loses it at once."""


class SqliteJournal:
    """Implements `metatree.kernel.Journal` in the tables `run` and `journal` of a store.

    Each append is one statement, and one commit, that also proves that the run is still held (a fencing token).
    """

    def __init__(
        self, store: Store, *, now: Callable[[], float] = time.time, owner: str | None = None
    ) -> None:
        self._store = store
        self._now = now
        self._owner = owner or this_process()
        self._numbers: dict[str, int] = {}
        self._renewed: dict[str, float] = {}

    def create(self, run_id: str, machine: str, first: Record) -> int:
        with self._store.transaction():
            if self._store.row("SELECT 1 FROM run WHERE id = ?", (run_id,)):
                raise RunExists(run_id)
            self._store.execute(
                "INSERT INTO run(id, machine, owner, token, expires_at) VALUES (?, ?, ?, 1, ?)",
                (run_id, machine, self._owner, self._now() + LEASE_S),
            )
            self._insert(self._number(run_id), 1, 0, first)
        self._renewed[run_id] = self._now()
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
                "UPDATE run SET owner = ?, token = ?, expires_at = ?, cancel = 0, ended = NULL WHERE number = ?",
                (self._owner, token + 1, self._now() + LEASE_S, number),
            )
        self._renewed[run_id] = self._now()
        return int(token) + 1

    def append(self, run_id: str, token: int, seq: int, record: Record) -> bool:
        number = self._numbers[run_id]
        now = self._now()
        if now - self._renewed[run_id] > LEASE_S / 4:
            self._store.execute(
                "UPDATE run SET expires_at = ? WHERE number = ? AND token = ?", (now + LEASE_S, number, token)
            )
            self._renewed[run_id] = now
        try:
            return self._insert(number, token, seq, record)
        except LeaseLost:
            raise LeaseLost(run_id) from None

    def _insert(self, number: int, token: int, seq: int, record: Record) -> bool:
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
            if "UNIQUE" in str(exc):
                raise LeaseLost("") from exc
            raise
        if not written:
            raise LeaseLost("")
        return bool(written[0][0])

    def release(self, run_id: str, token: int, ended: str | None) -> None:
        self._store.execute(
            "UPDATE run SET owner = NULL, ended = ? WHERE number = ? AND token = ?",
            (ended, self._numbers[run_id], token),
        )

    def read(self, run_id: str) -> list[Record]:
        found = self._store.rows(
            "SELECT kind, at, effect, body, used FROM journal WHERE run = ? ORDER BY seq",
            (self._number(run_id),),
        )
        return [
            Record(
                kind, at, effect, None if body is None else json.loads(body), json.loads(used) if used else {}
            )
            for kind, at, effect, body, used in found
        ]

    def runs(self) -> list[RunInfo]:
        found = self._store.rows(
            "SELECT r.id, r.machine, r.ended, f.at, (SELECT max(at) FROM journal WHERE run = r.number), f.body"
            " FROM run r JOIN journal f ON f.run = r.number AND f.seq = 0 ORDER BY 5 DESC"
        )
        return [
            RunInfo(i, machine, ended, began, updated, json.loads(b))
            for i, machine, ended, began, updated, b in found
        ]

    def cancel(self, run_id: str) -> None:
        self._store.execute("UPDATE run SET cancel = 1 WHERE number = ?", (self._number(run_id),))

    def _number(self, run_id: str) -> int:
        number = self._numbers.get(run_id)
        if number is None:
            found = self._store.row("SELECT number FROM run WHERE id = ?", (run_id,))
            if found is None:
                raise UnknownRun(run_id)
            number = self._numbers[run_id] = int(found[0])
        return number


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
