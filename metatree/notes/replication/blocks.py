"""The built layer of a tree as blocks of its file, each known by its hash: a copy fetches those that it does not have.

SQLite changes few pages of a file when few nodes change, and a page stays where it is; so blocks at fixed places are
all that is needed to send a difference, and the copy is the same file, text index included. In a tree of 39,496 nodes
(51 MB), a function added to one file changes 31 of 3,108 blocks of 16 kB, 104 kB when packed, of 11.4 MB; with 4 kB it
would be 56 kB and four times the hashes, with 64 kB 214 kB (`python benchmarks/bench_copies.py`).
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Final, Self

from metatree._util.private import private_file
from metatree.errors import BrokenStore, UserError
from metatree.storage.errors import store_error
from metatree.storage.store import Store

BLOCK: Final = 16_384
"""Bytes of a block; the last one of a file may be shorter."""


def digest_of_block(data: bytes) -> bytes:
    """Return the hash that a block goes by: 16 bytes."""
    return blake2b(data, digest_size=16).digest()


def snapshot(store: Store, path: Path) -> None:
    """Write a store to another file as it is at one moment, whatever others write meanwhile, page for page.

    Raises:
        UserError: the store is in memory.
        MetatreeError: the file cannot be written, as `store_error` says.
    """
    if store.path is None:
        raise UserError("a tree in memory has no file that could be copied: build one with `metatree build`")
    try:
        source = sqlite3.connect(store.path)
        try:
            private_file(path)
            target = sqlite3.connect(path)
            try:
                source.backup(target)
            finally:
                target.close()
        finally:
            source.close()
    except sqlite3.Error as exc:
        raise store_error(exc, path) from exc


def blocks_of(path: Path) -> Iterator[bytes]:
    """Yield the blocks of a file in order."""
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            yield block


def hashes_of(path: Path) -> list[bytes]:
    """Return the hashes of the blocks of a file in order."""
    return [digest_of_block(block) for block in blocks_of(path)]


class Assembly:
    """A file that is put together of blocks: those of an earlier file, and those that come; a context manager.

    Args:
        path: the file to make; it is there, under this name, only when all of it is right.
        hashes: of its blocks, in order.
        size: its bytes.
        known: a file whose blocks are taken where they are the same; each is hashed, so it may be in any state.
    """

    def __init__(self, path: Path, hashes: Sequence[bytes], size: int, *, known: Path | None = None) -> None:
        self._path = path
        self._part = path.with_name(f".{path.name}.{os.getpid()}.part")
        self._hashes = list(hashes)
        self._size = size
        self._places: dict[bytes, list[int]] = {}
        for number, digest in enumerate(self._hashes):
            self._places.setdefault(digest, []).append(number)
        self._missing = set(self._places)
        self._file = self._part.open("w+b")
        self._file.truncate(size)
        if known is not None:
            for block in blocks_of(known):
                self.put(block)

    @property
    def missing(self) -> list[bytes]:
        """The hashes of the blocks that have not come yet."""
        return sorted(self._missing)

    def put(self, block: bytes) -> bool:
        """Write a block where it belongs; False when it belongs nowhere, or is there already."""
        digest = digest_of_block(block)
        if digest not in self._missing:
            return False
        for number in self._places[digest]:
            self._file.seek(number * BLOCK)
            self._file.write(block)
        self._missing.discard(digest)
        return True

    def finish(self) -> None:
        """Check every block as it lies on the disk, and give the file its name.

        Raises:
            BrokenStore: something is missing, or was not written as it came.
        """
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        if self._missing or self._part.stat().st_size != self._size or hashes_of(self._part) != self._hashes:
            raise BrokenStore(
                f"the copy {str(self._path)!r} is not what was published: it is fetched again",
                path=str(self._path),
            )
        self._part.replace(self._path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._part.unlink(missing_ok=True)


def joined(hashes: Iterable[bytes]) -> bytes:
    """Return hashes one behind the other."""
    return b"".join(hashes)


def parted(data: bytes) -> list[bytes]:
    """Return hashes that were written one behind the other."""
    return [data[at : at + 16] for at in range(0, len(data), 16)]
