"""What the commands on a service's database share: the options that name it, and how it is opened."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, TypeVar

from metatree._util.named_file import typed_path
from metatree._util.private import keep_private, private_folder
from metatree.errors import UserError
from metatree.storage.postgres_address import is_postgres, without_secrets
from metatree.storage.store_files import check_files
from metatree_agents.cli._options import file_or_address, option, path
from metatree_agents.cli.commands._trees import FOLDER, place_of

if TYPE_CHECKING:
    from metatree_agents.service.database.database import ServiceDatabase

T = TypeVar("T")
DATABASE = "service.db"

DatabasePath = Annotated[
    str | None,
    option(
        "--database",
        "FILE|URL",
        "Where topics and users are kept: a file, by default service.db beside the tree, or an address such as"
        " postgresql://USER@HOST/NAME, which several servers may share; its password comes best from PGPASSWORD.",
        parser=file_or_address,
    ),
]


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """Which service a command works on."""

    database: DatabasePath = None
    source: Annotated[
        list[str] | None,
        option(
            "--source",
            "SOURCE",
            "The --source of `metatree serve`: its database and memory lie beside the tree; the current folder by"
            " default.",
        ),
    ] = None
    tree: Annotated[
        Path | None,
        option(
            "--tree",
            "PATH",
            "The --tree of `metatree serve`: its database and memory lie beside it.",
            parser=path,
        ),
    ] = None

    def call(
        self, what: Callable[[ServiceDatabase], Awaitable[T]], *, create: bool = False, folder: bool = False
    ) -> T:
        """Do something with the database and return what came of it.

        Args:
            create: whether one is made where there is none.
            folder: whether its folder is, too.

        Raises:
            UserError: there is none, and `create` is False.
        """
        opened = self.open(create=create, folder=folder)

        async def do() -> T:
            try:
                await opened.start()
                return await what(opened)
            finally:
                await opened.close()

        return asyncio.run(do())

    def open(self, *, create: bool = True, folder: bool = False) -> ServiceDatabase:
        """Return the database; a file is readable for nobody else.

        Raises:
            MissingExtra: it is PostgreSQL's, and psycopg is not installed.
            UserError: its address is none, its folder is not there, or `create` is False and it is not.
        """
        from metatree_agents.service.database.database import SqliteDatabase

        database = self.database
        if database is not None and "://" in database:
            if not is_postgres(database):
                raise UserError(
                    f"{database.partition('://')[0]!r} is no kind of database: name a file, or postgresql://USER@HOST/NAME"
                )
            from metatree_agents.service.database.postgres import PostgresDatabase

            return PostgresDatabase(database, create=create)
        file = self.file()
        if database is None and create and file.parent.name == FOLDER and not file.parent.exists():
            private_folder(file.parent)
            with (file.parent / ".gitignore").open("x") as stream:
                stream.write("*\n")
        if not create and not file.exists():
            raise UserError(
                f"there is no service in {str(file)!r}: name the --source, --tree or --database that `metatree serve`"
                " has"
            )
        if folder and not file.parent.exists():
            private_folder(file.parent)
        if not file.parent.is_dir():
            raise UserError(
                f"there is no folder {str(file.parent)!r} for the database: make it, or name another file with"
                " --database"
            )
        check_files(file)
        for each in (file, *(file.with_name(file.name + end) for end in ("-wal", "-shm"))):
            keep_private(each)  # a new one is made so
        return SqliteDatabase.open(file)

    def file(self) -> Path:
        """Return where the database is, of SQLite, whether it is there or not."""
        if self.database is not None:
            return typed_path(self.database)
        place = place_of(self.source, self.tree)
        # A tree in one file has its database beside it; any other in its folder, which builds make and scans pass over.
        return (place.parent if place.is_file() else place) / DATABASE

    def words(self) -> str:
        """Return the options that name the same database in another command, without secrets."""
        if self.database is not None:
            shown = without_secrets(self.database) if is_postgres(self.database) else self.database
            return f" --database {quote(shown)}"
        named = "".join(f" --source {quote(each)}" for each in self.source or ())
        return named + (f" --tree {quote(str(self.tree))}" if self.tree is not None else "")

    def memory_file(self) -> Path:
        """Return where the memory of the tree is kept, whether it is there or not."""
        from metatree.trees.tree import MEMORY

        place = place_of(self.source, self.tree)
        return place if place.is_file() else place / MEMORY
