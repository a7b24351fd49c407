"""`metatree build`."""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from metatree._util.named_file import typed_path
from metatree.errors import UserError
from metatree.trees.sources import public_location, refuse_link_out
from metatree_agents.cli import _options as options
from metatree_agents.cli import _output as output
from metatree_agents.cli._errors import FAILED, FOUND

if TYPE_CHECKING:
    from metatree_agents.cli.schemas.search import BuiltOutput

_MOST_LOOKED_AT: Final = 2_000_000
"""Bytes of a file that is looked into before a build is given it."""


def build(
    sources: Annotated[
        list[str] | None,
        options.argument(
            "SOURCE",
            "Folders, files, addresses (https://…), servers (mcp:COMMAND, mcp:https://…), descriptions"
            " (openapi:FILE), or TYPE:LOCATION for another installed type of sources.",
        ),
    ] = None,
    source: Annotated[
        list[str] | None, options.option("--source", "SOURCE", "The same, as other commands have it.")
    ] = None,
    tree: options.TreePath = None,
    add: Annotated[
        bool,
        typer.Option(
            "--add",
            help="Keep what the tree in the current folder (or --tree) was built from, and add these.",
        ),
    ] = False,
    remove: Annotated[
        list[str] | None,
        options.option(
            "--remove", "SOURCE", "Take a source out of that tree, with its nodes; the others stay."
        ),
    ] = None,
    history: Annotated[
        bool | None,
        typer.Option(
            "--history/--no-history", help="Read the git history too; it is kept up to date from then on."
        ),
    ] = None,
    json: options.Json = False,
) -> int:
    """Build one tree of all sources, or bring it up to date.

    Only what changed since the last time is read again. The tree of one folder lives in .metatree inside the source,
    any other in .metatree in the current folder, unless --tree says where. A source that cannot be read keeps the nodes
    that it had; the others are read nevertheless.

    What is named is what the tree is of: a source that is not named any more leaves it. When none is the same, it is
    another tree: give it another place with --tree, or add to this one with --add.
    --remove takes one out.

    \b
    Example: metatree build ~/src/requests
    Example: metatree build src docs handbook.pdf
    Example: metatree build --add https://docs.example.org/guide
    Example: metatree build --remove https://docs.example.org/guide
    """
    from metatree_agents.cli.commands import _trees as trees
    from metatree_agents.cli.schemas.search import BuiltOutput, BuiltSourceOutput

    sources = [*(sources or ()), *(source or ())]
    if not sources and not remove:
        raise UserError(
            "what is to be built is missing: name a SOURCE, such as `metatree build .` for this folder"
        )
    sources = _without_secrets(sources)
    began = time.monotonic()
    with trees.build(sources, tree, history=history, add=add, remove=remove or ()) as made:
        info, notes = made.info(), trees.noted(made)
        unread = [each for each in made.sources() if each.mount in notes]
        failed = any(trees.is_named(each, text) for each in unread for text in sources if add)
        if add or remove:
            sources = [each.location for each in made.sources()]
        mounts = [source for source in made.sources() if source.mount]
        place = str(made.path)
    built = BuiltOutput(
        source=", ".join(map(public_location, sources)),
        tree=place,
        nodes=info["nodes"],
        kinds=info["kinds"],
        omitted=info["omissions"],
        seconds=time.monotonic() - began,
    )
    if mounts:
        built.sources = [
            BuiltSourceOutput(
                mount=each.mount, type=each.type, location=each.location, note=notes.get(each.mount)
            )
            for each in mounts
        ]
    if json:
        output.write_json("build", {"trees": [built]})
    else:
        output.write(
            [_line(built, f"metatree show --omitted{_where(sources, tree, add=add or bool(remove))}")]
        )
    if failed:
        again = " ".join(f"--remove {shlex.quote(public_location(each.location))}" for each in unread)
        again += "" if tree is None else f" --tree {shlex.quote(str(tree))}"
        output.remark(
            f"it is a source nevertheless, and is read at the next build: metatree build {again} takes it out"
        )
    return FAILED if failed or (mounts and len(notes) == len(mounts)) else FOUND


def _without_secrets(sources: list[str]) -> list[str]:
    """Return sources without files that are likely to hold secrets, where there are others: `build *` names them, too.

    Raises:
        UserError: nothing else is named.
    """
    if len(sources) < 2:
        return sources
    left = []
    for source in sources:
        if _holds_secrets(typed_path(source)):
            again = f"metatree build --add {shlex.quote(source)}"
            output.note(
                f"warning: {output.visible(source)} may hold secrets and is left out: `{again}` reads it nevertheless"
            )
        else:
            left.append(source)
    if not left:
        raise UserError("each of these files may hold secrets: name one alone to have it read")
    return left


def _holds_secrets(file: Path) -> bool:
    from metatree._util.named_file import read_named
    from metatree._util.secret_files import is_secret
    from metatree.trees.masking import masked_file
    from metatree.trees.text import is_binary

    with suppress(OSError, UserError, ValueError):
        refuse_link_out(file)  # the build says where it leads, and nothing reads it
        if not file.is_file():
            return False
        if is_secret(file.name, file.absolute().parent.as_posix()):
            return True
        if file.stat().st_size <= _MOST_LOOKED_AT and not is_binary(data := read_named(file)):
            return bool(masked_file(file.name, data)[2])
    return False


def _where(sources: Sequence[str], tree: Path | None, *, add: bool) -> str:
    """Return the option that names the tree to other commands; empty when they find it in the current folder."""
    if tree is not None:
        return f" --tree {shlex.quote(str(tree))}"
    folder = typed_path(sources[0])
    if not add and len(sources) == 1 and folder.is_dir() and folder.resolve() != Path.cwd().resolve():
        return f" --source {shlex.quote(sources[0])}"
    return ""


def _line(built: BuiltOutput, lists_omitted: str) -> str:
    kinds = ", ".join(f"{number:,} {kind}" for kind, number in built.kinds.items())
    omitted = f"; {built.omitted:,} left out ({output.visible(lists_omitted)})" if built.omitted else ""
    return f"{output.visible(built.source)}: {output.counted(built.nodes, 'node')} ({kinds}){omitted}"
