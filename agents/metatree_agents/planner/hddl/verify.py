"""Check a plan against its problem, from the text of both alone: nothing here is shared with the search.

Checked are the format, the decomposition of every task by a method with fitting values, the order of subtasks, the
preconditions of methods and actions where they stand in the plan, effects, and the goal. What the plan leaves open (the
values of a method's other parameters) is found by joining facts, each looked up by what is known of it.

Source: Höller et al. 2020 (semantics); a method's precondition has to hold when the first of its steps is done. Where
a method leads to no step at all, some state between the steps before and after it has to meet it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from typing import Any

from metatree._util.numbers import whole_number
from metatree.errors import UserError
from metatree_agents.planner.domain.conditions import Condition, flat, free_variables, is_variable
from metatree_agents.planner.hddl._language import Action, Method, Problem, Variable
from metatree_agents.planner.hddl.limits import SolverLimits
from metatree_agents.planner.hddl.plan import HtnPlan, plan_lines

Fact = tuple[str, ...]
Values = Mapping[str, str]


class InvalidPlan(UserError):
    """A plan is no solution of its problem; the message says why."""


@dataclass(slots=True)
class _Line:
    name: str
    arguments: tuple[str, ...]
    into: list[int] | None
    """The tasks that it is decomposed into; None for an action."""
    method: str


def verify_plan(plan: HtnPlan, problem: Problem, limits: SolverLimits | None = None) -> None:
    """Check a plan as the search gives it; raises InvalidPlan, or LimitReached."""
    verify("\n".join(plan_lines(plan, problem)), problem, limits)


def verify(text: str, problem: Problem, limits: SolverLimits | None = None) -> None:
    """Check the text of a plan in the format of IPC 2020.

    Raises:
        InvalidPlan: it is no solution.
        LimitReached: it could not be checked within the limits.
    """
    steps, roots, tasks = _read(text)
    _Verifier(problem, steps, roots, tasks, limits or SolverLimits()).run()


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
            roots = [_number(word) for word in words[1:]]
            continue
        number, method, into = _number(words[0]), "", None
        rest = words[1:]
        if "->" in rest:
            arrow = rest.index("->")
            method, into = rest[arrow + 1], [_number(word) for word in rest[arrow + 2 :]]
            rest = rest[:arrow]
        else:
            steps.append(number)
        if number in tasks:
            raise InvalidPlan(f"the number {number} is used twice")
        tasks[number] = _Line(rest[0], tuple(rest[1:]), into, method)
    if roots is None:
        raise InvalidPlan("the line `root` is missing")
    return steps, roots, tasks


def _number(word: str) -> int:
    number = whole_number(word)
    if number is None:
        raise InvalidPlan(f"{word[:40]!r} is no number of a task")
    return number


class _History:
    """Which facts hold in the state before each step, and after the last one."""

    def __init__(self, init: Iterable[Fact], values: Mapping[Fact, float]) -> None:
        self.now = set(init)
        self.numbers: dict[Fact, list[tuple[int, Fraction | None]]] = {
            key: [(0, Fraction(repr(value)))] for key, value in values.items()
        }
        """Function with its arguments -> the states in which it got a value, with that."""
        self._changed: dict[Fact, list[int]] = {}
        """Fact -> the states in which it came, went, came …"""
        self._facts: dict[tuple[str | int, ...], dict[Fact, None]] = {}
        """Relation, place and value -> facts that hold in some state."""
        for fact in sorted(self.now):
            self._come(fact, 0)

    def _come(self, fact: Fact, state: int) -> None:
        if fact not in self._changed:
            self._changed[fact] = []
            for key in ((fact[0],), *((fact[0], place, term) for place, term in enumerate(fact[1:]))):
                self._facts.setdefault(key, {})[fact] = None
        self._changed[fact].append(state)

    def change(self, deletes: set[Fact], adds: set[Fact], state: int) -> None:
        """Note what a step has changed, and the state after it."""
        for fact in (deletes - adds) & self.now:
            self._changed[fact].append(state)
        for fact in adds - self.now:
            self._come(fact, state)
        self.now -= deletes
        self.now |= adds

    def number(self, key: Fact, state: int) -> Fraction | None:
        """Return the value of a function in a state, None where it has none."""
        known = self.numbers.get(key, ())
        place = bisect_right(known, state, key=lambda one: one[0])
        return known[place - 1][1] if place else None

    def holds(self, fact: Fact, state: int) -> bool:
        """Say whether a fact holds in a state."""
        return bool(bisect_right(self._changed.get(fact, ()), state) % 2)

    def changes(self, fact: Fact) -> list[int]:
        """Return the states from which on a fact holds or no longer does."""
        return self._changed.get(fact, [])

    def matching(self, relation: str, terms: tuple[str, ...]) -> Collection[Fact]:
        """Return the facts that hold in some state and agree with what is known of the terms, and perhaps others."""
        known = [(relation, n, term) for n, term in enumerate(terms) if not is_variable(term)]
        buckets = [self._facts.get(key, {}) for key in (*known, (relation,))]
        return min(buckets, key=len)


@dataclass(slots=True)
class _Verifier:
    problem: Problem
    steps: list[int]
    roots: list[int]
    tasks: dict[int, _Line]
    limits: SolverLimits
    place: dict[int, int] = field(init=False)
    members: dict[str, dict[str, None]] = field(init=False)
    history: _History = field(init=False)
    spans: dict[int, tuple[int, int] | None] = field(default_factory=dict)
    """Task -> the places of its first and its last step, None for one without steps."""
    windows: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Task -> the first and the last state that the order of tasks leaves it."""

    def __post_init__(self) -> None:
        self.place = {number: index for index, number in enumerate(self.steps)}
        self.members = {kind: dict.fromkeys(names) for kind, names in self.problem.members().items()}
        self.history = _History(self.problem.init, self.problem.values)

    def run(self) -> None:
        self.limits.check()
        self._simulate()
        order = self._tree()
        self._measure(order)
        self._decompose_top()
        for number in order:
            line = self.tasks[number]
            if line.into is not None:
                self.limits.step()
                self._decompose(number, line)
        if not self._holds(self.problem.goal, {}, len(self.steps)):
            raise InvalidPlan("the goal does not hold at the end")

    def _simulate(self) -> None:
        for state, number in enumerate(self.steps):
            self.limits.step()
            line = self.tasks[number]
            action = self.problem.domain.actions.get(line.name)
            if action is None:
                raise InvalidPlan(f"step {number}: there is no action {line.name!r}")
            values = self._bind(action.parameters, line.arguments, f"step {number}")
            if not self._holds(action.precondition, values, state):
                raise InvalidPlan(f"step {number}: the precondition of {line.name} does not hold")
            deletes: set[Fact] = set()
            adds: set[Fact] = set()
            for effect in action.effects:
                for inner in self._assignments(effect.bound, values):
                    if self._holds(effect.when, inner, state):
                        fact = (effect.relation, *(inner.get(term, term) for term in effect.terms))
                        (adds if effect.adds else deletes).add(fact)
            numbers = self._numbers(action, values, state)
            self.history.change(deletes, adds, state + 1)
            for key, value in numbers.items():
                self.history.numbers.setdefault(key, []).append((state + 1, value))

    def _numbers(self, action: Action, values: Values, state: int) -> dict[Fact, Fraction | None]:
        """Return the numbers that an action changes, with what they become; None: they have no value any more."""
        changes: dict[Fact, list[tuple[str, Fraction | None]]] = {}
        for effect in action.numeric:
            for inner in self._assignments(effect.bound, values):
                if self._holds(effect.when, inner, state):
                    key = (effect.function, *(inner.get(term, term) for term in effect.terms))
                    amount = self._value(effect.amount, inner, state)
                    changes.setdefault(key, []).append((effect.operator, amount))
        return {key: _changed(self.history.number(key, state), made) for key, made in changes.items()}

    def _value(self, expression: Any, values: Values, state: int) -> Fraction | None:
        """Return what an expression over numbers comes to, None where it has no value."""
        if not isinstance(expression, tuple):
            return Fraction(expression)
        if expression[0] == "value":
            key = (expression[1], *(values.get(term, term) for term in expression[2]))
            return self.history.number(key, state)
        parts = [self._value(one, values, state) for one in expression[1:]]
        if len(parts) == 1:
            return None if parts[0] is None else -parts[0]
        total = parts[0]
        for one in parts[1:]:
            total = _computed(expression[0], total, one)
        return _bounded(total)

    def _bind(self, parameters: tuple[Variable, ...], values: tuple[str, ...], where: str) -> dict[str, str]:
        if len(parameters) != len(values):
            raise InvalidPlan(f"{where}: {len(values)} arguments, not {len(parameters)}")
        binding: dict[str, str] = {}
        for variable, value in zip(parameters, values, strict=True):
            if not self._fits(variable, value) or binding.setdefault(variable.name, value) != value:
                raise InvalidPlan(f"{where}: {value!r} is no value for {variable.name}")
        return binding

    def _fits(self, variable: Variable, value: str) -> bool:
        return any(value in self.members.get(kind, ()) for kind in variable.types)

    def _tree(self) -> list[int]:
        """Check that every task is reached once from the root; return the tasks, each behind what it comes from."""
        reached: dict[int, None] = {}
        waiting = list(self.roots)
        while waiting:
            number = waiting.pop()
            if number in reached or number not in self.tasks:
                raise InvalidPlan(f"task {number} is missing, or used twice")
            reached[number] = None
            waiting += self.tasks[number].into or ()
        if len(reached) != len(self.tasks):
            raise InvalidPlan(f"tasks {sorted(set(self.tasks) - set(reached))} come from nowhere")
        return list(reached)

    def _measure(self, order: list[int]) -> None:
        """Find the span of each task."""
        for number in reversed(order):
            into = self.tasks[number].into
            if into is None:
                self.spans[number] = (self.place[number], self.place[number])
                continue
            spans = [span for one in into if (span := self.spans[one]) is not None]
            self.spans[number] = (min(a for a, _ in spans), max(b for _, b in spans)) if spans else None

    def _leave(self, into: list[int], method: Method, window: tuple[int, int]) -> None:
        """Find the states that a network leaves its tasks: behind those before them, and before those behind them."""
        count = len(into)
        for first_to_last, pairs in ((True, method.order), (False, {(b, a) for a, b in method.order})):
            behind: list[list[int]] = [[] for _ in range(count)]
            waits = [0] * count
            for a, b in pairs:
                behind[a].append(b)
                waits[b] += 1
            bounds = [window[0] if first_to_last else window[1]] * count
            free = [one for one in range(count) if not waits[one]]
            while free:
                one = free.pop()
                span = self.spans[into[one]]
                edge = bounds[one] if span is None else span[1] + 1 if first_to_last else span[0]
                for other in behind[one]:
                    bounds[other] = (max if first_to_last else min)(bounds[other], edge)
                    waits[other] -= 1
                    if not waits[other]:
                        free.append(other)
            for number, bound in zip(into, bounds, strict=True):
                lowest, highest = self.windows.get(number, window)
                self.windows[number] = (bound, highest) if first_to_last else (lowest, bound)

    def _decompose_top(self) -> None:
        problem = self.problem
        top = problem.top
        values = self._assigned(top, {}, self.roots)
        if values is None or not any(
            self._solved(top, values, state) for state in self._states(top, values, 0, 0)
        ):
            raise InvalidPlan("the tasks at the root are not those of the problem, or in another order")
        self._leave(self.roots, top, (0, len(self.steps)))

    def _decompose(self, number: int, line: _Line) -> None:
        assert line.into is not None
        if line.name not in self.problem.domain.tasks:
            raise InvalidPlan(f"task {number}: {line.name!r} is no compound task")
        self._bind(self.problem.domain.tasks[line.name], line.arguments, f"task {number}")
        span, window = self.spans[number], self.windows[number]
        first, last = window if span is None else (span[0], span[0])
        for method in self.problem.domain.methods:
            if method.name != line.method or method.task != line.name:
                continue
            head: dict[str, str] = {}
            if any(
                head.setdefault(term, value) != value if is_variable(term) else term != value
                for term, value in zip(method.task_terms, line.arguments, strict=True)
            ):
                continue
            values = self._assigned(method, head, line.into)
            if values is not None and any(
                self._solved(method, values, state) for state in self._states(method, values, first, last)
            ):
                self._leave(line.into, method, window)
                return
        raise InvalidPlan(
            f"task {number}: {line.method!r} does not decompose {line.name} into {line.into}, in this order and state"
        )

    def _assigned(self, method: Method, head: Values, into: list[int]) -> dict[str, str] | None:
        """Return the values that a task and its subtasks give to a method; None where they are not these."""
        if len(into) != len(method.subtasks):
            return None
        values = dict(head)
        for subtask, number in zip(method.subtasks, into, strict=True):
            line = self.tasks[number]
            if line.name != subtask.name or len(line.arguments) != len(subtask.terms):
                return None
            for term, value in zip(subtask.terms, line.arguments, strict=True):
                if values.setdefault(term, value) != value if is_variable(term) else term != value:
                    return None
        for a, b in method.order:
            before, after = self.spans[into[a]], self.spans[into[b]]
            if before is not None and after is not None and before[1] >= after[0]:
                return None
        return values

    def _states(self, method: Method, values: Values, first: int, last: int) -> Iterable[int]:
        """Return the states among which is one that meets a method, if there is one: where facts of it change."""
        if first >= last:
            return (first,) if first == last else ()
        facts: set[Fact] = set()
        for part in flat(method.precondition):
            atom = part[1] if part[0] == "not" else part
            if atom[0] in ("=", "sortof"):
                continue
            fact = (atom[1], *(values.get(term, term) for term in atom[2])) if atom[0] == "atom" else None
            if fact is None or any(is_variable(term) for term in fact[1:]):
                return range(first, last + 1)
            facts.add(fact)
        changed = {state for fact in facts for state in self.history.changes(fact) if first < state <= last}
        return (first, *sorted(changed))

    def _solved(self, method: Method, values: Values, state: int) -> bool:
        """Say whether the other parameters of a method have values that fit."""
        open_ = {v.name: v for v in method.parameters if v.name not in values}
        if not all(self._fits(v, values[v.name]) for v in method.parameters if v.name in values):
            return False
        parts = [(free_variables(part) & open_.keys(), part) for part in flat(method.precondition)]
        return self._joined(parts, open_, values, state)

    def _joined(
        self,
        parts: list[tuple[set[str], Condition]],
        open_: Mapping[str, Variable],
        values: Values,
        state: int,
    ) -> bool:
        """Say whether a conjunction holds for some values of the variables that are open."""
        self.limits.step()
        left = []
        for names, part in parts:
            if names <= values.keys():
                if not self._holds(part, values, state):
                    return False
            else:
                left.append((names, part))
        atoms = [part for _, part in left if part[0] == "atom"]
        unknown = [name for name in open_ if name not in values]
        if not unknown:
            return True
        if not left:  # nothing is asked of them but their types
            return all(any(self.members.get(kind) for kind in open_[name].types) for name in unknown)
        if not atoms:
            name = min(unknown, key=lambda one: len(self._range(open_[one])))
            return any(
                self._joined(left, open_, {**values, name: value}, state)
                for value in self._range(open_[name])
            )
        facts, terms = min(
            (
                (self.history.matching(part[1], terms), terms)
                for part in atoms
                for terms in [tuple(values.get(term, term) for term in part[2])]
            ),
            key=lambda one: len(one[0]),
        )
        for fact in facts:
            self.limits.step()
            inner = dict(values)
            if (
                self.history.holds(fact, state)
                and all(
                    (inner.setdefault(term, value) == value and self._fits(open_[term], value))
                    if is_variable(term)
                    else term == value
                    for term, value in zip(terms, fact[1:], strict=True)
                )
                and self._joined(left, open_, inner, state)
            ):
                return True
        return False

    def _range(self, variable: Variable) -> dict[str, None]:
        return dict.fromkeys(name for kind in variable.types for name in self.members.get(kind, ()))

    def _assignments(self, variables: Iterable[Variable], values: Values) -> Iterator[dict[str, str]]:
        variables = list(variables)
        for chosen in product(*(self._range(variable) for variable in variables)):
            self.limits.step()
            yield {**values, **dict(zip((v.name for v in variables), chosen, strict=True))}

    def _holds(self, condition: Condition, values: Values, state: int) -> bool:
        match condition[0]:
            case "atom":
                return self.history.holds(
                    (condition[1], *(values.get(term, term) for term in condition[2])), state
                )
            case "=":
                return bool(values.get(condition[1], condition[1]) == values.get(condition[2], condition[2]))
            case "sortof":
                return values.get(condition[1], condition[1]) in self.members.get(condition[2], ())
            case "compare":
                left, right = (self._value(one, values, state) for one in condition[2:])
                if left is None or right is None:
                    return False
                return bool(
                    {"<": left < right, ">": left > right, "=": left == right}.get(
                        condition[1], left <= right if condition[1] == "<=" else left >= right
                    )
                )
            case "not":
                return not self._holds(condition[1], values, state)
            case "and":
                return all(self._holds(one, values, state) for one in condition[1:])
            case "or":
                return any(self._holds(one, values, state) for one in condition[1:])
            case "imply":
                return not self._holds(condition[1], values, state) or self._holds(
                    condition[2], values, state
                )
            case "forall" | "exists":
                return self._quantified(condition, values, state)
            case other:
                raise AssertionError(other)

    def _quantified(self, condition: Condition, values: Values, state: int) -> bool:
        """Say whether a quantified condition holds: none is found that is against it, or one that is for it."""
        variables = {name: Variable(name, types) for name, types in condition[1]}
        known = {name: value for name, value in values.items() if name not in variables}
        body, holds = condition[2], condition[0] == "exists"
        if not holds:  # what is against an implication is its premise without its conclusion
            body = ("and", body[1], ("not", body[2])) if body[0] == "imply" else ("not", body)
        parts = [(free_variables(part) & variables.keys(), part) for part in flat(body)]
        return self._joined(parts, variables, known, state) is holds


def _computed(sign: str, left: Fraction | None, right: Fraction | None) -> Fraction | None:
    if left is None or right is None or (sign == "/" and not right):
        return None
    if sign in "+-":
        return left + right if sign == "+" else left - right
    return left * right if sign == "*" else left / right


def _bounded(value: Fraction | None) -> Fraction | None:
    """Return a number that is not past 10^300, nor its denominator; others have no value."""
    if value is None or max(abs(value.numerator), value.denominator) > 10**300:
        return None
    return value


def _changed(before: Fraction | None, changes: list[tuple[str, Fraction | None]]) -> Fraction | None:
    """Return what a number becomes; changes at once agree where all add to it or take from it."""
    if len(changes) > 1 and any(how not in ("increase", "decrease") for how, _ in changes):
        return None
    value = before
    for how, amount in changes:
        if how == "assign":
            value = amount
        else:
            sign = {"increase": "+", "decrease": "-", "scale-up": "*", "scale-down": "/"}[how]
            value = _bounded(_computed(sign, value, amount))
    return value
