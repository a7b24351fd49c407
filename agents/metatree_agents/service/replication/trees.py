"""The tree that a service keeps for its engines: versions of the built layer, and changes of the memory layer."""

from __future__ import annotations

import secrets
import zlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final

from metatree._util.process import is_dead
from metatree.notes.replication.blocks import joined, parted
from metatree_agents.service.database.database import Database, Transaction, placeholders

LEASE_S: Final = 30.0
"""How long a server that publishes is waited for before another one may."""
KEPT: Final = 3
"""Versions whose blocks are kept, so that a copy under way finds them."""
PAGE_BYTES: Final = 4_000_000
_PAGE: Final = 500
_PART: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Current:
    """What there is to copy."""

    name: str
    """Tells this service's tree from that of any other."""
    version: int
    """0 when nothing was published."""
    memory: int
    """The number of the latest change of the memory layer."""
    size: int
    nodes: int
    at: float
    digest: str
    """Of the hashes of its blocks."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A change of the memory layer, as the service keeps it."""

    what: str
    id: str
    body: str | None
    number: int


class Trees:
    """Reads and writes the tree of a service."""

    def __init__(self, database: Database, *, clock: Callable[[], float] | None = None) -> None:
        self._database = database
        self._clock = clock or database.clock

    async def current(self) -> Current:
        """Return what there is to copy."""
        row = await self._database.row(
            "SELECT name, tree_state.version, memory, size, nodes, at, digest FROM tree_state"
            " LEFT JOIN tree_version ON tree_version.version = tree_state.version WHERE one = 1"
        )
        if row is None:
            async with self._database.transaction() as do:
                await self._begin(do)
            return await self.current()
        size, nodes, at = int(row[3] or 0), int(row[4] or 0), float(row[5] or 0)
        return Current(row[0], int(row[1]), int(row[2]), size, nodes, at, row[6] or "")

    async def _begin(self, do: Transaction) -> None:
        await do.execute(
            "INSERT INTO tree_state(one, name, version, memory, publisher_until, token) VALUES (1, ?, 0, 0, 0, 0)"
            " ON CONFLICT(one) DO NOTHING",
            secrets.token_hex(8),
        )

    # the built layer

    async def lead(self, publisher: str, *, lease_s: float = LEASE_S) -> int | None:
        """Become the one that publishes, or stay it; return the token that proves it, None while another is."""
        now = self._clock()
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

    async def mark(self) -> str:
        """Return what the latest version was published with, to tell whether there is something newer."""
        row = await self._database.row(
            "SELECT mark FROM tree_version WHERE version = (SELECT version FROM tree_state WHERE one = 1)"
        )
        return "" if row is None else str(row[0])

    async def missing_blocks(self, hashes: Collection[str]) -> set[str]:
        """Return those of the hashes that no block is kept for."""
        return set(hashes) - await self._known("SELECT hash FROM tree_block WHERE hash IN", hashes)

    async def missing_files(self, digests: Collection[str]) -> set[str]:
        """Return those of the digests that no file is kept for."""
        return set(digests) - await self._known(
            "SELECT digest FROM tree_file WHERE part = 0 AND digest IN", digests
        )

    async def _known(self, sql: str, keys: Collection[str]) -> set[str]:
        found: set[str] = set()
        listed = sorted(keys)
        for at in range(0, len(listed), _PAGE):
            page = listed[at : at + _PAGE]
            found.update(row[0] for row in await self._database.rows(f"{sql} ({placeholders(page)})", *page))
        return found

    async def add_blocks(self, packed: Mapping[str, bytes]) -> None:
        """Keep blocks: hash -> zlib."""
        async with self._database.transaction() as do:
            for digest, data in packed.items():
                await do.execute(
                    "INSERT INTO tree_block(hash, data) VALUES (?, ?) ON CONFLICT(hash) DO NOTHING",
                    digest,
                    data,
                )

    async def add_file(self, digest: str, data: bytes) -> None:
        """Keep a file, in parts, the last one first: a file whose part 0 is there is there."""
        parts = range(0, max(1, len(data)), _PART)
        for number in reversed(range(len(parts))):
            piece = zlib.compress(data[parts[number] : parts[number] + _PART], 6)
            async with self._database.transaction() as do:
                await do.execute(
                    "INSERT INTO tree_file(digest, part, data) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
                    *(digest, number, piece),
                )

    async def publish(
        self,
        token: int,
        *,
        hashes: Sequence[bytes],
        size: int,
        nodes: int,
        files: Iterable[str],
        mark: str,
    ) -> int | None:
        """Make a version the current one; return its number, None when another server publishes by now.

        Its blocks were added before.
        """
        async with self._database.transaction() as do:
            rows = await do.rows(
                "UPDATE tree_state SET version = version + 1, publisher_until = ? WHERE one = 1 AND token = ?"
                " RETURNING version",
                *(self._clock() + LEASE_S, token),
            )
            if not rows:
                return None
            version = int(rows[0][0])
            blocks = joined(hashes)
            listed = joined(bytes.fromhex(digest) for digest in sorted(set(files)))
            await do.execute(
                "INSERT INTO tree_version(version, size, nodes, at, mark, digest, blocks, files)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                *(
                    version,
                    size,
                    nodes,
                    self._clock(),
                    mark,
                    blake2b(blocks, digest_size=16).hexdigest(),
                    blocks,
                    listed,
                ),
            )
            await do.execute("DELETE FROM tree_version WHERE version <= ?", version - KEPT)
        return version

    async def sweep(self, token: int) -> int:
        """Delete blocks and files that no version needs, if this server still publishes; return how many."""
        blocks: set[str] = set()
        files: set[str] = set()
        async with self._database.transaction() as do:
            # Whoever publishes next waits for this row, so nothing of theirs is here yet.
            if not await do.rows(
                "UPDATE tree_state SET token = token WHERE one = 1 AND token = ? RETURNING token", token
            ):
                return 0
            for listed, named in await do.rows("SELECT blocks, files FROM tree_version"):
                blocks.update(digest.hex() for digest in parted(bytes(listed)))
                files.update(digest.hex() for digest in parted(bytes(named)))
            old = {row[0] for row in await do.rows("SELECT hash FROM tree_block")} - blocks
            gone = {row[0] for row in await do.rows("SELECT digest FROM tree_file WHERE part = 0")} - files
            for keys, sql in (
                (sorted(old), "tree_block WHERE hash"),
                (sorted(gone), "tree_file WHERE digest"),
            ):
                for at in range(0, len(keys), _PAGE):
                    page = keys[at : at + _PAGE]
                    await do.execute(f"DELETE FROM {sql} IN ({placeholders(page)})", *page)
        return len(old) + len(gone)

    async def hashes(self, version: int) -> bytes | None:
        """Return the hashes of the blocks of a version, 16 bytes each; None when it is not kept."""
        row = await self._database.row("SELECT blocks FROM tree_version WHERE version = ?", version)
        return None if row is None else bytes(row[0])

    async def blocks(self, hashes: Sequence[str]) -> dict[str, bytes]:
        """Return those of the blocks that are kept, packed."""
        rows = await self._database.rows(
            f"SELECT hash, data FROM tree_block WHERE hash IN ({placeholders(hashes)})", *hashes
        )
        return {row[0]: bytes(row[1]) for row in rows}

    async def file_part(self, digest: str, part: int) -> tuple[bytes, bool] | None:
        """Return a part of a file, packed, and whether there are more; None when it is not kept."""
        rows = await self._database.rows(
            "SELECT part, data FROM tree_file WHERE digest = ? AND part IN (?, ?) ORDER BY part",
            *(digest, part, part + 1),
        )
        if not rows or int(rows[0][0]) != part:
            return None
        return bytes(rows[0][1]), len(rows) > 1

    # the memory layer

    async def give(self, changes: Sequence[tuple[str, str, str | None]], *, engine: str) -> int:
        """Keep changes of the memory layer, in order, as (what, id, body); return the number of the latest change.

        What is kept already is no change.
        """
        async with self._database.transaction() as do:
            await self._begin(do)
            # Locks the row, so that numbers are given out in the order of the commits: nobody who reads misses one.
            rows = await do.rows("UPDATE tree_state SET memory = memory WHERE one = 1 RETURNING memory")
            number = int(rows[0][0])
            for what, row_id, body in changes:
                there = await do.row("SELECT body FROM tree_memory WHERE what = ? AND id = ?", what, row_id)
                if there is not None and there[0] == body:
                    continue
                number += 1
                await do.execute(
                    "INSERT INTO tree_memory(what, id, number, body, engine, at) VALUES (?, ?, ?, ?, ?, ?)"
                    " ON CONFLICT(what, id) DO UPDATE SET number = excluded.number, body = excluded.body,"
                    " engine = excluded.engine, at = excluded.at",
                    *(what, row_id, number, body, engine, self._clock()),
                )
            await do.execute("UPDATE tree_state SET memory = ? WHERE one = 1", number)
        return number

    async def memory(self, after: int) -> tuple[list[Kept], int]:
        """Return changes after a number, in order, up to some megabytes, and the number of the latest one there is."""
        async with self._database.transaction() as do:
            latest = await do.row("SELECT memory FROM tree_state WHERE one = 1")
            rows = await do.rows(
                "SELECT what, id, body, number FROM tree_memory WHERE number > ? ORDER BY number LIMIT ?",
                *(after, _PAGE),
            )
        found: list[Kept] = []
        size = 0
        for what, row_id, body, number in rows:
            size += len(body or "")
            if found and size > PAGE_BYTES:
                break
            found.append(Kept(what, row_id, body, int(number)))
        return found, int(latest[0]) if latest else 0


def as_json(kept: Kept) -> dict[str, Any]:
    """Return a change as the wire has it."""
    return {"What": kept.what, "Id": kept.id, "Body": kept.body, "Number": kept.number}
