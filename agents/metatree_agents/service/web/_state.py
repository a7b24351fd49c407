"""What the web page of one process holds besides the service: the memory that it shows, and who guessed wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field

from starlette.requests import HTTPConnection

from metatree import Tree
from metatree_agents.service.web._readers import Readers
from metatree_agents.service.web._throttle import Throttle


@dataclass(slots=True)
class Web:
    """The parts of the web page in one process."""

    memories: dict[str, Callable[[], AbstractAsyncContextManager[Tree]]] = field(default_factory=dict)
    """Give the trees that it shows as they are now, for a while, by their names; one alone may have none."""
    readers: Readers = field(default_factory=Readers)
    looking: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while a PDF is looked at, which takes some times its size of memory."""
    throttle: Throttle = field(default_factory=Throttle)
    unanswered: tuple[float, int, float] | None = None
    """When it was last counted how many questions nothing answered, how many, and for how many seconds that is used."""

    @staticmethod
    def of(connection: HTTPConnection) -> Web:
        """Return that of the service that a request came to."""
        web: Web = connection.app.state.web
        return web
