"""Folders that are opened, and what is in them reached from there: nobody can put a link in the way meanwhile."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

HAS_OPEN_FOLDERS: Final = (
    {os.link, os.mkdir, os.open, os.rename, os.rmdir, os.stat, os.unlink} <= os.supports_dir_fd
    and hasattr(os, "O_NOFOLLOW")
    and hasattr(os, "O_DIRECTORY")
)
"""Whether the system can do that; Windows cannot."""
# Without O_NONBLOCK, opening a pipe waits for a writer that may never come.
READ_FILE: Final = (
    os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
)
"""Flags that open a file for reading, and no link."""
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0)


@dataclass(frozen=True, slots=True)
class OpenFolder:
    """A folder that stays the same while it is read and written, whatever is put in its place."""

    path: Path
    descriptor: int | None
    """None for one that is used by its name, in which links are followed."""

    def name(self, file: str) -> Path:
        """Return what a function of the system takes for a file, together with the descriptor as its `dir_fd`."""
        return self.path / file if self.descriptor is None else Path(file)

    def open(self, file: str) -> int:
        """Open a file for reading and return its descriptor; it may be a pipe or a device."""
        flags = READ_FILE if self.descriptor is not None else READ_FILE & ~getattr(os, "O_NOFOLLOW", 0)
        return os.open(self.name(file), flags, dir_fd=self.descriptor)

    def create(self, file: str) -> IO[bytes]:
        """Make a file and open it for writing.

        Raises:
            FileExistsError: the name is taken.
        """
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
        return os.fdopen(os.open(self.name(file), flags, 0o666, dir_fd=self.descriptor), "wb")


@contextmanager
def opened(root: Path, parts: Sequence[str] = (), *, make: bool = False) -> Iterator[OpenFolder]:
    """Open a folder below another one as `open_folder` does; by its name where the system has no such."""
    path = root.joinpath(*parts)
    if not HAS_OPEN_FOLDERS:
        if make:
            path.mkdir(parents=True, exist_ok=True)
        yield OpenFolder(path, None)
        return
    descriptor = open_folder(root, [os.fsencode(part) for part in parts], make=make)
    try:
        yield OpenFolder(path, descriptor)
    finally:
        os.close(descriptor)


def open_folder(
    root: Path | bytes, parts: Sequence[bytes], flags: int = _FOLDER, *, make: bool = False
) -> int:
    """Open a folder below another one, folder by folder, and return its descriptor.

    On Linux no link is followed on the way to the upper one either; elsewhere one may not be let into those above it.

    Args:
        make: whether those below the upper one are made where there are none.

    Raises:
        OSError: it cannot be opened, or something on the way is a link.
    """
    path = os.path.abspath(os.fsencode(root))
    above = [part for part in path.split(b"/") if part] if hasattr(os, "O_PATH") else []
    names = [*above, *parts]
    folder = os.open(b"/" if hasattr(os, "O_PATH") else path, _FOLDER if names else flags)
    for number, name in enumerate(names, start=1):
        try:
            if make and number > len(above):
                with suppress(FileExistsError):
                    os.mkdir(name, dir_fd=folder)
            last = number == len(names)
            below = os.open(name, (flags if last else _FOLDER) | os.O_NOFOLLOW, dir_fd=folder)
        finally:
            os.close(folder)
        folder = below
    return folder
