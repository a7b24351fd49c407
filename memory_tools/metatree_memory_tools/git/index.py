"""Which files git tracks, read from its index: they belong to a tree although a rule may ignore them.

Source: Documentation/gitformat-index of git; versions 2 to 4, names only. An index that is split, larger than 128 MB
(a million files), no regular file, or that this does not understand gives no names; nor does one whose names, which
version 4 writes as what differs from the one before, take more than twice that together, or half of it below the folder
that is asked about, or are longer than a path can be.

Lost: asking git, which costs ten times as much at each look at a folder with ignored files.
"""

from __future__ import annotations

import re
import stat
from functools import lru_cache
from pathlib import Path

from metatree._util.named_file import read_regular

_HEADER = 12
_MAX_BYTES = 1 << 27
_MOST_READ = 1 << 28
_MOST_KEPT = 1 << 26
_LONGEST_NAME = 4096
_CONFIG_BYTES = 1 << 20
_STAT = 40
_EXTENDED = 0x4000
_NAME = 0x0FFF
_SHA1, _SHA256 = 20, 32


def tracked_below(git: Path, base: str) -> frozenset[bytes]:
    """Return the paths of tracked files below a folder of a repository, relative to that folder.

    Args:
        git: the folder with the index: `.git`, or that of a work tree.
        base: the folder's path in the repository, with a `/` at its end unless it is empty.
    """
    index = git / "index"
    try:
        state = index.stat()
        # To open a pipe is to wait for a writer.
        if not stat.S_ISREG(state.st_mode) or state.st_size > _MAX_BYTES:
            return frozenset()
        return _names(index, base.encode("utf-8", "surrogateescape"), state.st_mtime_ns, state.st_size)
    except OSError:
        return frozenset()


@lru_cache(maxsize=4)
def _names(index: Path, prefix: bytes, mtime_ns: int, size: int) -> frozenset[bytes]:
    data = read_regular(index)
    config = index.parent / "config"
    if not config.is_file():  # of a work tree: beside the repository's own
        config = index.parent.parent.parent / "config"
    text = read_regular(config, _CONFIG_BYTES) if config.is_file() else b""
    hashed = _SHA256 if re.search(rb"objectformat\s*=\s*sha256", text, re.IGNORECASE) else _SHA1
    try:
        return frozenset(names_in(data, hashed, prefix))
    except (IndexError, ValueError):
        return frozenset()


def names_in(data: bytes, hashed: int = _SHA1, prefix: bytes = b"") -> list[bytes]:
    """Return the names in an index that begin so, without that; none of them if it is split.

    Args:
        data: the index.
        hashed: how many bytes an object's name has.
        prefix: how the names begin.

    Raises:
        ValueError, IndexError: it is damaged, of another version, or has names that no files have.
    """
    version = int.from_bytes(data[4:8], "big")
    if data[:4] != b"DIRC" or version not in (2, 3, 4):
        raise ValueError("no index of git that is known here")
    count = int.from_bytes(data[8:12], "big")
    names: list[bytes] = []
    at, name, size, kept = _HEADER, b"", 0, 0
    for _ in range(count):
        flags = at + _STAT + hashed
        flag_bits = data[flags] << 8 | data[flags + 1]
        begin = flags + (4 if version > 2 and flag_bits & _EXTENDED else 2)
        cut = 0
        if version == 4:
            cut, begin = _offset(data, begin)
        end = data.index(b"\0", begin)
        name = name[: len(name) - cut] + data[begin:end] if version == 4 else data[begin:end]
        size += len(name)
        if name.startswith(prefix):
            names.append(name[len(prefix) :])
            kept += len(names[-1])
        if len(name) > _LONGEST_NAME or size > _MOST_READ or kept > _MOST_KEPT:
            raise ValueError("names that no files have")
        # Before version 4, entries are filled up with NUL to a multiple of 8 bytes, at least one.
        at = end + 1 if version == 4 else at + (end - at) // 8 * 8 + 8
    return [] if data[at : at + 4] == b"link" else names


def _offset(data: bytes, at: int) -> tuple[int, int]:
    """Return a number of variable width, as pack files have it, and where it ends."""
    byte = data[at]
    value = byte & 127
    while byte & 128:
        if value > _LONGEST_NAME:
            raise ValueError("a name that is cut by more than a name has")
        at += 1
        byte = data[at]
        value = (value + 1) << 7 | (byte & 127)
    return value, at + 1
