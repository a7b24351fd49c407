"""A proxy on loopback through which a browser reaches only what the address rules allow.

A page asks for much more than itself: pictures, scripts, frames, sockets, redirects made by scripts. All of it goes
through here, and each connection is checked where it is made, as our own are.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

import anyio

from metatree.errors import RefusedAddress
from metatree_memory_tools.web.addresses import AddressRules
from metatree_memory_tools.web.transport import connect

_MAX_HEAD = 65_536
_CHUNK = 65_536
_MOST_CONNECTIONS = 100
_CONNECT_S = 10.0
_HOP_BY_HOP = (b"proxy-connection:", b"proxy-authorization:", b"connection:", b"keep-alive:")


class GuardedProxy:
    """An HTTP proxy, open while its `async with` block runs; knows CONNECT and plain requests, one each connection.

    Args:
        rules: what may be reached.
        max_bytes: how much all answers together may have; then every connection is closed.
    """

    def __init__(self, rules: AddressRules, *, max_bytes: int = 50_000_000) -> None:
        self._rules = rules
        self._left = max_bytes
        self._open = 0
        self.port = 0
        """Where it listens, on 127.0.0.1."""
        self.refused: list[str] = []
        """What was asked for and refused, with the reason, at most 100."""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=_MAX_HEAD)
        self.port = self._server.sockets[0].getsockname()[1]
        self._tasks: set[asyncio.Task[None]] = set()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._open += 1
        try:
            if self._open > _MOST_CONNECTIONS:
                await _send_status(writer, 503, "too many connections")
                return
            await self._answer(reader, writer)
        except (OSError, EOFError, ValueError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass  # one side is gone, or speaks another language: the connection is of no more use
        except asyncio.CancelledError:
            pass  # the page was left
        finally:
            self._open -= 1
            self._tasks.discard(task)
            writer.close()
            with suppress(Exception):
                await writer.wait_closed()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(_CONNECT_S):
            head = await reader.readuntil(b"\r\n\r\n")
        first, *lines = head[:-4].split(b"\r\n")
        method, target, _ = first.decode("latin-1").split(" ", 2)
        tunnel = method == "CONNECT"
        try:
            url = f"https://{target}/" if tunnel else target
            parts = self._rules.check_url(url.partition("#")[0])
            port = parts.port or (443 if tunnel else 80)
            async with asyncio.timeout(_CONNECT_S):
                stream = await connect(parts.hostname or "", port, self._rules, anyio.connect_tcp)
        except RefusedAddress as exc:
            if len(self.refused) < 100:
                self.refused.append(f"{target[:200]}: {exc}")
            await _send_status(writer, 403, str(exc))
            return
        except (OSError, TimeoutError) as exc:
            await _send_status(writer, 502, str(exc) or "no connection in time")
            return
        async with stream:
            if tunnel:
                writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
                await writer.drain()
            else:
                path = urlsplit(target)._replace(scheme="", netloc="").geturl() or "/"
                headers = [line for line in lines if not line.lower().startswith(_HOP_BY_HOP)]
                request = [f"{method} {path} HTTP/1.1".encode("latin-1"), *headers, b"Connection: close"]
                await stream.send(b"\r\n".join(request) + b"\r\n\r\n")
            await self._pass_on(reader, writer, stream)

    async def _pass_on(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, stream: anyio.abc.SocketStream
    ) -> None:
        async def up() -> None:
            while data := await reader.read(_CHUNK):
                await stream.send(data)
            await stream.send_eof()

        async def down() -> None:
            with suppress(anyio.EndOfStream):
                while self._left > 0:
                    data = await stream.receive(_CHUNK)
                    self._left -= len(data)
                    writer.write(data)
                    await writer.drain()

        sending = asyncio.create_task(up())
        try:
            await down()
        finally:
            sending.cancel()
            with suppress(
                asyncio.CancelledError, OSError, anyio.BrokenResourceError, anyio.ClosedResourceError
            ):
                await sending


async def _send_status(writer: asyncio.StreamWriter, status: int, text: str) -> None:
    body = text.encode("utf-8", "replace")
    writer.write(
        b"HTTP/1.1 %d Refused\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n" % (status, len(body))
    )
    writer.write(b"Connection: close\r\n\r\n" + body)
    with suppress(OSError):
        await writer.drain()
