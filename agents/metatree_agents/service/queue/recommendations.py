"""Recommendations: what people say of answers, kept so that it can become memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, get_args

from metatree_agents.service.database.database import ServiceDatabase

RecommendationType = Literal[
    "Suggest Improvement",
    "Promote Answer",
    "Make Correction",
    "Add Missing Info",
    "Clarify Phrasing",
    "Flag as Off Topic",
]
TYPES: Final[tuple[str, ...]] = get_args(RecommendationType)
NEGATIVE: Final = frozenset({"Flag as Off Topic"})
"""Says that a text should be found less, not more."""
CORRECTION: Final = "Make Correction"
"""Says what is right, and that what was said instead should be found less."""


@dataclass(frozen=True, slots=True)
class Recommendation:
    """What a person said of a text."""

    number: int
    topic: str
    on_behalf_of: str
    query: str
    fragment: str
    comment: str
    type: str
    at: float


class Recommendations:
    """What was recommended, in the order of its coming."""

    def __init__(self, database: ServiceDatabase) -> None:
        self._database = database

    async def add(
        self, *, topic: str, on_behalf_of: str, query: str, fragment: str, comment: str, kind: str
    ) -> float:
        """Keep a recommendation and return the time."""
        now = self._database.clock()
        async with self._database.transaction() as do:
            await do.alone("recommendations")  # engines ask for what came after a number
            await do.execute(
                "INSERT INTO recommendation(topic, on_behalf_of, query, fragment, comment, type, at)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                *(topic, on_behalf_of, query, fragment, comment, kind, now),
            )
        return now

    async def after(self, number: int, *, limit: int = 100) -> tuple[str, list[Recommendation]]:
        """Return what the database is called, and recommendations that came after one, oldest first.

        Both are of one moment: a restore, which gives another name, also changes what the numbers mean.
        """
        rows = await self._database.rows(
            "SELECT name.id, r.number, topic, on_behalf_of, query, fragment, comment, type, at"
            " FROM (SELECT id FROM service_identity ORDER BY number DESC LIMIT 1) AS name"
            " LEFT JOIN recommendation AS r ON r.number > ? ORDER BY r.number LIMIT ?",
            *(number, limit),
        )
        return rows[0][0], [Recommendation(*row[1:]) for row in rows if row[1] is not None]
