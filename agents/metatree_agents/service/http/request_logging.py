"""Log and count every request: its id, who called which route, what became of it and how long it took.

The outermost layer of the application. An id that a caller or a proxy sends is kept, so that a request can be found
in the logs of both; one that does not look like an id is not.
"""

from __future__ import annotations

import logging
import re
import secrets
import time
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from metatree_agents.service.http.error_responses import error_response
from metatree_agents.service.http.metrics import Metrics

_ID: Final = re.compile(rb"[A-Za-z0-9._:/+=@-]{1,128}")
_QUIET: Final = frozenset({"/healthz", "/metrics"})
GONE: Final = 499
"""The status of a request whose client went away before its answer, as nginx logs it."""
log = logging.getLogger("metatree.service.requests")


class RequestLogging:
    """Counts, times and logs requests, and answers 500 to those that failed in a way that nobody thought of."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = next((value for name, value in scope["headers"] if name == b"x-request-id"), b"")
        request_id = given if _ID.fullmatch(given) else secrets.token_hex(8).encode()
        # A dictionary of its own: the lifespan's is shared by all requests.
        state = scope["state"] = {**scope.get("state", {}), "request_id": request_id.decode()}
        status, began = 0, time.perf_counter()

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), (b"x-request-id", request_id)]
            await send(message)

        self._metrics.under_way.inc()
        failure: Exception | None = None
        try:
            await self._app(scope, receive, sending)
        except Exception as exc:
            failure = exc
            if not status:
                answer = error_response(
                    scope, 500, f"something went wrong; the log has it by {request_id.decode()}"
                )
                await answer(scope, receive, sending)
            status = 500
        finally:
            self._metrics.under_way.dec()
            if "release" in state:
                state["release"]()
            self._record(scope, state, status or GONE, time.perf_counter() - began, failure)

    def _record(
        self, scope: Scope, state: dict[str, object], status: int, seconds: float, failure: Exception | None
    ) -> None:
        # The template and not the address, in which topics and proofs are.
        route = getattr(scope.get("route"), "path", None) or "none"
        self._metrics.requests.labels(_method(scope["method"]), route, status).inc()
        self._metrics.seconds.labels(route).observe(seconds)
        who = state.get("caller")
        role = getattr(who, "role", None)
        level = logging.ERROR if failure is not None else logging.WARNING if status >= 500 else logging.INFO
        if level == logging.INFO and (route in _QUIET or (role == "engine" and status in (200, 404, GONE))):
            level = logging.DEBUG
        if not log.isEnabledFor(level):
            return
        fields = {
            "request_id": state["request_id"],
            "method": _method(scope["method"]),
            "route": route,
            "status": status,
            "ms": round(seconds * 1000, 1),
            "user": getattr(who, "name", None),
            "role": role,
            "address": scope["client"][0] if scope.get("client") else None,
        }
        text = f"{fields['method']} {route} {status} {fields['ms']} ms"
        log.log(
            level,
            "%s",
            text + (f" {fields['user']}" if who is not None else ""),
            extra={"fields": fields},
            exc_info=failure,
        )


def _method(method: str) -> str:
    """Return a method, or that it is none: anybody may send any word."""
    return method if method in ("GET", "POST", "DELETE", "HEAD", "PUT", "PATCH", "OPTIONS") else "other"
