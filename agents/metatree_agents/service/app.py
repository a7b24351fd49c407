"""The service as an ASGI application: routes, errors, limits."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response

from metatree import Tree
from metatree.errors import TransientError
from metatree_agents.service import engine_routes, events, wire
from metatree_agents.service.body_limit import BodyLimit
from metatree_agents.service.database import Database
from metatree_agents.service.state import Service, Settings
from metatree_agents.service.web.mounting import mount_web


def create_app(
    database: Database, settings: Settings | None = None, *, memory: Tree | None = None
) -> FastAPI:
    """Return the service over a database; closing the application closes the database.

    Args:
        memory: the tree that the web page shows; None for none.
    """
    service = Service(database, settings)

    @asynccontextmanager
    async def running(_: FastAPI) -> AsyncIterator[None]:
        service.waiting.start()
        try:
            yield
        finally:
            await service.waiting.stop()
            await database.close()

    app = FastAPI(
        title="metatree", version=version("metatree"), lifespan=running, docs_url=None, redoc_url=None
    )
    app.state.service = service
    for part in (wire, engine_routes, events):
        app.include_router(part.router)
    mount_web(app, memory)
    app.add_exception_handler(TransientError, _busy)
    app.add_middleware(BodyLimit)

    @app.get("/healthz")
    async def healthz() -> dict[str, str]:
        """Say whether the service and its database are at work."""
        async with database.transaction() as do:
            await do.row("SELECT 1")
        return {"status": "ok"}

    return app


async def _busy(_: Request, error: Exception) -> Response:
    return JSONResponse({"detail": str(error)}, 503, headers={"Retry-After": "1"})
