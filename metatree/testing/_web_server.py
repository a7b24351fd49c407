"""A small web server on loopback for tests: pages by path, and a list of what was asked."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self


@dataclass(frozen=True)
class Asked:
    """One request as it came in."""

    method: str
    path: str
    """With the query."""
    headers: Mapping[str, str]
    body: bytes = b""


@dataclass(frozen=True)
class Reply:
    """What is sent back."""

    body: str | bytes = ""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    kind: str = "text/html; charset=utf-8"


Route = Reply | str | Callable[[Asked], "Reply | str"]


class WebServer:
    """Serves pages on 127.0.0.1 while its `with` block runs; what it does not know is a 404.

    Args:
        routes: path (without the query) -> page, reply, or a function from the request to one.

    Example:
        >>> with WebServer({"/": "<h1>Hello</h1>"}) as server:
        ...     server.url.startswith("http://127.0.0.1:")
        True
    """

    def __init__(self, routes: Mapping[str, Route] | None = None) -> None:
        self.routes: dict[str, Route] = dict(routes or {})
        self.asked: list[Asked] = []

    @property
    def url(self) -> str:
        """The address, without a `/` at its end."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def host(self) -> str:
        """The address without `http://`, as allow-lists have it."""
        return f"127.0.0.1:{self.port}"

    def paths(self) -> list[str]:
        """Return the paths that were asked for, in order, `robots.txt` left out."""
        return [request.path for request in self.asked if request.path != "/robots.txt"]

    def __enter__(self) -> Self:
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def _serve(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                headers = {name.lower(): value for name, value in self.headers.items()}
                request = Asked(self.command, self.path, headers, self.rfile.read(length))
                outer.asked.append(request)
                route = outer.routes.get(self.path.partition("?")[0], Reply("not found", 404))
                answer = route(request) if callable(route) else route
                reply = answer if isinstance(answer, Reply) else Reply(answer)
                body = reply.body.encode() if isinstance(reply.body, str) else reply.body
                self.send_response(reply.status)
                response_headers = {
                    "Content-Type": reply.kind,
                    "Content-Length": str(len(body)),
                    **reply.headers,
                }
                for name, value in response_headers.items():
                    self.send_header(name, value)
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = _serve  # noqa: N815

            def log_message(self, *_: object) -> None:
                pass

        class Server(http.server.ThreadingHTTPServer):
            def handle_error(self, *_: object) -> None:
                pass  # whoever asked is gone

        self._server = Server(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
