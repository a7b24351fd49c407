"""The write-ahead log of a service's file is emptied by a thread, not inside the commits of those who call."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from metatree_agents.service.database import database as module
from metatree_agents.service.database.database import SqliteDatabase

pytestmark = pytest.mark.integration


def test_what_was_committed_reaches_the_file_while_the_service_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CHECKPOINT_S", 0.01)

    async def run() -> bool:
        database = SqliteDatabase.open(tmp_path / "service.db")
        watching = asyncio.ensure_future(database.watch(lambda _: None))
        while await database.row("PRAGMA wal_autocheckpoint") != (module.WAL_PAGES,):
            await asyncio.sleep(0)
        for number in range(2_000):
            await database.execute("INSERT INTO service_nonce(name, nonce) VALUES ('a', ?)", f"{number:0200}")
        deadline = asyncio.get_running_loop().time() + 60
        while not (there := b"1999" in (tmp_path / "service.db").read_bytes()):
            if asyncio.get_running_loop().time() > deadline:
                break
            await asyncio.sleep(0.01)
        watching.cancel()
        await database.close()
        return there

    assert asyncio.run(run()), "the last row is in the log alone"
