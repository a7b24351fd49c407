"""Routes that are found by their path in one step, not by trying one pattern after another.

FastAPI tries the patterns of all routes before, twice where a router was included, and solves the dependencies of an
endpoint; that took more of the server's time than a wrong proof. Endpoints that want the request alone need none of it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import get_type_hints

from fastapi import Request
from fastapi.responses import Response
from fastapi.routing import APIRoute
from starlette.datastructures import URLPath
from starlette.routing import BaseRoute, Match, NoMatchFound
from starlette.types import Receive, Scope, Send

Endpoint = Callable[[Request], Awaitable[Response]]


class PathRouter(BaseRoute):
    """A route that stands before others, and answers for those of them that need no more than their path.

    Args:
        routes: routes of FastAPI, with whose descriptions and errors nothing changes; others among them are left out.
    """

    def __init__(self, routes: Iterable[BaseRoute]) -> None:
        self._routes = {
            (method, route.path): route
            for route in routes
            if isinstance(route, APIRoute) and _is_plain(route)
            for method in route.methods or ()
        }

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Say whether this is one of them."""
        if scope["type"] == "http" and not scope.get("root_path"):
            route = self._routes.get((scope["method"], scope["path"]))
            if route is not None:
                return Match.FULL, {"route": route, "endpoint": route.endpoint}
        return Match.NONE, {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer as the route would."""
        endpoint: Endpoint = scope["endpoint"]
        response = await endpoint(Request(scope, receive, send))
        await response(scope, receive, send)

    def url_path_for(self, name: str, /, **path_params: object) -> URLPath:
        """Leave addresses to the routes themselves."""
        raise NoMatchFound(name, path_params)


def _is_plain(route: APIRoute) -> bool:
    hints = get_type_hints(route.endpoint)
    returned = hints.pop("return", None)
    return (
        "{" not in route.path
        and list(hints.values()) == [Request]
        and isinstance(returned, type)
        and issubclass(returned, Response)
        and not route.dependencies
    )
