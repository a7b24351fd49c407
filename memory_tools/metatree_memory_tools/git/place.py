"""Where the repository of a folder is, and that it is this folder's own.

A `.git` may be a file or a link, and `commondir` in it another one, that lead anywhere: somebody who prepared a folder
could show another repository of the same user in it. So what lies outside of the folder must lead back to it, as git
itself writes it: a work tree's `gitdir` names its `.git`, and the settings of a submodule's repository have its folder
as `core.worktree`. Nobody but its owner can write that.

A history is shown where all of its objects are in the repository itself. Then a reference that leads to one of another
repository, by a link or in any other way, names what is not there.

Source: gitrepository-layout(5), git-worktree(1).
Lost: following whatever `.git` says, as git does; alternates with a check that no reference leads out, for which each
reference had to be read as git reads it: names with blanks, long files and hard links each showed another history.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from metatree._util.named_file import read_regular
from metatree.errors import UserError
from metatree.storage.store_files import is_exempt

_BYTES = 1 << 20
_LEADS = re.compile(r"gitdir:\s*([^\0\n]+)")
_HEAD_OF_ANY = re.compile(rb"ref:\s*refs/|[0-9a-f]{40}")
_SECTION = re.compile(r'\[([^\]"]*)("(?:[^"\\]|\\.)*")?\]\s*')
_SHARED = ("objects", "refs", "packed-refs", "shallow", "reftable")
_OWN = ("HEAD", "index", "refs", "reftable")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a repository keeps things, without links."""

    top: Path
    """The folder that its paths begin at: the one with `.git`, or a bare repository itself."""
    own: Path
    """The folder with the index and HEAD."""
    shared: Path
    """That of the repository itself, with objects and settings; another one for a work tree beside it."""
    bare: bool = False


def place_of(top: Path) -> Place:
    """Return where the repository of a folder that holds `.git` is.

    Raises:
        UserError: it leads to a repository elsewhere that does not name this folder, or that others are linked into.
        OSError: it cannot be read.
    """
    top = _real(top)
    entry = top / ".git"
    own = _real(entry)
    if own.is_file():
        match = _LEADS.match(_text(own))
        if match is None:
            raise UserError(f"{str(entry)!r} names no repository")
        own = _real(top / match[1].strip())
    shared = _shared(own)
    if shared != own:
        _check_work_tree(entry, own, shared)
    elif not own.is_relative_to(top) and _work_tree(own) != top:
        raise UserError(
            f"{str(entry)!r} leads to a repository elsewhere that does not name this folder: if it is yours, say"
            " `git config core.worktree FOLDER` there"
        )
    place = Place(top, own, shared)
    _check_stays(place)
    return place


def is_repository(top: Path) -> bool:
    """Whether git takes `.git` in a folder for a repository, its own or not; on its way up it passes over any other.

    Source: `is_git_directory` and `validate_headref` in setup.c and path.c of git.
    """
    try:
        own = top / ".git"
        if own.is_file():
            begin, is_lead, lead = read_regular(own, _BYTES).partition(b"gitdir: ")
            if begin or not is_lead:
                return False
            own = top / os.fsdecode(lead.rstrip(b"\r\n"))
        head = own / "HEAD"
        if head.is_symlink():
            is_sound = head.readlink().as_posix().startswith("refs/")
        else:
            is_sound = _HEAD_OF_ANY.match(read_regular(head, _BYTES)) is not None
        shared = _shared(own)
        return is_sound and (shared / "objects").is_dir() and (shared / "refs").is_dir()
    except (OSError, ValueError):  # a name with NUL in it is none
        return False


def bare_place(folder: Path) -> Place:
    """Return where a repository without files is, as `place_of`."""
    own = _real(folder)
    if _shared(own) != own:
        raise UserError(f"{str(own)!r} leads to a repository elsewhere")
    place = Place(own, own, own, bare=True)
    _check_stays(place)
    return place


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))  # `resolve` raises for links in a circle


def _shared(own: Path) -> Path:
    file = own / "commondir"
    return _real(own / _text(file).strip()) if os.path.lexists(file) else own


def _check_work_tree(entry: Path, own: Path, shared: Path) -> None:
    if own.parent != shared / "worktrees":
        raise UserError(f"{str(entry)!r} leads to a repository elsewhere that has no such work tree")
    back = own / _text(own / "gitdir").strip()
    if _real(back.parent) / back.name != entry:
        raise UserError(
            f"{str(entry)!r} leads to a repository elsewhere whose work tree is another one: if it was moved, say"
            " `git worktree repair` in it"
        )


def _work_tree(own: Path) -> Path | None:
    """Return the folder that a repository says its files are in."""
    found = None
    for file in (own / "config", own / "config.worktree"):
        if file.is_file():
            found = dict(_settings(_text(file))).get("core.worktree", found)
    return None if found is None else _real(own / found)


def _settings(text: str) -> Iterator[tuple[str, str]]:
    """Yield names and values of settings, of sections without a second name, included files left out.

    Example:
        >>> list(_settings('[core]\\n\\tbare = false\\n\\tworktree = "../my \\\\"app\\\\""\\n'))
        [('core.bare', 'false'), ('core.worktree', '../my "app"')]
    """
    section = ""
    for line in text.split("\n"):
        line, at = line.strip(), 0
        while head := _SECTION.match(line, at):
            section, at = "" if head[2] else head[1].strip().lower(), head.end()
        name, is_set, value = line[at:].partition("=")
        if section and is_set:
            value = value.strip()
            if value[:1] == '"' == value[-1:]:
                value = re.sub(r"\\(.)", r"\1", value[1:-1])
            yield f"{section}.{name.strip().lower()}", value


def _check_stays(place: Place) -> None:
    """Check that no link leads out of a repository where git may quote what it leads to.

    Raises:
        UserError: one does.
    """
    for folder, names in ((place.shared, _SHARED), (place.own, _OWN)):
        for name in names:
            _check_inside(place, folder / name)


def _check_inside(place: Place, file: Path) -> None:
    real = _real(file)
    if not (real.is_relative_to(place.shared) or real.is_relative_to(place.own)):
        raise UserError(f"{str(file)!r} leads out of its repository")


def check_objects(place: Place) -> None:
    """Check that a repository borrows no objects of another one; those of a folder in METATREE_TRUST may.

    Raises:
        UserError: it does; the message says what to do.
        OSError: they cannot be listed.
    """
    objects = place.shared / "objects"
    borrowed = objects / "info" / "alternates"
    found = borrowed if os.path.lexists(borrowed) else _first_link(objects)
    if found is not None and not is_exempt(place.top):
        raise UserError(
            f"the repository of {str(place.top)!r} takes objects from elsewhere ({found.relative_to(place.shared)}):"
            " say `git repack -a -d` in it and delete that file, or name the folder in METATREE_TRUST"
        )


def _first_link(folder: Path) -> Path | None:
    """Return a link among objects, or None: the folders of some hundred, packs, and what lists them."""
    wanted = [folder]
    while wanted:
        here = wanted.pop()
        if here.is_symlink():
            return here
        with os.scandir(here) as entries:
            for each in entries:
                if each.is_symlink():
                    return Path(each.path)
                if each.is_dir(follow_symlinks=False):
                    wanted.append(Path(each.path))
    return None


def _text(file: Path) -> str:
    """Return the beginning of a regular file, of any other nothing.

    Raises:
        OSError: it cannot be read.
    """
    return read_regular(file, _BYTES).decode("utf-8-sig", "surrogateescape") if file.is_file() else ""
