"""`metatree backup` and `metatree restore`: a service with its memory in one file, and back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from metatree.errors import UserError
from metatree_agents.cli import _options as options
from metatree_agents.cli import _output as output
from metatree_agents.cli._exit_codes import FOUND
from metatree_agents.cli._service_database import (
    DatabasePath,
    ServiceSource,
    ServiceTree,
    memory_file,
    on_database,
)
from metatree_agents.cli.schemas.service import BackupShape

if TYPE_CHECKING:
    from metatree_agents.service.database.backup import Backup

File = Annotated[Path, typer.Argument(parser=options.path, metavar="FILE")]
NoMemory = Annotated[bool, typer.Option("--no-memory", help="Leave the tree's memory out.")]
Force = Annotated[bool, typer.Option("--force", help="Replace what is there.")]


def backup(
    file: File,
    force: Force = False,
    no_memory: NoMemory = False,
    database: DatabasePath = None,
    source: ServiceSource = None,
    tree: ServiceTree = None,
    json: options.Json = False,
    debug: options.Debug = False,
) -> int:
    """Write a service into one file: users, topics, answers, and the tree's memory; it may be at work meanwhile.

    The file is read again before the command ends. Secrets are in it: it is readable for you alone.

    \b
    Example: metatree backup monday.backup --source ~/src/requests
    """
    from metatree_agents.service.database.backup import back_up

    memory = None if no_memory else memory_file(source, tree)
    if memory is not None and not memory.exists():
        memory = None
    made = on_database(database, source, tree, lambda kept: back_up(kept, file, memory=memory, force=force))
    _tell(made, "wrote", json)
    return FOUND


def restore(
    file: File,
    force: Force = False,
    no_memory: NoMemory = False,
    check: Annotated[
        bool, typer.Option("--check", help="Read the whole backup and restore nothing.")
    ] = False,
    database: DatabasePath = None,
    source: ServiceSource = None,
    tree: ServiceTree = None,
    json: options.Json = False,
    debug: options.Debug = False,
) -> int:
    """Put a backup in the place of a service that is empty, or of any with --force; all of it or nothing.

    What is at work there has to be stopped first.

    A backup of SQLite can be restored to PostgreSQL, and the other way round. People log in to the web page again.

    \b
    Example: metatree restore monday.backup --source ~/src/requests
    """
    from metatree_agents.service.database.backup import restore as put_back
    from metatree_agents.service.database.backup import verified

    if check:
        _tell(verified(file), "checked", json)
        return FOUND
    found = verified(file)  # before a database is made for it
    memory = None if no_memory else memory_file(source, tree)
    if (
        found.memory_bytes is not None
        and memory is not None
        and not (source or tree or memory.parent.is_dir())
    ):
        raise UserError(
            "the backup has a memory, and no tree is in the current folder: name with --source or --tree whose memory"
            " it becomes, or leave it with --no-memory"
        )
    made = on_database(
        database,
        source,
        tree,
        lambda kept: put_back(file, kept, memory=memory, force=force),
        create=True,
    )
    # What is told is what was restored.
    made = made if memory is not None else replace(made, memory_bytes=None)
    _tell(made, "restored", json)
    if made.memory_bytes is not None and not json:
        output.note(
            f"the memory is in {output.visible(str(memory))}; --source or --tree names another tree's"
        )
    return FOUND


def _tell(done: Backup, what: str, json: bool) -> None:
    if json:
        output.write_json(
            BackupShape(
                file=str(done.file),
                made=done.made_at,
                bytes=done.file.stat().st_size,
                schema=done.schema,
                tables=done.tables,
                memory_bytes=done.memory_bytes,
            )
        )
        return
    rows = done.tables
    held = [
        output.counted(rows.get("service_user", 0), "user"),
        output.counted(rows.get("topic", 0), "topic"),
        f"{rows.get('query', 0):,} {'query' if rows.get('query') == 1 else 'queries'}",
        "no memory" if done.memory_bytes is None else f"a memory of {_size(done.memory_bytes)}",
    ]
    size = _size(done.file.stat().st_size)
    output.write(
        [f"{what} {output.visible(str(done.file))} ({size}, of {done.made_at} UTC): {', '.join(held)}"]
    )


def _size(count: int) -> str:
    return f"{count / 1e6:,.1f} MB" if count >= 1_000_000 else f"{count / 1e3:,.1f} kB"
