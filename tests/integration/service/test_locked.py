"""A database that another process writes for long: reads go on, writers get a time to retry, commands wait."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
import requests
from metatree_agents.service._app import BUSY
from metatree_agents.service.database import database as databases
from metatree_agents.service.database.database import COMMAND_WAIT_S, SERVER_WAIT_S, SqliteDatabase
from metatree_agents.service.replication.trees import Trees
from metatree_agents.service.settings import Service

from metatree.errors import TransientError

from .conftest import Served

pytestmark = pytest.mark.integration
Serve = Callable[..., Served]


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Keep all others from writing."""
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_callers_get_a_time_to_retry_and_no_path(serve: Serve, place: Path) -> None:
    service = serve()
    with locked(place):
        busy = service.frontend.ask("q")
        assert (busy.status_code, busy.json()) == (503, {"detail": BUSY})
        assert busy.headers["Retry-After"] == "1"
        assert requests.get(f"{service.url}/healthz", timeout=120).status_code == 200
        key = {"Authorization": f"Bearer {service.keys['User_1']}"}
        assert requests.get(f"{service.url}/v1/models", headers=key, timeout=120).status_code == 200
    assert service.frontend.ask("q").status_code == 200


def test_a_server_waits_for_less_than_a_command(tmp_path: Path) -> None:
    async def go() -> None:
        database = SqliteDatabase.open(tmp_path / "service.db")
        assert await database.row("PRAGMA busy_timeout") == (COMMAND_WAIT_S * 1000,)
        watching = asyncio.ensure_future(database.watch(lambda _: None))
        await asyncio.sleep(0)
        assert await database.row("PRAGMA busy_timeout") == (SERVER_WAIT_S * 1000,)
        watching.cancel()
        await database.close()

    asyncio.run(go())


def test_reads_go_on_while_another_process_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(databases, "COMMAND_WAIT_S", 0.0)

    async def go() -> None:
        file = tmp_path / "service.db"
        database = SqliteDatabase.open(file)
        service, trees = Service(database), Trees(database)
        await service.users.add("Ann", "user", secret="a" * 24)
        key = await service.keys.add("Ann")
        current = await trees.current()
        with locked(file):
            with pytest.raises(TransientError):
                await service.keys.add("Ann")
            who = await service.keys.verified(key)
            assert who is not None and who.name == "Ann"
            assert len(await service.keys.list()) == 1
            assert await trees.current() == current
            assert (await service.admin.overview())["Open"] == 0
        await database.close()

    asyncio.run(go())
