"""Runs of an archive, their journals and the signals that wait for them, into a tree."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from metatree._util.process import is_dead
from metatree._util.secret_text import without_secrets
from metatree.notes.archive._reader import Archive
from metatree.notes.archive._report import Conflict, Imported
from metatree.notes.archive._rows import Merge, scalar, text
from metatree.notes.archive.format import HERE
from metatree.trees.tree import Tree


class RunMerge(Merge):
    """Merges runs by their journals: the longer one stays, where one begins with the other."""

    def __init__(self, tree: Tree, archive: Archive, done: Imported) -> None:
        super().__init__(tree, archive, done)
        self._moved: dict[str, int] = {}
        """Runs that are here as the archive has them, with their numbers."""

    def all(self) -> None:
        """Merge all of them."""
        self._runs()
        self.each("mail", self._letter)

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
                self._run(text(row["id"]), text(row["machine"]), row["ended"], records)
        if following is not None:
            raise self.archive.damaged("journal", 0, f"run {following[0]!r} is not among the runs")

    def _record(self, row: dict[str, Any]) -> tuple[Any, ...]:
        body = _placed(row["body"], self.tree) if row["seq"] == 0 else row["body"]
        said = None if body is None else json.dumps(body, ensure_ascii=False, separators=(",", ":"))
        used = None if row["used"] is None else json.dumps(row["used"], separators=(",", ":"))
        return (int(row["seq"]), text(row["kind"]), float(row["at"]), row["effect"], said, used)

    def _run(self, run_id: str, machine: str, ended: Any, records: list[tuple[Any, ...]]) -> None:
        found = self.store.row("SELECT number, owner, expires_at FROM run WHERE id = ?", (run_id,))
        if found is None:
            sql = "INSERT INTO run(id, machine, owner, token, expires_at, ended) VALUES (?, ?, NULL, 1, 0, ?)"
            number = self.store.rows(f"{sql} RETURNING number", (run_id, machine, scalar(ended)))[0][0]
            self._append(number, records)
            self._moved[run_id] = number
            self.done.count("runs", new=True)
            return
        number, owner, _ = found
        sql = "SELECT seq, kind, at, effect, body, used FROM journal WHERE run = ? ORDER BY seq"
        here = [_comparable(row) for row in self.store.rows(sql, (number,))]
        there = [_comparable(row) for row in records]
        if there in (here[: len(there)], without_secrets(here[: len(there)])[0]):
            self.done.count("runs", new=False)
        elif there[: len(here)] == here and (owner is None or is_dead(owner)):
            self._append(number, records[len(here) :])
            delivered = [(number, record[2]) for record in records[len(here) :] if record[1] == "signal"]
            self.store.execute_many("DELETE FROM mail WHERE run = ? AND at = ?", delivered)
            self.store.execute(
                "UPDATE run SET ended = ?, owner = NULL, token = token + 1 WHERE number = ?",
                (scalar(ended), number),
            )
            self._moved[run_id] = number
            self.done.count("runs", new=True)
        else:
            self.done.conflicts.append(
                Conflict("run", run_id, "the one that the tree has, which went another way")
            )
            self.done.count("runs", new=False)

    def _append(self, number: int, records: list[tuple[Any, ...]]) -> None:
        self.store.execute_many(
            "INSERT INTO journal(run, seq, kind, at, effect, body, used) VALUES (?, ?, ?, ?, ?, ?, ?)",
            ((number, *record) for record in records),
        )

    def _letter(self, row: dict[str, Any]) -> None:
        """Take a signal that waits for a run, unless the run was here already: then it may have been delivered."""
        number = self._moved.get(text(row["run"]))
        if number is not None:
            self.store.execute(
                "INSERT INTO mail(run, name, value, at) VALUES (?, ?, ?, ?)",
                (number, text(row["name"]), text(row["value"]), float(row["at"])),
            )
            self.store.execute("UPDATE run SET cancel = cancel | 2 WHERE number = ?", (number,))
        self.done.count("mail", new=number is not None)


def _placed(body: Any, tree: Tree) -> Any:
    """Return the first record of a run with the paths of this tree."""
    given = body.get("given") if isinstance(body, dict) else None
    if not isinstance(given, dict):
        return body
    given = dict(given)
    if given.get("tree") == HERE:
        given["tree"] = None if tree.path is None else str(tree.path.absolute())
    board = given.get("board")
    if isinstance(board, dict) and board.get("path") == HERE:
        memory = tree.memory.path
        given["board"] = {**board, "path": None if memory is None else str(memory.resolve())}
    return {**body, "given": given}


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
