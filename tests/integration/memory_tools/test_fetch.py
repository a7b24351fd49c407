"""Fetching from a real server on loopback, and ways around the rules that do not work."""

from __future__ import annotations

import asyncio
import gzip
import socket
import threading
import tracemalloc
import zlib
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from metatree_memory_tools.web.addresses import AddressRules
from metatree_memory_tools.web.fetch import FetchLimits, RobotsCache, afetch, fetch, joined
from metatree_memory_tools.web.freshness import page_fingerprint

from metatree.errors import FetchFailed, RefusedAddress
from metatree.testing._web_server import Reply, WebServer

pytestmark = pytest.mark.integration


@pytest.fixture
def server() -> Iterator[WebServer]:
    with WebServer({"/": "<p>Hello</p>"}) as running:
        yield running


@pytest.fixture
def rules(server: WebServer) -> AddressRules:
    return AddressRules(allow=(server.host,))


def test_a_page_comes_with_its_headers_and_we_say_who_we_are(server: WebServer, rules: AddressRules) -> None:
    response = fetch(f"{server.url}/", rules=rules, robots=RobotsCache())
    assert (response.body, response.status, response.content_type, response.charset) == (
        b"<p>Hello</p>",
        200,
        "text/html",
        "utf-8",
    )
    assert server.asked[0].path == "/robots.txt"
    assert all(request.headers["user-agent"].startswith("metatree/") for request in server.asked)


def test_loopback_is_refused_without_leave_under_each_of_its_names(server: WebServer) -> None:
    for host in ("127.0.0.1", "localhost", "LOCALHOST", "127.0.0.1.", "[::1]", "0.0.0.0"):
        with pytest.raises(RefusedAddress):
            fetch(f"http://{host}:{server.port}/")
    assert server.asked == []


def test_a_name_is_judged_by_the_address_that_the_connection_goes_to(
    server: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that resolves to a public address when it is looked at, and to a private one later, gains nothing."""
    real = asyncio.base_events.BaseEventLoop.getaddrinfo
    queries: list[str] = []

    async def rebinding(self: Any, host: Any, port: Any, **options: Any) -> Any:
        if host == "rebind.example":
            queries.append(host)
            host = "127.0.0.1"
        return await real(self, host, port, **options)

    monkeypatch.setattr(asyncio.base_events.BaseEventLoop, "getaddrinfo", rebinding)
    with pytest.raises(RefusedAddress, match=r"rebind\.example"):
        fetch(f"http://rebind.example:{server.port}/")
    assert queries and server.asked == []


@pytest.mark.parametrize(
    "target",
    [
        "file:///etc/passwd",
        "http://169.254.169.254/latest/meta-data/",
        "http://[::ffff:169.254.169.254]/",
        "http://2852039166/",
        "ftp://127.0.0.1/",
        "//169.254.169.254/",
        "http://user:secret@127.0.0.1/",
    ],
)
def test_each_redirect_is_checked(server: WebServer, rules: AddressRules, target: str) -> None:
    server.routes["/away"] = Reply("", 302, {"Location": target})
    with pytest.raises(RefusedAddress):
        fetch(f"{server.url}/away", rules=rules, robots=None)


def test_a_redirect_to_another_local_server_is_refused(server: WebServer, rules: AddressRules) -> None:
    with WebServer({"/": "secret"}) as other:
        server.routes["/away"] = Reply("", 307, {"Location": f"{other.url}/"})
        with pytest.raises(RefusedAddress):
            fetch(f"{server.url}/away", rules=rules, robots=None)
        assert other.asked == []


def test_redirects_are_followed_up_to_a_number(server: WebServer, rules: AddressRules) -> None:
    server.routes |= {"/a": Reply("", 301, {"Location": "b?x=1"}), "/b": Reply("", 302, {"Location": "/"})}
    response = fetch(f"{server.url}/a", rules=rules, robots=None)
    assert response.url == f"{server.url}/" and response.hops == (f"{server.url}/a", f"{server.url}/b?x=1")
    server.routes["/round"] = Reply("", 302, {"Location": "/round"})
    with pytest.raises(FetchFailed, match="more than 5 times"):
        fetch(f"{server.url}/round", rules=rules, robots=None)
    assert server.paths().count("/round") == 6


def test_headers_of_ours_stay_with_the_origin_they_are_for(server: WebServer) -> None:
    with WebServer({"/": "hi"}) as other:
        server.routes["/away"] = Reply("", 302, {"Location": f"{other.url}/"})
        rules = AddressRules(allow=(server.host, other.host))
        fetch(f"{server.url}/away", rules=rules, robots=None, headers={"Authorization": "secret"})
        assert server.asked[0].headers["authorization"] == "secret"
        assert "authorization" not in other.asked[0].headers


def _bomb() -> bytes:
    packer = zlib.compressobj(9, wbits=31)
    packed = b"".join(packer.compress(bytes(1_000_000)) for _ in range(50)) + packer.flush()
    assert len(packed) < 100_000
    return packed


def test_a_bomb_is_not_unpacked(server: WebServer, rules: AddressRules) -> None:
    """Of 50 MB not more is ever held than the limit and what holds it while it grows."""
    server.routes["/bomb"] = Reply(_bomb(), headers={"Content-Encoding": "gzip"})
    fetch(f"{server.url}/", rules=rules, robots=None)  # what is imported and made once
    tracemalloc.start()
    try:
        with pytest.raises(FetchFailed, match="larger than 1,000,000 bytes"):
            fetch(f"{server.url}/bomb", rules=rules, robots=None, limits=FetchLimits(max_bytes=1_000_000))
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


def test_a_large_page_is_refused(server: WebServer, rules: AddressRules) -> None:
    server.routes["/large"] = Reply(b"x" * 2_000)
    url = f"{server.url}/large"
    response = fetch(url, rules=rules, robots=None, limits=FetchLimits(max_bytes=2_000))
    assert len(response.body) == 2_000
    with pytest.raises(FetchFailed, match="larger than 1,999 bytes"):
        fetch(url, rules=rules, robots=None, limits=FetchLimits(max_bytes=1_999))


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [
        ("gzip", gzip.compress(b"text " * 50, mtime=0)),
        ("gzip", gzip.compress(b"text " * 25, mtime=0) + gzip.compress(b"text " * 25, mtime=0)),
        ("deflate", zlib.compress(b"text " * 50)),
        ("deflate", zlib.compress(b"text " * 50)[2:-4]),
    ],
)
def test_packed_pages_are_unpacked(
    server: WebServer, rules: AddressRules, encoding: str, packed: bytes
) -> None:
    server.routes["/packed"] = Reply(packed, headers={"Content-Encoding": encoding})
    assert fetch(f"{server.url}/packed", rules=rules, robots=None).body == b"text " * 50


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("br", b"abc"),
        ("gzip", b"not packed"),
        ("gzip", gzip.compress(b"x" * 100_000, mtime=0)[:-20]),
        ("gzip, gzip", b""),
    ],
    ids=["unknown", "plain", "cut off", "empty"],
)
def test_what_is_packed_wrongly_is_an_error(
    server: WebServer, rules: AddressRules, encoding: str, body: bytes
) -> None:
    server.routes["/packed"] = Reply(body, headers={"Content-Encoding": encoding})
    with pytest.raises(FetchFailed):
        fetch(f"{server.url}/packed", rules=rules, robots=None)


@pytest.fixture
def dripping() -> Iterator[int]:
    """A server that never ends its answer: one byte at a time."""
    listening = socket.create_server(("127.0.0.1", 0))
    stop = threading.Event()

    def drip() -> None:
        connection, _ = listening.accept()
        with connection, suppress(OSError):
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
            while not stop.wait(0.05):
                connection.sendall(b"x")

    thread = threading.Thread(target=drip, daemon=True)
    thread.start()
    yield listening.getsockname()[1]
    stop.set()
    thread.join()
    listening.close()


def test_a_server_that_drips_is_left_in_time(dripping: int) -> None:
    with pytest.raises(FetchFailed, match=r"gave nothing whole within 0\.5 s"):
        fetch(
            f"http://127.0.0.1:{dripping}/",
            rules=AddressRules(allow_private=True),
            robots=None,
            limits=FetchLimits(seconds=0.5),
        )


def test_robots_txt_is_minded_and_asked_for_once(server: WebServer, rules: AddressRules) -> None:
    server.routes["/robots.txt"] = Reply("User-agent: metatree\nDisallow: /private", kind="text/plain")
    known = RobotsCache()
    fetch(f"{server.url}/", rules=rules, robots=known)
    fetch(f"{server.url}/?again", rules=rules, robots=known)
    with pytest.raises(FetchFailed, match=r"robots\.txt there does not allow it"):
        fetch(f"{server.url}/private/x", rules=rules, robots=known)
    assert [request.path for request in server.asked] == ["/robots.txt", "/", "/?again"]


def test_a_redirect_does_not_get_around_robots_txt(server: WebServer, rules: AddressRules) -> None:
    server.routes |= {
        "/robots.txt": Reply("User-agent: *\nDisallow: /private", kind="text/plain"),
        "/open": Reply("", 302, {"Location": "/private"}),
        "/private": "hidden",
    }
    with pytest.raises(FetchFailed, match="does not allow"):
        fetch(f"{server.url}/open", rules=rules, robots=RobotsCache())
    assert "/private" not in server.paths()


def test_robots_txt_is_known_for_an_hour(server: WebServer, rules: AddressRules) -> None:
    clock = [0.0]
    known = RobotsCache(now=lambda: clock[0])
    for at in (0.0, 3_599.0, 3_601.0):
        clock[0] = at
        fetch(f"{server.url}/", rules=rules, robots=known)
    assert [request.path for request in server.asked].count("/robots.txt") == 2


def test_nothing_is_fetched_while_robots_txt_fails(server: WebServer, rules: AddressRules) -> None:
    server.routes["/robots.txt"] = Reply("", 503)
    with pytest.raises(FetchFailed, match="answers 503"):
        fetch(f"{server.url}/", rules=rules, robots=RobotsCache())
    assert server.paths() == []


def test_errors_say_where_and_what(server: WebServer, rules: AddressRules) -> None:
    with pytest.raises(FetchFailed, match=f"{server.url}/none' answers 404") as caught:
        fetch(f"{server.url}/none", rules=rules, robots=None)
    assert caught.value.status == 404
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(FetchFailed, match="cannot be reached"):
        fetch(f"http://127.0.0.1:{port}/", rules=AddressRules(allow_private=True), robots=None)


def test_it_works_inside_a_running_loop(server: WebServer, rules: AddressRules) -> None:
    url = f"{server.url}/"

    async def both() -> list[bytes]:
        return [(await afetch(url, rules=rules, robots=None)).body, fetch(url, rules=rules, robots=None).body]

    assert asyncio.run(both()) == [b"<p>Hello</p>"] * 2


def test_a_fingerprint_is_what_the_server_says_of_the_version(server: WebServer, rules: AddressRules) -> None:
    date = "Mon, 01 Jan 2024 00:00:00 GMT"
    server.routes |= {
        "/tagged": Reply("a", headers={"ETag": '"1"', "Last-Modified": date}),
        "/dated": Reply("a", headers={"Last-Modified": date}),
        "/get": lambda request: Reply("a", 405 if request.method == "HEAD" else 200),
    }
    paths = ("/tagged", "/dated", "/", "/get")
    result = {path: page_fingerprint(server.url + path, rules=rules, robots=None) for path in paths}
    assert result == {"/tagged": 'etag "1"', "/dated": f"changed {date} 1", "/": None, "/get": None}
    assert {request.method for request in server.asked} == {"HEAD"}


def test_references_are_joined_as_browsers_do() -> None:
    assert joined("http://a.example/b/c", "../d e") == "http://a.example/d%20e"
    assert joined("http://a.example/b", "http://[broken") == ""
