"""What stays of names that no user has: topics and recommendations, which whoever gets the name next would see.

A user who is taken out leaves what they asked; a frontend may have asked for somebody who was never a user. Nobody gets
such a name without somebody saying what becomes of that (`Users.add`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from metatree.errors import UserError
from metatree_agents.service.database.database import Statements, Transaction
from metatree_agents.service.queue.queue import remove_topic
from metatree_agents.service.queue.recommendations import NO_TREE

Choice = Literal["keep", "delete"]
"""What becomes of it: the next of the name sees it, or it is deleted."""
_LEFT: Final = " (left)"
"""What stands behind a name whose recommendations stay where a tree remembers them: no name has a space."""
_TOPICS: Final = (
    "FROM topic WHERE NOT EXISTS (SELECT 1 FROM service_user WHERE service_user.name = topic.owner)"
)


@dataclass(frozen=True, slots=True)
class Left:
    """How many topics and recommendations there are under a name."""

    name: str
    topics: int
    recommendations: int = 0

    def __bool__(self) -> bool:
        return bool(self.topics or self.recommendations)

    def __str__(self) -> str:
        counts = ((self.topics, "topic"), (self.recommendations, "recommendation"))
        return " and ".join(f"{count} {what}{'s' * (count != 1)}" for count, what in counts if count)

    @property
    def them(self) -> str:
        """Return the word for it in a sentence."""
        return "it" if self.topics + self.recommendations == 1 else "them"


class NameWasUsed(UserError):
    """A name had topics or recommendations here, and nobody said what becomes of them."""

    def __init__(self, left: Left) -> None:
        self.left = left
        super().__init__(
            f"{left.name} was here before and left {left}: say whether to show {left.them} to the next {left.name}"
            f" (keep) or to delete {left.them} (delete), or choose another name"
        )


async def left_under(do: Statements, name: str) -> Left:
    """Return what there is under a name, whether somebody has it now or not."""
    row = await do.row(
        "SELECT (SELECT count(*) FROM topic WHERE owner = ?),"
        " (SELECT count(*) FROM recommendation WHERE on_behalf_of = ? AND withdraws IS NULL)",
        *(name, name),
    )
    assert row is not None
    return Left(name, int(row[0]), int(row[1]))


async def left_by_all(do: Statements, *, start: int, limit: int) -> list[Left]:
    """Return the names that no user has and that own topics, with how many each, by name."""
    rows = await do.rows(
        f"SELECT owner, count(*) {_TOPICS} GROUP BY owner ORDER BY owner LIMIT ? OFFSET ?", limit, start
    )
    return [Left(name, int(count)) for name, count in rows]


async def delete_left(do: Transaction, name: str) -> Left:
    """Delete what there is under a name that no user has; return what there was.

    What a tree has learned of recommendations stays there, and an administrator can still take it back; it is said by
    nobody of this name any more.

    Raises:
        UserError: a user has the name: what is theirs they delete themselves.
    """
    if await do.row("SELECT 1 FROM service_user WHERE name = ?", name) is not None:
        raise UserError(f"{name} is a user, whose topics are theirs: take {name} out first")
    found = await left_under(do, name)
    for (topic,) in await do.rows("SELECT id FROM topic WHERE owner = ? ORDER BY id", name):
        await remove_topic(do, topic, name)
    await do.execute("DELETE FROM recommendation WHERE on_behalf_of = ? AND trees = ?", name, NO_TREE)
    await do.execute("UPDATE recommendation SET on_behalf_of = ? WHERE on_behalf_of = ?", name + _LEFT, name)
    return found
