"""What an HDDL domain and problem say, as plain data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import Any

from metatree._util.graph import reachable
from metatree.errors import UserError
from metatree_agents.planner.domain.conditions import TRUE, Condition, parts_of, values_in
from metatree_agents.planner.domain.model import linear

OBJECT = "object"


@dataclass(frozen=True, slots=True)
class Variable:
    """A parameter: its name with `?`, and the types of which its value has to have one."""

    name: str
    types: tuple[str, ...] = (OBJECT,)


@dataclass(frozen=True, slots=True)
class Effect:
    """A change of one fact, perhaps for all values of some variables, perhaps only under a condition."""

    relation: str
    terms: tuple[str, ...]
    adds: bool
    bound: tuple[Variable, ...] = ()
    when: Condition = TRUE


@dataclass(frozen=True, slots=True)
class Increase:
    """What an action adds to a function without arguments, such as `total-cost`."""

    function: str
    amount: float | tuple[str, ...]
    """A number, or a function with its terms, whose value in `:init` no action changes."""


@dataclass(frozen=True, slots=True)
class NumericEffect:
    """A change of a number, perhaps for all values of some variables, perhaps only under a condition."""

    operator: str
    """`assign`, `increase`, `decrease`, `scale-up` or `scale-down`."""
    function: str
    terms: tuple[str, ...]
    amount: Any
    """An expression, as in `conditions`."""
    bound: tuple[Variable, ...] = ()
    when: Condition = TRUE


@dataclass(frozen=True, slots=True)
class Action:
    """A primitive task."""

    name: str
    parameters: tuple[Variable, ...]
    precondition: Condition = TRUE
    effects: tuple[Effect, ...] = ()
    increases: tuple[Increase, ...] = ()
    """What a metric may count."""
    numeric: tuple[NumericEffect, ...] = ()
    """All changes of numbers, what a metric may count among them."""


@dataclass(frozen=True, slots=True)
class Subtask:
    """A task in a method or in the problem's network."""

    label: str
    name: str
    terms: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Method:
    """One way to do a compound task."""

    name: str
    parameters: tuple[Variable, ...]
    task: str
    task_terms: tuple[str, ...]
    precondition: Condition = TRUE
    """Constraints included."""
    subtasks: tuple[Subtask, ...] = ()
    order: frozenset[tuple[int, int]] = frozenset()
    """Pairs of subtasks, the first before the second; not closed under transitivity."""
    number: int = 0
    """Its place among all methods: names may be used twice."""


@dataclass(slots=True)
class Domain:
    """A domain."""

    name: str = ""
    types: dict[str, set[str]] = field(default_factory=dict)
    """Type -> types that it belongs to."""
    constants: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Object -> types."""
    predicates: dict[str, int] = field(default_factory=dict)
    """Relation -> number of arguments."""
    tasks: dict[str, tuple[Variable, ...]] = field(default_factory=dict)
    """Compound tasks."""
    methods: list[Method] = field(default_factory=list)
    actions: dict[str, Action] = field(default_factory=dict)
    functions: dict[str, int] = field(default_factory=dict)
    """Function -> number of arguments."""
    changed: dict[str, UserError] = field(default_factory=dict)
    """Functions that actions change otherwise than by an increase at all times, and the error for a metric of them."""
    assumed: dict[str, UserError] = field(default_factory=dict)
    """Names of objects that problems have to declare, and what is wrong where one does not."""
    spelling: dict[str, str] = field(default_factory=dict)
    """Lower-cased names as they are written."""

    def supertypes(self, name: str) -> set[str]:
        """Return a type and all that it belongs to."""
        return reachable([name], lambda one: self.types.get(one, ())) | {OBJECT}


@dataclass(slots=True)
class Problem:
    """A problem of a domain."""

    domain: Domain
    name: str = ""
    objects: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Object -> types, constants included."""
    init: set[tuple[str, ...]] = field(default_factory=set)
    parameters: tuple[Variable, ...] = ()
    """Variables of the initial network."""
    constraints: Condition = TRUE
    subtasks: tuple[Subtask, ...] = ()
    order: frozenset[tuple[int, int]] = frozenset()
    goal: Condition = TRUE
    values: dict[tuple[str, ...], float] = field(default_factory=dict)
    """Function with arguments -> its value at first."""
    metric: str | None = None
    """The function whose value at the end is to be small."""
    spelling: dict[str, str] = field(default_factory=dict)

    @property
    def top(self) -> Method:
        """The initial network, as the method of a task without arguments."""
        return Method("", self.parameters, "", (), self.constraints, self.subtasks, self.order, -1)

    def conditions(self) -> Iterator[Condition]:
        """Yield the conditions of actions, of their effects, of methods, and of the problem."""
        for action in self.domain.actions.values():
            yield action.precondition
            yield from (effect.when for effect in action.effects)
            yield from (change.when for change in action.numeric)
        yield from (method.precondition for method in self.domain.methods)
        yield from (self.constraints, self.goal)

    def functions_read(self) -> set[str]:
        """Return the functions that conditions depend on; others are for the metric alone."""
        compared = (part for one in self.conditions() for part in parts_of(one) if part[0] == "compare")
        feeds: dict[str, set[str]] = {}
        for action in self.domain.actions.values():
            for effect in action.numeric:
                feeds.setdefault(effect.function, set()).update(name for name, _ in values_in(effect.amount))
        return reachable(
            [name for one in compared for name, _ in values_in(one)], lambda one: feeds.get(one, ())
        )

    def step_cost(self, name: str, arguments: tuple[str, ...]) -> float:
        """Return what an action adds to the metric; 1 for each where there is none.

        Raises:
            UserError: the amount is a function without a value in `:init`.
        """
        if self.metric is None:
            return 1.0
        action, cost = self.domain.actions[name], 0.0
        for one in action.increases:
            if one.function != self.metric:
                continue
            if isinstance(one.amount, tuple):
                named = dict(zip((v.name for v in action.parameters), arguments, strict=True))
                key = (one.amount[0], *(named.get(term, term) for term in one.amount[1:]))
                if key not in self.values:
                    shown = " ".join(map(self.spelt, key))
                    raise UserError(
                        f"`({shown})` has no value in `:init`, and {self.spelt(name)} costs as much: give it one"
                    )
                cost += self.values[key]
            else:
                cost += one.amount
        return cost

    def least_cost(self) -> float:
        """Return what the cheapest action costs at least."""
        return min(self.least_costs().values(), default=0.0)

    def least_costs(self) -> dict[str, float]:
        """Return what each action costs at least."""
        if self.metric is None:
            return dict.fromkeys(self.domain.actions, 1.0)
        least = {}
        for action in self.domain.actions.values():
            cost = 0.0
            for one in (one for one in action.increases if one.function == self.metric):
                if isinstance(one.amount, tuple):
                    amounts = (v for key, v in self.values.items() if key[0] == one.amount[0])
                    cost += min(amounts, default=0.0)
                else:
                    cost += one.amount
            least[action.name] = cost
        return least

    def members(self) -> Mapping[str, tuple[str, ...]]:
        """Return the objects of each type, in the order of their declaration."""
        members: dict[str, list[str]] = {name: [] for name in (*self.domain.types, OBJECT)}
        for name, types in self.objects.items():
            for kind in set().union(*(self.domain.supertypes(t) for t in types)):
                members.setdefault(kind, []).append(name)
        return {kind: tuple(names) for kind, names in members.items()}

    def spelt(self, name: str) -> str:
        """Return a name as it is written in the files."""
        return self.spelling.get(name) or self.domain.spelling.get(name, name)

    def totally_ordered(self) -> bool:
        """Say whether all subtasks of the network and of each method are totally ordered."""
        networks = [(self.subtasks, self.order), *((m.subtasks, m.order) for m in self.domain.methods)]
        return all(is_total(len(subtasks), order) for subtasks, order in networks)


def exact(number: float) -> int | Fraction:
    """Return a number as it is written, so that sums do not depend on their order."""
    value = Fraction(repr(number))
    return value.numerator if value.denominator == 1 else value


def closure(count: int, order: frozenset[tuple[int, int]]) -> list[int]:
    """Return, for each of `count` subtasks, the bits of those before it, directly or not; it goes in no circle."""
    before = [0] * count
    behind: list[list[int]] = [[] for _ in range(count)]
    for first, second in order:
        behind[first].append(second)
    for one in linear(count, order):
        for other in behind[one]:
            before[other] |= before[one] | 1 << one
    return before


def is_total(count: int, order: frozenset[tuple[int, int]]) -> bool:
    """Say whether an order leaves no two subtasks unordered."""
    numbers = linear(count, order)
    return all(pair in order for pair in pairwise(numbers))
