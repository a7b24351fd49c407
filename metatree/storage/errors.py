"""What a failed read or write of a file means, derived from error codes and the file system, never from words.

SQLite says "disk I/O error" or "unable to open" of a full disk as well, when it cannot make a file beside the store;
so what is free there decides whether it was that.
"""

from __future__ import annotations

import os
import sqlite3
from errno import EDQUOT, ENOSPC, EROFS
from pathlib import Path
from typing import Final

from metatree._util.secret_text import shapes_masked
from metatree.errors import BrokenStore, MetatreeError, StorageFull, StoreReplaced, TransientError, UserError

SCARCE_BYTES: Final = 1 << 20
"""With less than this free, a file that could not be made or written failed for lack of space."""

ELSEWHERE: Final = "keep the tree in another folder with --tree (`out` of build_tree)"

_DAMAGED: Final = frozenset(
    (
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_FORMAT,
        sqlite3.SQLITE_IOERR_SHORT_READ,
        sqlite3.SQLITE_IOERR_CORRUPTFS,
        sqlite3.SQLITE_IOERR_DATA,
    )
)
_BUSY: Final = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def is_busy(exc: sqlite3.Error) -> bool:
    """Whether another connection kept a statement waiting for too long."""
    return primary_code(exc) in _BUSY


def is_damage(exc: sqlite3.Error) -> bool:
    """Whether what is in the file is wrong, which no free space and no permission fixes."""
    code = _code(exc)
    # Text that is no UTF-8 is found by Python, which gives no code.
    return {code, code & 0xFF} & _DAMAGED != set() or (code == 0 and type(exc) is sqlite3.OperationalError)


def store_error(
    exc: sqlite3.Error,
    file: Path | None,
    *,
    read_only: bool = False,
    advice: str = "",
) -> MetatreeError:
    """Return the error that says what became of a statement.

    Args:
        exc: what SQLite raised.
        file: the store; None for one in memory.
        read_only: whether it was opened for reading alone.
        advice: what to do when it is damaged; ends the message.
    """
    name, code, primary = ":memory:" if file is None else str(file), _code(exc), primary_code(exc)
    cause = shapes_masked(str(exc)) + (f", {exc.sqlite_errorname}" if code else "")  # it repeats names
    if primary in _BUSY:
        return TransientError(f"{name} is being written by another process: try again", retry_after_s=1.0)
    if primary == sqlite3.SQLITE_NOTADB:
        return BrokenStore(f"{name} is no database of metatree{advice}", path=name)
    if is_damage(exc):
        return BrokenStore(f"{name} is damaged ({cause}){advice}", path=name)
    if code == sqlite3.SQLITE_READONLY_DBMOVED:
        return replaced(file)
    if primary == sqlite3.SQLITE_READONLY:
        return unwritable(file) if read_only else UserError(f"{name} cannot be written ({cause})")
    if primary == sqlite3.SQLITE_FULL or (
        primary in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN) and _is_scarce(file)
    ):
        return full(file)
    if primary == sqlite3.SQLITE_CANTOPEN:
        return UserError(f"cannot open {name!r} ({cause}); check that its folder exists and can be written")
    if primary == sqlite3.SQLITE_IOERR:
        return MetatreeError(
            f"{name} could not be read or written ({cause}){_free(file)}: check the disk and quotas, and try again"
        )
    return MetatreeError(f"{name}: {cause}")


def file_error(exc: OSError, what: str, path: Path, advice: str = "choose another path") -> MetatreeError:
    """Return the error that says why a file or folder of a tree could not be made or written, and what to do.

    Args:
        exc: what the system raised.
        what: what failed, such as `cannot make the folder`.
        path: the file or folder.
        advice: what to do besides mending its rights.
    """
    if exc.errno in (ENOSPC, EDQUOT):
        return full(path, exc)
    if exc.errno == EROFS:
        return unwritable(path)
    return UserError(
        f"{what} {str(path)!r}: {exc.strerror}; check that its folder exists and can be written, or {advice}"
    )


def full(path: Path | None, exc: OSError | None = None) -> StorageFull:
    """Return the error that there is no room left where a file lies."""
    room = free_bytes(path)
    if exc is not None and exc.errno == EDQUOT:
        why = f"the quota of its user is used up ({exc.strerror})"
    elif path is None:
        why = "there is no memory left for it"
    elif room is not None and room >= SCARCE_BYTES:
        why = f"a limit on its size or a quota is reached, while {_size(room)} are free on its file system"
    else:
        free = "" if room is None else f" ({_size(room)} free)"
        why = f"the file system of {str(_nearest(path))!r} is full{free}"
    return StorageFull(
        f"no space to write {'in memory' if path is None else repr(str(path))}: {why}; make room there and run it"
        " again, what was kept before is kept",
        path="" if path is None else str(path),
        free_bytes=room,
    )


def unwritable(path: Path | None) -> UserError:
    """Return the error that a file can only be read, with the reason that the system gives."""
    name = ":memory:" if path is None else str(path)
    if path is not None and is_mounted_read_only(path):
        return UserError(
            f"{name} can only be read: its file system is mounted read-only; mount it for writing, or {ELSEWHERE}"
        )
    return UserError(
        f"{name} can only be read, since its folder cannot be written: change its permissions, or {ELSEWHERE}"
    )


def replaced(file: Path | None) -> StoreReplaced:
    """Return the error that a store was deleted, moved or replaced while it was open."""
    became = "replaced by another file" if file is not None and file.exists() else "deleted or moved"
    return StoreReplaced(
        f"{file} was {became} while it was in use: what was to be written now is not kept; run it again, which"
        " opens or builds the tree that is there then",
        path=str(file),
    )


def free_bytes(path: Path | None) -> int | None:
    """Return how much can still be written where a file lies, None when that is not known; 0 without free inodes."""
    if path is None:
        return None
    try:
        state = os.statvfs(_nearest(path))
    except (OSError, AttributeError):
        return None
    return 0 if state.f_files and not state.f_favail else state.f_bavail * state.f_frsize


def is_mounted_read_only(path: Path) -> bool:
    """Whether the file system that a file lies on refuses to be written, whoever asks."""
    try:
        return bool(os.statvfs(_nearest(path)).f_flag & os.ST_RDONLY)
    except (OSError, AttributeError):
        return False


def _nearest(path: Path) -> Path:
    """Return the nearest folder above a path that is there."""
    path = path.absolute()
    return next((each for each in (path, *path.parents) if each.is_dir()), Path(path.anchor))


def _is_scarce(file: Path | None) -> bool:
    room = free_bytes(file)
    return room is not None and room < SCARCE_BYTES


def _free(file: Path | None) -> str:
    room = free_bytes(file)
    return "" if room is None else f", {_size(room)} are free there"


def _size(number: int) -> str:
    return f"{number / 1e6:,.1f} MB" if number >= 100_000 else f"{number:,} bytes"


def _code(exc: sqlite3.Error) -> int:
    return int(getattr(exc, "sqlite_errorcode", 0) or 0)


def primary_code(exc: sqlite3.Error) -> int:
    """Return the code of an error of SQLite without what extends it; 0 for one of the module's own."""
    return _code(exc) & 0xFF
