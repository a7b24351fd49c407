"""Recommendations: what people say of answers, kept so that it can become memory.

One that is taken back stays, and another comes after it that withdraws it: engines may have learned it by then, and
hear of both in their order. The later one says nothing by itself, so an engine that knows nothing of it does nothing.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, get_args

from metatree_agents.service.accounts.tree_rights import ALL, UNNAMED, missing
from metatree_agents.service.database.database import ServiceDatabase, Transaction, rows_with

RecommendationType = Literal[
    "Suggest Improvement",
    "Promote Answer",
    "Make Correction",
    "Add Missing Info",
    "Clarify Phrasing",
    "Flag as Off Topic",
]
TYPES: Final[tuple[str, ...]] = get_args(RecommendationType)
PLAIN: Final = {"Promote Answer": "Helpful", "Flag as Off Topic": "Not helpful"}
"""What people read in place of a type, where that is another word."""
NEGATIVE: Final = frozenset({"Flag as Off Topic"})
"""Says that a text should be found less, not more."""
CORRECTION: Final = "Make Correction"
"""Says what is right, and that what was said instead should be found less."""
PROMOTION: Final = "Promote Answer"
"""Says that an answer is right; what it quotes is kept with it."""
IMPROVEMENT: Final = "Suggest Improvement"
MISSING: Final = "Add Missing Info"
"""As what it is kept what a person answers to a search."""
NO_TREE: Final = 0
"""What a person said to a search, for themselves: no tree remembers it."""
MOST_TOLD: Final = 100
MOST_SHOWN: Final = 10
"""How many recommendations of an answer stand beside it."""
STANDS: Final = "r.withdraws IS NULL AND NOT EXISTS (SELECT 1 FROM recommendation WHERE withdraws = r.number)"
"""Whether a recommendation `r` was not taken back."""


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
    withdraws: int | None = None
    """The number of the one that this takes back; it has that one's type then, and neither fragment nor comment."""
    withdrawn: dict[str, Any] | None = None
    """What the one said that this takes back: its `fragment` and `comment`."""
    alone: bool = False
    """Whether it is kept for that person alone, who answered a search with it; of `about` only."""


async def keep(
    do: Transaction, topic: str, by: str, said: tuple[str, str, str, str], *, now: float, tree: int
) -> int:
    """Keep a recommendation, as a part of a transaction; return its number.

    Args:
        said: the question, the text, the comment and the kind.
        tree: the set of the tree that remembers it; `NO_TREE` keeps it for that person alone.
    """
    await do.alone("recommendations")  # engines ask for what came after a number
    query, fragment, comment, kind = said
    row = await do.row(
        "INSERT INTO recommendation(topic, on_behalf_of, query, fragment, comment, type, at, trees)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING number",
        *(topic, by, query, fragment, comment, kind, now, tree),
    )
    assert row is not None
    return int(row[0])


class Recommendations:
    """What was recommended, in the order of its coming."""

    def __init__(self, database: ServiceDatabase) -> None:
        self._database = database

    async def add(
        self,
        *,
        topic: str,
        on_behalf_of: str,
        query: str,
        fragment: str,
        comment: str,
        kind: str,
        tree: int = UNNAMED,
    ) -> tuple[int, float]:
        """Keep a recommendation; return its number and the time.

        Args:
            tree: the set of the one tree that remembers it.
        """
        now = self._database.clock()
        async with self._database.transaction() as do:
            said = (query, fragment, comment, kind)
            return await keep(do, topic, on_behalf_of, said, now=now, tree=tree), now

    async def told_by_askers(self, topic: str) -> dict[int, list[tuple[str, str]]]:
        """Return what those who ask the queries of a topic that are being answered once answered themselves.

        Returns:
            (question, answer), the latest first, of each query's number; what they recommended as missing is as good.
        """
        rows = await self._database.rows(
            "SELECT query.seq, r.query, r.fragment FROM query"
            " JOIN recommendation AS r ON r.on_behalf_of = query.asked_by AND r.type = ?"
            f" WHERE query.topic = ? AND query.status = 'Pending' AND {STANDS} ORDER BY r.number DESC LIMIT ?",
            *(MISSING, topic, MOST_TOLD),
        )
        told: dict[int, list[tuple[str, str]]] = {}
        for seq, question, answer in rows:
            told.setdefault(int(seq), []).append((question, answer))
        return told

    async def told_by(self, who: str, answer: str) -> tuple[str, float] | None:
        """Return in which topic and when somebody last told a search this answer; None for never."""
        row = await self._database.row(
            "SELECT topic, at FROM recommendation WHERE on_behalf_of = ? AND type = ? AND fragment = ?"
            " AND withdraws IS NULL ORDER BY number DESC LIMIT 1",
            *(who, MISSING, answer),
        )
        return None if row is None else (str(row[0]), float(row[1]))

    async def withdraw(self, number: int, *, by: str | None) -> bool:
        """Take a recommendation back; False when there is none that stands, or it is somebody else's.

        Args:
            by: in whose name it must be; None for any.
        """
        async with self._database.transaction() as do:
            await do.alone("recommendations")
            return bool(
                await do.execute(
                    "INSERT INTO recommendation(topic, on_behalf_of, query, fragment, comment, type, at, withdraws,"
                    " trees) SELECT topic, on_behalf_of, query, '', '', type, ?, number, trees"
                    " FROM recommendation AS r"
                    f" WHERE number = ? AND (CAST(? AS TEXT) IS NULL OR on_behalf_of = ?) AND {STANDS}",
                    *(self._database.clock(), number, by, by),
                )
            )

    async def standing(
        self, *, by: str | None, start: int = 0, limit: int = 50, trees: int = ALL
    ) -> list[Recommendation]:
        """Return recommendations that were not taken back, the latest first.

        Args:
            by: in whose name; None for all.
            trees: the set of those whose recommendations are wanted.
        """
        rows = await self._database.rows(
            "SELECT number, topic, on_behalf_of, query, fragment, comment, type, at FROM recommendation AS r"
            f" WHERE (CAST(? AS TEXT) IS NULL OR on_behalf_of = ?) AND (trees & ?) = 0 AND {STANDS}"
            " ORDER BY number DESC LIMIT ? OFFSET ?",
            *(by, by, missing(trees), limit, start),
        )
        return [Recommendation(*row) for row in rows]

    async def made_from(self, topics: Collection[str]) -> dict[tuple[str, str, str], bool]:
        """Return, for each (who, type, topic) of some topics of which there is one, whether any stands."""
        rows = await rows_with(
            self._database,
            f"SELECT on_behalf_of, type, topic, CASE WHEN {STANDS} THEN 1 ELSE 0 END FROM recommendation AS r"
            " WHERE withdraws IS NULL AND topic IN",
            topics,
        )
        stand: dict[tuple[str, str, str], bool] = {}
        for who, kind, topic, stands in rows:
            stand[who, kind, topic] = stand.get((who, kind, topic), False) or bool(stands)
        return stand

    async def about(self, topic: str, query: str) -> list[Recommendation]:
        """Return what was said of the answer to a question of a topic and not taken back, the latest first."""
        rows = await self._database.rows(
            "SELECT number, topic, on_behalf_of, query, fragment, comment, type, at, trees FROM recommendation AS r"
            f" WHERE topic = ? AND query = ? AND {STANDS} ORDER BY number DESC LIMIT ?",
            *(topic, query, MOST_SHOWN),
        )
        return [replace(Recommendation(*row[:-1]), alone=row[-1] == NO_TREE) for row in rows]

    async def after(
        self, number: int, *, limit: int = 100, tree: int = UNNAMED
    ) -> tuple[str, list[Recommendation]]:
        """Return what the database is called, and recommendations for a tree that came after one, oldest first.

        Both are of one moment: a restore, which gives another name, also changes what the numbers mean.
        """
        rows = await self._database.rows(
            "SELECT name.id, r.number, r.topic, r.on_behalf_of, r.query, r.fragment, r.comment, r.type, r.at,"
            " r.withdraws, former.fragment, former.comment"
            " FROM (SELECT id FROM service_identity ORDER BY number DESC LIMIT 1) AS name"
            " LEFT JOIN recommendation AS r ON r.number > ? AND r.trees = ?"
            " LEFT JOIN recommendation AS former ON former.number = r.withdraws ORDER BY r.number LIMIT ?",
            *(number, tree, limit),
        )
        return rows[0][0], [_recommendation(*row[1:]) for row in rows if row[1] is not None]


def _recommendation(*row: Any) -> Recommendation:
    former = None if row[8] is None else {"fragment": row[9], "comment": row[10]}
    *said, withdraws, _, _ = row
    return replace(Recommendation(*said), withdraws=withdraws, withdrawn=former)
