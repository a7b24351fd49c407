"""Where what can be made again is kept between processes."""

from __future__ import annotations

import os
import sys
from functools import lru_cache
from pathlib import Path


def cache_folder() -> Path:
    """Return the folder for what can be made again: `METATREE_CACHE_DIR`, or `metatree` in the system's own.

    A user without a home has one that ends with the process, since any other could be prepared by somebody else.
    """
    own = os.environ.get("METATREE_CACHE_DIR")
    if own:
        return Path(own).expanduser()
    try:
        return _of_user()
    except RuntimeError:
        return _of_process()


def _of_user() -> Path:
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "metatree"


@lru_cache(maxsize=1)
def _of_process() -> Path:
    import atexit
    import shutil
    import tempfile

    folder = tempfile.mkdtemp(prefix="metatree-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)
