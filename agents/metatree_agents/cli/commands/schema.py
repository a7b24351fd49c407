"""`metatree schema`: the JSON Schema of what commands print with `--json`."""

from __future__ import annotations

from typing import Annotated

from metatree.errors import UserError
from metatree_agents.cli import _options as options
from metatree_agents.cli import _output as output
from metatree_agents.cli._errors import FOUND


def schema(
    command: Annotated[
        list[str] | None,
        options.argument(
            "COMMAND",
            "A command, such as `goals show`, or `'show --omitted'` where an option changes what is printed.",
        ),
    ] = None,
) -> int:
    """Print the JSON Schema of what a command prints with --json; without a command, an object of them all.

    \b
    Example: metatree schema find
    """
    from metatree_agents.cli.schemas.registry import OUTPUTS, schema_of

    name = " ".join(command or ())
    if name and name not in OUTPUTS:
        raise UserError(f"no command {name!r} prints JSON: choose from {', '.join(OUTPUTS)}")
    output.write_object(schema_of(name) if name else {each: schema_of(each) for each in OUTPUTS})
    return FOUND
