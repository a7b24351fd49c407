"""What several machines share of a tree's runs: journals, tool calls and blackboards in one PostgreSQL database."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Final, Protocol, Self

from metatree.durable import Journal
from metatree.durable.postgres_journal import LEASE_S, PostgresJournal
from metatree.tools.call_log import Calls
from metatree.tools.postgres_call_log import PostgresCalls

if TYPE_CHECKING:
    from metatree.storage.store import Store

SPACE: Final = "metatree_runs"
PATIENCE_S: Final = 30.0
"""For how long a run waits for a database that is away, such as one that is started again."""


class Sharing(Protocol):
    """What a tree needs of it."""

    @property
    def journal(self) -> Journal:
        """Where its runs are kept."""
        ...

    @property
    def calls(self) -> Calls:
        """Where its tool calls are recorded."""
        ...

    @property
    def boards(self) -> Store:
        """The store of its blackboards."""
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
        space: the schema of the database that all of it is in.

    Raises:
        MissingExtra: psycopg is not installed.
        UserError: the database cannot be reached.
    """

    def __init__(
        self, address: str, *, lease_s: float = LEASE_S, owner: str | None = None, space: str = SPACE
    ) -> None:
        self._address = address
        self._space = space
        self.journal = PostgresJournal(
            address, owner=owner, lease_s=lease_s, patience_s=PATIENCE_S, space=space
        )
        try:
            self.calls = PostgresCalls(address, owner=owner, patience_s=PATIENCE_S, space=space)
        except BaseException:
            self.journal.close()
            raise

    @cached_property
    def boards(self) -> Store:
        """The store of the blackboards."""
        from metatree.storage.postgres_store import PostgresStore

        return PostgresStore(self._address, space=self._space, patience_s=PATIENCE_S)

    def close(self) -> None:
        """Close the connections."""
        self.journal.close()
        self.calls.close()
        if "boards" in self.__dict__:
            self.boards.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
