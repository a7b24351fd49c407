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
from metatree_agents.cli.commands.service._serve_options import named_folders

if TYPE_CHECKING:
    from metatree_agents.service.database.backup import Backup
    from metatree_agents.service.database.database import ServiceDatabase

File = Annotated[Path, options.argument("FILE", parser=options.path)]
Trees = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="NAME=FOLDER",
        help="Trees by their names, as `metatree serve` has them, whose memories belong to it.",
    ),
]
NoMemory = Annotated[bool, typer.Option("--no-memory", help="Leave the tree's memory out.")]
Force = Annotated[bool, typer.Option("--force", help="Replace what is there.")]


def backup(
    file: File,
    trees: Trees = None,
    force: Force = False,
    no_memory: NoMemory = False,
    *,
    service: ServiceOptions,
    json: options.Json = False,
) -> int:
    """Write a service into one file: users, topics, answers, and the tree's memory; it may be at work meanwhile.

    The file is read again before the command ends. Secrets are in it: it is readable for you alone. Of trees with names
    the memories of those that are named are in it.

    \b
    Example: metatree service backup monday.backup --source ~/src/requests
    Example: metatree service backup monday.backup handbook=~/handbook recipes=~/recipes
    """
    from metatree_agents.service.accounts.tree_rights import TreeRights
    from metatree_agents.service.database.backup import back_up

    memories = {} if no_memory else _memories(service, trees)

    async def backed_up(opened: ServiceDatabase) -> tuple[Backup, list[str]]:
        names = [tree.name for tree in await TreeRights(opened).all()]
        if unknown := [name for name in memories if name and name not in names]:
            raise UserError(
                f"the service has no tree {unknown[0]!r}: `metatree service trees list` lists them"
            )
        there = {name: memory for name, memory in memories.items() if memory.exists()}
        made = await back_up(opened, file, memory=there, force=force)
        return made, [] if no_memory else [name for name in names if name not in memories]

    made, left_out = service.call(backed_up)
    print_backup(made, "wrote", json)
    if left_out:
        named = output.visible(" ".join(f"{name}=FOLDER" for name in left_out))
        output.note(
            f"warning: what people said to {', '.join(left_out)} is not in it: name the folders, as `metatree serve`"
            f" has them: `metatree service backup FILE {named}`"
        )
    return FOUND


def _memories(service: ServiceOptions, trees: list[str] | None) -> dict[str, Path]:
    """Return where the memories of a service are, by the names of their trees, whether they are there or not."""
    if not trees:
        return {"": service.memory_file()}
    if service.source or service.tree:
        raise UserError("NAME=FOLDER goes without --source and --tree: each folder has its own tree")
    return {
        name: ServiceOptions(None, [str(folder)]).memory_file()
        for name, folder in named_folders(trees).items()
    }


def restore(
    file: File,
    trees: Trees = None,
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
    Example: metatree service restore monday.backup handbook=~/handbook recipes=~/recipes
    """
    from metatree_agents.service.database.backup import restore as put_back
    from metatree_agents.service.database.backup import verified

    summary = verified(file)  # before a database is made for it
    memories = {} if no_memory else _memories(service, trees)
    memory = memories.get("")
    if missing := [name for name in summary.memories if name and name not in memories and not no_memory]:
        named = output.visible(" ".join(f"{name}=FOLDER" for name in missing))
        raise UserError(
            f"the backup has the memories of trees with names: say where they go, as `metatree serve` has them, with"
            f" {named}, or leave them with --no-memory"
        )
    if (
        "" in summary.memories
        and memory is not None
        and not (service.source or service.tree or memory.parent.is_dir())
    ):
        raise UserError(
            "the backup has a memory, and no tree is in the current folder: name with --source or --tree whose memory"
            " it becomes, or leave it with --no-memory"
        )
    made = service.call(
        lambda opened: put_back(file, opened, memory=memories, force=force),
        create=True,
        folder=True,
    )
    # The output describes what was restored.
    put = {name: size for name, size in made.memories.items() if name in memories}
    print_backup(
        replace(made, memories=put, memory_bytes=sum(put.values()) if put else None), "restored", json
    )
    for name in () if json else put:
        other = "" if name else "; --source or --tree names another tree's"
        output.note(
            f"the memory{' of ' * bool(name)}{name} is in {output.visible(str(memories[name]))}{other}"
        )
    if not json:
        output.note(
            "start it with `metatree serve`, with the same options; people log in again, keys stay valid"
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
        _memory_of(done),
    ]
    size = _size(done.file.stat().st_size)
    output.write(
        [f"{what} {output.visible(str(done.file))} ({size}, of {done.made_at} UTC): {', '.join(contents)}"]
    )


def _memory_of(done: Backup) -> str:
    if not done.memories:
        return "no memory"
    return " and ".join(
        f"the memory of {output.visible(name)} ({_size(size)})" if name else f"a memory of {_size(size)}"
        for name, size in done.memories.items()
    )


def _size(count: int) -> str:
    return f"{count / 1e6:,.1f} MB" if count >= 1_000_000 else f"{count / 1e3:,.1f} kB"
