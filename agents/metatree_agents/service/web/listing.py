"""Topics as the web page lists them: the first question of each, how many there are, and how the last one stands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from metatree_agents.service.database import Database

TOPICS: Final = 30


@dataclass(frozen=True, slots=True)
class Listed:
    """One topic of a list."""

    id: str
    question: str
    count: int
    status: str
    """That of its last question."""
    at: float
    """When its last question was asked."""


async def topics_of(database: Database, owner: str, *, start: int = 0) -> tuple[list[Listed], bool]:
    """Return some topics of a user, the newest first, and whether there are more."""
    async with database.transaction() as do:
        rows = await do.rows(
            "SELECT topic.id, first.text, topic.last_seq, latest.status, latest.at FROM topic"
            " JOIN query AS first ON first.topic = topic.id AND first.seq = 1"
            " JOIN query AS latest ON latest.topic = topic.id AND latest.seq = topic.last_seq"
            " WHERE topic.owner = ? ORDER BY topic.made_at DESC, topic.id LIMIT ? OFFSET ?",
            *(owner, TOPICS + 1, max(0, start)),
        )
    return [Listed(row[0], row[1], int(row[2]), row[3], row[4]) for row in rows[:TOPICS]], len(rows) > TOPICS


async def people(database: Database) -> list[tuple[str, str, float, int]]:
    """Return (name, role, when added, how many topics) of each user."""
    async with database.transaction() as do:
        rows = await do.rows(
            "SELECT name, role, made_at, (SELECT count(*) FROM topic WHERE owner = name) FROM service_user"
            " ORDER BY name"
        )
    return [(row[0], row[1], row[2], int(row[3])) for row in rows]


async def counts(database: Database) -> dict[str, int]:
    """Return how many queries there are by status."""
    async with database.transaction() as do:
        rows = await do.rows("SELECT status, count(*) FROM query GROUP BY status")
    return {str(status): int(count) for status, count in rows}
