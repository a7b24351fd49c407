"""Stopping a search, and going on with it.

A query that is stopped is `Stopped` at once, and its topic's lease ends with it, so what else is open there can be
claimed; the engine hears of it (`POST /api/wait-for-stop`), gives its search up, and gives back what it had found. That
is kept with the query, which stays stopped. Whoever goes on with it opens it again: its run has the same name, so an
engine with the same tree goes on where the search was.

Lost: a request to stop that the engine carries out before the query changes, since an engine that has gone would never
do so; and taking the answer of an engine that heard of it too late for one, since somebody said that it should end.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Literal

from metatree_agents.service.database.database import ServiceDatabase
from metatree_agents.service.queue.human_input import tell
from metatree_agents.service.queue.models import Ending
from metatree_agents.service.queue.statuses import UNSETTLED
from metatree_agents.service.queue.turns import join, leave, open_again, take_back

Stop = Literal["searching", "queued", "again", "ended", "unknown"]
"""What became of a stop: the query was being searched, was not yet, had been stopped or had ended before; or is not
there."""

Ended = Literal["stopped", "lost"]
"""Why an engine need not search any more: the query is stopped, or the topic is not its any more."""


class Stopping:
    """Stops the searches of queries."""

    def __init__(self, database: ServiceDatabase) -> None:
        self._database = database

    async def stop(self, topic: str, seq: int, *, by: str, parked: bool = True) -> Stop:
        """End the search for a query, whoever has it; what it has found so far may still come from its engine.

        Args:
            topic: of the query.
            seq: its number in the topic.
            by: who stops it, as it is shown.
            parked: whether one that waits for a person is stopped, too; nobody searches for it.
        """
        async with self._database.transaction() as do:
            # The topic's row first, as everywhere.
            held = await do.row(
                "UPDATE topic SET last_seq = last_seq WHERE id = ? RETURNING asker, lease", topic
            )
            row = await do.row("SELECT status FROM query WHERE topic = ? AND seq = ?", topic, seq)
            if held is None or row is None:
                return "unknown"
            status = str(row[0])
            if status not in UNSETTLED or (status == "Waiting" and not parked):
                return "again" if status == "Stopped" else "ended"
            first = await do.row("SELECT min(seq) FROM query WHERE topic = ? AND status = 'Pending'", topic)
            await do.execute(
                "UPDATE query SET status = 'Stopped', answered_at = ?, ending = ? WHERE topic = ? AND seq = ?",
                *(self._database.clock(), json.dumps(asdict(Ending("stopped", by=by))), topic, seq),
            )
            await tell(do, topic, seq, "stopped", f"stopped by {by}")
            searching = status == "Pending" and first is not None and first[0] == seq
            if searching:
                await take_back(do, topic)
            if searching or status == "Waiting" or held[1] is None:
                await open_again(do, topic)
            await leave(do, held[0])
        return "searching" if searching else "queued"

    async def go_on(self, topic: str, seq: int) -> bool:
        """Open a query again that was stopped; False when it is not."""
        async with self._database.transaction() as do:
            if not await do.execute("UPDATE topic SET last_seq = last_seq WHERE id = ?", topic):
                return False
            found = await do.execute(
                "UPDATE query SET status = 'Open', attempts = 0, answer = NULL, think = NULL, sources = NULL,"
                " answered_at = NULL, ending = NULL WHERE topic = ? AND seq = ? AND status = 'Stopped'",
                *(topic, seq),
            )
            if found:
                await tell(do, topic, seq, "goes on", "the search goes on")
                if await do.row("SELECT 1 FROM topic WHERE id = ? AND lease IS NULL", topic) is not None:
                    await open_again(do, topic)
                await join(do, topic)
        return bool(found)

    async def ended(self, topic: str, seq: int, lease: str) -> Ended | None:
        """Say why the engine that has a lease need not search for a query any more; None when it has to."""
        row = await self._database.row(
            "SELECT query.status, topic.lease FROM topic JOIN query ON query.topic = topic.id"
            " WHERE topic.id = ? AND query.seq = ?",
            *(topic, seq),
        )
        if row is not None and row[0] == "Stopped":
            return "stopped"
        return None if row is not None and row[1] == lease else "lost"
