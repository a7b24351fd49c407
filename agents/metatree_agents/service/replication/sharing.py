"""What one server shares with other machines, as the command line asks for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from metatree import Tree
from metatree._util.cache_folder import cache_folder
from metatree.durable.sql_journal import LEASE_S
from metatree.shared import Shared
from metatree.storage.postgres_address import PostgresAddress, address_of
from metatree_agents.service.database.postgres_rights import require_rights
from metatree_agents.service.database.schema import SCHEMA
from metatree_agents.service.engine.client import ServiceClient
from metatree_agents.service.replication.publisher import Published
from metatree_agents.service.replication.trees import Trees


@dataclass(frozen=True, slots=True)
class Publication:
    """What is shared, and how.

    Args:
        tree: what is published; None searches a copy of what another server publishes.
        engine: whether an engine runs inside.
        shared: keeps runs and tool calls for all machines.
        copies: where copies are kept.
        refresh_s: how often the tree is brought up to date with its sources; 0 for never.
    """

    tree: Tree | None
    engine: bool = True
    shared: Shared | None = None
    copies: Path | None = None
    refresh_s: float = 0.0

    def begin(self, client: ServiceClient, trees: Trees, say: Callable[[str], None]) -> Published:
        """Return the memory of this server; its `run` publishes.

        Raises:
            UserError: the tree cannot be published.
        """
        return Published(
            client,
            trees,
            self.tree,
            copies=self.copies or copies_folder(),
            shared=self.shared,
            refresh_s=self.refresh_s,
            say=say,
        )


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


def copies_folder() -> Path:
    """Return where copies of trees are kept unless something else is said."""
    return cache_folder() / "copies"
