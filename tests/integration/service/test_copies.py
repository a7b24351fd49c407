"""Copies of a service's tree in other folders: the same tree by version, the same memory, and no file of the source."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import zlib
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from metatree_agents.service.engine.client import ServiceClient
from metatree_agents.service.engine.engine import Engine
from metatree_agents.service.replication.copies import TreeCopy
from metatree_agents.service.replication.publisher import Publication, Published
from metatree_agents.service.replication.trees import Trees
from metatree_agents.service.serving import serve_all
from metatree_agents.service.settings import ServiceSettings
from metatree_memory_tools import build_tree
from metatree_routers import TextEvidence

from metatree import Node, RouteRequest, Tree, plugins, search, tool
from metatree.durable import MemoryJournal, Record
from metatree.errors import BrokenStore, MetatreeError, UserError
from metatree.notes.feedback import flag, flags
from metatree.notes.notes import forget, memories, remember
from metatree.storage.store import Store
from metatree.storage.trust import sign
from metatree.testing.parts import (
    FunctionRouter,
    PlainComposer,
    PlainDescriber,
    ScriptedReader,
    ScriptedToolCaller,
)
from metatree.tools.call_log import CallLog
from metatree.trees.source_types import SourceRef, register_type
from tests.integration.trust.prepared import Vault

from .conftest import SECRETS, Served, opened

pytestmark = pytest.mark.integration
Serve = Callable[..., Served]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    for number in range(30):
        place = folder / f"part{number % 3}" / f"module{number}.py"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(
            f"def task{number}():\n    'Number {number} waters the plants of room {number}.'\n" * 3
        )
    (folder / "README.md").write_text("# Plants\n\nWho waters which plants.\n")
    return folder


@pytest.fixture
def tree(source: Path) -> Iterator[Tree]:
    with build_tree(source) as made:
        yield made


class Shop:
    """A service with a tree that is published, and copies of it."""

    def __init__(self, served: Served, database: Path | str, tree: Tree, folder: Path) -> None:
        self.served, self.database, self.tree, self.folder = served, database, tree, folder
        self.said: list[str] = []

    def run(self, what: Callable[[Shop, Published], Awaitable[None]]) -> None:
        async def all_of_it() -> None:
            kept = opened(self.database)
            await kept.start()
            async with self.client("Inference_1") as client:
                published = Published(
                    client,
                    Trees(kept),
                    Publication(self.tree, copies=self.folder / "server"),
                    say=self.said.append,
                )
                await published.start()
                await what(self, published)
            await kept.close()

        asyncio.run(all_of_it())

    def client(self, name: str = "Inference_2") -> ServiceClient:
        return ServiceClient(self.served.url, name, SECRETS[name][1])

    def copy(self, client: ServiceClient, name: str = "m1") -> TreeCopy:
        return TreeCopy(client, self.folder / name, say=self.said.append)


@pytest.fixture
def shop(serve: Serve, place: Path | str, tree: Tree, tmp_path: Path) -> Shop:
    return Shop(serve(), place, tree, tmp_path / "machines")


def all_of(tree: Tree) -> list[Any]:
    """Return what a tree says, but not in which folder its source lies."""
    nodes = [(depth, node) for depth, node in tree.walk()]
    return [nodes, sorted(tree.all_links()), [tree.content(node) for _, node in nodes if node.has_content]]


def test_a_copy_is_the_same_tree_without_a_file_of_the_source(shop: Shop, source: Path) -> None:
    async def check(shop: Shop, published: Published) -> None:
        expected = all_of(shop.tree)
        source.rename(source.with_name("elsewhere"))
        async with shop.client() as client, shop.copy(client) as copy:
            # The contents are asked for by a thread, as those of a search are.
            assert await asyncio.to_thread(all_of, copy.tree) == expected
            assert copy.version == published.version == 1
            ranked = await asyncio.to_thread(TextEvidence(copy.tree).rank, ["plants of room 17"], k=1)
            assert ranked[0].node_id.startswith("part2/module17.py")
            assert copy.tree.source_root is not None and not copy.tree.source_root.exists()
        shutil.rmtree(next((shop.folder / "m1").glob("*/files")))
        async with shop.client() as client, shop.copy(client) as copy:
            assert await asyncio.to_thread(all_of, copy.tree) == expected

    shop.run(check)


def test_a_log_that_waits_for_a_version_is_not_played_into_it(shop: Shop) -> None:
    async def check(shop: Shop, published: Published) -> None:
        async with shop.client() as client, shop.copy(client) as copy:
            title = copy.tree.get(".").title
            (file,) = (shop.folder / "m1").glob("**/versions/*/index.db")
        with closing(sqlite3.connect(file)) as evil:
            evil.execute("PRAGMA journal_mode=WAL")
            evil.execute("UPDATE node SET title = 'EVIL' WHERE id = '.'")
            evil.commit()
            log = file.with_name("index.db-wal").read_bytes()
        assert b"EVIL" in log
        file.unlink()
        file.with_name("index.db-wal").write_bytes(log)
        async with shop.client() as client, shop.copy(client) as copy:
            assert copy.tree.get(".").title == title

    shop.run(check)


@pytest.mark.parametrize("digest", ["{outside}/made/x", "/dev/zero", "../../../made", "", "0" * 31])
def test_what_an_index_says_is_a_digest_becomes_no_path(shop: Shop, tmp_path: Path, digest: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()

    async def check(shop: Shop, published: Published) -> None:
        async with shop.client() as client, shop.copy(client) as copy:
            assert copy.tree.files is not None
            with pytest.raises(BrokenStore, match="which is no digest"):
                copy.tree.files(digest.format(outside=outside))
            assert list(outside.iterdir()) == [] and list((shop.folder / "m1").rglob("*made*")) == []

    shop.run(check)


def test_a_changed_file_comes_through_and_the_next_search_sees_it(shop: Shop, source: Path) -> None:
    async def check(shop: Shop, published: Published) -> None:
        async with shop.client() as client, shop.copy(client) as copy:
            async with copy.using() as before:
                (source / "part0" / "module0.py").write_text("def zebra():\n    'Feeds the zebra.'\n")
                shop.tree.refresh()
                assert await published.publish() == 2
                assert await published.publish() is None, "nothing changed"
                async with copy.using() as now:
                    assert copy.version == 2
                    assert "part0/module0.py::zebra" in now and "part0/module0.py::zebra" not in before
                    assert await asyncio.to_thread(before.content, "part1/module1.py::task1")
                    assert await asyncio.to_thread(all_of, now) == all_of(shop.tree)
                assert not before.index.closed, "a search is at work on it"
            async with copy.using():
                assert before.index.closed

    shop.run(check)


def test_a_copy_that_was_damaged_or_cut_off_is_made_right(shop: Shop, source: Path) -> None:
    async def check(shop: Shop, published: Published) -> None:
        async with shop.client() as client, shop.copy(client):
            pass
        (place,) = (shop.folder / "m1").glob("*/versions/1-*")
        data = bytearray((place / "index.db").read_bytes())
        data[40_000:60_000] = bytes(20_000)
        (place / "index.db").write_bytes(data)
        (source / "part0" / "module0.py").unlink()
        shop.tree.refresh()
        await published.publish()
        async with shop.client() as client, shop.copy(client) as copy:
            assert await asyncio.to_thread(all_of, copy.tree) == all_of(shop.tree)
            copy.tree.index.check()
        (place,) = (shop.folder / "m1").glob("*/versions/2-*")
        for name in ("index.db-wal", "index.db-shm"):
            (place / name).unlink(missing_ok=True)
        (place / "index.db").write_bytes(data)
        async with shop.client() as client, shop.copy(client) as copy:
            assert await asyncio.to_thread(all_of, copy.tree) == all_of(shop.tree)
            copy.tree.index.check()

    shop.run(check)


def test_a_broken_download_changes_nothing_and_the_next_one_is_right(shop: Shop, source: Path) -> None:
    async def check(shop: Shop, published: Published) -> None:
        async with shop.client() as client, shop.copy(client) as copy:
            before = await asyncio.to_thread(all_of, copy.tree)
            (source / "part0" / "module0.py").write_text("def zebra():\n    'Feeds the zebra.'\n")
            shop.tree.refresh()
            await published.publish()
            database, digest = published._trees._database, (await published._trees.current()).digest
            async with database.transaction() as do:
                (whole,) = await do.rows("SELECT data FROM tree_file WHERE digest = ? AND part = 0", digest)
            for wrong in (b"", b"no zlib", bytes(whole[0])[:-100], zlib.compress(b"another file")):
                async with database.transaction() as do:
                    await do.execute("UPDATE tree_file SET data = ? WHERE digest = ?", wrong, digest)
                with pytest.raises(BrokenStore, match="cannot be copied"):
                    await copy.follow()
                assert copy.version == 1 and await asyncio.to_thread(all_of, copy.tree) == before
                (place,) = (shop.folder / "m1").glob("*/versions")
                assert [each.name[:2] for each in place.iterdir()] == ["1-"], "nothing of it is left"
            async with database.transaction() as do:
                await do.execute("UPDATE tree_file SET data = ? WHERE digest = ?", whole[0], digest)
            await copy.follow()
            assert copy.version == 2 and await asyncio.to_thread(all_of, copy.tree) == all_of(shop.tree)

    shop.run(check)


def test_files_that_no_version_needs_are_deleted(shop: Shop, source: Path) -> None:
    async def kept(published: Published) -> set[str]:
        return {
            row[0] for row in await published._trees._database.rows("SELECT DISTINCT digest FROM tree_file")
        }

    async def check(shop: Shop, published: Published) -> None:
        seen = [await kept(published)]
        for number in range(3):
            (source / "part0" / "module0.py").write_text(f"def zebra{number}():\n    'Feeds a zebra.'\n")
            shop.tree.refresh()
            await published.publish()
            seen.append(await kept(published))
        sizes = [len(each) for each in seen]
        assert sizes[1] == sizes[2] == sizes[3] == sizes[0] + 2, "a version, and the one before"
        assert len(seen[0] - seen[3]) == 2 and (await published._trees.current()).digest in seen[3]

    shop.run(check)


def test_a_folder_that_somebody_prepared_is_no_copy(shop: Shop, tmp_path: Path) -> None:
    """It may lie in a clone, named with --copy; who prepared it knows the service."""

    async def check(shop: Shop, published: Published) -> None:
        expected = all_of(shop.tree)
        async with shop.client() as client, shop.copy(client) as copy:
            assert copy.tree.path is not None
            index = copy.tree.path / "index.db"
        # As git brings it, in the place of the file that is there.
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("METATREE_CONFIG_DIR", str(tmp_path / "attacker"))
            with Store.open(index, trust=True) as store:
                store.execute("UPDATE node SET title = 'PASSPHRASE'")
                store.execute("DELETE FROM meta WHERE key LIKE 'trust:%'")
                sign(store)
        async with shop.client() as client, shop.copy(client) as copy:
            assert await asyncio.to_thread(all_of, copy.tree) == expected
        # Or all of it, without a memory, which nobody else can make.
        (name,) = (each.name for each in (shop.folder / "m1").iterdir())
        photos = tmp_path / "photos"
        for year in range(2020, 2026):
            (photos / f"{year}-01").mkdir(parents=True)
        prepared = shop.folder / "m2" / name
        prepared.mkdir(parents=True)
        (prepared / "versions").symlink_to(photos)
        async with shop.client() as client:
            with pytest.raises(UserError, match="no copy of yours"):
                async with shop.copy(client, "m2"):
                    pass
            assert len(list(photos.iterdir())) == 6
            shutil.rmtree(shop.folder / "m2")
            async with shop.copy(client, "m2"):
                pass

    shop.run(check)


@pytest.mark.parametrize("name", ["versions", "files", "."])
def test_a_copy_follows_no_link_that_comes_while_it_is_used(
    shop: Shop, source: Path, tmp_path: Path, name: str
) -> None:
    async def check(shop: Shop, published: Published) -> None:
        photos = tmp_path / "photos"
        for year in range(2020, 2026):
            (photos / f"{year}-01").mkdir(parents=True)
        async with shop.client() as client, shop.copy(client) as copy:
            (inner,) = (shop.folder / "m1").glob(f"*/{name}") if name != "." else [shop.folder / "m1"]
            inner.rename(tmp_path / "before")
            inner.symlink_to(photos)
            (source / "part0" / "module0.py").write_text("def zebra():\n    'Feeds the zebra.'\n")
            shop.tree.refresh()
            await published.publish()
            with pytest.raises(UserError, match="is a link and is not followed"):
                async with copy.using() as tree:
                    await asyncio.to_thread(tree.content, "part0/module0.py::zebra")
        assert sorted(each.name for each in photos.iterdir()) == [f"{year}-01" for year in range(2020, 2026)]

    shop.run(check)


def test_memories_and_what_is_forgotten_reach_all_machines(shop: Shop) -> None:
    async def check(shop: Shop, published: Published) -> None:
        async with (
            shop.client() as one,
            shop.copy(one, "m1") as first,
            shop.client() as two,
            shop.copy(two, "m2") as second,
        ):
            said = remember(first.tree, "The cactus wants no water in winter.", who="ann", evidence=False)
            third = first.tree.add(Node("n", "A note", "by a tool", "text"), parent="part0")
            async with first.using(), second.using() as there:
                assert [node.content for node in memories(there)] == ["The cactus wants no water in winter."]
                assert there.get(third.id).content == "text" and there.parent("n") == "part0"
                ranked = await asyncio.to_thread(TextEvidence(there).rank, ["cactus"], k=1)
                assert ranked[0].node_id == said.node.id
            await published.follow()
            assert memories(shop.tree)[0].id == said.node.id
            renamed = shop.tree.get("part1")
            shop.tree.update(replace(renamed, title="The south wing"))
            forget(shop.tree, said.node)
            flagged = flag(shop.tree, "part2", "Who waters the plants?", who="ann")
            await published.follow()
            for copy in (first, second):
                async with copy.using() as now:
                    assert flags(now.memory) == [flagged]
                    assert not memories(now) and now.get("part1").title == "The south wing"
                    assert now.find("memories:") is None
                    assert "cactus" not in str(now.memory.rows("SELECT * FROM content"))
            assert "cactus" not in str(await _bodies(shop))

    shop.run(check)


async def _bodies(shop: Shop) -> list[Any]:
    kept = opened(shop.database)
    await kept.start()
    async with kept.transaction() as do:
        found = await do.rows("SELECT id, body FROM tree_memory")
    await kept.close()
    return found


def test_nothing_goes_back_and_forth_when_nothing_changes(shop: Shop) -> None:
    async def check(shop: Shop, published: Published) -> None:
        async with (
            shop.client() as one,
            shop.copy(one, "m1") as first,
            shop.client() as two,
            shop.copy(two, "m2") as second,
        ):
            for number in range(5):
                remember(first.tree, f"Fact {number} of ann.", who="ann", evidence=False)
                remember(second.tree, f"Fact {number} of bob.", who="bob", evidence=False)
            remember(first.tree, "Both say this.", who="ann", evidence=False)
            remember(second.tree, "Both say this.", who="bob", evidence=False)
            for _ in range(3):
                await first.follow()
                await second.follow()
                await published.follow()
            before = (await published._trees.current()).memory
            for _ in range(3):
                await first.follow()
                await second.follow()
                await published.follow()
            assert (await published._trees.current()).memory == before
            told = [
                sorted((n.id, n.content) for n in memories(c)) for c in (first.tree, second.tree, shop.tree)
            ]
            assert told[0] == told[1] == told[2] and len(told[0]) == 11

    shop.run(check)


def test_a_note_on_a_file_follows_its_rename_in_copies(shop: Shop, source: Path) -> None:
    async def check(shop: Shop, published: Published) -> None:
        async with shop.client() as client, shop.copy(client) as copy:
            copy.tree.add(Node("n", "A note", "", "text"), parent="part0/module3.py")
            await copy.follow()
            (source / "part0" / "module3.py").rename(source / "part0" / "renamed.py")
            await published.follow()
            shop.tree.refresh()
            assert shop.tree.parent("n") == "part0/renamed.py"
            await published.publish()
            async with copy.using() as now:
                assert now.parent("n") == "part0/renamed.py"
        async with shop.client() as client, shop.copy(client, "new") as copy:
            assert copy.tree.parent("n") == "part0/renamed.py"

    shop.run(check)


def test_a_server_that_publishes_no_tree_says_so(serve: Serve, tmp_path: Path) -> None:
    service = serve()

    async def check() -> None:
        async with ServiceClient(service.url, "Inference_1", SECRETS["Inference_1"][1]) as client:
            with pytest.raises(UserError, match="publishes no tree"):
                async with TreeCopy(client, tmp_path / "m"):
                    pass

    asyncio.run(check())


def test_of_two_servers_one_publishes_and_a_late_one_is_refused(shop: Shop) -> None:
    async def check(shop: Shop, published: Published) -> None:
        trees, now = published._trees, [1_000.0]
        trees._database.clock = lambda: now[0]
        token = await trees.lead("first")
        assert token is None, "the one that started first still publishes"
        now[0] += 1e10
        mine = await trees.lead("second")
        assert mine is not None and await trees.lead("first") is None
        now[0] += 1e10
        later = await trees.lead("third")
        assert later is not None and later > mine
        given: dict[str, Any] = {"digest": "d" * 32, "size": 0, "nodes": 0, "files": [], "mark": "m"}
        assert await trees.publish(mine, **given) is None and await trees.sweep(mine) == 0
        assert await trees.publish(later, **given) == 2

    shop.run(check)


@pytest.mark.parametrize("role", ["frontend", "user"])
def test_only_engines_may_copy_the_tree(shop: Shop, role: str) -> None:
    caller = getattr(shop.served, role)
    for route in ("get-tree", "get-memory", "get-tree-file"):
        assert caller.get(route, Digest="0" * 32).status_code == 403
    assert caller.post("give-memory", {"Changes": []}).status_code == 403


def test_wrong_wishes_for_pieces_are_refused(shop: Shop) -> None:
    engine = shop.served.engine
    assert engine.get("get-tree").json()["Version"] == 0
    assert engine.get("get-tree-file", Digest="../../etc/passwd").status_code == 422
    assert engine.get("get-tree-file", Digest="0" * 32).status_code == 404
    assert engine.get("get-tree-file", Digest="0" * 32, Part=-1).status_code == 422
    for body in ("no JSON", "[1]", "[" * 10_000, "{}"):
        for what in ("node", "override", "flag"):
            change = {"What": what, "Id": "flag:n", "Body": body}
            assert engine.post("give-memory", {"Changes": [change]}).status_code == 422
    assert engine.get("get-memory", After=0).json() == {"Changes": [], "Latest": 0}


def test_a_server_whose_publishing_ends_by_an_error_ends_with_it(
    place: Path | str, tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def publish(_: Published) -> int | None:
        raise KeyError("parent")

    monkeypatch.setattr(Published, "publish", publish)

    async def serve_it() -> None:
        await serve_all(
            opened(place),
            ServiceSettings(),
            memory=tree,
            parts={},
            limits=None,
            concurrency=1,
            host="127.0.0.1",
            port=0,
            stop=asyncio.Event(),
            say=print,
            sharing=Publication(tree, engine=False, copies=tmp_path / "copies"),
        )

    with pytest.raises(KeyError, match="parent"):
        asyncio.run(asyncio.wait_for(serve_it(), 30))


def test_a_server_that_publishes_nothing_is_not_done_with_it(shop: Shop) -> None:
    async def check(shop: Shop, _: Published) -> None:
        kept = opened(shop.database)
        await kept.start()
        async with shop.client() as client:
            nothing = Published(client, Trees(kept), Publication(None, copies=shop.folder))
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(nothing.run(), 0.1)
        await kept.close()

    shop.run(check)


def test_an_engine_answers_from_its_copy_and_says_which_version(shop: Shop, source: Path) -> None:
    async def check(shop: Shop, published: Published) -> None:
        async def answered(topic: str, question: str) -> dict[str, Any]:
            await asyncio.to_thread(shop.served.frontend.ask, question, topic=topic)
            while True:
                found = await asyncio.to_thread(shop.served.frontend.get, "check-query", Topic=topic, Seq=1)
                if found.json()["Answer"] is not None:
                    return dict(found.json())

        async with shop.client() as client, shop.copy(client) as copy:
            engine = Engine(client, copy)
            working = asyncio.ensure_future(engine.run())
            first = await answered("A", "What waters the plants of room 12?")
            assert first["Think"][0] == "searched version 1 of the memory"
            assert first["Sources"][0]["Path"] == "part0/module12.py"
            (source / "part1" / "zoo.py").write_text(
                "def feed():\n    'The zebra is fed with hay at noon.'\n"
            )
            shop.tree.refresh()
            await published.publish()
            second = await answered("B", "What is the zebra fed with?")
            assert second["Think"][0] == "searched version 2 of the memory" and "hay" in second["Answer"][0]
            said = {
                "Topic": "B",
                "OnBehalfOf": "John_Doe",
                "Query": "q",
                "Comment": "",
                "Type": "Make Correction",
            }
            correction = "The giraffe, though, gets leaves of acacia in the evening."
            await asyncio.to_thread(shop.served.frontend.post, "recommend", said | {"Fragment": correction})
            await published._learn()
            third = await answered("C", "What does the giraffe get in the evening?")
            assert "acacia" in " ".join(third["Answer"])
            engine.stop()
            await working

    shop.run(check)


def test_what_copies_know_comes_back_when_an_older_database_was_put_back(shop: Shop) -> None:
    async def check(shop: Shop, published: Published) -> None:
        async with shop.client() as client, shop.copy(client) as copy:
            remember(copy.tree, "The cactus wants no water in winter.", who="ann", evidence=False)
            await copy.follow()
            async with published._trees._database.transaction() as do:
                await do.execute("DELETE FROM tree_memory")
                await do.execute("UPDATE tree_state SET memory = 0")
            await copy.follow()
            await published.follow()
            assert memories(copy.tree) and memories(shop.tree)
            assert "cactus" in str(await _bodies(shop))

    shop.run(check)


def test_what_a_search_adds_is_on_all_machines_before_its_journal_says_so(shop: Shop) -> None:
    @tool(kind="interactive")
    def make(node: Node) -> Node:
        """Make a note."""
        return Node("made", "made", "", "The answer is 42.")

    seen: list[tuple[Any, list[str]]] = []

    class Watched(MemoryJournal):
        def append(self, run_id: str, token: int, seq: int, record: Record) -> int:
            there = shop.served.engine.get("get-memory", After=0).json()["Changes"]
            seen.append((record.body, [change["Id"] for change in there]))
            return super().append(run_id, token, seq, record)

    def choose(request: RouteRequest) -> str | None:
        offered = [option.id for option in request.options]
        return next((each for each in offered if each in ("make", "made") or each.startswith("part0")), None)

    async def check(shop: Shop, published: Published) -> None:
        shared: Any = SimpleNamespace(journal=Watched(), calls=CallLog(Store.open(":memory:")), boards=None)
        async with shop.client() as client, TreeCopy(client, shop.folder / "m1", shared=shared) as copy:
            async with copy.using() as tree:
                found = await asyncio.to_thread(
                    search,
                    "What is it?",
                    tree=tree,
                    router=FunctionRouter(choose),
                    reader=ScriptedReader({"made": {"What is it?": "The answer is 42."}}),
                    tool_caller=ScriptedToolCaller({"make": {}}),
                    describer=PlainDescriber(),
                    composer=PlainComposer(),
                    evidence=False,
                    tools=[make],
                )
            assert found.answer == "The answer is 42."
        inserted = [
            ids for body, ids in seen if isinstance(body, dict) and body.get("=", {}).get("id") == "made"
        ]
        assert inserted and all("made" in ids for ids in inserted)
        assert any("made" not in ids for _, ids in seen)

    shop.run(check)


@pytest.fixture
def vault(tmp_path: Path) -> Iterator[Vault]:
    made = Vault()
    register_type(made)
    yield made
    plugins.unregister(plugins.SOURCES, "vault")


def test_a_copy_uses_no_source_that_its_user_did_not_choose(
    serve: Serve, place: Path | str, source: Path, vault: Vault, tmp_path: Path
) -> None:
    """The service names them: a command would run on the engine's machine, with the rights of its user."""

    async def check(shop: Shop, published: Published) -> None:
        vault.asked.clear()  # the service asks its own
        for _ in range(2):
            async with shop.client() as client, shop.copy(client) as copy:
                tree = copy.tree
                (record,) = [each for each in tree.sources() if each.mount == "vault"]
                assert record.type == "" and not Path(record.location).exists()
                with pytest.raises(MetatreeError):
                    tree.content("vault/open")
                assert "plants" in await asyncio.to_thread(tree.content, "source/README.md")
        assert vault.asked == []
        assert len([said for said in shop.said if "--trust-sources" in said]) == 1
        async with (
            shop.client() as client,
            TreeCopy(client, shop.folder / "m1", trust_sources=True) as copy,
        ):
            assert copy.tree.content("vault/open") == "the harbour of open"

    sources = (str(source), SourceRef("x", {}, "vault", "vault"))
    with build_tree(*sources, out=tmp_path / "both") as tree:
        Shop(serve(), place, tree, tmp_path / "machines").run(check)
