"""How much one address and one user may do: token buckets in this process, connections at once, open queries.

A token bucket holds up to `burst` tokens and gains `rate` of them a second; a request takes one, or is refused until
there is one (Turner 1986, the leaky bucket as a meter).

Users have a rate, and programs a bound on connections. Lost: counting in the database, a write for each request;
limits for engines, which work all the time.
"""

from __future__ import annotations

import ipaddress
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from fastapi import HTTPException
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from metatree_agents.service.accounts.users import Caller
from metatree_agents.service.http.error_responses import error_response

PROGRAMS: Final = frozenset({"frontend", "engine", "admin"})
"""Roles that act for many, or are trusted: only their connections are counted."""
_KEPT: Final = 50_000


@dataclass(frozen=True, slots=True)
class Rates:
    """The limits; 0 is none. Each process keeps its own.

    Args:
        address_rate: requests a second from one address; loopback has no limit.
        address_burst: how many may come at once before that.
        user_rate: requests a second of one user.
        user_burst: how many may come at once before that.
        connections: how many requests of one user may be in progress, waiting ones among them.
        program_connections: the same for a frontend, an engine or an administrator.
        open_queries: how many queries of one user may be unanswered.
    """

    address_rate: float = 200.0
    address_burst: float = 2_000.0
    user_rate: float = 20.0
    user_burst: float = 200.0
    connections: float = 50.0
    program_connections: float = 10_000.0
    open_queries: float = 100.0


class Buckets:
    """A token bucket for each key.

    Example:
        >>> buckets = Buckets(rate=1.0, burst=2.0, clock=lambda: 0.0)
        >>> [buckets.take("Ann") for _ in range(3)]
        [0.0, 0.0, 1.0]
    """

    def __init__(self, rate: float, burst: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.rate = rate
        self.burst = max(burst, 1.0)
        self._clock = clock
        self._tokens_left: dict[str, tuple[float, float]] = {}

    def __len__(self) -> int:
        return len(self._tokens_left)

    def take(self, key: str) -> float:
        """Take a token; return 0, or the seconds until there is one."""
        if self.rate <= 0:
            return 0.0
        now = self._clock()
        left, since = self._tokens_left.get(key, (self.burst, now))
        left = min(self.burst, left + (now - since) * self.rate)
        if left < 1.0:
            return (1.0 - left) / self.rate
        if key not in self._tokens_left and len(self._tokens_left) >= _KEPT:
            self._forget(now)
        self._tokens_left[key] = (left - 1.0, now)
        return 0.0

    def _forget(self, now: float) -> None:
        """Forget the buckets that are full again, and when none is, all: many addresses at once are no one's fault."""
        self._tokens_left = {
            key: (left, since)
            for key, (left, since) in self._tokens_left.items()
            if left + (now - since) * self.rate < self.burst
        }
        if len(self._tokens_left) >= _KEPT:
            self._tokens_left.clear()


class RateLimits:
    """The limits of one process."""

    def __init__(
        self,
        rates: Rates | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        refused: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.rates = rates = rates or Rates()
        self._refused = refused
        self._addresses = Buckets(rates.address_rate, rates.address_burst, clock=clock)
        self._users = Buckets(rates.user_rate, rates.user_burst, clock=clock)
        self._in_progress: dict[str, int] = {}

    def address(self, host: str | None) -> float:
        """Count a request from an address; return 0, or the seconds until it may come again."""
        if host is None or (key := _network(host)) is None:
            return 0.0
        wait_s = self._addresses.take(key)
        if wait_s:
            self._refused("address")
        return wait_s

    def admit(self, request: HTTPConnection, who: Caller) -> None:
        """Count a request of a user, until it has been answered.

        Raises:
            HTTPException: 429, with the seconds after which to come again.
        """
        program = who.role in PROGRAMS
        if not program and (wait_s := self._users.take(who.name)):
            self._refused("user")
            raise too_many("too many requests of this user", wait_s)
        most = self.rates.program_connections if program else self.rates.connections
        running = self._in_progress.get(who.name, 0)
        if most and running >= most:
            self._refused("connections")
            raise too_many(f"{running} requests of this user are in progress", 1.0)
        self._in_progress[who.name] = running + 1
        request.state.caller = who
        request.state.release = lambda: self._release(who.name)

    def _release(self, name: str) -> None:
        left = self._in_progress.pop(name) - 1
        if left:
            self._in_progress[name] = left

    def admit_open(self, who: Caller, unanswered: int) -> None:
        """Refuse another query of a user who has many unanswered ones; a frontend minds its users itself.

        Raises:
            HTTPException: 429.
        """
        most = self.rates.open_queries
        if who.role not in PROGRAMS and most and unanswered >= most:
            self._refused("open_queries")
            raise too_many(f"{unanswered} queries of this user are not answered yet", 10.0)


def too_many(detail: str, wait_s: float) -> HTTPException:
    """Return the error of a limit, with the seconds after which to come again."""
    return HTTPException(429, detail, headers={"Retry-After": str(max(1, math.ceil(wait_s)))})


@lru_cache(maxsize=4_096)
def _network(host: str) -> str | None:
    """Return what one client has for itself: an IPv4 address, or a /64 of IPv6; None for this machine."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return _network(str(address.ipv4_mapped))
        if not address.is_loopback:
            return str(ipaddress.ip_network((address, 64), strict=False))
    return None if address.is_loopback else host


class AddressLimit:
    """Answers 429 to an address that asks too often, before anything is read or looked up for it."""

    def __init__(self, app: ASGIApp, limits: RateLimits) -> None:
        self._app = app
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            client = scope.get("client")
            if wait_s := self._limits.address(client[0] if client else None):
                headers = {"Retry-After": str(math.ceil(wait_s))}
                refusal = error_response(
                    scope, 429, "too many requests from this address; come again later", headers=headers
                )
                await refusal(scope, receive, send)
                return
        await self._app(scope, receive, send)
