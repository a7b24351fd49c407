"""Which addresses may be reached: public ones, and those that the user names.

A name is only a promise. What counts is the address that a connection really goes to, so `AddressRules.check_address`
is asked once more for each connection, after the name was resolved: a name that resolves to another address the second
time gains nothing.

An address that the user types for an MCP server or a search engine may be private, one for a page may not: the first
names a service to be trusted with questions, the second often comes out of a text.
"""

from __future__ import annotations

import os
import re
import socket
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any
from urllib.parse import SplitResult, urlsplit

from metatree.errors import RefusedAddress, UserError

Address = IPv4Address | IPv6Address

VARIABLE = "METATREE_WEB_ALLOW"
"""Names hosts that may be reached although their addresses are private, for every source."""
_PORTS = {"http": 80, "https": 443}
_MAX_URL = 8_192
_NAT64 = IPv6Network("64:ff9b::/96")
_GLOBAL = IPv6Network("2000::/3")
_6TO4 = IPv6Network("2002::/16")
_ALWAYS: Mapping[str, tuple[IPv4Network | IPv6Network, ...]] = {
    # 168.63.129.16 is public and answers with a machine's secrets all the same.
    "a metadata address of a cloud": (ip_network("168.63.129.16/32"), ip_network("fd00:ec2::/32")),
    "a link-local address": (ip_network("169.254.0.0/16"), ip_network("fe80::/10")),
    "no address of one host": (
        ip_network("0.0.0.0/8"),
        ip_network("::/128"),
        ip_network("255.255.255.255/32"),
    ),
    "a multicast address": (ip_network("224.0.0.0/4"), ip_network("ff00::/8")),
    "a reserved address": (
        ip_network("192.88.99.0/24"),
        ip_network("240.0.0.0/4"),
        ip_network("::/96"),
        ip_network("100::/64"),
        ip_network("2001::/23"),
        ip_network("2001:db8::/32"),
        ip_network("3fff::/20"),
        ip_network("5f00::/16"),
        ip_network("64:ff9b:1::/48"),
    ),
}
_PRIVATE: Mapping[str, tuple[IPv4Network | IPv6Network, ...]] = {
    "a loopback address": (ip_network("127.0.0.0/8"), ip_network("::1/128")),
    "a private address": (
        ip_network("10.0.0.0/8"),
        ip_network("172.16.0.0/12"),
        ip_network("192.168.0.0/16"),
        ip_network("100.64.0.0/10"),
        ip_network("192.0.0.0/24"),
        ip_network("198.18.0.0/15"),
        ip_network("fc00::/7"),
        ip_network("fec0::/10"),
    ),
}


@dataclass(frozen=True, slots=True)
class AddressRules:
    """What may be reached by http and https.

    Example:
        >>> AddressRules().check_url("http://example.org/a#b").geturl()
        'http://example.org/a'
        >>> AddressRules(allow=("127.0.0.1:8080",)).check_url("http://127.0.0.1:8080/").port
        8080
    """

    allow_private: bool = False
    """Whether loopback and private addresses may be reached, from whichever page."""
    allow: tuple[str, ...] = ()
    """Hosts that may be reached although their addresses are private: `wiki.lan`, `wiki.lan:8080`, `10.1.0.0/16`.
    Link-local, multicast and metadata addresses have to be named by number."""
    named: tuple[str, ...] = ()
    """Hosts with ports whose addresses may be private, because the user gave the address itself; see `naming`."""

    def __post_init__(self) -> None:
        for entry in self.allow:
            if not isinstance(entry, str) or not entry.strip() or "://" in entry:
                raise UserError(
                    f"allow={entry!r}: give a host, host:port, an address or a network, not a URL"
                )

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> AddressRules:
        """Read `allow_private` and `allow` (a text or a list) from the options of a source.

        What the environment variable `METATREE_WEB_ALLOW` names, separated by commas, is allowed besides.

        Raises:
            UserError: a value is of another type.
        """
        private, allow = options.get("allow_private", False), options.get("allow", ())
        if not isinstance(private, bool):
            raise UserError(f"allow_private={private!r}: give true or false")
        if isinstance(allow, str):
            allow = [part.strip() for part in allow.split(",") if part.strip()]
        if not isinstance(allow, Sequence):
            raise UserError(f"allow={allow!r}: give a list of hosts")
        named = (part.strip() for part in os.environ.get(VARIABLE, "").split(","))
        return cls(private, (*allow, *(part for part in named if part)))

    def naming(self, url: str) -> AddressRules:
        """Return these rules for an address that the user gave himself, so that it may be private; nothing else may.

        Raises:
            RefusedAddress: it may not be reached all the same, as a metadata address.
        """
        parts = urlsplit(url)
        try:
            host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
            port = parts.port or _PORTS.get(parts.scheme, 0)
        except ValueError as exc:
            raise RefusedAddress(f"{url!r} is no URL: {exc}") from exc
        rules = replace(self, named=(*self.named, f"{host}:{port}"))
        rules.check_url(url)
        return rules

    def check_url(self, url: str) -> SplitResult:
        """Return the parts of a URL, without its fragment, that may be asked for as far as its text can say.

        Raises:
            RefusedAddress: another scheme than http and https, a user name or password in it, no host, a host that
                is a number in an odd notation, or one that may not be reached.
        """
        shortened = url if len(url) <= 200 else url[:199] + "…"
        if len(url) > _MAX_URL or any(ord(char) <= 32 or ord(char) == 127 for char in url) or "\\" in url:
            raise RefusedAddress(
                f"{shortened!r} is no URL: it is too long, or has spaces or backslashes in it"
            )
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as exc:
            raise RefusedAddress(f"{shortened!r} is no URL: {exc}") from exc
        if parts.scheme not in _PORTS:
            raise RefusedAddress(f"{shortened!r} is refused: only http and https are fetched")
        if parts.username is not None or parts.password is not None:
            raise RefusedAddress("a URL with a user name or password in it is refused: leave them out")
        # As resolvers read it: full-width digits are digits.
        host = unicodedata.normalize("NFKC", parts.hostname or "").rstrip(".")
        if not host:
            raise RefusedAddress(f"{shortened!r} names no host")
        numeric = _numeric(host)
        if numeric is not None:
            self.check_address(numeric, host, port or _PORTS[parts.scheme])
        elif _looks_numeric(host):
            raise RefusedAddress(f"{shortened!r} writes an address in an odd way: write it as 192.0.2.1")
        return parts._replace(fragment="")

    def check_address(self, address: str | Address, host: str, port: int) -> None:
        """Allow a connection to an address that a host resolved to, or refuse it.

        Raises:
            RefusedAddress: it may not be reached; the message says what kind of address it is and how to allow it.
        """
        ip = _unwrapped(ip_address(address) if isinstance(address, str) else address)
        if self._names_address(ip, port):
            return
        kind = _kind(ip, _ALWAYS)
        if kind is None:
            kind = _kind(ip, _PRIVATE)
            if kind is None or self.allow_private or self._names_host(host, port):
                return
            how = f"allow it with allow=[{host!r}] or {VARIABLE}={host}"
        else:
            how = f"if it is meant, name it with allow=[{str(ip)!r}] or {VARIABLE}={ip}"
        where = host if _numeric(host) is not None else f"{host} ({ip})"
        raise RefusedAddress(f"{where} is refused: {kind}; {how}")

    def _names_host(self, host: str, port: int) -> bool:
        host = host.rstrip(".").lower()
        names = {host, f"{host}:{port}", f"[{host}]:{port}"}
        return any(entry.rstrip(".").lower() in names for entry in (*self.allow, *self.named))

    def _names_address(self, ip: Address, port: int) -> bool:
        for entry in self.allow:
            text, given = entry, None
            match = re.fullmatch(r"\[([^\]]+)\](?::(\d+))?|([\d.]+):(\d+)", entry)
            if match:
                text, given = match[1] or match[3], match[2] or match[4]
            try:
                network = ip_network(text, strict=False)
            except ValueError:
                continue
            if ip.version == network.version and ip in network and given in (None, str(port)):
                return True
        return False


def port_of(parts: SplitResult) -> int:
    """Return the port that a URL leads to."""
    return parts.port or _PORTS[parts.scheme]


def origin_of(parts: SplitResult) -> str:
    """Return scheme, host and port: what `robots.txt` speaks for.

    Example:
        >>> origin_of(urlsplit("https://Example.org:443/a"))
        'https://example.org'
    """
    host = parts.hostname or ""
    host = f"[{host}]" if ":" in host else host
    port = "" if port_of(parts) == _PORTS[parts.scheme] else f":{parts.port}"
    return f"{parts.scheme}://{host}{port}"


def _numeric(host: str) -> Address | None:
    try:
        return ip_address(host.partition("%")[0])
    except ValueError:
        return None


def _looks_numeric(host: str) -> bool:
    """Whether the system would take a host for a number: `127.1`, `0x7f000001`, `017700000001`."""
    try:
        socket.inet_aton(host)
    except (OSError, UnicodeError):
        return bool(re.fullmatch(r"[\d.]+|0[xX][\da-fA-F.xX]*", host.rpartition(".")[2] or host))
    return True


def _unwrapped(ip: Address) -> Address:
    """Return the IPv4 address that an IPv6 address stands for, where it does."""
    if isinstance(ip, IPv6Address):
        if ip.ipv4_mapped is not None:
            return ip.ipv4_mapped
        if ip in _6TO4 and ip.sixtofour is not None:
            return ip.sixtofour
        if ip in _NAT64:
            return IPv4Address(int(ip) & 0xFFFFFFFF)
        if ip.scope_id is not None:
            return IPv6Address(int(ip))
    return ip


def _kind(ip: Address, kinds: Mapping[str, tuple[IPv4Network | IPv6Network, ...]]) -> str | None:
    """Return what an address is; loopback in `::/96` is found before what is reserved there."""
    if ip == IPv6Address("::1"):
        return "a loopback address" if kinds is _PRIVATE else None
    for kind, networks in kinds.items():
        if any(network.version == ip.version and ip in network for network in networks):
            return kind
    if kinds is _ALWAYS or not (
        ip.is_reserved or not ip.is_global or (ip.version == 6 and ip not in _GLOBAL)
    ):
        return None
    return "not a public address"
