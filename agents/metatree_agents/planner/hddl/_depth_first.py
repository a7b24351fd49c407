"""Depth-first search over the decompositions of a problem, one task after the other, the state changed in place.

Methods are tried cheapest first, and only those whose pulled-up preconditions hold. Where a network leaves an order
open, one is chosen, at random from the second run on. A pair of state and remaining tasks is visited once, and a task
is not decomposed into itself before anything has changed. A run that has come to its share of dead ends is given up,
and the next one draws its choices at random.

Dead ends are counted since the run last came nearer to the end. Lost: counting nodes, since a plan for 300 packages has
more steps than a run had nodes, and what followed filled the memory.

Source: Nau et al. 1999 (SHOP); restarts after Gomes, Selman, Kautz 1998; loop detection after HyperTensioN
(see pullup).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from random import Random
from typing import Any

from metatree_agents.planner.hddl._compiled import Arguments, Change, Compiled, CompiledMethod, State
from metatree_agents.planner.hddl._outlook import Outlook, Want
from metatree_agents.planner.hddl.plan import Decomposition, HtnPlan, Step


class TaskList:
    """The tasks that remain, first things first; shared by all searches that have the same rest."""

    __slots__ = ("above", "arguments", "hash", "id", "rest", "root", "salt", "steps", "task")

    def __init__(
        self,
        task: int,
        arguments: Arguments,
        number: int,
        rest: TaskList | None,
        above: Above | None,
        steps: float = 0.0,
        salt: int = 0,
        root: int = -1,
    ) -> None:
        self.task = task
        self.arguments = arguments
        self.id = number
        self.rest = rest
        self.above = above
        self.steps: float = steps if rest is None else steps + rest.steps
        """A lower bound on the actions that remain."""
        self.root = root
        """Place of the task of the initial network that this one is or comes from."""
        self.salt = salt
        """Tells what is looked at anew, deeper, from what was looked at before."""
        self.hash: int = hash((task, arguments, salt, rest.hash if rest is not None else 0))


class Above:
    """The decompositions above a task, nearest first."""

    __slots__ = ("above", "arguments", "cut", "deep", "looked_at", "state", "task")

    def __init__(self, task: int, arguments: Arguments, state: int, above: Above | None) -> None:
        self.task = task
        self.arguments = arguments
        self.state = state
        self.above = above
        self.looked_at: dict[Arguments, int] = {}
        """With what arguments the same task was looked at below this one, in one state, and how deep."""
        self.deep = 1
        """How deep it may be."""
        self.cut = False
        """Whether it was to be deeper somewhere."""


@dataclass(slots=True)
class Searched:
    """What a run came to."""

    plan: HtnPlan | None
    nodes: int
    tried_all: bool
    """Whether no way is left, in the order that was chosen for open orders."""
    exhausted: bool
    """Whether, besides, no task was given up because it came to itself."""
    trail: list[tuple[Any, ...]] = field(default_factory=list)
    """The decompositions and the steps of the plan, in the order in which they happen."""


def search(
    problem: Compiled,
    *,
    dead_ends: int,
    rng: Random | None = None,
    once: bool = False,
    max_depth: int = 100_000,
    cheaper_than: float | None = None,
    thorough: bool = False,
) -> Searched:
    """Search once; raises LimitReached at the problem's limits.

    Args:
        problem: ready to be searched.
        dead_ends: how many to come to before giving up. They are counted anew whenever fewer actions than ever remain,
            as far as one knows: a large problem has more of everything.
        rng: draws the order of methods, of their instances and of unordered tasks; None for the written order.
        once: look only once at a task that recursion comes to in one state, by whatever way, and at what is near
            first: a short path through a graph is found in the time that the graph takes, but ways that differ in what
            follows are left out.
        max_depth: longest path from the root, or from the last node where fewer actions than ever remained.
        cheaper_than: look only for plans that cost less.
        thorough: try the methods that take most steps first.
    """
    return Run(problem, dead_ends, rng, once, max_depth, cheaper_than, thorough).search()


@dataclass(slots=True)
class Run:
    """A state that steps change, and what a search of it keeps."""

    problem: Compiled
    dead_ends: int
    rng: Random | None
    once: bool
    max_depth: int
    cheaper_than: float | None
    thorough: bool
    done: float = 0.0
    """What the steps on the trail cost, where that matters."""
    hash: int = 0
    """Of the state."""
    ids: int = 0
    trail: list[tuple[Any, ...]] = field(default_factory=list)
    pruned: bool = False
    state: State = field(init=False)
    steps: dict[int, float] = field(init=False)
    """Task -> a lower bound on its actions."""
    outlook: Outlook = field(init=False)
    last: dict[Change, int] = field(default_factory=dict)
    """What the end needs -> the last task of the initial network that may bring it about."""
    due: dict[int, list[Want]] = field(default_factory=dict)
    """Place of a task of that network -> what has to hold before it, since no other will bring it about."""

    def __post_init__(self) -> None:
        problem = self.problem
        self.state = problem.fresh_state()
        self.outlook = problem.outlook
        self.steps = {key: 0.0 if action.idle else 1.0 for key, action in problem.actions.items()}
        for key, methods in problem.methods.items():
            self.steps[key] = min((method.steps for method in methods), default=0.0)

    def search(self) -> Searched:
        problem = self.problem
        visited: dict[tuple[int, int], float] = {}
        bound, least_cost, cost_of = self.cheaper_than, problem.least_cost, problem.cost_of
        seen, dead, actions, methods = 0, 0, problem.actions, problem.methods
        look, least, base = problem.limits.step, float("inf"), 0
        tasks: TaskList | None = TaskList(-1, (), 0, None, None)
        # Ways that are left, the trail's length before, what was added and deleted, the state's hash before.
        frames: list[tuple[Iterator[Any], int, list[Change], list[Change], int]] = []
        trail = self.trail
        while True:
            alternatives: Iterator[Any] | None = None
            seen += 1
            look()
            if (
                bound is not None
                and self.done + (0.0 if tasks is None else least_cost * tasks.steps) >= bound
            ):
                pass
            elif tasks is None:
                if problem.goal(self.state):
                    return Searched(plan_of(problem, self.trail), seen, False, False, self.trail)
            elif not (tasks.root in self.due and self._overdue(tasks)):
                key = (self.hash, tasks.hash)
                before_with = visited.get(key)
                # Only with a bound it matters what the steps cost that led here.
                if before_with is None or (bound is not None and before_with > self.done):
                    visited[key] = self.done
                    if tasks.task in actions:
                        action = actions[tasks.task]
                        if action.applicable(self.state, tasks.arguments):
                            add, delete = action.effects(self.state, tasks.arguments)
                            if not (self.last and self._lost(tasks, add, delete)):
                                added, deleted = self._apply(add, delete)
                                frames.append((iter(()), len(trail), added, deleted, self.hash))
                                for change in added:
                                    self.hash ^= hash(change)
                                for change in deleted:
                                    self.hash ^= hash(change)
                                trail.append(("step", tasks.id, tasks.task, tasks.arguments))
                                if bound is not None:
                                    self.done += cost_of(tasks.task, tasks.arguments)
                                tasks = tasks.rest
                                remain = 0.0 if tasks is None else tasks.steps
                                if remain < least:
                                    least, dead, base = remain, 0, len(frames)
                                continue
                    elif self._repeats(tasks):
                        self.pruned = True
                    else:
                        alternatives = self._ways(
                            tasks, methods[tasks.task] if tasks.task >= 0 else [problem.top]
                        )
            if alternatives is not None and len(frames) < base + self.max_depth:
                frames.append((alternatives, len(trail), [], [], self.hash))
            else:
                self.pruned = self.pruned or alternatives is not None
                dead += 1
                if dead > self.dead_ends:
                    return Searched(None, seen, False, False)
            # The next way of the newest frame that has one.
            while frames:
                ways, length, added, deleted, before = frames[-1]
                if bound is not None:
                    self.done -= sum(
                        cost_of(entry[2], entry[3]) for entry in trail[length:] if entry[0] == "step"
                    )
                del trail[length:]
                if added or deleted:
                    self._undo(added, deleted)
                    self.hash = before
                branch = next(ways, _END)
                if branch is _END:
                    frames.pop()
                    continue
                frames[-1] = (ways, length, [], [], before)
                tasks = branch
                break
            else:
                return Searched(None, seen, True, not self.pruned)

    def _holds(self, want: Want) -> bool:
        return (want[2] in self.state[want[1]]) is want[0]

    def _overdue(self, tasks: TaskList) -> bool:
        """Say whether something does not hold that is due before a task of the initial network."""
        at_top = tasks.above is not None and tasks.above.task < 0
        return at_top and not all(map(self._holds, self.due[tasks.root]))

    def _lost(self, tasks: TaskList, add: list[Change], delete: list[Change]) -> bool:
        """Say whether a step undoes what the end needs and no task after it can bring about again."""
        last = self.last
        for sign, changes in ((True, delete), (False, add)):
            for change in changes:
                latest = last.get(change)
                if latest is None or latest > tasks.root or (sign and change in add):
                    continue
                want = (sign, *change)
                if want not in self.problem.wanted or not self._holds(want):
                    continue
                rest = tasks.rest
                while rest is not None and rest.root == tasks.root:
                    if self.outlook.brings(rest.task, rest.arguments, want):
                        break
                    rest = rest.rest
                else:
                    return True
        return False

    def _gives_up(self, forgone: Sequence[Want], rest: TaskList | None, root: int) -> bool:
        """Say whether something that the end needs does not hold and no remaining task can bring it about."""
        for want in forgone:
            if self.last[want[1], want[2]] > root or self._holds(want):
                continue
            task = rest
            while task is not None and task.root == root:
                if self.outlook.brings(task.task, task.arguments, want):
                    break
                task = task.rest
            else:
                return True
        return False

    def _ways(self, tasks: TaskList, methods: list[CompiledMethod]) -> Iterator[TaskList | None]:
        above = Above(tasks.task, tasks.arguments, self.hash, tasks.above)
        if self.thorough:
            methods = methods[::-1]
        while True:
            yield from self._decomposed(tasks, methods, above)
            if not above.cut:
                return
            above.cut, above.deep = False, above.deep * 2
            above.looked_at.clear()

    def _decomposed(
        self, tasks: TaskList, methods: list[CompiledMethod], above: Above
    ) -> Iterator[TaskList | None]:
        rng, state, forgone = self.rng, self.state, self.problem.forgone
        if rng is None:
            choices: Any = (
                (method, values) for method in methods for values in method.instances(state, tasks.arguments)
            )
        else:
            choices = chain.from_iterable(self._shuffled(tasks, methods, rng))
        salt = above.deep if above.deep > 1 else tasks.salt
        for method, values in choices:
            rest = tasks.rest
            order = method.order if rng is None or method.total else random_order(method, rng)
            ids = range(self.ids + 1, self.ids + 1 + len(order))
            self.ids += len(order)
            root = tasks.root if tasks.task >= 0 else len(order)
            bound = method.bind(values)
            for index in reversed(order):
                task, arguments = method.subtasks[index], bound[index]
                if tasks.task < 0:
                    root -= 1
                rest = TaskList(task, arguments, ids[index], rest, above, self.steps[task], salt, root)
            if tasks.task < 0:
                self._look_ahead(rest)
            elif forgone and self._gives_up(
                forgone.get((tasks.task, method.source.number), ()), rest, tasks.root
            ):
                continue
            self.trail.append(("method", tasks.id, tasks, method, values, tuple(ids)))
            yield rest

    def _look_ahead(self, tasks: TaskList | None) -> None:
        """Learn until when tasks of the initial network may bring about what the end needs."""
        roots = []
        while tasks is not None:
            roots.append((tasks.task, tasks.arguments))
            tasks = tasks.rest
        self.last = self.outlook.last(self.problem.wants, roots)
        self.due = {}
        for want in self.problem.wants:
            self.due.setdefault(self.last[want[1], want[2]] + 1, []).append(want)

    def _shuffled(self, tasks: TaskList, methods: list[CompiledMethod], rng: Random) -> Iterator[Any]:
        """Yield the ways method by method, mostly the cheapest first, their instances in a random order."""
        order = sorted(methods, key=lambda method: method.steps + rng.random() * 2.0)
        for method in order:
            instances = list(method.instances(self.state, tasks.arguments))
            self.problem.limits.step(len(instances))
            rng.shuffle(instances)
            yield ((method, values) for values in instances)

    def _repeats(self, tasks: TaskList) -> bool:
        """Say whether this task is being decomposed, or was for the same purpose, and nothing has changed since."""
        above, state, root, deep = tasks.above, self.hash, None, 0
        while above is not None and above.state == state:
            if above.task == tasks.task:
                if above.arguments == tasks.arguments:
                    return True
                root, deep = above, deep + 1
            above = above.above
        if not self.once or root is None:
            return False
        if root.looked_at.get(tasks.arguments, deep + 1) <= deep:
            return True
        if deep > root.deep:
            root.cut = True
            return True
        root.looked_at[tasks.arguments] = deep
        return False

    def _apply(self, add: list[Change], delete: list[Change]) -> tuple[list[Change], list[Change]]:
        """Change the state; return what was really added and deleted."""
        state = self.state
        added, deleted = [], []
        for change in delete:
            relation, arguments = change
            if arguments in state[relation] and change not in add:
                state[relation].discard(arguments)
                deleted.append(change)
        for change in add:
            relation, arguments = change
            if arguments not in state[relation]:
                state[relation].add(arguments)
                added.append(change)
        return added, deleted

    def _undo(self, added: list[Change], deleted: list[Change]) -> None:
        for relation, arguments in added:
            self.state[relation].discard(arguments)
        for relation, arguments in deleted:
            self.state[relation].add(arguments)


_END: Any = object()


def random_order(method: CompiledMethod, rng: Random) -> list[int]:
    """Draw an order that a method allows its subtasks."""
    left, done, order = list(range(len(method.before))), 0, []
    while left:
        one = rng.choice([index for index in left if method.before[index] & ~done == 0])
        left.remove(one)
        done |= 1 << one
        order.append(one)
    return order


def plan_of(problem: Compiled, trail: list[tuple[Any, ...]]) -> HtnPlan:
    """Return the plan that a trail of steps and decompositions tells, ids renumbered: steps, then the rest."""
    steps = [entry for entry in trail if entry[0] == "step"]
    chosen = [entry for entry in trail if entry[0] == "method"]
    number = {entry[1]: index for index, entry in enumerate(steps)}
    for entry in chosen:
        if entry[1] != 0:
            number[entry[1]] = len(number)
    names = problem.objects
    roots: tuple[int, ...] = ()
    decompositions = []
    for _, own, tasks, method, values, ids in chosen:
        into = tuple(number[one] for one in ids)
        if own == 0:
            roots = into
            continue
        decompositions.append(
            Decomposition(
                number[own],
                problem.tasks[tasks.task],
                tuple(names[a] for a in tasks.arguments),
                method.source.number,
                tuple(names[v] for v in values),
                into,
            )
        )
    return HtnPlan(
        tuple(
            Step(number[own], problem.tasks[task], tuple(names[a] for a in arguments))
            for _, own, task, arguments in steps
        ),
        roots,
        tuple(decompositions),
    )
