"""What the web page of one process holds besides the service: the memory that it shows, and who guessed wrong."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Protocol

from starlette.requests import HTTPConnection

from metatree import Tree
from metatree_agents.service.web._throttle import Throttle


class TreeSource(Protocol):
    """What the page shows: a tree that may be another one next time, as a copy that is kept in step is."""

    def using(self) -> AbstractAsyncContextManager[Tree]:
        """Give the tree as it is now, for a while."""
        ...


class OneTree:
    """A tree that stays the same object."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree

    @asynccontextmanager
    async def using(self) -> AsyncIterator[Tree]:
        yield self._tree


@dataclass(slots=True)
class Web:
    """The parts of the web page in one process."""

    memory: TreeSource | None = None
    """The memory that it shows; None where the process has none."""
    throttle: Throttle = field(default_factory=Throttle)

    @staticmethod
    def of(connection: HTTPConnection) -> Web:
        """Return that of the service that a request came to."""
        web: Web = connection.app.state.web
        return web
