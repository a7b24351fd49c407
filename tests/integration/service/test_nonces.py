"""Nonces with a time are good once within it, and their rows go; those without one are kept for ever."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import requests
from metatree_agents.service.accounts.nonces import FORGET_S, WINDOW_S, timed_nonce
from metatree_agents.service.accounts.users import Users, proof
from metatree_agents.service.database.database import ServiceDatabase
from metatree_agents.service.engine.client import ServiceClient

from tests.integration.service.conftest import SECRETS, Served, opened
from tests.integration.service.conftest import proof as seeds_proof

SECRET = "s" * 24
START_S = 1_700_000_000.0


class Servers:
    """The users of two servers on one database, and the time that both see."""

    def __init__(self, databases: list[ServiceDatabase]) -> None:
        self.now = START_S
        self.database = databases[0]
        for database in databases:
            database.clock = lambda: self.now
        self.users = [Users(database) for database in databases]

    async def accept(self, nonce: str, at: int = 0) -> bool:
        """Say whether a server accepts a proof with this nonce."""
        return await self.users[at].verified("ann", nonce, proof("ann", nonce, SECRET)) is not None

    async def rows(self) -> int:
        row = await self.database.row("SELECT count(*) FROM service_nonce")
        assert row is not None
        return int(row[0])


def tried(place: Path | str, what: Callable[[Servers], Awaitable[None]]) -> None:
    """Do something with two servers that have just started."""

    async def run() -> None:
        databases = [opened(place), opened(place)]
        for database in databases:
            await database.start()
        try:
            servers = Servers(databases)
            await servers.users[0].add("ann", "engine", secret=SECRET)
            await what(servers)
        finally:
            for database in databases:
                await database.close()

    asyncio.run(run())


def test_a_nonce_with_a_time_is_good_once_and_only_in_its_time(place: Path | str) -> None:
    async def what(servers: Servers) -> None:
        nonce = timed_nonce(servers.now)
        assert await servers.accept(nonce)
        for seconds in (0.0, WINDOW_S - 1, 2.0, WINDOW_S, 10 * WINDOW_S):
            servers.now += seconds
            for _ in range(2):
                assert not await servers.accept(nonce, 0), "sent again"
                assert not await servers.accept(nonce, 1), "sent again, to the other server"
                await servers.accept(timed_nonce(servers.now))  # forgets what is over

    tried(place, what)


@pytest.mark.parametrize(("off_s", "good"), [(-301, False), (-299, True), (299, True), (301, False)])
def test_clocks_may_differ_by_five_minutes(place: Path | str, off_s: float, good: bool) -> None:
    async def what(servers: Servers) -> None:
        assert await servers.accept(timed_nonce(servers.now + off_s)) is good

    tried(place, what)


def test_a_nonce_that_was_forgotten_is_refused_after_a_restart_and_when_the_clock_goes_back(
    place: Path | str,
) -> None:
    nonces: list[str] = []

    async def before(servers: Servers) -> None:
        nonces.append(timed_nonce(servers.now))
        assert await servers.accept(nonces[0])
        servers.now += WINDOW_S + 2 * FORGET_S
        assert await servers.accept(timed_nonce(servers.now))
        assert await servers.rows() == 1, "it is forgotten"

    async def after(servers: Servers) -> None:
        assert not await servers.accept(nonces[0]) and not await servers.accept(nonces[0], 1)
        servers.now += WINDOW_S + FORGET_S
        assert await servers.accept(timed_nonce(servers.now))

    tried(place, before)
    tried(place, after)


def test_nonces_without_a_time_are_good_once_for_ever(place: Path | str) -> None:
    async def what(servers: Servers) -> None:
        kept = [
            secrets.token_hex(8),
            "metatree.17",
            f"metatree.{int(START_S)}.short",
            f"x{timed_nonce(START_S)}",
        ]
        for nonce in kept:
            assert await servers.accept(nonce)
        for _ in range(20):
            servers.now += 10 * WINDOW_S
            assert await servers.accept(timed_nonce(servers.now))
            assert not any([await servers.accept(nonce, 1) for nonce in kept])
        assert await servers.rows() <= len(kept) + 2

    tried(place, what)


def test_rows_of_a_thousand_requests_are_those_of_the_last_minutes(place: Path | str) -> None:
    async def what(servers: Servers) -> None:
        most = 0
        for number in range(1_000):
            servers.now += 5.0
            assert await servers.accept(timed_nonce(servers.now), number % 2)
            most = max(most, await servers.rows())
        assert most <= (WINDOW_S + 3 * FORGET_S) / 5.0

    tried(place, what)


def test_a_client_of_ours_leaves_rows_with_an_end_and_by_a_key_none(
    place: Path | str, service: Served
) -> None:
    async def calls(secret: str) -> list[tuple[int, bool]]:
        async with ServiceClient(service.url, "Inference_1", secret) as client:
            for _ in range(3):
                await client.call("GET", "get-identity")
        database = opened(place)
        await database.start()
        rows = await database.rows("SELECT count(*), min(ends_at) IS NOT NULL FROM service_nonce")
        await database.close()
        return [(int(count), bool(ends)) for count, ends in rows]

    assert asyncio.run(calls(SECRETS["Inference_1"][1])) == [(3, True)]
    assert asyncio.run(calls(service.keys["Inference_1"])) == [(3, True)]


def test_a_key_proves_who_calls_on_every_route_and_its_role(service: Served) -> None:
    def status(name: str, route: str, **given: str) -> int:
        headers = {"Authorization": f"Bearer {service.keys.get(name, 'mtk-none')}"}
        return requests.get(
            f"{service.url}/api/{route}", headers=headers, params=given, timeout=10
        ).status_code

    assert status("Inference_1", "get-new-queries") == 200
    assert status("User_1", "get-new-queries") == 403
    assert status("nobody", "get-new-queries") == 401
    assert status("Frontend_1", "login") == 200
    proven = seeds_proof("Frontend_1", "wrong" * 5)
    assert status("Frontend_1", "login", **proven) == 401, "a proof that is wrong is not made good by a key"
