"""Who asks takes turns: many questions of one do not keep out another's, and what a claim costs is counted in steps."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import psycopg
import pytest
from metatree_agents.service.database.database import ServiceDatabase, SqliteDatabase
from metatree_agents.service.database.schema import SERVICE
from metatree_agents.service.queue.queue import _CLAIM, Queue
from metatree_agents.service.queue.turns import QUERIES

from metatree.storage.postgres import numbered
from metatree.storage.schema import SQLITE, run_steps
from metatree.storage.store import Store
from tests.integration.service.conftest import opened
from tests.real.postgres import Server

T = TypeVar("T")
Do = Callable[[Callable[[Queue], Awaitable[T]]], T]


@pytest.fixture
def do(place: Path | str) -> Do[Any]:
    """Return a function that does something with a queue, and returns what came of it."""

    def run(what: Callable[[Queue], Awaitable[T]]) -> T:
        async def within() -> T:
            database = opened(place)
            await database.start()
            try:
                return await what(Queue(database))
            finally:
                await database.close()

        return asyncio.run(within())

    return run


async def topic_of_claim(queue: Queue, *, answered: bool = True) -> str | None:
    claim = await queue.claim("e")
    if claim is None:
        return None
    for query in claim.queries if answered else ():
        await queue.answer(claim.topic, query.text, seq=query.seq, answer=["a"], engine="e")
    return claim.topic


def test_many_topics_of_one_do_not_keep_out_anothers_question(do: Do[list[str | None]]) -> None:
    async def what(queue: Queue) -> list[str | None]:
        for number in range(24):
            await queue.add(f"many{number:02}", "ann", "a long question")
        first = await topic_of_claim(queue)
        await queue.add("one", "ben", "a question")
        await queue.add("two", "ben", "another")
        return [first, *[await topic_of_claim(queue) for _ in range(5)]]

    assert do(what) == ["many00", "many01", "one", "many02", "two", "many03"]


def test_many_queries_in_one_topic_do_not_either(do: Do[list[str | None]]) -> None:
    async def what(queue: Queue) -> list[str | None]:
        for number in range(3 * QUERIES):
            await queue.add("many", "ann", f"question {number}")
        await queue.add("one", "ben", "a question")
        return [await topic_of_claim(queue) for _ in range(5)]

    assert do(what) == ["many", "one", "many", "many", None]


def test_who_has_fewest_topics_worked_on_is_next_whoever_was_longest_ago(do: Do[str | None]) -> None:
    async def what(queue: Queue) -> str | None:
        for topic, owner in (("A", "ann"), ("B", "ben"), ("A2", "ann"), ("B2", "ben")):
            await queue.add(topic, owner, "q")
        assert await topic_of_claim(queue, answered=False) == "A"
        assert await topic_of_claim(queue) == "B"
        return await topic_of_claim(
            queue
        )  # ann's turn was before ben's, and her first topic is still worked on

    assert do(what) == "B2"


def test_deleting_topics_gives_nobody_a_turn(do: Do[str | None]) -> None:
    async def what(queue: Queue) -> str | None:
        for topic, owner in (("A", "ann"), ("A2", "ann"), ("B", "ben"), ("B2", "ben")):
            await queue.add(topic, owner, "q")
        assert [await topic_of_claim(queue, answered=False) for _ in range(2)] == ["A", "B"]
        await queue.remove("A", "ann")
        await queue.remove("B", "ben")
        await queue.add("A0", "ann", "q")
        assert await topic_of_claim(queue) == "A2", "nobody has a topic, and ann's turn was before ben's"
        return await topic_of_claim(queue)

    assert do(what) == "B2"


def test_who_asks_in_topics_of_others_has_their_own_turns(do: Do[list[str | None]]) -> None:
    async def what(queue: Queue) -> list[str | None]:
        queue.shared = True
        for number in range(4):
            await queue.add(f"T{number}", f"owner{number}", "q")
            assert await topic_of_claim(queue) == f"T{number}"
        for number in range(4):
            await queue.add(f"T{number}", "ann", "q")
        await queue.add("one", "ben", "q")
        return [await topic_of_claim(queue) for _ in range(3)]

    # Neither had a turn, and ann's question came first; the turns that the owners had are not hers.
    assert do(what) == ["T0", "one", "T1"]


async def _filled(queue: Queue, many: int, others: int) -> None:
    for number in range(many):
        await queue.add(f"many{number}", "ann", "q")
    for number in range(others):
        await queue.add(f"other{number}", f"user{number}", "q")


def _steps(database: ServiceDatabase, do: Callable[[], Any]) -> int:
    """Return how many steps of its machine SQLite takes for something."""
    assert isinstance(database, SqliteDatabase)
    steps = [0]

    def step() -> int:
        steps[0] += 1
        return 0

    connection = database._store._connection
    connection.set_progress_handler(step, 1)
    try:
        do()
    finally:
        connection.set_progress_handler(None, 0)
    return steps[0]


def test_a_claim_takes_as_many_steps_with_ten_thousand_queries() -> None:
    def claims(many: int, others: int) -> list[int]:
        loop = asyncio.new_event_loop()
        database = SqliteDatabase(_memory())
        queue = Queue(database)
        loop.run_until_complete(_filled(queue, many, others))
        taken = [_steps(database, lambda: loop.run_until_complete(queue.claim("e"))) for _ in range(7)]
        loop.run_until_complete(database.close())
        loop.close()
        return taken

    few = claims(20, 20)
    for many, others in ((10_000, 20), (20, 5_000)):
        taken = claims(many, others)
        for held in (slice(0, 3), slice(4, 7)):
            assert max(taken[held]) <= 1.1 * max(few[held]), (many, others, held)


def _memory() -> Store:
    store = Store.open(":memory:")
    run_steps(SERVICE.bring_up_to_date(SQLITE, store.name), store.rows)
    return store


@pytest.mark.real
def test_a_claim_reads_few_pages_of_postgres(postgres: Server) -> None:
    """By the plan that was made while the tables were empty, which servers keep."""
    place = f"{postgres.address()}&schema=turns_cost"

    async def fill() -> None:
        database = opened(place)
        await database.start()
        await _filled(Queue(database), 10_000, 1_000)
        await database.close()

    async def start() -> None:
        database = opened(place)
        await database.start()
        await database.close()

    asyncio.run(start())
    with psycopg.connect(postgres.address(), autocommit=True) as connection:
        connection.execute("SET search_path TO turns_cost")
        connection.execute("SET plan_cache_mode TO force_generic_plan")
        for table in ("topic", "turn", "query"):  # its statistics would have another plan made
            connection.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = off)")
        types = "(double precision, text, text, double precision, bigint)"
        connection.execute(f"PREPARE claim {types} AS {numbered(_CLAIM).decode()}")
        for number in range(6):
            connection.execute(f"EXECUTE claim(1, 'e', 'l{number}', 2, 0)")
        asyncio.run(fill())
        explained = "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE claim(1, 'e', 'lease', 2, 0)"
        row = connection.execute(explained).fetchone()
    assert row is not None
    (plan,) = row[0] if isinstance(row[0], list) else json.loads(row[0])
    pages = plan["Plan"]["Shared Hit Blocks"] + plan["Plan"]["Shared Read Blocks"]
    assert pages < 300, json.dumps(plan, indent=1)
