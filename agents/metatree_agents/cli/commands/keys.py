"""`metatree users key`, `keys` and `revoke`: keys for programs that speak OpenAI's API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from metatree_agents.cli import _options as options
from metatree_agents.cli import _output as output
from metatree_agents.cli._exit_codes import FOUND
from metatree_agents.cli._service_database import DatabasePath, ServiceSource, ServiceTree, on_database
from metatree_agents.cli.schemas.service import KeyAddedShape, KeyShape, KeysShape

if TYPE_CHECKING:
    from metatree_agents.service.database.database import Database


def key(
    name: Annotated[str, typer.Argument(parser=options.given, metavar="NAME")],
    database: DatabasePath = None,
    source: ServiceSource = None,
    tree: ServiceTree = None,
    json: options.Json = False,
    debug: options.Debug = False,
) -> int:
    """Make an API key for a user, for chat pages and other clients of OpenAI's API; it is printed this once.

    \b
    Example: export OPENAI_API_KEY=$(metatree users key Ann)
    """
    from metatree_agents.service.accounts.keys import Keys

    made = on_database(database, source, tree, lambda kept: Keys(kept).add(name))
    if json:
        output.write_json(KeyAddedShape(name=name, key=made))
    else:
        output.write([made])
        output.note(f"this is a key of {name}; it is not shown again, and `metatree users revoke` ends it")
    return FOUND


def keys(
    database: DatabasePath = None,
    source: ServiceSource = None,
    tree: ServiceTree = None,
    json: options.Json = False,
    debug: options.Debug = False,
) -> int:
    """List the API keys: id, user, when it was made and last used (UTC).

    \b
    Example: metatree users keys
    """
    from metatree_agents.service.accounts.keys import Keys
    from metatree_agents.service.http.bodies import stamp

    found = on_database(database, source, tree, lambda kept: Keys(kept).list())
    shapes = [
        KeyShape(
            id=each.id,
            name=each.name,
            made=stamp(each.made_at),
            used=None if each.used_at is None else stamp(each.used_at),
        )
        for each in found
    ]
    if json:
        output.write_json(KeysShape(keys=shapes))
    else:
        output.write(
            f"{each['id']}  {each['name']}  made {each['made']}  "
            + (f"used {each['used']}" if each["used"] else "never used")
            for each in shapes
        )
    return FOUND


def revoke(
    key_id: Annotated[
        str, typer.Argument(parser=options.given, metavar="ID", help="As `metatree users keys` lists it.")
    ],
    database: DatabasePath = None,
    source: ServiceSource = None,
    tree: ServiceTree = None,
    debug: options.Debug = False,
) -> int:
    """End an API key.

    \b
    Example: metatree users revoke 3f9a1c0b7d52
    """
    from metatree_agents.service.accounts.keys import Keys

    async def end(kept: Database) -> str:
        return await Keys(kept).remove(key_id)

    output.note(f"ended a key of {on_database(database, source, tree, end)}")
    return FOUND
