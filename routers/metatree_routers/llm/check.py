"""Check that a model can be reached and answers in form."""

from __future__ import annotations

import asyncio
import time

from metatree._util.threads import run_apart
from metatree.errors import BadModelAnswer
from metatree.node import Node
from metatree.protocols import Option, RouteRequest
from metatree_routers.llm._connection import Connection
from metatree_routers.llm.errors import CapabilitiesChanged
from metatree_routers.llm.router import LLMRouter

ATTEMPTS = 6
"""Enough to find out how the server wants to be asked."""
_MOST_S = 30.0
"""After so many seconds it is not asked again."""


def check_model(model: str | None = None) -> str:
    """Ask a model one small question, as a search would, and return a line about it; wait for it.

    Args:
        model: its name, None for the one in `METATREE_MODEL`.

    Raises:
        MetatreeError: it cannot be used; the message says why and what to do.
    """
    connection = Connection(model, timeout_s=30.0)
    return run_apart(lambda: acheck_model(connection))


async def acheck_model(connection: Connection) -> str:
    """Do what `check_model` does over a connection."""
    router = LLMRouter(connection=connection)
    options = (
        Option("login", "login.py", "Check a password"),
        Option("draw", "draw.py", "Draw a circle"),
    )
    request = RouteRequest(("Where is the password checked?",), "", Node("src", "src"), options)
    start = time.monotonic()
    for attempt in range(1, ATTEMPTS + 1):
        try:
            await router.route(request)
            break
        except (CapabilitiesChanged, BadModelAnswer):
            if attempt == ATTEMPTS or time.monotonic() - start > _MOST_S:
                raise
            await asyncio.sleep(0)
    capabilities = connection.discovery.current
    settings = connection.settings
    tries = f", after {attempt} calls" if attempt > 1 else ""
    return (
        f"{settings.model} at {settings.public_url} answers in {time.monotonic() - start:.1f} s in the mode"
        f" {capabilities.mode}{tries}"
    )
