"""Opening the database of a source for reading: a SQLite file, or PostgreSQL by its address.

Databases are asked again for each content and query, by a connection of its own: no state, no lock, no server that
waits for us. Lost: a pool.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from metatree.errors import UserError
from metatree.trees.source_types import SourceRef
from metatree.trees.sources import public_location
from metatree_memory_tools.databases._dsn import address_of, is_address
from metatree_memory_tools.databases._sqlite_apart import SQLiteApart

if TYPE_CHECKING:
    from metatree_memory_tools.databases._postgres import Postgres


def open_database(source: SourceRef) -> SQLiteApart | Postgres:
    """Open the database of a source for reading.

    Raises:
        MetatreeError: it cannot be read.
    """
    if is_address(source.location):
        return open_postgres(source)
    if not Path(source.location).is_absolute():  # as each that was built is; an address may be a path here
        raise UserError(
            f"{public_location(source.location)!r} is neither the address nor the path of a database"
        )
    return SQLiteApart.open_file(Path(source.location), secrets=shows_secrets(source.options))


def open_postgres(source: SourceRef) -> Postgres:
    """Connect to the PostgreSQL database of a source; raises as `open_database`."""
    from metatree_memory_tools.databases._postgres import Postgres

    return Postgres.open(address_of(source.location), secrets=shows_secrets(source.options))


def shows_secrets(options: Any) -> bool:
    """Whether a source's options say that the values of secret columns may be shown."""
    return bool(options.get("secrets") or options.get("include_secrets"))
