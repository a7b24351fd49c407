"""The databases that the service is measured on: files, and PostgreSQL's."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from metatree_agents.service.database.database import ServiceDatabase, SqliteDatabase
from metatree_agents.service.database.postgres import PostgresDatabase

from tests.real.postgres import PLACES, serving


def opened(where: str) -> ServiceDatabase:
    """Return the database of a file, or of an address of PostgreSQL."""
    return PostgresDatabase(where) if "://" in where else SqliteDatabase.open(where)


def there_is_postgres() -> bool:
    """Return whether Debian's PostgreSQL is installed here."""
    return any(Path("/").glob(PLACES))


@contextmanager
def postgres() -> Iterator[str]:
    """Start a PostgreSQL server with its own settings, which keep what was committed, and give its address."""
    with serving("fsync=on", "max_connections=200") as server:
        yield server.address()


def schema_of(address: str) -> str:
    """Return the address of an empty schema of a database."""
    return f"{address}{'&' if '?' in address else '?'}schema=bench_{secrets.token_hex(6)}"
