"""`metatree new-plugin`: a package with a plug-in that works, to begin with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from metatree_agents.cli import _options as options
from metatree_agents.cli import _output as output
from metatree_agents.cli._errors import FOUND
from metatree_agents.cli.new_plugins.package import PluginKind, make_package


def new_plugin(
    name: Annotated[
        str,
        options.argument(
            "NAME",
            "Name of the package, such as metatree-recipes; the plug-in is called the same without `metatree-`.",
        ),
    ],
    kind: Annotated[
        PluginKind, typer.Option("--kind", help="What it plugs in; docs/plugins.md explains each.")
    ] = "memory-type",
    out: Annotated[
        Path | None,
        options.option(
            "--out",
            "DIR",
            "The folder of the package, which must not be there; by default NAME in the current folder.",
            parser=options.path,
        ),
    ] = None,
    json: options.Json = False,
) -> int:
    """Write a package with a plug-in that works, its test and its README.

    \b
    Example: metatree new-plugin metatree-recipes --kind source
    """
    made = make_package(name, kind, out)
    if json:
        output.write_json("new-plugin", made)
        return FOUND
    output.write(str(made.path / file) for file in made.files)
    place = output.word(str(made.path))
    output.note(
        f"next: pip install -e {place} && pytest {place}; then `metatree plugins` lists {made.entry!r}"
        f" below {made.group}"
    )
    return FOUND
