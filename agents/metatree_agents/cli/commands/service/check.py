"""`metatree service check`: a backup, or whether all is there that a server needs, before it is started."""

from __future__ import annotations

import os
import sqlite3
import ssl
import time
from collections.abc import Callable
from contextlib import closing
from email.utils import parsedate_to_datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from metatree.errors import UserError
from metatree.storage.acceptance import survey
from metatree.storage.postgres_address import is_postgres
from metatree.storage.store_files import check_files
from metatree_agents.cli import _options as options
from metatree_agents.cli import _output as output
from metatree_agents.cli._errors import FAILED, FOUND
from metatree_agents.cli._output import word
from metatree_agents.cli.commands._checks import Bad, Check, checked, disk, line, nearest_folder
from metatree_agents.cli.commands.service._database import ServiceOptions
from metatree_agents.cli.commands.service.backup import print_backup

_SKEW_S = 30.0
"""Proofs are good for five minutes; clocks that differ by more than this will differ by that one day."""
_ELSEWHERE = "203.0.113.7"
"""An address of nobody (RFC 5737), as somebody would write it who wants to be taken for another."""


_DEFAULT_PORTS = {"http": ":80", "https": ":443"}


def check(
    file: Annotated[Path | None, options.argument("FILE", "A backup to read.", parser=options.path)] = None,
    server: Annotated[
        str | None,
        options.option(
            "--server",
            "URL",
            "Where people reach a server that is at work, such as https://memory.example.org: is its proxy right?",
        ),
    ] = None,
    *,
    service: ServiceOptions,
    json: options.Json = False,
) -> int:
    """Check what a server needs before it is started: packages, database, rights, disk, clocks; or read a backup.

    Nothing is made and nothing is changed. With FILE the whole backup is read, and its checksums are compared.

    \b
    Example: metatree service check --source ~/src/requests --server https://memory.example.org
    Example: metatree service check monday.backup
    """
    if file is not None:
        from metatree_agents.service.database.backup import verified

        print_backup(verified(file), "checked", json)
        return FOUND
    if server is not None and not server.startswith(("http://", "https://")):
        raise UserError(f"{server!r} is no address of a service: give one such as http://127.0.0.1:8080")
    looks: list[tuple[str, Callable[[], str]]] = [("packages", lambda: _packages(service))]
    if service.database is not None and is_postgres(service.database):
        address = service.database
        looks += [("rights", lambda: _rights(address)), ("database", lambda: _postgres(service))]
    else:
        made = service.database is None  # a folder that the first start makes
        looks += [
            ("disk", lambda: disk(service.file())),
            ("database", lambda: _sqlite(service.file(), made=made)),
        ]
    if server is not None:
        looks.append(("proxy", lambda: _proxy(server)))
    checks: list[Check] = []
    for name, look in looks:
        found = checked(name, look)
        # A database that cannot be reached says so once.
        if not any(not each.ok and each.detail == found.detail for each in checks):
            checks.append(found)
    ok = all(each.ok for each in checks)
    if json:
        from metatree_agents.cli.schemas.search import DoctorOutput

        output.write_object(DoctorOutput.model_validate({"ok": ok, "checks": checks}).as_json())
    else:
        output.write(line(each) for each in checks)
    return FOUND if ok else FAILED


def _packages(service: ServiceOptions) -> str:
    wanted = ["fastapi", "jinja2", "uvicorn", "prometheus_client"]
    if service.database is not None and is_postgres(service.database):
        wanted.append("psycopg")
    if missing := [name for name in wanted if find_spec(name) is None]:
        extras = "service,postgres" if "psycopg" in wanted else "service"
        raise Bad(f"not installed: {', '.join(missing)}; run `pip install 'metatree-memory[{extras}]'`")
    return "all of metatree-memory[service] is there"


def _sqlite(file: Path, *, made: bool) -> str:
    """Look at the file, or at where it will be, without making anything.

    Args:
        made: whether a start makes its folder.
    """
    from metatree_agents.service.database.schema import SERVICE

    folder = nearest_folder(file.absolute().parent) if made else file.parent
    if not folder.is_dir():
        raise Bad(f"there is no folder {str(folder)!r}: make it, or name another file with --database")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise Bad(f"{str(folder)!r} cannot be written to by this user: let it, or choose another --database")
    try:
        check_files(file)
    except UserError as exc:
        raise Bad(str(exc)) from None
    if not file.exists():
        return f"none at {str(file)!r} yet: the first start makes it, with an administrator"
    if not os.access(file, os.R_OK | os.W_OK):
        raise Bad(f"{str(file)!r} cannot be read and written by this user: it belongs to another")
    _made_here(file)
    try:
        with closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            (version,) = connection.execute("SELECT version FROM service_schema").fetchone()
            (sound,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            roles = [role for (role,) in connection.execute("SELECT role FROM service_user")]
    except (sqlite3.Error, TypeError) as exc:
        raise Bad(
            f"{str(file)!r} is no database of a service, or damaged ({exc}): restore a backup"
        ) from None
    SERVICE.check(version, str(file))
    if sound != "ok":
        raise Bad(f"{str(file)!r} is damaged ({sound}): restore a backup")
    age = (
        "" if version == SERVICE.version else f", of version {version}: the start makes it {SERVICE.version}"
    )
    return f"{_people(roles)}{age}"


def _made_here(file: Path) -> None:
    """Look whose it is before anything is asked of it that could run what a stranger defined."""
    found = survey(file)
    if found.problem:
        raise Bad(
            f"{str(file)!r} is no database of a service, or damaged ({found.problem}): restore a backup"
        )
    if not found.trusted:
        raise Bad(
            f"{str(file)!r} was not made by you on this machine, so a start refuses it:"
            f" `metatree trust {word(str(file.parent))}` shows what is in it, and accepts it"
        )


def _people(roles: list[str]) -> str:
    if roles and "admin" not in roles:
        raise Bad("nobody is an administrator: `metatree service users add admin --role admin` makes one")
    return (
        f"{output.counted(len(roles), 'user')}"
        if roles
        else "no users: the first start makes an administrator"
    )


def _rights(database: str) -> str:
    from metatree_agents.service.replication.sharing import require_service_rights

    require_service_rights(database)
    return "this user may make and use the tables"


def _postgres(service: ServiceOptions) -> str:
    """Look at the tables, and at the clock: nonces and leases go by that of the database."""
    from metatree.storage.postgres import psycopg, refusal
    from metatree.storage.postgres_address import address_of
    from metatree_agents.service.database.schema import SCHEMA, SERVICE

    address = address_of(service.database or "", schema=SCHEMA)
    try:
        with psycopg.connect(**address.arguments, autocommit=True) as connection:
            began = time.time()
            number, now = connection.execute(
                "SELECT current_setting('server_version_num')::int, extract(epoch from clock_timestamp())::float"
            ).fetchone() or (0, 0.0)
            ahead_s = now - (began + time.time()) / 2
            table = psycopg.sql.SQL("{}.{}").format(
                *map(psycopg.sql.Identifier, (address.schema, SERVICE.table))
            )
            users = psycopg.sql.SQL("{}.{}").format(
                *map(psycopg.sql.Identifier, (address.schema, "service_user"))
            )
            there = connection.execute("SELECT to_regclass(%s)", (table.as_string(connection),)).fetchone()
            if there is None or there[0] is None:
                version, roles = None, list[str]()
            else:
                row = connection.execute(psycopg.sql.SQL("SELECT version FROM {}").format(table)).fetchone()
                version = None if row is None else row[0]
                roles = [
                    role
                    for (role,) in connection.execute(psycopg.sql.SQL("SELECT role FROM {}").format(users))
                ]
    except psycopg.Error as exc:
        raise refusal(address, exc) from None  # the driver's error may hold the password
    if number < 140_000:
        raise Bad(f"PostgreSQL {number // 10_000} is too old: 14 or later")
    if abs(ahead_s) > _SKEW_S:
        raise Bad(f"its clock is {ahead_s:+,.0f} s from that of this machine: set both by NTP")
    if version is None:
        return (
            f"PostgreSQL {number // 10_000}, clocks {ahead_s:+.1f} s apart; the first start makes the tables"
        )
    SERVICE.check(version, address.shown)
    age = (
        ""
        if version == SERVICE.version
        else f", tables of version {version}: the start makes it {SERVICE.version}"
    )
    return f"PostgreSQL {number // 10_000}, clocks {ahead_s:+.1f} s apart, {_people(roles)}{age}"


def _proxy(server: str) -> str:
    """Ask a server through its proxy how a request looks to it."""
    import httpx2

    address = f"{server.rstrip('/')}/healthz?seen=1"
    try:
        answer = httpx2.get(address, headers={"X-Forwarded-For": _ELSEWHERE}, timeout=10.0)
        seen, client = answer.json()["seen"], httpx2.get(address, timeout=10.0).json()["seen"]["client"]
    except (httpx2.HTTPError, ValueError, KeyError, TypeError) as exc:
        raise Bad(
            _distrusted(server, exc)
            or f"{server} does not answer as a service of this version: {type(exc).__name__}"
        ) from None
    given, troubles = urlsplit(server), list[str]()
    host = given.netloc.lower().removesuffix(_DEFAULT_PORTS[given.scheme])  # a client leaves it out of Host
    if seen["host"].lower() != host:
        part = "without its port, " if seen["host"].lower() == host.rpartition(":")[0] else ""
        troubles.append(
            f"Host comes {part}as {seen['host']!r}: pass {host!r} on (nginx: `proxy_set_header Host $http_host;`)"
        )
    if seen["scheme"] != given.scheme:
        troubles.append(
            f"the request looks like {seen['scheme']}: set X-Forwarded-Proto in the proxy, and name it with --proxy"
        )
    if seen["client"] == _ELSEWHERE and given.hostname not in ("127.0.0.1", "localhost", "::1"):
        troubles.append(
            "callers can say who they are: set X-Forwarded-For in the proxy, and do not add to it"
        )
    if date := answer.headers.get("date"):
        ahead_s = parsedate_to_datetime(date).timestamp() - time.time()
        if abs(ahead_s) > _SKEW_S:
            troubles.append(f"its clock is {ahead_s:+,.0f} s from that of this machine: set both by NTP")
    if troubles:
        raise Bad("; ".join(troubles))
    # A server believes a program of its own machine that it is a proxy.
    direct = (
        ": no proxy between, or one that passes X-Forwarded-For on" if seen["client"] == _ELSEWHERE else ""
    )
    return f"requests come as they are, from {client}{direct}"


def _distrusted(server: str, exc: BaseException | None) -> str:
    """Return what is wrong with the certificate of a server, where that is why it could not be asked."""
    while exc is not None and not isinstance(exc, ssl.SSLCertVerificationError):
        exc = exc.__cause__ or exc.__context__
    if exc is None:
        return ""
    return (
        f"the certificate of {server} is not trusted here ({exc.verify_message}): where it is the right one, name the"
        " file of its authority, or of itself, in the environment variable SSL_CERT_FILE"
    )
