"""`metatree export` and `import`: what cannot be built again, carried to another machine in one file."""

from __future__ import annotations

import errno
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from metatree._util.named_file import typed_path
from metatree.errors import UserError
from metatree_agents.cli import _options as options
from metatree_agents.cli import _output as output
from metatree_agents.cli._errors import FOUND, WRONG_USE
from metatree_agents.cli.commands._trees import TreeOptions

if TYPE_CHECKING:
    from metatree.notes.archive import ArchiveSurvey

_WORDS = {
    "nodes": "node{}",
    "overrides": "change{} of built nodes",
    "links": "link{}",
    "facts": "small fact{}",
    "runs": "run{}",
    "journal": "step{} of runs",
    "mail": "signal{} to runs",
    "calls": "tool call{}",
    "boards": "board{}",
    "items": "item{} on boards",
    "images": "image{}",
    "rule_facts": "fact{} of rules",
    "rule_tokens": "token{} of rules",
    "permissions": "permission{}",
    "wishes": "standing wish(es)",
    "flags": "flag{} against what is found",
}
"""What an export counts, with a place for the plural's ending."""


def export(
    file: Annotated[
        Path, options.argument("FILE", "File to write; - is standard output.", parser=options.path)
    ],
    *,
    where: TreeOptions,
    json: options.Json = False,
) -> int:
    """Write what cannot be built again to one file: memories, notes, made nodes, descriptions, links, runs, boards.

    Texts that look like secrets are left out. An earlier export is replaced at the end, at once.

    \b
    Example: metatree export shop.metatree --source ~/src/shop
    """
    from metatree.notes.archive import export_memory

    with where.existing() as opened:
        if str(file) == "-":
            if json:
                raise UserError(
                    "standard output cannot hold the file and JSON: name a file, or leave --json out"
                )
            if sys.stdout.isatty():
                raise UserError("the export is no text for a terminal: name a file, or send it on with >")
            with tempfile.TemporaryDirectory() as folder:
                done = export_memory(opened, Path(folder) / "memory.metatree")
                with (Path(folder) / "memory.metatree").open("rb") as made:
                    shutil.copyfileobj(made, sys.stdout.buffer)
                sys.stdout.buffer.flush()
        else:
            done = export_memory(opened, file)
    if json:
        output.write_json("export", done)
    else:
        counted = _counted({name: number for name, number in done.counts.items() if name != "journal"})
        output.note(
            f"wrote {output.visible(str(file))}: {counted or 'nothing was added to this tree'}; {done.bytes:,} bytes"
        )
    if done.secrets:
        output.note(f"warning: {done.secrets} texts that look like secrets were left out of it")
    if done.left_out:
        output.note(f"warning: left out, since this version cannot carry them: {', '.join(done.left_out)}")
    return FOUND


def import_(
    file: Annotated[
        Path,
        options.argument(
            "FILE", "File that `metatree export` wrote; - is standard input.", parser=options.path
        ),
    ],
    trust: Annotated[
        bool,
        typer.Option(
            "--trust", help="Merge an export of somebody else like your own: shows what it holds, and asks."
        ),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="With --trust: merge it without asking.")] = False,
    permissions: Annotated[
        bool,
        typer.Option("--permissions", help="Take over permissions too, to call tools that change something."),
    ] = False,
    wishes: Annotated[
        bool,
        typer.Option(
            "--wishes",
            help="Take over standing wishes too: what people want always goes to agents with each answer.",
        ),
    ] = False,
    deletions: Annotated[
        bool,
        typer.Option("--deletions", help="Take out, too, what was taken out of what the tree is built from."),
    ] = False,
    *,
    where: TreeOptions,
    json: options.Json = False,
) -> int:
    """Merge an export into the tree of the current folder, which is built first when it is missing.

    Of an export that you did not make, with the key that is in METATREE_CONFIG_DIR, the texts alone are taken, below a
    node of their own: no runs, boards, wishes, permissions, nor words of files. --trust takes all of it.

    What is there already stays; of nodes that differ, both are kept. All of the file is taken or nothing, and taking it
    again changes nothing.

    \b
    Example: metatree import shop.metatree --source ~/src/shop
    """
    from metatree.notes.archive import import_memory

    if yes and not trust:
        raise UserError("--yes answers what --trust asks: give both, or leave it out")
    with tempfile.TemporaryDirectory() as folder:
        if str(file) == "-":
            if sys.stdin is None or sys.stdin.isatty():
                raise UserError("standard input is no export: name the file, or send it in with <")
            file = Path(folder) / "standard input"
            with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as copy:
                shutil.copyfileobj(sys.stdin.buffer, copy)
        if trust:
            if file.parent != Path(folder) and typed_path(file).is_file():  # what is shown is what is merged
                file = _copied(typed_path(file), Path(folder) / file.name)
            if not _agreed(file, yes, quiet=json):
                output.note("nothing was imported")
                return WRONG_USE
        with where.ready() as opened:
            done = import_memory(
                opened, file, trust=trust, permissions=permissions, wishes=wishes, deletions=deletions
            )
    if json:
        output.write_json("import", done)
        return FOUND
    known = sum(done.known.values())
    output.note(
        f"added {_counted(done.added) or 'nothing'}" + (f"; {known:,} were there already" if known else "")
    )
    if not done.merged:
        below = "" if done.folder is None else f" below {output.word(done.folder)}"
        output.note(f"it is not your export, so its texts alone were taken, as plain text{below}")
        if done.left_out:
            output.note(
                f"left out: {_counted(done.left_out)}; --trust shows what it holds, and takes all of it"
            )
    for conflict in done.conflicts:
        output.note(
            f"{conflict.what} {output.visible(conflict.id)} differs: kept {output.visible(conflict.kept)}"
        )
    if done.deletions_left_out:
        output.note(
            f"{done.deletions_left_out} nodes that were taken out there stay here; --deletions takes them out"
        )
    if done.wishes_left_out:
        output.note(f"{done.wishes_left_out} standing wishes were left out; --wishes takes them over")
    if done.permissions_left_out:
        output.note(f"{done.permissions_left_out} permissions were left out; --permissions takes them over")
    return FOUND


def _copied(file: Path, place: Path) -> Path:
    """Copy a file without writing out its holes, of which a kilobyte of an archive may bring terabytes."""
    with file.open("rb") as given, place.open("wb") as copy:
        at, size = 0, os.fstat(given.fileno()).st_size
        while at < size:
            end = size
            if hasattr(os, "SEEK_DATA"):
                try:
                    at = os.lseek(given.fileno(), at, os.SEEK_DATA)
                    end = os.lseek(given.fileno(), at, os.SEEK_HOLE)
                except OSError as exc:
                    if exc.errno == errno.ENXIO:  # only a hole is left
                        break
            given.seek(at)
            copy.seek(at)
            while at < end and (data := given.read(min(end - at, 1 << 20))):
                copy.write(data)
                at += len(data)
            if at < end:  # it became shorter
                break
        copy.truncate(size)
    return place


def _agreed(file: Path, yes: bool, *, quiet: bool) -> bool:
    """Show what an export of somebody else holds, and ask whether it is to be merged; one's own needs no asking."""
    from metatree.notes.archive import survey_archive

    survey = survey_archive(file)
    if survey.own:
        return True
    if not (quiet and yes):
        output.note(f"{output.visible(file.name)}: not yours, made at {output.plain(survey.made_at)}")
        counts = {"wishes": survey.wishes, "flags": survey.flags, **survey.counts}
        for line in (f"  holds {_counted(counts)}", *_names(survey)):
            output.note(line)
    return yes or output.agreed(
        f"merge {output.visible(file.name)} with all of that?",
        "nobody is at a terminal to ask: merge it with --trust --yes, or leave --trust out to take its texts alone",
    )


def _names(survey: ArchiveSurvey) -> Iterator[str]:
    for what, names in (
        ("speaks in the names of", survey.authors),
        ("with --permissions, lets change things without asking:", survey.permissions),
    ):
        more = survey.unnamed.get("authors" if names is survey.authors else "permissions", 0)
        if names:
            yield f"  {what} {output.plain(', '.join(names))}" + (f" and {more:,} others" if more else "")


def _counted(counts: dict[str, int]) -> str:
    return ", ".join(
        f"{number:,} {_WORDS.get(name, name + '{}').format('' if number == 1 else 's')}"
        for name, number in counts.items()
        if number
    )
