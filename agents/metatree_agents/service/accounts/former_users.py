"""Names of users who were taken out and left topics: nobody who is called so later gets them unasked."""

from __future__ import annotations

from dataclasses import dataclass

from metatree_agents.service.database.database import ServiceDatabase
from metatree_agents.service.queue.queue import Queue
from metatree_agents.service.queue.recommendations import NO_TREE


@dataclass(frozen=True, slots=True)
class FormerUser:
    """Somebody who was taken out."""

    name: str
    topics: int
    """How many are left of theirs."""
    at: float
    """When they were taken out."""


async def former_users(database: ServiceDatabase) -> list[FormerUser]:
    """Return those who were taken out, whose topics are there, and whose name nobody has now."""
    rows = await database.rows(
        "SELECT service_former.name, count(*), service_former.at FROM service_former"
        " JOIN topic ON topic.owner = service_former.name"
        " LEFT JOIN service_user ON service_user.name = service_former.name WHERE service_user.name IS NULL"
        " GROUP BY service_former.name, service_former.at ORDER BY service_former.name"
    )
    return [FormerUser(str(name), int(count), float(at)) for name, count, at in rows]


async def delete_left(database: ServiceDatabase, name: str) -> int:
    """Delete the topics that somebody left who was taken out, with what they told searches for themselves.

    Returns:
        How many topics there were; 0 also for one who is a user, whose topics are left alone.
    """
    if all(each.name != name for each in await former_users(database)):
        return 0
    topics = [str(row[0]) for row in await database.rows("SELECT id FROM topic WHERE owner = ?", name)]
    queue = Queue(database)
    for topic in topics:
        await queue.remove(topic, name)
    await database.execute("DELETE FROM recommendation WHERE on_behalf_of = ? AND trees = ?", name, NO_TREE)
    await database.execute("DELETE FROM service_former WHERE name = ?", name)
    return len(topics)
