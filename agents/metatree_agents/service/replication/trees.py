"""The tree that a service keeps for its engines: versions of the built layer, and changes of the memory layer."""

from __future__ import annotations

import json
import secrets
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from metatree._util.process import is_dead
from metatree.notes.replication import RowChange
from metatree_agents.service.database.database import ServiceDatabase, Transaction, rows_with

LEASE_S: Final = 30.0
"""How long a server that publishes is waited for before another one may."""
KEPT: Final = 2
"""Versions whose files are kept: the current one, and the one before, which a download in progress needs."""
PAGE_BYTES: Final = 4_000_000
PART: Final = 1 << 21
"""Bytes of a part of a file, before it is packed; the last part may be shorter."""
_PAGE: Final = 500


@dataclass(frozen=True, slots=True)
class Current:
    """What there is to copy."""

    name: str
    """Tells this service's tree from that of any other."""
    digest: str
    """Of its file."""
    version: int
    """0 when nothing was published."""
    memory: int
    """The number of the latest change of the memory layer."""
    size: int
    nodes: int = 0
    at: float = 0.0
    mark: str = ""
    """What it was published with, to tell whether there is something newer."""


@dataclass(frozen=True, slots=True)
class FilePart:
    """A part of a file, packed by zlib."""

    digest: str
    """Of the whole file."""
    number: int
    data: bytes


class Trees:
    """Reads and writes the tree of a service."""

    def __init__(self, database: ServiceDatabase) -> None:
        self._database = database

    async def current(self) -> Current:
        """Return what there is to copy."""
        row = await self._database.row(
            "SELECT name, coalesce(digest, ''), tree_state.version, memory, coalesce(size, 0), coalesce(nodes, 0),"
            " coalesce(at, 0), coalesce(mark, '') FROM tree_state"
            " LEFT JOIN tree_version ON tree_version.version = tree_state.version WHERE one = 1"
        )
        if row is not None:
            return Current(*row)
        async with self._database.transaction() as do:
            await self._begin(do)
        return await self.current()

    async def _begin(self, do: Transaction) -> None:
        await do.execute(
            "INSERT INTO tree_state(one, name, version, memory, publisher_until, token) VALUES (1, ?, 0, 0, 0, 0)"
            " ON CONFLICT(one) DO NOTHING",
            secrets.token_hex(8),
        )

    # the built layer

    async def lead(self, publisher: str, *, lease_s: float = LEASE_S) -> int | None:
        """Become the one that publishes, or stay it; return the token that proves it, None while another is."""
        now = self._database.clock()
        async with self._database.transaction() as do:
            await self._begin(do)
            known = await do.row("SELECT publisher FROM tree_state WHERE one = 1")
            before = known[0] if known and known[0] else publisher
            # One of this machine that was killed is not waited for.
            left = before if is_dead(before, shared=bool(self._database.skip_locked)) else publisher
            rows = await do.rows(
                "UPDATE tree_state SET token = CASE WHEN publisher = ? THEN token ELSE token + 1 END, publisher = ?,"
                " publisher_until = ? WHERE one = 1"
                " AND (publisher IS NULL OR publisher IN (?, ?) OR publisher_until <= ?) RETURNING token",
                *(publisher, publisher, now + lease_s, publisher, left, now),
            )
        return int(rows[0][0]) if rows else None

    async def missing_files(self, digests: Collection[str]) -> set[str]:
        """Return those of the digests that no file is kept for."""
        sql = "SELECT digest FROM tree_file WHERE part = 0 AND digest IN"
        return set(digests) - {row[0] for row in await rows_with(self._database, sql, digests)}

    async def add_parts(self, parts: Iterable[FilePart]) -> None:
        """Keep parts of files; those of one file come last part first: a file whose part 0 is there is there."""
        async with self._database.transaction() as do:
            for part in parts:
                await do.execute(
                    "INSERT INTO tree_file(digest, part, data) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
                    *(part.digest, part.number, part.data),
                )

    async def publish(
        self, token: int, *, digest: str, size: int, nodes: int, files: Iterable[str], mark: str
    ) -> int | None:
        """Make a version the current one; return its number, None when another server publishes by now.

        Args:
            digest: of its file, which was added before, as were the `files` that its nodes were built from.
        """
        async with self._database.transaction() as do:
            rows = await do.rows(
                "UPDATE tree_state SET version = version + 1, publisher_until = ? WHERE one = 1 AND token = ?"
                " RETURNING version",
                *(self._database.clock() + LEASE_S, token),
            )
            if not rows:
                return None
            version = int(rows[0][0])
            await do.execute(
                "INSERT INTO tree_version(version, size, nodes, at, mark, digest, files)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                *(
                    version,
                    size,
                    nodes,
                    self._database.clock(),
                    mark,
                    digest,
                    json.dumps(sorted({digest, *files})),
                ),
            )
            await do.execute("DELETE FROM tree_version WHERE version <= ?", version - KEPT)
        return version

    async def sweep(self, token: int) -> int:
        """Delete files that no version needs, if this server still publishes; return how many."""
        async with self._database.transaction() as do:
            # Whoever publishes next waits for this row, so nothing of theirs is here yet.
            if not await do.rows(
                "UPDATE tree_state SET token = token WHERE one = 1 AND token = ? RETURNING token", token
            ):
                return 0
            old = {row[0] for row in await do.rows("SELECT DISTINCT digest FROM tree_file")}
            for (needed,) in await do.rows("SELECT files FROM tree_version"):
                old.difference_update(json.loads(needed))
            await rows_with(do, "DELETE FROM tree_file WHERE digest IN", old, end=" RETURNING part")
        return len(old)

    async def file_part(self, digest: str, part: int) -> tuple[bytes, bool] | None:
        """Return a part of a file, packed, and whether there are more; None when it is not kept."""
        row = await self._database.row(
            "SELECT data, EXISTS (SELECT 1 FROM tree_file WHERE digest = ? AND part = ?) FROM tree_file"
            " WHERE digest = ? AND part = ?",
            *(digest, part + 1, digest, part),
        )
        return None if row is None else (bytes(row[0]), bool(row[1]))

    # the memory layer

    async def give(self, changes: Sequence[RowChange], *, engine: str) -> int:
        """Keep changes of the memory layer, in order; return the number of the latest change.

        What is kept already is no change.
        """
        async with self._database.transaction() as do:
            await self._begin(do)
            # Locks the row, so that numbers are given out in the order of the commits: nobody who reads misses one.
            rows = await do.rows("UPDATE tree_state SET memory = memory WHERE one = 1 RETURNING memory")
            number = int(rows[0][0])
            for change in changes:
                key = (change.what, change.id)
                stored = await do.row("SELECT body FROM tree_memory WHERE what = ? AND id = ?", *key)
                if stored is not None and stored[0] == change.body:
                    continue
                number += 1
                await do.execute(
                    "INSERT INTO tree_memory(what, id, number, body, engine, at) VALUES (?, ?, ?, ?, ?, ?)"
                    " ON CONFLICT(what, id) DO UPDATE SET number = excluded.number, body = excluded.body,"
                    " engine = excluded.engine, at = excluded.at",
                    *(*key, number, change.body, engine, self._database.clock()),
                )
            await do.execute("UPDATE tree_state SET memory = ? WHERE one = 1", number)
        return number

    async def memory(self, after: int) -> tuple[list[tuple[RowChange, int]], int]:
        """Return changes after a number, in order, up to some megabytes, and the number of the latest one there is."""
        async with self._database.transaction() as do:
            latest = await do.row("SELECT memory FROM tree_state WHERE one = 1")
            rows = await do.rows(
                "SELECT what, id, body, number FROM tree_memory WHERE number > ? ORDER BY number LIMIT ?",
                *(after, _PAGE),
            )
        changes: list[tuple[RowChange, int]] = []
        size = 0
        for what, row_id, body, number in rows:
            size += len(body or "")
            if changes and size > PAGE_BYTES:
                break
            changes.append((RowChange(what, row_id, body), int(number)))
        return changes, int(latest[0]) if latest else 0
