"""Connections that keep to address rules: the transport below every request that this package makes."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import anyio
import httpcore2
import httpx2

from metatree.errors import RefusedAddress
from metatree_memory_tools.web.addresses import AddressRules

_MOST_ADDRESSES = 4


async def resolve(host: str, port: int, rules: AddressRules) -> list[str]:
    """Return the addresses of a host that may be reached, as numbers, at most four.

    Raises:
        RefusedAddress: it has addresses, and none may be reached.
        OSError: it has none.
    """
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    refused: RefusedAddress | None = None
    allowed: dict[str, None] = {}
    for _, _, _, _, place in found:
        address = str(place[0])
        try:
            rules.check_address(address, host, port)
        except RefusedAddress as exc:
            refused = refused or exc
        else:
            allowed[address] = None
    if not allowed and refused is not None:
        raise refused
    return list(allowed)[:_MOST_ADDRESSES]


async def connect(host: str, port: int, rules: AddressRules) -> anyio.abc.SocketStream:
    """Connect to a host at one of its addresses that may be reached, and to no other.

    Raises:
        RefusedAddress: none of its addresses may be reached.
        OSError: it cannot be reached.
    """
    failure: OSError | None = None
    for address in await resolve(host, port, rules):
        try:
            stream = await anyio.connect_tcp(address, port)
        except OSError as exc:
            failure = exc
            continue
        reached = str(stream.extra(anyio.abc.SocketAttribute.remote_address)[0])
        try:
            rules.check_address(reached, host, port)
        except RefusedAddress:
            await stream.aclose()
            raise
        return stream
    raise failure or OSError(f"{host!r} has no address")


class _Stream(httpcore2.AsyncNetworkStream):
    def __init__(self, stream: anyio.abc.ByteStream) -> None:
        self._stream = stream

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        try:
            with _mapped(httpcore2.ReadTimeout, httpcore2.ReadError), anyio.fail_after(timeout):
                return await self._stream.receive(max_bytes)
        except anyio.EndOfStream:
            return b""

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        if buffer:
            with _mapped(httpcore2.WriteTimeout, httpcore2.WriteError), anyio.fail_after(timeout):
                await self._stream.send(buffer)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        from anyio.streams.tls import TLSStream

        try:
            with _mapped(httpcore2.ConnectTimeout, httpcore2.ConnectError), anyio.fail_after(timeout):
                return _Stream(
                    await TLSStream.wrap(
                        self._stream,
                        ssl_context=ssl_context,
                        hostname=server_hostname,
                        standard_compatible=False,
                        server_side=False,
                    )
                )
        except BaseException:
            await self.aclose()
            raise

    def get_extra_info(self, info: str) -> Any:
        if info == "server_addr":
            return self._stream.extra(anyio.abc.SocketAttribute.remote_address, None)
        if info == "is_readable":  # asked before an idle connection is used again: readable means closed
            import select

            raw = self._stream.extra(anyio.abc.SocketAttribute.raw_socket, None)
            return raw is None or bool(select.select([raw], [], [], 0)[0])
        return None


class _Backend(httpcore2.AsyncNetworkBackend):
    def __init__(self, rules: AddressRules) -> None:
        self._rules = rules

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        with _mapped(httpcore2.ConnectTimeout, httpcore2.ConnectError), anyio.fail_after(timeout):
            return _Stream(await connect(host, port, self._rules))

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(seconds)


class GuardedTransport(httpx2.AsyncBaseTransport):
    """A transport for `httpx2.AsyncClient` that connects only where the rules allow; it uses no proxy."""

    def __init__(self, rules: AddressRules) -> None:
        self._rules = rules
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=_ssl_context(), network_backend=_Backend(rules), keepalive_expiry=5.0
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request."""
        self._rules.check_url(str(request.url))
        asked = httpcore2.Request(
            method=request.method,
            url=httpcore2.URL(
                scheme=request.url.raw_scheme,
                host=request.url.raw_host,
                port=request.url.port,
                target=request.url.raw_path,
            ),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        with _to_httpx():
            said = await self._pool.handle_async_request(asked)
        return httpx2.Response(
            said.status, headers=said.headers, stream=_Body(said.stream), extensions=said.extensions
        )

    async def aclose(self) -> None:
        """Close the connections."""
        await self._pool.aclose()


class _Body(httpx2.AsyncByteStream):
    def __init__(self, stream: Any) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _to_httpx():
            async for piece in self._stream:
                yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()


@cache
def _ssl_context() -> ssl.SSLContext:
    return httpx2.create_ssl_context()


@contextmanager
def _mapped(late: type[Exception], broken: type[Exception]) -> Iterator[None]:
    try:
        yield
    except TimeoutError as exc:
        raise late(str(exc)) from exc
    except (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError) as exc:
        raise broken(str(exc)) from exc


@contextmanager
def _to_httpx() -> Iterator[None]:
    try:
        yield
    except httpcore2.ConnectTimeout as exc:
        raise httpx2.ConnectTimeout(str(exc)) from exc
    except httpcore2.TimeoutException as exc:
        raise httpx2.ReadTimeout(str(exc)) from exc
    except httpcore2.ConnectError as exc:
        raise httpx2.ConnectError(str(exc)) from exc
    except httpcore2.NetworkError as exc:
        raise httpx2.ReadError(str(exc)) from exc
    except httpcore2.ProtocolError as exc:
        raise httpx2.RemoteProtocolError(str(exc)) from exc
