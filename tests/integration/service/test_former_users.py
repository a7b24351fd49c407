"""A name that somebody had before: nobody gets what they asked without somebody saying so."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest
from metatree_agents.cli._main import run
from metatree_agents.service.accounts.former_users import NameWasUsed, delete_left, left_by_all, left_under
from metatree_agents.service.accounts.users import Users
from metatree_agents.service.database.database import ServiceDatabase
from metatree_agents.service.queue.queue import Queue
from metatree_agents.service.queue.recommendations import MISSING, NO_TREE, Recommendations

from metatree.errors import UserError

from .conftest import opened

pytestmark = pytest.mark.integration
T = TypeVar("T")


def done(place: Path | str, what: Callable[[ServiceDatabase], Awaitable[T]]) -> T:
    async def do() -> T:
        database = opened(place)
        await database.start()
        try:
            return await what(database)
        finally:
            await database.close()

    return asyncio.run(do())


async def bob_left(database: ServiceDatabase) -> None:
    """Let Bob ask, recommend, and be taken out; Ann and a name that was never a user ask, too."""
    users, queue, said = Users(database), Queue(database), Recommendations(database)
    for name in ("Bob", "Ann"):
        await users.add(name, "user")
    for topic, owner in (("b1", "Bob"), ("b2", "Bob"), ("a1", "Ann"), ("g1", "Guest")):
        await queue.add(topic, owner, "What is my salary?")
    for topic, kind, tree in (("b1", "Promote Answer", 1), ("b1", MISSING, NO_TREE)):
        await said.add(
            topic=topic, on_behalf_of="Bob", query="q", fragment="f", comment="", kind=kind, tree=tree
        )
    await users.remove("Bob")


def test_a_name_that_was_used_is_given_only_with_a_choice(place: Path | str) -> None:
    async def tried(database: ServiceDatabase) -> None:
        users, queue = Users(database), Queue(database)
        await bob_left(database)
        assert [(left.name, left.topics) for left in await left_by_all(database, start=0, limit=9)] == [
            ("Bob", 2),
            ("Guest", 1),
        ]
        with pytest.raises(NameWasUsed, match="left 2 topics and 2 recommendations"):
            await users.add("Bob", "user")
        assert "Bob" not in [name for name, _, _ in await users.list()]
        await users.add("Guest", "user", topics="keep")
        assert list(await queue.topics("Guest")) == ["g1"]
        await users.add("Bob", "user", topics="delete")
        assert await queue.topics("Bob") == {} and list(await queue.topics("Ann")) == ["a1"]
        assert not await left_under(database, "Bob")
        assert [said.on_behalf_of for said in await Recommendations(database).standing(by=None)] == [
            "Bob (left)"
        ], "a tree has learned it: an administrator may take it back"
        await users.add("Bob", "user")  # a new secret: he is there
        with pytest.raises(UserError, match="is a user"):
            async with database.transaction() as do:
                await delete_left(do, "Ann")

    done(place, tried)


def test_the_command_line_asks_what_becomes_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = tmp_path / "service.db"
    done(where, bob_left)
    add = ["service", "users", "add", "Bob", "--database", str(where)]
    assert run(add) == 2
    said = capsys.readouterr().err
    assert "Bob was here before and left 2 topics" in said and "keep" in said and "delete" in said
    assert "--topics" in said
    assert run([*add, "--topics", "away"]) == 2
    assert "keep or delete" in capsys.readouterr().err
    assert run([*add, "--topics", "delete"]) == 0
    assert done(where, lambda database: Queue(database).topics("Bob")) == {}
    capsys.readouterr()
    assert run([*add, "--role", "engine"]) == 0
    assert "was of role user, and is of role engine now, who cannot log in" in capsys.readouterr().err
