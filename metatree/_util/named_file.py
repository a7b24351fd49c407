"""Files that somebody names: read whole, and never waited for."""

from __future__ import annotations

import errno
import os
import re
import stat
from pathlib import Path

from metatree.errors import UserError

_SYSTEM = ("/dev", "/proc")


def read_named(path: Path) -> bytes:
    """Return the bytes of a file; what is none, such as a pipe that somebody put there, is not opened.

    Where the system keeps what is open (`/dev/stdin`, the `/dev/fd/63` of a shell's `<(…)`) pipes are read.

    Raises:
        OSError: it cannot be read, or is no file.
    """
    if any(path.is_relative_to(folder) for folder in _SYSTEM):
        return path.read_bytes()
    return read_regular(path)


def read_regular(path: Path, most: int = -1) -> bytes:
    """Return what a regular file begins with, at most so many bytes; -1 for all.

    Raises:
        OSError: it cannot be read, or is no file.
    """
    # Without O_NONBLOCK, opening a pipe waits for a writer that may never come, and so does reading /proc/kmsg.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        code = errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
        raise OSError(
            code, os.strerror(code) if stat.S_ISDIR(mode) else "it is not a regular file", str(path)
        )
    with os.fdopen(descriptor, "rb") as stream:
        return stream.read(most) or b""


def is_here(path: str | os.PathLike[str]) -> bool:
    """Whether a name is that of something, as it is where a folder on the way can be listed and not looked into.

    `os.path.lexists` says no to that, and `metatree build */*` would have what the folder holds for an option, or a
    program. A name that no file can have is none.
    """
    try:
        os.lstat(path)
    except OSError as exc:
        return exc.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.EINVAL)
    except ValueError:
        return False
    return True


def is_of_here(text: str) -> bool:
    """Whether a text that somebody gave may be what a pattern of the shell made of the files here.

    It is the name of something, or begins with one: a link to `/proc/self/task` has other names for each process.
    """
    return is_here(text) or is_here(re.split(r"[/\\]" if os.name == "nt" else "/", text, maxsplit=1)[0])


def refuse_name(text: str, form: str) -> None:
    """Refuse a text of a form that names something else, such as `@FILE`, where it may be the name of a file here.

    Raises:
        UserError: it may be.
    """
    if is_of_here(text):
        raise UserError(
            f"{text!r} is {form}, and the name of a file here, or begins with one: write ./ before a file's name, or"
            " take that file away"
        )


def typed_path(given: str | os.PathLike[str]) -> Path:
    """Return a path as somebody typed it: `~` is their home, unless something here has that very name.

    `metatree build *` names what a clone has, which may be a folder called `~`. Of that the whole path is returned, so
    that nobody takes it for the home later.

    Raises:
        UserError: both are there, or there is no user of the name after `~`.
    """
    path = Path(given)
    if not path.parts or not path.parts[0].startswith("~"):
        return path
    if not os.fspath(given).startswith("~"):  # `./~`
        return path.absolute()
    here = is_of_here(os.fspath(given))
    try:
        at_home = path.expanduser()
        if here and at_home.exists():
            raise UserError(
                f"{str(given)!r} is here and in a home: write {str(path.absolute())!r} or {str(at_home)!r}"
            )
        return path.absolute() if here else at_home
    except RuntimeError:
        if here:
            return path.absolute()
        raise UserError(f"{str(given)!r} does not exist, and no user has that home: give a path") from None
