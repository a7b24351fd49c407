"""`metatree plan`: a plan for a problem in HDDL, or for a goal of a domain in TOML or YAML; carried out on demand."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from metatree.errors import UserError
from metatree_agents.cli import _output as output
from metatree_agents.cli._errors import FOUND, LIMIT, NOTHING
from metatree_agents.cli._options import Json, argument, path
from metatree_agents.cli.commands.goals import Store, agents_in, driven, exit_of
from metatree_agents.cli.printing.agents import agent_lines

if TYPE_CHECKING:
    from metatree_agents.cli.schemas.planner import PlanOutput
    from metatree_agents.planner.hddl.limits import SolverLimits
    from metatree_agents.planner.planning.planning import Planned


_IMPROVE_FOR_S = 4.0
"""How long to look for a cheaper plan: with reading and checking, a usual problem takes five seconds."""

_BETWEEN_S = 0.5
"""Seconds between two lines that tell of cheaper plans."""


def plan(
    domain: Annotated[Path, argument("DOMAIN", "The domain: .hddl, .toml or .yaml.", parser=path)],
    problem: Annotated[
        str, argument("PROBLEM", "The problem's .hddl file; for TOML and YAML a goal, `name(value)`.")
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
    improve_for: Annotated[
        float | None,
        typer.Option(
            "--improve-for",
            min=0.0,
            metavar="S",
            help="Spend S more seconds on a cheaper plan, or one of fewer steps without a metric (HDDL). Default: 4.",
        ),
    ] = None,
    first: Annotated[
        bool, typer.Option("--first", help="Print the first plan that is found, as --improve-for 0 does.")
    ] = False,
    memory: Annotated[
        int,
        typer.Option("--memory", min=1, metavar="MB", help="Use at most MB megabytes for the search (HDDL)."),
    ] = 1000,
    store: Store = None,
    json: Json = False,
) -> int:
    """Find a plan for a problem in HDDL, or for a goal of a domain in TOML or YAML, and print it.

    A plan for HDDL is printed in the format of IPC 2020, checked by a verifier of its own. Where the domain is
    partially ordered, lines before it say which steps wait for which others. Without a plan, the exit code is 1 when
    there is none, 3 when a limit was reached: --seconds is for all of it, the check included. A plan that was found is
    made cheaper for some seconds; an interrupt (Ctrl-C) ends that, and the best plan so far is printed.

    \b
    Example: metatree plan transport/domain.hddl transport/pfile01.hddl
    """
    if first and improve_for:
        raise UserError("--first and --improve-for exclude each other: leave one out")
    improve_for_s = 0.0 if first else _IMPROVE_FOR_S if improve_for is None else improve_for
    if domain.suffix.lower() in (".toml", ".yaml", ".yml"):
        return _plan_goal(domain, problem, run, seconds, seed, store, json)
    from metatree_agents.planner.hddl.limits import SolverLimits

    return _plan_hddl(
        domain, path(problem), run, SolverLimits(seconds, memory * 1e6), seed, improve_for_s, store, json
    )


class _Told:
    """Tells of plans as they are found, while cheaper ones are looked for."""

    def __init__(self, unit: str, improve_for_s: float) -> None:
        self.unit = unit
        self.improve_for_s = improve_for_s
        self.last = float("-inf")
        self.untold: tuple[float, float] | None = None

    def __call__(self, seconds: float, cost: float) -> None:
        self.untold = (seconds, cost)
        if self.improve_for_s > 0 and seconds >= self.last + _BETWEEN_S:
            self.tell()

    def tell(self) -> None:
        """Tell of the last plan, unless that is done."""
        if self.untold is None or self.improve_for_s <= 0:
            return
        (seconds, cost), self.untold = self.untold, None
        more = ""
        if self.last < 0:
            more = f"; looking for a cheaper one for {self.improve_for_s:g} s, Ctrl-C takes the best so far"
        self.last = seconds
        shown = f"{cost:g} steps" if self.unit == "steps" else f"cost {cost:g}"
        output.note(f"metatree: a plan of {shown} after {seconds:.1f} s{more}")


def _plan_hddl(
    domain_file: Path,
    problem_file: Path,
    run: bool,
    limits: SolverLimits,
    seed: int,
    improve_for_s: float,
    store: Path | None,
    json: bool,
) -> int:
    from metatree_agents.cli.schemas.planner import PlanFoundOutput, PlanOutput, PlanStepOutput
    from metatree_agents.planner.hddl.as_agent import as_agent
    from metatree_agents.planner.hddl.limits import LimitReached
    from metatree_agents.planner.hddl.parse import read_domain, read_problem
    from metatree_agents.planner.hddl.plan import plan_cost, plan_lines
    from metatree_agents.planner.hddl.solve import solve
    from metatree_agents.planner.hddl.verify import verify_plan

    problem = read_problem(problem_file, read_domain(domain_file))
    told = _Told("steps" if problem.metric is None else "cost", improve_for_s)
    solution = solve(problem, limits, seed=seed, improve_for_s=improve_for_s, found=told)
    told.tell()
    made, ended = solution.plan, solution.ended
    why = "there is no plan" if ended == "none" else ""
    if solution.reached is not None:
        why = f"limit reached: no plan was found {limits.describe(solution.reached)}"
    lines: list[str] = []
    steps: list[PlanStepOutput] = []
    if made is not None:
        try:
            verify_plan(made, problem, limits)
        except LimitReached as exc:
            made, ended = None, "limit"
            why = (
                f"limit reached: a plan was found, but it could not be checked {limits.describe(exc.reason)}"
            )
    if made is not None:
        lines = list(plan_lines(made, problem))
        order = made.order
        if order is None:
            order = frozenset((index - 1, index) for index in range(1, len(made.steps)))
        after: dict[int, list[int]] = {}
        for first, second in order:
            after.setdefault(second, []).append(first)
        steps = [
            PlanStepOutput(
                id=step.id,
                name=problem.spelt(step.name),
                arguments=[problem.spelt(one) for one in step.arguments],
                after=sorted(after.get(step.id, ())),
            )
            for step in made.steps
        ]
    made_plan = PlanOutput(
        ended=ended,
        steps=steps,
        text="\n".join(lines),
        cost=0.0 if made is None else plan_cost(made, problem),
        nodes=solution.nodes,
        seconds=round(solution.seconds, 4),
        why=why,
        agent=None,
        status=None,
        found=[PlanFoundOutput(seconds=round(after_s, 4), cost=cost) for after_s, cost in solution.found],
    )
    if solution.interrupted:
        output.note("metatree: interrupted: this is the cheapest plan so far")
    if not json:
        output.write(map(output.visible, lines))
    if made is None or not run:
        return _print_plan(made_plan, json)
    planned = as_agent(made, problem)
    with agents_in(store, planned.domain) as agents:
        agent = agents.start(planned.goal, planned.facts, network=planned.network)
        return _carried_out(made_plan, agents, agent, json)


def _plan_goal(
    domain_file: Path, goal: str, run: bool, seconds: float, seed: int, store: Path | None, json: bool
) -> int:
    from metatree_agents.planner import Domain, PlanLimits
    from metatree_agents.planner import plan as plan_for
    from metatree_agents.planner.agents.state import AgentOptions
    from metatree_agents.planner.domain.facts import Facts, facts_by_relation
    from metatree_agents.planner.domain.files import facts_of, read_file
    from metatree_agents.planner.domain.given import goal_of
    from metatree_agents.planner.domain.network import TOP, Intent

    data = read_file(domain_file)
    domain = Domain.from_data({"name": domain_file.stem, **data}, source=str(domain_file))
    facts = facts_of(data.get("facts", ()), str(domain_file))
    top_goal = goal_of(goal)
    if run:
        with agents_in(store, domain) as agents:
            agent = agents.start(top_goal, facts, options=AgentOptions(seed=seed, plan_s=seconds))
            return _carried_out(None, agents, agent, json)
    if why := domain.library.why_unreached(top_goal):
        raise UserError(why)
    limits = PlanLimits(seconds=seconds)
    made = plan_for(
        domain.library,
        {TOP: Intent(TOP, top_goal)},
        Facts(domain.library, facts_by_relation(facts)),
        seed=seed,
        limits=limits,
        expand=domain.expand,
    )
    within = (
        f"in {seconds:g} s: raise --seconds" if made.nodes <= limits.nodes else f"in {limits.nodes:,} steps"
    )
    made_plan = _planned(made, f"limit reached: no plan was found {within}")
    if not json:
        output.write(_goal_lines(made))
    return _print_plan(made_plan, json)


def _planned(made: Planned, at_limit: str) -> PlanOutput:
    from metatree_agents.cli.schemas.planner import PlanOutput, PlanStepOutput

    tasks = sorted((one for one in made.network.values() if one.kind == "task"), key=lambda one: one.number)
    return PlanOutput(
        ended={"planned": "solved", "failed": "none", "limit": "limit"}[made.ended],
        steps=[
            PlanStepOutput(
                id=one.id,
                name=one.action,
                arguments=list(one.goal[1:]),
                after=sorted({*one.after, *one.after_end}),
            )
            for one in tasks
        ],
        text="",
        cost=made.cost,
        nodes=made.nodes,
        seconds=0.0,
        why=at_limit if made.ended == "limit" else "" if made.failed is None else made.failed[1],
        agent=None,
        status=None,
        found=[],
    )


def _goal_lines(made: Planned) -> list[str]:
    from metatree_agents.cli.printing.agents import intent_lines

    if made.ended != "planned":
        return []
    return list(intent_lines(sorted(made.network.values(), key=lambda one: one.id)))


def _print_plan(made_plan: PlanOutput, json: bool) -> int:
    if json:
        output.write_object(made_plan.as_json())
    if made_plan.ended != "solved":
        output.note(f"metatree: {output.visible(made_plan.why or 'there is no plan')}")
    return {"solved": FOUND, "none": NOTHING, "limit": LIMIT}[made_plan.ended]


def _carried_out(made_plan: PlanOutput | None, agents: Any, agent: str, json: bool) -> int:
    info = driven(agents, agent)
    if json:
        if made_plan is None:
            output.write_json("goals show", info)
        else:
            made_plan = made_plan.model_copy(update={"agent": info.id, "status": info.status})
            output.write_object(made_plan.as_json())
    else:
        output.write(agent_lines(info))
    return exit_of(info)
