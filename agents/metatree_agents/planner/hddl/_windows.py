"""Make a plan cheaper piece by piece: a few tasks that follow one another are done anew, as cheaply as can be found.

A *window* is a list of tasks between two states. It is searched best-first, by what the steps cost and at least will
cost. Plans are built so from the front, window after window that overlap, and a plan that is there is changed so
in the middle where what follows stays possible. Orders that a network leaves open are drawn anew.

A plan is its *trail* here: decompositions and steps in the order in which they happen, what belongs to a task in one
piece.

Source: Hart, Nilsson, Raphael 1968 (A*); Lipovetzky, Geffner 2012 (novelty, here in recursion); Ruiz, Stützle 2007
(iterated greedy); Siddiqui, Haslum 2015, "Continuing Plan Quality Optimisation" (windows of a plan as subproblems).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import islice
from random import Random
from typing import Any, Final, Literal

from metatree_agents.planner.hddl._compiled import Arguments, Change, CompiledMethod
from metatree_agents.planner.hddl._depth_first import Above, Run, TaskList, random_order

Entry = tuple[Any, ...]
"""("step", id, task, arguments) or ("method", id, task list, method, values, ids of its subtasks)."""
Trail = list[Entry]

INSTANCES: Final = 500
"""Instances of a method that are looked at."""

LEAST, MOST = 100, 4_000
"""Nodes of a window, where a plan is built."""

SOME: Final = 4
"""Instances of a method that are drawn."""

How = Literal["all", "near", "some", "quick"]
"""How a window is searched; see `Windows.cheapest`."""

TRIES: Final = 40
"""Ways through a window that are tried on what follows."""


class _Node:
    """A state inside a window, with the tasks that remain of it."""

    __slots__ = ("above", "changes", "cost", "depth", "did", "hash", "tasks")

    def __init__(
        self,
        tasks: TaskList | None,
        state: int,
        cost: float,
        above: _Node | None,
        did: list[Entry],
        changes: list[tuple[list[Change], list[Change]]],
    ) -> None:
        self.tasks = tasks
        self.hash = state
        self.cost = cost
        self.above = above
        self.did = did
        self.changes = changes
        self.depth: int = 0 if above is None else above.depth + 1


@dataclass(slots=True)
class Windows(Run):
    """A state that steps change, and searches from it; made for one plan after the other of one problem."""

    spent: int = 0
    """Nodes that were looked at."""

    def __post_init__(self) -> None:
        Run.__post_init__(self)
        self.steps = self.problem.floor

    # One window -------------------------------------------------------------------------------------------------

    def cheapest(
        self,
        tasks: TaskList,
        *,
        below: float,
        nodes: int,
        accept: Callable[[], bool] | None = None,
        how: How = "near",
    ) -> tuple[float, Trail] | None:
        """Return the cheapest way found to do tasks from the present state, which stays; None: none below a cost.

        Args:
            tasks: what is to be done.
            below: what it has to cost less than.
            nodes: how many to look at.
            accept: whether what follows can be done in the state that is reached.
            how: `all` looks at all ways; `near` looks at a task that recursion comes to once, and again where a fact
                is new, as in a search for the shortest path; `some` does so too, and draws a few of a method's
                instances; `quick` goes for an end as `near` does, and not for a cheap one.
        """
        look, limits = self.problem.limits.step, nodes
        first = _Node(tasks, self.hash, 0.0, None, [], [])
        heap: list[tuple[float, float, float, int, _Node]] = [(tasks.steps, tasks.steps, 0.0, 0, first)]
        best: dict[tuple[int, int], float] = {}
        looked: set[tuple[int, Any]] = set()
        at, made, tried = first, 0, 0
        draw = self.rng.random if self.rng is not None else float
        try:
            while heap and limits > 0:
                node = heappop(heap)[-1]
                limits -= 1
                self.spent += 1
                look(2)
                self._move(at, node)
                at = node
                if node.tasks is None:
                    if accept is None or accept():
                        return node.cost, _told(node)
                    tried += 1
                    if tried >= TRIES:
                        return None
                    continue
                if self._again(node, looked, how != "all"):
                    continue
                children = self._children(node, how)
                for child in reversed(list(children)) if how == "quick" else children:
                    rest = 0.0 if child.tasks is None else child.tasks.steps
                    if child.cost + rest >= below:
                        continue
                    key = (child.hash, 0 if child.tasks is None else child.tasks.hash)
                    if best.get(key, below) <= child.cost:
                        continue
                    best[key] = child.cost
                    made += 1
                    if how == "quick":
                        heappush(heap, (0.0, 0.0, 0.0, -made, child))
                    else:
                        heappush(heap, (child.cost + rest, rest, draw(), made, child))
            return None
        finally:
            self._move(at, first)

    def _again(self, node: _Node, looked: set[tuple[int, Any]], near: bool) -> bool:
        """Say whether recursion has come to a task before, and to no fact that it had not come to."""
        tasks = node.tasks
        assert tasks is not None
        above, root = tasks.above, None
        while above is not None and (near or above.state == self.hash):
            if above.task == tasks.task:
                if above.arguments == tasks.arguments and above.state == self.hash:
                    return True
                root = above
            above = above.above
        if root is None:
            return False
        known = len(looked)
        looked.add((id(root), tasks.arguments))
        at: _Node | None = node
        while at is not None and (at is node or at.tasks is None or at.tasks.task != tasks.task):
            looked.update((id(root), change) for added, _ in at.changes for change in added)
            at = at.above
        return len(looked) == known

    def _children(self, node: _Node, how: How) -> Iterator[_Node]:
        tasks = node.tasks
        assert tasks is not None
        if tasks.task in self.problem.actions:
            child = self._advanced(node, tasks, [])
            if child is not None:
                yield child
            return
        above = Above(tasks.task, tasks.arguments, self.hash, tasks.above)
        for method in self.problem.methods[tasks.task]:
            found = list(islice(method.instances(self.state, tasks.arguments), INSTANCES))
            if how == "some" and self.rng is not None and len(found) > SOME:
                found = self.rng.sample(found, SOME)
            for values in found:
                order: Sequence[int] = method.order
                if self.rng is not None and not method.total:
                    order = random_order(method, self.rng)
                rest, entry = self.decomposed(tasks, method, values, order, above)
                child = self._advanced(node, rest, [entry])
                if child is not None:
                    yield child

    def decomposed(
        self,
        tasks: TaskList,
        method: CompiledMethod,
        values: Arguments,
        order: Sequence[int],
        above: Above | None,
    ) -> tuple[TaskList | None, Entry]:
        """Return the tasks with a method's subtasks in the place of the first, and the entry that says so."""
        rest = tasks.rest
        ids = range(self.ids + 1, self.ids + 1 + len(order))
        self.ids += len(order)
        bound, subtasks, steps, root = method.bind(values), method.subtasks, self.steps, tasks.root
        for index in reversed(order):
            task = subtasks[index]
            rest = TaskList(task, bound[index], ids[index], rest, above, steps[task], 0, root)
        return rest, ("method", tasks.id, tasks, method, values, tuple(ids))

    def _advanced(self, node: _Node, tasks: TaskList | None, did: list[Entry]) -> _Node | None:
        """Return what follows when the actions that are next have been done; None where one cannot be."""
        problem, changes, cost = self.problem, [], node.cost
        before = self.hash
        fits = True
        while tasks is not None:
            if tasks.root in self.due and self._overdue(tasks):
                fits = False
                break
            if tasks.task not in problem.actions:
                break
            action = problem.actions[tasks.task]
            if not action.applicable(self.state, tasks.arguments):
                fits = False
                break
            add, delete = action.effects(self.state, tasks.arguments)
            if self.last and self._lost(tasks, add, delete):
                fits = False
                break
            changes.append(self._apply(add, delete))
            self._rehash(*changes[-1])
            cost += problem.cost_of(tasks.task, tasks.arguments)
            did.append(("step", tasks.id, tasks.task, tasks.arguments))
            tasks = tasks.rest
        after = self.hash
        for added, deleted in reversed(changes):
            self._undo(added, deleted)
        self.hash = before
        return _Node(tasks, after, cost, node, did, changes) if fits else None

    def _rehash(self, added: list[Change], deleted: list[Change]) -> None:
        for change in added:
            self.hash ^= hash(change)
        for change in deleted:
            self.hash ^= hash(change)

    def _redo(self, added: list[Change], deleted: list[Change]) -> None:
        for relation, arguments in deleted:
            self.state[relation].discard(arguments)
        for relation, arguments in added:
            self.state[relation].add(arguments)

    def _move(self, at: _Node, to: _Node) -> None:
        """Change the state from a node's to another's."""
        down = []
        here, there = at, to
        while here is not there:
            if here.depth >= there.depth:
                for added, deleted in reversed(here.changes):
                    self._undo(added, deleted)
                assert here.above is not None
                here = here.above
            else:
                down.append(there)
                assert there.above is not None
                there = there.above
        for node in reversed(down):
            for added, deleted in node.changes:
                self._redo(added, deleted)
        self.hash = to.hash

    # A plan from the front --------------------------------------------------------------------------------------

    def built(
        self,
        top: Entry,
        order: Sequence[int],
        *,
        ahead: int,
        below: float,
        nodes: int,
        old: Mapping[int, Trail] | None = None,
        slack: float = 0.0,
    ) -> Trail | None:
        """Return a plan that is built window by window; None where one cannot be done, or it costs too much.

        Args:
            top: the entry of the initial network.
            order: its subtasks, in the order in which they are to be done.
            ahead: how many tasks a window has, of which only the first one is done then.
            below: what the plan has to cost less than.
            nodes: how many to look at, about, all windows together; with `old`, in each.
            old: what was done for a task, by its id: done again where that can be, else its window is searched.
            slack: how much more than it did a task may cost for the time being.
        """
        _, _, tasks, method, values, ids = top
        old, bound = old or {}, method.bind(values)
        roots = [
            (method.subtasks[index], bound[index], ids[index], place) for place, index in enumerate(order)
        ]
        self.state, self.hash = self.problem.fresh_state(), 0
        self._look_ahead(self._listed(roots, tasks))
        rest = [0.0]
        """What the last tasks will cost: none, one, two …; as they did, or at least."""
        for root in reversed(roots):
            rest.append(rest[-1] + (self.cost_of(old[root[2]]) if root[2] in old else self.steps[root[0]]))
        trail, cost, done = [top], 0.0, 0
        hard: dict[int, int] = {}
        """Task -> how many more of its windows had no end than had one."""
        spent = self.spent
        while done < len(roots):
            kind, _, number, _ = roots[done]
            if number in old and self._done_again(old[number]):
                trail += old[number]
                cost += self.cost_of(old[number])
                done += 1
                continue
            share = 3 * (nodes - self.spent + spent) // (len(roots) - done)
            ways: list[tuple[int, How]] = [(ahead, "near"), (1, "some"), (1, "quick"), (1, "all")]
            if old:
                ways = [(ahead, "some" if self.rng is not None and self.rng.random() < 0.5 else "near")]
                share = nodes
            found = None
            for count, how in ways[not old and hard.get(kind, 0) > 1 :]:
                window = self._listed(roots[done : done + count], tasks)
                assert window is not None
                left = len(roots) - done - count
                found = self.cheapest(
                    window,
                    below=below + slack - cost - rest[max(0, left)],
                    nodes=max(LEAST, min(MOST, share)),
                    accept=(lambda: self.problem.goal(self.state)) if left <= 0 else None,
                    how=how,
                )
                if how == "near":
                    hard[kind] = hard.get(kind, 0) + (-1 if found is not None else 1)
                if found is not None:
                    break
            if found is None:
                return None
            following = roots[done + 1][2] if done + 1 < len(roots) else -1
            for entry in found[1]:
                if entry[1] == following:
                    break
                trail.append(entry)
                cost += self.do(entry)
            done += 1
        return trail if cost < below and self.problem.goal(self.state) else None

    def cost_of(self, piece: Trail) -> float:
        """Return what the steps of a piece cost."""
        cost = self.problem.cost_of
        return sum(cost(entry[2], entry[3]) for entry in piece if entry[0] == "step")

    def _done_again(self, piece: Trail) -> bool:
        """Do a piece of a plan in the present state; where it cannot be done, change nothing and say so."""
        made: list[tuple[list[Change], list[Change]]] = []
        before = self.hash
        for entry in piece:
            if entry[0] == "method":
                fits = entry[3].holds(self.state, entry[4])
            else:
                fits = self.problem.actions[entry[2]].applicable(self.state, entry[3])
            if not fits:
                for added, deleted in reversed(made):
                    self._undo(added, deleted)
                self.hash = before
                return False
            if entry[0] == "step":
                made.append(self._apply(*self.problem.actions[entry[2]].effects(self.state, entry[3])))
                self._rehash(*made[-1])
        return True

    def _listed(self, roots: Sequence[tuple[int, Arguments, int, int]], tasks: TaskList) -> TaskList | None:
        top = Above(-1, (), -1, None)
        rest: TaskList | None = None
        for task, arguments, number, place in reversed(roots):
            rest = TaskList(task, arguments, number, rest, top, self.steps[task], root=place)
        return rest

    def do(self, entry: Entry) -> float:
        """Do what an entry says; return what it costs."""
        if entry[0] != "step":
            return 0.0
        added, deleted = self._apply(*self.problem.actions[entry[2]].effects(self.state, entry[3]))
        self._rehash(added, deleted)
        return self.problem.cost_of(entry[2], entry[3])


@dataclass(slots=True)
class Pieces:
    """A trail with its pieces: where what belongs to each entry's task ends, and the states between.

    Args:
        windows: whose state is moved along the trail.
        trail: in one piece for each task; see `whole`.
    """

    windows: Windows
    trail: Trail
    ends: list[int] = field(init=False)
    """For each entry the place behind what belongs to its task."""
    above: list[int] = field(init=False)
    """For each entry that of the network it comes from."""
    changes: list[tuple[list[Change], list[Change]]] = field(init=False)
    costs: list[float] = field(init=False)
    """For each place what was spent before it."""
    at: int = 0

    def __post_init__(self) -> None:
        self.ends = ends_of(self.trail)
        self.above = [-1] * len(self.trail)
        for place, entry in enumerate(self.trail):
            if entry[0] == "method":
                for child in self.children(place):
                    self.above[child] = place
        windows = self.windows
        windows.state, windows.hash = windows.problem.fresh_state(), 0
        windows.last, windows.due = {}, {}
        self.changes, self.costs = [], [0.0]
        for entry in self.trail:
            cost = 0.0
            made: tuple[list[Change], list[Change]] = ([], [])
            if entry[0] == "step":
                made = windows._apply(*windows.problem.actions[entry[2]].effects(windows.state, entry[3]))
                windows._rehash(*made)
                cost = windows.problem.cost_of(entry[2], entry[3])
            self.changes.append(made)
            self.costs.append(self.costs[-1] + cost)
        self.at = len(self.trail)

    def children(self, place: int) -> list[int]:
        """Return the places of the subtasks of a decomposition, in the order in which they are done."""
        found, child = [], place + 1
        for _ in self.trail[place][5]:
            found.append(child)
            child = self.ends[child]
        return found

    def go(self, place: int) -> None:
        """Change the state to that before an entry."""
        windows = self.windows
        while self.at > place:
            self.at -= 1
            added, deleted = self.changes[self.at]
            windows._undo(added, deleted)
            windows._rehash(added, deleted)
        while self.at < place:
            added, deleted = self.changes[self.at]
            windows._redo(added, deleted)
            windows._rehash(added, deleted)
            self.at += 1

    def redone(self, parent: int, first: int, last: int, nodes: int, how: How) -> Trail | None:
        """Return the trail with some of a network's subtasks done anew, cheaper; None where that is not found.

        Args:
            parent: the place of the network's entry.
            first, last: which of `children`, both included.
            nodes: how many to look at.
            how: as for `cheapest`.
        """
        windows, trail = self.windows, self.trail
        children = self.children(parent)
        begin, end = children[first], self.ends[children[last]]
        spent = self.costs[end] - self.costs[begin]
        order = list(children[first : last + 1])
        method = trail[parent][3]
        if windows.rng is not None and not method.total:
            order = _drawn(
                order, [trail[parent][5].index(trail[one][1]) for one in order], method, windows.rng
            )
        rest: TaskList | None = None
        for place in reversed(order):
            task, arguments = _task_of(trail[place])
            rest = TaskList(task, arguments, trail[place][1], rest, None, windows.steps[task])
        assert rest is not None
        if rest.steps >= spent:
            return None
        self.go(end)
        after = windows.hash
        self.go(begin)

        def accept() -> bool:
            return windows.hash == after or self._follows(end)

        found = windows.cheapest(rest, below=spent, nodes=nodes, accept=accept, how=how)
        return None if found is None else [*trail[:begin], *found[1], *trail[end:]]

    def _follows(self, place: int) -> bool:
        """Say whether what follows a place can be done from the present state, which stays."""
        windows, problem = self.windows, self.windows.problem
        made: list[tuple[list[Change], list[Change]]] = []
        before = windows.hash
        fits = True
        for entry in self.trail[place:]:
            problem.limits.step()
            if entry[0] == "method":
                if not entry[3].holds(windows.state, entry[4]):
                    fits = False
                    break
                continue
            action = problem.actions[entry[2]]
            if not action.applicable(windows.state, entry[3]):
                fits = False
                break
            made.append(windows._apply(*action.effects(windows.state, entry[3])))
        fits = fits and problem.goal(windows.state)
        for added, deleted in reversed(made):
            windows._undo(added, deleted)
        windows.hash = before
        return fits

    def drawn(self, rng: Random, size: float) -> tuple[int, int, int]:
        """Draw a window that costs about so much: a network's place, and the first and last of its subtasks."""
        place = rng.randrange(1, len(self.trail))
        while self.above[place] > 0 and self.costs[self.ends[place]] - self.costs[place] < size:
            place = self.above[place]
        parent = self.above[place]
        children = self.children(parent)
        first = last = children.index(place)
        while self.costs[self.ends[children[last]]] - self.costs[children[first]] < size:
            if last + 1 < len(children) and (first == 0 or rng.random() < 0.5):
                last += 1
            elif first > 0:
                first -= 1
            else:
                break
        return parent, first, last


def whole(trail: Trail) -> bool:
    """Say whether what belongs to each task is in one piece."""
    ends = ends_of(trail)
    for place, entry in enumerate(trail):
        if entry[0] == "method":
            child, found = place + 1, set()
            for _ in entry[5]:
                if child >= len(trail):
                    return False
                found.add(trail[child][1])
                child = ends[child]
            if found != set(entry[5]):
                return False
    return True


def ends_of(trail: Trail) -> list[int]:
    """Return, for each entry, the place behind what belongs to its task, as far as that is in one piece."""
    ends = [0] * (len(trail) + 1)
    ends[-1] = len(trail)
    for place in range(len(trail) - 1, -1, -1):
        end = place + 1
        if trail[place][0] == "method":
            for _ in trail[place][5]:
                end = ends[end]
        ends[place] = end
    return ends


def _task_of(entry: Entry) -> tuple[int, Arguments]:
    return (entry[2], entry[3]) if entry[0] == "step" else (entry[2].task, entry[2].arguments)


def _told(node: _Node) -> Trail:
    nodes = []
    at: _Node | None = node
    while at is not None:
        nodes.append(at)
        at = at.above
    return [entry for one in reversed(nodes) for entry in one.did]


def _drawn(places: list[int], indices: list[int], method: CompiledMethod, rng: Random) -> list[int]:
    """Return places in an order that a method allows its subtasks, drawn at random."""
    left, made = dict(zip(indices, places, strict=True)), []
    while left:
        free = [one for one in left if not any(method.before[one] >> other & 1 for other in left)]
        made.append(left.pop(rng.choice(free)))
    return made
