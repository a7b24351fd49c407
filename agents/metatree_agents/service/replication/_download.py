"""Files of a service by their digests, fetched in parts: bounded, checked, and put in place at once or not at all."""

from __future__ import annotations

import asyncio
import os
import re
import zlib
from contextlib import suppress
from hashlib import blake2b
from itertools import count
from pathlib import Path
from secrets import token_hex
from typing import Final

from metatree.errors import BrokenStore, StorageFull
from metatree.storage.errors import file_error, free_bytes
from metatree_agents.service.engine.client import ServiceClient, with_patience
from metatree_agents.service.replication.trees import PART

DIGEST: Final = re.compile("[0-9a-f]{32}")
_PACKED: Final = PART + (PART >> 8)
"""The most that zlib makes of a part."""
_ELSEWHERE: Final = "say with --copy where else the copy may live"


async def download(client: ServiceClient, digest: str, file: Path, *, most: int) -> int:
    """Fetch a file; it has its name when all of it is on the disk and right. Return how many bytes came.

    Waits while the service cannot be reached, and goes on where it was.

    Args:
        most: bytes of the file that are taken.

    Raises:
        BrokenStore: what came is not the file, or more than `most`.
        ServiceRefused: the service does not keep it (404).
        StorageFull: there is no room for it.
        UserError: it cannot be written there.
    """
    if not DIGEST.fullmatch(digest):  # it becomes a part of paths
        raise BrokenStore(f"the service names a file {digest[:40]!r}, which is no digest", path=str(file))
    part = file.with_name(f".{file.name}.{token_hex(4)}.part")
    try:
        return await _fetch(client, digest, file, part, most)
    except OSError as exc:
        raise file_error(exc, "cannot write", file, _ELSEWHERE) from exc
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


async def _fetch(client: ServiceClient, digest: str, file: Path, part: Path, most: int) -> int:
    hasher, size, came = blake2b(digest_size=16), 0, 0
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
        for number in count():

            async def ask(number: int = number) -> tuple[bytes, bool]:
                return await client.fetch("get-tree-file", most=_PACKED, Digest=digest, Part=number)

            packed, more = await with_patience(ask)
            data = _unpacked(packed)
            came, size = came + len(packed), size + len(data)
            # Every part but the last is whole, so one that never ends is over at `most`.
            if size > most or len(data) > PART or (more and len(data) < PART):
                break
            await asyncio.to_thread(out.write, data)
            hasher.update(data)
            if not more:
                await asyncio.to_thread(os.fsync, out.fileno())
                break
    if hasher.hexdigest() != digest:
        raise BrokenStore(f"the file {digest} did not come as it was published", path=str(file))
    part.replace(file)
    return came


def _unpacked(packed: bytes) -> bytes:
    """Return a part, cut one byte beyond the largest there is; nothing for what is not packed."""
    try:
        return zlib.decompressobj().decompress(packed, PART + 1)
    except zlib.error:
        return b""


def require_room(size: int, folder: Path, service: str) -> None:
    """Raise `StorageFull` when the tree of a service is larger than what is free where its copy is to lie."""
    free = free_bytes(folder)
    if free is not None and size > free:
        raise StorageFull(
            f"the tree of {service} takes {size / 1e6:,.1f} MB, and {free / 1e6:,.1f} MB are free where"
            f" {str(folder)!r} is: make room there, or {_ELSEWHERE}",
            path=str(folder),
            free_bytes=free,
        )
