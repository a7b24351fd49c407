"""The service as an ASGI application: routes, errors, limits."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from difflib import get_close_matches
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exception_handlers import http_exception_handler
from fastapi.responses import Response
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute

from metatree import Tree
from metatree.errors import TransientError
from metatree.version import RELEASE
from metatree_agents.service.accounts.limits import AddressLimit
from metatree_agents.service.database.database import ServiceDatabase
from metatree_agents.service.goal_agents import GoalAgents
from metatree_agents.service.http import (
    admin_routes,
    agent_routes,
    engine_routes,
    events,
    human_input_routes,
    stop_routes,
    tree_admin_routes,
    tree_routes,
)
from metatree_agents.service.http import routes as wire
from metatree_agents.service.http.body_limit import BodyLimit
from metatree_agents.service.http.error_responses import error_response
from metatree_agents.service.http.path_router import PathRouter
from metatree_agents.service.http.request_logging import RequestLogging
from metatree_agents.service.openai import routes as openai_routes
from metatree_agents.service.openai.bodies import Wrong
from metatree_agents.service.settings import Service, ServiceSettings
from metatree_agents.service.web.mounting import mount_web, no_page, wants_page

_NO_ROUTE: Final = ("Not Found", "Method Not Allowed")
"""What Starlette says of a route that is not there."""
BUSY: Final = "the database is busy or away: try again in a moment"
"""The message for callers; the error itself, which names files and hosts, goes into the log."""
_log = logging.getLogger("metatree.service")


def create_app(
    database: ServiceDatabase,
    settings: ServiceSettings | None = None,
    *,
    memory: Tree | None = None,
    trees: Mapping[str, Tree] | None = None,
    agents: GoalAgents | None = None,
) -> FastAPI:
    """Return the service over a database; closing the application closes the database.

    Args:
        memory: the tree that the web page shows; None for none.
        trees: the trees that it shows by their names, in place of one.
        agents: the durable agents that administrators see; None for none.
    """
    service = Service(database, settings, agents)

    @asynccontextmanager
    async def running(_: FastAPI) -> AsyncIterator[None]:
        await database.start()
        service.waiting.start()
        service.revocation.start()
        try:
            yield
        finally:
            await service.revocation.stop()
            await service.waiting.stop()
            await database.close()

    app = FastAPI(title="metatree", version=RELEASE, lifespan=running, docs_url=None, redoc_url=None)
    app.state.service = service
    parts = (
        wire,
        engine_routes,
        human_input_routes,
        stop_routes,
        tree_routes,
        events,
        admin_routes,
        tree_admin_routes,
        agent_routes,
        openai_routes,
    )
    app.router.routes.append(PathRouter(route for part in parts for route in part.router.routes))
    for part in parts:
        _group(part.router.routes)
        app.include_router(part.router)
    _group(admin_routes.figures_router.routes)
    app.include_router(admin_routes.figures_router)
    mount_web(app, trees or ({} if memory is None else {"": memory}))
    app.add_exception_handler(TransientError, _busy)
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(Wrong, _wrong)
    app.add_middleware(BodyLimit)
    app.add_middleware(AddressLimit, limits=service.limits)
    app.add_middleware(RequestLogging, metrics=service.metrics)

    @app.get("/healthz")
    async def healthz(request: Request, seen: bool = False) -> dict[str, Any]:
        """Say whether the service and its database are at work; with `seen`, how the request looks to it, too."""
        await database.row("SELECT 1")
        if not seen:
            return {"status": "ok"}
        url, client = request.url, request.client
        about = {"scheme": url.scheme, "host": url.netloc, "client": client.host if client else None}
        return {"status": "ok", "seen": about}

    _group(app.routes)
    return app


def _group(routes: Iterable[BaseRoute]) -> None:
    """Put the routes of the description into groups, each with the first line of what its docstring says."""
    for route in routes:
        if isinstance(route, APIRoute) and route.include_in_schema:
            route.tags = [_group_of(route.path)]
            route.summary = (route.description or route.name).split("\n", 1)[0].rstrip(".")


def _group_of(path: str) -> str:
    name = path.removeprefix("/api/")
    if path.startswith("/v1/"):
        return "Chat clients of OpenAI's API"
    if name.startswith("admin/"):
        return "Administration"
    if not path.startswith("/api/"):
        return "Health and figures"
    return "Engines" if name in _OF_ENGINES else "Asking"


_OF_ENGINES: Final = frozenset(
    {
        *("get-new-queries", "give-new-answer", "renew-lease", "hand-back"),
        *("leave", "wait-for-stop", "ask-person", "give-progress"),
        *("get-new-lookup", "give-new-matches", "get-recommendations", "get-identity", "give-router-state"),
        *("get-tree", "get-tree-file", "get-memory", "give-memory"),
    }
)


async def _busy(request: Request, error: Exception) -> Response:
    Service.of(request).metrics.database_errors.inc()
    _log.warning("answered 503: %s", error)
    return error_response(request.scope, 503, BUSY, headers={"Retry-After": "1"})


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code in (404, 405) and wants_page(request):
        return await no_page(request, error)
    if not request.url.path.startswith("/v1/"):
        if request.url.path.startswith("/api/") and error.detail in _NO_ROUTE:
            error = HTTPException(error.status_code, _not_offered(request), error.headers)
        return await http_exception_handler(request, error)
    detail = str(error.detail)
    if error.status_code in (404, 405):
        detail = f"{request.method} {request.url.path[:80]} is not offered: there is {openai_routes.OFFERED}"
    return error_response(request.scope, error.status_code, detail, headers=error.headers)


def _not_offered(request: Request) -> str:
    """Return what to say of a route that is not there: the one that is nearest, or by which method it goes."""
    method, path = request.method, request.url.path[:80]
    known = {each: [way.upper() for way in ways] for each, ways in request.app.openapi()["paths"].items()}
    if path in known:
        meant = f"it goes by {' or '.join(known[path])}"
    else:
        near = get_close_matches(path, [each for each in known if each.startswith("/api/")], 1)
        meant = f"did you mean {near[0]}?" if near else "is it misspelt?"
    return f"there is no {method} {path}: {meant}; /openapi.json describes all routes, docs/api.md has a line for each"


async def _wrong(request: Request, error: Exception) -> Response:
    assert isinstance(error, Wrong)
    headers = {
        401: {"WWW-Authenticate": "Bearer"},
        500: {"X-Should-Retry": "false"},
        503: {"Retry-After": "2"},
    }
    return error_response(
        request.scope,
        error.status,
        str(error),
        headers=headers.get(error.status),
        code=error.code,
        param=error.param,
    )
