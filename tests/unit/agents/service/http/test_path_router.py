"""Routes that are found by their path are those that FastAPI would find, and errors stay as they are."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.responses import JSONResponse, Response
from fastapi.routing import APIRouter
from metatree_agents.service.http import admin_routes
from metatree_agents.service.http import routes as wire
from metatree_agents.service.http.path_router import PathRouter
from starlette.routing import Match

router = APIRouter(prefix="/api")


@router.get("/plain")
async def plain(request: Request) -> Response:
    if request.query_params.get("wrong"):
        raise HTTPException(418, "no")
    return JSONResponse({"route": request.scope["route"].path})


@router.get("/named/{name}")
async def named(request: Request) -> Response:
    return JSONResponse({})


@router.get("/dict")
async def dictionary() -> dict[str, str]:
    return {"by": "FastAPI"}


@router.get("/guarded", dependencies=[Depends(dictionary)])
async def guarded(request: Request) -> Response:
    return JSONResponse({})


app = FastAPI()
direct = PathRouter(router.routes)
app.router.routes.append(direct)
app.include_router(router)


def ask(path: str, *, method: str = "GET", query: bytes = b"", **more: Any) -> tuple[int, bytes]:
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "path": path,
        "query_string": query,
        "headers": [],
        "state": {},
        "scheme": "http",
        "server": ("localhost", 80),
        "client": None,
        **more,
    }
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    return sent[0]["status"], b"".join(each.get("body", b"") for each in sent)


def test_answers_and_errors_are_those_of_the_route() -> None:
    assert ask("/api/plain") == (200, b'{"route":"/api/plain"}')
    assert ask("/api/plain", query=b"wrong=1") == (418, b'{"detail":"no"}')
    assert ask("/api/plain", method="POST") == (405, b'{"detail":"Method Not Allowed"}')
    assert ask("/api/dict") == (200, b'{"by":"FastAPI"}')
    assert ask("/api/none")[0] == 404
    assert ask("/below/api/plain", root_path="/below")[0] == 200
    assert app.url_path_for("plain") == "/api/plain"
    assert set(app.openapi()["paths"]) == {"/api/plain", "/api/named/{name}", "/api/dict", "/api/guarded"}


def test_only_what_needs_no_more_than_its_path_is_taken() -> None:
    def taken(path: str) -> bool:
        return direct.matches({"type": "http", "method": "GET", "path": path})[0] == Match.FULL

    expected = {"/api/plain": True, "/api/named/{name}": False, "/api/dict": False, "/api/guarded": False}
    assert {path: taken(path) for path in expected} == expected


def test_all_documented_routes_are_taken() -> None:
    for part in (wire, admin_routes):
        routes: list[Any] = part.router.routes
        path_router = PathRouter(routes)
        for route in routes:
            (method,) = route.methods
            match = path_router.matches({"type": "http", "method": method, "path": route.path})
            assert match == (Match.FULL, {"route": route, "endpoint": route.endpoint}), route.path
