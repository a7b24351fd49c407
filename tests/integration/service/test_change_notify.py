"""Servers of one SQLite file hear of each other's queries at once, and whatever lies in the way, soon."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest
from metatree_agents.service.database import database
from metatree_agents.service.database._change_notify import ChangeNotifier
from metatree_agents.service.database.database import QueueChange, SqliteDatabase
from metatree_agents.service.queue.queue import Queue

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="needs Unix sockets"),
]


@asynccontextmanager
async def watching(path: Path) -> AsyncIterator[asyncio.Queue[QueueChange | None]]:
    """A server of the file, as far as it hears of others."""
    server = SqliteDatabase.open(path)
    changes: asyncio.Queue[QueueChange | None] = asyncio.Queue()
    task = asyncio.ensure_future(server.watch(changes.put_nowait))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    try:
        yield changes
    finally:
        task.cancel()
        await server.close()


def sockets(path: Path) -> list[Path]:
    return [*path.with_name(path.name + "-servers").glob("*")]


async def ask(path: Path) -> None:
    """Ask in a process that is no server, as a command does."""
    other = SqliteDatabase.open(path)
    await Queue(other).add("T", "ann", "q")
    await other.close()


def test_a_query_is_notified_without_polling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "TICK_S", 1_000.0)
    path = tmp_path / "s.db"

    async def run() -> None:
        async with watching(path) as one, watching(path) as two:
            for _ in range(3):
                await ask(path)
                async with asyncio.timeout(20):
                    assert [await one.get(), await two.get()] == [None, None]
        assert not path.with_name("s.db-servers").exists()

    asyncio.run(run())


def test_the_socket_of_a_killed_server_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "TICK_S", 1_000.0)
    path = tmp_path / "s.db"

    async def run() -> None:
        async with watching(path) as changes:
            (own,) = sockets(path)
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as killed:
                killed.bind(str(own.with_name("killed")))
            own.with_name("notes").write_text("not a socket")
            await ask(path)
            async with asyncio.timeout(20):
                assert await changes.get() is None
            assert sorted(each.name for each in sockets(path)) == sorted([own.name, "notes"])

    asyncio.run(run())


def test_a_server_that_starts_while_the_last_one_ends_is_notified_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "TICK_S", 1_000.0)
    path, is_ours = tmp_path / "s.db", ChangeNotifier._is_ours

    def removed_after_check(self: ChangeNotifier) -> bool:
        ours = is_ours(self)
        monkeypatch.setattr(ChangeNotifier, "_is_ours", is_ours)
        self.folder.rmdir()  # as `close` does
        return ours

    monkeypatch.setattr(ChangeNotifier, "_is_ours", removed_after_check)

    async def run() -> None:
        async with watching(path) as changes:
            await ask(path)
            async with asyncio.timeout(20):
                assert await changes.get() is None

    asyncio.run(run())


@pytest.mark.parametrize("way", ["anybody may write", "a link"])
def test_a_folder_that_another_user_can_have_filled_is_left_alone(tmp_path: Path, way: str) -> None:
    path = tmp_path / "s.db"
    folder = path.with_name("s.db-servers")
    if way == "a link":
        (tmp_path / "other").mkdir(mode=0o700)
        folder.symlink_to("other")
    else:
        folder.mkdir()
        folder.chmod(0o777)

    async def run() -> None:
        with (
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as stranger,
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ended,
        ):
            stranger.bind(str(folder / "stranger"))
            stranger.setblocking(False)
            ended.bind(str(folder / "ended"))
            ended.close()
            async with watching(path) as changes:
                await ask(path)
                async with asyncio.timeout(20):
                    assert await changes.get() is None
                assert sorted(each.name for each in sockets(path)) == ["ended", "stranger"]
            with pytest.raises(BlockingIOError):
                stranger.recv(1)

    asyncio.run(run())


@pytest.mark.parametrize("way", ["long path", "file in the way", "one that does not read"])
def test_where_nobody_can_be_notified_the_file_is_polled(tmp_path: Path, way: str) -> None:
    path = tmp_path / "s.db"
    if way == "long path":
        path = tmp_path / ("long" * 30) / "s.db"
        path.parent.mkdir()
    elif way == "file in the way":
        path.with_name("s.db-servers").write_text("")

    async def run() -> None:
        async with watching(path) as changes:
            if way == "one that does not read":
                stopped = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
                stopped.bind(str(sockets(path)[0].with_name("stopped")))
            other = SqliteDatabase.open(path)
            for _ in range(100 if way == "one that does not read" else 1):
                await Queue(other).add("T", "ann", "q")
            async with asyncio.timeout(20):
                assert await changes.get() is None
            await other.close()
            if way == "one that does not read":
                stopped.close()

    asyncio.run(run())


def test_no_socket_that_a_link_leads_to_is_sent_anything(tmp_path: Path) -> None:
    """A clone may bring the folder, with links to sockets of other programs in it."""
    path = tmp_path / "s.db"
    folder = path.with_name("s.db-servers")
    folder.mkdir(mode=0o700)
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as program:
        program.bind(str(tmp_path / "program"))
        program.setblocking(False)
        (folder / "a").symlink_to(tmp_path / "program")
        asyncio.run(ask(path))
        with pytest.raises(BlockingIOError):
            program.recv(1)
