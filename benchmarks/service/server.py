"""A server of the service in a process of its own, as `metatree serve --no-engine` runs it, with routes to measure by.

usage: python -m benchmarks.service.server DATABASE PORT [SETTING=VALUE ...] [tree=PATH]

It prints its port, and serves until a signal.
"""

from __future__ import annotations

import asyncio
import resource
import sys

from fastapi import FastAPI, Request
from metatree_agents.listening import listen
from metatree_agents.service._app import create_app
from metatree_agents.service.accounts.limits import Rates
from metatree_agents.service.accounts.users import Users
from metatree_agents.service.http.calls import admitted
from metatree_agents.service.serving import server_of
from metatree_agents.service.settings import Service, ServiceSettings

from benchmarks.service.caller import SECRETS
from benchmarks.service.databases import opened
from metatree import Tree


def add_bench_routes(app: FastAPI) -> None:
    """Add a route that does nothing, one that asks who calls, and two that say who
    waits and what this process used."""

    @app.get("/bench/nothing", include_in_schema=False)
    async def nothing() -> dict[str, str]:
        return {}

    @app.get("/bench/waiting", include_in_schema=False)
    async def waiting(request: Request) -> int:
        return len(Service.of(request).waiting.engines)

    @app.get("/bench/usage", include_in_schema=False)
    async def usage() -> float:
        used = resource.getrusage(resource.RUSAGE_SELF)
        return used.ru_utime + used.ru_stime

    @app.get("/api/bench-proof", include_in_schema=False)
    async def proof(request: Request) -> dict[str, str]:
        await admitted(request)
        return {}


async def serve(where: str, port: int, given: dict[str, float], tree: str) -> None:
    """Serve until a signal."""
    database = opened(where)
    await database.start()
    users = Users(database)
    known = {name for name, _, _ in await users.list()}
    for role, (name, secret) in SECRETS.items():
        if name not in known:
            await users.add(name, role, secret=secret)
    # Who measures or tries everything asks faster than a person may.
    rates = Rates(user_rate=0, open_queries=0)
    memory = Tree.open(tree) if tree else None
    app = create_app(database, ServiceSettings(rates=rates, **given), memory=memory)  # type: ignore[arg-type]
    add_bench_routes(app)
    listening = listen("127.0.0.1", port)
    print(listening.getsockname()[1], flush=True)
    await server_of(app).serve(sockets=[listening])


if __name__ == "__main__":
    pairs = {name: value for name, _, value in (each.partition("=") for each in sys.argv[3:])}
    tree_at = pairs.pop("tree", "")
    numbers = {name: float(value) for name, value in pairs.items()}
    asyncio.run(serve(sys.argv[1], int(sys.argv[2]), numbers, tree_at))
