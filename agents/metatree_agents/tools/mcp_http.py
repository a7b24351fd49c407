"""The MCP server over HTTP: who may reach it, and how it is served.

On the loopback interface anybody on this machine may call it, so long as the Host and Origin headers are of this
machine too: a page in a browser whose name was bound to 127.0.0.1 is turned away. Anywhere else a token is needed.
"""

from __future__ import annotations

import hmac
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

from metatree.errors import MissingExtra, UserError
from metatree_agents.listening import listen

if TYPE_CHECKING:
    from mcp.server import MCPServer

PATH = "/mcp"
_LOCAL_NAMES = ("127.0.0.1", "localhost", "[::1]")
_Asgi = Callable[[Any, Any, Any], Awaitable[None]]


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a host.

    Example:
        >>> [is_loopback(host) for host in ("127.0.0.1", "localhost", "::1", "0.0.0.0", "192.168.1.2", "example.org")]
        [True, True, True, False, False, False]
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def require_token(host: str, token: str | None) -> None:
    """Raise `UserError` when others can reach a host and no token is set."""
    if token is None and not is_loopback(host):
        raise UserError(
            f"others can reach {host!r}, so a token is needed: set METATREE_MCP_TOKEN, or listen on 127.0.0.1"
        )


def http_app(server: MCPServer, *, host: str, token: str | None = None, names: Sequence[str] = ()) -> _Asgi:
    """Return the ASGI app of an MCP server, at `/mcp`.

    Args:
        server: the server.
        host: what it listens on.
        token: what callers must send as `Authorization: Bearer TOKEN`; needed unless the host is of the loopback
            interface.
        names: further names that callers may use for this machine in the Host header.

    Raises:
        UserError: no token is given for a host that others can reach.
    """
    require_token(host, token)
    from mcp.server.transport_security import TransportSecuritySettings

    own = [] if is_loopback(host) else [host, socket.gethostname(), socket.getfqdn()]
    allowed = [
        name for name in dict.fromkeys((*_LOCAL_NAMES, *own, *names)) if name not in ("", "0.0.0.0", "::")
    ]
    security = TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=[host for name in allowed for host in (name, f"{name}:*")],
        allowed_origins=[
            f"{scheme}://{name}{port}"
            for name in allowed
            for scheme in ("http", "https")
            for port in ("", ":*")
        ],
    )
    app: _Asgi = server.streamable_http_app(streamable_http_path=PATH, transport_security=security, host=host)
    return app if token is None else _guarded(app, token)


def _guarded(app: _Asgi, token: str) -> _Asgi:
    """Let only calls with the token through."""
    credential = f"Bearer {token}".encode()

    async def guarded(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            sent = [value for name, value in scope["headers"] if name == b"authorization"]
            if len(sent) != 1 or not hmac.compare_digest(sent[0], credential):
                headers = [
                    (b"www-authenticate", b"Bearer"),
                    (b"content-type", b"text/plain"),
                    (b"content-length", b"17"),
                ]
                await send({"type": "http.response.start", "status": 401, "headers": headers})
                await send({"type": "http.response.body", "body": b"a token is needed"})
                return
        await app(scope, receive, send)

    return guarded


def serve_http(app: _Asgi, host: str, port: int, *, listening: Callable[[str], None]) -> None:
    """Serve an app until it is stopped by a signal.

    Args:
        listening: called with the address once connections are taken.

    Raises:
        UserError: the address cannot be listened on.
    """
    try:
        import uvicorn
    except ImportError as exc:
        raise MissingExtra("mcp", what="an MCP server over HTTP") from exc
    sock = listen(host, port, option="--http")
    with sock:
        url_host = f"[{host}]" if ":" in host else host
        listening(f"http://{url_host}:{sock.getsockname()[1]}{PATH}")
        config = uvicorn.Config(
            app, http="h11", log_level="warning", access_log=False, timeout_graceful_shutdown=3
        )
        uvicorn.Server(config).run(sockets=[sock])
