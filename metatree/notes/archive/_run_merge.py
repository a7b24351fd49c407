"""Runs of an archive, their journals and the signals that wait for them, into a tree."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from metatree._util.links import real
from metatree._util.process import is_dead
from metatree._util.secret_text import without_secrets
from metatree.notes.archive._reader import Archive
from metatree.notes.archive._report import Imported, MergeConflict
from metatree.notes.archive._rows import Merge, scalar, text
from metatree.notes.archive.format import HERE, with_places
from metatree.storage.trust import IMPORTED_RUN
from metatree.trees.tree import Tree


class RunMerge(Merge):
    """Merges runs by their journals: the longer one stays, where one begins with the other."""

    def __init__(self, tree: Tree, archive: Archive, report: Imported, *, permissions: bool) -> None:
        super().__init__(tree, archive, report)
        self._permissions = permissions
        self._moved: dict[str, int] = {}
        """Runs that are here as the archive has them, with their numbers."""
        self._theirs: set[str] = set()
        """Runs that somebody else began where the archive was made."""

    def all(self) -> None:
        """Merge all of them."""
        self._runs()
        self.each("mail", self._signal)

    def _runs(self) -> None:
        journals = _grouped(self.archive.rows("journal"), "run")
        following = next(journals, None)
        for number, row in enumerate(self.archive.rows("runs"), start=1):
            with self.sound("runs", number):
                records = []
                if following is not None and following[0] == row["id"]:
                    records = [self._record(each) for each in following[1]]
                    following = next(journals, None)
                if not records:
                    raise ValueError(f"run {row['id']!r} has no journal")
                if row.get("imported"):
                    self._theirs.add(text(row["id"]))
                self._run(text(row["id"]), text(row["machine"]), row["ended"], records)
        if following is not None:
            raise self.archive.damaged("journal", 0, f"run {following[0]!r} is not among the runs")

    def _record(self, row: dict[str, Any]) -> tuple[Any, ...]:
        body = row["body"]
        if row["seq"] == 0:
            tree, memory = self.tree.path, self.store.path
            tree_places = {HERE: None if tree is None else str(real(tree))}
            body = with_places(body, tree_places, {HERE: None if memory is None else str(memory.resolve())})
        body_text = None if body is None else json.dumps(body, ensure_ascii=False, separators=(",", ":"))
        used = None if row["used"] is None else json.dumps(row["used"], separators=(",", ":"))
        return (int(row["seq"]), text(row["kind"]), float(row["at"]), row["effect"], body_text, used)

    def _run(self, run_id: str, machine: str, ended: Any, records: list[tuple[Any, ...]]) -> None:
        stored = self.store.row("SELECT number, owner, expires_at FROM run WHERE id = ?", (run_id,))
        if stored is None:
            sql = "INSERT INTO run(id, machine, owner, token, expires_at, ended) VALUES (?, ?, NULL, 1, 0, ?)"
            number = self.store.rows(f"{sql} RETURNING number", (run_id, machine, scalar(ended)))[0][0]
            self._append(number, [self._begun_here(records[0]), *records[1:]])
            self._moves(run_id, number)
            self.report.count("runs", new=True)
            return
        number, owner, _ = stored
        sql = "SELECT seq, kind, at, effect, body, used FROM journal WHERE run = ? ORDER BY seq"
        ours = [_comparable(row) for row in self.store.rows(sql, (number,))]
        theirs = [_comparable(row) for row in records]
        if theirs in (ours[: len(theirs)], without_secrets(ours[: len(theirs)])[0]):
            self.report.count("runs", new=False)
        elif theirs[: len(ours)] == ours and (owner is None or is_dead(owner)):
            self._append(number, records[len(ours) :])
            delivered = [(number, record[2]) for record in records[len(ours) :] if record[1] == "signal"]
            self.store.execute_many("DELETE FROM mail WHERE run = ? AND at = ?", delivered)
            self.store.execute(
                "UPDATE run SET ended = ?, owner = NULL, token = token + 1 WHERE number = ?",
                (scalar(ended), number),
            )
            self._moves(run_id, number)
            self.report.count("runs", new=True)
        else:
            self.report.conflicts.append(
                MergeConflict("run", run_id, "the one that the tree has, which went another way")
            )
            self.report.count("runs", new=False)

    def _begun_here(self, first: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the first record of a run without a board in another file: one of that name here is not the run's."""
        body: Any = json.loads(first[4]) if first[4] else None
        given = body.get("given") if isinstance(body, dict) else None
        if not isinstance(given, dict):
            return first
        board = given.get("board")
        own = None if self.store.path is None else str(self.store.path.resolve())
        if not isinstance(board, dict) or board.get("path") in (None, own):
            return first
        said = {**body, "given": {**given, "board": None}}
        return (*first[:4], json.dumps(said, ensure_ascii=False, separators=(",", ":")), first[5])

    def _moves(self, run_id: str, number: int) -> None:
        """Remember a run that is here now as the archive has it; what a person permitted in it is left there."""
        self._moved[run_id] = number
        if not self._permissions or run_id in self._theirs:
            self.layer.set_fact(IMPORTED_RUN + run_id, True)

    def _append(self, number: int, records: list[tuple[Any, ...]]) -> None:
        self.store.execute_many(
            "INSERT INTO journal(run, seq, kind, at, effect, body, used) VALUES (?, ?, ?, ?, ?, ?, ?)",
            ((number, *record) for record in records),
        )

    def _signal(self, row: dict[str, Any]) -> None:
        """Take a signal that waits for a run, unless the run was here already: then it may have been delivered."""
        number = self._moved.get(text(row["run"]))
        if number is not None:
            self.store.execute(
                "INSERT INTO mail(run, name, value, at) VALUES (?, ?, ?, ?)",
                (number, text(row["name"]), text(row["value"]), float(row["at"])),
            )
            self.store.execute("UPDATE run SET flags = flags | 2 WHERE number = ?", (number,))
        self.report.count("mail", new=number is not None)


def _comparable(row: tuple[Any, ...]) -> list[Any]:
    seq, kind, at, effect, body, used = row
    return [seq, kind, at, effect, body and json.loads(body), used and json.loads(used)]


def _grouped(rows: Iterable[dict[str, Any]], key: str) -> Iterator[tuple[Any, list[dict[str, Any]]]]:
    group: list[dict[str, Any]] = []
    for row in rows:
        if group and group[0].get(key) != row.get(key):
            yield group[0].get(key), group
            group = []
        group.append(row)
    if group:
        yield group[0].get(key), group
