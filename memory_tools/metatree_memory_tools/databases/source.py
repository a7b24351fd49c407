"""The source type for databases: SQLite files, and PostgreSQL by its address."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from metatree._util.named_file import typed_path
from metatree.errors import UserError
from metatree.node import Node, Source
from metatree.trees.source_types import Progress, SourceRef
from metatree_memory_tools.databases._dsn import address_of, is_address, with_whole_paths, without_password
from metatree_memory_tools.databases._nodes import database_nodes, rows_content
from metatree_memory_tools.databases._open import open_database, open_postgres, shows_secrets
from metatree_memory_tools.databases._sqlite import MAGIC

if TYPE_CHECKING:
    from collections.abc import Sequence

    from metatree.tools.tool import Tool, ToolGroup


class DatabaseSource:
    """Reads a database as nodes: schemas, tables, columns, sample rows.

    Options of a source: `secrets`, true to show the values of columns whose names say that they may hold passwords,
    tokens or the like. A password in an address is never kept; later processes take it from `PGPASSWORD`,
    `~/.pgpass` or `METATREE_DATABASE_PASSWORD`.
    """

    name = "database"
    version = "2"
    file_or_address = True

    @cached_property
    def tools(self) -> Sequence[Tool | ToolGroup]:
        """The tools that work on nodes of databases."""
        from metatree_memory_tools.databases._tools import DATABASE_TOOLS

        return (DATABASE_TOOLS,)

    def recognises(self, location: str) -> bool:
        """Whether it is the address of a PostgreSQL database or a SQLite file."""
        if is_address(location):
            return True
        try:
            place = typed_path(location)
            if not place.is_file():  # to open a pipe is to wait for a writer
                return False
            with place.open("rb") as stream:
                return stream.read(len(MAGIC)) == MAGIC
        except (OSError, ValueError):
            return False

    def known_options(self, source: SourceRef) -> Mapping[str, Any]:
        """Return its options, where no file that its address names would be one of the current folder."""
        if is_address(source.location):
            address_of(source.location)
        return source.options

    def kept_location(self, location: str) -> str:
        """Return a location as it is written down: without a password, which this process keeps in mind.

        With the whole path of the certificate of who vouches for the server, whatever folder is current later.
        """
        return with_whole_paths(without_password(location))

    def fingerprint(self, source: SourceRef) -> str | None:
        """Return size and time of a file with its log, or the server's own figures on its tables."""
        if not is_address(source.location):
            return file_fingerprint(Path(source.location))
        with closing(open_postgres(source)) as database:
            return database.fingerprint()

    def nodes(
        self, source: SourceRef, *, progress: Progress | None = None
    ) -> Iterator[tuple[Node, str | None]]:
        """Yield the nodes of a database."""
        with closing(open_database(source)) as database:
            for number, pair in enumerate(
                database_nodes(database, self.name, secrets=shows_secrets(source.options))
            ):
                if progress is not None and number % 100 == 0:
                    progress(number, 0, pair[0].title)
                yield pair

    def content(self, source: SourceRef, ref: Source) -> str:
        """Return the sample rows of a table."""
        with closing(open_database(source)) as database:
            return rows_content(database, ref.path)


def file_fingerprint(path: Path) -> str:
    """Return size and time of a SQLite file and of the log beside it.

    Raises:
        UserError: it is not there.
    """
    states = []
    for end in ("", "-wal"):
        try:
            state = path.with_name(path.name + end).stat()
        except OSError as exc:
            if not end:
                raise UserError(f"{path.name!r} cannot be read: {exc.strerror}") from exc
            continue
        states.append(f"{state.st_size}:{state.st_mtime_ns}")
    return " ".join(states)
