"""Which `.git` git takes for a repository, and which it passes over on its way up."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

_MOST: Final = 4096
_HEAD: Final = re.compile(rb"ref:\s*refs/|[0-9a-f]{40}")


def is_repository(folder: Path) -> bool:
    """Whether `.git` in a folder is, or leads to, what git takes for a repository.

    Source: `is_git_directory` and `validate_headref` of git. An empty `.git` is none: the one above is asked.
    """
    try:
        own = folder / ".git"
        if own.is_file():
            said = _read(own)
            if not said.startswith(b"gitdir: "):
                return False
            own = folder / os.fsdecode(said.removeprefix(b"gitdir: ").rstrip(b"\r\n"))
        head = own / "HEAD"
        if head.is_symlink():
            if not head.readlink().as_posix().startswith("refs/"):
                return False
        elif not head.is_file() or not _HEAD.match(_read(head)):
            return False
        common = own / "commondir"
        shared = own / os.fsdecode(_read(common).rstrip(b"\r\n")) if common.is_file() else own
        return (shared / "objects").is_dir() and (shared / "refs").is_dir()
    except (OSError, ValueError):  # a name with NUL in it is none
        return False


def _read(file: Path) -> bytes:
    if file.is_symlink():  # it may lead to what never ends
        raise OSError
    with file.open("rb") as stream:
        return stream.read(_MOST)
