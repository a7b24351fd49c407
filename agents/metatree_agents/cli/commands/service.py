"""`metatree service`: what is queued, who holds what, what failed, and what can be done about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from metatree_agents.cli import _options as options
from metatree_agents.cli import _output as output
from metatree_agents.cli._exit_codes import FOUND, NOTHING
from metatree_agents.cli._service_database import DatabasePath, ServiceSource, ServiceTree, on_database
from metatree_agents.cli.schemas.service import ServiceShape, service_shape

if TYPE_CHECKING:
    from metatree_agents.service.accounts.admin import Administration
    from metatree_agents.service.database.database import Database

_LISTED = 20
_WIDE = 60

service_app = typer.Typer(
    name="service",
    help="The queue of a service, for its administrator.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Topic = Annotated[str, typer.Argument(parser=options.given, metavar="TOPIC")]


def _administration(kept: Database) -> Administration:
    from metatree_agents.service.accounts.admin import Administration
    from metatree_agents.service.accounts.users import Users
    from metatree_agents.service.queue.queue import Queue

    return Administration(kept, Queue(kept), Users(kept))


@service_app.command("status")
def status(
    database: DatabasePath = None,
    source: ServiceSource = None,
    tree: ServiceTree = None,
    json: options.Json = False,
    debug: options.Debug = False,
) -> int:
    """Print what is queued, which engine holds what since when, what failed, and who was here (times in UTC).

    \b
    Example: metatree service status --source ~/src/requests
    """
    found = service_shape(on_database(database, source, tree, lambda kept: _administration(kept).overview()))
    if json:
        output.write_json(found)
    else:
        output.write(_lines(found))
    return FOUND


@service_app.command("requeue")
def requeue(
    topic: Topic,
    seq: Annotated[
        int | None,
        typer.Option("--seq", min=1, metavar="N", help="This query alone; all of the topic by default."),
    ] = None,
    database: DatabasePath = None,
    source: ServiceSource = None,
    tree: ServiceTree = None,
    debug: options.Debug = False,
) -> int:
    """Open failed queries of a topic again, as if no engine had tried them.

    \b
    Example: metatree service requeue "DGQIn+5troxI" --seq 2
    """
    count = on_database(database, source, tree, lambda kept: _administration(kept).requeue(topic, seq))
    output.note(
        f"opened {count:,} {'query' if count == 1 else 'queries'} again"
        if count
        else "there is no such failed query: `metatree service status` lists them"
    )
    return FOUND if count else NOTHING


@service_app.command("release")
def release(
    topic: Topic,
    database: DatabasePath = None,
    source: ServiceSource = None,
    tree: ServiceTree = None,
    debug: options.Debug = False,
) -> int:
    """Take a topic from the engine that has it, for others to claim; the attempt counts.

    \b
    Example: metatree service release "DGQIn+5troxI"
    """
    done = on_database(database, source, tree, lambda kept: _administration(kept).release(topic))
    output.note("released it" if done else "no engine has this topic: `metatree service status` lists them")
    return FOUND if done else NOTHING


def _lines(found: ServiceShape) -> list[str]:
    waited = f", the oldest for {found['oldest_open_s']:,.0f} s" if found["open"] else ""
    lines = [
        f"{found['open']:,} open{waited}; {found['pending']:,} being answered;"
        f" {found['waiting']:,} waiting for a person; {found['failed']:,} failed"
    ]
    for query in found["queries"][:_LISTED]:
        held = f" by {query['engine']}" if query["status"] == "Pending" and query["engine"] else ""
        tries = f", {output.counted(query['attempts'], 'attempt')}" if query["attempts"] else ""
        lines.append(
            f"  {query['status'].lower()}{held}{tries}: {query['topic']} {query['seq']} of {query['owner']},"
            f" asked {query['asked']}: {_short(query['query'])}"
        )
    more = len(found["queries"]) - _LISTED
    lines += [f"  and {more:,} more; --json lists them"] if more > 0 else []
    lines += [
        f"  {lease['engine']} has {lease['topic']} since {lease['since'] or '?'} until {lease['until']}"
        + (" (ended)" if lease["ended"] else "")
        for lease in found["leases"][:_LISTED]
    ]
    lines += [
        f"  {user['name']} ({user['role']}): "
        + (f"last seen {user['last_seen']}" if user["last_seen"] else "never seen")
        + (f", {output.counted(user['keys'], 'API key')}" if user["keys"] else "")
        for user in found["users"]
    ]
    return [output.visible(line) for line in lines]


def _short(text: str) -> str:
    said = " ".join(text.split())
    return said if len(said) <= _WIDE else said[: _WIDE - 1] + "…"
