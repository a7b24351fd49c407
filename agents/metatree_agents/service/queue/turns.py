"""Whose turn it is: claims go round over those who ask, so that nobody's many questions keep out another's one.

Who has something that can be claimed stands in a line (the table `turn`), once, however much it is; who had a turn goes
to its end, and so does who comes again. Next is who has the fewest topics being worked on, of the first in the line,
and of these the first of all; of this asker it is the oldest topic. Places are counted and not timed, since clocks may
go back. Who asked is who the oldest open query of a topic is of: its owner, unless topics are shared.

A claim so looks at no more than `FIRST_IN_LINE` askers, however many there are and however much they ask. Lost: to
look at all of them (a loose index scan: 190 ms with 10,000); one order of all topics (start-time fair queueing, Goyal
1996: gives who keeps engines busy for long as much as who does not).

A place in the line (`number`) is given up only by who knows that nothing of its asker is open. Transactions that run at
the same time on PostgreSQL may not see what the others open, so whoever opens a topic writes the asker's row (`asked`),
and whoever gives up the place has locked the row before looking, or compares `asked`.
"""

from __future__ import annotations

from typing import Final

from metatree_agents.service.database.database import Transaction

QUERIES: Final = 8
"""How many queries of a topic an engine is given in one turn; the others wait for the topic's next one."""
FIRST_IN_LINE: Final = 8

OPEN: Final = "lease IS NULL AND ready_at IS NOT NULL"
"""Whether a topic can be claimed as it is; nothing is asked of the clock, which may have gone back."""
ENDED: Final = "engine IS NOT NULL AND ready_at <= ?"
"""Whether an engine let the lease of a topic end; the value is the time."""

# `min` and not EXISTS, which PostgreSQL may make a join of, by a plan from when there was little to join.
_SINCE: Final = f"(SELECT min(ready_at) FROM topic WHERE {OPEN} AND topic.asker = turn.asker)"
_SERVED: Final = "(trees & {missing}) = 0"
"""Whether an engine has all trees that a topic searches; the value is the set of those that it does not have."""
_SINCE_SERVED: Final = _SINCE[:-1] + f" AND {_SERVED})"
_HELD: Final = "(SELECT count(*) FROM topic WHERE engine IS NOT NULL AND topic.asker = first.asker)"
LINE: Final = f"""
line AS MATERIALIZED (
    SELECT first.asker, first.asked FROM (
        SELECT asker, asked, number FROM turn WHERE number IS NOT NULL AND {_SINCE_SERVED} IS NOT NULL
        ORDER BY number, asker LIMIT {FIRST_IN_LINE}
    ) AS first ORDER BY {_HELD}, number, asker
)
"""
"""A named query, for both databases: the first askers of the line, the next one first; `missing` is a value."""

_OLDEST: Final = (
    f"SELECT id, asker FROM topic WHERE {OPEN} AND asker = %s AND {_SERVED} ORDER BY ready_at, id LIMIT 1"
)
NEXT: Final = f"WITH {LINE} {_OLDEST % '(SELECT asker FROM line LIMIT 1)'}"
"""The topic whose turn it is; `missing` is a value, twice."""
NEXT_FREE: Final = (
    "SELECT free.id, free.asker, line.asked FROM line, LATERAL"
    f" ({_OLDEST % 'line.asker'} FOR NO KEY UPDATE SKIP LOCKED) AS free LIMIT 1"
)
"""The same on PostgreSQL, after `LINE`, passing over topics whose rows others have taken."""

_LAST: Final = "(SELECT coalesce(max(number), 0) + 1 FROM turn WHERE number IS NOT NULL)"
JOIN: Final = f"""
INSERT INTO turn(asker, number, asked) SELECT asker, {_LAST}, 1 FROM {{topic}} AND {OPEN}
ON CONFLICT(asker) DO UPDATE SET asked = turn.asked + 1, number = coalesce(turn.number, excluded.number)
"""
"""Let the asker of a topic stand in the line, if it can be claimed."""
OPENED: Final = (
    "ready_at = (SELECT min(at) FROM query WHERE query.topic = topic.id AND status = 'Open'),"
    " asker = coalesce((SELECT asked_by FROM query WHERE query.topic = topic.id AND status = 'Open'"
    " ORDER BY at, seq LIMIT 1), asker)"
)
"""What a topic is set to that can be claimed from now on, if anything is open in it."""


async def join(do: Transaction, topic: str) -> None:
    """Let the asker of a topic stand in the line, if it can be claimed."""
    await do.execute(JOIN.format(topic="topic WHERE id = ?"), topic)


async def all_in_line(do: Transaction) -> None:
    """Make the line anew, of all whose topics can be claimed."""
    await do.execute(
        "UPDATE topic SET asker = owner WHERE asker = ''"
    )  # of a version that did not know who asked
    await do.execute("DELETE FROM turn")
    await do.execute(
        f"INSERT INTO turn(asker, number, asked) SELECT asker, 1, 1 FROM topic WHERE {OPEN} GROUP BY asker"
    )


async def open_again(do: Transaction, topic: str) -> None:
    """End the lease of a topic; what is open in it can be claimed."""
    await do.execute(
        f"UPDATE topic SET engine = NULL, lease = NULL, lease_until = NULL, {OPENED} WHERE id = ?", topic
    )
    await join(do, topic)


async def has_lease(do: Transaction, topic: str, lease: str) -> bool:
    """Take the row of a topic, as everywhere first; False when it has another lease by now."""
    return bool(await do.execute("UPDATE topic SET lease = lease WHERE id = ? AND lease = ?", topic, lease))


async def take_back(do: Transaction, topic: str) -> None:
    """Open the queries of a topic that an engine leaves unanswered; the attempt does not count."""
    sql = "UPDATE query SET status = 'Open', attempts = attempts - 1 WHERE topic = ? AND status = 'Pending'"
    await do.execute(sql, topic)


async def end_turn(do: Transaction, asker: str) -> None:
    """Send an asker to the end of the line, or out of it when nothing of theirs can be claimed."""
    # The row is locked by the first statement, so the second one sees what was opened before.
    await do.execute(f"UPDATE turn SET number = {_LAST} WHERE asker = ?", asker)
    await _leave(do, asker)


async def leave(do: Transaction, asker: str) -> None:
    """Take an asker out of the line when nothing of theirs can be claimed."""
    await do.execute("UPDATE turn SET asked = asked + 1 WHERE asker = ?", asker)
    await _leave(do, asker)


async def _leave(do: Transaction, asker: str) -> None:
    await do.execute(f"UPDATE turn SET number = NULL WHERE asker = ? AND {_SINCE} IS NULL", asker)


END_AT_ONCE: Final = f"""
UPDATE turn SET number = CASE WHEN turn.asked <> first.asked OR (
    SELECT min(ready_at) FROM topic WHERE {OPEN} AND topic.asker = first.asker AND topic.id <> first.id
) IS NOT NULL THEN {_LAST} END FROM first WHERE turn.asker = first.asker
"""
"""What `end_turn` does, in the statement of PostgreSQL whose `first` has the topic that it takes."""
