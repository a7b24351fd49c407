"""The queue of queries: topics that engines claim whole, in order, under a lease.

Who asks takes turns with others who do (`turns`). A topic under a live lease goes to no other engine, so its queries
are answered in order. Nothing is lost when an engine vanishes: when the lease ends, what it did not answer is open
again, and after some attempts failed. The first answer to a query wins.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, Literal

from metatree._util.process import is_dead
from metatree.errors import TransientError
from metatree_agents.service.accounts.tree_rights import ALL, UNNAMED, missing
from metatree_agents.service.database.database import ServiceDatabase, Transaction
from metatree_agents.service.queue import _postgres_statements as postgres_statements
from metatree_agents.service.queue.human_input import Ask, asks_of, tell
from metatree_agents.service.queue.lookups import forget_wishes
from metatree_agents.service.queue.models import Ending
from metatree_agents.service.queue.statuses import LISTED, SHOWN
from metatree_agents.service.queue.turns import (
    ENDED,
    LINE,
    NEXT,
    NEXT_FREE,
    OPEN,
    QUERIES,
    end_turn,
    has_lease,
    join,
    leave,
    open_again,
    take_back,
)

LEASE_S: Final = 60.0
"""How long an engine has for a topic that says nothing more: our own renew after a third of it, while they work."""
ATTEMPTS: Final = 5
Status = Literal["Open", "Pending", "Done", "Failed", "Waiting", "Stopped"]
Given = Literal["accepted", "again", "conflict", "unknown"]
"""What becomes of an answer: the first wins, the same again is fine, another or an unclear one is refused."""


@dataclass(frozen=True, slots=True)
class Query:
    """One query of a topic, with its answer when there is one."""

    topic: str
    seq: int
    text: str
    status: Status
    answer: list[str] | None
    think: list[str] | None
    sources: list[dict[str, Any]] | None
    model: str
    modifiers: dict[str, Any]
    at: float
    attempts: int
    asked: list[Ask]
    """What its run asks a person, or did."""
    run: str | None = None
    """By what name its run goes; None for a query of an older version, whose run goes by a hash."""
    ending: Ending = field(default_factory=Ending)
    by: str = ""
    """Who asked."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What an engine was given: the open queries of one topic, in order, until the lease ends."""

    topic: str
    lease: str
    until: float
    queries: list[Query]
    trees: int = UNNAMED
    """The set of those that the topic searches."""


@dataclass(frozen=True, slots=True)
class TopicPlace:
    """Whose a topic is, and the set of trees that it searches."""

    owner: str
    trees: int


_OF: Final = "#"
"""Between the name of a process and the rest of a lease that it has."""


class TopicTaken(Exception):
    """The topic belongs to somebody else, or was made just now and searches other trees."""


_NAMES = (
    "topic, seq, text, status, answer, think, sources, model, modifiers, at, attempts, asked, run, ending,"
    " asked_by"
)
COLUMNS: Final = "query." + _NAMES.replace(", ", ", query.")
"""Of which `query_of` makes a query."""
_CLAIM = postgres_statements.CLAIM.format(ended=ENDED.replace("?", "$1"), columns=COLUMNS, missing="$5")
_NEXT = NEXT.format(missing="?")
_NEXT_FREE = f"WITH {LINE} {NEXT_FREE}".format(missing="?")
_SHOWN = f"SELECT {COLUMNS} FROM query JOIN topic ON topic.id = query.topic".replace("query.status", SHOWN)


class Queue:
    """Topics and their queries.

    Args:
        database: where they are kept.
        lease_s: how long an engine has for a topic; each answer in it, and `renew`, begins the lease anew.
        attempts: how many engines may try a query before it fails.
        shared: whether users may ask and read in topics of others.
    """

    def __init__(
        self,
        database: ServiceDatabase,
        *,
        lease_s: float = LEASE_S,
        attempts: int = ATTEMPTS,
        shared: bool = False,
    ) -> None:
        self.lease_s = lease_s
        self.attempts = attempts
        self.shared = shared
        self._database = database
        self._claim_blocks = False
        """Whether a claim waits for a topic that another transaction holds."""

    # asking

    async def add(
        self,
        topic: str,
        user: str,
        text: str,
        *,
        model: str = "default",
        modifiers: Mapping[str, Any] | None = None,
        trees: int = UNNAMED,
    ) -> tuple[int, float]:
        """Add a query to a topic, which is made by its first; return its number in the topic and the time.

        Args:
            trees: the set of those that the topic searches, the same for all its queries.

        Raises:
            Refused: the topic is somebody else's.
        """
        if not self._database.skip_locked:
            async with self._database.transaction() as do:
                return await self.add_within(
                    do, topic, user, text, model=model, modifiers=modifiers, trees=trees
                )
        now = self._database.clock()
        row = await self._database.row(
            postgres_statements.ADD,
            *(topic, user, now, self.shared, text, model, json.dumps(dict(modifiers or {})), _run(), trees),
        )
        if row is None:
            raise TopicTaken(topic)
        return int(row[0]), now

    async def add_within(
        self,
        do: Transaction,
        topic: str,
        user: str,
        text: str,
        *,
        model: str = "default",
        modifiers: Mapping[str, Any] | None = None,
        trees: int = UNNAMED,
    ) -> tuple[int, float]:
        """Do what `add` does, as a part of a transaction."""
        now = self._database.clock()
        # One statement takes the row for this transaction, so numbers are dense whoever asks at the same time.
        row = await do.row(
            "INSERT INTO topic(id, owner, asker, made_at, last_seq, ready_at, trees) VALUES (?, ?, ?, ?, 1, ?, ?)"
            " ON CONFLICT(id) DO UPDATE SET last_seq = topic.last_seq + 1,"
            " asker = CASE WHEN topic.ready_at IS NULL THEN excluded.asker ELSE topic.asker END,"
            " ready_at = COALESCE(topic.ready_at, excluded.ready_at) RETURNING last_seq, owner, trees",
            *(topic, user, user, now, now, trees),
        )
        assert row is not None
        if (row[1] != user and not self.shared) or row[2] != trees:
            raise TopicTaken(topic)
        await do.execute(
            "INSERT INTO query(topic, seq, text, asked_by, model, modifiers, at, status, attempts, run)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, 'Open', 0, ?)",
            *(topic, row[0], text, user, model, json.dumps(dict(modifiers or {})), now),
            _run(),
        )
        await join(do, topic)
        return int(row[0]), now

    async def open_of(self, user: str) -> int:
        """Return how many queries of a user are not answered yet, in whosever topics they are."""
        row = await self._database.row(
            f"SELECT count(*) FROM query WHERE {LISTED} AND status <> 'Failed' AND asked_by = ?", user
        )
        return int(row[0]) if row else 0

    async def topics(self, owner: str, *, trees: int = ALL) -> dict[str, str]:
        """Return the topics of a user with the first query of each, the newest topic first.

        Args:
            trees: the set of those that may be read; topics that search another one are left out.
        """
        rows = await self._database.rows(
            "SELECT topic.id, query.text FROM topic JOIN query ON query.topic = topic.id AND query.seq = 1"
            " WHERE topic.owner = ? AND (topic.trees & ?) = 0 ORDER BY topic.made_at DESC, topic.id",
            *(owner, missing(trees)),
        )
        return dict(rows)

    async def place(self, topic: str) -> TopicPlace | None:
        """Return whose topic it is and what it searches, None when there is none."""
        row = await self._database.row("SELECT owner, trees FROM topic WHERE id = ?", topic)
        return None if row is None else TopicPlace(str(row[0]), int(row[1]))

    async def thread(self, topic: str) -> list[Query]:
        """Return all queries of a topic in order, none when there is no such topic."""
        rows = await self._database.rows(
            f"{_SHOWN} WHERE query.topic = ? ORDER BY seq", self._database.clock(), topic
        )
        return [query_of(row) for row in rows]

    async def query(self, topic: str, seq: int, *, last: Query | None = None) -> Query | None:
        """Return one query, None when there is none.

        Args:
            last: as it was when it was read before; None is returned, too, when another is in its place since, of a
                topic of the same name that was made after this one was deleted.
        """
        row = await self._database.row(
            f"{_SHOWN} WHERE query.topic = ? AND query.seq = ?", self._database.clock(), topic, seq
        )
        query = None if row is None else query_of(row)
        if query is None or last is None or (query.run, query.at) == (last.run, last.at):
            return query
        return None

    async def holder(self, topic: str) -> tuple[str, float] | None:
        """Return which engine has a topic and since when, None when none has it now."""
        row = await self._database.row(
            "SELECT engine, claimed_at FROM topic WHERE id = ? AND engine IS NOT NULL AND lease_until > ?",
            *(topic, self._database.clock()),
        )
        return None if row is None else (str(row[0]), float(row[1] or 0.0))

    async def rename(self, topic: str, owner: str, title: str) -> bool:
        """Give a topic of this user a title, none when it is empty; False when it is not there or not theirs."""
        title = " ".join(title.split())
        sql = "UPDATE topic SET title = ? WHERE id = ? AND owner = ?"
        return bool(await self._database.execute(sql, title or None, topic, owner))

    async def title(self, topic: str) -> str | None:
        """Return the title that somebody gave a topic; None while nobody has."""
        row = await self._database.row("SELECT title FROM topic WHERE id = ?", topic)
        return None if row is None else row[0]

    async def remove(self, topic: str, owner: str) -> bool:
        """Take a topic of this user out with all that belongs to it; False when it is not there or not theirs."""
        async with self._database.transaction() as do:
            return await remove_topic(do, topic, owner)

    # answering

    async def claim(self, engine: str, *, process: str = "", trees: int = UNNAMED) -> Claim | None:
        """Give an engine the first open queries of the topic whose turn it is, None when none is ready.

        A topic whose lease has ended is opened first, and has its turn with the others. A topic that searches several
        trees goes only to an engine that has all of them: one search gives one answer, under one lease, with sources
        that are weighed against each other. Lost: parts of a topic for engines that have parts of its trees, which
        needs a lease and attempts for each part, somebody who makes one answer of them, and a rule for parts that
        never come.

        Args:
            engine: its name.
            process: of which process it is a part, as `this_process` names it, for `free_dead`.
            trees: the set of those that it has.
        """
        now, lease = (
            self._database.clock(),
            f"{process}{_OF}{secrets.token_urlsafe(12)}" if process else secrets.token_urlsafe(12),
        )
        until = now + self.lease_s
        try:
            while True:
                if self._database.skip_locked:
                    claim, topic = await self._claim_at_once(engine, lease, now, missing(trees))
                    if claim is not None:
                        return claim
                    if topic is not None:  # taken, and there is nothing in it that could be seen
                        await self.hand_back(topic, lease)
                        continue
                    if not await self.ready(1, trees=trees):
                        return None
                async with self._database.transaction() as do:
                    taken = await self._take(do, now, missing(trees))
                    if taken is None:
                        return None
                    topic, state = taken
                    if state == "taken":
                        continue
                    if state == "ended":
                        await self.give_up(do, topic)
                        await open_again(do, topic)
                        continue
                    claim = await self._claimed(do, topic, engine, lease, now)
                if claim is not None:
                    return claim
        except (asyncio.CancelledError, TransientError):
            # It may have been kept just before, and nobody would hear of it.
            with suppress(TransientError):
                await self._hand_back_lost(lease, until)
            raise

    async def _claim_at_once(
        self, engine: str, lease: str, now: float, lacks: int
    ) -> tuple[Claim | None, str | None]:
        """Claim the first topic in one statement; return also which was taken, with or without queries."""
        until = now + self.lease_s
        rows = await self._database.rows(_CLAIM, now, engine, lease, until, lacks)
        if not rows:
            return None, None
        topic, searched = str(rows[0][0]), int(rows[0][1])
        queries = sorted(
            (query_of(row[2:]) for row in rows if row[2] is not None), key=lambda query: query.seq
        )
        return (Claim(topic, lease, until, queries, searched) if queries else None), topic

    async def _take(
        self, do: Transaction, now: float, lacks: int
    ) -> tuple[str, Literal["open", "ended", "taken"]] | None:
        """Take the row of a topic that is ready, None when there is none.

        Args:
            lacks: the set of trees that the engine does not have.

        Returns:
            The topic, and whether it is open, its lease has ended, or another engine was given it meanwhile.
        """
        locked = self._database.skip_locked
        ended = f"SELECT id FROM topic WHERE {ENDED} ORDER BY ready_at, id LIMIT 1"
        if (row := await do.row(ended + locked, now)) is not None:
            return str(row[0]), "ended"
        row = await do.row(_NEXT_FREE if locked else _NEXT, lacks, lacks)
        if row is None and locked and not self._claim_blocks:
            # What others hold now may be free in a moment, as when a query is added, and then nobody would be woken
            # for it: so one is waited for. One alone, since two could be waited for in a circle, and by one caller
            # alone, since a server that was stopped may hold it for long.
            self._claim_blocks = True
            try:
                row = await do.row(ended, now) or await do.row(_NEXT, lacks, lacks)
                if row is not None:
                    topic = str(row[0])
                    sql = (
                        f"SELECT lease FROM topic WHERE id = ? AND ({OPEN} OR {ENDED})"
                        + self._database.for_update
                    )
                    row = await do.row(sql, topic, now)
                    return topic, "taken" if row is None else "open" if row[0] is None else "ended"
            finally:
                self._claim_blocks = False
        return None if row is None else (str(row[0]), "open")

    async def _claimed(
        self, do: Transaction, topic: str, engine: str, lease: str, now: float
    ) -> Claim | None:
        """Give an engine the open queries of a topic whose row is taken, None when there are none."""
        rows = await do.rows(
            "UPDATE query SET status = 'Pending', attempts = attempts + 1, engine = ?"
            " WHERE topic = ? AND status = 'Open' AND seq IN (SELECT seq FROM query WHERE topic = ?"
            f" AND status = 'Open' ORDER BY seq LIMIT {QUERIES}) RETURNING {_NAMES}",
            *(engine, topic, topic),
        )
        if not rows:  # all that was left of it has failed
            await do.execute(
                "UPDATE topic SET ready_at = NULL, engine = NULL, lease = NULL, lease_until = NULL WHERE id = ?",
                topic,
            )
            return None
        until = now + self.lease_s
        found = await do.row(
            "UPDATE topic SET engine = ?, lease = ?, lease_until = ?, ready_at = ?, claimed_at = ? WHERE id = ?"
            " RETURNING asker, trees",
            *(engine, lease, until, until, now, topic),
        )
        assert found is not None
        await end_turn(do, found[0])
        queries = sorted((query_of(row) for row in rows), key=lambda query: query.seq)
        return Claim(topic, lease, until, queries, int(found[1]))

    async def give_up(self, do: Transaction, topic: str) -> None:
        """Open again what the last engine did not answer, or let it fail after too many attempts."""
        rows = await do.rows(
            "UPDATE query SET status = CASE WHEN attempts >= ? THEN 'Failed' ELSE 'Open' END"
            " WHERE topic = ? AND status = 'Pending' RETURNING seq, status, attempts",
            *(self.attempts, topic),
        )
        for seq, status, attempts in sorted(rows):
            if status == "Failed":  # a step of it wakes those who wait, in this process or another
                await tell(do, topic, int(seq), "failed", f"gave up after {attempts} attempts to answer it")

    async def answer(
        self,
        topic: str,
        text: str,
        *,
        seq: int | None,
        answer: Sequence[str],
        think: Sequence[str] = (),
        sources: Sequence[Mapping[str, Any]] = (),
        ending: Ending | None = None,
        engine: str,
    ) -> tuple[Given, int]:
        """Take an answer to a query; return what became of it, and the number of the query in its topic.

        The number that an engine gives need not be ours: where the query there has another text, the one query of
        the topic with this text is meant.
        """
        answer_json, think_json = json.dumps(list(answer)), json.dumps(list(think))
        named = json.dumps([dict(source) for source in sources])
        ended = None if ending is None or ending == Ending() else json.dumps(asdict(ending))
        was_stopped = ending is not None and ending.end == "stopped"
        if self._database.skip_locked and seq is not None and not was_stopped:
            now = self._database.clock()
            values = (
                topic,
                seq,
                text,
                answer_json,
                think_json,
                named,
                engine,
                now,
                now + self.lease_s,
                ended,
            )
            if await self._database.execute(postgres_statements.ANSWER, *values):
                return "accepted", seq
        async with self._database.transaction() as do:
            match, right = await self._find_target(do, topic, seq, text)
            now = (
                self._database.clock()
            )  # once the topic's row is taken, so that times of a topic are in the order of its answers
            if match is None:
                return right, 0
            seq, status, stored_answer, stored_think = match
            if status == "Done":
                return (
                    "again" if (stored_answer, stored_think) == (answer_json, think_json) else "conflict"
                ), seq
            if was_stopped and status != "Stopped":
                return "conflict", seq  # it goes on again: what was found before is found there, too
            if status == "Stopped" and stored_answer is not None:
                return ("again" if stored_answer == answer_json else "conflict"), seq
            if status == "Stopped":  # what its search had found; the topic is not its engine's any more
                row = await do.row("SELECT ending FROM query WHERE topic = ? AND seq = ?", topic, seq)
                by = json.loads(row[0]).get("by") if row and row[0] else None
                ended = json.dumps(asdict(replace(ending or Ending(), end="stopped", by=by)))
            await do.execute(
                f"UPDATE query SET status = '{'Stopped' if status == 'Stopped' else 'Done'}', answer = ?, think = ?,"
                " sources = ?, engine = ?, answered_at = ?, ending = ? WHERE topic = ? AND seq = ?",
                *(answer_json, think_json, named, engine, now, ended, topic, seq),
            )
            if status != "Stopped":
                await self._renew(do, topic, now)
        return "accepted", seq

    async def _find_target(
        self, do: Transaction, topic: str, seq: int | None, text: str
    ) -> tuple[tuple[int, str, str | None, str | None] | None, Given]:
        """Return the query that an answer is for, or why none is."""
        # The topic's row is taken first, as everywhere, so that two answers at once take their turns; the queries'
        # with it, since what is read of a row that had to be waited for is as new as the row.
        rows = await do.rows(
            "SELECT query.seq, query.status, query.answer, query.think, query.text FROM topic"
            " JOIN query ON query.topic = topic.id WHERE topic.id = ? AND (query.seq = ? OR query.text = ?)"
            + self._database.for_update,
            *(topic, -1 if seq is None else seq, text),
        )
        for row in rows:
            if row[0] == seq and row[4] == text:
                return row[:4], "accepted"
        same = [row for row in rows if row[4] == text]
        if len(same) == 1:
            return same[0][:4], "accepted"
        return None, "conflict" if rows else "unknown"

    async def _renew(self, do: Transaction, topic: str, now: float) -> None:
        """Prolong the lease of a topic, or end it when nothing of it is being answered any more."""
        rows = await do.rows(
            "SELECT DISTINCT status FROM query WHERE topic = ? AND status IN ('Pending', 'Waiting')", topic
        )
        left = {str(row[0]) for row in rows}
        if "Waiting" in left:
            return  # the topic is parked until a person has answered
        if "Pending" in left:
            until = now + self.lease_s
            await do.execute(
                "UPDATE topic SET lease_until = ?, ready_at = ? WHERE id = ? AND lease IS NOT NULL",
                *(until, until, topic),
            )
        else:
            await open_again(do, topic)

    async def renew(self, topic: str, lease: str) -> bool:
        """Prolong a lease for an engine that is still at work; False when it is not the topic's any more."""
        until = self._database.clock() + self.lease_s
        return bool(
            await self._database.execute(
                "UPDATE topic SET lease_until = ?, ready_at = ? WHERE id = ? AND lease = ?",
                *(until, until, topic, lease),
            )
        )

    async def hand_back(self, topic: str, lease: str) -> bool:
        """Open again what an engine that stops did not answer; the attempt does not count."""
        async with self._database.transaction() as do:
            if not await has_lease(do, topic, lease):
                return False
            await take_back(do, topic)
            await open_again(do, topic)
        return True

    async def free_dead(self) -> int:
        """Open again what engines had inside of processes that are gone; return how many topics.

        Only where that is known: of processes of this machine. What was being searched keeps its attempt, since it may
        be what ended the process, and fails after too many; what waited behind it in the topic does not.
        """
        freed = 0
        leases = await self._database.rows("SELECT id, lease FROM topic WHERE lease LIKE ?", f"%{_OF}%")
        for topic, lease in leases:
            if not is_dead(lease.rpartition(_OF)[0], shared=bool(self._database.skip_locked)):
                continue
            async with self._database.transaction() as do:
                if not await has_lease(do, topic, lease):
                    continue
                pending = "topic = ? AND status = 'Pending'"
                await do.execute(
                    f"UPDATE query SET attempts = attempts - 1 WHERE {pending}"
                    f" AND seq > (SELECT min(seq) FROM query WHERE {pending})",
                    *(topic, topic),
                )
                await self.give_up(do, topic)
                await open_again(do, topic)
                freed += 1
        return freed

    async def _hand_back_lost(self, lease: str, until: float) -> None:
        """Hand back what was claimed under a lease that its engine never heard of."""
        row = await self._database.row(
            "SELECT id FROM topic WHERE engine IS NOT NULL AND ready_at = ? AND lease = ?", until, lease
        )
        if row is not None:
            await self.hand_back(str(row[0]), lease)

    async def ready(self, limit: int, *, trees: int = ALL) -> int:
        """Return how many topics there are to claim for an engine that has some trees, at most `limit`."""
        row = await self._database.row(
            f"SELECT (SELECT count(*) FROM topic WHERE {ENDED})"
            f" + (SELECT count(*) FROM (SELECT 1 FROM topic WHERE {OPEN} AND (trees & ?) = 0 LIMIT ?) AS open)",
            *(self._database.clock(), missing(trees), limit),
        )
        return min(limit, int(row[0])) if row else 0


async def remove_topic(do: Transaction, topic: str, owner: str) -> bool:
    """Do what `Queue.remove` does, as a part of a transaction."""
    row = await do.row("DELETE FROM topic WHERE id = ? AND owner = ? RETURNING asker", topic, owner)
    if row is None:
        return False
    for table in ("query", "progress", "chat"):
        await do.execute(f"DELETE FROM {table} WHERE topic = ?", topic)
    await forget_wishes(do, topic)
    await leave(do, row[0])
    return True


def _run() -> str:
    """Return the name of a run that no other has."""
    return f"query-{secrets.token_hex(10)}"


def query_of(row: Sequence[Any]) -> Query:
    """Return the query of a row of `COLUMNS`."""
    (
        topic,
        seq,
        text,
        status,
        answer,
        think,
        sources,
        model,
        modifiers,
        at,
        attempts,
        asks,
        run,
        ending,
        by,
    ) = row
    return Query(
        topic,
        int(seq),
        text,
        status,
        None if answer is None else json.loads(answer),
        None if think is None else json.loads(think),
        None if sources is None else json.loads(sources),
        model,
        json.loads(modifiers),
        at,
        int(attempts),
        asks_of(asks),
        run,
        Ending() if ending is None else Ending(**json.loads(ending)),
        by,
    )
