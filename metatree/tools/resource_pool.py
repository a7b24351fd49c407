"""What tools keep open for the length of a search: connections, server processes, browsers.

A tool asks for what it needs by a key; the first one opens it, the others of the same search share it, and the search
closes it when it ends. Outside a search each one opens and closes its own.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol, TypeVar

_log = logging.getLogger("metatree")


class Closable(Protocol):
    """What can be held."""

    @property
    def usable(self) -> bool:
        """Whether it can still be used; another one is opened otherwise."""
        ...

    def close(self) -> None:
        """Let go of it; closing twice is allowed."""
        ...


C = TypeVar("C", bound=Closable)


class _Pool:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[Hashable, Any] = {}
        self._closed = False

    def get(self, key: Hashable, make: Callable[[], C]) -> C:
        with self._lock:
            resource: C | None = self._open.get(key)
            if resource is not None and resource.usable:
                return resource
            if resource is not None:
                resource.close()
            made = self._open[key] = make()
            if self._closed:  # a thread that the search gave up came late
                made.close()
            return made

    def close(self) -> None:
        with self._lock:
            self._closed = True
            pending, self._open = list(self._open.values()), {}
        for thing in pending:
            try:
                thing.close()
            except Exception:
                _log.warning("%r could not be closed", thing, exc_info=True)


_current: ContextVar[_Pool | None] = ContextVar("metatree_resource_pool", default=None)


@contextmanager
def holding() -> Iterator[None]:
    """Keep what is asked for in the block open until its end; blocks inside it share what it has."""
    if _current.get() is not None:
        yield
        return
    pool = _Pool()
    token = _current.set(pool)
    try:
        yield
    finally:
        _current.reset(token)
        pool.close()


@contextmanager
def held(key: Hashable, make: Callable[[], C]) -> Iterator[C]:
    """Give what is open under a key, opened by `make` if it is not.

    It stays open for the search that is in progress, and for this block when there is none.
    """
    current = _current.get()
    if current is not None:
        yield current.get(key, make)
        return
    resource = make()
    try:
        yield resource
    finally:
        resource.close()
