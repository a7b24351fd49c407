"""A caller of the service over one kept connection, written to take little time itself."""

from __future__ import annotations

import hashlib
import json
import secrets
import socket
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

SECRETS = {
    "frontend": ("Frontend_1", "f" * 32),
    "engine": ("Inference_1", "e" * 32),
    "user": ("User_1", "u" * 32),
    "admin": ("Admin_1", "a" * 32),
}
"""role -> (name, secret) of the users that the measurements have."""


class Caller:
    """One user at one server; not to be shared by threads."""

    def __init__(self, port: int, role: str, *, timeout_s: float = 90.0) -> None:
        self._port = port
        self._name, self._secret = SECRETS[role]
        self._timeout_s = timeout_s
        self._socket: socket.socket | None = None
        self._rest = b""

    @property
    def connected(self) -> bool:
        """Whether there is a connection now."""
        return self._socket is not None

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
            self._rest = b""

    def call(self, method: str, route: str, body: Any = None, **given: Any) -> tuple[int, Any]:
        """Make one call with a fresh proof; return the status and the JSON of the answer."""
        return self.exchange(self.signed(method, route, body, **given))

    def signed(self, method: str, route: str, body: Any = None, **given: Any) -> bytes:
        """Return the bytes of a request with a fresh proof."""
        nonce = secrets.token_urlsafe(18)
        said = hashlib.sha256(f"{self._name} {nonce} {self._secret}".encode()).hexdigest()
        proven: Mapping[str, Any] = {"User": self._name, "Nonce": nonce, "Hash": said, **given}
        address = "&".join(f"{name}={quote(str(value), safe='')}" for name, value in proven.items())
        return plain(method, f"/api/{route}?{address}", body)

    def exchange(self, request: bytes) -> tuple[int, Any]:
        """Send a request and return the status and the JSON of the answer."""
        self.send(request)
        return self.receive()

    def send(self, request: bytes) -> None:
        """Send a request as it is."""
        if self._socket is None:
            self._socket = socket.create_connection(("127.0.0.1", self._port), timeout=self._timeout_s)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.sendall(request)

    def receive(self) -> tuple[int, Any]:
        """Return the status and the JSON of the next answer.

        Raises:
            OSError: the connection ended before.
        """
        while b"\r\n\r\n" not in self._rest:
            self._rest += self._more()
        head, _, self._rest = self._rest.partition(b"\r\n\r\n")
        lines = head.lower().split(b"\r\n")
        length = next(int(line[15:]) for line in lines if line.startswith(b"content-length:"))
        while len(self._rest) < length:
            self._rest += self._more()
        body, self._rest = self._rest[:length], self._rest[length:]
        return int(lines[0].split()[1]), json.loads(body)

    def _more(self) -> bytes:
        assert self._socket is not None
        came = self._socket.recv(65536)
        if not came:
            raise ConnectionResetError("the server closed the connection")
        return came


def plain(method: str, path: str, body: Any = None) -> bytes:
    """Return the bytes of a request."""
    said = b"" if body is None else json.dumps(body).encode()
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(said)}\r\n\r\n"
    return head.encode() + said
