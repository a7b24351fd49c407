"""A copy of the service's tree on the machine of an engine, kept in sync with it by version.

A version is one file, fetched part by part, checked by its hash, and put in place at once. A text of the source is
fetched when it is read, by the digest that its file had when the tree was built, so a quote is always of the version
that was searched. Lost: sending all files with the tree (the source is often larger than what is ever read), and a
folder with files of several versions.

Lost for the file itself: one streamed answer with an ETag and ranges. `get-tree` is asked before each search anyway,
for the number of the memory, and names the digest; and parts go on where an answer broke off, are bounded, and come
out of the database, without a second way for each of that.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from metatree import Tree
from metatree._util.cache_folder import cache_part
from metatree._util.links import links, real
from metatree._util.numbers import whole_number
from metatree._util.private import private_folder
from metatree.errors import BrokenStore, MetatreeError, UntrustedStore, UserError
from metatree.shared import Shared
from metatree.storage.errors import file_error
from metatree.storage.store import Store
from metatree.storage.store_files import check_files, is_exempt
from metatree.storage.trust import sign
from metatree.trees.layer import Layer
from metatree.trees.source_files import digest_bytes
from metatree.trees.sources import FILES
from metatree_agents.service.engine.client import ServiceClient, ServiceRefused, patiently
from metatree_agents.service.engine.nearest import index_of
from metatree_agents.service.replication._download import DIGEST, download, require_room
from metatree_agents.service.replication._memory_sync import MemorySync
from metatree_agents.service.replication._write_through import WriteThrough, called_from
from metatree_agents.service.replication.trees import Current

FILE_BYTES: Final = 1 << 30
"""How large a file of the source may be: five times what is read of one."""
_PUBLISHED: Final = "published-sources"
"""The fact in a copy that keeps what sources the service's tree has."""
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


def copies_folder() -> Path:
    """Return where copies of trees are kept unless something else is said."""
    return cache_part("copies")


class TreeCopy:
    """The tree of a service, on this machine; an async context manager. For one event loop.

    In its folder lie `memory.db`, a folder for each version with its `index.db`, and `files` with those that were read.

    Args:
        client: the service, as an engine; entered by the caller.
        folder: where copies are kept; those of several services may lie in one.
        shared: keeps runs and tool calls for all machines; None keeps them in the copy.
        say: told what a person may want to know.
        trust_sources: whether the commands, servers, databases and trees that the service's tree names are used on this
            machine, too, with the rights of its user.
    """

    def __init__(
        self,
        client: ServiceClient,
        folder: Path,
        *,
        shared: Shared | None = None,
        say: Callable[[str], None] = _log.info,
        trust_sources: bool = False,
    ) -> None:
        self._client = client
        self._trust_sources = trust_sources
        self._base = real(folder)
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
            UserError: the service has published no tree, or is none.
            StorageFull: there is no room for the copy.
        """
        async with self._turn:
            for _ in range(_TRIES):
                latest = _current(await patiently(self._client, "GET", "get-tree"), self._client.url)
                if not latest.version:
                    raise UserError(
                        f"the service at {self._client.url} publishes no tree: start it with --publish,"
                        " or name a --source or --tree of this machine"
                    )
                if self._now is None:
                    self._settle_in(latest.name)
                try:
                    now = self._now
                    if now is None or (now.number, now.digest) != (latest.version, latest.digest):
                        await self._take_version(latest)
                    break
                except (BrokenStore, ServiceRefused) as exc:
                    # A version was published meanwhile, and this one's file is gone; or a file here was damaged.
                    can_retry = exc.reason != "newer" if isinstance(exc, BrokenStore) else exc.status == 404
                    if not can_retry:
                        raise
                    _log.info("%s; copying again", exc)
            else:
                raise BrokenStore(
                    f"the tree of {self._client.url} cannot be copied to {str(self._folder)!r}: check its disk",
                    path=str(self._folder),
                )
            assert self._sync is not None
            await self._sync.pull(latest.memory)
            await self._sync.push()

    def _settle_in(self, name: str) -> None:
        self._folder = self._base / name
        memory = self._folder / "memory.db"
        try:
            private_folder(self._folder)
            # The memory is made first, and carries the mark of its user: without one, the rest is of somebody else.
            if self._folder.is_symlink() or (not memory.exists() and any(self._folder.iterdir())):
                raise UserError(
                    f"{str(self._folder)!r} is no copy of yours: delete it, or say with --copy where else one may live"
                )
            if self._memory is None:
                self._memory = Store.open(memory)
            for name in ("versions", "files"):
                self._inner(name)
        except OSError as exc:
            raise UserError(
                f"cannot make {str(self._folder)!r}: {exc.strerror}; say with --copy where else the copy may live"
            ) from exc

    def _inner(self, name: str) -> Path:
        """Return a folder of the copy, looked at each time: git may exchange it meanwhile."""
        _make_folder(self._folder)
        _make_folder(self._folder / name)
        return self._folder / name

    async def _take_version(self, latest: Current) -> None:
        """Fetch a version, and let the next search begin with it."""
        place = self._inner("versions") / f"{latest.version}-{latest.digest}"
        file = place / "index.db"
        exists = file.exists()
        if not exists:  # a log that somebody left there would be played into what is fetched
            shutil.rmtree(place, ignore_errors=True)
        _make_folder(place)
        try:
            if not exists:
                require_room(latest.size, self._folder, self._client.url)
                came = await download(self._client, latest.digest, file, most=latest.size)
                check_files(file)
                self._say(f"copied version {latest.version} of the tree: {came / 1e6:,.1f} MB")
            tree = await asyncio.to_thread(self._opened, place, check=exists)
        except (BrokenStore, ServiceRefused):
            shutil.rmtree(place, ignore_errors=True)
            raise
        if self._now is not None:
            self._old.append(self._now)
        self._now = _Version(latest.version, latest.digest, tree)
        if self._sync is None:
            self._sync = MemorySync(self._client, tree, latest.name)
        self._sync.use(tree)
        if self._shared is not None:
            tree.shared = WriteThrough(self._shared, self._sync)
        self._let_go()
        self._sweep(place)

    def _opened(self, place: Path, *, check: bool) -> Tree:
        from metatree_routers.index.store import take_memory_anew

        assert self._memory is not None
        # Bytes that came now are those that the service published, by digest: they are trusted as the service is.
        file = place / "index.db"
        try:
            index = Store.open(
                file, create=False, advice="delete it, and it is copied again", trust=not check
            )
        except UntrustedStore as exc:
            raise BrokenStore(str(exc), path=str(file)) from exc
        try:
            if check:
                index.check()
            with index.transaction():
                left_out = _settle_sources(
                    Layer(index), place, trusted=self._trust_sources or is_exempt(file)
                )
                take_memory_anew(index)
                sign(index)
        except BaseException:
            index.close()
            raise
        if left_out and not check:
            self._say(
                f"sources of the tree that are not used on this machine: {left_out} (commands, servers, databases,"
                " trees); --trust-sources uses them here, as the server does"
            )
        tree = Tree(self._memory, index, path=place)
        tree.files = self._file
        return tree

    def _file(self, digest: str) -> bytes:
        """Return a file by its digest, from this machine's disk or else from the service."""
        if not DIGEST.fullmatch(digest):  # the service wrote the index that says so, and it becomes a path
            raise BrokenStore(
                f"the copied tree names a file by {digest[:80]!r}, which is no digest",
                path=str(self._folder),
                reason="damaged",
            )
        file = self._inner("files") / digest[:2] / digest
        _make_folder(file.parent)
        with suppress(OSError):
            content = file.read_bytes()
            if digest_bytes(content) == digest:
                return content
        assert self._call is not None
        self._call(self._fetch(digest, file))
        return file.read_bytes()

    async def _fetch(self, digest: str, file: Path) -> None:
        try:
            await download(self._client, digest, file, most=FILE_BYTES)
        except ServiceRefused as exc:
            if exc.status == 404:
                raise UserError(
                    f"the service does not keep the file {digest}: it changed before it was published"
                ) from exc
            raise

    def _let_go(self) -> None:
        """Close versions that no search uses any more."""
        for version in [each for each in self._old if not each.users]:
            version.tree.index.close()
            self._old.remove(version)

    def _sweep(self, current: Path) -> None:
        """Remove versions that are not needed any more; a search that has one open goes on with it."""
        numbers = {each: each.name.partition("-")[0] for each in self._inner("versions").iterdir()}
        versions = [each for each, number in numbers.items() if number.isdecimal()]
        for place in sorted(versions, key=lambda each: whole_number(numbers[each]) or 0, reverse=True)[KEPT:]:
            if place != current:
                shutil.rmtree(place, ignore_errors=True)


def _make_folder(place: Path) -> None:
    """Make a folder of a copy, unless it is there; git, for example, may have put a link in its place, or above it.

    What is old in it is deleted, and what comes is written there, or marked as this user's.

    Raises:
        UserError: it is a link, or no folder.
    """
    if link := next(links(place), None):
        raise UserError(f"{str(link)!r} is a link and is not followed: remove it")
    try:
        place.mkdir(exist_ok=True)
    except OSError as exc:
        raise file_error(exc, "cannot make", place) from exc


def _current(reply: Any, url: str) -> Current:
    """Return what a service says of its tree; `UserError` for what is no query service of metatree."""
    try:
        version, memory, size = (int(reply[name]) for name in ("Version", "Memory", "Size"))
        current = Current(reply["Name"], reply["Digest"], version, memory, size)
        # Name and digest become folders.
        if current.name.isalnum() and (not current.version or DIGEST.fullmatch(current.digest)):
            return current
    except (KeyError, TypeError, ValueError, AttributeError):
        pass
    raise UserError(f"{url} says {str(reply)[:100]!r} of its tree: it is no query service of metatree")


def _settle_sources(layer: Layer, place: Path, *, trusted: bool) -> int:
    """Say of sources where they are on this machine, and return how many are not used here.

    Those that are files lie nowhere: whatever has the same path here is something else. Commands, servers, databases
    and trees are used only when the user of this machine said so, who did not choose them.

    Raises:
        UserError: what the service says of them is no list of sources.
    """
    records = layer.fact(_PUBLISHED)
    if records is None:
        records = layer.fact("sources") or []
        layer.set_fact(_PUBLISHED, records)
    if not isinstance(records, list) or not all(map(_is_record, records)):
        raise UserError(
            "the service's tree has no list of sources that metatree knows: its publisher is another one"
        )
    settled, left_out = [], 0
    for number, record in enumerate(records):
        nowhere = {"place": str(place / "elsewhere" / str(number))}
        if record["type"] in FILES:
            settled.append({**record, **nowhere})
        elif trusted:
            settled.append(record)
        else:
            left_out += 1
            settled.append({"type": "", **nowhere, "options": {}, "mount": record.get("mount", "")})
    if settled != layer.fact("sources"):
        layer.set_fact("sources", settled)
    return left_out


def _is_record(record: Any) -> bool:
    return (
        isinstance(record, dict)
        and isinstance(record.get("options"), dict)
        and isinstance(record.get("type"), str)
        and isinstance(record.get("mount", ""), str)
        and isinstance(record.get("place", record.get("location")), str)
    )
