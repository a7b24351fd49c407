"""A bound on the size of requests, kept while they come in and not only by what they say of themselves."""

from __future__ import annotations

from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from metatree_agents.service.problems import problem

MAX_BODY_BYTES: Final = 2_000_000


class TooLarge(Exception):
    """More bytes came than a request may have."""


class BodyLimit:
    """Answers 413 to a request with a larger body, whether it says so at first or just goes on."""

    def __init__(self, app: ASGIApp, limit: int = MAX_BODY_BYTES) -> None:
        self._app = app
        self._limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        length = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
        if not length.isdigit() or int(length) > self._limit:
            await self._refuse(scope, receive, send)
            return
        came, began = 0, False

        async def counted() -> Message:
            nonlocal came
            message = await receive()
            came += len(message.get("body", b""))
            if came > self._limit:
                raise TooLarge
            return message

        async def sending(message: Message) -> None:
            nonlocal began
            began = True
            await send(message)

        try:
            await self._app(scope, counted, sending)
        except TooLarge:
            if not began:
                await self._refuse(scope, receive, send)

    async def _refuse(self, scope: Scope, receive: Receive, send: Send) -> None:
        detail = f"a request may have {self._limit:,} bytes"
        await problem(scope, 413, detail, headers={"Connection": "close"})(scope, receive, send)
