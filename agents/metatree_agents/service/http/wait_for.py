"""Waiting for a query: one loop for all who wait for an answer or watch how it comes to be."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from math import inf
from typing import Any

from metatree.errors import TransientError
from metatree_agents.service.accounts.users import Caller
from metatree_agents.service.http.tree_access import may_read
from metatree_agents.service.queue.queue import Query
from metatree_agents.service.queue.waiting import first_of
from metatree_agents.service.settings import Service

AWAY_S = 1.0


def _never() -> float:
    return inf


async def wait_for(
    service: Service,
    who: Caller,
    topic: str,
    seq: int,
    *ends: asyncio.Future[Any],
    until: float,
    beat: Callable[[], float] = _never,
    patient: bool = False,
) -> AsyncGenerator[Query | None]:
    """Yield a query as it is now, and again whenever something of it has changed; use it in `aclosing`.

    What happens while the caller looks at it is not missed: it is waited for before it is read.

    Args:
        who: who waits; one who may not ask the trees of the topic any more sees it go.
        ends: futures with which the waiting ends.
        until: the monotonic time at which it ends.
        beat: after how many seconds it is yielded again when nothing has changed.
        patient: whether it goes on when the database is away for a moment.

    Yields:
        The query; at last None when it is gone, or another one is in its place.
    """
    query: Query | None = None
    while True:
        async with service.waiting.answer(topic, seq) as turn:
            try:
                query = await service.queue.query(topic, seq, last=query)
                readable = query is None or await _readable(service, who, topic)
            except TransientError:
                if not patient:
                    raise
                await first_of(AWAY_S, *ends)
                continue
            yield query if readable else None
            rest_s = until - time.monotonic()
            if query is None or not readable or rest_s <= 0 or any(end.done() for end in ends):
                return
            await first_of(min(beat(), rest_s), turn, *ends)


async def has_engines(service: Service, query: Query) -> bool:
    """Say whether any engine is connected that may answer a query."""
    place = await service.queue.place(query.topic)
    if place is None:
        return True
    here = service.waiting.engines.with_trees(place.trees)
    return await service.admin.has_engines(waiting=here, trees=place.trees)


async def questions_before(service: Service, query: Query) -> tuple[int, int]:
    """Return how many open questions came before one, and how many are being answered now."""
    row = await service.database.row(
        "SELECT count(CASE WHEN status = 'Open' AND at < ? THEN 1 END), count(CASE WHEN status = 'Pending' THEN 1 END)"
        " FROM query WHERE status IN ('Open', 'Pending')",
        query.at,
    )
    return (int(row[0]), int(row[1])) if row else (0, 0)


async def _readable(service: Service, who: Caller, topic: str) -> bool:
    """Say whether the trees of a topic are still the caller's to ask."""
    if not await service.tree_rights.named():
        return True
    place = await service.queue.place(topic)
    return place is None or await may_read(service, who, place)
