"""Lookups: the fragments of memory that are nearest to a text, asked for by a frontend and found by an engine."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from metatree_agents.service.accounts.tree_rights import UNNAMED, missing
from metatree_agents.service.database.database import ServiceDatabase, Transaction

LOOKUP_LEASE_S: Final = 60.0
_NEXT: Final = (
    "SELECT number, fragment, fingerprint, count, threshold, trees FROM lookup"
    " WHERE matches IS NULL AND (trees & ?) = 0 AND (out_until IS NULL OR out_until <= ?)"
    " AND fingerprint NOT IN (SELECT fingerprint FROM lookup WHERE matches IS NULL AND out_until > ?)"
    " ORDER BY number LIMIT 1"
)


def fingerprint(fragment: str) -> str:
    """Return what a fragment goes by on the wire: the first 12 hexadecimal digits of its SHA-1.

    Example:
        >>> fingerprint("Employees can accrue comp time...")
        '4892a5d812af'
    """
    return hashlib.sha1(fragment.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()[:12]


def _key(fragment: str, count: int, threshold: float, index: str, trees: int) -> str:
    # In trees without a name it is what it was before others had any.
    of = [] if trees == UNNAMED else [trees]
    content = json.dumps([fragment, count, threshold, index, *of])
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class Lookup:
    """A fragment to look up."""

    fragment: str
    fingerprint: str
    count: int
    threshold: float
    trees: int = UNNAMED
    """The set of those to look in."""


async def forget_wishes(do: Transaction, topic: str) -> None:
    """Take out what the queries of a topic wished for, as a part of a transaction; what others wish for, too, stays."""
    if await do.row("SELECT 1 FROM lookup_wish WHERE topic = ? LIMIT 1", topic) is None:
        return
    await do.alone("lookups")
    await do.execute(
        "DELETE FROM lookup WHERE number IN (SELECT lookup FROM lookup_wish WHERE topic = ?)"
        " AND NOT EXISTS (SELECT 1 FROM lookup_wish AS other WHERE other.lookup = lookup.number"
        " AND other.topic <> ?)",
        *(topic, topic),
    )
    await do.execute("DELETE FROM lookup_wish WHERE topic = ?", topic)


class Lookups:
    """Lookups that were wished for, are being made, and were made.

    Matches come back with the fingerprint alone, so one lookup of a fingerprint is out at a time.
    """

    def __init__(self, database: ServiceDatabase) -> None:
        self._database = database

    async def add(
        self, topic: str, seq: int, fragment: str, count: int, threshold: float
    ) -> tuple[str, float]:
        """Wish for a lookup; return its fingerprint and the time.

        The same wish twice is one lookup, until an engine says that its index has changed: then it is made again, and
        takes the place of the earlier one. A query that is taken out meanwhile wishes for nothing.
        """
        now, mark = self._database.clock(), fingerprint(fragment)
        async with self._database.transaction() as do:
            sql = "SELECT 1 FROM query WHERE topic = ? AND seq = ?" + self._database.for_update
            if await do.row(sql, topic, seq) is None:
                return mark, now
            row = await do.row("SELECT trees FROM topic WHERE id = ?", topic)
            trees = int(row[0]) if row else UNNAMED
            await do.alone("lookups")  # nobody takes it out between finding it and wishing for it
            versions = await do.rows("SELECT engine, version FROM service_index ORDER BY engine")
            index = json.dumps([list(row) for row in versions]) if versions else ""
            key = _key(fragment, count, threshold, index, trees)
            await do.execute(
                "DELETE FROM lookup_wish WHERE topic = ? AND seq = ? AND lookup IN (SELECT number FROM lookup"
                " WHERE fingerprint = ? AND fragment = ? AND count = ? AND threshold = ? AND key <> ?)",
                *(topic, seq, mark, fragment, count, threshold, key),
            )
            await do.execute(
                "INSERT INTO lookup(key, fingerprint, fragment, count, threshold, at, trees)"
                " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT(key) DO NOTHING",
                *(key, mark, fragment, count, threshold, now, trees),
            )
            await do.execute(
                "INSERT INTO lookup_wish(topic, seq, lookup)"
                " SELECT ?, ?, number FROM lookup WHERE key = ? ON CONFLICT DO NOTHING",
                *(topic, seq, key),
            )
        return mark, now

    async def claim(self, engine: str, *, index: str | None = None, trees: int = UNNAMED) -> Lookup | None:
        """Give an engine the oldest lookup that is not out, None when there is none.

        Args:
            index: the state of the index that the engine looks in, as it says; None when it does not.
            trees: the set of those that it has.
        """
        now, lacks = self._database.clock(), missing(trees)
        if index is not None:
            await self._note_index(engine, index)
        if (
            await self._database.row(_NEXT, lacks, now, now) is None
        ):  # what most calls find, without a transaction
            return None
        async with self._database.transaction() as do:
            await do.alone("lookups")
            row = await do.row(_NEXT + self._database.for_update, lacks, now, now)
            if row is None:
                return None
            await do.execute(
                "UPDATE lookup SET out_until = ?, engine = ? WHERE number = ?",
                *(now + LOOKUP_LEASE_S, engine, row[0]),
            )
        return Lookup(row[1], row[2], int(row[3]), float(row[4]), int(row[5]))

    async def _note_index(self, engine: str, index: str) -> None:
        known = await self._database.row("SELECT version FROM service_index WHERE engine = ?", engine)
        if known is None or known[0] != index:
            await self._database.execute(
                "INSERT INTO service_index(engine, version) VALUES (?, ?)"
                " ON CONFLICT(engine) DO UPDATE SET version = excluded.version",
                *(engine, index),
            )

    async def give(self, mark: str, matches: Sequence[str]) -> bool:
        """Take the matches of the lookup that is out, or was last out; False when none with this fingerprint waits."""
        async with self._database.transaction() as do:
            row = await do.row(
                "SELECT number FROM lookup WHERE fingerprint = ? AND matches IS NULL AND out_until IS NOT NULL"
                " ORDER BY out_until DESC LIMIT 1" + self._database.for_update,
                mark,
            )
            if row is None:
                known = await do.row(
                    "SELECT 1 FROM lookup WHERE fingerprint = ? AND matches = ?",
                    mark,
                    json.dumps(list(matches)),
                )
                return known is not None  # the same again
            await do.execute(
                "UPDATE lookup SET matches = ?, out_until = NULL WHERE number = ?",
                *(json.dumps(list(matches)), row[0]),
            )
        return True

    async def of_topic(self, topic: str) -> list[dict[str, Any]]:
        """Return the lookups of each query of a topic, as the wire has them; those not made yet have no matches."""
        async with self._database.transaction() as do:
            queries = await do.rows("SELECT seq, text FROM query WHERE topic = ? ORDER BY seq", topic)
            rows = await do.rows(
                "SELECT lookup_wish.seq, lookup.fragment, lookup.matches FROM lookup_wish"
                " JOIN lookup ON lookup.number = lookup_wish.lookup WHERE lookup_wish.topic = ? ORDER BY lookup.number",
                topic,
            )
        fragments: dict[int, list[dict[str, list[str]]]] = {}
        for seq, fragment, matches in rows:
            fragments.setdefault(int(seq), []).append({fragment: json.loads(matches) if matches else []})
        return [{"Query": text, "Fragments": fragments.get(int(seq), [])} for seq, text in queries]
