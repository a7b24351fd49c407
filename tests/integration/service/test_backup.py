"""Backups: what comes back is what was there, damage is found before anything changes, and nothing is overwritten."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import random
import secrets
import sqlite3
import stat
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from metatree_agents.service.accounts.keys import Keys
from metatree_agents.service.database import backup
from metatree_agents.service.database.backup import LEFT_OUT, TABLES, back_up, restore, verified
from metatree_agents.service.database.database import ServiceDatabase, SqliteDatabase
from metatree_agents.service.database.schema import SERVICE
from metatree_agents.service.openai.conversations import Conversation
from metatree_agents.service.queue.queue import Queue, TopicPlace
from metatree_agents.service.settings import Service

from metatree.errors import BrokenStore, TransientError, UserError
from metatree.storage.store import Store
from tests.real.postgres import Server

from .conftest import Served, opened

pytestmark = pytest.mark.integration
Serve = Callable[..., Served]
Empty = Callable[[], ServiceDatabase]


def _pair(*kinds: str) -> Any:
    return pytest.param(kinds, id="-".join(kinds), marks=[pytest.mark.real] if "postgresql" in kinds else [])


@pytest.fixture(
    params=[
        _pair("sqlite", "sqlite"),
        _pair("sqlite", "postgresql"),
        _pair("postgresql", "sqlite"),
        _pair("postgresql", "postgresql"),
    ]
)
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Empty:
    """Return a function that returns databases with nothing in them, of one kind and the other in turn."""
    made: list[str] = []

    def make() -> ServiceDatabase:
        kind = request.param[len(made) % 2]
        made.append(kind)
        if kind == "sqlite":
            return opened(tmp_path / f"{len(made)}.db")
        server: Server = request.getfixturevalue("postgres")
        return opened(f"{server.address()}&schema=b_{secrets.token_hex(8)}")

    return make


async def started(empty: Empty) -> tuple[ServiceDatabase, ServiceDatabase]:
    one, other = empty(), empty()
    await one.start()
    await other.start()
    return one, other


def test_every_table_is_in_a_backup_or_left_out_on_purpose() -> None:
    database = SqliteDatabase.open(":memory:")

    async def tables() -> set[str]:
        async with database.transaction() as do:
            rows = await do.rows("SELECT name FROM sqlite_master WHERE type = 'table'")
        await database.close()
        return {row[0] for row in rows}

    with Store.open(":memory:") as empty:
        others = {row[0] for row in empty.rows("SELECT name FROM sqlite_master WHERE type = 'table'")}
    found = asyncio.run(tables()) - others - {"service_schema", "sqlite_sequence"}
    assert found == {*TABLES, *LEFT_OUT}, f"{SERVICE.version} scripts"


async def fill(database: ServiceDatabase) -> None:
    service = Service(database)
    await service.users.add("Ann", "user")
    await service.users.add("Inference_1", "engine")
    await service.keys.add("Ann")
    for number in range(1_203):  # more than a page of each
        await service.queue.add(
            f"t{number % 7}", "Ann", f"q{number} “ö” \\ \n\t\x7f", modifiers={"Region": ["EU"]}
        )
    claim = await service.queue.claim("Inference_1")
    assert claim is not None
    first = claim.queries[0]
    await service.queue.answer(
        claim.topic, first.text, seq=first.seq, answer=["a", ""], sources=[{"x": 1.5}], engine="Inference_1"
    )
    await service.progress.add(claim.topic, first.seq, [{"Text": "step"}] * 3)
    await service.lookups.add("t0", 1, "fragment", 5, 0.1)
    await service.recommendations.add(
        topic="t0", on_behalf_of="Ann", query="q", fragment="f", comment="", kind="Promote Answer"
    )
    await service.conversations.place("Ann", Conversation("Hello?"))
    async with database.transaction() as do:
        for number in range(2_500):
            await do.execute("INSERT INTO service_nonce(name, nonce) VALUES (?, ?)", "Ann", f"nonce-{number}")
        await do.execute(
            "INSERT INTO service_session(cookie, name, csrf, expires_at) VALUES ('c', 'Ann', 'x', 1.0)"
        )
        await do.execute("INSERT INTO service_index VALUES ('Inference_1', 'v1')")
        await do.execute(
            "INSERT INTO tree_state(one, name, version, memory, publisher, publisher_until, token)"
            " VALUES (1, 'once', 3, 2, 'Inference_1', 9e18, 4)"
        )
        for number in range(50):
            data = bytes(range(256)) * number
            await do.execute("INSERT INTO tree_file(digest, part, data) VALUES ('d', ?, ?)", number, data)


async def contents(database: ServiceDatabase) -> dict[str, list[tuple[Any, ...]]]:
    async with database.transaction() as do:
        return {
            table: await do.rows(f"SELECT * FROM {table} ORDER BY {', '.join(key)}")
            for table, key in TABLES.items()
            if table not in ("tree_state", "service_identity")  # a restored database is another one
        }


def memory(path: Path, value: str) -> Path:
    with Store.open(path) as store, store.transaction():
        store.execute("INSERT OR REPLACE INTO meta(key, value) VALUES ('colour', ?)", (value,))
    return path


def colour(path: Path) -> str:
    with Store.open(path, create=False) as store:
        return str(store.rows("SELECT value FROM meta WHERE key = 'colour'")[0][0])


def test_what_comes_back_is_what_was_there(empty: Empty, tmp_path: Path) -> None:
    async def go() -> None:
        one, other = await started(empty)
        await fill(one)
        file = tmp_path / "a.backup"
        made = await back_up(one, file, memory=memory(tmp_path / "memory.db", '"green"'))
        assert made == verified(file)
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, "secrets are in it"
        assert (made.tables["query"], made.tables["service_nonce"]) == (1_204, 2_500)
        (tmp_path / "new").mkdir()
        await restore(file, other, memory=tmp_path / "new" / "memory.db")
        assert await contents(other) == await contents(one)
        state = await other.row("SELECT name, publisher, version, token FROM tree_state")
        assert state is not None and state[0] != "once", "copies of it elsewhere begin anew"
        assert state[1:] == (None, 3, 4)
        assert colour(tmp_path / "new" / "memory.db") == '"green"'
        async with other.transaction() as do:
            assert await do.rows("SELECT * FROM service_session") == []
            last = await do.row("SELECT max(number) FROM progress")
        assert last is not None
        service = Service(other)
        await service.progress.add("t0", 1, [{"Text": "later"}])
        assert (await service.progress.after("t0", 1, last[0]))[0][0] > last[0], "numbers go on"
        assert (await service.queue.add("t0", "Ann", "next"))[0] == (await service.queue.thread("t0"))[-1].seq
        await one.close()
        await other.close()
        assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["memory.db"]

    asyncio.run(go())


def test_nothing_is_overwritten_without_force(empty: Empty, tmp_path: Path) -> None:
    async def go() -> None:
        one, other = await started(empty)
        await fill(one)
        await Queue(other).add("mine", "Bob", "q")
        file, kept = tmp_path / "a.backup", memory(tmp_path / "kept.db", '"red"')
        await back_up(one, file, memory=memory(tmp_path / "memory.db", '"green"'))
        with pytest.raises(UserError, match="there already"):
            await back_up(one, file)
        await back_up(one, file, memory=tmp_path / "memory.db", force=True)
        with pytest.raises(UserError, match="users or topics"):
            await restore(file, other, memory=tmp_path / "none.db")
        with pytest.raises(UserError, match="a memory"):
            await restore(file, other, memory=kept)
        assert (colour(kept), await Queue(other).place("mine")) == ('"red"', TopicPlace("Bob", 1))
        assert not (tmp_path / "none.db").exists()
        with Store.open(kept), pytest.raises(UserError, match=r"kept\.db'.*stop it.*--no-memory"):
            await restore(file, other, memory=kept, force=True)
        assert (colour(kept), await Queue(other).place("mine")) == ('"red"', TopicPlace("Bob", 1))
        await restore(file, other, memory=kept, force=True)
        assert colour(kept) == '"green"'
        assert await Queue(other).place("mine") is None
        assert await contents(other) == await contents(one)
        await one.close()
        await other.close()

    asyncio.run(go())


def test_damage_anywhere_is_found_and_nothing_changes(empty: Empty, tmp_path: Path) -> None:
    async def go() -> None:
        one, other = await started(empty)
        await fill(one)
        await Keys(one).list()
        await Queue(other).add("mine", "Bob", "q")
        before = await contents(other)
        file, bad = tmp_path / "a.backup", tmp_path / "bad.backup"
        await back_up(one, file, memory=memory(tmp_path / "memory.db", '"green"'))
        sound, chance = file.read_bytes(), random.Random(7)
        with zipfile.ZipFile(file) as archive:
            places = [info.header_offset + 80 + info.compress_size // 2 for info in archive.infolist()]
        damaged = [sound[: len(sound) // 2], sound[:-1], b"", b"PK", b"not a backup at all" * 100]
        for at in [place for place in places if place < len(sound)] + chance.sample(range(len(sound)), 40):
            changed = sound[:at] + bytes([sound[at] ^ 0x55]) + sound[at + 1 :]
            damaged.append(changed)
        whole = verified(file)
        for data in damaged:
            bad.write_bytes(data)
            try:
                found = verified(bad)
            except BrokenStore:
                with pytest.raises(BrokenStore):
                    await restore(bad, other, memory=tmp_path / "none.db", force=True)
            else:  # a byte that no content depends on, such as the time of a member
                assert found.tables == whole.tables
        assert await contents(other) == before and not (tmp_path / "none.db").exists()
        with pytest.raises(UserError, match="cannot read"):
            verified(tmp_path / "missing")
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(UserError, match="cannot read"):
            verified(tmp_path / "pipe")
        await one.close()
        await other.close()

    asyncio.run(go())


def test_a_backup_with_changed_content_and_right_archive_checksums_is_refused(tmp_path: Path) -> None:
    async def go() -> None:
        one = SqliteDatabase.open(tmp_path / "one.db")
        await fill(one)
        file, bad = tmp_path / "a.backup", tmp_path / "bad.backup"
        await back_up(one, file)
        await one.close()
        for changed in ("service_user.jsonl", "manifest.json"):
            with zipfile.ZipFile(file) as came, zipfile.ZipFile(bad, "w") as out:
                for name in came.namelist():
                    data = came.read(name)
                    out.writestr(
                        name,
                        data.replace(b"Ann", b"Eve") + b" " * (name == changed) if name == changed else data,
                    )
            with pytest.raises(BrokenStore, match="checksum"):
                verified(bad)

    asyncio.run(go())


def _rewritten(file: Path, bad: Path, **changed: Any) -> None:
    """Write a backup again with other values in its list, and with the right checksum of that."""
    with zipfile.ZipFile(file) as came, zipfile.ZipFile(bad, "w", zipfile.ZIP_DEFLATED) as out:
        manifest = json.dumps(json.loads(came.read("manifest.json")) | changed).encode()
        for name in came.namelist():
            said = {
                "manifest.json": manifest,
                "manifest.sha256": hashlib.sha256(manifest).hexdigest().encode(),
            }
            out.writestr(name, said.get(name) or came.read(name))
        for name, recorded in dict(changed.get("files") or {}).items():
            with out.open(name, "w") as stream:
                for _ in range(recorded["bytes"] // 1_000_000):
                    stream.write(bytes(1_000_000))


def test_a_backup_that_is_made_to_do_harm_is_refused(tmp_path: Path) -> None:
    async def go() -> None:
        one = SqliteDatabase.open(tmp_path / "one.db")
        await fill(one)
        file, bad = tmp_path / "a.backup", tmp_path / "bad.backup"
        await back_up(one, file)
        await one.close()
        with zipfile.ZipFile(file) as archive:
            tables = json.loads(archive.read("manifest.json"))["tables"]
        (name, recorded), *_ = tables.items()
        rows = [{"tables": tables | {name: recorded | {"rows": number}}} for number in ("many", -1, 1 << 70)]
        wrong: list[dict[str, Any]] = [
            *rows,
            {"files": []},
            {"tables": []},
            {"tables": {"topic": []}},
            {"made_at": "now\nAll is well."},
            {"made_at": "2026 AKIAQ3EGRB7TZ5KMX2WD"},
        ]
        for changed in wrong:
            _rewritten(file, bad, **changed)
            with pytest.raises(BrokenStore, match="cut off or changed"):
                verified(bad)
        _rewritten(file, bad, files={"memory.db": {"bytes": 300_000_000, "sha256": ""}})
        with pytest.raises(UserError, match=r"unpacks to 300,\d{3},\d{3} bytes from .*not read"):
            verified(bad)

    asyncio.run(go())


@pytest.mark.parametrize(
    "row", [b"[" * 100_000, b'{"name": "x"}', b"[[], 2, 3, 4]", b'[{"base64": 3}]', b"3", b"[1]"]
)
def test_rows_that_are_none_are_refused_and_nothing_changes(tmp_path: Path, row: bytes) -> None:
    async def go() -> None:
        one, two = SqliteDatabase.open(tmp_path / "one.db"), SqliteDatabase.open(tmp_path / "two.db")
        await fill(one)
        file, bad = tmp_path / "a.backup", tmp_path / "bad.backup"
        await back_up(one, file)
        await one.close()
        with zipfile.ZipFile(file) as came:
            parts = {name: came.read(name) for name in came.namelist()}
        manifest, parts["service_user.jsonl"] = json.loads(parts["manifest.json"]), row + b"\n"
        manifest["tables"]["service_user"]["sha256"] = hashlib.sha256(row + b"\n").hexdigest()
        parts["manifest.json"] = json.dumps(manifest).encode()
        parts["manifest.sha256"] = hashlib.sha256(parts["manifest.json"]).hexdigest().encode()
        with zipfile.ZipFile(bad, "w") as out:
            for name, data in parts.items():
                out.writestr(name, data)
        with pytest.raises(BrokenStore, match="a row of service_user"):
            await restore(bad, two)
        async with two.transaction() as do:
            assert (
                await do.row("SELECT 1 FROM topic") is None
                and await do.row("SELECT 1 FROM service_user") is None
            )
        await two.close()

    asyncio.run(go())


@pytest.mark.parametrize("fails", ["tables", "memory"])
def test_a_restore_that_fails_changes_neither_the_tables_nor_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    async def go() -> None:
        one, other = SqliteDatabase.open(tmp_path / "one.db"), SqliteDatabase.open(tmp_path / "other.db")
        await fill(one)
        memory, target = tmp_path / "memory.db", tmp_path / "there.db"
        Store.open(memory).close()
        await back_up(one, tmp_path / "a.backup", memory=memory)
        with Store.open(target) as store:
            store.execute("CREATE TABLE mine(number)")
        before, modes = await contents(other), []

        async def no_fill(*_: object) -> None:
            modes.append((tmp_path / "there.db.restored").stat().st_mode & 0o777)
            raise UserError("no")

        if fails == "tables":
            monkeypatch.setattr(backup, "_fill", no_fill)
        else:
            kept = sqlite3.connect(target)
            monkeypatch.setattr(backup, "MEMORY_WAIT_S", 0.01)
            monkeypatch.setattr(backup, "_in_use", lambda _: False)  # it comes when that was looked at
            kept.execute("BEGIN EXCLUSIVE")
        with pytest.raises((UserError, TransientError)):
            await restore(tmp_path / "a.backup", other, memory=target, force=True)
        if fails == "memory":
            kept.close()
        else:
            assert modes == [0o600]
        with Store.open(target) as store:
            assert store.rows("SELECT * FROM mine") == []
        assert await contents(other) == before
        assert not list(tmp_path.glob("there.db.restored*"))
        await one.close()
        await other.close()

    asyncio.run(go())


def test_a_file_of_another_program_is_no_memory(tmp_path: Path) -> None:
    async def go() -> None:
        one = SqliteDatabase.open(tmp_path / "one.db")
        wrong = tmp_path / "memory.db"
        wrong.write_bytes(b"words" * 1000)
        with pytest.raises(BrokenStore):
            await back_up(one, tmp_path / "a.backup", memory=wrong)
        assert sorted(path.name for path in tmp_path.iterdir() if "backup" in path.name) == []
        with pytest.raises(UserError, match="cannot write"):
            await back_up(one, tmp_path / "no" / "a.backup")
        await one.close()

    asyncio.run(go())


def test_nothing_is_restored_under_a_server_at_work(serve: Serve, place: Path | str, tmp_path: Path) -> None:
    service = serve()
    assert service.frontend.ask("q").status_code == 200

    async def go() -> None:
        live = opened(place)
        await live.start()
        made = await back_up(live, tmp_path / "a.backup")
        async with asyncio.timeout(20):
            while not await live.in_use():
                await asyncio.sleep(0.01)
        assert service.frontend.ask("r").status_code == 200
        before = await contents(live)
        with pytest.raises(UserError, match=r"stop it .*then restore; nothing was changed"):
            await restore(made.file, live, force=True)
        assert await contents(live) == before
        await live.close()

    asyncio.run(go())
    assert service.frontend.ask("s").json()["Seq"] == 3


def test_a_backup_of_a_service_at_work_is_of_one_moment(
    serve: Serve, place: Path | str, tmp_path: Path
) -> None:
    """Numbers of topics agree with their queries in every backup, while others ask and answer."""
    service = serve()
    stop = threading.Event()

    def work(name: str) -> None:
        while not stop.is_set():
            assert service.frontend.ask("q", topic=name).status_code == 200

    threads = [threading.Thread(target=work, args=(f"t{number}",)) for number in range(2)]
    for thread in threads:
        thread.start()

    async def go() -> None:
        for number in range(5):
            live = opened(place)
            await live.start()
            made = await back_up(live, tmp_path / f"{number}.backup")
            await live.close()
            back = SqliteDatabase.open(tmp_path / f"{number}.db")
            await restore(made.file, back)
            rows = await back.rows(
                "SELECT topic.last_seq, count(*), max(seq) FROM topic JOIN query ON query.topic = topic.id"
                " GROUP BY topic.id"
            )
            assert all(last == count == most for last, count, most in rows)
            await back.close()

    try:
        asyncio.run(go())
    finally:
        stop.set()
        for thread in threads:
            thread.join(30)
