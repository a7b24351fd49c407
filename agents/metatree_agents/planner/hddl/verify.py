"""Check a plan against its problem, from the text of both alone: nothing here is shared with the search.

Checked are the format, the decomposition of every task by a method with fitting values, the order of subtasks, the
preconditions of methods and actions where they stand in the plan, effects, and the goal.

Source: Höller et al. 2020 (semantics); a method's precondition has to hold when the first of its steps is done. Where
a method leads to no step at all, some state between its neighbours has to meet it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product

from metatree.errors import UserError
from metatree_agents.planner.conditions import Condition, free_variables, is_variable
from metatree_agents.planner.hddl.language import OBJECT, Method, Problem, Variable
from metatree_agents.planner.hddl.plan import HtnPlan

World = frozenset[tuple[str, ...]]


class InvalidPlan(UserError):
    """A plan is no solution of its problem; the message says why."""


class _Line:
    def __init__(self, words: list[str], into: list[int] | None, method: str) -> None:
        self.name, self.arguments = words[0], tuple(words[1:])
        self.into = into
        self.method = method


def verify_plan(plan: HtnPlan, problem: Problem) -> None:
    """Check a plan as the search gives it; raises InvalidPlan."""
    from metatree_agents.planner.hddl.plan import plan_lines

    verify("\n".join(plan_lines(plan, problem)), problem)


def verify(text: str, problem: Problem) -> None:
    """Check the text of a plan in the format of IPC 2020.

    Raises:
        InvalidPlan: it is no solution.
    """
    steps, roots, tasks = _read(text)
    _Verifier(problem, steps, roots, tasks).run()


def _read(text: str) -> tuple[list[int], list[int], dict[int, _Line]]:
    lines = [line.strip() for line in text.splitlines()]
    try:
        lines = lines[lines.index("==>") + 1 : lines.index("<==")]
    except ValueError:
        raise InvalidPlan("there is no plan between `==>` and `<==`") from None
    steps: list[int] = []
    roots: list[int] | None = None
    tasks: dict[int, _Line] = {}
    for line in (one for one in lines if one):
        words = line.lower().split()
        if words[0] == "root":
            roots = [int(word) for word in words[1:]]
            continue
        number, method, into = int(words[0]), "", None
        rest = words[1:]
        if "->" in rest:
            arrow = rest.index("->")
            method, into = rest[arrow + 1], [int(word) for word in rest[arrow + 2 :]]
            rest = rest[:arrow]
        else:
            steps.append(number)
        if number in tasks:
            raise InvalidPlan(f"the number {number} is used twice")
        tasks[number] = _Line(rest, into, method)
    if roots is None:
        raise InvalidPlan("the line `root` is missing")
    return steps, roots, tasks


class _Verifier:
    def __init__(self, problem: Problem, steps: list[int], roots: list[int], tasks: dict[int, _Line]) -> None:
        self.problem = problem
        self.tasks = tasks
        self.roots = roots
        self.steps = steps
        self.place = {number: index for index, number in enumerate(steps)}
        self.members = problem.members()
        self.worlds: list[World] = []

    def run(self) -> None:
        self._simulate()
        self._tree()
        self._decompose_top()
        for number, line in self.tasks.items():
            if line.into is not None:
                self._decompose(number, line)
        if not self._holds(self.problem.goal, {}, self.worlds[-1]):
            raise InvalidPlan("the goal does not hold at the end")

    def _simulate(self) -> None:
        world: World = frozenset(self.problem.init)
        self.worlds.append(world)
        for number in self.steps:
            line = self.tasks[number]
            action = self.problem.domain.actions.get(line.name)
            if action is None:
                raise InvalidPlan(f"step {number}: there is no action {line.name!r}")
            values = self._bind(action.parameters, line.arguments, f"step {number}")
            if not self._holds(action.precondition, values, world):
                raise InvalidPlan(f"step {number}: the precondition of {line.name} does not hold")
            gone: set[tuple[str, ...]] = set()
            come: set[tuple[str, ...]] = set()
            for effect in action.effects:
                for inner in self._assignments(effect.bound, values):
                    if self._holds(effect.when, inner, world):
                        fact = (effect.relation, *(inner.get(term, term) for term in effect.terms))
                        (come if effect.adds else gone).add(fact)
            world = (world - gone) | come
            self.worlds.append(world)

    def _bind(self, parameters: tuple[Variable, ...], values: tuple[str, ...], where: str) -> dict[str, str]:
        if len(parameters) != len(values):
            raise InvalidPlan(f"{where}: {len(values)} arguments, not {len(parameters)}")
        found: dict[str, str] = {}
        for variable, value in zip(parameters, values, strict=True):
            if not self._fits(variable, value) or found.setdefault(variable.name, value) != value:
                raise InvalidPlan(f"{where}: {value!r} is no value for {variable.name}")
        return found

    def _fits(self, variable: Variable, value: str) -> bool:
        return any(value in self.members.get(kind, ()) for kind in variable.types)

    def _tree(self) -> None:
        """Check that every task is reached once from the root."""
        reached: set[int] = set()
        waiting = list(self.roots)
        while waiting:
            number = waiting.pop()
            if number in reached or number not in self.tasks:
                raise InvalidPlan(f"task {number} is missing, or used twice")
            reached.add(number)
            waiting += self.tasks[number].into or ()
        if reached != set(self.tasks):
            raise InvalidPlan(f"tasks {sorted(set(self.tasks) - reached)} come from nowhere")

    def _decompose_top(self) -> None:
        problem = self.problem
        top = Method("", problem.parameters, "", (), problem.constraints, problem.subtasks, problem.order)
        if not any(True for _ in self._assigned(top, {}, self.roots)):
            raise InvalidPlan("the tasks at the root are not those of the problem, or in another order")

    def _decompose(self, number: int, line: _Line) -> None:
        assert line.into is not None
        if line.name not in self.problem.domain.tasks:
            raise InvalidPlan(f"task {number}: {line.name!r} is no compound task")
        self._bind(self.problem.domain.tasks[line.name], line.arguments, f"task {number}")
        first, _ = self._span(number)
        begun = [first] if first is not None else range(len(self.worlds))
        for method in self.problem.domain.methods:
            if method.name != line.method or method.task != line.name:
                continue
            head: dict[str, str] = {}
            if any(
                head.setdefault(term, value) != value if is_variable(term) else term != value
                for term, value in zip(method.task_terms, line.arguments, strict=True)
            ):
                continue
            for values in self._assigned(method, head, line.into):
                if any(self._holds(method.precondition, values, self.worlds[index]) for index in begun):
                    return
        raise InvalidPlan(
            f"task {number}: {line.method!r} does not decompose {line.name} into {line.into}, in this order and state"
        )

    def _assigned(self, method: Method, head: Mapping[str, str], into: list[int]) -> Iterator[dict[str, str]]:
        """Yield values of a method's parameters under which its subtasks are these, in this order."""
        if len(into) != len(method.subtasks):
            return
        values = dict(head)
        for subtask, number in zip(method.subtasks, into, strict=True):
            line = self.tasks[number]
            if line.name != subtask.name or len(line.arguments) != len(subtask.terms):
                return
            for term, value in zip(subtask.terms, line.arguments, strict=True):
                if values.setdefault(term, value) != value if is_variable(term) else term != value:
                    return
        for a, b in method.order:
            before, after = self._span(into[a])[1], self._span(into[b])[0]
            if before is not None and after is not None and before >= after:
                return
        yield from (
            found
            for found in self._assignments([v for v in method.parameters if v.name not in values], values)
            if all(self._fits(v, found[v.name]) for v in method.parameters)
        )

    def _span(self, number: int) -> tuple[int | None, int | None]:
        """Return the places of the first and the last step of a task, None for one without steps."""
        places = []
        waiting = [number]
        while waiting:
            one = waiting.pop()
            line = self.tasks[one]
            if line.into is None:
                places.append(self.place[one])
            else:
                waiting += line.into
        return (min(places), max(places)) if places else (None, None)

    def _assignments(
        self, variables: Iterable[Variable], values: Mapping[str, str]
    ) -> Iterator[dict[str, str]]:
        variables = list(variables)
        domains = [
            dict.fromkeys(name for kind in variable.types for name in self.members.get(kind, ()))
            for variable in variables
        ]
        for chosen in product(*domains):
            yield {**values, **dict(zip((v.name for v in variables), chosen, strict=True))}

    def _holds(self, condition: Condition, values: Mapping[str, str], world: World) -> bool:
        match condition[0]:
            case "atom":
                return (condition[1], *(values.get(term, term) for term in condition[2])) in world
            case "=":
                return values.get(condition[1], condition[1]) == values.get(condition[2], condition[2])
            case "sortof":
                return values.get(condition[1], condition[1]) in self.members.get(condition[2], ())
            case "not":
                return not self._holds(condition[1], values, world)
            case "and":
                return all(self._holds(one, values, world) for one in condition[1:])
            case "or":
                return any(self._holds(one, values, world) for one in condition[1:])
            case "imply":
                return not self._holds(condition[1], values, world) or self._holds(
                    condition[2], values, world
                )
            case "forall" | "exists":
                free = free_variables(condition)
                variables = [Variable(name, types or (OBJECT,)) for name, types in condition[1]]
                outer = {name: value for name, value in values.items() if name in free}
                found = (
                    self._holds(condition[2], inner, world) for inner in self._assignments(variables, outer)
                )
                return all(found) if condition[0] == "forall" else any(found)
            case other:
                raise AssertionError(other)
