"""What has to hold before a task can be done, and what doing it may change: learnt from the domain alone.

A method whose second subtask needs a fact that its first cannot bring about needs that fact itself. Pulled up so,
preconditions of actions reach the methods far above them, and a depth-first search fails where it chooses, not ten
steps later.

Source: Magnaguagno, Meneguzzi, de Silva 2020, "HyperTensioN: A three-stage compiler for planning" (its pull-up stage);
here for compound subtasks and for partial order too, and with the types of arguments telling effects apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from metatree_agents.planner.domain.conditions import Condition, flat, is_variable
from metatree_agents.planner.hddl._language import Action, Method, Problem, Variable, closure

Literal = tuple[bool, str, tuple[str, ...]]
"""Sign, relation, terms: variables of a task, an action or a method, or objects."""

Guard = frozenset[tuple[int, frozenset[str]]]
"""Numbers of a task's parameters, and the objects that they must be among."""

Pattern = tuple[bool, str, tuple["str | int | frozenset[str]", ...], Guard]
"""A change: adds or deletes, relation, for each argument a parameter's number, an object, or any of a set; and when."""

_ROUNDS: Final = 50

_EARLIER: Final = 50
"""Subtasks before another one, at most, that are asked whether they bring its needs about."""


class PullUp:
    """Computes and answers what is known of the tasks of a problem."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        members = problem.members()
        self._members = {kind: frozenset(names) for kind, names in members.items()}
        self._methods: dict[str, list[Method]] = {name: [] for name in problem.domain.tasks}
        for method in problem.domain.methods:
            self._methods[method.task].append(method)
        self.needs: dict[str, frozenset[Literal] | None] = {}
        """Task -> literals over its parameters (`?0`, `?1` …) that hold when it is begun; None: it cannot be done."""
        self.changes: dict[str, frozenset[Pattern]] = {}
        """Task -> what it may change."""
        actions = problem.domain.actions
        self.steps = self.least({name: 1.0 if action.effects else 0.0 for name, action in actions.items()})
        """Task -> a lower bound on the actions with effects in it."""
        self._learn_changes()
        self._learn_needs()

    def values(self, variable: Variable) -> frozenset[str]:
        """Return the objects that a variable may stand for."""
        return frozenset().union(*(self._members.get(kind, frozenset()) for kind in variable.types))

    def method_needs(self, method: Method) -> frozenset[Literal] | None:
        """Return literals over a method's variables that hold whenever it is chosen; None: it never can be."""
        result = set(literals(method.precondition))
        values = self._values(method.parameters)
        distinct = _different(method.precondition)
        count = len(method.subtasks)
        before = closure(count, method.order)
        behind = closure(count, frozenset((b, a) for a, b in method.order))
        for index, subtask in enumerate(method.subtasks):
            needs = self.needs[subtask.name]
            if needs is None:
                return None
            if count - 1 - behind[index].bit_count() > _EARLIER:
                continue  # one of so many will bring it about, and to look at all takes their square
            earlier = [
                other
                for number, other in enumerate(method.subtasks)
                if number != index and not before[number] >> index & 1
            ]
            for sign, relation, terms in needs:
                literal = (sign, relation, tuple(_in_method(term, subtask.terms) for term in terms))
                if not any(
                    self._may_bring(other.name, other.terms, literal, values, distinct) for other in earlier
                ):
                    result.add(literal)
        return frozenset(result)

    def _may_bring(
        self,
        task: str,
        terms: tuple[str, ...],
        literal: Literal,
        values: Mapping[str, frozenset[str]],
        distinct: frozenset[frozenset[str]],
    ) -> bool:
        """Say whether a subtask may make a literal true."""
        sign, relation, required = literal
        for adds, changed, arguments, _ in self.changes[task]:
            if adds != sign or changed != relation:
                continue
            if all(
                self._may_equal(terms[arg] if isinstance(arg, int) else arg, want, values, distinct)
                for arg, want in zip(arguments, required, strict=True)
            ):
                return True
        return False

    def _may_equal(
        self,
        left: str | frozenset[str],
        right: str,
        values: Mapping[str, frozenset[str]],
        distinct: frozenset[frozenset[str]],
    ) -> bool:
        if left == right:
            return True
        if isinstance(left, str) and frozenset((left, right)) in distinct:
            return False
        one = left if isinstance(left, frozenset) else values.get(left, frozenset((left,)))
        return not one.isdisjoint(values.get(right, frozenset((right,))))

    def _values(self, parameters: tuple[Variable, ...]) -> dict[str, frozenset[str]]:
        domains: dict[str, frozenset[str]] = {}
        for variable in parameters:
            here = self.values(variable)
            domains[variable.name] = domains[variable.name] & here if variable.name in domains else here
        return domains

    def _learn_changes(self) -> None:
        changes = self.changes
        for name, action in self.problem.domain.actions.items():
            changes[name] = frozenset(self._action_changes(action))
        for name in self._methods:
            changes[name] = frozenset()
        again = True
        while again:
            again = False
            for name, methods in self._methods.items():
                collected = set(changes[name])
                for method in methods:
                    values = self._values(method.parameters)
                    fixed = _fixed(method.precondition)
                    values.update(
                        (name, values[name] & only) for name, only in fixed.items() if name in values
                    )
                    for subtask in method.subtasks:
                        for adds, relation, arguments, guard in changes[subtask.name]:
                            when = self._outer_guard(guard, subtask.terms, method, values, fixed)
                            if when is None:
                                continue
                            outer = tuple(
                                self._outside(
                                    subtask.terms[arg] if isinstance(arg, int) else arg, method, values
                                )
                                for arg in arguments
                            )
                            collected.add((adds, relation, outer, when))
                if len(collected) > len(changes[name]):
                    changes[name], again = frozenset(collected), True

    def _outer_guard(
        self,
        guard: Guard,
        terms: tuple[str, ...],
        method: Method,
        values: Mapping[str, frozenset[str]],
        fixed: Mapping[str, frozenset[str]],
    ) -> Guard | None:
        """Return a subtask's guard as the method's task sees it, with the method's own; None: it is never met."""
        allowed = dict(fixed)
        for number, only in guard:
            term = terms[number]
            here = values.get(term, frozenset((term,))) & only
            if not here:
                return None
            if not is_variable(term):
                continue
            allowed[term] = allowed.get(term, only) & only
        places = method.task_terms
        return frozenset((places.index(name), only) for name, only in allowed.items() if name in places)

    def _outside(
        self, arg: str | frozenset[str], method: Method, values: Mapping[str, frozenset[str]]
    ) -> str | int | frozenset[str]:
        """Return an argument as the method's task sees it."""
        if isinstance(arg, frozenset):
            return arg
        if arg in method.task_terms:
            return method.task_terms.index(arg)
        return values.get(arg, arg)

    def _action_changes(self, action: Action) -> Iterator[Pattern]:
        names = [variable.name for variable in action.parameters]
        for effect in action.effects:
            bound = self._values(effect.bound)
            arguments = tuple(
                bound[term] if term in bound else names.index(term) if term in names else term
                for term in effect.terms
            )
            yield effect.adds, effect.relation, arguments, frozenset()

    def _learn_needs(self) -> None:
        needs = self.needs
        for name, action in self.problem.domain.actions.items():
            numbers = {variable.name: f"?{n}" for n, variable in enumerate(action.parameters)}
            needs[name] = frozenset(
                (sign, relation, tuple(numbers.get(term, term) for term in terms))
                for sign, relation, terms in literals(action.precondition)
            )
        for name in self._methods:
            needs[name] = None
        for _ in range(_ROUNDS):
            again = False
            for name, methods in self._methods.items():
                ways = [self._task_needs(method) for method in methods]
                possible = [way for way in ways if way is not None]
                common = frozenset.intersection(*possible) if possible else None
                if common != needs[name]:
                    needs[name], again = common, True
            if not again:
                return
        for name in self._methods:  # it has not come to rest: claim nothing
            needs[name] = frozenset()

    def _task_needs(self, method: Method) -> frozenset[Literal] | None:
        """Return the needs of a method that its task's parameters can express."""
        inner = self.method_needs(method)
        if inner is None:
            return None
        place = {term: f"?{n}" for n, term in reversed(list(enumerate(method.task_terms)))}
        return frozenset(
            (sign, relation, tuple(place.get(term, term) for term in terms))
            for sign, relation, terms in inner
            if all(term in place or not is_variable(term) for term in terms)
        )

    def least(self, costs: Mapping[str, float]) -> dict[str, float]:
        """Return, for each task, the least sum of what the actions in it cost."""
        steps = {**costs, **dict.fromkeys(self._methods, float("inf"))}
        again = True
        while again:
            again = False
            for name, methods in self._methods.items():
                for method in methods:
                    count = sum(steps[subtask.name] for subtask in method.subtasks)
                    if count < steps[name]:
                        steps[name], again = count, True
        return steps

    def method_steps(self, method: Method) -> float:
        """Return a lower bound on the actions with effects that a method leads to."""
        return sum(self.steps[subtask.name] for subtask in method.subtasks)


def literals(condition: Condition) -> Iterator[Literal]:
    """Yield the literals that a condition is a conjunction of; its other parts are left out."""
    for part in flat(condition):
        if part[0] == "atom":
            yield True, part[1], part[2]
        elif part[0] == "not" and part[1][0] == "atom":
            yield False, part[1][1], part[1][2]


def _fixed(condition: Condition) -> dict[str, frozenset[str]]:
    """Return the variables that a condition says are one object."""
    fixed = {}
    for part in flat(condition):
        if part[0] == "=" and is_variable(part[1]) != is_variable(part[2]):
            name, only = part[1:] if is_variable(part[1]) else (part[2], part[1])
            fixed[name] = frozenset((only,))
    return fixed


def _different(condition: Condition) -> frozenset[frozenset[str]]:
    """Return the pairs of terms that a condition says are different."""
    return frozenset(
        frozenset(part[1][1:]) for part in flat(condition) if part[0] == "not" and part[1][0] == "="
    )


def _in_method(term: str, arguments: tuple[str, ...]) -> str:
    return arguments[int(term[1:])] if term[:1] == "?" else term
