"""What a server shares with other machines: its own tree, published by version, or a copy of what another publishes.

The built layer is published as one packed file, its text index in it: it has one writer, so a copy is the same file,
and a hash says that it is. The memory layer has many writers, so its rows go by themselves (`_memory_sync`). Trees and
memory go through the HTTP routes of the server, and journals, calls and boards straight to PostgreSQL: a machine that
reaches only a proxy can search, and a journal by HTTP would cost a request for each step. Lost: the database for
everything, since every engine would need its password and the way to it.

Lost: rows for the built layer (a copy would have to index it again, and nothing would say that it is the same). Blocks
of 16 kB that go by their hashes, of which a copy fetches those that changed: where one file changed in a tree of 27 MB
(django's package) that saved 0.3 s of 0.6 s of CPU, in one of 72 MB (its whole checkout) 1.0 s of 1.6 s, and 17 MB on
the wire, for a table, two routes and 500 lines. Merging trees that two machines built, which nobody asks for: one
server publishes, by a lease with a token.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import sqlite3
import tempfile
import zlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from io import SEEK_END, BufferedReader, BytesIO
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Final

from metatree import Tree
from metatree._util.private import private_file
from metatree._util.process import this_process
from metatree.errors import MetatreeError, TransientError, UserError
from metatree.shared import Shared
from metatree.storage.errors import store_error
from metatree.storage.store import Store
from metatree.storage.store_files import whole
from metatree.storage.trust import FACTS
from metatree.trees.content import file_state
from metatree.trees.layer import Layer
from metatree.trees.masking import masked_data
from metatree.trees.source_files import digest_bytes, read_inside
from metatree.trees.source_types import SourceRef
from metatree.trees.sources import disk_root, inner_path, source_of
from metatree_agents.service.engine.client import ServiceClient
from metatree_agents.service.engine.memory import learn
from metatree_agents.service.engine.nearest import index_of
from metatree_agents.service.replication._memory_sync import MemorySync
from metatree_agents.service.replication._write_through import WriteThrough
from metatree_agents.service.replication.copies import TreeCopy, copies_folder
from metatree_agents.service.replication.trees import LEASE_S, PART, FilePart, Trees

LOOK_S: Final = 2.0
"""How often the tree is looked at for changes."""
LEARN_S: Final = 30.0
_PACKING: Final = 1
"""The level of zlib: a built layer of 27 MB becomes 6.7 MB in 0.2 s of CPU, with level 6 5.9 MB in 0.8 s."""
_BATCH: Final = 32
"""Parts of one transaction."""
_log = logging.getLogger("metatree.engine")


@dataclass(frozen=True, slots=True)
class Publication:
    """What one server shares with other machines, and how.

    Args:
        tree: what is published; one that was built from sources, not one in a single file. None searches a copy of
            what another server publishes.
        engine: whether an engine runs inside.
        shared: keeps runs and tool calls for all machines.
        copies: where a copy of another server's tree is kept.
        refresh_s: how often the tree is brought up to date with its sources; 0 leaves that to `metatree build`.
        trust_sources: whether a copy uses the commands, servers, databases and trees that the other's tree names.
    """

    tree: Tree | None
    engine: bool = True
    shared: Shared | None = None
    copies: Path = field(default_factory=copies_folder)
    refresh_s: float = 0.0
    trust_sources: bool = False


class Published:
    """The tree of a service, as one of its servers has it; searched by the engine inside.

    Of several servers with one database, one publishes its tree, and the engines of the others search copies of that,
    as workers do. When it is gone, another one with a tree goes on with its own.

    Args:
        client: the service, as an engine.
        trees: where versions are kept.
        publication: what is shared.
        say: told what a person may want to know.

    Raises:
        UserError: the tree is in one file, or in memory.
    """

    def __init__(
        self,
        client: ServiceClient,
        trees: Trees,
        publication: Publication,
        *,
        say: Callable[[str], None] = _log.info,
    ) -> None:
        tree = publication.tree
        if tree is not None and (tree.index is tree.memory or tree.index.path is None):
            raise UserError(
                f"{tree!r} is in one file: only a tree that was built from sources can be published"
            )
        self._publication = publication
        self._copy: TreeCopy | None = None
        self._leads = False
        self._version = 0
        self._client = client
        self._trees = trees
        self._tree = tree
        self._say = say
        self._who = this_process()
        self._sync: MemorySync | None = None
        self._turn = asyncio.Lock()
        self._started = asyncio.Event()
        self._seen = ("", 0.0)
        """What the tree was made from when it was last published or found to be, and when that was."""

    @property
    def version(self) -> int:
        """The version that searches begin with now."""
        return self._version if self._leads or self._copy is None else self._copy.version

    async def start(self) -> None:
        """Take in what others have remembered, and publish the tree as it is."""
        if self._tree is None:
            self._started.set()
            return
        self._sync = sync = MemorySync(self._client, self._tree, (await self._trees.current()).name)
        if self._publication.shared is not None:
            self._tree.shared = WriteThrough(self._publication.shared, sync)
        await sync.pull()
        await self.publish()
        self._started.set()

    async def close(self) -> None:
        """Let go of the copy, if there is one."""
        if self._copy is not None:
            await self._copy.__aexit__()
            self._copy = None

    async def run(self) -> None:
        """Follow the sources, the people who recommend, and the other machines, until this is cancelled."""
        loop = asyncio.get_running_loop()
        learned = refreshed = loop.time()
        learned -= LEARN_S
        while True:
            try:
                if not self._started.is_set():
                    await self.start()
                if self._tree is None:  # a copy follows by itself, when it is used
                    await loop.create_future()
                    return
                if loop.time() - learned >= LEARN_S:
                    await self._learn()
                    learned = loop.time()
                if self._publication.refresh_s and loop.time() - refreshed >= self._publication.refresh_s:
                    await asyncio.to_thread(_refreshed, self._tree)
                    refreshed = loop.time()
                await self.follow()
                mark, at = self._seen
                if _mark(self._tree) != mark or loop.time() - at > LEASE_S / 3:
                    await self.publish()
            except TransientError as exc:
                _log.warning("%s; trying again", exc)
            except (MetatreeError, OSError):
                _log.exception("the tree could not be published; trying again")
            await asyncio.sleep(LOOK_S)

    async def _learn(self) -> None:
        """Remember what people recommended: one server does, or each would remember it."""
        if self._leads and self._tree is not None:
            await self.follow()
            while await learn(self._client, self._tree):
                await self.follow()

    @property
    def index(self) -> str | None:
        if self._leads and self._tree is not None:
            return index_of(self._tree)
        return None if self._copy is None else self._copy.index

    @asynccontextmanager
    async def using(self) -> AsyncIterator[Tree]:
        await self._started.wait()
        if self._leads and self._tree is not None:
            await self.follow()
            yield self._tree
            return
        while not (await self._trees.current()).version:  # another server is about to publish
            await asyncio.sleep(LOOK_S)
        async with self._turn:
            if self._copy is None:
                share = self._publication
                copy = TreeCopy(
                    self._client,
                    share.copies,
                    shared=share.shared,
                    say=self._say,
                    trust_sources=share.trust_sources,
                )
                self._copy = await copy.__aenter__()
        async with self._copy.using() as tree:
            yield tree

    async def follow(self) -> None:
        if self._sync is None:
            return
        await self._sync.push()
        await self._sync.pull((await self._trees.current()).memory)

    async def publish(self) -> int | None:
        """Publish the built layer if it changed, and this server is the one to do it; return the new version."""
        tree, sync = self._tree, self._sync
        if tree is None or sync is None:
            return None
        async with self._turn:
            token = await self._trees.lead(self._who)
            if token is None:
                self._leads, self._seen = False, ("", 0.0)
                return None
            mark, current = _mark(tree), await self._trees.current()
            self._seen = (mark, asyncio.get_running_loop().time())
            if current.mark == mark:
                self._leads, self._version = True, current.version
                return None
            tree.index.check_place()
            # Inside the tree's own folder: there is room for a file of this size where the tree is.
            with tempfile.TemporaryDirectory(prefix=".publishing-", dir=tree.path) as folder:
                file = Path(folder) / "index.db"
                files = await asyncio.to_thread(_write_index, tree, file)
                with file.open("rb") as stream:
                    digest = await asyncio.to_thread(_digest_of, stream)
                    await self._add_parts(_parts_of(stream, digest))
                missing = await self._trees.missing_files(files)
                await self._add_parts(_source_parts(tree, {each: files[each] for each in missing}))
                size, nodes = file.stat().st_size, Layer(tree.index).count()
            version = await self._trees.publish(
                token, digest=digest, size=size, nodes=nodes, files=files, mark=mark
            )
            self._leads = version is not None
            if version is None:
                self._seen = ("", 0.0)
                return None
            self._version = version
            if not current.mark or json.loads(current.mark)[2] != json.loads(mark)[2]:
                # What was said of a file that was renamed is now said of another id.
                await sync.push(everything=True)
            self._say(f"published version {version} of the tree: {size / 1e6:,.1f} MB")
            await self._trees.sweep(token)
            return version

    async def _add_parts(self, parts: Iterator[FilePart]) -> None:
        """Keep parts of files, and the lease meanwhile."""
        while batch := await asyncio.to_thread(lambda: list(islice(parts, _BATCH))):
            await self._trees.add_parts(batch)
            await self._trees.lead(self._who)


def _mark(tree: Tree) -> str:
    """Return what tells one state of a built layer from another."""
    layer = Layer(tree.index)
    renames = tree.index.rows("SELECT ifnull(max(number), 0) FROM rename")[0][0]
    return json.dumps([layer.fact("generation"), layer.last_seq(), renames, layer.fact("sources")])


def _write_index(tree: Tree, file: Path) -> dict[str, str]:
    """Write the built layer to a file, its text index brought up to date; return the paths of its files by digest.

    What was left out of the tree is none of them, and where something is masked the digest is that of what is sent.
    """
    from metatree_routers import TextEvidence

    TextEvidence(tree).refresh()
    write_snapshot(tree.index, file)
    sources = tree.sources()
    with closing(sqlite3.connect(whole(file))) as copy, copy:
        copy.execute("PRAGMA secure_delete=ON")
        # Who has the marks could write a file that passes for one of this user.
        copy.execute("DELETE FROM meta WHERE key GLOB ?", (f"{FACTS}*",))
        rows = copy.execute(
            "SELECT path, digest, json_extract(facts, '$.masked') FROM file WHERE reader <> '-'"
        ).fetchall()
        files = {}
        for path, digest, masked in rows:
            if masked and (data := _read(tree, path, sources)) is not None:
                digest = digest_bytes(data)
                copy.execute("UPDATE file SET digest = ? WHERE path = ?", (digest, path))
            files[digest] = path
    return files


def write_snapshot(store: Store, path: Path) -> None:
    """Write a store to another file as it is at one moment, whatever others write meanwhile, page for page.

    Raises:
        MetatreeError: the file cannot be written, as `store_error` says.
    """
    assert store.path is not None
    private_file(path)
    store.check_place()
    try:
        with Store.open(store.path, create=False) as source, closing(sqlite3.connect(whole(path))) as target:
            source.copy_to(target)
    except sqlite3.Error as exc:
        raise store_error(exc, path) from exc


def _refreshed(tree: Tree) -> None:
    if tree.stale():
        tree.refresh()


def _digest_of(stream: BufferedReader) -> str:
    return hashlib.file_digest(stream, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def _parts_of(stream: BinaryIO, digest: str) -> Iterator[FilePart]:
    """Yield the parts of a file, the last one first; an empty file has one."""
    size = stream.seek(0, SEEK_END)
    for number in reversed(range(max(1, -(-size // PART)))):
        stream.seek(number * PART)
        yield FilePart(digest, number, zlib.compress(stream.read(PART), _PACKING))


def _source_parts(tree: Tree, paths: Mapping[str, str]) -> Iterator[FilePart]:
    """Yield the parts of files that nodes were built from, by their digests, the last part of each first."""
    sources, changed = tree.sources(), 0
    for digest, path in paths.items():
        data = _read(tree, path, sources)
        if data is None or digest_bytes(data) != digest:
            changed += 1  # since the tree was built: the next version has it
            continue
        yield from _parts_of(BytesIO(data), digest)
    if changed:
        _log.warning(
            "%d files changed since the tree was built; `metatree build` brings it up to date", changed
        )


def _read(tree: Tree, path: str, sources: Sequence[SourceRef]) -> bytes | None:
    """Return the bytes of a file of the tree's sources, with secrets masked; None when it cannot be read."""
    source = source_of(sources, path)
    known = file_state(tree.index, path)
    try:
        root = None if source is None else disk_root(source)
        if source is None or root is None:
            return None
        data = read_inside(root, known.raw if known and known.raw else inner_path(source, path), links=False)[
            0
        ]
    except (OSError, UserError):
        return None
    if known is None or not (known.masked or tree.index.accepted):
        return data
    return masked_data(inner_path(source, path), data) if digest_bytes(data) == known.digest else None
