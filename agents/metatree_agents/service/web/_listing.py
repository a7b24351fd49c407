"""Topics as the web page lists them: the first question of each, how many there are, and how the last one stands."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Final

from metatree_agents.service.accounts.tree_rights import ALL, missing
from metatree_agents.service.database.database import ServiceDatabase
from metatree_agents.service.queue.recommendations import MISSING, STANDS
from metatree_agents.service.queue.statuses import SHOWN

TOPICS: Final = 30
NAME_CHARS: Final = 240
_OPEN_ENDS: Final = """('{"end": "closest"', '{"end": "nothing"')"""
_UNANSWERED: Final = f"CASE WHEN substr(query.ending, 1, 17) IN {_OPEN_ENDS} THEN 1 ELSE 0 END"
"""Whether nothing answered a query."""
_ADDED: Final = (
    "CASE WHEN EXISTS (SELECT 1 FROM recommendation AS r WHERE r.topic = query.topic AND r.query = query.text"
    f" AND r.type = ? AND {STANDS}) THEN 1 ELSE 0 END"
)
"""Whether somebody added an answer to a query; the value is the type."""


@dataclass(frozen=True, slots=True)
class Listed:
    """One topic of a list."""

    id: str
    title: str | None
    """What somebody called it."""
    question: str
    count: int
    status: str
    """That of its last question."""
    at: float
    """When its last question was asked."""
    owner: str = ""
    unanswered: bool = False
    """Whether nothing answered its last question."""
    added: bool = False
    """Whether somebody added an answer to its last question."""
    begun: float = 0.0
    """When its first question was asked."""
    latest: str = ""
    """Its last question."""
    has_namesake: bool = False
    """Whether another one of the list looks the same."""

    @property
    def name(self) -> str:
        """What the list calls it."""
        return (self.title or self.question)[:NAME_CHARS]


_MOST_WORDS: Final = 10


async def topics_of(
    database: ServiceDatabase,
    owner: str,
    *,
    others: bool = False,
    start: int = 0,
    words: str = "",
    trees: int = ALL,
) -> tuple[list[Listed], bool]:
    """Return some topics of a user, that of the latest question first, and whether there are more.

    Args:
        others: whether those of everybody else are meant.
        words: each of them stands in a question of the topic, its title or its name; all topics when it is empty.
        trees: the set of those that may be read; topics that search another one are left out.
    """
    escaped = words.lower().replace("!", "!!").replace("%", "!%").replace("_", "!_").split()[:_MOST_WORDS]
    among = (
        " AND (lower(topic.id) LIKE ? ESCAPE '!' OR lower(topic.title) LIKE ? ESCAPE '!'"
        " OR EXISTS (SELECT 1 FROM query AS each WHERE each.topic = topic.id AND lower(each.text) LIKE ? ESCAPE '!'))"
    )
    rows = await database.rows(
        f"SELECT topic.id, topic.title, opening.text, topic.last_seq, {SHOWN}, query.at, topic.owner,"
        f" {_UNANSWERED}, {_ADDED}, opening.at, query.text FROM topic"
        " JOIN query AS opening ON opening.topic = topic.id AND opening.seq = 1"
        " JOIN query ON query.topic = topic.id AND query.seq = topic.last_seq"
        f" WHERE topic.owner {'<>' if others else '='} ? AND (topic.trees & ?) = 0{among * len(escaped)}"
        " ORDER BY query.at DESC, topic.id LIMIT ? OFFSET ?",
        *(
            database.clock(),
            MISSING,
            owner,
            missing(trees),
            *(like for word in escaped for like in [f"%{word}%"] * 3),
            TOPICS + 1,
            max(0, start),
        ),
    )
    listed = [
        Listed(
            row[0], row[1], row[2], int(row[3]), row[4], row[5], row[6], bool(row[7]), bool(row[8]), *row[9:]
        )
        for row in rows[:TOPICS]
    ]
    times = Counter(_looks(each) for each in listed)
    return [replace(each, has_namesake=times[_looks(each)] > 1) for each in listed], len(rows) > TOPICS


def _looks(topic: Listed) -> str:
    return " ".join(topic.name.casefold().split()).rstrip("?.! ")


async def hidden_topics(database: ServiceDatabase, owner: str, trees: int) -> int:
    """Return how many topics of a user search a tree that is not in a set, so that they are not shown."""
    row = await database.row(
        "SELECT count(*) FROM topic WHERE owner = ? AND (trees & ?) <> 0", owner, missing(trees)
    )
    return int(row[0]) if row else 0


async def topics_by_owner(database: ServiceDatabase) -> dict[str, int]:
    """Return how many topics each user has."""
    rows = await database.rows("SELECT owner, count(*) FROM topic GROUP BY owner")
    return {str(owner): int(count) for owner, count in rows}


async def answered(database: ServiceDatabase) -> int:
    """Return how many queries have ended with an answer, or with what was found of one, or with none."""
    row = await database.row("SELECT count(*) FROM query WHERE answered_at IS NOT NULL")
    return int(row[0]) if row else 0


async def unanswered(database: ServiceDatabase) -> int:
    """Return how many queries nothing answered; reads them all, so it is not asked for each page."""
    row = await database.row(
        f"SELECT count(*) FROM query WHERE answered_at IS NOT NULL AND {_UNANSWERED} = 1"
    )
    return int(row[0]) if row else 0
