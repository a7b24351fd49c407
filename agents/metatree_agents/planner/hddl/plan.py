"""Plans: what is done in which order, how tasks were decomposed, and the text of both in the format of IPC 2020."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import fsum

from metatree_agents.planner.hddl._language import Problem


@dataclass(frozen=True, slots=True)
class Step:
    """An action in a plan."""

    id: int
    name: str
    arguments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Decomposition:
    """A compound task in a plan, with the method that was chosen for it."""

    id: int
    task: str
    arguments: tuple[str, ...]
    method: int
    """Its number in the domain."""
    values: tuple[str, ...]
    """Of the method's parameters."""
    subtasks: tuple[int, ...]
    """Ids of what it was decomposed into, in the order of the method's subtasks."""


@dataclass(frozen=True, slots=True)
class HtnPlan:
    """A solution: actions in an order, decompositions, and the ids of the tasks of the initial network."""

    steps: tuple[Step, ...]
    roots: tuple[int, ...]
    """In the order of the problem's subtasks."""
    decompositions: tuple[Decomposition, ...]
    order: frozenset[tuple[int, int]] | None = field(default=None, compare=False)
    """Pairs of ids of steps that have to keep their order; None when all have to."""

    def __len__(self) -> int:
        return len(self.steps)


def plan_cost(plan: HtnPlan, problem: Problem) -> float:
    """Return what a plan costs by the problem's metric; without one, its number of steps.

    Raises:
        UserError: a cost has no value in `:init`.
    """
    return fsum(problem.step_cost(step.name, step.arguments) for step in plan.steps)


def plan_lines(plan: HtnPlan, problem: Problem) -> Iterator[str]:
    """Yield the lines of a plan in the format of IPC 2020, names spelt as in the files.

    A partial order comes before it, one line for each step that has to wait, which readers of the format skip.
    """
    if plan.order is not None:
        waits: dict[int, list[int]] = {}
        for first, second in plan.order:
            waits.setdefault(second, []).append(first)
        for step in plan.steps:
            after = " ".join(map(str, sorted(waits.get(step.id, ()))))
            yield f"; {step.id} after {after}" if after else f"; {step.id} first"
    if problem.metric is not None:
        yield f"; cost {plan_cost(plan, problem):g}"

    def words(name: str, arguments: Sequence[str]) -> str:
        return " ".join([problem.spelt(name), *map(problem.spelt, arguments)])

    yield "==>"
    for step in plan.steps:
        yield f"{step.id} {words(step.name, step.arguments)}"
    yield f"root {' '.join(map(str, plan.roots))}".rstrip()
    for one in plan.decompositions:
        method = problem.spelt(problem.domain.methods[one.method].name)
        into = " ".join(map(str, one.subtasks))
        yield f"{one.id} {words(one.task, one.arguments)} -> {method} {into}".rstrip()
    yield "<=="
