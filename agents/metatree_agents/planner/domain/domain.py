"""Domains: libraries with the Python functions that belong to them, put together by decorators."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Self, TypeVar

from metatree.errors import UserError
from metatree_agents.planner.domain._effects import effects_of
from metatree_agents.planner.domain._places import located
from metatree_agents.planner.domain.candidates import Candidate
from metatree_agents.planner.domain.conditions import TRUE, Condition, condition_of, group_of
from metatree_agents.planner.domain.facts import Facts, RelationReader
from metatree_agents.planner.domain.files import read_file
from metatree_agents.planner.domain.given import (
    MOST_SUBGOALS,
    body_given,
    checked,
    condition_given,
    order_given,
    shown,
    subgoal_of,
)
from metatree_agents.planner.domain.model import (
    Action,
    BadDefinition,
    Goal,
    Library,
    Relation,
    checked_name,
    sequence,
)

F = TypeVar("F", bound=Callable[..., Any])

Order = bool | Sequence[tuple[int, int]]
"""True: each sub-goal after the one before it; False: no order; or pairs of sub-goals."""


@dataclass(frozen=True, slots=True)
class Subgoals:
    """What the function of a rule returns when its sub-goals are not all in sequence."""

    goals: tuple[Goal, ...]
    order: tuple[tuple[int, int], ...]


def unordered(*goals: Sequence[Any]) -> Subgoals:
    """Return sub-goals without an order among them, for the function of a rule."""
    return Subgoals(tuple(subgoal_of(goal, "unordered") for goal in goals), ())


def ordered(*goals: Sequence[Any], order: Order = True) -> Subgoals:
    """Return sub-goals with an order among them, for the function of a rule."""
    made = tuple(subgoal_of(goal, "ordered") for goal in goals)
    return Subgoals(made, order_given(order, len(made), "ordered"))


class RelationName:
    """A relation; calling it makes a fact, or a goal's condition, of it."""

    def __init__(self, relation: Relation) -> None:
        self.relation = relation

    def __call__(self, *arguments: Any) -> tuple[Any, ...]:
        if len(arguments) != self.relation.arity:
            raise BadDefinition(
                f"relation {self.relation.name!r} takes {self.relation.arity} arguments, not {len(arguments)}"
            )
        return (self.relation.name, *arguments)


class Domain:
    """Relations, rules and tasks of an agent, and the functions that are their bodies.

    Args:
        version: an agent goes on with the rules and bodies of the version that it began with.
        takes_over: versions whose agents move to this one.

    Example:
        >>> home = Domain("home")
        >>> at = home.relation("at", 1)
        >>> @home.task("go(?to)", when="(at ?here)", effect="(and (not (at ?here)) (at ?to))")
        ... def walk(to: str, here: str) -> str:
        ...     return f"from {here} to {to}"
        >>> _ = home.rule("visit(?a, ?b)", subgoals=["go(?a)", "go(?b)"])
        >>> home.check()
        >>> [action.kind for action in home.library.actions.values()]
        ['task', 'rule']
    """

    def __init__(self, name: str = "domain", *, version: str = "", takes_over: Iterable[str] = ()) -> None:
        self.library = Library(name, version=version)
        self.takes_over = frozenset(takes_over)
        """Versions whose agents move to this one when they are taken up next; see `Agents`."""
        self.functions: dict[str, Callable[..., Any]] = {}
        """Action -> the body of a task, or what returns a rule's sub-goals."""
        self.readers: dict[str, RelationReader] = {}
        """Dynamic relation -> what reads it live."""

    @property
    def name(self) -> str:
        """The name of the domain."""
        return self.library.name

    @classmethod
    def from_file(cls, path: str | Path) -> Self:
        """Read a domain from a TOML or YAML file; raises BadDefinition, PlannerSyntaxError, UserError."""
        domain = cls(Path(path).stem)
        domain._add_file(read_file(path), str(path))
        return domain

    @classmethod
    def from_data(cls, data: Mapping[str, Any], *, source: str = "") -> Self:
        """Make a domain of what a TOML or YAML file holds; raises BadDefinition, PlannerSyntaxError."""
        domain = cls(str(data.get("name", "domain")))
        domain._add_file(data, source)
        return domain

    def _add_file(self, data: Mapping[str, Any], source: str) -> None:
        """Add what a file holds, and check it."""
        # Not above: pydantic brings many objects, which the garbage collector looks through: a plan of 1,500 steps for
        # a domain in Python, which has no file, took 15 % longer.
        from pydantic import ValidationError

        from metatree_agents.planner.domain._file_tables import DomainFile, problem_of

        try:
            file = DomainFile.model_validate(data)
        except ValidationError as exc:
            steps, problem = problem_of(exc)
            raise located(source, steps, "", BadDefinition(problem)) from exc
        what = ""
        steps = ()
        table: Any = None
        try:
            if file.name is not None:
                self.library.name = file.name
            for name, relation in file.relations.items():
                what, steps, table = f"relation {name!r}: ", ("relations", name), relation
                if relation.definition is not None:
                    parameters = tuple(one.lower() for one in relation.parameters)
                    self._derive(name, parameters, condition_of(relation.definition))
                elif relation.arity is not None:
                    self.relation(name, relation.arity, dynamic=relation.dynamic)
                else:
                    raise BadDefinition("its `arity` is missing")
            self.library.version = file.version
            self.takes_over = frozenset(file.takes_over)
            for name, goal in file.goals.items():
                what, steps, table = f"goal {name!r}: ", ("goals", name), None
                self.goal(name, again=goal.again, timeout_s=goal.timeout_s)
            made: list[tuple[tuple[str | int, ...], Action]] = []
            for declare, tables in ((self.task, file.tasks), (self.rule, file.rules)):
                kind = declare.__name__
                for number, each in enumerate(tables):
                    what, steps, table = f"{kind} {number + 1}: ", (f"{kind}s", number), each
                    made.append((steps, declare(**each.model_dump(exclude_unset=True)).action))
            what, table = "", None
            for name, checked_one in self.library.relations.items():
                steps = ("relations", name)
                self.library.check_relation(checked_one)
            for declared_at, action in made:
                steps = declared_at
                self.library.check_action(action)
        except UserError as exc:
            raise located(source, steps, what, exc, table) from exc

    def check(self) -> None:
        """Check that everything fits together; see `Library.check`."""
        self.library.check()

    def relation(self, name: str, arity: int, *, dynamic: bool = False) -> RelationName:
        """Declare a relation; what is returned makes facts of it."""
        checked("a relation", "name", name, str)
        checked(f"relation {name!r}", "arity", arity, int)
        if arity < 0:
            raise BadDefinition(f"relation {name!r}: arity={arity}: use 0 or more")
        relation = Relation(checked_name(name, "a relation").lower(), arity, dynamic)
        self.library.add(relation)
        return RelationName(relation)

    def derived(self, head: str, definition: str) -> RelationName:
        """Declare a relation that holds where a condition does: `derived("near(?a, ?b)", "(or …)")`."""
        checked("a derived relation", "head", head, str)
        name, terms = group_of(head)
        return self._derive(name, terms, condition_given(definition, name))

    def _derive(self, name: str, parameters: tuple[str, ...], definition: Condition) -> RelationName:
        name = checked_name(name, "a relation").lower()
        relation = Relation(name, len(parameters), False, parameters, definition)
        self.library.add(relation)
        return RelationName(relation)

    def reader(self, relation: RelationName | str) -> Callable[[F], F]:
        """Make a function the reader of a dynamic relation.

        It is called with the arguments that are known and None for the others, and returns tuples.
        """
        name = relation.relation.name if isinstance(relation, RelationName) else relation
        checked("a reader", "relation", name, str)

        def keep(function: F) -> F:
            known = self.library.relations.get(name)
            if known is None or not known.dynamic:
                raise BadDefinition(
                    f"relation {name!r} is not dynamic: only what changes outside is read live"
                )
            self.readers[name] = function
            return function

        return keep

    def goal(self, name: str, *, again: bool | None = None, timeout_s: float | None = None) -> None:
        """Say more of a goal; what is None stays as it is.

        Args:
            again: whether it is done each time that it is asked for, though it is complete.
            timeout_s: how long it may take from when its intent is begun, all attempts and sub-goals included; it then
                fails.
        """
        checked("a goal", "name", name, str)
        checked(f"goal {name!r}", "timeout_s", timeout_s, float, None)
        goals = self.library.again
        if again is not None:
            self.library.again = goals | {name} if again else goals - {name}
        if timeout_s is not None:
            if not 0 < timeout_s < float("inf"):
                raise BadDefinition(f"goal {name!r}: timeout_s={timeout_s}: use seconds above 0")
            self.library.timeouts[name] = timeout_s

    def task(
        self,
        goal: str,
        *,
        name: str | None = None,
        when: str | Condition = TRUE,
        effect: str = "",
        cost: float | str = 1.0,
        does: Mapping[str, Any] | None = None,
        title: str = "",
        description: str = "",
        repeatable: bool = True,
        attempts: int = 1,
        backoff_s: float = 0.5,
        timeout_s: float | None = None,
        heartbeat_s: float | None = None,
        undo: str = "",
        provenance: Mapping[str, Any] | None = None,
    ) -> _Body:
        """Declare a task; as a decorator, the function is its body.

        The function may be a coroutine function. It is given the values of those variables that it has parameters
        for (`?to` as `to`), and a `TaskContext` for a parameter `context`. What it returns is the intent's result,
        JSON.

        Args:
            goal: `name(?variable, value, …)`, the goals that it reaches.
            name: unique; that of the goal, or of the function, when left out.
            when: precondition; it may give values to more variables.
            effect: facts that it makes true or false.
            cost: its own, a number or one of the variables.
            does: a body that is no function: `{"search": …}`, `{"tool": …}`, `{"ask": …}`, `{"sleep": …}`,
                `{"until": …}`, `{"receive": …}`, `{"agent": …}`; see `bodies`.
            repeatable: False for what may not happen twice, so that a person decides about an interrupted one.
            attempts: how often it is tried when it fails.
            backoff_s: wait before the second attempt; doubles each time.
            timeout_s: of each attempt.
            heartbeat_s: an attempt whose body does not call `context.heartbeat()` for so long is given up.
            undo: the goal that takes back what it did, `name(?variable, ?result, …)`: asked for when the agent fails or
                is cancelled, what was done last first.
        """
        checked("a task", "goal", goal, str)
        where = f"task {goal!r}"
        for one, value, kinds in (
            ("name", name, (str, None)),
            ("effect", effect, (str,)),
            ("cost", cost, (float, str)),
            ("title", title, (str,)),
            ("description", description, (str,)),
            ("repeatable", repeatable, (bool,)),
            ("attempts", attempts, (int,)),
            ("backoff_s", backoff_s, (float,)),
            ("timeout_s", timeout_s, (float, None)),
            ("heartbeat_s", heartbeat_s, (float, None)),
            ("undo", undo, (str,)),
        ):
            checked(where, one, value, *kinds)
        head, terms = group_of(goal)
        undoing = group_of(undo) if undo else None
        action = Action(
            self._name(name or head),
            "task",
            head,
            terms,
            condition_given(when, head),
            cost,
            title,
            description,
            effects=effects_of(effect),
            does=body_given({} if does is None else does, where),
            repeatable=repeatable,
            attempts=attempts,
            backoff_s=backoff_s,
            timeout_s=timeout_s,
            heartbeat_s=heartbeat_s,
            undo=() if undoing is None else (undoing[0], *undoing[1]),
            provenance=dict(provenance or {}),
        )
        self.library.add(action)
        return _Body(self, action, named=name is not None)

    def rule(
        self,
        goal: str,
        *,
        name: str | None = None,
        when: str | Condition = TRUE,
        subgoals: Iterable[str | Goal] = (),
        order: Order = True,
        cost: float | str = 0.0,
        title: str = "",
        description: str = "",
        provenance: Mapping[str, Any] | None = None,
    ) -> _Body:
        """Declare a rule; as a decorator, the function returns its sub-goals.

        The function is called while planning and may only read: it is given values as a task's function is, and, for
        a parameter `facts`, the facts at that place of the plan. It returns a sequence of goals (tuples, the name
        first), done one after the other, or what `unordered` and `ordered` give.

        Args:
            subgoals: the sub-goals, where they need no function.
            order: of the sub-goals; see `Order`.
        """
        checked("a rule", "goal", goal, str)
        where = f"rule {goal!r}"
        for one, value, kinds in (
            ("name", name, (str, None)),
            ("cost", cost, (float, str)),
            ("title", title, (str,)),
            ("description", description, (str,)),
        ):
            checked(where, one, value, *kinds)
        if isinstance(subgoals, str) or not isinstance(subgoals, Iterable):
            raise BadDefinition(f"{where}: subgoals={shown(subgoals)}: give a list such as ['go(market)']")
        head, terms = group_of(goal)
        goals = tuple(subgoal_of(one, where) for one in subgoals)
        action = Action(
            self._name(name or head),
            "rule",
            head,
            terms,
            condition_given(when, head),
            cost,
            title,
            description,
            subgoals=goals,
            order=order_given(order, len(goals), where),
            provenance=dict(provenance or {}),
        )
        self.library.add(action)
        return _Body(self, action, named=name is not None)

    def _name(self, name: str) -> str:
        """Return a name for an action, with a number when it is taken."""
        checked_name(name, "an action")
        number, free = 1, name
        while free in self.library.actions:
            number += 1
            free = f"{name} {number}".replace(" ", "-")
        return free

    def expand(self, candidate: Candidate, facts: Facts) -> tuple[Sequence[Goal], Sequence[tuple[int, int]]]:
        """Return the sub-goals of a rule that is a function."""
        function = self.functions.get(candidate.action.name)
        if function is None:
            raise BadDefinition(
                f"rule {candidate.action.name!r} is a function that this domain lacks: give the domain it is in"
            )
        expansion = function(**arguments_for(function, candidate.binding, {"facts": facts}))
        if isinstance(expansion, Subgoals):
            return expansion.goals, expansion.order
        where = f"rule {candidate.action.name!r}"
        if expansion is None:
            return [], ()
        if isinstance(expansion, str) or not isinstance(expansion, Iterable):
            raise BadDefinition(f"{where} returned {shown(expansion)}: return a list of goals")
        goals = [subgoal_of(goal, where) for goal in islice(expansion, MOST_SUBGOALS + 1)]
        if len(goals) > MOST_SUBGOALS:
            raise BadDefinition(f"{where} returned more than {MOST_SUBGOALS:,} goals: put rules between them")
        return goals, sequence(len(goals))


class _Body:
    """What `Domain.task` and `Domain.rule` return: used as a decorator it keeps the body."""

    def __init__(self, domain: Domain, action: Action, *, named: bool) -> None:
        self._domain = domain
        self.action = action
        self._named = named

    def __call__(self, function: F) -> F:
        library, action = self._domain.library, self.action
        if not inspect.isroutine(function):
            raise BadDefinition(f"{action.kind} {action.name!r}: {shown(function)} is no function")
        if action.does:
            raise BadDefinition(
                f"{action.kind} {action.name!r} has a body already: leave `does` or the function out"
            )
        made = replace(
            action,
            does={"function": True},
            title=action.title or function.__name__.replace("_", " "),
            description=action.description or (inspect.getdoc(function) or "").partition("\n\n")[0],
        )
        if not self._named and function.__name__ != "_" and function.__name__ not in library.actions:
            made = replace(made, name=function.__name__)
        del library.actions[action.name]
        library.actions[made.name] = made
        listed = library.for_goal(action.goal)
        listed[listed.index(action)] = made
        self.action = made
        self._domain.functions[made.name] = function
        return function


def arguments_for(
    function: Callable[..., Any], binding: Mapping[str, Any], given: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the arguments of a function: values of variables by their names, and what is given by name.

    Raises:
        BadDefinition: a parameter has no value.
    """
    values = {name[1:].replace("-", "_"): value for name, value in binding.items()}
    values |= {name + "_": value for name, value in values.items()}  # `from_` for `?from`
    known = {**values, **given}
    arguments: dict[str, Any] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            arguments |= {k: v for k, v in values.items() if not k.endswith("_")}
        elif name in known:
            arguments[name] = known[name]
        elif parameter.default is parameter.empty and parameter.kind is not parameter.VAR_POSITIONAL:
            variables = ", ".join(sorted(binding)) or "none"
            raise BadDefinition(
                f"function {function.__name__!r} has a parameter {name!r} that no variable gives a value (they are"
                f" {variables})"
            )
    return arguments
