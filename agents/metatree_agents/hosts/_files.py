"""Files of hosts: those of a user by their names, those of a project by no link, whoever else may write in it.

What was looked at by its name may be a link by the time that it is written, so a folder of a project is opened below
the one above it, and what is in it is read and written through its descriptor.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from metatree._util.open_folder import OpenFolder, opened

_MOST_BYTES = 32_000_000


@contextmanager
def folder_of(path: Path, project: Path | None, *, make: bool = False) -> Iterator[OpenFolder]:
    """Open the folder that a file is in.

    Args:
        project: the folder, without links, below which none is followed; None for a file of the user.
        make: whether folders that are missing are made.

    Raises:
        OSError: it cannot be opened, or something on the way is a link.
    """
    if project is not None:
        with opened(project, path.parent.relative_to(project).parts, make=make) as folder:
            yield folder
        return
    if make:
        path.parent.mkdir(parents=True, exist_ok=True)
    yield OpenFolder(path.parent, None)


def read(path: Path, project: Path | None) -> str | None:
    """Return what a file holds; None where there is none.

    Raises:
        ValueError: it cannot be read, is no text, or is reached by a link of the project.
    """
    try:
        with folder_of(path, project) as folder:
            return read_in(folder, path.name)
    except FileNotFoundError:
        return None
    except OSError as exc:
        raise ValueError(link_on_the_way(path, project) or exc.strerror or str(exc)) from None


def read_in(folder: OpenFolder, name: str) -> str | None:
    """Return what a file of an open folder holds; None where there is none.

    Raises:
        ValueError: it is no text, or no file that is read.
        OSError: it cannot be read.
    """
    try:
        handle = folder.open(name)
    except FileNotFoundError:
        return None
    with os.fdopen(handle, "rb") as stream:
        # What a device holds has no size.
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise ValueError("it is not a regular file")
        data = stream.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise ValueError("it is too large")
    try:
        return data.decode()
    except UnicodeDecodeError as exc:
        raise ValueError(f"it is no UTF-8 text (byte {exc.start})") from None


def link_on_the_way(path: Path, project: Path | None) -> str:
    """Say which link of a project is in the way of a file and what to do about it; nothing where there is none."""
    if project is None:
        return ""
    for place in (*reversed(path.parents), path):
        if place.is_symlink():
            target = Path(os.path.realpath(place))
            out = "" if target.is_relative_to(project) else " out of the project,"
            what = "file" if place == path else "folder"
            return f"a link leads{out} to {str(target)!r}: put a {what} in the place of {str(place)!r}"
    return ""


def remove_empty(folders: Iterable[Path], project: Path | None) -> None:
    """Remove folders, the deepest first; those that something lies in stay."""
    for folder in folders:
        # One that does not lie in the project stays, too.
        with suppress(OSError, ValueError), folder_of(folder, project) as above:
            os.rmdir(above.name(folder.name), dir_fd=above.descriptor)
