"""Users and the proofs of their secrets, in a database in memory."""

from __future__ import annotations

import asyncio
import secrets

from metatree_agents.service.accounts.users import Users, proof
from metatree_agents.service.database.database import SqliteDatabase


def test_a_new_secret_forgets_the_nonces_of_the_old_one_and_of_nobody_else() -> None:
    async def check() -> None:
        database = SqliteDatabase.open(":memory:")
        await database.start()
        users = Users(database)

        async def nonces() -> dict[str, int]:
            return dict(await database.rows("SELECT name, count(*) FROM service_nonce GROUP BY name"))

        old = {name: await users.add(name, "engine") for name in ("ann", "bob")}
        used = {name: (nonce := secrets.token_hex(8), proof(name, nonce, old[name])) for name in old}
        for name, (nonce, digest) in used.items():
            assert await users.verified(name, nonce, digest)
        await users.add("ann", "user", secret=old["ann"])
        assert await nonces() == {"ann": 1, "bob": 1}, "the secret is the same, so its proofs are right still"
        await users.add("ann", "engine")
        assert await nonces() == {"bob": 1}
        assert not await users.verified("ann", *used["ann"])
        await database.close()

    asyncio.run(check())
