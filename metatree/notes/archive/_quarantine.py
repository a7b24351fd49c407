"""Take the texts of an export of somebody else, as plain text below a node of their own, and nothing else.

What is in an export may act in many ways: boards, runs that go on, flags and wishes, words and places of built nodes,
kinds and attributes that tools go by, ids that stand in the way of others. So nothing of it is taken but what was said
and by whom. Each node gets an id made of what it says, a kind that nothing goes by, no source and no attribute of its
own; so the same text comes once, a text that changed comes beside the one before, and nothing of the tree is met.

An id is made of the name of the export's file too, and of who said it: of an export that has grown only what is new is
added. What is new of one export lies below a folder of that import alone, and no node that is there changes: an
export of another could otherwise say more in the name of one that came before, and be left when its own is forgotten.
An answer that was added to a conversation stands beside it, therefore, not in it.

Decided: a memory that `metatree trust` accepts is taken as it is. It is shown before, and mostly one's own, from
another machine or a backup, where runs and boards are to go on.

Lost: checks of each thing that may act (twenty were found one by one, and a new table would need another); a tree of
its own beside the tree (`tree:`), which would have to be built, trusted and moved along; ids by what an export says of
where it is from, which it may say of any; accepting a memory in the same way (its runs would be gone for good).
"""

from __future__ import annotations

import json
import secrets
import sys
import time
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

from metatree._util.secret_text import masked
from metatree.errors import UntrustedStore
from metatree.node import Node
from metatree.notes.archive._node_merge import BRANCHES, parents_first
from metatree.notes.archive._rows import Merge
from metatree.notes.archive.format import MEMBERS
from metatree.notes.notes import IMPORT, IMPORTED_KIND, MAX_MENTIONS, mentions, one_line
from metatree.notes.wishes import KIND as WISH
from metatree.trees.layer import ROOT

FOLDER_KIND: Final = "import"
_MOST_DESCRIPTION: Final = 2_000
_MOST_TEXT: Final = 1_000_000
"""Characters of one text; the rest is cut."""
_MOST_BYTES: Final = 100_000_000
"""Of all texts in memory, as which they are read, and again by each search."""
_MOST_DEPTH: Final = 100
"""Texts lie no deeper below each other; deeper ones stand beside the last that does."""
_NEVER_COUNTED: Final = ("nodes", "journal", "images")
"""Journals belong to runs, images to items."""


class Quarantine(Merge):
    """Takes the texts of an archive; what else it has is read, so that damage is found, counted, and left out."""

    def all(self) -> None:
        """Take all of them."""
        name = one_line(Path(self.archive.path).name)
        day = time.strftime("%Y-%m-%d", time.gmtime())
        provenance = {"by": IMPORT, "file": name, "imported": day}
        self.report.merged = False
        ids: dict[str, tuple[str, int]] = {}
        """Of each node of the export: its id here, or that of the one that stands for its place, and how deep it is."""
        self._bytes = 0
        for node, parent, _ in parents_first(self, self._text):
            with self.sound("nodes", 0):
                plain = self._beside(_plain(node, provenance))
                known = plain.id in self.tree
                if not known:
                    place, depth = ids.get(parent) or (self._folder(name, day, provenance), 0)
                    self.tree.add_imported(plain, place)
                    ids[node.id] = (plain.id, depth + 1) if depth < _MOST_DEPTH else (place, depth)
                self.report.count("nodes", new=not known)
        for member in MEMBERS:
            number = 0 if member == "nodes" else sum(1 for _ in self.archive.rows(member))
            if number and member not in _NEVER_COUNTED:
                self.report.left_out[member] = number

    def _text(self, node: Node) -> Node | None:
        """Return a node that is taken, with the beginning of a text that is too long."""
        if node.kind == WISH:  # the memory that states it comes as a text
            self.report.left_out["wishes"] = self.report.left_out.get("wishes", 0) + 1
        if node.kind == WISH or BRANCHES.get(node.id) == node.kind:
            return None
        node = Node(
            node.id,
            _cut(node.title),
            _cut(node.description),
            None if node.content is None else _cut(node.content),
            node.kind,
            attributes={"said": _said(node)},
        )
        texts = (node.id, node.title, node.description, node.content, *node.attributes["said"])
        self._bytes += sum(map(sys.getsizeof, texts))
        if self._bytes > _MOST_BYTES:
            raise UntrustedStore(
                f"{self.archive.path!r} holds more than {_MOST_BYTES / 1e6:g} MB of texts, which is more than is taken"
                " from somebody else: have a smaller one made, or take it as it is with --trust",
                path=self.archive.path,
            )
        return node

    def _beside(self, plain: Node) -> Node:
        """Return a node with an id that nothing else has: anybody can tell which it will be, and name a file so."""
        while (there := self.tree.find(plain.id)) is not None and there.kind != IMPORTED_KIND:
            plain = replace(plain, id=f"{plain.id}~")
        return plain

    def _folder(self, name: str, day: str, provenance: dict[str, Any]) -> str:
        """Return the id of the node that what is new lies below, which is made with the first."""
        if self.report.folder is None:
            folder = Node(
                f"import:{secrets.token_hex(12)}",
                f"Import of {name}, {day}",
                "Texts of somebody else, as they say; nothing here was said by you or read from your sources",
                kind=FOLDER_KIND,
                provenance=provenance,
            )
            self.tree.add_imported(folder, ROOT)
            self.report.folder = folder.id
        return self.report.folder


def _plain(node: Node, provenance: dict[str, Any]) -> Node:
    """Return a node with what another says, and nothing that anything goes by."""
    said = node.attributes["said"]
    return Node(
        _id(provenance["file"], said, node.id, node.kind, node.title, node.description, node.content),
        one_line(node.title),
        one_line(node.description, _MOST_DESCRIPTION),
        node.content,
        IMPORTED_KIND,
        provenance=provenance,
        attributes={"was": one_line(masked(node.kind)[0]), "said": said},
    )


def _said(node: Node) -> list[dict[str, str]]:
    """Return who is said to have said it, when and where."""
    more = node.attributes
    said = mentions(node) or [dict(node.provenance) if node.provenance.get("who") else {}]
    if not said[0] and (more.get("speaker") or more.get("who")):
        said = [{"who": more.get("speaker") or more.get("who"), "at": more.get("at")}]
    told = [
        {key: one_line(masked(str(each[key]))[0]) for key in ("who", "at", "source") if each.get(key)}
        for each in said[:MAX_MENTIONS]
    ]
    return [each for each in told if each.get("who")]


def _cut(text: str) -> str:
    """Return a text with `*` in place of secrets, which an export of one's own has none of, and its beginning alone."""
    text = masked(text)[0]
    return (
        text
        if len(text) <= _MOST_TEXT
        else f"{text[:_MOST_TEXT]}\n… cut: {len(text) - _MOST_TEXT:,} more characters"
    )


def _id(*parts: Any) -> str:
    whole = json.dumps(parts).encode()
    return f"import:{blake2b(whole, digest_size=12).hexdigest()}"
