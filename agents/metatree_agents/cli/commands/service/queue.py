"""`metatree service queue`: what is queued, who holds what, what failed, and what can be done about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from metatree_agents.cli import _options as options
from metatree_agents.cli import _output as output
from metatree_agents.cli._errors import FOUND, NOTHING
from metatree_agents.cli._groups import CommandGroup
from metatree_agents.cli.commands.service._database import ServiceOptions

if TYPE_CHECKING:
    from metatree_agents.cli.schemas.service import ServiceOutput
    from metatree_agents.service.accounts.admin import Administration
    from metatree_agents.service.database.database import ServiceDatabase

_LISTED = 20
_WIDE = 60

queue_app = CommandGroup(help="What is queued, held and failed.")

Topic = Annotated[str, options.argument("TOPIC")]


def _administration(database: ServiceDatabase) -> Administration:
    from metatree_agents.service.accounts.admin import Administration
    from metatree_agents.service.queue.queue import Queue

    return Administration(database, Queue(database))


@queue_app.add("status")
def status(
    *,
    service: ServiceOptions,
    json: options.Json = False,
) -> int:
    """Print what is queued, which engine holds what since when, what failed, and who was here (times in UTC).

    \b
    Example: metatree service queue status --source ~/src/requests
    """
    from metatree_agents.cli.schemas.service import ServiceOutput

    async def looked(opened: ServiceDatabase) -> dict[str, Any]:
        administration = _administration(opened)
        return {**await administration.overview(), "Engines": await administration.engines()}

    overview = service.call(looked)
    model = ServiceOutput.model_validate(overview)
    if json:
        output.write_json("service queue status", model)
    else:
        output.write(_lines(model))
    return FOUND


@queue_app.add("requeue")
def requeue(
    topic: Topic,
    seq: Annotated[
        int | None,
        typer.Option("--seq", min=1, metavar="N", help="This query alone; all of the topic by default."),
    ] = None,
    *,
    service: ServiceOptions,
) -> int:
    """Open failed queries of a topic again, as if no engine had tried them.

    \b
    Example: metatree service queue requeue "DGQIn+5troxI" --seq 2
    """
    count = service.call(lambda opened: _administration(opened).requeue(topic, seq))
    output.note(
        f"opened {count:,} {'query' if count == 1 else 'queries'} again"
        if count
        else "there is no such failed query: `metatree service queue status` lists them"
    )
    return FOUND if count else NOTHING


@queue_app.add("release")
def release(
    topic: Topic,
    *,
    service: ServiceOptions,
) -> int:
    """Take a topic from the engine that has it, for others to claim; the attempt counts.

    \b
    Example: metatree service queue release "DGQIn+5troxI"
    """
    done = service.call(lambda opened: _administration(opened).release(topic))
    output.note(
        "released it" if done else "no engine has this topic: `metatree service queue status` lists them"
    )
    return FOUND if done else NOTHING


@queue_app.add("stop")
def stop(
    topic: Topic,
    seq: Annotated[
        int | None,
        typer.Option("--seq", min=1, metavar="N", help="This query alone; all of the topic by default."),
    ] = None,
    *,
    service: ServiceOptions,
) -> int:
    """Stop the searches for the queries of a topic; what they have found is kept, and their engine is free.

    \b
    Example: metatree service queue stop "DGQIn+5troxI" --seq 2
    """
    count = service.call(lambda opened: _stopped(opened, topic, seq))
    output.note(
        f"stopped {count:,} {'query' if count == 1 else 'queries'}"
        if count
        else "nothing is searched or queued there: `metatree service queue status` lists what is"
    )
    return FOUND if count else NOTHING


async def _stopped(database: ServiceDatabase, topic: str, seq: int | None) -> int:
    from metatree_agents.service.queue.queue import Queue
    from metatree_agents.service.queue.stopping import Stopping

    # The last first, so that no engine is given another of them in between.
    numbers = [seq] if seq is not None else [query.seq for query in await Queue(database).thread(topic)][::-1]
    became = [await Stopping(database).stop(topic, number, by="an administrator") for number in numbers]
    return sum(each in ("searching", "queued") for each in became)


def _lines(model: ServiceOutput) -> list[str]:
    from metatree_agents.service.queue.statuses import SAID

    waited = f", the oldest for {model.oldest_open_s:,.0f} s" if model.open else ""
    lines = [
        f"{model.open:,} {SAID['Open']}{waited}; {model.pending:,} {SAID['Pending']};"
        f" {model.waiting:,} {SAID['Waiting']}; {model.failed:,} {SAID['Failed']}"
    ]
    connected = [engine.name for engine in model.engines if engine.connected]
    lines.append(
        f"connected: {', '.join(connected)}"
        if connected
        else "nobody is searching: no engine is connected; `metatree service worker` or `metatree serve` is one"
    )
    for query in model.queries[:_LISTED]:
        engine = f" by {query.engine}" if query.status == "Pending" and query.engine else ""
        tries = f", {output.counted(query.attempts, 'attempt')}" if query.attempts else ""
        lines.append(
            f"  {SAID.get(query.status, query.status)}{engine}{tries}: {query.topic} {query.seq} of {query.owner},"
            f" asked {query.asked}: {output.one_line(query.query, _WIDE)}"
        )
    more = len(model.queries) - _LISTED
    lines += [f"  and {more:,} more; --json lists them"] if more > 0 else []
    lines += [
        f"  {lease.engine} has {lease.topic} since {lease.since or '?'} until {lease.until}"
        + (" (ended)" if lease.ended else "")
        for lease in model.leases[:_LISTED]
    ]
    lines += [
        f"  {user.name} ({user.role}): "
        + (f"last seen {user.last_seen}" if user.last_seen else "never seen")
        + (f", {output.counted(user.keys, 'API key')}" if user.keys else "")
        for user in model.users
    ]
    return [output.visible(line) for line in lines]
