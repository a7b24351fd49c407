"""Addresses of PostgreSQL databases, without their passwords: these are kept in mind for this process alone."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlencode, urlsplit

from metatree.errors import UserError

SCHEMES = ("postgresql", "postgres")
_ROOT = "sslrootcert"
_SECRET_PARAMETERS = frozenset({"password", "passfile", "sslpassword", "sslkey"})
# What a location may set; `service`, `options` and the like could name files or undo the limits.
_PARAMETERS = frozenset(
    {
        "host",
        "port",
        "dbname",
        "user",
        "sslmode",
        _ROOT,
        "application_name",
        "connect_timeout",
        "hostaddr",
    }
)

_passwords: dict[str, str] = {}
"""Passwords that came with locations, by the location without it; never written anywhere."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a database is; holds no password."""

    shown: str
    """The location without a password."""
    database: str

    def cleaned(self, text: str) -> str:
        """Return a message of the driver without the password, in case that it is in it."""
        password = password_of(self.shown)
        for known in {password, quote(password or "", safe="")} if password else ():
            text = text.replace(known, "***")
        return text


def is_address(location: str) -> bool:
    """Whether a location is the address of a PostgreSQL database; anything else is the path of a file."""
    return urlsplit(location).scheme in SCHEMES


def without_password(location: str) -> str:
    """Return a location without its password, which this process keeps in mind.

    Example:
        >>> without_password("postgresql://ann:s%40crt@db.example.org/shop?sslmode=require")
        'postgresql://ann@db.example.org/shop?sslmode=require'
        >>> password_of("postgresql://ann@db.example.org/shop?sslmode=require")
        's@crt'
    """
    parts = urlsplit(location)
    if parts.scheme not in SCHEMES:
        return location
    user, at, host = parts.netloc.rpartition("@")
    name, _, password = user.partition(":")
    secret = unquote(password)
    parameters = []
    for key, value in parse_qsl(parts.query, keep_blank_values=True):
        if key == "password":
            secret = value
        elif key not in _SECRET_PARAMETERS:
            parameters.append((key, value))
    public = _joined(parts._replace(netloc=f"{name}{at}{host}"), parameters)
    if secret:
        _passwords[public] = secret
    return public


def _joined(parts: SplitResult, parameters: Sequence[tuple[str, str]]) -> str:
    """Return an address; not `urlunsplit`, which leaves `//` away where there is no host, as in `postgresql:///shop`."""
    query = urlencode(parameters)
    return f"{parts.scheme}://{parts.netloc}{parts.path}{'?' * bool(query)}{query}"


def with_whole_paths(location: str) -> str:
    """Return a location with the whole path of the file that it names, which would else be one of the current folder.

    Example:
        >>> with_whole_paths("postgresql://ann@db/shop?sslmode=verify-full&sslrootcert=/etc/ca.pem")
        'postgresql://ann@db/shop?sslmode=verify-full&sslrootcert=%2Fetc%2Fca.pem'
    """
    parts = urlsplit(location)
    if parts.scheme not in SCHEMES or _ROOT not in parts.query:
        return location
    parameters = [
        (key, os.path.abspath(value) if key == _ROOT and value not in ("", "system") else value)  # noqa: PTH100
        for key, value in parse_qsl(parts.query, keep_blank_values=True)
    ]
    whole = _joined(parts, parameters)
    if location in _passwords:
        _passwords[whole] = _passwords[location]
    return whole


def password_of(location: str) -> str | None:
    """Return the password that came with a location in this process, None when there was none."""
    return _passwords.get(location)


def address_of(location: str) -> Address:
    """Return where a location leads.

    Raises:
        UserError: it is out of form, or sets what it may not.
    """
    public = without_password(location)
    try:
        parts = urlsplit(public)
        _ = parts.port
    except ValueError as exc:
        raise UserError(f"{public!r} is no address of a database: {exc}") from exc
    for key, value in parse_qsl(parts.query, keep_blank_values=True):
        if key not in _PARAMETERS:
            raise UserError(f"{key!r} cannot be set in the address {public!r}")
        if key == _ROOT and value not in ("", "system") and not os.path.isabs(value):  # noqa: PTH117
            raise UserError(
                f"{key}={value} in the address {public!r} would be a file of whatever folder is current: give its whole"
                " path, or build the tree again"
            )
    named = dict(parse_qsl(parts.query)).get("dbname", "")
    name = named or unquote(parts.path.strip("/")) or unquote(parts.username or "") or "postgres"
    return Address(public, name)


def connection_arguments(address: Address, environment: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return the arguments of the driver: the location, and the password if one is known."""
    environment = os.environ if environment is None else environment
    arguments: dict[str, Any] = {"conninfo": address.shown}
    password = password_of(address.shown) or environment.get("METATREE_DATABASE_PASSWORD")
    if password:
        arguments["password"] = password
    return arguments
