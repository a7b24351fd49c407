"""The files of a store before SQLite opens them: links, pipes, journals of others, and other names of the same file.

`METATREE_TRUST` names folders whose trees are trusted without a mark, for containers and CI, joined as in PATH.
"""

from __future__ import annotations

import os
import re
import stat
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from metatree._util.cache_folder import named_folders
from metatree.errors import UserError
from metatree.storage._git_index import tracked

LEAVE_LOG: Final = "PRAGMA journal_mode=MEMORY"
"""Ends write-ahead logging for a file's only connection, and is refused while any process has another one.

Without a rollback journal in a file, as DELETE writes one: who is killed just then would leave it, and it could not
be told from one that somebody else put there. What is written are a few bytes of the first sector.
"""
FIRST_NAME: Final = "{name}.{digits}.new"
"""Under which a store is made, before it is given its own."""
_FIRST_NAME: Final = re.compile(r"\.[0-9a-f]{8}\.new")
_MOMENTS_S: Final = (0.0, 0.02, 0.2)
"""How long is waited for what another process is just doing to a new store."""
_SUPER_JOURNAL: Final = bytes.fromhex("d9d505f920a163d7")
"""How a rollback journal ends that names another file, which SQLite would delete (sqlite.org/fileformat.html, 3)."""


def is_exempt(file: Path) -> bool:
    """Whether a file lies in a folder that METATREE_TRUST names, and so does what it leads to, if it is a link."""
    folders = named_folders("METATREE_TRUST", *os.environ.get("METATREE_TRUST", "").split(os.pathsep))
    if not folders:
        return False
    trusted = [os.path.realpath(each) for each in folders]
    # A link elsewhere that leads here is somebody's who may write there.
    places = [Path(os.path.realpath(file.parent), file.name), Path(os.path.realpath(file))]
    return all(any(place.is_relative_to(each) for each in trusted) for place in places)


def folder_beside(file: Path, end: str) -> Path:
    """Return a folder that a store has beside it, called as the store with an ending.

    Raises:
        UserError: git, for example, has put a link in its place, or in that of `.metatree`, since the store was opened.
    """
    folder = file.with_name(file.name + end)
    for place in (folder, *([file.parent] if file.parent.name == ".metatree" else [])):
        if place.is_symlink() and not is_exempt(place):
            raise UserError(f"{str(place)!r} is a link and is not followed: remove it")
    return folder


def check_files(file: Path) -> None:
    """Refuse a store whose files could lead SQLite elsewhere: links, pipes, journals of others, or of no store.

    Through a hard link too: SQLite would write what a log holds into the file that has another name elsewhere.

    Raises:
        UserError: the message says which file, and what to do.
    """
    names = [file, *(file.with_name(file.name + end) for end in ("-wal", "-shm", "-journal"))]
    folders = [file.with_name(file.name + ".images")]
    if file.parent.name == ".metatree":
        folders.append(file.parent)
    logs = []
    for path in (*names, *folders):
        try:
            state = path.lstat()
        except OSError:
            continue
        if stat.S_ISLNK(state.st_mode) and not is_exempt(path):
            raise UserError(
                f"{str(path)!r} is a link and is not followed: remove it, or name what it leads to with --tree"
            )
        if path == file.parent and is_of_another(state) and os.access(path, os.W_OK) and not is_exempt(path):
            raise UserError(
                f"{str(path)!r} belongs to another user, who could exchange what you keep in it: delete it, or keep the"
                " tree elsewhere (--tree)"
            )
        if path in names and not stat.S_ISREG(state.st_mode) and not stat.S_ISLNK(state.st_mode):
            raise UserError(f"{str(path)!r} is not a regular file: remove it")
        if path in names[1:] and _is_log_of_another(state, file) and not is_exempt(path):
            raise UserError(
                f"{str(path)!r} belongs to another user, who may not write {file.name} and would change what you keep"
                " in it: delete it, and keep the tree where others cannot put files (--tree)"
            )
        if path in names[1:] and state.st_size:
            logs.append(path)
    texts = [log for log in logs if not log.name.endswith("-shm")]
    if texts and not file.exists():  # looked at after its logs: who makes it makes them later
        raise UserError(
            f"{str(texts[0])!r} belongs to no file, and would change a new {file.name}: delete it"
        )
    _check_journal(file)
    if logs and (log_of_git := tracked(logs)):
        raise UserError(
            f"git tracks {str(log_of_git)!r}, so it may change what you keep in {file.name}: stop what uses the tree,"
            " delete that file, and take it out of the repository (git rm --cached)"
        )
    for path in [*([file] if texts or _is_empty(file) else ()), *names[1:]]:
        if _has_other_names(path) and not is_exempt(path):
            raise UserError(
                f"{str(path)!r} has another name elsewhere (a hard link), and would be written there: delete it, or if"
                " it is yours put a copy in its place"
            )


def _check_journal(file: Path) -> None:
    """Refuse a store with a rollback journal, which SQLite would play back, and which may have it delete any file.

    Raises:
        UserError: there is one.
    """
    journal = file.with_name(file.name + "-journal")
    if not journal.is_file() or _is_empty(journal):
        return
    if _ends_with(journal, _SUPER_JOURNAL):
        raise UserError(f"{str(journal)!r} names other files, and none of ours does: delete it")
    if not _is_empty(file):  # an empty one is a lock, whose journal holds nothing
        raise UserError(f"{str(journal)!r} is none of ours, which keep their changes in a -wal: delete it")


def _has_other_names(file: Path) -> bool:
    """Whether a file is a hard link; one that another process is just giving its name is one for a moment."""
    for wait_s in _MOMENTS_S:
        time.sleep(wait_s)
        if _names(file) < 2:
            return False
    _drop_first_names(file)
    return _names(file) > 1


def _names(file: Path) -> int:
    try:
        return file.stat().st_nlink
    except OSError:
        return 0


def _drop_first_names(file: Path) -> None:
    """Take away the names under which a store was made, which stay where its process was killed just then."""
    for first in file.absolute().parent.iterdir():
        end = first.name.removeprefix(file.name)
        if end != first.name and _FIRST_NAME.fullmatch(end):
            with suppress(OSError):  # another process was faster
                if os.path.samestat(first.lstat(), file.lstat()):
                    first.unlink()


def _is_empty(file: Path) -> bool:
    try:
        return not file.stat().st_size
    except OSError:
        return False


def is_of_another(state: os.stat_result) -> bool:
    """Whether a file belongs to neither this user nor root, where files belong to somebody."""
    return hasattr(os, "geteuid") and state.st_uid not in (os.geteuid(), 0)


def _is_log_of_another(log: os.stat_result, file: Path) -> bool:
    """Whether a log is of somebody who may not write the store, but may put files beside it."""
    try:
        store = file.stat()
    except OSError:
        return False
    if not is_of_another(log) or log.st_uid == store.st_uid:
        return False
    return not store.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _ends_with(file: Path, magic: bytes) -> bool:
    with file.open("rb") as stream:
        stream.seek(max(0, file.stat().st_size - len(magic)))
        return stream.read() == magic


def whole(file: Path) -> str:
    """Return the path by which SQLite opens a file: it takes a relative `file:x/index.db` for a URI, where built so.

    That would be another file than the one that was looked at, with another journal.
    """
    return str(file.absolute())
