"""What comes into a folder while a program has its files open, as `git pull` brings it."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from metatree_agents.service.database import database

from metatree import Blackboard
from metatree.errors import UserError
from tests.integration.trust.prepared import Clone, journal_of

pytestmark = pytest.mark.integration


def test_nothing_is_deleted_by_a_journal_that_comes_while_the_service_runs(
    clone: Clone, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server looks at its own file again and again."""
    monkeypatch.setattr(database, "CHECKPOINT_S", 0.01)
    shutil.rmtree(clone.metatree)
    clone.metatree.mkdir()
    file = clone.metatree / "service.db"

    async def serve() -> None:
        served = database.SqliteDatabase.open(file)
        watching = asyncio.ensure_future(served.watch(lambda _: None))
        while await served.row("PRAGMA wal_autocheckpoint") != (database.WAL_PAGES,):
            await asyncio.sleep(0)
        with closing(sqlite3.connect(clone.metatree / "other.db")) as other:
            other.execute("CREATE TABLE meta(key)")
        (clone.metatree / "service.db-journal").write_bytes(journal_of(clone.secret))
        (clone.metatree / "other.db").replace(file)
        await asyncio.sleep(0.2)
        watching.cancel()
        await served.close()

    asyncio.run(serve())
    assert clone.secret.exists()


def test_nothing_is_deleted_where_a_link_leads_that_comes_while_a_board_is_open(tmp_path: Path) -> None:
    photo = tmp_path / "photos" / "harbour.jpg"
    photo.parent.mkdir()
    photo.write_bytes(b"a photo")
    os.utime(photo, (1.0, 1.0))
    picture = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x08\2\0\0\0"
    with Blackboard(tmp_path / "board.db") as board:
        (tmp_path / "board.db.images").symlink_to(photo.parent)
        with pytest.raises(UserError, match="is a link"):
            board.forget_removed()
        with pytest.raises(UserError, match="is a link"):
            board.add_image(content=picture)
    assert list(photo.parent.iterdir()) == [photo]
