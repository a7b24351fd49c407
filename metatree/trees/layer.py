"""The nodes of one store: rows, places and numbered changes, without a word on what lies above or below."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from metatree.node import Node, Source
from metatree.storage.store import Store
from metatree.storage.trust import IMPORTED_NODE, NAMED_FILE

ROOT = "."
"""Id of every tree's root node."""

GAP = 1 << 20
"""Distance between the positions of two neighbours that were appended, so that others fit between."""

BUILT_GAP = 1 << 32
"""The same in a built layer, whose positions all stay below `APPENDED`."""

APPENDED = 1 << 53
"""Where the positions of appended nodes begin: behind everything that was built."""

_COLUMNS = (
    "id, kind, title, description, source_type, source_path, start_line, end_line, parts, provenance, attributes,"
    " digest, kept, position"
)
_PAGE = 1000

Placed = tuple[int, Node]
"""A node with its position among its siblings."""


class Layer:
    """The node rows of one store.

    Rows are numbered by `seq`, which grows with every change; a caller that changes something holds a
    transaction of the store and takes the number from `next_seq`.
    """

    def __init__(self, store: Store) -> None:
        self.store = store

    # numbers

    def last_seq(self) -> int:
        """Return the number of the latest change, 0 when there was none."""
        latest = self.store.value(
            "SELECT max(ifnull((SELECT max(seq) FROM node), 0), ifnull((SELECT max(seq) FROM gone), 0),"
            " ifnull((SELECT max(seq) FROM override), 0))"
        )
        return int(latest)

    def next_seq(self) -> int:
        """Return the number for one more change."""
        return self.last_seq() + 1

    def changes(self, since: int, until: int) -> Iterator[tuple[int, str, bool]]:
        """Yield number, id, and whether there is a row, of what changed after `since`, up to `until`, in order."""
        pick = (
            "SELECT seq, id, {row} FROM {table} WHERE seq > :since AND seq <= :until ORDER BY seq LIMIT :page"
        )
        tables = (("node", 1), ("gone", 0), ("override", 0))
        sql = " UNION ALL ".join(f"SELECT * FROM ({pick.format(table=t, row=row)})" for t, row in tables)
        while True:
            page = self.store.rows(
                f"{sql} ORDER BY seq LIMIT :page", {"since": since, "until": until, "page": _PAGE}
            )
            yield from page
            if len(page) < _PAGE:
                return
            since = page[-1][0]

    # facts

    def fact(self, key: str) -> Any:
        """Return a small fact that was kept under a key, None when there is none."""
        text = self.store.value("SELECT value FROM meta WHERE key = ?", (key,))
        return None if text is None else json.loads(text)

    def has_fact(self, key: str) -> bool:
        """Whether anything was kept under a key, also null."""
        return self.store.value("SELECT 1 FROM meta WHERE key = ?", (key,)) is not None

    def fact_keys(self, prefix: str, *, most: int = -1) -> list[str]:
        """Return the keys that begin with a text, in order; at most so many, -1 for all."""
        sql = "SELECT key FROM meta WHERE key >= ? AND key < ? ORDER BY key LIMIT ?"
        return [row[0] for row in self.store.rows(sql, (*_begins(prefix), most))]

    def facts(self, prefix: str) -> dict[str, Any]:
        """Return the facts whose keys begin with a text, by their keys, in order."""
        rows = self.store.rows("SELECT key, value FROM meta WHERE key >= ? AND key < ?", _begins(prefix))
        return {key: json.loads(value) for key, value in rows}

    def set_fact(self, key: str, value: Any) -> None:
        """Keep a JSON value under a key."""
        self.store.execute("INSERT OR REPLACE INTO meta(key, value) VALUES (?, ?)", (key, json.dumps(value)))

    def drop_fact(self, key: str) -> int:
        """Forget what was kept under a key; return how many facts that were, 0 or 1."""
        return self.store.execute("DELETE FROM meta WHERE key = ?", (key,))

    def name_files(self, paths: Iterable[str]) -> None:
        """Keep that a program of this user named these files, of a tree that was built from none."""
        self.store.execute_many(
            "INSERT OR IGNORE INTO meta(key, value) VALUES (?, 'true')",
            ((NAMED_FILE + path,) for path in dict.fromkeys(paths)),
        )

    def mark_imported(self, node_id: str) -> None:
        """Keep that a node was made by somebody else."""
        self.set_fact(IMPORTED_NODE + node_id, True)

    def forget_imported(self, ids: Iterable[str]) -> None:
        """Forget that nodes were made by somebody else: this user made others of these ids."""
        if self.has_imported():
            self.store.execute_many(
                "DELETE FROM meta WHERE key = ?", ((IMPORTED_NODE + node_id,) for node_id in ids)
            )

    def has_imported(self) -> bool:
        """Whether this layer may have any node that somebody else made."""
        return self.store.accepted or bool(self.fact_keys(IMPORTED_NODE, most=1))

    def is_imported(self, node_id: str) -> bool:
        """Whether this layer has a node that somebody else made."""
        return self.has(node_id) and (self.store.accepted or self.has_fact(IMPORTED_NODE + node_id))

    # reading nodes

    def node(self, node_id: str) -> Node | None:
        """Return a node with the content that the layer keeps, None when it has no such row."""
        row = self.store.row(
            f"SELECT {_COLUMNS}, (SELECT text FROM content WHERE content.id = node.id) FROM node WHERE id = ?",
            (node_id,),
        )
        return None if row is None else _node(row, row[14])

    def nodes(self, ids: Iterable[str]) -> dict[str, tuple[Node, str | None]]:
        """Return the nodes of these rows, with the content that the layer keeps, each with its parent."""
        rows = self.store.rows(
            f"SELECT {_COLUMNS}, (SELECT text FROM content WHERE content.id = node.id), parent FROM node"
            " WHERE id IN (SELECT value FROM json_each(?))",
            (json.dumps(list(ids)),),
        )
        # Parsed together: the attributes of a node are short, and a call for each costs more than what is in it.
        attributes = json.loads(f"[{','.join(row[10] or '{}' for row in rows)}]")
        return {
            row[0]: (_node(row, row[14], values), row[15])
            for row, values in zip(rows, attributes, strict=True)
        }

    def has(self, node_id: str) -> bool:
        """Whether there is a row with this id, in the tree or detached."""
        return self.store.row("SELECT 1 FROM node WHERE id = ?", (node_id,)) is not None

    def which(self, ids: Iterable[str]) -> set[str]:
        """Return those of the ids that have a row."""
        sql = "SELECT id FROM node WHERE id IN (SELECT value FROM json_each(?))"
        return {row[0] for row in self.store.rows(sql, (json.dumps(list(ids)),))}

    def ids(self, kinds: Iterable[str]) -> list[str]:
        """Return the ids of all rows of these kinds, detached ones too."""
        sql = "SELECT id FROM node WHERE kind IN (SELECT value FROM json_each(?))"
        return [row[0] for row in self.store.rows(sql, (json.dumps(list(kinds)),))]

    def place(self, node_id: str) -> tuple[str | None, int] | None:
        """Return parent and position of a row; the parent is None for the root and for what is detached."""
        row = self.store.row("SELECT parent, position FROM node WHERE id = ?", (node_id,))
        return None if row is None else (row[0], row[1])

    def parents(self, ids: Iterable[str]) -> dict[str, str | None]:
        """Return the parents of those of the ids that have a row."""
        sql = "SELECT id, parent FROM node WHERE id IN (SELECT value FROM json_each(?))"
        return dict(self.store.rows(sql, (json.dumps(list(ids)),)))

    def chain(self, node_id: str) -> list[str]:
        """Return the ids from a node up to the last one that this layer has; empty when it has no such row."""
        # UNION, not UNION ALL: a loop in a damaged file ends.
        rows = self.store.rows(
            "WITH RECURSIVE up(id, parent) AS (SELECT id, parent FROM node WHERE id = ? UNION"
            " SELECT node.id, node.parent FROM up JOIN node ON node.id = up.parent) SELECT id FROM up",
            (node_id,),
        )
        return [row[0] for row in rows]

    def children(self, parent: str) -> list[Placed]:
        """Return the nodes whose parent this is, with their positions, in order, without kept content."""
        rows = self.store.rows(
            f"SELECT {_COLUMNS} FROM node WHERE parent = ? ORDER BY position, id", (parent,)
        )
        return [(row[13], _node(row, None)) for row in rows]

    def subtree(self, node_id: str) -> dict[str, tuple[str | None, int, Node]]:
        """Return a row and all below it, without kept content: id -> (parent, position, node)."""
        columns = ", ".join(f"node.{name.strip()}" for name in _COLUMNS.split(","))
        rows = self.store.rows(
            "WITH RECURSIVE down(id) AS (SELECT ? UNION SELECT node.id FROM down JOIN node ON node.parent = down.id)"
            f" SELECT {columns}, node.parent FROM down JOIN node ON node.id = down.id",
            (node_id,),
        )
        return {row[0]: (row[14], row[13], _node(row, None)) for row in rows}

    def child_places(self, parent: str, *, start: int = 0, count: int | None = None) -> list[tuple[int, str]]:
        """Return positions and ids of the nodes whose parent this is, in order; `count` of them from `start` on."""
        rows = self.store.rows(
            "SELECT position, id FROM node WHERE parent = ? ORDER BY position, id LIMIT ? OFFSET ?",
            (parent, -1 if count is None else count, start),
        )
        return [(row[0], row[1]) for row in rows]

    def child_number(self, parent: str, node_id: str) -> int:
        """Return how many of the nodes with this parent come before one of them."""
        before = "(position, id) < (SELECT position, id FROM node WHERE id = ?)"
        sql = f"SELECT count(*) FROM node WHERE parent = ? AND {before}"
        return int(self.store.value(sql, (parent, node_id)))

    def child_count(self, parent: str) -> int:
        """Return how many rows have this parent."""
        return int(self.store.value("SELECT count(*) FROM node WHERE parent = ?", (parent,)))

    def child_total(self, parents: Sequence[str]) -> int:
        """Return how many rows have one of these parents."""
        sql = "SELECT count(*) FROM node WHERE parent IN (SELECT value FROM json_each(?))"
        return int(self.store.value(sql, (json.dumps(parents),)))

    def child_counts(self, parents: Sequence[str]) -> dict[str, int]:
        """Return how many rows have each of these parents, of those that any has."""
        sql = "SELECT parent, count(*) FROM node WHERE parent IN (SELECT value FROM json_each(?)) GROUP BY parent"
        return {row[0]: int(row[1]) for row in self.store.rows(sql, (json.dumps(parents),))}

    def count(self) -> int:
        """Return the number of rows, detached ones included."""
        return int(self.store.value("SELECT count(*) FROM node"))

    def kind(self, node_id: str) -> str:
        """Return the kind of a row, empty when there is no such row."""
        return str(self.store.value("SELECT kind FROM node WHERE id = ?", (node_id,)) or "")

    def has_detached(self) -> bool:
        """Whether a row hangs nowhere."""
        return (
            self.store.row("SELECT 1 FROM node WHERE parent IS NULL AND id <> ? LIMIT 1", (ROOT,)) is not None
        )

    # writing nodes

    def insert(self, rows: Iterable[tuple[int, Node, str | None, int]]) -> None:
        """Add rows of (seq, node, parent, position); their ids must be free."""
        contents: list[tuple[str, str]] = []

        def values() -> Iterator[tuple[Any, ...]]:
            for seq, node, parent, position in rows:
                if node.content is not None:
                    contents.append((node.id, node.content))
                yield (seq, node.id, parent, position, *_values(node))

        self.store.execute_many(
            "INSERT INTO node(seq, id, parent, position, kind, title, description, source_type, source_path,"
            " start_line, end_line, parts, provenance, attributes, digest, kept)"
            " VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
            values(),
        )
        if contents:
            self.store.execute_many("INSERT OR REPLACE INTO content(id, text) VALUES (?, ?)", contents)

    def rewrite(self, seq: int | None, node: Node) -> None:
        """Replace what a row says; with `seq` None it is no change that an index must see."""
        self.store.execute(
            "UPDATE node SET seq = ifnull(?, seq), kind = ?, title = ?, description = ?, source_type = ?,"
            " source_path = ?, start_line = ?, end_line = ?, parts = ?, provenance = ?, attributes = ?, digest = ?,"
            " kept = ? WHERE id = ?",
            (seq, *_values(node), node.id),
        )
        if node.content is not None:
            self.store.execute(
                "INSERT OR REPLACE INTO content(id, text) VALUES (?, ?)", (node.id, node.content)
            )
        elif not node.content_kept:
            self.store.execute("DELETE FROM content WHERE id = ?", (node.id,))

    def put(self, node_id: str, seq: int, parent: str | None, position: int, home: str | None = None) -> None:
        """Give a row another place, None to detach it; `home` is the parent that it misses."""
        self.store.execute(
            "UPDATE node SET seq = ?, parent = ?, position = ?, home = ? WHERE id = ?",
            (seq, parent, position, home, node_id),
        )

    def reposition(self, places: Iterable[tuple[int, str]]) -> None:
        """Give rows other positions under the parents that they have; no change that an index must see."""
        self.store.execute_many("UPDATE node SET position = ? WHERE id = ?", places)

    def erase(self, seq: int, ids: Sequence[str]) -> None:
        """Remove rows for good, with their content and links, and remember that they are gone.

        The mark stays when an id comes back, or the highest number could be given out twice.
        """
        self.store.execute_many("DELETE FROM node WHERE id = ?", ((node_id,) for node_id in ids))
        self.store.execute_many("DELETE FROM content WHERE id = ?", ((node_id,) for node_id in ids))
        self.store.execute_many("DELETE FROM link WHERE source = ?", ((node_id,) for node_id in ids))
        self.store.execute_many(
            "INSERT OR REPLACE INTO gone(seq, id) VALUES (?, ?)",
            ((number, node_id) for number, node_id in enumerate(ids, start=seq)),
        )


def _begins(prefix: str) -> tuple[str, str]:
    """Return the first text that begins so, and the first after all that do."""
    return prefix, prefix[:-1] + chr(ord(prefix[-1]) + 1)


def _values(node: Node) -> tuple[Any, ...]:
    source = node.source
    return (
        node.kind,
        node.title,
        node.description,
        *(
            (source.type, source.path, source.start_line, source.end_line)
            if source
            else (None, None, None, None)
        ),
        json.dumps(source.parts) if source and source.parts else None,
        json.dumps(dict(node.provenance)) if node.provenance else None,
        json.dumps(dict(node.attributes)) if node.attributes else None,
        node.digest,
        int(node.content is not None or node.content_kept),
    )


def _node(row: Sequence[Any], content: str | None, attributes: dict[str, Any] | None = None) -> Node:
    source = None
    if row[4] is not None:
        parts = tuple((first, last) for first, last in json.loads(row[8])) if row[8] else ()
        source = Source(type=row[4], path=row[5], start_line=row[6], end_line=row[7], parts=parts)
    return Node(
        row[0],
        row[2],
        row[3],
        content,
        row[1],
        source,
        json.loads(row[9]) if row[9] else {},
        (json.loads(row[10]) if row[10] else {}) if attributes is None else attributes,
        row[11],
        bool(row[12]),
    )
