"""diskcache's database: looked at before it is opened, since a folder may have come with one, and without files.

diskcache deletes and reads the files that rows name, wherever they are, and sets what the settings in the database say.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import sys
import tempfile
from contextlib import closing, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from metatree._util.private import private_file, private_folder
from metatree.errors import UserError
from metatree.storage.store_files import check_files, whole

_log = logging.getLogger("metatree")

_NAME = "cache.db"
_TIMEOUT_S = 2
_DEFINITIONS = "SELECT type, name, tbl_name, sql FROM sqlite_master"


def opened_cache(folder: Path, size_limit_bytes: int) -> Any:
    """Open the diskcache of a folder; a database there that is none of ours is deleted first, with a warning.

    Raises:
        OSError: diskcache would open another folder, since it puts variables of the environment into paths.
    """
    if os.path.expandvars(folder) != os.fspath(folder):
        raise OSError("its path has what diskcache takes for a variable of the environment")
    file = folder / _NAME
    if why := fault_of(folder):
        _log.warning("the cache in %s is made anew: %s", folder, why)
        for end in ("", "-wal", "-shm", "-journal"):
            file.with_name(file.name + end).unlink(missing_ok=True)
    with suppress(OSError):  # it says itself what it cannot make
        private_folder(folder)
    private_file(file)
    return _cache(folder, size_limit_bytes)


def _cache(folder: Path, size_limit_bytes: int) -> Any:
    import diskcache

    return diskcache.Cache(
        str(folder),
        disk=_json_disk(),
        size_limit=size_limit_bytes,
        eviction_policy="least-recently-used",
        disk_min_file_size=sys.maxsize,  # no value has a file of its own
        timeout=_TIMEOUT_S,
    )


def fault_of(folder: Path) -> str:
    """Say what the database in a folder has that none of ours has; nothing of one that is not there.

    Raises:
        sqlite3.DatabaseError: it is no database, or locked.
    """
    file = folder / _NAME
    try:
        check_files(file)
    except UserError:
        return "a file of its database is a link, no regular file, or of somebody else"
    if not file.exists():
        return ""
    definitions, settings = _of_new_cache()
    with closing(sqlite3.connect(whole(file), timeout=_TIMEOUT_S)) as database:
        database.execute("PRAGMA trusted_schema=OFF")
        # Another process may be just making it: what is missing comes.
        found = set(database.execute(_DEFINITIONS))
        if not found <= definitions:
            return "its database has other tables, indexes or triggers"
        names = {name for _, name, *_ in found}
        rows = database.execute("SELECT key, value FROM Settings") if "Settings" in names else ()
        if not all(_is_setting(key, value, settings) for key, value in rows):
            return "its database has other settings"
        named = "SELECT 1 FROM Cache WHERE filename IS NOT NULL LIMIT 1"
        if "Cache" in names and database.execute(named).fetchone():
            return "its database names files"
    return ""


def _is_setting(key: str, value: Any, settings: dict[str, Any]) -> bool:
    """Whether a setting is one of ours: counts and limits may differ, what is said to SQLite may not."""
    if key not in settings:
        return False
    own = settings[key]
    is_number = isinstance(value, int) and isinstance(own, int)
    return value == own or (is_number and not key.startswith("sqlite_"))


@lru_cache(maxsize=1)
def _of_new_cache() -> tuple[set[tuple[Any, ...]], dict[str, Any]]:
    """Return the definitions and the settings of a cache that this version of diskcache makes."""
    with tempfile.TemporaryDirectory() as folder:
        _cache(Path(folder), 0).close()
        with closing(sqlite3.connect(Path(folder, _NAME))) as database:
            definitions = set(database.execute(_DEFINITIONS))
            return definitions, dict(database.execute("SELECT key, value FROM Settings"))


def _json_disk() -> type[Any]:
    """Return diskcache's JSON disk without its way to pickles and files.

    `JSONDisk` writes no pickles, but it still loads them: a row that says it is one goes to `pickle.load`, so whoever
    can write to the folder could run code (CVE-2025-69872). Such a row raises here, as does one that names a file, and
    is a miss.
    """
    from diskcache import JSONDisk
    from diskcache.core import MODE_PICKLE

    class SafeDisk(JSONDisk):  # type: ignore[misc]
        def get(self, key: Any, raw: Any) -> Any:
            if not raw:
                raise ValueError("the cache holds a pickled key")
            return super().get(key, raw)

        def fetch(self, mode: int, filename: str | None, value: Any, read: bool) -> Any:
            if mode == MODE_PICKLE:
                raise ValueError("the cache holds a pickled value")
            if filename is not None:
                raise ValueError("the cache names a file")
            return super().fetch(mode, filename, value, read)

        def remove(self, file_path: str) -> None:
            """Leave what a row names where it is."""

    return SafeDisk
