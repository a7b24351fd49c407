"""API keys: random, kept as hashes, of one user, and gone with it."""

from __future__ import annotations

import asyncio
import re

import pytest
from metatree_agents.service.accounts.keys import Keys
from metatree_agents.service.accounts.users import Caller, Users
from metatree_agents.service.database.database import SqliteDatabase

from metatree.errors import UserError


def test_keys_are_kept_as_hashes_and_end_with_their_user() -> None:
    async def go() -> None:
        now = 1_000.0
        database = SqliteDatabase.open(":memory:")
        database.clock = lambda: now
        users, keys = Users(database), Keys(database)
        await users.add("Ann", "user")
        await users.add("Root", "admin")
        one, other, root = await keys.add("Ann"), await keys.add("Ann"), await keys.add("Root")
        assert re.fullmatch(r"mtk-[\w-]{43}", one), "256 bits"
        assert len({one, other, root}) == 3
        async with database.transaction() as do:
            rows = str(await do.rows("SELECT * FROM service_key"))
        assert not any(key in rows or key[4:] in rows for key in (one, other, root))
        assert await keys.verified(one) == Caller("Ann", "user")
        assert await keys.verified(root) == Caller("Root", "admin")
        for wrong in ("", "mtk-", one[:-1], one + "x", one.lower(), "\ud800"):
            assert await keys.verified(wrong) is None
        known = await keys.list("Ann")
        assert [(key.name, key.used_at) for key in known if key.used_at] == [("Ann", 1_000.0)]
        now = 1_030.0
        await keys.verified(one)
        assert {key.used_at for key in await keys.list("Ann")} == {None, 1_000.0}, "to the minute"
        (unused,) = (key.id for key in known if key.used_at is None)
        assert await keys.remove(unused) == "Ann"
        assert await keys.verified(other) is None
        with pytest.raises(UserError, match="no key"):
            await keys.remove(unused)
        await users.add("Ann", "frontend")
        assert await keys.verified(one) == Caller("Ann", "frontend"), "the role is the user's"
        await users.remove("Ann")
        await users.add("Ann", "user")
        assert await keys.verified(one) is None, "gone with its user"
        with pytest.raises(UserError, match="no user"):
            await keys.add("Nobody")
        await database.close()

    asyncio.run(go())
