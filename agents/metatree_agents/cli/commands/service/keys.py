"""`metatree service keys`: keys for programs that speak OpenAI's API."""

from __future__ import annotations

from typing import Annotated

from metatree_agents.cli import _options as options
from metatree_agents.cli import _output as output
from metatree_agents.cli._errors import FOUND
from metatree_agents.cli._groups import CommandGroup
from metatree_agents.cli.commands.service._database import ServiceOptions

keys_app = CommandGroup(help="API keys for clients of OpenAI's API.")


@keys_app.add("add")
def add(
    name: Annotated[str, options.argument("NAME")],
    label: Annotated[
        str | None,
        options.option("--label", "TEXT", "What the key is for, as lists of keys show it: `my laptop`."),
    ] = None,
    *,
    service: ServiceOptions,
    json: options.Json = False,
) -> int:
    """Make an API key for a user, for chat pages and other clients of OpenAI's API; it is printed this once.

    \b
    Example: export OPENAI_API_KEY=$(metatree service keys add Ann --label "my laptop")
    """
    from metatree_agents.service.accounts.keys import Keys

    made = service.call(lambda opened: Keys(opened).add(name, label=label or ""))
    if json:
        output.write_json("service keys add", {"name": name, "key": made})
    else:
        output.write([made])
        output.note(
            f"this is a key of {name}; it is not shown again, and `metatree service keys revoke` ends it"
        )
    return FOUND


@keys_app.add("list")
def list_(
    *,
    service: ServiceOptions,
    json: options.Json = False,
) -> int:
    """List the API keys: id, user, name, when it was made and last used (UTC).

    \b
    Example: metatree service keys list
    """
    from metatree_agents.service.accounts.keys import Keys
    from metatree_agents.service.http.bodies import stamp

    keys = service.call(lambda opened: Keys(opened).list())
    rows = [
        {
            "id": each.id,
            "name": each.name,
            "label": each.label,
            "made": stamp(each.made_at),
            "used": None if each.used_at is None else stamp(each.used_at),
        }
        for each in keys
    ]
    if json:
        output.write_json("service keys list", {"keys": rows})
    else:
        output.write(
            output.visible(f"{row['id']}  {row['name']}  ")
            + output.visible(f"{each.named or 'unnamed'}  ")
            + f"made {row['made']}  "
            + (f"used {row['used']}" if row["used"] else "never used")
            for each, row in zip(keys, rows, strict=True)
        )
    return FOUND


@keys_app.add("revoke")
def revoke(
    key_id: Annotated[str, options.argument("ID", "As `metatree service keys list` lists it.")],
    *,
    service: ServiceOptions,
) -> int:
    """End an API key.

    \b
    Example: metatree service keys revoke 3f9a1c0b7d52
    """
    from metatree_agents.service.accounts.keys import Keys

    owner = service.call(lambda opened: Keys(opened).remove(key_id))
    output.note(f"ended a key of {owner}")
    return FOUND
