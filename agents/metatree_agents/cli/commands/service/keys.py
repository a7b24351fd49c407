"""`metatree service keys`: keys for programs that speak OpenAI's API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from metatree_agents.cli import _options as options
from metatree_agents.cli import _output as output
from metatree_agents.cli._errors import FOUND
from metatree_agents.cli.commands.service._database import (
    DatabasePath,
    ServiceSource,
    ServiceTree,
    with_database,
)

if TYPE_CHECKING:
    from metatree_agents.service.database.database import ServiceDatabase

keys_app = typer.Typer(
    help="API keys for clients of OpenAI's API.", no_args_is_help=True, rich_markup_mode=None
)


@keys_app.command("add")
def add(
    name: Annotated[str, typer.Argument(parser=options.given, metavar="NAME")],
    database: DatabasePath = None,
    source: ServiceSource = None,
    tree: ServiceTree = None,
    json: options.Json = False,
    debug: options.Debug = False,
) -> int:
    """Make an API key for a user, for chat pages and other clients of OpenAI's API; it is printed this once.

    \b
    Example: export OPENAI_API_KEY=$(metatree service keys add Ann)
    """
    from metatree_agents.service.accounts.keys import Keys

    made = with_database(database, source, tree, lambda opened: Keys(opened).add(name))
    if json:
        from metatree_agents.cli.schemas.service import KeyAddedOutput

        output.write_json(KeyAddedOutput(name=name, key=made))
    else:
        output.write([made])
        output.note(
            f"this is a key of {name}; it is not shown again, and `metatree service keys revoke` ends it"
        )
    return FOUND


@keys_app.command("list")
def list_(
    database: DatabasePath = None,
    source: ServiceSource = None,
    tree: ServiceTree = None,
    json: options.Json = False,
    debug: options.Debug = False,
) -> int:
    """List the API keys: id, user, when it was made and last used (UTC).

    \b
    Example: metatree service keys list
    """
    from metatree_agents.service.accounts.keys import Keys
    from metatree_agents.service.http.bodies import stamp

    keys = with_database(database, source, tree, lambda opened: Keys(opened).list())
    rows = [
        {
            "id": each.id,
            "name": each.name,
            "made": stamp(each.made_at),
            "used": None if each.used_at is None else stamp(each.used_at),
        }
        for each in keys
    ]
    if json:
        from metatree_agents.cli.schemas.service import KeysOutput

        output.write_json(KeysOutput.model_validate({"keys": rows}))
    else:
        output.write(
            f"{each['id']}  {each['name']}  made {each['made']}  "
            + (f"used {each['used']}" if each["used"] else "never used")
            for each in rows
        )
    return FOUND


@keys_app.command("revoke")
def revoke(
    key_id: Annotated[
        str,
        typer.Argument(parser=options.given, metavar="ID", help="As `metatree service keys list` lists it."),
    ],
    database: DatabasePath = None,
    source: ServiceSource = None,
    tree: ServiceTree = None,
    debug: options.Debug = False,
) -> int:
    """End an API key.

    \b
    Example: metatree service keys revoke 3f9a1c0b7d52
    """
    from metatree_agents.service.accounts.keys import Keys

    async def end(opened: ServiceDatabase) -> str:
        return await Keys(opened).remove(key_id)

    output.note(f"ended a key of {with_database(database, source, tree, end)}")
    return FOUND
