"""What comes into a folder while a program has its files open, as `git pull` brings it."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from metatree_agents.service.database import database
from metatree_agents.service.database._change_notify import ChangeNotifier
from metatree_agents.tools.toolkit import Toolkit
from metatree_memory_tools import build_tree

from metatree import Blackboard, Limits, Tree, resume, search
from metatree.errors import MetatreeError, StoreReplaced, UserError
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


def test_nothing_is_deleted_where_a_link_leads_that_comes_in_the_place_of_metatree(clone: Clone) -> None:
    """Git deletes what it ignores where a pull brings another thing of that name."""
    picture = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x08\2\0\0\0"
    other = clone.folder.parent / "other" / ".metatree"
    for folder in (clone.folder, other.parent):
        folder.mkdir(exist_ok=True)
        shutil.rmtree(folder / ".metatree", ignore_errors=True)
        build_tree(folder).close()
    images = other / "memory.db.images"
    with Blackboard(other.parent) as board:
        board.add_image(content=picture)
    for each in images.iterdir():
        os.utime(each, (1.0, 1.0))
    before = sorted(images.iterdir())
    with Blackboard(clone.folder) as board:
        board.add_image(content=picture + b"1")
        clone.metatree.rename(clone.folder / "away")
        clone.metatree.symlink_to(other)
        with pytest.raises(UserError, match="is a link"):
            board.add_image(content=picture + b"2")
        with pytest.raises(MetatreeError):
            board.forget_removed()
    assert sorted(images.iterdir()) == before


def test_no_image_is_written_where_a_link_leads_that_comes_in_the_place_of_a_folder_above(
    clone: Clone,
) -> None:
    picture = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x08\2\0\0\0"
    docs, other = clone.folder / "docs", clone.folder.parent / "other"
    for folder in (docs, other):
        folder.mkdir(parents=True)
        (folder / "a.md").write_text("# Harbour")
    build_tree(docs).close()
    with Blackboard(docs) as board:
        board.add_image(content=picture)
        docs.rename(clone.folder / "away")
        docs.symlink_to(other)
        with pytest.raises(StoreReplaced):
            board.add_image(content=picture + b"2")
        with pytest.raises(StoreReplaced):
            board.forget_removed()
    assert [each.name for each in other.iterdir()] == ["a.md"]


def test_nothing_is_read_where_a_link_leads_that_comes_in_the_place_of_a_folder_above_an_open_tree(
    clone: Clone,
) -> None:
    """The source is kept relative to the tree, whose folder was followed again at each look."""
    docs, private = clone.folder / "docs", clone.folder.parent / "private"
    for folder, text in ((docs, "# Harbour"), (private / "in", "# Harbour 4711")):
        folder.mkdir(parents=True)
        (folder / "a.md").write_text(text)
    build_tree(docs).close()
    build_tree(private / "in").close()
    before = (private / "in" / ".metatree" / "index.db").read_bytes()
    with Tree.open(docs) as tree:
        assert "Harbour" in str(asyncio.run(Toolkit(tree).grep("Harbour")).rows)
        docs.rename(clone.folder / "away")
        docs.symlink_to(private / "in")
        assert "4711" not in str(asyncio.run(Toolkit(tree, refresh=False).grep("4711")).rows)
        assert [Path(source.location) for source in tree.sources()] == [docs]
        assert tree.stale()
        with pytest.raises(StoreReplaced):
            tree.refresh()
    assert (private / "in" / ".metatree" / "index.db").read_bytes() == before


def test_a_run_goes_on_in_no_tree_and_on_no_board_that_a_link_leads_to_by_then(
    clone: Clone, caplog: pytest.LogCaptureFixture
) -> None:
    docs, other = clone.folder / "docs", clone.folder.parent / "other"
    for folder in (docs, other):
        folder.mkdir(parents=True)
        (folder / "a.md").write_text("# Harbour\n\nThe harbour is in the north.\n")
        build_tree(folder).close()
    journal = clone.folder.parent / "runs.db"
    question, few = "Where is the harbour?", Limits(reads=0)
    with Tree.open(docs) as tree, Blackboard(docs) as board:
        search(question, tree=tree, blackboard=board, journal=journal, run_id="r", limits=few)
    docs.rename(clone.folder / "away")
    docs.symlink_to(other)
    with pytest.raises(UserError, match=r"leads to .*other.* now: give the tree"):
        resume("r", journal=journal, limits=Limits())
    with Tree.open(clone.folder / "away") as tree:
        resume("r", journal=journal, tree=tree, limits=Limits())
    assert "the run goes on without it" in caplog.text
    with Blackboard(other) as board:
        assert not board.items()


def test_no_server_is_told_where_a_link_leads_that_comes_in_the_place_of_metatree(clone: Clone) -> None:
    shutil.rmtree(clone.metatree)
    clone.metatree.mkdir()
    other = clone.folder.parent / "other"
    folder = other / "service.db-servers"
    folder.mkdir(parents=True, mode=0o700)
    (other / "service.db").touch()
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as server:
        server.bind(str(folder / "one"))
        server.setblocking(False)
        with closing(ChangeNotifier(other / "service.db")) as notifier:
            notifier.tell()
        assert server.recv(1) == b""
        clone.metatree.rmdir()
        clone.metatree.symlink_to(other)
        with closing(ChangeNotifier(clone.metatree / "service.db")) as notifier:
            notifier.tell()
        with pytest.raises(BlockingIOError):
            server.recv(1)
