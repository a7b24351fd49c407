"""What the machines of a service keep together in its PostgreSQL database: runs, tool calls and boards."""

from __future__ import annotations

from dataclasses import replace

from metatree.durable.sql_journal import LEASE_S
from metatree.shared import Shared
from metatree.storage.postgres_address import PostgresAddress, address_of
from metatree_agents.service.database.postgres_rights import require_rights
from metatree_agents.service.database.schema import SCHEMA


def shared_at(database: str, *, lease_s: float = LEASE_S) -> Shared:
    """Return what the machines of a service share, in the database of the service, beside its own tables.

    Args:
        database: the address that `metatree serve` has as --database.
        lease_s: how long a run stays held after its machine was last heard of.

    Raises:
        MissingExtra: psycopg is not installed.
        UserError: it is no address of PostgreSQL, or the database cannot be reached.
    """
    address = address_of(database, schema=SCHEMA)
    require_rights(address, runs_schema(address))
    return Shared(replace(address, schema=runs_schema(address)), lease_s=lease_s)


def require_service_rights(database: str) -> None:
    """Ask whether the user may make all that a server keeps at an address; raises as `shared_at`."""
    address = address_of(database, schema=SCHEMA)
    require_rights(address, address.schema, runs_schema(address))


def runs_schema(address: PostgresAddress) -> str:
    """Return the schema of the runs that machines share, beside that of the service."""
    return f"{address.schema}_runs"
