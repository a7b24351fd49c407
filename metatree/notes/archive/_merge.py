"""Merge an archive into a tree: all of it or nothing, and what is there already stays.

| in both, and different | what happens |
|---|---|
| a node | both are kept: the one of the archive beside the other, as `ID~HASH` |
| a memory with the same text | one, with the mentions of both |
| what is said of a built node | what the tree says stays; what it does not say comes from the archive |
| a run | the longer journal, when one begins with the other; else that of the tree |
| an item of a board | the later version; else that of the tree |
| a call, a link, a fact | that of the tree |
| a permission | nothing comes from an archive unless it is asked for |
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from metatree.notes.archive._board_merge import BoardMerge
from metatree.notes.archive._node_merge import NodeMerge
from metatree.notes.archive._reader import opened
from metatree.notes.archive._report import Imported
from metatree.notes.archive._rows import Merge, scalar, text
from metatree.notes.archive._run_merge import RunMerge
from metatree.notes.archive.format import LOCAL_FACTS, PERMISSION_FACTS, UNSHARED
from metatree.trees.tree import Tree


def import_memory(tree: Tree, path: str | Path, *, permissions: bool = False) -> Imported:
    """Merge an archive into a tree; see the table of this module for what is in both.

    Importing the same archive again changes nothing.

    Args:
        permissions: whether permissions to call tools that change something are taken over too; they were given on
            another machine, perhaps by another person.

    Raises:
        UserError: there is no such file, or the tree cannot be written.
        BrokenStore: the file is cut off, damaged, of another program or of a newer version. Nothing was imported.
    """
    report = Imported()
    with opened(path) as archive, tree.memory.durable(), tree.memory.transaction():
        plain = _PlainMerge(tree, archive, report)
        NodeMerge(tree, archive, report).all()
        plain.said()
        RunMerge(tree, archive, report, permissions=permissions).all()
        plain.calls()
        BoardMerge(tree, archive, report).all()
        plain.rules()
        plain.permissions(take=permissions)
    return report


class _PlainMerge(Merge):
    """Merges what is one row with a key: what is there already stays."""

    def said(self) -> None:
        self.each("links", self._link)
        self.each("facts", self._fact)

    def calls(self) -> None:
        self.each("calls", self._call)

    def rules(self) -> None:
        self.each("rule_facts", self._rule_fact)
        self.each("rule_tokens", self._rule_token)

    def permissions(self, *, take: bool) -> None:
        self.each("permissions", self._permission if take else self._left_out)

    def _link(self, row: dict[str, Any]) -> None:
        values = tuple(text(row[name]) for name in ("source", "kind", "target"))
        new = self.store.execute("INSERT OR IGNORE INTO link(source, kind, target) VALUES (?, ?, ?)", values)
        self.report.count("links", bool(new))

    def _fact(self, row: dict[str, Any]) -> None:
        key = text(row["key"])
        if key in LOCAL_FACTS or key.startswith(UNSHARED):
            return
        new = self.layer.fact(key) is None
        if new:
            self.layer.set_fact(key, row["value"])
        self.report.count("facts", new)

    def _permission(self, row: dict[str, Any]) -> None:
        key = text(row["key"])
        if not key.startswith(PERMISSION_FACTS):
            raise ValueError(f"{key!r} is no permission")
        new = self.layer.fact(key) is None
        if new:
            self.layer.set_fact(key, row["value"])
        self.report.count("permissions", new)

    def _call(self, row: dict[str, Any]) -> None:
        texts = (text(row[name]) for name in ("hash", "tool", "version", "arguments", "key", "run_id"))
        new = self.store.execute(
            "INSERT OR IGNORE INTO call(hash, tool, version, arguments, key, run_id, owner, expires_at, at, until,"
            " result) VALUES (?, ?, ?, ?, ?, ?, NULL, 0, ?, ?, ?)",
            (
                *texts,
                float(row["at"]),
                scalar(row["until"]),
                None if row["result"] is None else json.dumps(row["result"]),
            ),
        )
        self.report.count("calls", bool(new))

    def _rule_fact(self, row: dict[str, Any]) -> None:
        names = ("memory", "id", "attribute", "value", "provenance")
        new = self.store.execute(
            f"INSERT OR IGNORE INTO fact({', '.join(names)}) VALUES (?, ?, ?, ?, ?)",
            tuple(scalar(row[name]) for name in names),
        )
        self.report.count("rule_facts", bool(new))

    def _rule_token(self, row: dict[str, Any]) -> None:
        names = ("memory", "production", "conditions", "token", "state")
        new = self.store.execute(
            f"INSERT OR IGNORE INTO rule_token({', '.join(names)}) VALUES (?, ?, ?, ?, ?)",
            tuple(text(row[name]) for name in names),
        )
        self.report.count("rule_tokens", bool(new))

    def _left_out(self, _: dict[str, Any]) -> None:
        self.report.permissions_left_out += 1
