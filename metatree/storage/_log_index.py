"""Room for the index of a write-ahead log (`-shm`), which SQLite maps into memory.

SQLite writes the last byte of each 4 kB of it when it makes it. Where blocks are smaller, as on ext4 below 512 MB, the
rest are holes, and a process that writes into one when the disk is full is killed by the kernel (SIGBUS). So there the
blocks are asked for: before SQLite first uses the file there must be room, and then all of it is allocated, through
SQLite's own descriptor, since closing another one of the file takes away the locks of this process.
"""

from __future__ import annotations

import os
from contextlib import suppress
from errno import EDQUOT, ENOSPC
from pathlib import Path
from typing import Final

from metatree.storage.errors import free_bytes, full

_PAGE: Final = 4096
"""Of how much SQLite writes one byte."""
_ROOM: Final = 2 * 32_768
"""Enough for a log of 32 MB."""
_DESCRIPTORS: Final = Path("/proc/self/fd")


def require_room(file: Path) -> None:
    """Refuse to open a store whose log could not be used.

    Raises:
        StorageFull: there is no room for it.
    """
    if not _has_holes(file):
        return
    room = free_bytes(file)
    if room is not None and room + _allocated(_index_of(file)) < _ROOM:
        raise full(file)


def fill_holes(file: Path) -> None:
    """Allocate the index of a log that this process has just opened, where that can be done.

    Raises:
        StorageFull: there is no room for it.
    """
    index = _index_of(file)
    if not _has_holes(file) or _allocated(index) >= _ROOM:
        return
    with suppress(OSError):
        for each in _DESCRIPTORS.iterdir():
            with suppress(OSError):
                if os.path.samestat(each.stat(), index.stat()):
                    _allocate(int(each.name), file)
                    return


def _allocate(descriptor: int, file: Path) -> None:
    try:
        os.posix_fallocate(descriptor, 0, _ROOM)
    except OSError as exc:
        if exc.errno in (ENOSPC, EDQUOT):
            raise full(file, exc) from exc
        raise  # open for reading alone, or a file system that cannot


def _has_holes(file: Path) -> bool:
    try:
        return hasattr(os, "posix_fallocate") and os.statvfs(file.absolute().parent).f_bsize < _PAGE
    except (OSError, AttributeError):
        return False


def _allocated(index: Path) -> int:
    try:
        return index.stat().st_blocks * 512
    except OSError:
        return 0


def _index_of(file: Path) -> Path:
    return file.with_name(file.name + "-shm")
