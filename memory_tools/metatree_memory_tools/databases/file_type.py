"""The memory type for SQLite files among other files: the same nodes as those of a database by itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from metatree.errors import MetatreeError, UserError
from metatree.node import Source
from metatree.trees.source_types import Outline, OutlinePart, SourceFile
from metatree_memory_tools.databases._model import Column, Table, key_of
from metatree_memory_tools.databases._nodes import ROWS
from metatree_memory_tools.databases._show import column_text, count_text, rows_text, table_text
from metatree_memory_tools.databases._sqlite import MAGIC
from metatree_memory_tools.databases._sqlite_apart import SQLiteApart

if TYPE_CHECKING:
    from metatree.tools.tool import Tool, ToolGroup

_Opened = tuple[list[tuple[Table, Column | None]], SQLiteApart]
"""The columns of each table and, as None, its rows; and the database."""


class SQLiteFile:
    """A SQLite file in a folder: its tables with their columns and sample rows.

    A part is found again by its number among the leaves, which stands where others have lines.
    """

    name = "sqlite"
    source_type = "sqlite"
    version = "3"
    binary = True
    max_file_bytes = 50_000_000
    answers_outside_tree = True

    def __init__(self) -> None:
        self._latest: tuple[bytes, bytes, _Opened | UserError] | None = None
        """The file that was asked for last, its digest, and what is in it."""

    @cached_property
    def tools(self) -> Sequence[Tool | ToolGroup]:
        """The tools that work on nodes of databases."""
        from metatree_memory_tools.databases._tools import DATABASE_TOOLS

        return (DATABASE_TOOLS,)

    def recognises(self, path: str, head: bytes) -> bool:
        """Whether it is a SQLite file, by its first bytes."""
        return head.startswith(MAGIC)

    def outline(self, file: SourceFile) -> Outline:
        """Return the tables of a database; one that is damaged is a file that says so."""
        try:
            with closing(SQLiteApart.open_bytes(file.data, file.name)) as database:
                tables = list(database.tables())
        except (MetatreeError, ValueError) as exc:
            return Outline(description=f"A SQLite database that cannot be read: {exc}", problem=str(exc))
        names = ", ".join(table.name for table in tables[:15])
        text = f"SQLite database with {len(tables)} tables and views: {names}"
        return Outline(
            description=text, parts=tuple(_parts(tables)), attributes={"tables": len(tables)}, summary=text
        )

    def content(self, file: SourceFile, source: Source) -> str:
        """Return what a column is, or the sample rows of a table."""
        leaves, database = self._opened(file)
        if source.start_line is not None and 0 < source.start_line <= len(leaves):
            table, column = leaves[source.start_line - 1]
            if column is not None:
                return f"{table.name}.{column.name}: {column_text(table, column)}"
            if table.problem:
                return table_text(table)
            return rows_text(database.sample("", table.name))
        raise UserError(f"{file.name!r} has no such table any more: refresh the tree")

    def _opened(self, file: SourceFile) -> _Opened:
        """Return what is in a file, read once for all of its nodes: views may take half a minute each time."""
        data, latest = file.data, self._latest
        if latest is None or latest[0] is not data:
            digest = blake2b(data, digest_size=16).digest()
            opened = latest[2] if latest is not None and latest[1] == digest else _open(file)
            latest = self._latest = data, digest, opened
        if isinstance(latest[2], UserError):
            raise UserError(str(latest[2]))
        return latest[2]


def _open(file: SourceFile) -> _Opened | UserError:
    try:
        database = SQLiteApart.open_bytes(file.data, file.name)
        return list(_leaves(list(database.tables()))), database
    except UserError as exc:
        return exc


def _leaves(tables: Sequence[Table]) -> Iterator[tuple[Table, Column | None]]:
    """Yield the columns of each table and, as None, its rows, in the order of the tree."""
    for table in tables:
        for column in table.columns:
            yield table, column
        yield table, None


def _column_texts(table: Table) -> dict[str, str]:
    return {column.name: column_text(table, column) for column in table.columns}


def _parts(tables: Sequence[Table]) -> Iterator[OutlinePart]:
    numbers = {
        (table.name, None if column is None else column.name): number
        for number, (table, column) in enumerate(_leaves(tables), start=1)
    }
    for table in tables:
        top = f"#{key_of(table.name)}"
        leaves = []
        for column, text in _column_texts(table).items():
            number = numbers[table.name, column]
            digest = blake2b(text.encode(), digest_size=16).hexdigest()
            leaves.append(
                OutlinePart(
                    id=f"{top}/{key_of(column)}",
                    title=column,
                    description=text,
                    kind="column",
                    start_line=number,
                    end_line=number,
                    digest=digest,
                )
            )
        number = numbers[table.name, None]
        count = count_text(table)
        if not table.problem:
            leaves.append(
                OutlinePart(
                    id=f"{top}/{ROWS}#",
                    title=f"{table.name}: sample rows",
                    description=f"The first rows of {table.name}" + (f", of {count}" if count else ""),
                    kind=ROWS,
                    start_line=number,
                    end_line=number,
                    digest=table.sample_digest,
                )
            )
        attributes: dict[str, Any] = {}
        if table.rows is not None:
            attributes = {"rows": table.rows, "rows_exact": table.exact}
        if table.problem:
            attributes["note"] = f"its rows cannot be read: {table.problem}"
        yield OutlinePart(
            id=top,
            title=table.name,
            description=table_text(table),
            kind=table.kind,
            start_line=leaves[0].start_line if leaves else number,
            end_line=number,
            parts=tuple(leaves),
            attributes=attributes,
        )
