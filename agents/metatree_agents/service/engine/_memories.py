"""What an engine searches: a tree of its own, or one that a service shares."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Protocol

from metatree import Tree
from metatree_agents.service.engine.client import ServiceClient
from metatree_agents.service.engine.memory import learn
from metatree_agents.service.engine.nearest import index_of


class Memory(Protocol):
    """Gives the tree as it is now, one search at a time."""

    @property
    def version(self) -> int:
        """Of a tree that is published; 0 for any other."""
        ...

    @property
    def index(self) -> str | None:
        """What differs whenever a lookup may find something else; None while there is no tree yet."""
        ...

    def using(self) -> AbstractAsyncContextManager[Tree]:
        """Give the tree for one search; brought up to date before."""
        ...

    async def follow(self) -> None:
        """Take in what is new, when there is time."""
        ...


class OwnTree:
    """A tree of the engine's own machine; what people recommend becomes memory in it."""

    version = 0

    def __init__(self, client: ServiceClient, tree: Tree, name: str = "") -> None:
        self._client = client
        self._name = name
        self._tree = tree

    @property
    def index(self) -> str:
        return index_of(self._tree)

    def using(self) -> AbstractAsyncContextManager[Tree]:
        return nullcontext(self._tree)

    async def follow(self) -> None:
        while await learn(self._client, self._tree, self._name):
            pass
