"""No store ever has a rollback journal: who is killed would leave it, and one that is there is taken for another's."""

from __future__ import annotations

import asyncio
import ctypes
import os
import sqlite3
import struct
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from metatree_agents.service.database.backup import _in_use, back_up, restore
from metatree_agents.service.database.database import SqliteDatabase

from metatree import Tree
from metatree.notes.notes import memories, remember
from metatree.storage.store import Store

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(sys.platform != "linux", reason="asks Linux which files are made"),
]
IN_CREATE = 0x100


@contextmanager
def names_made(folder: Path) -> Iterator[set[str]]:
    """Gather the names of all files that anybody makes in a folder meanwhile, however short they are there."""
    libc = ctypes.CDLL(None, use_errno=True)
    watch = libc.inotify_init1(os.O_NONBLOCK)
    assert watch >= 0 and libc.inotify_add_watch(watch, os.fsencode(folder), IN_CREATE) >= 0
    names: set[str] = set()
    try:
        yield names
        with open(watch, "rb", buffering=0, closefd=False) as stream:
            while events := stream.read(1 << 16):
                while events:
                    length = struct.unpack("iIII", events[:16])[3]
                    names.add(os.fsdecode(events[16 : 16 + length].rstrip(b"\0")))
                    events = events[16 + length :]
    finally:
        os.close(watch)


def _journals(names: set[str]) -> set[str]:
    return {name for name in names if name.endswith("-journal")}


def test_a_rollback_journal_would_be_seen(tmp_path: Path) -> None:
    with names_made(tmp_path) as names, closing(sqlite3.connect(tmp_path / "a.db")) as other:
        other.execute("CREATE TABLE harbour(name TEXT)")
    assert names == {"a.db", "a.db-journal"}


def test_a_new_store_has_none(tmp_path: Path) -> None:
    with names_made(tmp_path) as names:
        with Store.open(tmp_path / "runs.db") as store:
            store.execute("INSERT INTO meta VALUES ('a', '1')")
        Store.open(tmp_path / "runs.db").close()
    assert "runs.db" in names and not _journals(names)


def test_a_store_without_a_log_is_given_one_without_a_journal(tmp_path: Path) -> None:
    file = tmp_path / "runs.db"
    Store.open(file).close()
    with closing(sqlite3.connect(file)) as other:
        assert other.execute("PRAGMA journal_mode=DELETE").fetchone() == ("delete",)
    with names_made(tmp_path) as names, Store.open(file) as store:
        assert store.value("PRAGMA journal_mode") == "wal"
        store.execute("INSERT INTO meta VALUES ('a', '1')")
    assert not _journals(names)


@pytest.mark.parametrize("there", [True, False])
def test_a_backup_that_is_put_back_leaves_none(tmp_path: Path, there: bool) -> None:
    memory, file = tmp_path / "memory.db", tmp_path / "service.db"
    with Tree.create(memory) as tree:
        remember(tree, "The harbour lies in the north", who="Ann")

    async def work() -> set[str]:
        database = SqliteDatabase.open(file)
        try:
            await database.start()
            with names_made(tmp_path) as names:
                assert not await database.in_use()
                await back_up(database, tmp_path / "out.zip", memory=memory)
                if not there:
                    memory.unlink()
                assert not _in_use(memory)
                await restore(tmp_path / "out.zip", database, memory=memory, force=True)
            return names
        finally:
            await database.close()

    assert not {name for name in _journals(asyncio.run(work())) if not name.startswith("memory.db.")}
    with Tree.open(memory) as tree:
        assert [node.content for node in memories(tree)] == ["The harbour lies in the north"]
