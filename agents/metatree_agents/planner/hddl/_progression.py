"""Best-first search over states and partially ordered networks, for what depth-first search leaves out.

Tasks of different parents may be done in between each other, and a task may be decomposed into itself. A node is a
state with the tasks that remain; one of the tasks that nothing precedes is decomposed down to an action, which is done.
Only then another task has its turn, so that a method's precondition holds where its first step is.

Source: Höller, Bercher, Behnke, Biundo 2020, "HTN Planning as Heuristic Progression Search"; the estimate here is the
number of tasks that remain, each with a lower bound on its actions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any

from metatree_agents.planner.hddl._compiled import Arguments, Compiled
from metatree_agents.planner.hddl._depth_first import Searched, plan_of

World = tuple[frozenset[Arguments], ...]
_TASKS = 4
"""Tasks, or facts, that are copied in the time that a node takes anyway."""


@dataclass(frozen=True, slots=True)
class _Task:
    id: int
    task: int
    arguments: Arguments
    before: frozenset[int]
    """Ids of tasks that have to be done first, but for those which have to be done before one of these anyway."""


@dataclass(frozen=True, slots=True)
class _Node:
    world: World
    tasks: tuple[_Task, ...]
    focus: frozenset[int]
    """Of these one is next; empty: of all that nothing precedes."""
    estimate: float
    above: _Node | None
    did: tuple[Any, ...] | None


def progress(problem: Compiled, *, nodes: int) -> Searched:
    """Search once; `exhausted` means that there is no plan. Raises LimitReached at the problem's limits.

    A node counts as several where many tasks remain, since it has a list of its own.
    """
    return _Search(Compiled(problem.problem, problem.limits, pull=False)).run(nodes)


class _Search:
    def __init__(self, problem: Compiled) -> None:
        self.problem = problem
        self.ids = 0
        self.steps = {
            task: min((method.steps for method in methods), default=float("inf"))
            for task, methods in problem.methods.items()
        }

    def run(self, nodes: int) -> Searched:
        world = tuple(frozenset(facts) for facts in self.problem.initial)
        first = _Node(world, (_Task(0, -1, (), frozenset()),), frozenset(), 0.0, None, None)
        heap = [(0.0, 0, first)]
        visited: set[Any] = set()
        seen = spent = 0
        look = self.problem.limits.step
        while heap:
            if spent >= nodes:
                return Searched(None, seen, False, False)
            node = heappop(heap)[2]
            seen += 1
            if not node.tasks:
                if self.problem.goal(list(node.world)):  # type: ignore[arg-type]  # only read
                    trail = _trail(node)
                    return Searched(plan_of(self.problem, trail), seen, False, False, trail)
                continue
            for following in self._following(node):
                weight = 1 + (len(node.tasks) + sum(map(len, node.world))) // _TASKS
                spent += weight
                look(weight)
                key = _key(following)
                if key not in visited:
                    visited.add(key)
                    heappush(heap, (following.estimate, -len(visited), following))
        return Searched(None, seen, True, True)

    def _following(self, node: _Node) -> Iterator[_Node]:
        actions = self.problem.actions
        for task in node.tasks:
            if task.before or (node.focus and task.id not in node.focus):
                continue
            if task.task in actions:
                action = actions[task.task]
                if action.applicable(node.world, task.arguments):  # type: ignore[arg-type]
                    add, delete = action.effects(node.world, task.arguments)  # type: ignore[arg-type]
                    world = list(node.world)
                    for relation, arguments in delete:
                        world[relation] = world[relation] - {arguments}
                    for relation, arguments in add:
                        world[relation] = world[relation] | {arguments}
                    rest = self._without(node.tasks, task, (), frozenset())
                    yield self._node(
                        tuple(world), rest, frozenset(), node, ("step", task.id, task.task, task.arguments)
                    )
            else:
                yield from self._decomposed(node, task)

    def _decomposed(self, node: _Node, task: _Task) -> Iterator[_Node]:
        methods = self.problem.methods[task.task] if task.task >= 0 else [self.problem.top]
        for method in methods:
            for values in method.instances(node.world, task.arguments):  # type: ignore[arg-type]
                count = len(method.subtasks)
                ids = tuple(range(self.ids + 1, self.ids + 1 + count))
                self.ids += count
                made = []
                bound = method.bind(values)
                # Those directly before it: they wait for the others, and all of these for each would be a square.
                before: list[set[int]] = [set() for _ in ids]
                for first, second in method.source.order:
                    before[second].add(ids[first])
                for index, number in enumerate(method.subtasks):
                    made.append(_Task(ids[index], number, bound[index], frozenset(before[index])))
                rest = self._without(node.tasks, task, tuple(made), frozenset(ids))
                # The initial network's tasks are all the same to each other.
                focus = frozenset(ids) if task.task >= 0 else frozenset()
                yield self._node(
                    node.world, rest, focus, node, ("method", task.id, task, method, values, ids)
                )

    def _without(
        self, tasks: tuple[_Task, ...], done: _Task, made: tuple[_Task, ...], ids: frozenset[int]
    ) -> tuple[_Task, ...]:
        """Return the tasks with others in the place of one; what waited for it waits for those."""
        rest: list[_Task] = []
        for task in tasks:
            if task.id == done.id:
                rest += made
            elif done.id in task.before:
                rest.append(_Task(task.id, task.task, task.arguments, (task.before - {done.id}) | ids))
            else:
                rest.append(task)
        return tuple(rest)

    def _node(
        self,
        world: World,
        tasks: tuple[_Task, ...],
        focus: frozenset[int],
        above: _Node,
        did: tuple[Any, ...],
    ) -> _Node:
        estimate = len(tasks) + sum(self.steps.get(task.task, 1.0) for task in tasks)
        return _Node(world, tasks, focus, estimate, above, did)


def _key(node: _Node) -> Any:
    place = {task.id: index for index, task in enumerate(node.tasks)}
    tasks = tuple((t.task, t.arguments, frozenset(place[b] for b in t.before)) for t in node.tasks)
    return node.world, tasks, frozenset(place[one] for one in node.focus)


def _trail(node: _Node) -> list[tuple[Any, ...]]:
    trail = []
    at: _Node | None = node
    while at is not None:
        if at.did is not None:
            trail.append(at.did)
        at = at.above
    return trail[::-1]
