"""Where what can be made again is kept between processes."""

from __future__ import annotations

import logging
import os
import sys
from functools import lru_cache
from pathlib import Path

from metatree._util.links import links

_log = logging.getLogger("metatree")


def cache_folder() -> Path:
    """Return the folder for what can be made again: `METATREE_CACHE_DIR`, or `metatree` in the system's own.

    A user without a home has one that ends with the process, since any other could be prepared by somebody else; so
    does who names one by a link that may have come with a clone.
    """
    try:
        own = named_folder("METATREE_CACHE_DIR") or _of_user()
    except RuntimeError:
        return _of_process()
    if (link := _link_of_others(own)) is None:
        return own
    _warn_of_link(link)
    return _of_process()


def _link_of_others(folder: Path) -> Path | None:
    """Return the first link on the way that may have come with a clone or an archive: any below a home or beside it.

    Those in a home and above it are its user's, and so are those where a system keeps caches.
    """
    try:
        home = Path.home()
    except RuntimeError:
        home = Path(folder.anchor)
    own = {home, *home.parents, home / ".cache", home / "Library", home / "Library" / "Caches"}
    return next((link for link in links(folder) if link.parent not in own), None)


def cache_part(name: str) -> Path:
    """Return the folder in the cache for what is of one kind, which may be deleted to make room.

    One that is a link is not used, with a warning: where it leads, others keep what cannot be made again.
    """
    folder = cache_folder() / name
    if not folder.is_symlink():
        return folder
    _warn_of_link(folder)
    return _of_process() / name


@lru_cache(maxsize=8)
def _warn_of_link(folder: Path) -> None:
    _log.warning(
        "%s is a link and is not used: remove it, and name another disk with METATREE_CACHE_DIR", folder
    )


def named_folder(variable: str) -> Path | None:
    """Return the folder that a variable of ours names, None where it names none; see `named_folders`."""
    return next(iter(named_folders(variable, os.environ.get(variable, ""))), None)


def named_folders(variable: str, *names: str) -> list[Path]:
    """Return the folders that a variable of ours names.

    One that is relative is not used, with a warning: it would lie in whatever folder is current, as in `xdg_folder`.
    """
    folders = []
    for name in filter(None, names):
        if (folder := Path(name).expanduser()).is_absolute():
            folders.append(folder)
        else:
            _warn_of_relative(variable, name)
    return folders


@lru_cache(maxsize=8)
def _warn_of_relative(variable: str, named: str) -> None:
    _log.warning(
        "%s=%r is not used, since it is a relative folder: name it from its root on", variable, named
    )


def _of_user() -> Path:
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = xdg_folder("XDG_CACHE_HOME", ".cache")
    return base / "metatree"


def xdg_folder(variable: str, default: str) -> Path:
    """Return a base folder of this user: a relative one is not used, as the specification has it.

    It would lie in whatever folder is current, which somebody else may have made (XDG Base Directory Specification).

    Args:
        variable: names the folder, `XDG_STATE_HOME`.
        default: below the home, where the variable names none.
    """
    named = Path(os.environ.get(variable, ""))
    if named.is_absolute():
        return named
    if not Path.home().is_absolute():
        raise RuntimeError("the home folder of this user is a relative one")
    return Path.home() / default


@lru_cache(maxsize=1)
def _of_process() -> Path:
    import atexit
    import shutil
    import tempfile

    folder = tempfile.mkdtemp(prefix="metatree-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)
