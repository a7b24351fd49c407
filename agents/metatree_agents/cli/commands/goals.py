"""`metatree goals`: list, show, start, run, signal, answer, cancel, retry, explain, and schedules of them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from metatree._util.private import private_folder
from metatree.errors import UserError
from metatree_agents.cli import _output as output
from metatree_agents.cli._errors import FAILED, FOUND, LIMIT, NOTHING, WAITING
from metatree_agents.cli._groups import CommandGroup
from metatree_agents.cli._inputs import imported
from metatree_agents.cli._options import Json, argument, option, path
from metatree_agents.cli.printing.agents import agent_lines, live_tree

if TYPE_CHECKING:
    from metatree_agents.planner import AgentInfo, Agents, Domain
    from metatree_agents.planner.agents.schedules import CronSchedule

goals_app = CommandGroup(help="Goals that agents carry out durably.")

Store = Annotated[
    Path | None,
    option("--store", "FILE", "Where agents are kept; .metatree/agents.db by default.", parser=path),
]
AgentId = Annotated[str, argument("AGENT", "Id of the agent, or its beginning.")]
DomainOption = Annotated[
    str | None,
    option(
        "--domain",
        "DOMAIN",
        "Where functions of its tasks are: MODULE:NAME. Domains in files have none, and need no option.",
    ),
]


def agents_in(store: Path | None, domain: Domain | None = None) -> Agents:
    """Open the agents of a store, made when it is not there."""
    from metatree_agents.planner import Agents

    if store is None:
        store = Path(".metatree") / "agents.db"
        private_folder(store.parent)
    return Agents(store, domain)


def _existing(store: Path | None, domain: str | None = None) -> Agents:
    place = store or Path(".metatree") / "agents.db"
    if not place.exists():
        raise UserError(
            f"there are no agents at {str(place)!r}: `metatree goals start` makes one, or give --store"
        )
    return agents_in(store, None if domain is None else _imported(domain))


def _imported(name: str) -> Domain:
    """Import a domain by `module:name`."""
    from metatree_agents.planner import Domain

    value = imported(name, "--domain", "shop.agents:domain")
    if not isinstance(value, Domain):
        raise UserError(f"--domain {name!r} is no Domain, but {type(value).__name__}")
    return value


def _agent_id(agents: Agents, prefix: str) -> str:
    """Return the id of the agent that begins so."""
    ids = [one[0] for one in agents.all()]
    if prefix in ids:
        return prefix
    matches = [one for one in ids if one.startswith(prefix)]
    if len(matches) != 1:
        what = "no agent" if not matches else f"{len(matches)} agents"
        raise UserError(f"{what} called {prefix!r}: `metatree goals list` lists them")
    return matches[0]


def driven(agents: Agents, agent: str) -> AgentInfo:
    """Drive an agent, shown live on a terminal."""
    with live_tree() as show:
        return agents.run(agent, on_step=show)


def exit_of(info: AgentInfo) -> int:
    """Return the exit code for what an agent has come to."""
    return {"complete": FOUND, "limit": LIMIT, "waiting": WAITING, "failed": FAILED, "cancelled": FAILED}.get(
        info.status, FOUND
    )


def _print(info: AgentInfo, json: bool) -> int:
    if json:
        output.write_json("goals show", info)
    else:
        output.write(agent_lines(info))
    return exit_of(info)


@goals_app.add("list")
def list_(store: Store = None, json: Json = False) -> int:
    """List the agents of a store, the last changed first.

    \b
    Example: metatree goals list
    """
    from metatree_agents.planner.domain.conditions import atom_text

    with _existing(store) as agents:
        listed = list(agents.all())
    if json:
        rows = [dict(zip(("agent", "goal", "status", "changed_at"), one, strict=True)) for one in listed]
        output.write_json("goals list", {"agents": rows})
    elif listed:
        output.write(
            f"{agent}  {status:<9}  {output.visible(atom_text(goal))}" for agent, goal, status, _ in listed
        )
    else:
        output.note("there are no agents")
    return FOUND if listed else NOTHING


@goals_app.add("show")
def show(agent: AgentId, store: Store = None, json: Json = False) -> int:
    """Show an agent: its goals and intents as a tree, its facts as JSON, and what it waits for.

    \b
    Example: metatree goals show 3f2a
    """
    with _existing(store) as agents:
        info = agents.show(_agent_id(agents, agent))
    _print(info, json)
    return FOUND


@goals_app.add("start")
def start(
    domain: Annotated[str, argument("DOMAIN", "A .toml or .yaml file, or MODULE:NAME of a Domain.")],
    goal: Annotated[str, argument("GOAL", "The top-level goal, `name(value, …)`.")],
    fact: Annotated[
        list[str] | None,
        option("--fact", "FACT", "A fact that holds at first, `name(value, …)`; may be repeated."),
    ] = None,
    id: Annotated[  # noqa: A002  # the name of the option
        str | None, option("--id", "AGENT", "Its id; made up by default.")
    ] = None,
    replan: Annotated[
        bool,
        typer.Option(
            "--replan", help="When something fails, plan again from the nearest goal with another way."
        ),
    ] = False,
    wait: Annotated[
        bool, typer.Option("--wait", help="When it is stuck, wait for an event instead of failing.")
    ] = False,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Seed of choices among equal costs.")] = 0,
    no_run: Annotated[bool, typer.Option("--no-run", help="Create it only; `run` drives it.")] = False,
    store: Store = None,
    json: Json = False,
) -> int:
    """Start an agent for a goal and drive it until it ends or waits.

    \b
    Example: metatree goals start delivery.toml "deliver(parcel, harbour)"
    """
    opened, facts = _domain_and_facts(domain, fact)
    with agents_in(store, opened) as agents:
        made = agents.start(goal, facts, id=id, replan=replan, on_stuck="wait" if wait else "fail", seed=seed)
        info = agents.show(made) if no_run else driven(agents, made)
    return _print(info, json)


def _domain_and_facts(domain: str, fact: Sequence[str] | None) -> tuple[Domain, list[tuple[Any, ...]]]:
    """Return a domain of a file or a module, and the facts that its file and the options give."""
    from metatree_agents.planner import Domain
    from metatree_agents.planner.domain.files import facts_of, read_file

    facts: list[tuple[Any, ...]] = []
    if domain.lower().endswith((".toml", ".yaml", ".yml")):
        file = path(domain)
        data = read_file(file)
        opened = Domain.from_data({"name": file.stem, **data}, source=domain)
        facts = facts_of(data.get("facts", ()), domain)
    else:
        opened = _imported(domain)
    facts += facts_of(fact or ())
    return opened, facts


def _json_or_text(text: str) -> Any:
    import json

    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


@goals_app.add("run")
def run_(
    agent: Annotated[str | None, argument("[AGENT]", "Id of the agent; all that can go on.")] = None,
    domain: DomainOption = None,
    store: Store = None,
    json: Json = False,
) -> int:
    """Drive an agent until it ends or waits; without an id, all that nobody drives.

    \b
    Example: metatree goals run 3f2a
    """
    with _existing(store, domain) as agents:
        if agent is not None:
            return _print(driven(agents, _agent_id(agents, agent)), json)
        agents.work(until_idle=True)
    return list_(store=store, json=json)


@goals_app.add("signal")
def signal(
    agent: AgentId,
    event: Annotated[str, argument("EVENT", "`facts`, `assert`, `cancel`, `fail` or `send`.")],
    goal: Annotated[str | None, option("--goal", "GOAL", "The goal that is meant.")] = None,
    add: Annotated[list[str] | None, option("--add", "FACT", "A fact that holds now.")] = None,
    remove: Annotated[list[str] | None, option("--remove", "FACT", "A fact that holds no longer.")] = None,
    why: Annotated[str, typer.Option("--why", metavar="TEXT", help="Why a goal fails.")] = "",
    name: Annotated[str | None, option("--name", "NAME", "The message that is sent.")] = None,
    value: Annotated[
        str | None, option("--value", "JSON", "What the message says; a text that is no JSON is a text.")
    ] = None,
    no_run: Annotated[bool, typer.Option("--no-run", help="Leave it to others to drive the agent.")] = False,
    domain: DomainOption = None,
    store: Store = None,
    json: Json = False,
) -> int:
    """Tell an agent of an event: facts of dynamic relations, a goal to assert, cancel or fail, or a message.

    \b
    Example: metatree goals signal 3f2a facts --add "open(door)"
    Example: metatree goals signal 3f2a send --name "paid 17" --value 250
    """
    from metatree_agents.planner.domain.files import facts_of

    given: dict[str, Any] = {}
    if event == "send":
        if name is None:
            raise UserError(f"which message? `metatree goals signal {agent} send --name NAME --value JSON`")
        given = {"name": name, "value": None if value is None else _json_or_text(value)}
    elif event == "facts":
        given = {
            "add": [list(one) for one in facts_of(add or ())],
            "remove": [list(one) for one in facts_of(remove or ())],
        }
    elif goal is not None:
        given = {"goal": goal, **({"why": why} if why else {})}
    elif event in ("assert", "fail"):
        raise UserError(f"which goal? `metatree goals signal {agent} {event} --goal NAME(VALUE)`")
    with _existing(store, domain) as agents:
        agent_id = _agent_id(agents, agent)
        agents.event(agent_id, event, **given)
        info = agents.show(agent_id) if no_run else driven(agents, agent_id)
    return _print(info, json)


@goals_app.add("answer")
def answer_(
    agent: AgentId,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The answer; - or @FILE too.")],
    domain: DomainOption = None,
    store: Store = None,
    json: Json = False,
) -> int:
    """Answer the question that an agent waits for, the oldest when there are several; the agent goes on.

    \b
    Example: metatree goals answer 3f2a yes
    """
    from metatree_agents.cli._inputs import text_of

    reply = text_of(text, what="answer")
    with _existing(store, domain) as agents:
        agent_id = _agent_id(agents, agent)
        questions = [] if agents.board is None else agents.board.open_questions(run=agent_id)
        if not questions:
            raise UserError(f"agent {agent_id!r} asks nothing")
        agents.answer(questions[0].id, reply)
        info = driven(agents, agent_id)
    return _print(info, json)


@goals_app.add("cancel")
def cancel(agent: AgentId, domain: DomainOption = None, store: Store = None, json: Json = False) -> int:
    """Cancel an agent: what is at work is cancelled, and what was done is undone where that is declared.

    \b
    Example: metatree goals cancel 3f2a
    """
    from metatree.errors import LeaseLost

    with _existing(store, domain) as agents:
        agent_id = _agent_id(agents, agent)
        agents.cancel(agent_id)
        try:
            info = agents.run(agent_id)
        except (LeaseLost, UserError):  # whoever drives it hears of it
            info = agents.show(agent_id)
    _print(info, json)
    return FOUND


@goals_app.add("retry")
def retry(
    agent: AgentId,
    no_run: Annotated[bool, typer.Option("--no-run", help="Leave it to others to drive the agent.")] = False,
    domain: DomainOption = None,
    store: Store = None,
    json: Json = False,
) -> int:
    """Try again what failed in an agent, and go on from there; what is complete is kept.

    \b
    Example: metatree goals retry 3f2a
    """
    with _existing(store, domain) as agents:
        agent_id = _agent_id(agents, agent)
        agents.retry(agent_id)
        info = agents.show(agent_id) if no_run else driven(agents, agent_id)
    return _print(info, json)


@goals_app.add("schedule")
def schedule(
    domain: Annotated[str, argument("DOMAIN", "A .toml or .yaml file, or MODULE:NAME of a Domain.")],
    goal: Annotated[str, argument("GOAL", "The top-level goal, `name(value, …)`.")],
    cron: Annotated[
        str,
        option("--cron", "TIMES", "Minute, hour, day of the month, month, day of the week: '30 6 * * 1-5'."),
    ],
    name: Annotated[str, option("--name", "NAME", "What it is called; one of this name is replaced.")],
    zone: Annotated[
        str, option("--zone", "ZONE", "The time zone of the times, such as Europe/Berlin.")
    ] = "UTC",
    missed: Annotated[
        str, option("--missed", "WHICH", "Begun for times without a process: the `last`, `all` or `none`.")
    ] = "last",
    overlap: Annotated[
        str, option("--overlap", "HOW", "While the one before has not ended: `skip` or `start`.")
    ] = "skip",
    fact: Annotated[
        list[str] | None,
        option("--fact", "FACT", "A fact that holds at first, `name(value, …)`; may be repeated."),
    ] = None,
    store: Store = None,
    json: Json = False,
) -> int:
    """Begin an agent for a goal again and again; `metatree goals work` and other workers do so.

    \b
    Example: metatree goals schedule mill.toml "grind(rye)" --cron "30 6 * * 1-5" --zone Europe/Berlin --name mill
    """
    from typing import cast

    opened, facts = _domain_and_facts(domain, fact)
    with agents_in(store, opened) as agents:
        made = agents.schedule(
            name, cron, goal, facts, zone=zone, missed=cast(Any, missed), overlap=cast(Any, overlap)
        )
    return _print_schedules([made], json)


@goals_app.add("schedules")
def schedules(store: Store = None, json: Json = False) -> int:
    """List the schedules of a store, with their next times.

    \b
    Example: metatree goals schedules
    """
    with _existing(store) as agents:
        listed = agents.schedules()
    return _print_schedules(listed, json)


@goals_app.add("unschedule")
def unschedule(
    name: Annotated[str, argument("NAME", "What the schedule is called.")],
    store: Store = None,
    json: Json = False,
) -> int:
    """Forget a schedule; the agents that it has begun go on.

    \b
    Example: metatree goals unschedule mill
    """
    with _existing(store) as agents:
        agents.unschedule(name)
        listed = agents.schedules()
    _print_schedules(listed, json)
    return FOUND


def _print_schedules(listed: Sequence[CronSchedule], json: bool) -> int:
    from metatree_agents.planner.domain.conditions import atom_text

    if json:
        output.write_json("goals schedules", {"schedules": listed})
    elif listed:
        for one in listed:
            at = (
                "never again"
                if one.next_at is None
                else f"{datetime.fromtimestamp(one.next_at, UTC):%Y-%m-%d %H:%MZ}"
            )
            text = f"{one.name}  {one.cron}  {one.zone}  {atom_text(one.goal)}, next {at}"
            output.write([output.visible(text + (f", last {one.last}" if one.last else ""))])
    else:
        output.note("there are no schedules")
    return FOUND if listed else NOTHING


@goals_app.add("work")
def work(
    domain: DomainOption = None,
    store: Store = None,
) -> int:
    """Drive agents and begin scheduled ones as they come, until it is stopped.

    \b
    Example: metatree goals work --domain shop.agents:domain
    """
    with _existing(store, domain) as agents:
        output.note("at work; Ctrl-C stops it, and agents go on with the next process")
        agents.work()
    return FOUND


@goals_app.add("explain")
def explain(
    agent: AgentId,
    goal: Annotated[str | None, option("--goal", "NAME", "Only goals of this name.")] = None,
    store: Store = None,
    json: Json = False,
) -> int:
    """Say for every goal of an agent which candidates were chosen, eligible, potential, struck or out, and why.

    \b
    Example: metatree goals explain 3f2a
    """
    from metatree_agents.planner.domain.conditions import atom_text

    with _existing(store) as agents:
        agent_id = _agent_id(agents, agent)
        considered = [one for one in agents.explain(agent_id) if goal is None or one["goal"][0] == goal]
    if json:
        output.write_json("goals explain", {"agent": agent_id, "considered": considered})
        return FOUND if considered else NOTHING
    last = ""
    for one in considered:
        text = atom_text(one["goal"])
        if text != last:
            output.write([output.styled(output.visible(text), "bold")])
            last = text
        output.write([output.visible(f"  {one['verdict']:<9} {one['candidate']}: {one['why']}".rstrip(": "))])
    return FOUND if considered else NOTHING
