"""Addresses of PostgreSQL databases for the service: read by libpq's own rules, shown without secrets."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from metatree.errors import MissingExtra, TransientError, UserError

SCHEMES: Final = ("postgresql", "postgres")
SCHEMA: Final = "metatree_service"
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
    """Where the tables of the service are."""

    shown: str
    """The address without what is secret in it."""
    schema: str
    """The schema that all tables are in, and nothing else is."""
    arguments: dict[str, Any] = field(repr=False)
    """What libpq is told; with secrets."""

    def cleaned(self, said: object) -> str:
        """Return a message of the driver on one line, without secrets in case that one is in it."""
        text = " ".join(str(said).split())
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
    if not all(port == "" or port.isdigit() for port in ports):
        return f"{SCHEMES[0]}://…"
    kept = urlencode([(key, value) for key, value in query if key not in _SECRET], safe="/,")
    return f"{parts.scheme}://{name}{at}{hosts}{parts.path}{'?' + kept if kept else ''}"


def address_of(address: str) -> PostgresAddress:
    """Return where an address leads.

    Everything that libpq knows may be in it (`sslmode`, `service`, `target_session_attrs`, several hosts), and besides
    `schema`: where the tables are, `metatree_service` by default. What is not in it, libpq takes from its variables
    (`PGPASSWORD`, `PGHOST`…), `~/.pgpass` and the service file.

    Raises:
        MissingExtra: psycopg is not installed.
        UserError: it is out of form; the message shows nothing that may be a secret.
    """
    try:
        from psycopg import ProgrammingError
        from psycopg.conninfo import conninfo_to_dict
    except ImportError as exc:
        raise MissingExtra("postgres", what="a service on PostgreSQL") from exc
    shown, (head, _, query) = without_secrets(address), address.partition("?")
    schema, rest = SCHEMA, []
    for pair in filter(None, query.split("&")):
        key, _, value = pair.partition("=")
        if key == "schema":
            schema = unquote(value)
        else:
            rest.append(pair)
    if not _NAME.fullmatch(schema):
        raise UserError(f"{schema[:60]!r} is no schema: use 1 to 40 letters, digits and `_`")
    try:
        found = conninfo_to_dict(head + ("?" + "&".join(rest) if rest else ""))
    except ProgrammingError:
        found = None
    if found is None or shown.endswith("://…"):
        raise UserError(
            "this is no address of a PostgreSQL database: use postgresql://USER@HOST:PORT/DATABASE, with the password"
            " in PGPASSWORD, or in the address with `%40` for `@`, `%2F` for `/`, `%3F` for `?`, `%23` for `#`"
        )
    arguments = {**_ALIVE, "application_name": "metatree", **found}
    return PostgresAddress(shown, schema, arguments)


def refusal(address: PostgresAddress, exc: Exception) -> UserError | TransientError:
    """Return what to tell a person of a database that could not be used at the start."""
    said = address.cleaned(exc)
    where = f"the database at {address.shown} cannot be used"
    hints = (
        (("password", "authentication", "no pg_hba"), "give the password in PGPASSWORD or ~/.pgpass"),
        (("permission denied for database",), _right(address)),
        (
            ("permission denied",),
            f"the user needs all rights on the schema {address.schema} and what is in it",
        ),
        (("does not exist",), "make it, or name another one"),
        (("read-only",), "name the server that can be written"),
    )
    for words, hint in hints:
        if any(word in said for word in words):
            return UserError(f"{where}: {said}; {hint}")
    return UserError(f"{where}: {said}; check the address, and that the server runs")


def _right(address: PostgresAddress) -> str:
    return (
        "the user may not make a schema: let the database's administrator run there:"
        f' CREATE SCHEMA "{address.schema}" AUTHORIZATION "{address.arguments.get("user", "USER")}";'
    )
