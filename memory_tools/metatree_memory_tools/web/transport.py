"""Connections that keep to address rules: the transport below every request that this package makes.

Addresses are checked where the connection is made, not by the URL: a name may resolve to another address the second
time. One transport serves pages, search engines, MCP over HTTP and OpenAPI calls. Lost: looking a name up first and
connecting by name (rebinding), and a list of forbidden names (numbers have a dozen spellings).
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable
from functools import cache
from typing import Any, TypeVar

import anyio
import httpcore2
import httpx2

from metatree.errors import RefusedAddress
from metatree_memory_tools.web.addresses import AddressRules

_MOST_ADDRESSES = 4
_KEEPALIVE_S = 5.0
Stream = TypeVar("Stream")


async def resolve(host: str, port: int, rules: AddressRules) -> list[str]:
    """Return the addresses of a host that may be reached, as numbers, at most four.

    Raises:
        RefusedAddress: it has addresses, and none may be reached.
        OSError: it has none.
    """
    loop = asyncio.get_running_loop()
    addresses = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    refused: RefusedAddress | None = None
    allowed: dict[str, None] = {}
    for _, _, _, _, place in addresses:
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


async def connect(
    host: str, port: int, rules: AddressRules, dial: Callable[[str, int], Awaitable[Stream]]
) -> Stream:
    """Connect to a host at one of its addresses that may be reached, and to no other.

    Args:
        dial: connects to an address, which is always a number, so nothing is looked up again.

    Raises:
        RefusedAddress: none of its addresses may be reached.
        OSError, httpcore2.ConnectError: it cannot be reached.
    """
    failure: Exception = OSError(f"{host!r} has no address")
    for address in await resolve(host, port, rules):
        try:
            return await dial(address, port)
        except (OSError, httpcore2.ConnectError) as exc:
            failure = exc
    raise failure


class _GuardedBackend(httpcore2.AnyIOBackend):
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
        try:
            with anyio.fail_after(timeout):
                return await connect(host, port, self._rules, super().connect_tcp)
        except TimeoutError as exc:
            raise httpcore2.ConnectTimeout(str(exc)) from exc
        except OSError as exc:
            raise httpcore2.ConnectError(str(exc)) from exc


class GuardedTransport(httpx2.AsyncHTTPTransport):
    """A transport for `httpx2.AsyncClient` that connects only where the rules allow; it uses no proxy."""

    def __init__(self, rules: AddressRules) -> None:
        # httpx2 takes no backend for its pool, so the pool is made here, and httpx2's own is never made: a version
        # that keeps its pool under another name would fail, and not go past the rules.
        self._rules = rules
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=_ssl_context(), network_backend=_GuardedBackend(rules), keepalive_expiry=_KEEPALIVE_S
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request."""
        self._rules.check_url(str(request.url))
        return await super().handle_async_request(request)


@cache
def _ssl_context() -> ssl.SSLContext:
    return httpx2.create_ssl_context()
