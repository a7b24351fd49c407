"""What runs, tool calls and boards need of where they are kept: a SQLite file or a PostgreSQL database.

Statements are written once, for both: `?` for a value, `RETURNING`, `ON CONFLICT`. Where the two say a thing
differently, the database has the words for it (`now`, `for_update`, …), and a statement is put together with them.

Lost: SQLite's SQL, translated for PostgreSQL by regular expressions (a statement that they do not know fails on one
database alone), and each class written twice (the journals had come to differ in what they do with a damaged record).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

T = TypeVar("T")


class Database(ABC):
    """Runs statements, by themselves and in transactions; threads of one process take turns.

    Raises `TransientError` where the same may work later.
    """

    shared: ClassVar[bool]
    """Whether processes of several machines may use what is in it."""
    now: ClassVar[str]
    """SQL: the seconds since 1970, by one clock for all processes of this database."""
    for_update: ClassVar[str]
    """What ends a SELECT that takes its rows for this transaction, and waits for those that others took."""
    for_share: ClassVar[str]
    """The same for rows that others may read so, too, and nobody may change until this transaction ends."""
    in_table_order: ClassVar[str]
    """What follows the table in a SELECT that is to read it in its own order, without an index."""
    path: Path | None
    """The file, None when there is none."""
    images_folder: Path | None
    """Where images of its boards lie; None without a file. Of a `Store` it may raise."""
    read_only: bool
    """Whether writing is refused."""

    @property
    @abstractmethod
    def name(self) -> str:
        """What it is called in messages; without secrets."""

    @staticmethod
    @abstractmethod
    def json_each(array: str) -> str:
        """Return what a SELECT is FROM to have the texts of a JSON array, a column or `?`, as `value`."""

    @abstractmethod
    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run one statement and return all its rows."""

    def row(self, sql: str, parameters: Sequence[Any] = ()) -> tuple[Any, ...] | None:
        """Run one statement and return its first row, None when there is none."""
        rows = self.rows(sql, parameters)
        return rows[0] if rows else None

    def value(self, sql: str, parameters: Sequence[Any] = ()) -> Any:
        """Run one statement and return the first value of its first row, None when there is none."""
        row = self.row(sql, parameters)
        return None if row is None else row[0]

    @abstractmethod
    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> int:
        """Run one statement and return the number of changed rows."""

    @abstractmethod
    def execute_many(self, sql: str, parameters: Iterable[Sequence[Any]]) -> int:
        """Run one statement for each set of parameters and return the number of changed rows."""

    @abstractmethod
    def attempt(self, work: Callable[[bool], T]) -> T:
        """Run statements that may be run again from the start, when the connection was lost meanwhile.

        A statement of `work` outside of a transaction is one by itself, and keeps nobody out.

        Args:
            work: gets whether it was started before: then the database may have done all of it already.
        """

    @abstractmethod
    def transaction(self, *, alone: bool = True) -> AbstractContextManager[None]:
        """Keep all statements of the block, or none of them; a block inside a block belongs to the outer one.

        Args:
            alone: whether all other transactions that are alone wait, so what is read inside is still true when it is
                written. SQLite has one writer, who always is. One that is not takes the rows that it relies on
                (`for_update`).
        """

    @abstractmethod
    def durable(self) -> AbstractContextManager[None]:
        """Have what the block commits survive the end of the machine, too."""

    @abstractmethod
    def turn(self) -> AbstractContextManager[bool]:
        """Keep the other threads of this process out; yields whether a transaction of this thread is open."""

    @abstractmethod
    def version(self) -> int:
        """Return a number that changes when somebody else has written."""

    @property
    @abstractmethod
    def closed(self) -> bool:
        """Whether `close` was called."""

    @abstractmethod
    def close(self) -> None:
        """Close it; closing twice is allowed."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
