"""How the web page becomes part of the service: its routes, its own files, and its errors as pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import Response
from starlette.exceptions import HTTPException
from starlette.requests import Request as StarletteRequest

from metatree import Tree
from metatree._util.secret_text import shapes_masked
from metatree_agents.service.web import _account_pages as account_pages
from metatree_agents.service.web import _admin_pages as admin_pages
from metatree_agents.service.web import _agent_pages as agent_pages
from metatree_agents.service.web import _api_docs as api_docs
from metatree_agents.service.web import _files as files
from metatree_agents.service.web import _login_pages as login_pages
from metatree_agents.service.web import _memory_pages as memory_pages
from metatree_agents.service.web import _other_logins as other_logins
from metatree_agents.service.web import _run_pages as run_pages
from metatree_agents.service.web import _thread_pages as thread_pages
from metatree_agents.service.web import _tree_pages as tree_pages
from metatree_agents.service.web import _user_pages as user_pages
from metatree_agents.service.web._guard import session_of
from metatree_agents.service.web._replies import HEADERS, NotLoggedIn, PageError, page, redirect, static_file
from metatree_agents.service.web._state import Web

YEAR_S = 365 * 24 * 3600


def mount_web(app: FastAPI, memories: Mapping[str, Tree]) -> None:
    """Give a service its web page.

    Args:
        app: the service.
        memories: the trees that it shows by their names, one alone by none; where there is none, the page says so.
    """
    app.state.web = Web({name: _always(tree) for name, tree in memories.items()})
    router = APIRouter(include_in_schema=False)
    for part in (
        login_pages,
        other_logins,
        thread_pages,
        memory_pages,
        files,
        run_pages,
        account_pages,
        admin_pages,
        user_pages,
        tree_pages,
        agent_pages,
        api_docs,
    ):
        router.include_router(part.router)
    router.add_api_route("/static/{name}", _own_file)
    app.include_router(router)
    app.add_exception_handler(PageError, _error)
    app.add_exception_handler(NotLoggedIn, _log_in)


def _always(tree: Tree) -> Callable[[], AbstractAsyncContextManager[Tree]]:
    return lambda: nullcontext(tree)


async def _own_file(request: Request, name: str) -> Response:
    file = static_file(name)
    if file is None:
        raise PageError(404, "There is no such file.")
    # Its address changes with what is in it, so it never has to be asked for again.
    headers = {**HEADERS, "Cache-Control": f"public, max-age={YEAR_S}, immutable"}
    return Response(file[0], media_type=file[1], headers=headers)


def wants_page(request: StarletteRequest) -> bool:
    """Say whether a person's browser asks for something that is no route of the API."""
    accept = request.headers.get("accept", "")
    return not request.url.path.startswith(("/api/", "/v1/")) and "text/html" in accept


async def no_page(request: StarletteRequest, error: HTTPException) -> Response:
    """Return the page for an address that is none, or that has no such method."""
    message = "There is no such page." if error.status_code == 404 else "This cannot be done with that page."
    return await _error(request, PageError(error.status_code, message, error.headers))


async def _error(request: StarletteRequest, error: Exception) -> Response:
    assert isinstance(error, PageError)
    headers = dict(error.headers or {})
    return page(
        request,
        "error.html",
        session=await session_of(request),
        status=error.status_code,
        headers=headers,
        said=shapes_masked(error.detail),
        back=error.back,
    )


async def _log_in(request: StarletteRequest, _: Exception) -> Response:
    if request.headers.get("sec-fetch-mode", "navigate") != "navigate" or request.method != "GET":
        return Response("log in", 401, media_type="text/plain", headers=HEADERS)
    target = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    return redirect("/login", next=None if target == "/" else target)
