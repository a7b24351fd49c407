"""A connection to PostgreSQL that is not given out is closed, whatever ended the attempt."""

from __future__ import annotations

import asyncio
from typing import Any

import psycopg
import pytest
from metatree_agents.service.database.postgres import PostgresDatabase


class Unsettled:
    """A connection of psycopg whose first statement never ends."""

    def __init__(self) -> None:
        self.closed = False
        self.executing = asyncio.Event()

    async def execute(self, *_: Any, **__: Any) -> None:
        self.executing.set()
        await asyncio.Event().wait()

    async def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize("use", ["watch", "start"])
def test_a_server_that_stops_while_it_connects_leaves_no_connection(
    monkeypatch: pytest.MonkeyPatch, use: str
) -> None:
    async def run() -> bool:
        connection = Unsettled()

        async def connect(**_: Any) -> Unsettled:
            return connection

        monkeypatch.setattr(psycopg.AsyncConnection, "connect", connect)
        database = PostgresDatabase("postgresql://host/database")
        doing = database.watch(lambda _: None) if use == "watch" else database.start()
        task = asyncio.ensure_future(doing)
        await connection.executing.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await database.close()
        return connection.closed

    assert asyncio.run(run())
