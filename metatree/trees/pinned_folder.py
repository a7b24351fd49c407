"""A folder that stays the same while it is written to, whatever somebody puts in its place."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from metatree.trees.source_files import open_folder


@dataclass(frozen=True, slots=True)
class PinnedFolder:
    """A folder by its descriptor, where the system has that, else by its path."""

    folder: Path
    descriptor: int | None
    """For `dir_fd`."""

    def name(self, file: str) -> str | Path:
        """Return what a file in it is called beside `dir_fd`."""
        return self.folder / file if self.descriptor is None else file

    def create(self, file: str, **options: Any) -> IO[Any]:
        """Open a new file for writing, with the options of `open`.

        Raises:
            FileExistsError: there is one, or a link.
        """
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
        descriptor = os.open(self.name(file), flags, 0o666, dir_fd=self.descriptor)
        stream: IO[Any] = os.fdopen(descriptor, **options)
        return stream


@contextmanager
def pinned(folder: Path) -> Iterator[PinnedFolder]:
    """Give a folder that is there, at a path without links: somebody may put one there by now.

    Raises:
        OSError: it cannot be opened, or a link is on the way.
    """
    if not {os.open, os.link, os.unlink, os.stat} <= os.supports_dir_fd:
        yield PinnedFolder(folder, None)
        return
    descriptor = open_folder(folder, (), os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield PinnedFolder(folder, descriptor)
    finally:
        os.close(descriptor)
