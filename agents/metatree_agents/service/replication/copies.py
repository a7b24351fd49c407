"""A copy of the service's tree on the machine of an engine, kept in step with it by version."""

from __future__ import annotations

import asyncio
import logging
import shutil
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

from metatree import Tree
from metatree._util.private import private_folder
from metatree.errors import BrokenStore, MetatreeError, UserError
from metatree.notes.replication import Assembly
from metatree.notes.replication.blocks import parted
from metatree.shared import Shared
from metatree.storage.store import Store
from metatree.trees.layer import Layer
from metatree.trees.sources import FILES
from metatree_agents.service.engine.client import ServiceClient, ServiceRefused, patiently, with_patience
from metatree_agents.service.engine.nearest import index_of
from metatree_agents.service.replication._memory_sync import MemorySync
from metatree_agents.service.replication._write_through import WriteThrough, called_from

AT_ONCE: Final = 256
"""Blocks of one request: at most 4 MB."""
KEPT: Final = 2
"""Versions that are kept: the current one, and the one before, which another process may be searching."""
_TRIES: Final = 5
_log = logging.getLogger("metatree.engine")


@dataclass(slots=True)
class _Version:
    number: int
    digest: str
    tree: Tree
    users: int = 0


class TreeCopy:
    """The tree of a service, on this machine; an async context manager. For one event loop.

    In its folder lie `memory.db`, a folder for each version with its `index.db`, and `files` with those that were read.

    Args:
        client: the service, as an engine; entered by the caller.
        folder: where copies are kept; those of several services may lie in one.
        shared: keeps runs and tool calls for all machines; None keeps them in the copy.
        say: told what a person may want to know.
    """

    def __init__(
        self,
        client: ServiceClient,
        folder: Path,
        *,
        shared: Shared | None = None,
        say: Callable[[str], None] = _log.info,
    ) -> None:
        self._client = client
        self._base = folder
        self._shared = shared
        self._say = say
        self._turn = asyncio.Lock()
        self._memory: Store | None = None
        self._sync: MemorySync | None = None
        self._now: _Version | None = None
        self._old: list[_Version] = []
        self._folder = folder
        self._call: Callable[[Any], Any] | None = None

    async def __aenter__(self) -> TreeCopy:
        self._call = called_from(asyncio.get_running_loop())
        try:
            await self.follow()
        except BaseException:
            self._close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._sync is not None:
            with suppress(MetatreeError, TimeoutError):
                async with asyncio.timeout(10):
                    await self._sync.push()
        self._close()

    def _close(self) -> None:
        for version in [*self._old, *([self._now] if self._now else [])]:
            version.tree.index.close()
        if self._memory is not None:
            self._memory.close()

    @property
    def version(self) -> int:
        """The version that searches begin with now."""
        return self._now.number if self._now is not None else 0

    @property
    def tree(self) -> Tree:
        """The tree as it is now."""
        assert self._now is not None, "use it in `async with`"
        return self._now.tree

    @property
    def index(self) -> str | None:
        return None if self._now is None else index_of(self._now.tree)

    @asynccontextmanager
    async def using(self) -> AsyncIterator[Tree]:
        """Give the current tree for one search; a version that comes meanwhile is for the next."""
        await self.follow()
        version = self._now
        assert version is not None
        version.users += 1
        try:
            yield version.tree
        finally:
            version.users -= 1
            self._let_go()

    async def follow(self) -> None:
        """Bring the copy to what is current; waits while the service cannot be reached.

        Raises:
            UserError: the service has published no tree.
        """
        async with self._turn:
            for _ in range(_TRIES):
                wanted = await patiently(self._client, "GET", "get-tree")
                if not wanted["Version"]:
                    raise UserError(
                        f"the service at {self._client.url} publishes no tree: start it with --publish,"
                        " or name a --source or --tree of this machine"
                    )
                if self._now is None:
                    self._settle_in(wanted["Name"])
                try:
                    now = self._now
                    if now is None or (now.number, now.digest) != (wanted["Version"], wanted["Digest"]):
                        await self._take_version(wanted)
                    break
                except (BrokenStore, ServiceRefused) as exc:
                    # A newer version was published, and this one's blocks are gone; or a file here was damaged.
                    mended = exc.reason != "newer" if isinstance(exc, BrokenStore) else exc.status == 404
                    if not mended:
                        raise
                    _log.info("%s; copying again", exc)
            else:
                raise BrokenStore(
                    f"the tree of {self._client.url} cannot be copied to {str(self._folder)!r}: check its disk",
                    path=str(self._folder),
                )
            assert self._sync is not None
            await self._sync.pull(wanted["Memory"])
            await self._sync.push()

    def _settle_in(self, name: str) -> None:
        if not name.isalnum():
            raise UserError(
                f"{self._client.url} names its tree {name[:40]!r}: it is no query service of metatree"
            )
        self._folder = self._base / name
        try:
            private_folder(self._folder)
            (self._folder / "versions").mkdir(exist_ok=True)
            (self._folder / "files").mkdir(exist_ok=True)
        except OSError as exc:
            raise UserError(
                f"cannot make {str(self._folder)!r}: {exc.strerror}; say with --copy where else the copy may live"
            ) from exc
        if self._memory is None:
            self._memory = Store.open(self._folder / "memory.db")

    async def _take_version(self, wanted: dict[str, Any]) -> None:
        """Fetch what is missing of a version, check all of it, and let the next search begin with it."""
        number, digest = int(wanted["Version"]), str(wanted["Digest"])
        place = self._folder / "versions" / f"{number}-{digest}"
        file = place / "index.db"
        there = file.exists()
        if not there:
            place.mkdir(exist_ok=True)
            await self._assemble(file, number, digest, int(wanted["Size"]))
        try:
            tree = await asyncio.to_thread(self._opened, place, check=there)
        except BrokenStore:
            shutil.rmtree(place, ignore_errors=True)
            raise
        if self._now is not None:
            self._old.append(self._now)
        self._now = _Version(number, digest, tree)
        if self._sync is None:
            self._sync = MemorySync(self._client, tree, str(wanted["Name"]))
        self._sync.use(tree)
        self._let_go()
        self._sweep(place)

    async def _assemble(self, file: Path, number: int, digest: str, size: int) -> None:
        listed, _ = await with_patience(lambda: self._client.fetch("GET", "get-tree-hashes", Version=number))
        if _digest(listed) != digest:
            raise BrokenStore(
                f"the hashes of version {number} are not those that were published", path=str(file)
            )
        hashes = parted(listed)
        known = self._known_file()
        assembly = await asyncio.to_thread(Assembly, file, hashes, size, known=known)
        with assembly:
            missing, packed = assembly.missing, 0
            for at in range(0, len(missing), AT_ONCE):
                page = [digest.hex() for digest in missing[at : at + AT_ONCE]]

                async def ask(page: list[str] = page) -> bytes:
                    return (await self._client.fetch("POST", "get-blocks", body={"Hashes": page}))[0]

                data = await with_patience(ask)
                packed += len(data)
                await asyncio.to_thread(_put_all, assembly, data)
            await asyncio.to_thread(assembly.finish)
        fetched = f"{len(missing):,} of {len(set(hashes)):,} blocks, {packed / 1000:,.0f} kB"
        self._say(f"copied version {number} of the tree: {fetched}")

    def _known_file(self) -> Path | None:
        """Return the latest version that is here, whose blocks need not come again."""
        there = [place / "index.db" for place in self._versions()]
        return next((file for file in there if file.exists()), None)

    def _versions(self) -> list[Path]:
        """Return the folders of the versions that are here, the latest first."""
        found = [
            each for each in (self._folder / "versions").iterdir() if each.name.partition("-")[0].isdigit()
        ]
        return sorted(found, key=lambda each: int(each.name.partition("-")[0]), reverse=True)

    def _opened(self, place: Path, *, check: bool) -> Tree:
        from metatree_routers.index.store import take_memory_anew

        assert self._memory is not None and self._call is not None
        # Its bytes are those that the service published, by digest: it is trusted as the service is.
        index = Store.open(
            place / "index.db", create=False, advice="delete it, and it is copied again", trust=True
        )
        try:
            if check:
                index.check()
            with index.transaction():
                _move_sources(Layer(index), place)
                take_memory_anew(index)
        except BaseException:
            index.close()
            raise
        tree = Tree(self._memory, index, path=place)
        tree.files = self._file
        if self._shared is not None:
            tree.shared = WriteThrough(self._shared, self._write_through)
        return tree

    def _write_through(self) -> None:
        """Send what a search has added, before its journal says that it was added."""
        if self._sync is not None and self._sync.pending():
            assert self._call is not None
            self._call(self._sync.push())

    def _file(self, digest: str) -> bytes:
        """Return a file by its digest, from this machine's disk or else from the service."""
        kept = self._folder / "files" / digest[:2] / digest
        with suppress(OSError):
            there = kept.read_bytes()
            if _digest(there) == digest:
                return there
        assert self._call is not None
        data: bytes = self._call(self._fetched(digest))
        if _digest(data) != digest:
            raise BrokenStore(f"the file {digest} did not come as it was published", path=str(kept))
        with suppress(OSError):  # a full disk: it is asked for again
            kept.parent.mkdir(exist_ok=True)
            part = kept.with_name(f".{digest}.part")
            part.write_bytes(data)
            part.replace(kept)
        return data

    async def _fetched(self, digest: str) -> bytes:
        data, part, more = b"", 0, True
        while more:

            async def ask(part: int = part) -> tuple[bytes, bool]:
                return await self._client.fetch("GET", "get-tree-file", Digest=digest, Part=part)

            try:
                packed, more = await with_patience(ask)
            except ServiceRefused as exc:
                if exc.status == 404:
                    raise UserError(
                        f"the service does not keep the file {digest}: it changed before it was published"
                    ) from exc
                raise
            data += zlib.decompress(packed)
            part += 1
        return data

    def _let_go(self) -> None:
        """Close versions that no search uses any more."""
        for version in [each for each in self._old if not each.users]:
            version.tree.index.close()
            self._old.remove(version)

    def _sweep(self, current: Path) -> None:
        """Remove versions that are not needed any more; a search that has one open goes on with it."""
        for place in self._versions()[KEPT:]:
            if place != current:
                shutil.rmtree(place, ignore_errors=True)


def _put_all(assembly: Assembly, data: bytes) -> None:
    at = 0
    while at < len(data):
        end = at + 4 + int.from_bytes(data[at : at + 4], "big")
        try:
            assembly.put(zlib.decompress(data[at + 4 : end]))
        except zlib.error as exc:
            raise BrokenStore(f"a block did not come as it was published: {exc}", path="") from exc
        at = end


def _digest(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()


def _move_sources(layer: Layer, place: Path) -> None:
    """Say of sources that are files that they lie nowhere: whatever has the same path here is something else."""
    records = layer.fact("sources") or []
    moved = [
        {**record, "place": str(place / "elsewhere" / str(number))} if record["type"] in FILES else record
        for number, record in enumerate(records)
    ]
    if moved != records:
        layer.set_fact("sources", moved)
