"""The library of a planner as plain data: relations, rules and tasks, checked when they come together."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any, Literal

from metatree._util.graph import reachable
from metatree.errors import UserError
from metatree_agents.planner.domain.conditions import (
    TRUE,
    Condition,
    as_data,
    atom_text,
    atoms_of,
    condition_text,
    free_variables,
    from_json,
    is_variable,
    parts_of,
    ranges_of,
)

RESULT = "?result"
"""In effects on dynamic relations: what the body of the task returned."""

Goal = tuple[Any, ...]
"""Name, then arguments."""


class BadDefinition(UserError):
    """A relation, rule or task is not what a planner can use; the message says which and why."""


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation between things, with as many places as its arity."""

    name: str
    arity: int
    dynamic: bool = False
    """It changes from outside, or inside bodies of tasks: planning reads it live and projects nothing."""
    parameters: tuple[str, ...] = ()
    """Of a derived relation."""
    definition: Condition | None = None
    """What makes a derived relation hold."""


@dataclass(frozen=True, slots=True)
class Action:
    """A rule or a task: one way to reach a goal."""

    name: str
    """Unique in its library."""
    kind: Literal["rule", "task"]
    goal: str
    terms: tuple[Any, ...]
    """What the goal's arguments have to match."""
    precondition: Condition = TRUE
    cost: float | str = 1.0
    """Its own cost; a variable for the value that it has."""
    title: str = ""
    description: str = ""
    subgoals: tuple[Goal, ...] = ()
    """Of a rule."""
    order: tuple[tuple[int, int], ...] = ()
    """Pairs of sub-goals, the first before the second."""
    effects: tuple[tuple[bool, str, tuple[Any, ...]], ...] = ()
    """Of a task: whether it adds, the relation, the terms."""
    does: Mapping[str, Any] = field(default_factory=dict)
    """What the body of a task is, see `bodies`: `{"function": true}`, `{"search": …}`, `{"sleep": …}`; empty: nothing.
    Of a rule `{"function": true}` means that a function returns its sub-goals."""
    repeatable: bool = True
    """False: one that was interrupted is not run again unless a person says so."""
    attempts: int = 1
    backoff_s: float = 0.5
    timeout_s: float | None = None
    heartbeat_s: float | None = None
    undo: Goal = ()
    """The goal that takes back what a task did, its terms as in effects; empty: nothing does."""
    provenance: Mapping[str, Any] = field(default_factory=dict)
    """Where an action comes from that no person wrote."""

    @property
    def variables(self) -> set[str]:
        """The variables that its goal and its precondition give values to."""
        return {term for term in self.terms if is_variable(term)} | free_variables(self.precondition)


@dataclass(slots=True)
class Library:
    """What a planner knows how to do."""

    name: str = "library"
    relations: dict[str, Relation] = field(default_factory=dict)
    actions: dict[str, Action] = field(default_factory=dict)
    again: frozenset[str] = frozenset()
    """Goals that are done each time they are asked for, though they are complete."""
    version: str = ""
    timeouts: dict[str, float] = field(default_factory=dict)
    """Goal -> how many seconds it may take from when its intent is begun."""
    _goals: dict[str, list[Action]] = field(default_factory=dict, repr=False, compare=False)

    def add(self, thing: Relation | Action) -> None:
        """Add a relation or an action.

        Raises:
            BadDefinition: there is one of this name, or a goal would have rules and tasks.
        """
        if isinstance(thing, Relation):
            if thing.name in self.relations:
                raise BadDefinition(f"relation {thing.name!r} is declared twice: give one another name")
            self.relations[thing.name] = thing
            return
        if thing.name in self.actions:
            raise BadDefinition(f"two actions are called {thing.name!r}: give one another name")
        others = self.for_goal(thing.goal)
        if others and others[0].kind != thing.kind:
            raise BadDefinition(
                f"goal {thing.goal!r} would be primitive and compound: {others[0].name!r} is a {others[0].kind} and"
                f" {thing.name!r} is a {thing.kind}; give one of them another goal"
            )
        self.actions[thing.name] = thing
        self._goals.setdefault(thing.goal, []).append(thing)

    def for_goal(self, name: str) -> list[Action]:
        """Return the rules or tasks for a goal, in the order of their coming."""
        return self._goals.get(name, [])

    def why_unreached(self, goal: Goal) -> str:
        """Say why no rule and no task can match a goal, whatever holds; empty when one can."""
        name, count = goal[0], len(goal) - 1
        actions = self.for_goal(name)
        if not actions:
            known = ", ".join(sorted({one.goal for one in self.actions.values()})) or "none"
            return f"no rule and no task reaches the goal {name!r} (known goals: {known})"
        if all(len(one.terms) != count for one in actions):
            shapes = dict.fromkeys(atom_text((one.goal, *one.terms)) for one in actions)
            return (
                f"the goal {name!r} with {count} arguments is reached by nothing: write {' or '.join(shapes)}"
            )
        return ""

    def primitive(self, goal: str) -> bool | None:
        """Say whether a goal is reached by tasks; None when nothing reaches it."""
        actions = self.for_goal(goal)
        return actions[0].kind == "task" if actions else None

    def depends_on_dynamic(self, condition: Condition) -> bool:
        """Say whether a condition depends on a dynamic relation, also through derived relations or negation."""
        relations = self.relations
        return any(name in relations and relations[name].dynamic for name in self.uses(condition))

    def is_dynamic(self, name: str) -> bool:
        """Say whether a relation is declared as dynamic."""
        return name in self.relations and self.relations[name].dynamic

    def uses(self, condition: Condition) -> set[str]:
        """Return the relations that a condition reads, those that derived ones are derived from included."""

        def read_by(one: Condition | None) -> Iterable[str]:
            return () if one is None else (*(name for name, _ in atoms_of(one)), *ranges_of(one))

        def derived_from(name: str) -> Iterable[str]:
            return read_by(self.relations[name].definition) if name in self.relations else ()

        return reachable(read_by(condition), derived_from)

    def reads(self, condition: Condition) -> frozenset[tuple[str, tuple[Any, ...]]]:
        """Return the facts that a condition reads; `?` in the place of any value."""
        if condition == TRUE:
            return frozenset()
        exact = set(atoms_of(condition))
        named = {name for name, _ in exact if self.relations[name].definition is None}
        wide = (self.uses(condition) - named) | set(ranges_of(condition))
        return frozenset(exact | {(name, ("?",) * self.relations[name].arity) for name in wide})

    def check(self) -> None:
        """Check that everything fits together.

        A sub-goal that nothing reaches is a warning, since a rule or task for it may come later.

        Raises:
            BadDefinition: with the name of what is wrong.
        """
        for relation in self.relations.values():
            self.check_relation(relation)
        for action in self.actions.values():
            self.check_action(action)

    def check_relation(self, relation: Relation) -> None:
        """Check that what a relation is derived from fits; raises BadDefinition."""
        if relation.definition is None:
            return
        where = f"derived relation {relation.name!r}"
        self._check_condition(relation.definition, where)
        missing = set(relation.parameters) - free_variables(relation.definition)
        if missing:
            raise BadDefinition(f"{where}: nothing gives a value to {', '.join(sorted(missing))}")
        if relation.name in self.uses(relation.definition):
            raise BadDefinition(f"{where} is derived from itself: break the circle")

    def check_action(self, action: Action) -> None:
        """Check that an action fits what else there is; raises BadDefinition. See `check`."""
        where = f"{action.kind} {action.name!r}"
        self._check_condition(action.precondition, where)
        known = action.variables
        if is_variable(action.cost) and action.cost not in known:
            raise BadDefinition(f"{where}: its cost {action.cost} has no value")
        if isinstance(action.cost, str) and not is_variable(action.cost):
            raise BadDefinition(f"{where}: its cost {action.cost!r} is neither a number nor a variable")
        for goal in action.subgoals:
            self._bound(goal[1:], known, f"{where}: sub-goal {goal[0]!r}")
            if not self.for_goal(goal[0]):
                warnings.warn(
                    f"{where}: no rule or task reaches the sub-goal {goal[0]!r}; planning it will fail",
                    stacklevel=3,
                )
            elif why := self.why_unreached(goal):
                warnings.warn(f"{where}: {why}; planning it will fail", stacklevel=3)
        for first, second in action.order:
            if not (0 <= first < len(action.subgoals) and 0 <= second < len(action.subgoals)):
                raise BadDefinition(f"{where}: its order names a sub-goal that it does not have")
        if len(linear(len(action.subgoals), action.order)) < len(action.subgoals):
            raise BadDefinition(f"{where}: its order goes in a circle")
        for _, name, terms in action.effects:
            relation = self._relation(name, len(terms), where)
            if relation.definition is not None:
                raise BadDefinition(f"{where}: {name!r} is derived, so no task can change it")
            results = {RESULT} if relation.dynamic else set()
            self._bound(terms, known | results, f"{where}: effect on {name!r}")
        if action.undo:
            self._bound(action.undo[1:], known | {RESULT}, f"{where}: undo")
            if not self.for_goal(action.undo[0]):
                raise BadDefinition(f"{where}: no rule or task reaches {action.undo[0]!r}, which undoes it")
            if why := self.why_unreached(action.undo):
                raise BadDefinition(f"{where}: undo: {why}")
        for name, seconds in (("timeout_s", action.timeout_s), ("heartbeat_s", action.heartbeat_s)):
            if seconds is not None and not seconds > 0:
                raise BadDefinition(f"{where}: {name}={seconds}: use seconds above 0")
        if action.backoff_s < 0:
            raise BadDefinition(f"{where}: backoff_s={action.backoff_s}: use seconds, 0 or more")
        if action.attempts < 1:
            raise BadDefinition(f"{where}: attempts={action.attempts}: use 1 or more")
        if action.attempts > 1 and not action.repeatable:
            raise BadDefinition(f"{where}: it cannot have several attempts when it is not repeatable")

    def _bound(self, terms: Iterable[Any], known: set[str], where: str) -> None:
        for term in terms:
            if is_variable(term) and term not in known:
                raise BadDefinition(
                    f"{where}: {term} has no value; name it in the goal or in the precondition"
                )

    def _check_condition(self, condition: Condition, where: str) -> None:
        for name, terms in atoms_of(condition):
            self._relation(name, len(terms), where)
        for kind in ranges_of(condition):
            self._relation(kind, 1, where)
        for one in parts_of(condition):
            untyped = [name for name, types in one[1] if not types] if one[0] == "forall" else []
            for name in untyped:
                raise BadDefinition(
                    f"{where}: say what {name} ranges over, `(forall ({name} - relation) …)`,"
                    f" in {condition_text(one)}"
                )

    def _relation(self, name: str, arity: int, where: str) -> Relation:
        relation = self.relations.get(name)
        if relation is None:
            known = ", ".join(sorted(self.relations)) or "none"
            raise BadDefinition(f"{where}: no relation is called {name!r} (known: {known}): declare it")
        if relation.arity != arity:
            raise BadDefinition(f"{where}: relation {name!r} takes {relation.arity} arguments, not {arity}")
        return relation


def library_data(library: Library) -> dict[str, Any]:
    """Return a library as JSON."""
    return {
        "name": library.name,
        "relations": [as_data(one) for one in library.relations.values()],
        "actions": [as_data(one) for one in library.actions.values()],
        "again": sorted(library.again),
        **({"version": library.version} if library.version else {}),
        **({"timeouts": library.timeouts} if library.timeouts else {}),
    }


def library_from(data: Mapping[str, Any]) -> Library:
    """Return the library that `library_data` was given."""
    library = Library(
        data["name"],
        again=frozenset(data["again"]),
        version=data.get("version", ""),
        timeouts=dict(data.get("timeouts", {})),
    )
    for one in data["relations"]:
        library.add(Relation(**{name: from_json(value) for name, value in one.items()}))
    for one in data["actions"]:
        library.add(action_from(one))
    return library


def action_from(data: Mapping[str, Any]) -> Action:
    """Return an action from its JSON."""
    return Action(**{name: from_json(value) for name, value in data.items()})


def checked_name(name: str, what: str) -> str:
    """Return a name that conditions can mention.

    Raises:
        BadDefinition: it has white space, parentheses or a leading `?`.
    """
    if not re.fullmatch(r"[^\s()?;][^\s();]*", name):
        raise BadDefinition(
            f"{what} cannot be called {name!r}: leave out spaces, parentheses, `;` and a leading `?`"
        )
    return name


def sequence(count: int) -> tuple[tuple[int, int], ...]:
    """Return the order in which each of `count` sub-goals follows the one before it."""
    return tuple((index - 1, index) for index in range(1, count))


def linear(count: int, order: Iterable[tuple[int, int]]) -> list[int]:
    """Return the places of sub-goals in an order that respects theirs, as they are written where it leaves a choice.

    Those that an order in a circle holds up are left out.
    """
    behind: list[list[int]] = [[] for _ in range(count)]
    waits = [0] * count
    for first, second in order:
        behind[first].append(second)
        waits[second] += 1
    free = [one for one in range(count) if not waits[one]]
    numbers = []
    while free:
        one = heappop(free)
        numbers.append(one)
        for other in behind[one]:
            waits[other] -= 1
            if not waits[other]:
                heappush(free, other)
    return numbers
