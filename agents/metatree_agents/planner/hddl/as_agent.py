"""A plan for an HDDL problem as a planned agent: its tasks are simulated, its preconditions checked live."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from metatree.errors import UserError
from metatree_agents.planner.domain.conditions import FALSE, TRUE, Condition
from metatree_agents.planner.domain.domain import Domain
from metatree_agents.planner.domain.facts import Facts, facts_by_relation
from metatree_agents.planner.domain.model import Action, Goal, Relation
from metatree_agents.planner.domain.network import TOP, Intent
from metatree_agents.planner.hddl._language import Effect, Method, Problem, Variable
from metatree_agents.planner.hddl.plan import HtnPlan

Fact = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PlannedAgent:
    """What `Agents.start` needs for a planned agent."""

    domain: Domain
    goal: Goal
    facts: tuple[Fact, ...]
    network: tuple[Intent, ...]


def as_agent(plan: HtnPlan, problem: Problem) -> PlannedAgent:
    """Return a plan as an agent; UserError where conditions read numbers, which are not simulated.

    Each action becomes a task without a body, with the effects that it has where it stands in the plan; each
    decomposition a rule. Steps wait for those that the plan's partial order names.
    """
    if problem.functions_read():
        raise UserError(
            "--run does not simulate numbers, and conditions of this problem read them: plan without --run"
        )
    domain = _domain(problem)
    network = [
        Intent(
            TOP, (problem.name,), status="pending", kind="rule", action=f"problem {problem.name}", number=1
        )
    ]
    parents: dict[int, tuple[int, Method, int, tuple[int, ...]]] = {}
    for index, one in enumerate(plan.roots):
        parents[one] = (TOP, problem.top, index, plan.roots)
    for made in plan.decompositions:
        for index, one in enumerate(made.subtasks):
            parents[one] = (made.id + 2, problem.domain.methods[made.method], index, made.subtasks)

    def place(task: int) -> tuple[int, tuple[int, ...]]:
        parent, method, index, siblings = parents[task]
        return parent, tuple(siblings[a] + 2 for a, b in sorted(method.order) if b == index)

    for made in plan.decompositions:
        parent, after = place(made.id)
        method = problem.domain.methods[made.method]
        goal = tuple(problem.spelt(name) for name in (made.task, *made.arguments))
        name = f"{problem.spelt(method.name)} #{method.number}"
        network.append(Intent(made.id + 2, goal, parent, after, "pending", "rule", name, number=made.id + 2))
    waits: dict[int, list[int]] = {}
    for first, second in sorted(plan.order or ()):
        waits.setdefault(second, []).append(first + 2)
    world = Facts(domain.library, facts_by_relation(sorted(problem.init)))
    members = problem.members()
    for step in plan.steps:
        action = problem.domain.actions[step.name]
        values = dict(zip((v.name for v in action.parameters), step.arguments, strict=True))
        deletes, adds = _effects(action.effects, values, world, members)
        effects = [(False, f[0], f[1:]) for f in sorted(deletes)]
        effects += [(True, f[0], f[1:]) for f in sorted(adds)]
        world = world.changed(effects)
        parent, after = place(step.id)
        network.append(
            Intent(
                step.id + 2,
                tuple(problem.spelt(name) for name in (step.name, *step.arguments)),
                parent,
                after,
                "pending",
                "task",
                problem.spelt(step.name),
                precondition=ground(action.precondition, values, members),
                effects=tuple(effects),
                cost=1.0,
                number=step.id + 2,
                after_end=tuple(waits.get(step.id, ())),
            )
        )
    return PlannedAgent(domain, (problem.name,), tuple(sorted(problem.init)), tuple(network))


def _domain(problem: Problem) -> Domain:
    domain = Domain(problem.domain.name)
    library = domain.library
    for name, arity in problem.domain.predicates.items():
        library.add(Relation(name, arity))
    for action in problem.domain.actions.values():
        spelt = problem.spelt(action.name)
        library.add(Action(spelt, "task", spelt, tuple(v.name for v in action.parameters), title=spelt))
    for method in problem.domain.methods:
        name = f"{problem.spelt(method.name)} #{method.number}"
        library.add(
            Action(
                name, "rule", problem.spelt(method.task), method.task_terms, title=problem.spelt(method.name)
            )
        )
    if not library.for_goal(problem.name):
        library.add(Action(f"problem {problem.name}", "rule", problem.name, ()))
    library.again = frozenset(one.goal for one in library.actions.values())
    return domain


def _effects(
    effects: Iterable[Effect],
    values: Mapping[str, str],
    world: Facts,
    members: Mapping[str, tuple[str, ...]],
) -> tuple[frozenset[Fact], frozenset[Fact]]:
    """Return what an action deletes and adds in a state."""
    deletes: set[Fact] = set()
    adds: set[Fact] = set()
    for effect in effects:
        for inner in _assigned(effect.bound, values, members):
            if effect.when == TRUE or world.holds(ground(effect.when, inner, members)):
                fact = (effect.relation, *(inner.get(term, term) for term in effect.terms))
                (adds if effect.adds else deletes).add(fact)
    return frozenset(deletes - adds), frozenset(adds)


def _assigned(
    variables: Iterable[Variable], values: Mapping[str, str], members: Mapping[str, tuple[str, ...]]
) -> Iterator[dict[str, str]]:
    listed = list(variables)
    ranges = [dict.fromkeys(name for kind in one.types for name in members.get(kind, ())) for one in listed]
    for chosen in product(*ranges):
        yield {**values, **dict(zip((one.name for one in listed), chosen, strict=True))}


def ground(
    condition: Condition, values: Mapping[str, str], members: Mapping[str, tuple[str, ...]]
) -> Condition:
    """Return a condition without variables, quantifiers, equality and types: facts, `and`, `or`, `not`, `imply`."""
    match condition[0]:
        case "atom":
            return ("atom", condition[1], tuple(values.get(term, term) for term in condition[2]))
        case "=":
            left, right = (values.get(term, term) for term in condition[1:])
            return TRUE if left == right else FALSE
        case "sortof":
            return TRUE if values.get(condition[1], condition[1]) in members.get(condition[2], ()) else FALSE
        case "forall" | "exists":
            bound = [Variable(name, types) for name, types in condition[1]]
            parts = (ground(condition[2], inner, members) for inner in _assigned(bound, values, members))
            return ("and" if condition[0] == "forall" else "or", *parts)
        case _:
            return (condition[0], *(ground(one, values, members) for one in condition[1:]))
