"""`metatree plan`: a plan for a problem in HDDL, or for a goal of a domain in TOML or YAML; carried out on demand."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from metatree.errors import UserError
from metatree_agents.cli import _output as output
from metatree_agents.cli._exit_codes import FOUND, LIMIT, NOTHING
from metatree_agents.cli._intent_tree import agent_lines
from metatree_agents.cli._options import Debug, Json, given, path
from metatree_agents.cli.commands.agents import Store, agents_in, driven, exit_of
from metatree_agents.cli.schemas.planner import PlanShape, PlanStepShape

if TYPE_CHECKING:
    from metatree_agents.planner.hddl.limits import Limits
    from metatree_agents.planner.planning.planning import Planned


def plan(
    domain: Annotated[
        Path, typer.Argument(parser=path, metavar="DOMAIN", help="The domain: .hddl, .toml or .yaml.")
    ],
    problem: Annotated[
        str,
        typer.Argument(
            parser=given,
            metavar="PROBLEM",
            help="The problem's .hddl file; for TOML and YAML a goal, `name(value)`.",
        ),
    ],
    run: Annotated[
        bool,
        typer.Option("--run", help="Carry the plan out as a durable agent; actions of HDDL are simulated."),
    ] = False,
    seconds: Annotated[
        float,
        typer.Option(
            "--seconds", min=0.001, metavar="S", help="Take at most S seconds, checking the plan included."
        ),
    ] = 60.0,
    seed: Annotated[
        int,
        typer.Option(
            "--seed", metavar="N", help="Seed of what is drawn at random; the same gives the same plan."
        ),
    ] = 0,
    shorter: Annotated[
        float,
        typer.Option(
            "--shorter", min=0.0, metavar="S", help="Spend S more seconds on a plan with fewer steps (HDDL)."
        ),
    ] = 0.0,
    memory: Annotated[
        int,
        typer.Option("--memory", min=1, metavar="MB", help="Use at most MB megabytes for the search (HDDL)."),
    ] = 1000,
    store: Store = None,
    json: Json = False,
    debug: Debug = False,
) -> int:
    """Find a plan for a problem in HDDL, or for a goal of a domain in TOML or YAML, and print it.

    A plan for HDDL is printed in the format of IPC 2020, checked by a verifier of its own. Where the domain is
    partially ordered, lines before it say which steps wait for which others. Without a plan, the exit code is 1 when
    there is none, 3 when a limit was reached: --seconds is for all of it, the check included.

    \b
    Example: metatree plan transport/domain.hddl transport/pfile01.hddl
    """
    if domain.suffix.lower() in (".toml", ".yaml", ".yml"):
        return _plan_goal(domain, problem, run, seconds, seed, store, json)
    from metatree_agents.planner.hddl.limits import Limits

    return _plan_hddl(domain, Path(problem), run, Limits(seconds, memory * 1e6), seed, shorter, store, json)


def _plan_hddl(
    domain_file: Path,
    problem_file: Path,
    run: bool,
    limits: Limits,
    seed: int,
    shorter_s: float,
    store: Path | None,
    json: bool,
) -> int:
    from metatree_agents.planner.hddl.as_agent import as_agent
    from metatree_agents.planner.hddl.limits import LimitReached
    from metatree_agents.planner.hddl.parse import read_domain, read_problem
    from metatree_agents.planner.hddl.plan import plan_lines
    from metatree_agents.planner.hddl.solve import solve
    from metatree_agents.planner.hddl.verify import verify_plan

    problem = read_problem(problem_file, read_domain(domain_file))
    found = solve(problem, limits, seed=seed, shorter_s=shorter_s)
    made, ended = found.plan, found.ended
    why = "there is no plan" if ended == "none" else ""
    if found.reached is not None:
        why = f"limit reached: no plan was found {limits.said(found.reached)}"
    lines: list[str] = []
    steps: list[PlanStepShape] = []
    if made is not None:
        try:
            verify_plan(made, problem, limits)
        except LimitReached as exc:
            made, ended = None, "limit"
            why = f"limit reached: a plan was found, but it could not be checked {limits.said(exc.reason)}"
    if made is not None:
        lines = list(plan_lines(made, problem))
        order = made.order
        if order is None:
            order = frozenset((index - 1, index) for index in range(1, len(made.steps)))
        after: dict[int, list[int]] = {}
        for first, second in order:
            after.setdefault(second, []).append(first)
        steps = [
            PlanStepShape(
                id=step.id,
                name=problem.spelt(step.name),
                arguments=[problem.spelt(one) for one in step.arguments],
                after=sorted(after.get(step.id, ())),
            )
            for step in made.steps
        ]
    shape = PlanShape(
        ended=ended,
        steps=steps,
        text="\n".join(lines),
        cost=float(len(steps)),
        nodes=found.nodes,
        seconds=round(found.seconds, 4),
        why=why,
        agent=None,
        status=None,
    )
    if not json:
        output.write(lines)
    if made is None or not run:
        return _ended(shape, json)
    planned = as_agent(made, problem)
    with agents_in(store, planned.domain) as agents:
        agent = agents.start(planned.goal, planned.facts, network=planned.network)
        return _carried_out(shape, agents, agent, json)


def _plan_goal(
    domain_file: Path, goal: str, run: bool, seconds: float, seed: int, store: Path | None, json: bool
) -> int:
    from metatree_agents.planner import Domain, PlanLimits
    from metatree_agents.planner import plan as plan_for
    from metatree_agents.planner.agents.state import AgentOptions, facts_from
    from metatree_agents.planner.domain.domain import goal_of
    from metatree_agents.planner.domain.facts import Facts
    from metatree_agents.planner.domain.files import facts_of, read_file
    from metatree_agents.planner.domain.network import TOP, Intent

    data = read_file(domain_file)
    domain = Domain.from_data({"name": domain_file.stem, **data}, source=str(domain_file))
    facts = facts_of(data)
    wanted = goal_of(goal)
    if run:
        with agents_in(store, domain) as agents:
            agent = agents.start(wanted, facts, options=AgentOptions(seed=seed, plan_s=seconds))
            return _carried_out(None, agents, agent, json)
    if not domain.library.for_goal(wanted[0]):
        known = ", ".join(sorted({one.goal for one in domain.library.actions.values()})) or "none"
        raise UserError(f"no rule and no task reaches the goal {wanted[0]!r} (known goals: {known})")
    made = plan_for(
        domain.library,
        {TOP: Intent(TOP, wanted)},
        Facts(domain.library, facts_from(facts)),
        seed=seed,
        limits=PlanLimits(seconds=seconds),
        expand=domain.expand,
    )
    shape = _goal_shape(made)
    if not json:
        output.write(_goal_lines(made))
    return _ended(shape, json)


def _goal_shape(made: Planned) -> PlanShape:
    tasks = sorted((one for one in made.network.values() if one.kind == "task"), key=lambda one: one.number)
    return PlanShape(
        ended={"planned": "solved", "failed": "none", "limit": "limit"}[made.ended],
        steps=[
            PlanStepShape(
                id=one.id,
                name=one.action,
                arguments=list(one.goal[1:]),
                after=sorted({*one.after, *one.waits}),
            )
            for one in tasks
        ],
        text="",
        cost=made.cost,
        nodes=made.nodes,
        seconds=0.0,
        why="" if made.failed is None else made.failed[1],
        agent=None,
        status=None,
    )


def _goal_lines(made: Planned) -> list[str]:
    from metatree_agents.cli._intent_tree import intent_lines

    if made.ended != "planned":
        return []
    return list(intent_lines(sorted(made.network.values(), key=lambda one: one.id)))


def _ended(shape: PlanShape, json: bool) -> int:
    if json:
        output.write_json(shape)
    if shape["ended"] != "solved":
        output.note(f"metatree: {output.visible(shape['why'] or 'there is no plan')}")
    return {"solved": FOUND, "none": NOTHING, "limit": LIMIT}[shape["ended"]]


def _carried_out(shape: PlanShape | None, agents: Any, agent: str, json: bool) -> int:
    info = driven(agents, agent)
    if json:
        from metatree_agents.cli.schemas.planner import agent_shape

        if shape is None:
            output.write_json(agent_shape(info))
        else:
            output.write_json({**shape, "agent": info.id, "status": info.status})
    else:
        output.write(agent_lines(info))
    return exit_of(info)
