"""A server of the engine's routes, written from the page of the wire format alone, with the standard library."""

import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


class Server(ThreadingHTTPServer):
    """Holds one topic, one lookup, and what an engine gave."""

    daemon_threads = True

    def __init__(
        self, tokens: dict[str, str], topic: str, queries: list[dict[str, str]], lookup: dict[str, Any]
    ) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.tokens, self.topic, self.queries = tokens, topic, queries
        self.lookup: dict[str, Any] | None = lookup
        self.used: set[tuple[str, str]] = set()
        self.answers: dict[int, dict[str, Any]] = {}
        self.matches: dict[str, list[str]] = {}
        self.changed = threading.Condition()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def log_message(self, *_: Any) -> None:
        pass

    def reply(self, status: int, body: Any) -> None:
        raw = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def allowed(self) -> bool:
        given = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
        user, nonce, digest = given.get("User", ""), given.get("Nonce", ""), given.get("Hash", "")
        algorithm = "sha256" if len(digest) == 64 else "sha1"  # "we may choose to use SHA-256"
        right = hashlib.new(algorithm, f"{user} {nonce} {self.server.tokens.get(user)}".encode()).hexdigest()
        fresh = (user, nonce) not in self.server.used
        self.server.used.add((user, nonce))
        return fresh and digest == right

    def do_GET(self) -> None:
        server, route = self.server, urlsplit(self.path).path
        with server.changed:
            if not self.allowed():
                self.reply(401, {"detail": "no"})
            elif route == "/api/get-new-queries" and server.queries:
                queries, server.queries = server.queries, []
                self.reply(200, {"Topic": server.topic, "Queries": queries})
            elif route == "/api/get-new-queries":
                server.changed.wait(0.2)
                self.reply(200, {"Topic": None, "Queries": None})
            elif route == "/api/get-new-lookup" and server.lookup:
                lookup, server.lookup = server.lookup, None
                self.reply(200, lookup)
            else:
                self.reply(404, {"detail": "Not Found"})

    def do_POST(self) -> None:
        server, route = self.server, urlsplit(self.path).path
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with server.changed:
            if not self.allowed():
                self.reply(401, {"detail": "no"})
            elif route == "/api/give-new-answer":
                server.answers[body["Seq"]] = body
                self.reply(200, {})
            elif route == "/api/give-new-matches":
                server.matches[body["Fingerprint"]] = body["Matches"]
                self.reply(200, {})
            else:
                self.reply(404, {"detail": "Not Found"})
            server.changed.notify_all()
