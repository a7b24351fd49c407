"""What happens while a query is answered, for those who watch: small steps in the order of their coming."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from metatree_agents.service.database.database import ServiceDatabase, Transaction


async def add_step(do: Transaction, topic: str, seq: int, step: Mapping[str, Any]) -> None:
    """Keep a step, as a part of a transaction."""
    sql = "INSERT INTO progress(topic, seq, data) VALUES (?, ?, ?)"
    await do.execute(sql, topic, seq, json.dumps(dict(step)))


class Progress:
    """The steps of every query."""

    def __init__(self, database: ServiceDatabase) -> None:
        self._database = database

    async def add(self, topic: str, seq: int, steps: Sequence[Mapping[str, Any]]) -> bool:
        """Keep some steps; False when there is no such query."""
        async with self._database.transaction() as do:
            # Taken by one at a time, so that steps of a query are seen in the order of their numbers.
            sql = "SELECT 1 FROM query WHERE topic = ? AND seq = ?" + self._database.for_update
            if await do.row(sql, topic, seq) is None:
                return False
            for step in steps:
                await add_step(do, topic, seq, step)
        return True

    async def after(self, topic: str, seq: int, number: int) -> list[tuple[int, str]]:
        """Return (number, JSON) of the steps that came after one, oldest first."""
        rows = await self._database.rows(
            "SELECT number, data FROM progress WHERE topic = ? AND seq = ? AND number > ? ORDER BY number LIMIT 500",
            *(topic, seq, number),
        )
        return [(int(row[0]), str(row[1])) for row in rows]
