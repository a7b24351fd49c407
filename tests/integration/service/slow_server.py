"""A server with an engine inside whose searches wait until they are let go on, for tests that kill it.

usage: python slow_server.py DATABASE SOURCE FOLDER PORT LEASE_S

A search writes a line to FOLDER/searching when it begins, and ends when FOLDER/go is there.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from metatree_agents.service.serving import serve_all
from metatree_agents.service.settings import ServiceSettings
from metatree_memory_tools import build_tree
from metatree_routers import EmbeddedRouter

from metatree import RouteDecision, RouteRequest
from tests.integration.service.conftest import opened


class SlowRouter:
    """The embedded router, once it is let go on."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._router = EmbeddedRouter()

    async def route(self, request: RouteRequest) -> RouteDecision:
        with (self._folder / "searching").open("a") as stream:
            stream.write(f"{os.getpid()}\n")
        while not (self._folder / "go").exists():
            await asyncio.sleep(0.05)
        return await self._router.route(request)


async def main(database: str, source: str, folder: Path, port: int, lease_s: float) -> None:
    """Serve until the process is killed."""
    with build_tree(source) as tree:
        await serve_all(
            opened(database),
            ServiceSettings(lease_s=lease_s, answer_timeout_s=1.0, claim_timeout_s=5.0),
            memory=tree,
            parts={"router": SlowRouter(folder)},
            limits=None,
            concurrency=1,
            host="127.0.0.1",
            port=port,
            stop=asyncio.Event(),
            say=lambda line: print(line, flush=True),
        )


if __name__ == "__main__":
    where, source, folder, port, lease = sys.argv[1:]
    asyncio.run(main(where, source, Path(folder), int(port), float(lease)))
