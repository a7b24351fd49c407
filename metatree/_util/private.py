"""Files and folders that are made for one's own user alone: they hold texts of sources, and what was remembered."""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path


def private_file(path: Path) -> None:
    """Make an empty file that only its owner may read, unless there is something already.

    SQLite gives the files beside a database the rights of the database itself. What cannot be made is left to whoever
    opens it, and says why.
    """
    with suppress(OSError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))


def keep_private(path: Path) -> None:
    """Take from others the rights to a file, if there is one; not through a link, nor of what has another name, too."""
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
        try:
            state = os.fstat(descriptor)
            if stat.S_ISREG(state.st_mode) and state.st_nlink == 1 and os.chmod in os.supports_fd:
                os.fchmod(descriptor, 0o600)
        finally:
            os.close(descriptor)


def private_folder(path: Path) -> None:
    """Make a folder that only its owner may enter, and those above it; one that is there stays as it is.

    Also those above: who may write in one of them could put another folder in the place of this one.

    Raises:
        OSError: it cannot be made.
    """
    for above in reversed(path.parents):
        if not above.exists():
            above.mkdir(mode=0o700, exist_ok=True)
    path.mkdir(mode=0o700, exist_ok=True)


def publish(part: Path, file: Path) -> None:
    """Give a file that was written whole its name; one that another process made meanwhile stays.

    The caller removes `part`.

    Raises:
        OSError: it cannot be given.
    """
    try:
        os.link(part, file)
    except FileExistsError:
        pass
    except OSError:  # a file system without hard links
        if not file.exists():
            part.replace(file)


def write_whole(path: Path, data: bytes, *, mode: int | None = None, dir_fd: int | None = None) -> None:
    """Write a file so that a reader sees the old or the new one, with the rights of the old one.

    What else has the name of the old one, as a hard link or a pipe has it, stays as it is.

    Args:
        dir_fd: of the open folder that the path is a name in; a link of that name is replaced.

    Raises:
        OSError: it cannot be written.
    """
    if mode is None:
        mode = _mode_of(path, dir_fd)
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode, dir_fd=dir_fd)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            if hasattr(os, "fchmod"):  # its name may be a link to another file by now
                os.fchmod(handle, mode)
            else:
                part.chmod(mode)
        os.replace(part, path, src_dir_fd=dir_fd, dst_dir_fd=dir_fd)
    except BaseException:
        with suppress(OSError):
            os.unlink(part, dir_fd=dir_fd)
        raise


def _mode_of(path: Path, dir_fd: int | None) -> int:
    with suppress(OSError):
        state = os.stat(path, dir_fd=dir_fd, follow_symlinks=dir_fd is None)
        if stat.S_ISREG(state.st_mode):
            return state.st_mode & 0o777
    return 0o666 & ~_umask()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
