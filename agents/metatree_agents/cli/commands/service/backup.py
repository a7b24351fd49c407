"""`metatree service backup` and `restore`: a service with its memory in one file, and back."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from metatree.errors import UserError
from metatree_agents.cli import _options as options
from metatree_agents.cli import _output as output
from metatree_agents.cli._errors import FOUND
from metatree_agents.cli.commands.service._database import ServiceOptions

if TYPE_CHECKING:
    from metatree_agents.service.database.backup import Backup

File = Annotated[Path, options.argument("FILE", parser=options.path)]
NoMemory = Annotated[bool, typer.Option("--no-memory", help="Leave the tree's memory out.")]
Force = Annotated[bool, typer.Option("--force", help="Replace what is there.")]


def backup(
    file: File,
    force: Force = False,
    no_memory: NoMemory = False,
    *,
    service: ServiceOptions,
    json: options.Json = False,
) -> int:
    """Write a service into one file: users, topics, answers, and the tree's memory; it may be at work meanwhile.

    The file is read again before the command ends. Secrets are in it: it is readable for you alone.

    \b
    Example: metatree service backup monday.backup --source ~/src/requests
    """
    from metatree_agents.service.database.backup import back_up

    memory = None if no_memory else service.memory_file()
    if memory is not None and not memory.exists():
        memory = None
    made = service.call(lambda opened: back_up(opened, file, memory=memory, force=force))
    print_backup(made, "wrote", json)
    return FOUND


def restore(
    file: File,
    force: Force = False,
    no_memory: NoMemory = False,
    *,
    service: ServiceOptions,
    json: options.Json = False,
) -> int:
    """Put a backup in the place of a service that is empty, or of any with --force; all of it or nothing.

    What is at work there has to be stopped first.

    A backup of SQLite can be restored to PostgreSQL, and the other way round. People log in to the web page again.

    \b
    Example: metatree service restore monday.backup --source ~/src/requests
    """
    from metatree_agents.service.database.backup import restore as put_back
    from metatree_agents.service.database.backup import verified

    summary = verified(file)  # before a database is made for it
    memory = None if no_memory else service.memory_file()
    if (
        summary.memory_bytes is not None
        and memory is not None
        and not (service.source or service.tree or memory.parent.is_dir())
    ):
        raise UserError(
            "the backup has a memory, and no tree is in the current folder: name with --source or --tree whose memory"
            " it becomes, or leave it with --no-memory"
        )
    made = service.call(
        lambda opened: put_back(file, opened, memory=memory, force=force),
        create=True,
        folder=True,
    )
    # The output describes what was restored.
    made = made if memory is not None else replace(made, memory_bytes=None)
    print_backup(made, "restored", json)
    if made.memory_bytes is not None and not json:
        output.note(
            f"the memory is in {output.visible(str(memory))}; --source or --tree names another tree's"
        )
    return FOUND


def print_backup(done: Backup, what: str, json: bool) -> None:
    """Say what a backup holds."""
    if json:
        count = done.file.stat().st_size
        output.write_json("service backup", {**asdict(done), "file": str(done.file), "bytes": count})
        return
    rows = done.tables
    contents = [
        output.counted(rows.get("service_user", 0), "user"),
        output.counted(rows.get("topic", 0), "topic"),
        f"{rows.get('query', 0):,} {'query' if rows.get('query') == 1 else 'queries'}",
        "no memory" if done.memory_bytes is None else f"a memory of {_size(done.memory_bytes)}",
    ]
    size = _size(done.file.stat().st_size)
    output.write(
        [f"{what} {output.visible(str(done.file))} ({size}, of {done.made_at} UTC): {', '.join(contents)}"]
    )


def _size(count: int) -> str:
    return f"{count / 1e6:,.1f} MB" if count >= 1_000_000 else f"{count / 1e3:,.1f} kB"
