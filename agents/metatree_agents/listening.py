"""Sockets that listen, and the error of a port that is taken, for all commands that serve."""

from __future__ import annotations

import errno
import socket
from typing import Final

from metatree.errors import UserError

BACKLOG: Final = 2048
_LAST_PORT: Final = 65_535


def require_free(host: str, port: int, *, option: str = "--port") -> None:
    """See that an address can be listened on, before anything that takes long is done.

    Args:
        port: 0 for any free one.
        option: the option that names the port: `--port`, or one that takes HOST:PORT.

    Raises:
        UserError: it cannot; says which option to type.
    """
    _bound(host, port, option=option).close()


def listen(host: str, port: int, *, option: str = "--port") -> socket.socket:
    """Return a socket that listens, without blocking.

    Its protocol is named, or else asyncio leaves Nagle's algorithm on: 40 ms for each answer.

    Args:
        port: 0 for any free one.
        option: the option that names the port: `--port`, or one that takes HOST:PORT.

    Raises:
        UserError: the address cannot be listened on; says which option to type.
    """
    made = _bound(host, port, option=option)
    try:
        made.listen(BACKLOG)  # refused where another one was bound at the same time, and listens by now
    except OSError as exc:
        made.close()
        raise _refused(host, port, option, exc) from exc
    made.setblocking(False)
    return made


def _bound(host: str, port: int, *, option: str) -> socket.socket:
    made = None
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        made = socket.socket(family, kind, protocol)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
    except OSError as exc:
        if made is not None:
            made.close()
        raise _refused(host, port, option, exc) from exc
    return made


def _refused(host: str, port: int, option: str, exc: OSError) -> UserError:
    what = f"cannot listen on {host} port {port}: {exc.strerror or exc}"
    if exc.errno not in (errno.EADDRINUSE, errno.EACCES):
        return UserError(f"{what}; choose another {'--host' if option == '--port' else option}")
    before = "" if option == "--port" else f"[{host}]:" if ":" in host else f"{host}:"
    free = port + 1 if exc.errno == errno.EADDRINUSE and port < _LAST_PORT else 8080
    return UserError(
        f"{what}; type another port, such as {option} {before}{free}, or {option} {before}0 for any free one"
    )
