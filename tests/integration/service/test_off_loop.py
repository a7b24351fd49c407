"""A file that may be locked by others is opened in a thread: the loop of a server has callers to answer."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from metatree_agents.service.database import database as module
from metatree_agents.service.database.database import SqliteDatabase

from metatree.storage.store import Store

pytestmark = pytest.mark.integration
Use = Callable[[SqliteDatabase], Any]


async def watched(database: SqliteDatabase) -> None:
    """Watch until the checkpoints have begun."""
    watching = asyncio.ensure_future(database.watch(lambda _: None))
    try:
        while await database.row("PRAGMA wal_autocheckpoint") != (module.WAL_PAGES,):
            await asyncio.sleep(0)
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


async def read(database: SqliteDatabase) -> None:
    async with database.snapshot() as do:
        assert await do.rows("SELECT count(*) FROM query") == [(0,)]


@pytest.mark.parametrize("use", [watched, read])
def test_a_file_is_opened_off_the_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, use: Use) -> None:
    database = SqliteDatabase.open(tmp_path / "service.db")
    opened_in, open_ = [], Store.open

    def noted(*given: Any, **more: Any) -> Store:
        opened_in.append(threading.get_ident())
        return open_(*given, **more)

    async def run() -> None:
        await asyncio.wait_for(use(database), 60)
        await database.close()

    monkeypatch.setattr(Store, "open", noted)
    asyncio.run(run())
    assert len(opened_in) == 1 and threading.get_ident() not in opened_in


@pytest.mark.parametrize("use", [watched, read])
def test_one_that_nobody_waits_for_any_more_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, use: Use
) -> None:
    database = SqliteDatabase.open(tmp_path / "service.db")
    opened, opening, go_on, open_ = [], threading.Event(), threading.Event(), Store.open

    def slow(*given: Any, **more: Any) -> Store:
        opening.set()
        assert go_on.wait(60)
        opened.append(open_(*given, **more))
        return opened[0]

    async def run() -> None:
        using = asyncio.ensure_future(use(database))
        assert await asyncio.to_thread(opening.wait, 60)
        using.cancel()
        with pytest.raises(asyncio.CancelledError):
            await using
        go_on.set()
        await database.close()

    monkeypatch.setattr(Store, "open", slow)
    asyncio.run(run())  # waits for the thread
    assert [store.closed for store in opened] == [True]
