"""Who waits at the service is let go once they may not call it any more, and nobody else is."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest
import requests
from metatree_agents.service.accounts.users import Users
from metatree_agents.service.database.database import ServiceDatabase
from metatree_agents.service.queue import revocation

from tests.integration.service.conftest import SECRETS, Served, opened

Change = Callable[[ServiceDatabase, str, str], Awaitable[object]]


async def other_role(database: ServiceDatabase, name: str, secret: str) -> None:
    await Users(database).add(name, "admin", secret=secret)


async def other_secret(database: ServiceDatabase, name: str, secret: str) -> None:
    await Users(database).add(name, SECRETS[name][0], secret="n" * 24)


async def removed(database: ServiceDatabase, name: str, secret: str) -> None:
    await Users(database).remove(name)


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have it asked ten times a second whether those who wait may still."""
    monkeypatch.setattr(revocation, "CHECK_S", 0.1)


def carried_out(place: Path | str, change: Change, name: str) -> None:
    """Change a user from another process, as commands do."""

    async def run() -> None:
        database = opened(place)
        await database.start()
        await change(database, name, SECRETS[name][1])
        await database.close()

    asyncio.run(run())


def waits(service: Served, name: str) -> bool:
    metrics = requests.get(f"{service.url}/metrics", timeout=60).text
    return f'metatree_waiting{{who="{name}"}} 1' in metrics


@pytest.mark.parametrize("change", [other_role, other_secret, removed])
@pytest.mark.parametrize("who", ["engine", "caller"])
def test_a_waiting_caller_ends_when_who_it_is_changes(
    place: Path | str, serve: Callable[..., Served], who: str, change: Change
) -> None:
    service = serve(claim_timeout_s=60.0, answer_timeout_s=60.0)
    service.frontend.ask("Why?", user="User_1", topic="T")
    if who == "engine":
        service.engine.get("get-new-queries")  # what there is, so that the next one waits
    with ThreadPoolExecutor(2) as pool:
        if who == "engine":
            waiting = pool.submit(service.engine.get, "get-new-queries")
        else:
            waiting = pool.submit(service.user.get, "check-query", Topic="T", Seq=1)
        while not waits(service, "engines" if who == "engine" else "callers"):
            Event().wait(0.05)
        carried_out(place, change, "Inference_2" if who == "engine" else "User_2")
        Event().wait(0.5)
        assert not waiting.done(), "somebody else was changed"
        carried_out(place, change, "Inference_1" if who == "engine" else "User_1")
        answer = waiting.result(60)
    assert answer.status_code == 401 and "any more" in answer.json()["detail"]


def test_who_waits_with_an_api_key_goes_on_when_the_secret_changes(
    place: Path | str, serve: Callable[..., Served]
) -> None:
    service = serve(claim_timeout_s=1.5)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(
            requests.get,
            f"{service.url}/api/get-new-queries",
            headers={"Authorization": f"Bearer {service.keys['Inference_1']}"},
            timeout=120,
        )
        while not waits(service, "engines"):
            assert not waiting.done(), waiting.result().text
            Event().wait(0.05)
        carried_out(place, other_secret, "Inference_1")
        assert waiting.result(60).json() == {"Topic": None, "Queries": None}
