"""`metatree build`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from metatree.errors import UserError
from metatree_agents.cli import options, screen
from metatree_agents.cli.exits import FOUND
from metatree_agents.cli.shapes import BuildShape, BuiltShape


def build(
    sources: Annotated[
        list[Path], typer.Argument(parser=options.path, metavar="SOURCE", help="Folders to build trees of.")
    ],
    tree: options.TreePath = None,
    history: Annotated[
        bool | None,
        typer.Option(
            "--history/--no-history", help="Read the git history too; it is kept up to date from then on."
        ),
    ] = None,
    json: options.Json = False,
    debug: options.Debug = False,
) -> int:
    """Build the tree of each source, or bring it up to date.

    Only what changed since the last time is read again. The tree lives in .metatree beside the source.

    \b
    Example: metatree build ~/src/requests
    """
    from metatree_agents.cli import trees

    if tree is not None and len(sources) > 1:
        raise UserError("--tree holds the tree of one source: name one source, or leave --tree out")
    built: list[BuiltShape] = []
    for source in sources:
        began = time.monotonic()
        with trees.build(source, tree, history=history) as made:
            info = made.info()
        built.append(
            BuiltShape(
                source=str(source),
                tree=str(made.path),
                nodes=info["nodes"],
                kinds=info["kinds"],
                omitted=info["omissions"],
                seconds=round(time.monotonic() - began, 3),
            )
        )
    if json:
        screen.write_json(BuildShape(trees=built))
    else:
        screen.write(_line(each) for each in built)
    return FOUND


def _line(built: BuiltShape) -> str:
    kinds = ", ".join(f"{number:,} {kind}" for kind, number in built["kinds"].items())
    omitted = f"; {built['omitted']:,} left out (metatree show --omitted)" if built["omitted"] else ""
    return f"{screen.visible(built['source'])}: {built['nodes']:,} nodes ({kinds}){omitted}"
