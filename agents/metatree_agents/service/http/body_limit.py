"""Bounds on the size and the time of requests, kept while they come in and not only by what they say of themselves."""

from __future__ import annotations

import asyncio
from typing import Final

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from metatree_agents.service.http.error_responses import error_response
from metatree_agents.service.http.slow_clients import BODY_S

MAX_BODY_BYTES: Final = 2_000_000


class _OverLimit(Exception):
    """A request is too large, or takes too long."""


class BodyLimit:
    """Answers 413 to a request with a larger body, whether it says so at first or just goes on; 408 to a slow one."""

    def __init__(self, app: ASGIApp, limit: int = MAX_BODY_BYTES, seconds: float = BODY_S) -> None:
        self._app = app
        self._limit = limit
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        length = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
        too_large = f"a request may have {self._limit:,} bytes"
        if not length.isdigit() or len(length) > 18 or int(length) > self._limit:
            await _refusal(scope, 413, too_large)(scope, receive, send)
            return
        came, began, whole = 0, False, False
        deadline = asyncio.get_running_loop().time() + self._seconds

        async def counted() -> Message:
            nonlocal came, whole
            if whole:  # what comes now says that the client has gone, whenever that is
                return await receive()
            try:
                async with asyncio.timeout_at(deadline):
                    message = await receive()
            except TimeoutError:
                raise _OverLimit(408, f"a request may take {self._seconds:.0f} s to come in") from None
            came += len(message.get("body", b""))
            whole = not message.get("more_body", False)
            if came > self._limit:
                raise _OverLimit(413, too_large)
            return message

        async def sending(message: Message) -> None:
            nonlocal began
            began = True
            await send(message)

        try:
            await self._app(scope, counted, sending)
        except ClientDisconnect:
            pass  # the client has disconnected
        except _OverLimit as exc:
            if not began:
                await _refusal(scope, *exc.args)(scope, receive, send)


def _refusal(scope: Scope, status: int, detail: str) -> ASGIApp:
    return error_response(scope, status, detail, headers={"Connection": "close"})
