"""A cache on disk that never fails: what is broken, full or out of reach is a miss."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import threading
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any, Protocol

from metatree._util.cache_folder import cache_part
from metatree._util.links import real
from metatree._util.named_file import typed_path

_log = logging.getLogger("metatree")

SIZE_LIMIT_BYTES = 256 * 2**20


class Cache(Protocol):
    """Keeps JSON values by text keys; neither method raises."""

    def get(self, key: str) -> Any:
        """Return what was kept, None when there is nothing."""
        ...

    def set(self, key: str, value: Any, *, seconds: float | None = None) -> None:
        """Keep a value, for so many seconds or until room is needed."""
        ...


class MemoryCache:
    """Keeps values while the process lives."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def get(self, key: str) -> Any:
        text = self._texts.get(key)
        return None if text is None else json.loads(text)

    def set(self, key: str, value: Any, *, seconds: float | None = None) -> None:
        self._texts[key] = json.dumps(value)


class _Seen(threading.local):
    """For each thread, the process in which it has looked at the files."""

    process: int | None = None


class DiskCache:
    """Keeps values in a folder that processes may share; the least recently used go when it is full.

    Args:
        folder: None for `metatree/NAME` in the user's cache folder, or in `METATREE_CACHE_DIR`.
    """

    def __init__(
        self,
        folder: str | Path | None = None,
        *,
        name: str = "answers",
        size_limit_bytes: int = SIZE_LIMIT_BYTES,
    ) -> None:
        self.folder = typed_path(folder) if folder is not None else cache_part(name)
        self._place = real(self.folder)
        self._size_limit_bytes = size_limit_bytes
        self._lock = threading.Lock()
        self._seen = _Seen()
        self._warned = False

    def get(self, key: str) -> Any:
        try:
            return self._ready().get(key)
        except Exception as exc:  # a cache's failure is a miss, whatever it is
            self._warn(exc)
            return None

    def set(self, key: str, value: Any, *, seconds: float | None = None) -> None:
        try:
            self._ready().set(key, value, expire=seconds)
        except Exception as exc:
            self._warn(exc)

    def close(self) -> None:
        """Close the files; the next use opens them again."""
        with contextlib.suppress(KeyError):
            self.__dict__.pop("_opened").close()
        self._seen = _Seen()

    def _ready(self) -> Any:
        """Return the cache; diskcache opens the file by its name in each thread, and in a forked process."""
        from metatree_routers.wrappers._kept_database import fault_of

        opened = self._opened
        if self._seen.process != os.getpid():
            with self._lock:
                self._check_place()
                if fault := fault_of(self.folder):
                    raise OSError(fault)
            self._seen.process = os.getpid()
        return opened

    @cached_property
    def _opened(self) -> Any:
        from metatree_routers.wrappers._kept_database import opened_cache

        with self._lock:
            self._check_place()
            return opened_cache(self.folder, self._size_limit_bytes)

    def _check_place(self) -> None:
        if real(self.folder) != self._place:  # git, for example, may put a link in its place meanwhile
            raise OSError("a link leads elsewhere now")

    def _warn(self, exc: Exception) -> None:
        if not self._warned:
            self._warned = True
            _log.warning("the cache in %s is not used: %s: %s", self.folder, type(exc).__name__, exc)


def key_of(*parts: Any) -> str:
    """Return a short key for JSON values: 32 hexadecimal digits.

    Numbers count to nine decimals: the sum of a score may be another one behind them when it is computed again.

    Example:
        >>> key_of("route", {"a": 1}) == key_of("route", {"a": 1}) != key_of("route", {"a": 2})
        True
        >>> key_of([0.1 + 0.2]) == key_of([0.3]) != key_of([0.3001])
        True
    """
    text = json.dumps(_rounded(parts), sort_keys=True, ensure_ascii=False, default=str)
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 9)
    if isinstance(value, dict):
        return {key: _rounded(each) for key, each in value.items()}
    return [_rounded(each) for each in value] if isinstance(value, list | tuple) else value
