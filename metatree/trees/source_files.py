"""Reading content from the source of a tree, and never from anywhere else."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from metatree._util.open_folder import HAS_OPEN_FOLDERS, READ_FILE, open_folder
from metatree.errors import StaleSource, UserError

_NO_NAMES = frozenset({b"", b".", b".."})


@dataclass(frozen=True, slots=True)
class FileState:
    """What was known of a file when its nodes were built."""

    size: int
    mtime_ns: int
    digest: str
    encoding: str
    raw: bytes | None = None
    """The path as the file system has it, when that is not UTF-8."""
    ctime_ns: int = -1
    """When its status last changed; -1 when that was not recorded."""
    masked: bool = False
    """Whether something in it looked like a secret, and was masked."""


def mtime_of(state: os.stat_result) -> int:
    """Return when a file was last changed, in nanoseconds; the first or last moment that a database can hold instead.

    File systems have times beyond the years 1677 and 2262.
    """
    return max(-(2**63), min(state.st_mtime_ns, 2**63 - 1))


def digest_bytes(data: bytes) -> str:
    """Return the hash of a file's bytes: 32 hexadecimal digits."""
    return blake2b(data, digest_size=16).hexdigest()


def open_inside(root: Path, path: str | bytes, *, links: bool = True) -> int:
    """Open a regular file below a folder for reading and return its descriptor.

    Symbolic links that lead out of the folder, devices, pipes and sockets are refused, and so are those that somebody
    puts in the way meanwhile.

    Args:
        root: the folder, by a path without links.
        path: of the file, below it.
        links: whether links that stay in the folder are followed. A build follows none: what one that came later leads
            to may be left out of the tree.

    Raises:
        UserError: it lies outside, or is no regular file.
        OSError: it cannot be opened, or is reached by a link.
    """
    inner = os.fsencode(path)
    parts = inner.replace(b"\\", b"/").split(b"/") if os.name == "nt" else inner.split(b"/")
    descriptor = _open_without_links(root, parts)
    if descriptor is None:
        base = os.fsencode(root if HAS_OPEN_FOLDERS else os.path.realpath(root))
        where = os.path.realpath(os.path.join(base, inner))
        outside = not where.startswith(base.rstrip(b"/") + os.sep.encode())
        if outside or b".." in parts or os.path.isabs(inner):
            raise UserError(f"{os.fsdecode(inner)!r} lies outside of {str(root)!r}: it is not read")
        if not links and where != os.path.join(base, inner):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        if HAS_OPEN_FOLDERS:
            descriptor = _open_straight(base, where[len(base) :].lstrip(b"/").split(b"/"))
        else:
            descriptor = os.open(where, READ_FILE)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise UserError(f"{os.fsdecode(inner)!r} is not a regular file")
    return descriptor


def _open_without_links(root: Path | bytes, parts: Sequence[bytes]) -> int | None:
    """Open a file folder by folder without following a link; None where that cannot be done.

    A third of the time that it takes to resolve the path first, and no link can be put in the way meanwhile.
    """
    if not HAS_OPEN_FOLDERS or not _NO_NAMES.isdisjoint(parts):
        return None
    try:
        return _open_straight(root, parts)
    except OSError:  # a link, or what is found out when the path is resolved
        return None


def _open_straight(root: Path | bytes, parts: Sequence[bytes]) -> int:
    folder = open_folder(root, parts[:-1])
    try:
        return os.open(parts[-1], READ_FILE, dir_fd=folder)
    finally:
        os.close(folder)


def read_inside(
    root: Path, path: str | bytes, *, limit: int | None = None, links: bool = True
) -> tuple[bytes, os.stat_result]:
    """Return the bytes of a file below a folder, at most `limit` of them, and its state; raises as `open_inside`."""
    with open(open_inside(root, path, links=links), "rb") as stream:
        # No more than there is: room is made for all that is asked for. What grew meanwhile is read to its end, too.
        size = os.fstat(stream.fileno()).st_size + 1
        data = stream.read(size if limit is None else min(size, limit))
        if len(data) == size:
            data += stream.read(-1 if limit is None else limit - size)
        return data, os.fstat(stream.fileno())


def stamp(root: Path, path: str | bytes) -> tuple[int, ...] | None:
    """Return numbers that are others when a file below a folder was changed or replaced, None when it is not there."""
    try:
        state = os.stat(os.path.join(os.fsencode(root), os.fsencode(path)))
    except (OSError, ValueError):
        return None
    return state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns


def read_source(root: Path, node_id: str, file: str, known: FileState | None) -> bytes:
    """Return the bytes of the file that a node was built from, by its path below a folder.

    Raises:
        StaleSource: the file changed since, or is gone.
        UserError: it cannot be read.
    """
    path: str | bytes = file if known is None or known.raw is None else known.raw
    try:
        # What became larger has changed, however large it is.
        data, state = read_inside(root, path, limit=None if known is None else known.size + 1, links=False)
    except OSError as exc:
        if exc.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EISDIR):
            raise StaleSource(node_id) from exc
        raise UserError(f"the source of {node_id!r} cannot be read: {exc.strerror} ({file!r})") from exc
    if known is None:
        return data
    same_status = known.ctime_ns in (-1, state.st_ctime_ns)
    if same_status and (state.st_size, mtime_of(state)) == (known.size, known.mtime_ns):
        return data
    if digest_bytes(data) != known.digest:
        raise StaleSource(node_id)
    return data
