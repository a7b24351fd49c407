"""What several machines share of a tree's runs: journals, tool calls and blackboards in one PostgreSQL database."""

from __future__ import annotations

from contextlib import ExitStack
from functools import cached_property
from typing import Final, Protocol, Self

from metatree.durable import Journal
from metatree.durable.sql_journal import LEASE_S, SqlJournal
from metatree.storage.database import Database
from metatree.storage.postgres_address import RUNS, PostgresAddress, address_of
from metatree.tools.call_log import CallLog

PATIENCE_S: Final = 30.0
"""For how long a run waits for a database that is away, such as one that is started again."""


class Sharing(Protocol):
    """What a tree needs of it."""

    @property
    def journal(self) -> Journal:
        """Where its runs are kept."""
        ...

    @property
    def calls(self) -> CallLog:
        """Where its tool calls are recorded."""
        ...

    @property
    def boards(self) -> Database:
        """The database of its blackboards."""
        ...


class Shared:
    """Journals, records of tool calls and blackboards that all machines with this database see; a context manager.

    A tree with it (`tree.shared = Shared(address)`) keeps its runs there instead of in its own memory: a run that died
    with its machine can be resumed on another, and a tool call that was made on any of them is not made again. Trees of
    another memory take another database, or another `space` of this one.

    Args:
        address: `postgresql://…`.
        lease_s: how long a run stays held after its holder was last heard of.
        owner: a name for this process; None for host, pid and when it started.
        space: the schema of the database that all of it is in, where the address does not say it.

    Raises:
        MissingExtra: psycopg is not installed.
        UserError: the database cannot be reached.
    """

    def __init__(
        self,
        address: str | PostgresAddress,
        *,
        lease_s: float = LEASE_S,
        owner: str | None = None,
        space: str = RUNS,
    ) -> None:
        from metatree.storage.postgres_store import PostgresStore

        self._address = address_of(address, schema=space)
        with ExitStack() as self._stack:  # closed at once when a later one cannot be opened
            # A connection for each: who renews a lease must not wait for who waits for a board.
            database = self._stack.enter_context(
                PostgresStore(self._address, patience_s=PATIENCE_S, lock_s=lease_s)
            )
            self.journal = SqlJournal(database, owner=owner, lease_s=lease_s)
            database = self._stack.enter_context(PostgresStore(self._address, patience_s=PATIENCE_S))
            self.calls = CallLog(database, owner=owner)
            self._stack = self._stack.pop_all()

    @cached_property
    def boards(self) -> Database:
        """The database of the blackboards."""
        from metatree.storage.postgres_store import PostgresStore

        return self._stack.enter_context(PostgresStore(self._address, patience_s=PATIENCE_S))

    def close(self) -> None:
        """Close the connections."""
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
