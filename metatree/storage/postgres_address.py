"""Addresses of PostgreSQL databases: read by libpq's own rules, shown without secrets."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from metatree.errors import MissingExtra, UserError

BOARDS: Final = "metatree_boards"
RUNS: Final = "metatree_runs"
"""The schemas that boards and runs lie in: other programs may have tables of their names."""
SCHEMES: Final = ("postgresql", "postgres")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,39}")
_SECRET: Final = frozenset({"password", "sslpassword", "sslkey", "passfile", "oauth_client_secret"})
_ALIVE: Final = {
    "connect_timeout": "5",
    # A machine that vanishes without a word is noticed within half a minute.
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "25000",
}


@dataclass(frozen=True, slots=True)
class PostgresAddress:
    """Where tables are."""

    shown: str
    """The address without what is secret in it."""
    schema: str
    """The schema that all tables are in, and nothing else is."""
    arguments: dict[str, Any] = field(repr=False)
    """The arguments for libpq; with secrets."""

    @property
    def conninfo(self) -> str:
        """The address as libpq reads it, without the schema; with secrets."""
        from psycopg.conninfo import make_conninfo

        return make_conninfo("", **self.arguments)

    def cleaned(self, message: object) -> str:
        """Return a message of the driver on one line, without secrets in case that one is in it."""
        text = " ".join(str(message).split())
        for name in _SECRET & self.arguments.keys():
            for known in (str(self.arguments[name]), quote(str(self.arguments[name]), safe="")):
                text = text.replace(known, "***") if known else text
        return text


def without_secrets(address: str) -> str:
    """Return an address without its password and other secrets; all of it is left out when it is out of form.

    Example:
        >>> without_secrets("postgresql://ann:s3cret@db.example.org/shop?schema=x&password=p")
        'postgresql://ann@db.example.org/shop?schema=x'
    """
    try:
        parts = urlsplit(address)
        user, at, hosts = parts.netloc.rpartition("@")
        query = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    except ValueError:
        return f"{SCHEMES[0]}://…"
    name = user.partition(":")[0]
    ports = (host.rpartition("]")[2].partition(":")[2] for host in hosts.split(","))
    # A password with a sign that ends it too early is in what looks like the rest.
    if "@" in user + hosts + unquote(parts.path) + parts.query or parts.fragment:
        return f"{SCHEMES[0]}://…"
    if not all(port == "" or port.isdecimal() for port in ports):
        return f"{SCHEMES[0]}://…"
    safe = urlencode([(key, value) for key, value in query if key not in _SECRET], safe="/,")
    return f"{parts.scheme}://{name}{at}{hosts}{parts.path}{'?' + safe if safe else ''}"


def is_postgres(place: object) -> bool:
    """Say whether a place is the address of a PostgreSQL database.

    Example:
        >>> is_postgres("postgresql://ann@db.example.org/memory"), is_postgres("runs.db")
        (True, False)
    """
    return isinstance(place, str) and place.startswith(tuple(f"{scheme}://" for scheme in SCHEMES))


def address_of(
    address: str | PostgresAddress, *, schema: str, what: str = "a PostgreSQL database"
) -> PostgresAddress:
    """Return where an address leads.

    Everything that libpq knows may be in it (`sslmode`, `service`, `target_session_attrs`, several hosts), and besides
    `schema`: where the tables are. What is not in it, libpq takes from its variables (`PGPASSWORD`, `PGHOST`…),
    `~/.pgpass` and the service file.

    Args:
        address: `postgresql://…`; where one leads is returned as it is.
        schema: where the tables are when the address does not say it.
        what: what the database is for, in the error when psycopg is not installed.

    Raises:
        MissingExtra: psycopg is not installed.
        UserError: it is out of form; the message shows nothing that may be a secret.
    """
    if isinstance(address, PostgresAddress):
        return address
    try:
        from psycopg import ProgrammingError
        from psycopg.conninfo import conninfo_to_dict
    except ImportError as exc:
        raise MissingExtra("postgres", what=what) from exc
    shown, (head, _, query) = without_secrets(address), address.partition("?")
    rest = []
    for pair in filter(None, query.split("&")):
        key, _, value = pair.partition("=")
        if key == "schema":
            schema = unquote(value)
        else:
            rest.append(pair)
    if not _NAME.fullmatch(schema):
        raise UserError(f"{schema[:60]!r} is no schema: use 1 to 40 letters, digits and `_`")
    try:
        settings = conninfo_to_dict(head + ("?" + "&".join(rest) if rest else ""))
    except ProgrammingError:
        settings = None
    if settings is None or shown.endswith("://…"):
        raise UserError(
            "this is no address of a PostgreSQL database: use postgresql://USER@HOST:PORT/DATABASE, with the password"
            " in PGPASSWORD, or in the address with `%40` for `@`, `%2F` for `/`, `%3F` for `?`, `%23` for `#`"
        )
    arguments = {**_ALIVE, "application_name": "metatree", **settings}
    return PostgresAddress(shown, schema, arguments)
