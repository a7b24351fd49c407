"""Merge an archive into a tree: all of it or nothing, and what is there already stays.

| in both, and different | what happens |
|---|---|
| a node | both are kept: the one of the archive beside the other, as `ID~HASH` |
| a memory with the same text | one, with the mentions of both |
| what is said of a built node | what the tree says stays; what it does not say comes from the archive |
| a run | the longer journal, when one begins with the other; else that of the tree |
| an item of a board | the later version; else that of the tree |
| a call, a link, a fact | that of the tree |
| a permission, a wish, a built node taken out | nothing comes from an archive unless it is asked for |
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from metatree.errors import UserError
from metatree.notes.archive._board_merge import BoardMerge
from metatree.notes.archive._node_merge import NodeMerge
from metatree.notes.archive._quarantine import Quarantine
from metatree.notes.archive._reader import opened
from metatree.notes.archive._report import Imported
from metatree.notes.archive._rows import Merge, scalar, text
from metatree.notes.archive._run_merge import RunMerge
from metatree.notes.archive.format import PERMISSION_FACTS, SHAREABLE_FACTS
from metatree.notes.feedback import FLAG, Flag
from metatree.trees.tree import Tree


def import_memory(
    tree: Tree,
    path: str | Path,
    *,
    trust: bool = False,
    permissions: bool = False,
    wishes: bool = False,
    deletions: bool = False,
) -> Imported:
    """Merge an archive into a tree; see the table of this module for what is in both.

    Of one that this user did not export, with the key that is here, only the texts are taken, as plain text below a
    node of their own. Importing the same archive again changes nothing.

    Args:
        trust: whether one of somebody else is merged as one of this user's.
        permissions: whether permissions to call tools that change something are taken over too; they were given on
            another machine, perhaps by another person.
        wishes: whether standing wishes are taken over too: what somebody wants always, in whose name it is, stands
            beside each answer from then on.
        deletions: whether built nodes are taken out of the tree that somebody took out of theirs.

    Raises:
        UserError: there is no such file, the tree cannot be written, or what is asked for needs `trust`.
        BrokenStore: the file is cut off, damaged, of another program or of a newer version. Nothing was imported.
    """
    report = Imported()
    with opened(path) as archive, tree.memory.durable(), tree.memory.transaction():
        if not (archive.own or trust):
            if permissions or wishes or deletions:
                raise UserError(
                    f"{archive.path!r} is not of this user and this machine: texts alone are taken of it; permissions,"
                    " wishes and deletions come only with trust in all of it (--trust)"
                )
            Quarantine(tree, archive, report).all()
            return report
        plain = _PlainMerge(tree, archive, report)
        NodeMerge(tree, archive, report).all(wishes=wishes, deletions=deletions)
        plain.said()
        RunMerge(tree, archive, report, permissions=permissions).all()
        plain.calls()
        BoardMerge(tree, archive, report).all(permissions=permissions)
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
        self._add("links", "link", _texts(row, "source", "kind", "target"))

    def _rule_fact(self, row: dict[str, Any]) -> None:
        names = ("memory", "id", "attribute", "value", "provenance")
        self._add("rule_facts", "fact", {name: scalar(row[name]) for name in names})

    def _rule_token(self, row: dict[str, Any]) -> None:
        values = _texts(row, "memory", "production", "conditions", "token", "state")
        self._add("rule_tokens", "rule_token", values)

    def _add(self, what: str, table: str, values: Mapping[str, Any]) -> None:
        new = self.store.execute(
            f"INSERT OR IGNORE INTO {table}({', '.join(values)}) VALUES ({', '.join('?' * len(values))})",
            tuple(values.values()),
        )
        self.report.count(what, bool(new))

    def _fact(self, row: dict[str, Any]) -> None:
        key = text(row["key"])
        if key.startswith(FLAG):
            flag = Flag(**row["value"])
            if flag.id != key or not all(isinstance(value, str) for value in asdict(flag).values()):
                raise ValueError(f"{key!r} is no flag")
            if self.layer.fact(key) is None:
                self.layer.mark_imported(key)
        if key.startswith(SHAREABLE_FACTS):
            self._add_fact("facts", key, row["value"])

    def _permission(self, row: dict[str, Any]) -> None:
        key = text(row["key"])
        if not key.startswith(PERMISSION_FACTS):
            raise ValueError(f"{key!r} is no permission")
        self._add_fact("permissions", key, row["value"])

    def _add_fact(self, what: str, key: str, value: Any) -> None:
        new = self.layer.fact(key) is None
        if new:
            self.layer.set_fact(key, value)
        self.report.count(what, new)

    def _call(self, row: dict[str, Any]) -> None:
        values = _texts(row, "hash", "tool", "version", "arguments", "key", "run_id") | {
            "expires_at": 0,
            "at": float(row["at"]),
            "until": scalar(row["until"]),
            "result": None if row["result"] is None else json.dumps(row["result"]),
        }
        self._add("calls", "call", values)

    def _left_out(self, _: dict[str, Any]) -> None:
        self.report.permissions_left_out += 1


def _texts(row: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: text(row[name]) for name in names}
