"""Fetching what is at an address, within limits: addresses, redirects, size, time, and what `robots.txt` allows."""

from __future__ import annotations

import asyncio
import threading
import time
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urljoin

from metatree._util.threads import run_apart
from metatree.errors import FetchFailed, RefusedAddress
from metatree.version import RELEASE
from metatree_memory_tools.web._robots import MAX_BYTES, Robots
from metatree_memory_tools.web.addresses import AddressRules, origin_of

if TYPE_CHECKING:
    import httpx2

AGENT = "metatree"
"""What `robots.txt` may call us."""
_REDIRECTS = (301, 302, 303, 307, 308)
_ROBOTS_S = 3_600.0
_MOST_ORIGINS = 1_000
_CONNECT_S = 10.0


def user_agent() -> str:
    """Return how requests name themselves."""
    return f"{AGENT}/{RELEASE}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchLimits:
    """Bounds of one fetch, redirects included."""

    max_bytes: int = 10_000_000
    """Of the body, as it is after decompression."""
    seconds: float = 30.0
    """From the first connection to the last byte."""
    redirects: int = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """What came back."""

    url: str
    """Where it was found in the end."""
    status: int
    body: bytes
    headers: Mapping[str, str]
    """By names in lower case."""
    hops: tuple[str, ...] = ()
    """The addresses that redirected, in order."""

    @property
    def content_type(self) -> str:
        """The media type in lower case without parameters, empty when none is given."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def charset(self) -> str:
        """The charset that the header names, empty when it names none."""
        for part in self.headers.get("content-type", "").split(";")[1:]:
            name, _, value = part.partition("=")
            if name.strip().lower() == "charset":
                return value.strip().strip("\"'").lower()
        return ""


@dataclass
class _Known:
    robots: Robots
    until: float


@dataclass
class RobotsCache:
    """What origins allow, kept for an hour; shared by threads."""

    now: Callable[[], float] = time.monotonic
    _known: dict[str, _Known] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def get(self, origin: str) -> Robots | None:
        """Return what is known of an origin."""
        with self._lock:
            robots = self._known.get(origin)
            return robots.robots if robots is not None and robots.until > self.now() else None

    def keep(self, origin: str, robots: Robots) -> None:
        """Remember what an origin allows."""
        with self._lock:
            if len(self._known) >= _MOST_ORIGINS:
                self._known.clear()
            self._known[origin] = _Known(robots, self.now() + _ROBOTS_S)


ROBOTS = RobotsCache()
"""What is known in this process."""


async def afetch(
    url: str,
    *,
    rules: AddressRules | None = None,
    limits: FetchLimits | None = None,
    robots: RobotsCache | None = ROBOTS,
    headers: Mapping[str, str] | None = None,
    method: str = "GET",
    body: bytes | None = None,
    statuses: tuple[int, ...] | None = None,
) -> Fetched:
    """Fetch what is at an address.

    Args:
        url: http or https.
        rules: what may be reached, at each redirect and each connection; None for public addresses alone.
        limits: None for the defaults.
        robots: where to remember what `robots.txt` says; None to fetch whatever it says.
        headers: sent besides our own; only to the origin of `url`, whatever redirects.
        method: a redirect of anything but GET and HEAD is not followed.
        body: sent with the request.
        statuses: returned although they tell of an error; None for 304 alone.

    Raises:
        RefusedAddress: the address, or one that it redirects to, may not be fetched from.
        FetchFailed: it could not be fetched; says why and where.
    """
    rules, limits = rules or AddressRules(), limits or FetchLimits()
    import httpx2

    from metatree_memory_tools.web.transport import GuardedTransport

    at = url
    try:
        async with (
            asyncio.timeout(limits.seconds),
            httpx2.AsyncClient(
                transport=GuardedTransport(rules), trust_env=False, timeout=_CONNECT_S
            ) as client,
        ):
            first = origin_of(rules.check_url(url))
            hops: list[str] = []
            while True:
                parts = rules.check_url(at)
                at = parts.geturl()
                if robots is not None:
                    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
                    allowed = await _robots_of(client, origin_of(parts), robots, rules)
                    if not allowed.allows(AGENT, path):
                        raise FetchFailed(
                            f"{at!r} is not fetched: robots.txt there does not allow it", url=at
                        )
                sent = {"User-Agent": user_agent(), "Accept-Encoding": "gzip, deflate", "Accept": "*/*"}
                if headers and origin_of(parts) == first:
                    sent |= headers
                async with client.stream(method, at, headers=sent, content=body) as response:
                    where = response.headers.get("location")
                    if response.status_code in _REDIRECTS and where and method in ("GET", "HEAD"):
                        if len(hops) >= limits.redirects:
                            raise FetchFailed(
                                f"{url!r} redirects more than {limits.redirects} times", url=url
                            )
                        hops.append(at)
                        at = joined(at, where)
                        continue
                    status = response.status_code
                    if not (200 <= status < 300 or status in (statuses or (304,))):
                        raise FetchFailed(
                            f"{at!r} answers {status} {response.reason_phrase}".strip(), url=at, status=status
                        )
                    read = b"" if method == "HEAD" else await _read(response, at, limits.max_bytes)
                    received = {name.lower(): value for name, value in response.headers.items()}
                    return Fetched(url=at, status=status, body=read, headers=received, hops=tuple(hops))
    except TimeoutError as exc:
        raise FetchFailed(f"{at!r} gave nothing whole within {limits.seconds:g} s", url=at) from exc
    except httpx2.TimeoutException as exc:
        raise FetchFailed(f"{at!r} gave nothing for {_CONNECT_S:g} s", url=at) from exc
    except httpx2.InvalidURL as exc:
        raise RefusedAddress(f"{at!r} is no URL: {exc}") from exc
    except (httpx2.HTTPError, OSError) as exc:
        raise FetchFailed(f"{at!r} cannot be reached: {exc or type(exc).__name__}", url=at) from exc


def fetch(url: str, **options: Any) -> Fetched:
    """Do what `afetch` does, and wait for it; works inside a running event loop too."""
    return run_apart(lambda: afetch(url, **options))


def joined(base: str, reference: str) -> str:
    """Return where a reference on a page leads, with spaces and the like escaped.

    Example:
        >>> joined("http://example.org/a/b", " ../c d?x=ä ")
        'http://example.org/c%20d?x=%C3%A4'
    """
    try:
        return urljoin(base, quote(reference.strip(), safe="%/:=&?~#+!$,;'@()*[]-._|"))
    except ValueError:  # a bracket that nothing closes
        return ""


async def _robots_of(
    client: httpx2.AsyncClient, origin: str, cache: RobotsCache, rules: AddressRules
) -> Robots:
    known = cache.get(origin)
    if known is not None:
        return known
    text = await _robots_text(client, f"{origin}/robots.txt", rules)
    robots = Robots(text)
    cache.keep(origin, robots)
    return robots


async def _robots_text(client: httpx2.AsyncClient, url: str, rules: AddressRules) -> str:
    """Return what an origin's `robots.txt` says: all is allowed when there is none, nothing when it fails."""
    at = url
    for _ in range(FetchLimits().redirects + 1):
        rules.check_url(at)
        sent = {"User-Agent": user_agent(), "Accept-Encoding": "gzip, deflate"}
        async with client.stream("GET", at, headers=sent) as response:
            where = response.headers.get("location")
            if response.status_code in _REDIRECTS and where:
                at = joined(at, where)
            elif response.status_code >= 500:
                raise FetchFailed(
                    f"{url!r} answers {response.status_code}, so nothing there is fetched for now",
                    url=url,
                    status=response.status_code,
                )
            elif response.status_code >= 300:
                return ""
            else:
                return (await _read(response, at, MAX_BYTES, cut=True)).decode("utf-8", "replace")
    return ""


async def _read(response: httpx2.Response, url: str, most: int, *, cut: bool = False) -> bytes:
    """Read a body as it is after decompression; what would become too large is never held.

    Args:
        cut: whether a larger one is cut; it is an error otherwise.
    """
    encoding = response.headers.get("content-encoding", "").strip().lower()
    if encoding not in ("", "identity", "gzip", "x-gzip", "deflate"):
        raise FetchFailed(f"{url!r} is packed as {encoding!r}, which was not asked for", url=url)
    unpack = None if encoding in ("", "identity") else _Unpacker()
    body = bytearray()
    async for piece in response.aiter_raw():
        try:
            body += piece if unpack is None else unpack.feed(piece, most + 1 - len(body))
        except zlib.error as exc:
            raise FetchFailed(f"{url!r} is not packed as it says: {exc}", url=url) from exc
        if len(body) > most:
            if cut:
                return bytes(body[:most])
            raise FetchFailed(f"{url!r} is larger than {most:,} bytes", url=url)
    if unpack is not None and not unpack.complete:
        raise FetchFailed(f"{url!r} breaks off in the middle", url=url)
    return bytes(body)


class _Unpacker:
    """Inflates gzip and both things that are called deflate, never beyond its limit."""

    def __init__(self) -> None:
        self._inflate: Any = None
        self._seen = False

    def feed(self, piece: bytes, most: int) -> bytes:
        """Return at most so many bytes of what a piece holds."""
        if self._inflate is None and piece:
            zipped = piece[:1] == b"\x1f" or (piece[0] & 0x0F == 8 and piece[0] >> 4 <= 7)
            self._inflate = zlib.decompressobj(47 if zipped else -15)
        out = bytearray()
        while piece and len(out) < most:
            if self._inflate.eof:  # gzip may be several members, one after the other
                if piece[:1] != b"\x1f":
                    break
                self._inflate = zlib.decompressobj(47)
            out += self._inflate.decompress(piece, most - len(out))
            piece = self._inflate.unconsumed_tail or self._inflate.unused_data
        return bytes(out)

    @property
    def complete(self) -> bool:
        """Whether the end was reached."""
        return self._inflate is None or self._inflate.eof
