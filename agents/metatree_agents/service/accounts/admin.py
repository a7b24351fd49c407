"""What an administrator sees and does: what is queued, who holds what since when, what failed, who was here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from metatree_agents.service.accounts.tree_rights import HEARD_S, UNNAMED
from metatree_agents.service.accounts.users import SEEN_S
from metatree_agents.service.database.database import ServiceDatabase, Statements
from metatree_agents.service.http.bodies import stamp
from metatree_agents.service.queue.queue import Queue
from metatree_agents.service.queue.statuses import LISTED, SHOWN
from metatree_agents.service.queue.turns import OPENED, join, open_again

MOST: Final = 1_000
ENGINE_S: Final = 24 * 3600.0
"""For how long it is kept which trees an engine had."""
_UNSETTLED: Final = ("Open", "Pending", "Waiting", "Failed")


@dataclass(frozen=True, slots=True)
class Figures:
    """How full the queue is.

    Args:
        queries: how many are `Open`, `Pending`, `Waiting` for a person, and `Failed`.
        oldest_open_s: for how long the oldest open query has waited; 0 without one.
        leases: how many topics engines have.
        oldest_lease_s: for how long an engine has had the one that it was given first; 0 without one.
    """

    queries: dict[str, int]
    oldest_open_s: float
    leases: int
    oldest_lease_s: float


class Administration:
    """The administrator's view of one service."""

    def __init__(self, database: ServiceDatabase, queue: Queue) -> None:
        self._database = database
        self._queue = queue
        self._noted: dict[tuple[str, int], float] = {}
        """When it was last noted which trees an engine waits for."""
        self._routers: dict[str, tuple[float, str]] = {}
        """Since when the router of an engine fails, and its last error: as this server was told, kept nowhere else."""

    async def note_engine(self, name: str, trees: int) -> None:
        """Note which named trees an engine has, once a minute at most."""
        now = self._database.clock()
        if trees == UNNAMED or abs(now - self._noted.get((name, trees), 0.0)) < SEEN_S:
            return
        self._noted[name, trees] = now
        await self._database.execute(
            "INSERT INTO service_engine(name, trees, at) VALUES (?, ?, ?)"
            " ON CONFLICT(name, trees) DO UPDATE SET at = excluded.at",
            *(name, trees, now),
        )
        await self._database.execute("DELETE FROM service_engine WHERE at < ?", now - ENGINE_S)

    def forget_engine(self, name: str) -> None:
        """Note which trees an engine has as soon as it is there again; nothing is known of its router then."""
        self._routers.pop(name, None)
        self._noted = {each: at for each, at in self._noted.items() if each[0] != name}

    def note_router(self, name: str, error: str) -> None:
        """Note the last error of the router of an engine; empty for one that works."""
        since, _ = self._routers.pop(name, (self._database.clock(), ""))
        if error:
            self._routers[name] = since, error

    async def routers_failing(self) -> list[tuple[str, str, str]]:
        """Return (engine, since when, last error) of connected engines whose router fails."""
        known = {**self._routers}
        there = [each["Name"] for each in await self.engines() if each["Connected"]] if known else []
        return [(name, stamp(known[name][0]), known[name][1]) for name in there if name in known]

    async def engine_trees(self) -> dict[str, list[int]]:
        """Return which sets of named trees each engine has, by when they were last waited for."""
        rows = await self._database.rows("SELECT name, trees FROM service_engine ORDER BY at DESC, trees")
        sets: dict[str, list[int]] = {}
        for name, trees in rows:
            sets.setdefault(name, []).append(int(trees))
        return sets

    async def figures(self) -> Figures:
        """Return how full the queue is."""
        return await _figures(self._database, self._database.clock())

    async def overview(self) -> dict[str, Any]:
        """Return all that an administrator wants to see at a glance, as the wire has it.

        `Queries` are those not answered, oldest first, at most 1,000; `Leases` are topics that engines have.
        """
        now = self._database.clock()
        async with self._database.snapshot() as do:
            figures = await _figures(do, now)
            queries = await _queries(do, "", now, 0, MOST)
            leases = await _leases(do, now, MOST)
            users = await _users(do, 0, None)
        return {
            "At": stamp(now),
            "Open": figures.queries["Open"],
            "Pending": figures.queries["Pending"],
            "Waiting": figures.queries["Waiting"],
            "Failed": figures.queries["Failed"],
            "OldestOpenSeconds": round(figures.oldest_open_s, 1),
            "Queries": queries,
            "Leases": leases,
            "Users": users,
        }

    async def queries(self, *, failed: bool, start: int, limit: int) -> list[dict[str, Any]]:
        """Return queries that failed, or those that are not answered yet, oldest first, as the wire has them."""
        among = f" AND query.status {'=' if failed else '<>'} 'Failed'"
        return await _queries(self._database, among, self._database.clock(), start, limit)

    async def leases(self, *, limit: int) -> list[dict[str, Any]]:
        """Return the topics that engines have, those that were claimed first before others, as the wire has them."""
        return await _leases(self._database, self._database.clock(), limit)

    async def users(self, *, start: int, limit: int) -> list[dict[str, Any]]:
        """Return users by their names, as the wire has them."""
        return await _users(self._database, start, limit)

    async def engines(self) -> list[dict[str, Any]]:
        """Return the engines: how many topics each has, when it was last heard of, and whether it is connected."""
        now = self._database.clock()
        rows = await self._database.rows(
            "SELECT service_user.name, service_use.at, service_use.left_at, (SELECT count(*) FROM topic"
            " WHERE topic.engine = service_user.name AND lease_until > ?) FROM service_user"
            " LEFT JOIN service_use ON service_use.name = service_user.name WHERE role = 'engine'"
            " ORDER BY service_user.name",
            now,
        )
        return [
            {
                "Name": name,
                "Topics": int(topics),
                "LastSeen": None if seen is None else stamp(seen),
                "Connected": bool(topics) or (seen is not None and left is None and seen > now - HEARD_S),
            }
            for name, seen, left, topics in rows
        ]

    async def has_engines(self, *, waiting: int, trees: int = UNNAMED) -> bool:
        """Say whether any engine is connected: one waits here, has a topic, or was heard of by another server just now.

        Args:
            waiting: how many wait for queries at this server.
            trees: the set of those that it must have; of the tree without a name, engines of any tree count.
        """
        if waiting:
            return True
        now = self._database.clock()
        if trees != UNNAMED:
            found = await self._database.row(
                "SELECT 1 FROM service_engine AS its WHERE (? & ~its.trees) = 0 AND (its.at > ? OR EXISTS"
                " (SELECT 1 FROM topic WHERE topic.engine = its.name AND lease_until > ?)) LIMIT 1",
                *(trees, now - HEARD_S, now),
            )
            return found is not None
        row = await self._database.row(
            "SELECT 1 WHERE EXISTS (SELECT 1 FROM topic WHERE engine IS NOT NULL AND lease_until > ?)"
            " OR EXISTS (SELECT 1 FROM service_use JOIN service_user ON service_user.name = service_use.name"
            " WHERE service_user.role = 'engine' AND service_use.left_at IS NULL AND service_use.at > ?)",
            *(now, now - HEARD_S),
        )
        return row is not None

    async def requeue(self, topic: str, seq: int | None = None) -> int:
        """Open failed queries of a topic again, with all their attempts before them.

        Args:
            seq: the one; None for all failed ones of the topic.

        Returns:
            How many there were.
        """
        which, values = ("", ()) if seq is None else (" AND seq = ?", (seq,))
        async with self._database.transaction() as do:
            # The topic's row is taken first, as everywhere.
            if not await do.execute("UPDATE topic SET last_seq = last_seq WHERE id = ?", topic):
                return 0
            count = await do.execute(
                "UPDATE query SET status = 'Open', attempts = 0 WHERE topic = ? AND status = 'Failed'"
                + which,
                *(topic, *values),
            )
            if count:
                await do.execute(f"UPDATE topic SET {OPENED} WHERE id = ? AND ready_at IS NULL", topic)
                await join(do, topic)
        return count

    async def release(self, topic: str) -> bool:
        """Take a topic from the engine that has it, for others to claim; False when none has it.

        The attempt counts. Should that engine answer after all, its answer is taken while there is no other.
        """
        async with self._database.transaction() as do:
            if not await do.execute(
                "UPDATE topic SET engine = engine WHERE id = ? AND engine IS NOT NULL", topic
            ):
                return False
            await self._queue.give_up(do, topic)
            await open_again(do, topic)
        return True


async def _figures(do: Statements, now: float) -> Figures:
    rows = await do.rows(
        f"SELECT {SHOWN}, count(*), min(query.at) FROM query JOIN topic ON topic.id = query.topic"
        f" WHERE {LISTED} GROUP BY 1",
        now,
    )
    sql = "SELECT count(*), min(claimed_at) FROM topic WHERE engine IS NOT NULL AND lease_until > ?"
    leases, claimed_at = await do.row(sql, now) or (0, None)
    counts = {str(status): int(count) for status, count, _ in rows}
    oldest = next((float(at) for status, _, at in rows if status == "Open"), now)
    return Figures(
        {status: counts.get(status, 0) for status in _UNSETTLED},
        max(0.0, now - oldest),
        int(leases),
        0.0 if claimed_at is None else max(0.0, now - float(claimed_at)),
    )


async def _queries(do: Statements, among: str, now: float, start: int, limit: int) -> list[dict[str, Any]]:
    rows = await do.rows(
        f"SELECT query.topic, query.seq, query.text, {SHOWN}, query.attempts, query.at, query.engine,"
        " topic.owner FROM query JOIN topic ON topic.id = query.topic"
        f" WHERE {LISTED}{among} ORDER BY query.at, query.topic, query.seq LIMIT ? OFFSET ?",
        *(now, limit, start),
    )
    return [
        {
            "Topic": topic,
            "Seq": int(seq),
            "Query": text,
            "Owner": owner,
            "Status": status,
            "Attempts": int(attempts),
            "Asked": stamp(at),
            "Engine": engine,
        }
        for topic, seq, text, status, attempts, at, engine, owner in rows
    ]


async def _leases(do: Statements, now: float, limit: int) -> list[dict[str, Any]]:
    rows = await do.rows(
        "SELECT id, engine, claimed_at, lease_until FROM topic WHERE engine IS NOT NULL"
        " ORDER BY claimed_at, id LIMIT ?",
        limit,
    )
    return [
        {
            "Topic": topic,
            "Engine": engine,
            "Since": None if since is None else stamp(since),
            "Until": stamp(until),
            "Ended": until <= now,
        }
        for topic, engine, since, until in rows
    ]


async def _users(do: Statements, start: int, limit: int | None) -> list[dict[str, Any]]:
    page = "" if limit is None else " LIMIT ? OFFSET ?"
    rows = await do.rows(
        "SELECT service_user.name, service_user.role, service_user.made_at, service_use.at,"
        " (SELECT count(*) FROM service_key WHERE service_key.name = service_user.name)"
        " FROM service_user LEFT JOIN service_use ON service_use.name = service_user.name"
        f" ORDER BY service_user.name{page}",
        *(() if limit is None else (limit, start)),
    )
    return [
        {
            "Name": name,
            "Role": role,
            "Added": stamp(made_at),
            "LastSeen": None if seen is None else stamp(seen),
            "Keys": int(keys),
        }
        for name, role, made_at, seen, keys in rows
    ]
