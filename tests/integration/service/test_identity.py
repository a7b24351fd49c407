"""A tree knows a service by its database, whatever the address: nothing is learned twice, and nothing is missed."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from metatree_agents.service._app import create_app
from metatree_agents.service.accounts.users import Users
from metatree_agents.service.database.backup import back_up, restore
from metatree_agents.service.database.database import ServiceDatabase
from metatree_agents.service.database.identity import Earlier, Identity, identity_of, rename
from metatree_agents.service.engine.client import ServiceClient, ServiceRefused
from metatree_agents.service.engine.memory import learn
from metatree_agents.service.queue.recommendations import Recommendations
from metatree_agents.service.settings import ServiceSettings

from metatree import Tree
from metatree.notes.notes import memories
from tests.real.postgres import Server

from .conftest import SECRETS, opened

pytestmark = pytest.mark.integration
Place = Callable[[], str]
NAME = "Inference_1"
SECRET = SECRETS[NAME][1]
HERE, THERE = "http://here", "http://there"


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.real)])
def new_place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Return a function that returns places where there is nothing yet."""

    def make() -> str:
        if request.param == "sqlite":
            return str(tmp_path / f"{secrets.token_hex(4)}.db")
        server: Server = request.getfixturevalue("postgres")
        return f"{server.address()}&schema=i_{secrets.token_hex(8)}"

    return make


@pytest.fixture
def tree() -> Iterator[Tree]:
    with Tree.create(":memory:") as made:
        yield made


@asynccontextmanager
async def service_of(place: str) -> AsyncIterator[ServiceDatabase]:
    kept = opened(place)
    await kept.start()
    try:
        yield kept
    finally:
        await kept.close()


async def recommend(kept: ServiceDatabase, *texts: str) -> None:
    for text in texts:
        await Recommendations(kept).add(
            topic="T", on_behalf_of="Ann", query="Who?", fragment=text, comment="", kind="Promote Answer"
        )


async def learnt(kept: ServiceDatabase, tree: Tree, address: str = HERE) -> int:
    """Let a tree learn from a service by some address; return how many recommendations came."""
    await Users(kept).add(NAME, "engine", secret=SECRET)
    transport = httpx2.ASGITransport(create_app(kept, ServiceSettings()))
    async with ServiceClient(address, NAME, SECRET, transport=transport) as client:
        return await learn(client, tree)


def texts_of(tree: Tree) -> set[str]:
    return {node.content or "" for node in memories(tree)}


def test_another_address_of_the_same_service_brings_nothing_again(new_place: Place, tree: Tree) -> None:
    async def run() -> list[int]:
        async with service_of(new_place()) as kept:
            await recommend(kept, "one", "two")
            return [await learnt(kept, tree, address) for address in (HERE, THERE)]

    assert asyncio.run(run()) == [2, 0]


def test_a_database_made_anew_at_the_same_address_is_learned_from_its_beginning(
    new_place: Place, tree: Tree
) -> None:
    async def run() -> list[int]:
        came = []
        for texts in (("one", "two"), ("three", "four")):
            async with service_of(new_place()) as kept:
                await recommend(kept, *texts)
                came.append(await learnt(kept, tree))
        return came

    assert asyncio.run(run()) == [2, 2]
    assert texts_of(tree) == {"one", "two", "three", "four"}


def test_a_memory_that_is_ahead_of_a_backup_misses_nothing_of_what_comes_after_it_was_restored(
    new_place: Place, tree: Tree, tmp_path: Path
) -> None:
    """Neither where it is restored elsewhere nor in its own place; and what was learned before does not come again."""
    file, first = tmp_path / "a.backup", new_place()

    async def run() -> list[int]:
        came = []
        async with service_of(first) as kept:
            await recommend(kept, "one", "two")
            await back_up(kept, file)
            await recommend(kept, "three", "four")
            came.append(await learnt(kept, tree))
        for place in (first, new_place()):
            async with service_of(place) as kept:
                await restore(file, kept, force=True)
                came.append(await learnt(kept, tree))
                await recommend(kept, f"five {place}", f"six {place}")
                came.append(await learnt(kept, tree))
        return came

    assert asyncio.run(run()) == [4, 0, 2, 0, 2]
    assert len(texts_of(tree)) == 8


def test_an_engine_that_goes_on_through_a_restore_asks_for_the_name_again(
    new_place: Place, tree: Tree, tmp_path: Path
) -> None:
    async def run() -> list[int]:
        async with service_of(new_place()) as kept:
            await Users(kept).add(NAME, "engine", secret=SECRET)
            await recommend(kept, "one")
            await back_up(kept, tmp_path / "a.backup")
            await recommend(kept, "two")
            transport = httpx2.ASGITransport(create_app(kept, ServiceSettings()))
            async with ServiceClient(HERE, NAME, SECRET, transport=transport) as client:
                came = [await learn(client, tree)]
                before = client.identity
                await restore(tmp_path / "a.backup", kept, force=True)
                await recommend(kept, "three")
                came.append(await learn(client, tree))
                assert client.identity != before
                return came

    assert asyncio.run(run()) == [2, 1]
    assert texts_of(tree) == {"one", "two", "three"}


@pytest.mark.parametrize(
    ("known", "after"),
    [
        ({}, 0),
        ({"now": 9}, 9),
        ({"b": 9}, 7),
        ({"b": 3}, 3),
        ({"a": 9}, 5),
        ({"a": 2, "b": 6}, 6),
        ({"x": 9}, 0),
    ],
)
def test_the_position_under_a_new_name_is_at_most_where_the_earlier_one_ended(
    known: dict[str, int], after: int
) -> None:
    assert Identity("now", (Earlier("b", 7), Earlier("a", 5))).position(known) == after
    assert Identity("now", (Earlier("b", 4), Earlier("a", 5))).position({"a": 9}) == 4


def test_a_recommendation_after_a_restore_is_not_sent_under_the_earlier_identity(
    new_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> tuple[list[str], int]:
        async with service_of(new_place()) as kept:
            await Users(kept).add(NAME, "engine", secret=SECRET)
            await recommend(kept, "before")
            named = (await identity_of(kept)).id
            rows = kept.rows

            async def rows_and_then_a_restore(sql: str, *values: Any) -> list[tuple[Any, ...]]:
                found = await rows(sql, *values)
                if "service_identity" in sql:
                    monkeypatch.setattr(kept, "rows", rows)
                    async with kept.transaction() as do:
                        await rename(do)
                    await recommend(kept, "after")
                return found

            monkeypatch.setattr(kept, "rows", rows_and_then_a_restore)
            transport = httpx2.ASGITransport(create_app(kept, ServiceSettings()))
            async with ServiceClient(HERE, NAME, SECRET, transport=transport) as client:
                told = await client.call("GET", "get-recommendations", After=0, Of=named)
                with pytest.raises(ServiceRefused) as refused:
                    await client.call("GET", "get-recommendations", After=2, Of=named)
            return [one["fragment"] for one in told], refused.value.status

    assert asyncio.run(run()) == (["before"], 409)
