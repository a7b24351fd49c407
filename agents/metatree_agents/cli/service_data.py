"""What the commands on a service's database share: it is opened, something is done with it, it is closed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from metatree_agents.cli.serving import _opened

if TYPE_CHECKING:
    from metatree_agents.service.database import Database

T = TypeVar("T")


def on_database(
    database: str | None,
    source: list[str] | None,
    tree: Path | None,
    what: Callable[[Database], Awaitable[T]],
    *,
    create: bool = False,
) -> T:
    """Do something with the database of a service and return what came of it.

    Raises:
        UserError: there is none, and `create` is False.
    """
    kept = _opened(database, source, tree, create=create)

    async def do() -> T:
        try:
            await kept.start()
            return await what(kept)
        finally:
            await kept.close()

    return asyncio.run(do())


def memory_file(source: list[str] | None, tree: Path | None) -> Path:
    """Return where the memory of a tree is kept, whether it is there or not."""
    from metatree.tree import MEMORY
    from metatree_agents.cli.trees import place_of

    place = place_of(source, tree)
    return place if place.is_file() else place / MEMORY
