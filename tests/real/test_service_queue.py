"""The queue of the service on PostgreSQL: the same state machine, and what several connections may do to each other."""

from __future__ import annotations

import asyncio
import itertools
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from time import time
from typing import Any, TypeVar

import psycopg
import pytest
from hypothesis import settings
from metatree_agents.service.accounts.users import Users, proof
from metatree_agents.service.database.database import QueueChange, ServiceDatabase, Transaction
from metatree_agents.service.database.postgres import PostgresDatabase, _Statements
from metatree_agents.service.database.schema import SERVICE
from metatree_agents.service.openai.conversations import Conversation, Conversations
from metatree_agents.service.queue import _postgres_statements as postgres_statements
from metatree_agents.service.queue._postgres_statements import ANSWER
from metatree_agents.service.queue.lookups import Lookups
from metatree_agents.service.queue.progress import Progress
from metatree_agents.service.queue.queue import _CLAIM as CLAIM
from metatree_agents.service.queue.queue import Claim, Queue
from metatree_agents.service.queue.recommendations import Recommendations

from metatree.errors import BrokenStore, TransientError, UserError
from tests.profiles import examples
from tests.real.postgres import Server, serving
from tests.unit.agents.service.queue.test_queue import QueueMachine

pytestmark = pytest.mark.real
T = TypeVar("T")
SERVER: list[Server] = []


@pytest.fixture(scope="module", autouse=True)
def server() -> Iterator[Server]:
    with serving() as running:
        SERVER.append(running)
        yield running
        SERVER.clear()


@pytest.fixture
def place(server: Server) -> str:
    """A schema of its own."""
    return f"{server.address()}&schema=t_{secrets.token_hex(8)}"


class PostgresMachine(QueueMachine):
    """Random callers and engines on PostgreSQL, in a schema that is emptied for each run."""

    def open_database(self) -> ServiceDatabase:
        with psycopg.connect(SERVER[0].address(), autocommit=True) as connection:
            connection.execute("DROP SCHEMA IF EXISTS machine CASCADE")
        return PostgresDatabase(SERVER[0].address() + "&schema=machine")


PostgresMachine.TestCase.settings = settings(max_examples=examples(15), stateful_step_count=40)
TestQueueOnPostgres = PostgresMachine.TestCase


@asynccontextmanager
async def opened(place: str, **given: Any) -> AsyncIterator[PostgresDatabase]:
    database = PostgresDatabase(place, **given)
    await database.start()
    try:
        yield database
    finally:
        await database.close()


@asynccontextmanager
async def pair(place: str) -> AsyncIterator[tuple[PostgresDatabase, PostgresDatabase]]:
    """Two servers' databases, which start at the same time."""
    one, two = PostgresDatabase(place), PostgresDatabase(place)
    await asyncio.gather(one.start(), two.start())
    try:
        yield one, two
    finally:
        await one.close()
        await two.close()


async def waits_for_a_lock(database: PostgresDatabase) -> None:
    """Return once a statement of this service waits for a row or an advisory lock."""
    for _ in range(2_000):
        found = await database.row("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
        if found and found[0]:
            return
    raise AssertionError("nothing waits")


def test_numbers_are_dense_and_no_topic_is_held_twice(place: str) -> None:
    async def run() -> None:
        async with pair(place) as databases:
            queues = [Queue(database) for database in databases]

            async def ask(number: int) -> list[int]:
                return [(await queues[number % 2].add(f"T{number % 3}", "ann", "q"))[0] for _ in range(10)]

            seqs = await asyncio.gather(*(ask(number) for number in range(18)))
            assert sorted(itertools.chain(*seqs)) == sorted([*range(1, 61)] * 3)
            for number in range(40):
                await queues[0].add(f"U{number}", "ann", "q")
            claims = await asyncio.gather(*(queues[n % 2].claim(f"e{n}") for n in range(60)))
            topics = [claim.topic for claim in claims if claim]
            assert len(topics) == len(set(topics)) == 43, "each once, and none passed over"

    asyncio.run(run())


def test_one_first_answer_wins(place: str) -> None:
    async def run() -> None:
        async with pair(place) as databases:
            queues = [Queue(database) for database in databases]
            for number in range(10):
                await queues[0].add(f"T{number}", "ann", "q")
                became = await asyncio.gather(
                    *(
                        queues[n % 2].answer(f"T{number}", "q", seq=1, answer=[str(n)], engine="e")
                        for n in range(6)
                    )
                )
                assert sorted(became) == [("accepted", 1)] + [("conflict", 1)] * 5
                thread = await queues[1].thread(f"T{number}")
                assert thread[0].answer == [str(became.index(("accepted", 1)))]

    asyncio.run(run())


def test_a_topic_that_somebody_only_looks_at_is_waited_for(place: str) -> None:
    """Otherwise the engine goes to sleep, and nobody is woken when the transaction is rolled back."""

    async def run() -> Claim | None:
        async with opened(place) as database, opened(place) as other:
            queue = Queue(database)
            await queue.add("T", "ann", "q")
            async with other.transaction() as do:
                await do.row("SELECT 1 FROM topic WHERE id = 'T'" + other.for_update)
                claiming = asyncio.ensure_future(queue.claim("e"))
                await waits_for_a_lock(database)
                assert [await queue.claim("e") for _ in range(20)] == [None] * 20, "one alone waits"
                assert not claiming.done()
            return await claiming

    claim = asyncio.run(run())
    assert claim is not None and claim.topic == "T"


GATE = "(SELECT pg_advisory_xact_lock_shared(7)::text IS NOT NULL)"
"""A condition that is waited for inside a statement, after its snapshot was taken."""


@asynccontextmanager
async def overtaken(database: PostgresDatabase, what: Awaitable[T]) -> AsyncIterator[asyncio.Future[T]]:
    """Begin something that comes to the gate; what the block does happens between its snapshot and its first row."""
    async with database.transaction() as do:
        await do.row("SELECT pg_advisory_xact_lock(7)")
        begun = asyncio.ensure_future(what)
        await waits_for_a_lock(database)
        yield begun


def test_a_claim_gives_out_what_came_after_its_snapshot(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that it could see as open was answered meanwhile, and another query came, which must not wait for a lease."""

    async def run() -> Claim | None:
        async with opened(place) as database:
            queue = Queue(database)
            await queue.add("T", "ann", "seen")
            gated = CLAIM.replace("ORDER BY ready_at", f"AND {GATE} ORDER BY ready_at")
            with monkeypatch.context() as patch:
                patch.setattr("metatree_agents.service.queue.queue._CLAIM", gated)
                claiming: Awaitable[Claim | None] = queue.claim("late")
                async with overtaken(database, claiming) as begun:
                    patch.undo()
                    assert await queue.claim("e") is not None
                    await queue.answer("T", "seen", seq=1, answer=["a"], engine="e")
                    await queue.add("T", "ann", "unseen")
                return await begun

    claim = asyncio.run(run())
    assert claim is not None and [(q.seq, q.text, q.attempts) for q in claim.queries] == [(2, "unseen", 1)]


def test_a_claim_passes_no_query_over_that_was_opened_again_after_its_snapshot(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under a lease that has ended the first query still is being answered, in what the claim sees."""

    async def run() -> Claim | None:
        async with opened(place) as database:
            now = [1000.0]
            database.clock = lambda: now[0]
            queue = Queue(database)
            await queue.add("T", "ann", "one")
            slow = await queue.claim("slow")
            assert slow is not None
            await queue.add("T", "ann", "two")
            now[0] += queue.lease_s
            gated = CLAIM.replace("ready_at <= $1", f"ready_at <= $1 AND {GATE}")
            with monkeypatch.context() as patch:
                patch.setattr("metatree_agents.service.queue.queue._CLAIM", gated)
                claiming: Awaitable[Claim | None] = queue.claim("e")
                async with overtaken(database, claiming) as begun:
                    patch.undo()
                    assert await queue.hand_back("T", slow.lease)
                return await begun

    claim = asyncio.run(run())
    assert claim is not None and [(q.seq, q.attempts) for q in claim.queries] == [(1, 1), (2, 1)]


@pytest.mark.parametrize("meanwhile", ["an answer", "a query", "the same answer", "deleted"])
def test_an_answer_sees_what_came_after_its_snapshot(
    place: str, monkeypatch: pytest.MonkeyPatch, meanwhile: str
) -> None:
    async def run() -> None:
        async with opened(place) as database:
            queue = Queue(database)
            await queue.add("T", "ann", "one")
            if meanwhile == "an answer":
                await queue.add("T", "ann", "two")
            claim = await queue.claim("e")
            assert claim is not None
            with monkeypatch.context() as patch:
                patch.setattr(
                    postgres_statements,
                    "ANSWER",
                    ANSWER.replace("WHERE id = $1)", f"WHERE id = $1 AND {GATE})"),
                )
                answering = queue.answer("T", "one", seq=1, answer=["a"], engine="e")
                async with overtaken(database, answering) as begun:
                    patch.undo()
                    if meanwhile == "an answer":
                        await queue.answer("T", "two", seq=2, answer=["a"], engine="e")
                    elif meanwhile == "a query":
                        await queue.add("T", "ann", "two")
                    elif meanwhile == "deleted":
                        await queue.remove("T", "ann")
                    else:
                        await queue.answer("T", "one", seq=1, answer=["b"], engine="e")
                became = {"the same answer": ("conflict", 1), "deleted": ("unknown", 0)}
                assert await begun == became.get(meanwhile, ("accepted", 1))
            found = await database.row("SELECT lease, ready_at IS NOT NULL FROM topic")
            assert found == (None if meanwhile == "deleted" else (None, meanwhile == "a query"))
            assert (await queue.claim("e") is not None) is (meanwhile == "a query")

    asyncio.run(run())


def test_a_job_takes_one_statement_for_each_step(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        async with opened(place) as database:
            queue = Queue(database)
            ran: list[str] = []
            execute = _Statements.execute, _Statements.rows

            async def counted(self: _Statements, sql: str, *values: Any) -> Any:
                ran.append(sql)
                return await execute[0](self, sql, *values)

            async def read(self: _Statements, sql: str, *values: Any) -> Any:
                ran.append(sql)
                return await execute[1](self, sql, *values)

            monkeypatch.setattr(_Statements, "execute", counted)
            monkeypatch.setattr(_Statements, "rows", read)
            await queue.add("T", "ann", "q")
            claim = await queue.claim("e")
            assert claim is not None and len(claim.queries) == 1
            assert await queue.answer("T", "q", seq=1, answer=["a"], engine="e") == ("accepted", 1)
            assert len(ran) == 3

    asyncio.run(run())


def test_a_claim_that_is_cancelled_at_its_end_is_handed_back(place: str) -> None:
    async def run() -> None:
        async with opened(place) as database:
            queue = Queue(database)
            for number in range(20):
                await queue.add("T", "ann", f"q{number}")
            cut = 0
            for steps in range(1, 60):
                claiming = asyncio.ensure_future(queue.claim("e"))
                for _ in range(steps):
                    await asyncio.sleep(0)
                claiming.cancel()
                try:
                    claim = await claiming
                except asyncio.CancelledError:
                    cut += 1
                else:
                    assert claim is not None
                    await queue.hand_back("T", claim.lease)
                thread = await queue.thread("T")
                assert {(query.status, query.attempts) for query in thread} == {("Open", 0)}
            assert cut, "none was cancelled in time"

    asyncio.run(run())


def test_deleting_leaves_nothing_behind(place: str) -> None:
    async def run() -> None:
        async with pair(place) as (one, two):
            queue, other = Queue(one), Queue(two)
            progress, lookups = Progress(two), Lookups(two)
            for _ in range(15):
                await queue.add("T", "ann", "q")
                await asyncio.gather(
                    progress.add("T", 1, [{"Event": "read"}] * 3),
                    other.claim("e"),
                    queue.remove("T", "ann"),
                    lookups.add("T", 1, "fragment", 5, 1.0),
                    progress.add("T", 1, [{"Event": "read"}]),
                    other.answer("T", "q", seq=1, answer=["a"], engine="e"),
                )
                for table in ("topic", "query", "progress", "lookup_wish"):
                    assert await one.rows(f"SELECT * FROM {table}") == [], table

    asyncio.run(run())


def test_one_lookup_of_a_fingerprint_is_out_and_its_first_matches_stay(place: str) -> None:
    async def run() -> None:
        async with pair(place) as databases:
            queue, lookups = Queue(databases[0]), [Lookups(database) for database in databases]
            await queue.add("T", "ann", "q")
            for count in range(1, 4):
                await lookups[0].add("T", 1, "fragment", count, 1.0)
            for count in range(1, 4):
                claims = await asyncio.gather(*(lookups[n % 2].claim(f"e{n}") for n in range(8)))
                assert [claim.count for claim in claims if claim] == [count]
                mark = next(claim.fingerprint for claim in claims if claim)
                given = await asyncio.gather(*(lookups[n % 2].give(mark, [f"{count} {n}"]) for n in range(4)))
                assert given.count(True) == 1
                (found,) = await lookups[0].of_topic("T")
                assert found["Fragments"][count - 1] == {"fragment": [f"{count} {given.index(True)}"]}

    asyncio.run(run())


@pytest.mark.parametrize("kind", ["recommendations", "progress"])
def test_who_asks_for_what_came_after_a_number_misses_nothing(place: str, kind: str) -> None:
    async def run() -> None:
        async with pair(place) as databases:
            await Queue(databases[0]).add("T", "ann", "q")

            def adding(database: ServiceDatabase, said: str) -> Awaitable[Any]:
                if kind == "progress":
                    return Progress(database).add("T", 1, [{"Text": said}])
                return Recommendations(database).add(
                    topic="T", on_behalf_of="a", query="q", fragment=said, comment="", kind="Promote Answer"
                )

            async def read(last: int) -> list[int]:
                if kind == "progress":
                    return [number for number, _ in await Progress(databases[1]).after("T", 1, last)]
                return [one.number for one in (await Recommendations(databases[1]).after(last))[1]]

            async def write(number: int) -> None:
                for each in range(15):
                    await adding(databases[number % 2], str(each))

            writing = asyncio.gather(*(write(number) for number in range(8)))
            seen: list[int] = []
            while not writing.done():
                seen += await read(seen[-1] if seen else 0)
            await writing
            seen += await read(seen[-1] if seen else 0)
            assert len(seen) == 120

    asyncio.run(run())


def test_a_nonce_is_used_once_however_many_try(place: str) -> None:
    async def run() -> None:
        async with pair(place) as databases:
            secret = await Users(databases[0]).add("ann", "user")
            users = [Users(database) for database in databases]
            for number in range(10):
                nonce = f"nonce-{number:04}"
                found = await asyncio.gather(
                    *(users[n % 2].verified("ann", nonce, proof("ann", nonce, secret)) for n in range(8))
                )
                assert len([caller for caller in found if caller]) == 1

    asyncio.run(run())


def test_first_users_are_made_once_and_own_users_have_one_secret(place: str) -> None:
    async def run() -> None:
        async with pair(place) as databases:
            users = [Users(database) for database in databases]
            made = await asyncio.gather(*(each.first({"admin": "admin"}) for each in users * 3))
            assert sorted(map(len, made)) == [0] * 5 + [1]
            own = await asyncio.gather(*(each.own("inside", "engine") for each in users * 3))
            assert len(set(own)) == 1

    asyncio.run(run())


def test_what_happens_is_heard_by_others_and_only_when_it_is_kept(place: str) -> None:
    async def run() -> None:
        async with pair(place) as (one, two):
            heard: asyncio.Queue[QueueChange | None] = asyncio.Queue()
            watching = asyncio.ensure_future(two.watch(heard.put_nowait))
            assert await heard.get() is None, "it listens from now on"
            queue = Queue(one)
            topic = "DGQIn+5 tröxI"
            await queue.add(topic, "ann", "q")
            assert await heard.get() == QueueChange()
            await queue.add(topic, "ann", "q2")  # could be claimed before
            claim = await queue.claim("e")
            assert claim is not None
            await Progress(one).add(topic, 2, [{"Event": "read"}, {"Event": "read"}])
            assert await heard.get() == QueueChange((topic, 2))
            with pytest.raises(ZeroDivisionError):
                async with one.transaction() as do:
                    await do.execute("UPDATE query SET status = 'Done' WHERE seq = ?", 1)
                    raise ZeroDivisionError
            await queue.answer(topic, "q", seq=1, answer=["a"], engine="e")
            assert await heard.get() == QueueChange((topic, 1))
            await queue.hand_back(topic, claim.lease)
            assert await heard.get() == QueueChange()
            await queue.add("x" * 8_000, "ann", "q")
            assert await heard.get() == QueueChange()
            await queue.answer("x" * 8_000, "q", seq=1, answer=["a"], engine="e")
            assert await heard.get() is None, "too long to be told"
            await Queue(two).add("own", "ann", "q")
            await Queue(two).answer("own", "q", seq=1, answer=["a"], engine="e")
            assert await heard.get() == QueueChange(("own", 1)), "own topics are known already"
            assert heard.empty()
            watching.cancel()

    asyncio.run(run())


def test_connections_that_are_lost_are_replaced_without_a_word(place: str, server: Server) -> None:
    async def run() -> None:
        async with opened(place, connections=4) as database:
            queue = Queue(database)
            heard: asyncio.Queue[QueueChange | None] = asyncio.Queue()
            watching = asyncio.ensure_future(database.watch(heard.put_nowait))
            await asyncio.gather(*(queue.add("T", "ann", "q") for _ in range(8)))
            while await heard.get() is not None:
                pass
            terminate(server)
            assert await heard.get() is None, "it listens again"
            done = await asyncio.gather(*(queue.add("T", "ann", "q") for _ in range(8)))
            assert sorted(seq for seq, _ in done) == list(range(9, 17))
            server.stop()
            adding = asyncio.ensure_future(queue.add("T", "ann", "q"))
            await asyncio.sleep(0)
            await asyncio.to_thread(server.start)
            assert (await adding)[0] == 17
            watching.cancel()

    asyncio.run(run())


def test_a_transaction_that_is_cut_off_keeps_nothing(place: str, server: Server) -> None:
    async def run() -> None:
        async with opened(place) as database:
            with pytest.raises(TransientError, match="try again"):
                async with database.transaction() as do:
                    await do.execute("INSERT INTO service_nonce(name, nonce) VALUES ('a', 'b')")
                    terminate(server)
                    await do.execute("INSERT INTO service_nonce(name, nonce) VALUES ('a', 'c')")
            with pytest.raises(TransientError):
                async with database.transaction() as do:
                    await do.execute("INSERT INTO service_nonce(name, nonce) VALUES ('a', 'd')")
                    with pytest.raises(psycopg.Error):
                        await do.execute("SELECT 1 / 0")
            assert await database.rows("SELECT * FROM service_nonce") == []

    asyncio.run(run())


def terminate(server: Server) -> None:
    with psycopg.connect(server.address(), autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE application_name = 'metatree' AND pid <> pg_backend_pid()"
        )


def test_times_are_the_servers_and_the_very_same_where_clocks_agree(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run(wrong_s: float) -> float:
        with monkeypatch.context() as patch:
            patch.setattr("metatree_agents.service.database.postgres.time.time", lambda: time() + wrong_s)
            async with opened(place) as database:
                return database.clock() - time()

    for wrong_s in (0.0, 400.0, -86_400.0):
        assert abs(asyncio.run(run(wrong_s))) < 5
    assert abs(asyncio.run(run(0.0))) < 1e-3


def test_what_cannot_be_kept_is_said(place: str, server: Server) -> None:
    async def run() -> None:
        async with opened(place) as database:
            with pytest.raises(UserError, match="cannot keep a value"):
                await Queue(database).add("T", "ann", "zero \0")
            await Queue(database).add("T", "ann", "all else: \x01 \U0001f600 \ufffe")

    asyncio.run(run())


REFUSALS: list[tuple[Callable[[Server], str], str]] = [
    (lambda server: "postgresql://u:s3cret@127.0.0.1:1/d", "check the address, that the server runs"),
    (lambda server: server.address("nothing"), 'database "nothing" does not exist; check the address'),
    (lambda server: server.address(user="reader"), "may not make a schema"),
    (lambda server: server.address("latin"), "is in LATIN1: make one with the encoding UTF8"),
    (lambda server: server.address(user="nobody"), 'role "nobody" does not exist'),
]


@pytest.mark.parametrize(("address", "said"), REFUSALS)
def test_a_database_that_cannot_be_used(server: Server, address: Callable[[Server], str], said: str) -> None:
    with psycopg.connect(server.address(), autocommit=True) as connection:
        if not connection.execute("SELECT FROM pg_roles WHERE rolname = 'reader'").fetchall():
            connection.execute("CREATE ROLE reader LOGIN")
            connection.execute("CREATE DATABASE latin ENCODING LATIN1 LOCALE 'C' TEMPLATE template0")

    async def run() -> None:
        async with opened(address(server)):
            pass

    with pytest.raises(UserError, match=said) as caught:
        asyncio.run(run())
    assert "s3cret" not in str(caught.value)


def test_tables_of_another_version_are_left_alone(place: str) -> None:
    async def run() -> None:
        with pytest.raises(UserError, match="there is no service in the schema"):
            async with opened(place, create=False):
                pass
        for version in (99, 12):
            async with opened(place) as database:
                await database.execute("UPDATE service_schema SET version = ?", version)
            with pytest.raises(
                BrokenStore, match=f"the service in .* has schema {version}, this version"
            ) as caught:
                async with opened(place):
                    pass
            assert caught.value.reason == ("newer" if version == 99 else "older")
            with psycopg.connect(SERVER[0].address(), autocommit=True) as admin:
                admin.execute(
                    f'UPDATE "{place.rpartition("=")[2]}".service_schema SET version = {SERVICE.version}'
                )

    asyncio.run(run())


class Interrupted(PostgresDatabase):
    """Lets something else happen after so many reads of its first transaction."""

    def __init__(self, place: str, reads: int, meanwhile: Callable[[], Awaitable[Any]]) -> None:
        super().__init__(place)
        self.reads = reads
        self.meanwhile = meanwhile

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        async with super().transaction() as do:
            yield Reading(do, self)


class Reading:
    """The transaction that is interrupted."""

    def __init__(self, do: Transaction, database: Interrupted) -> None:
        self._do = do
        self._database = database
        self.execute, self.rows, self.alone = do.execute, do.rows, do.alone

    async def row(self, sql: str, *values: Any) -> tuple[Any, ...] | None:
        found = await self._do.row(sql, *values)
        self._database.reads -= 1
        if self._database.reads == 0:
            await self._database.meanwhile()
        return found


@pytest.mark.parametrize("reads", [1, 2])
def test_the_same_chat_request_is_one_query_wherever_the_other_comes_in_between(
    place: str, reads: int
) -> None:
    said = Conversation("Once?")

    async def run() -> None:
        async with opened(place) as database:
            other = Conversations(database, Queue(database))
            interrupted = Interrupted(place, reads, lambda: other.place("ann", said))
            await interrupted.start()
            try:
                mine = await Conversations(interrupted, Queue(interrupted)).place("ann", said)
            finally:
                await interrupted.close()
            assert interrupted.reads <= 0 and mine.joined
            assert await database.rows("SELECT id FROM topic") == [(mine.topic,)]
            assert mine == await other.place("ann", said)

    asyncio.run(run())
