"""How people log in who have no secret here: a proxy says who they are, or a provider of OpenID Connect does."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

PEER: Final = "metatree.peer"
"""Where a request keeps the address that it came from itself, whatever its headers say."""


@dataclass(frozen=True, slots=True)
class OtherLogins:
    """What is believed of who somebody is, besides their secret.

    Args:
        header: has the name of who is logged in at a proxy; empty for none.
        proxies: addresses and networks of the proxies that alone may set it.
        issuer: the address of a provider of OpenID Connect; empty for none.
        client_id: what this service is called there.
        client_secret: by which it proves to be that.
        claim: which of the provider's claims is the name.
        adds: whether somebody who is unknown here becomes a `user`.
    """

    header: str = ""
    proxies: Sequence[str] = ()
    issuer: str = ""
    client_id: str = ""
    client_secret: str = ""
    claim: str = "preferred_username"
    adds: bool = False

    def named_by_proxy(self, scope: Scope) -> str | None:
        """Return who a proxy says that somebody is; None where none may, or it does not say it exactly once."""
        peer = scope.get(PEER)
        if not self.header or not isinstance(peer, str) or not _is_among(peer, self.proxies):
            return None
        names = Headers(scope=scope).getlist(self.header)
        return names[0].strip() or None if len(names) == 1 else None


def _is_among(peer: str, networks: Sequence[str]) -> bool:
    try:
        address = ipaddress.ip_address(peer)
    except ValueError:
        return False
    address = getattr(address, "ipv4_mapped", None) or address
    return any(address in ipaddress.ip_network(each, strict=False) for each in networks)


class PeerMark:
    """Notes the address that a request came from, before anything in it is believed."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            client = scope.get("client")
            scope[PEER] = client[0] if client else ""
        await self._app(scope, receive, send)
