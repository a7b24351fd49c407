"""From conditions to views: what each group shares with the outside, and how it is closed over that.

Each negation, existence and aggregate becomes a **view**: a table keyed by the variables that the group shares with
the conditions around it. A view is kept up to date on its own, and looked up by key. For that its own patterns must
give a value to every key variable. Where they do not (a test inside a negation that looks outside, say), the outer
conditions that do are copied into the group, and their variables join the key; so every combination in the group
still counts once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import count
from typing import Any, Final, cast

from metatree.errors import UserError
from metatree.rules.language.conditions import (
    Aggregate,
    Binary,
    Comparison,
    Condition,
    Either,
    Existence,
    Expression,
    Function,
    FunctionCall,
    Negation,
    Pattern,
    Production,
    Retraction,
    Var,
    all_variables,
    bound_by,
    own_variables,
    parts_of,
    variables_of,
)
from metatree.rules.language.values import Fact
from metatree.rules.matcher._aggregates import Group
from metatree.rules.matcher._alpha import Alpha
from metatree.rules.matcher._gates import Gate
from metatree.rules.matcher.tokens import Agenda, facts_of

MAX_ALTERNATIVES: Final = 64
"""Ways to combine the alternatives of one production."""


@dataclass(slots=True, eq=False)
class CompiledQuery:
    """A set of conditions to be joined: those of a production, or those inside of a group."""

    patterns: tuple[Pattern, ...]
    tests: tuple[Comparison, ...]
    views: tuple[View, ...]
    variables: tuple[str, ...]
    """All that it gives a value to, in the order of the text; one combination of values is one token."""
    sink: View | Union | Gate | Agenda | None = None
    """Where its combinations go; None before it is at work."""
    gate_patterns: tuple[Pattern, ...] = ()
    """Patterns without variables that are left out of the join: the sink is a gate then."""
    gate_views: tuple[View, ...] = ()
    """Negations and existences, the same."""
    known: dict[str, Fact] = field(default_factory=dict)
    """Variables that hold the fact of such a pattern."""
    alphas: dict[Pattern, Alpha] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class View:
    """A group, kept as a table keyed by what it shares with the outside."""

    condition: Negation | Existence | Aggregate
    query: CompiledQuery
    key: tuple[str, ...]
    depth: int
    """How deep it lies; 1 for a group of the production itself."""
    table: dict[Any, Any] = field(default_factory=dict)
    """Key -> how many combinations there are, or the value of an aggregate; only keys that have some."""
    groups: dict[Any, Group] = field(default_factory=dict)
    """Of an aggregate: key -> its combinations."""
    pending: Any = field(init=False)
    """Changes that are not in the table yet: key -> by how many; of an aggregate a list of key, value and sign."""
    change: Callable[[Any, Any, Any, int], object] = lambda key, old, new, event: None
    """Called with a key whose entry appears, vanishes or changes, the entry before and after, and the event."""

    def __post_init__(self) -> None:
        self.query.sink = self
        self.pending = [] if self.function else {}

    @property
    def function(self) -> Function | None:
        """The function of an aggregate, None for a negation or an existence."""
        return self.condition.function if isinstance(self.condition, Aggregate) else None

    @property
    def variable(self) -> str | None:
        """The variable that an aggregate gives a value to."""
        return self.condition.variable if isinstance(self.condition, Aggregate) else None


@dataclass(slots=True, eq=False)
class Union:
    """The tokens of a production with alternatives: each in as many ways as its alternatives are met."""

    agenda: Agenda
    queries: tuple[CompiledQuery, ...]
    """One for each alternative."""
    touched: dict[Agenda, None]
    table: dict[Any, dict[Any, None]] = field(default_factory=dict)
    """Token -> the ways in which it is met: number of the query, and its values."""
    pending: list[Any] = field(default_factory=list)
    """Changes that are not in the table yet: token, way and sign."""

    def __post_init__(self) -> None:
        for query in self.queries:
            query.sink = self
        self.agenda.ways = self._ways

    def _ways(self, token: Any) -> Iterator[list[Fact]]:
        for number, values in self.table.get(token, ()):
            query = self.queries[number]
            yield facts_of(query.patterns, dict(zip(query.variables, values, strict=True)))


@dataclass(slots=True)
class _Scope:
    conditions: list[Condition]
    binders: dict[str, Condition] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for kind in (Aggregate, Pattern):  # a pattern is the better binder: it is written last and wins
            for condition in self.conditions:
                if isinstance(condition, kind):
                    self.binders.update((name, condition) for name in bound_by(condition))


def compile_production(production: Production) -> tuple[CompiledQuery, ...]:
    """Return the queries of a production with their views, one for each of its alternatives.

    Raises:
        UserError: a variable is used and no condition gives it a value, or an action makes no sense.
    """
    queries = []
    for conditions in alternatives(production.conditions, frozenset(), production.name):
        _check_circles(conditions)
        queries.append(_query(conditions, [_Scope(list(conditions))], production.name))
    _check_actions(production)
    return tuple(queries)


def token_variables(production: Production) -> tuple[str, ...]:
    """Return the variables of the tokens of a production, in the order of the text."""
    return tuple(dict.fromkeys(n for c in production.conditions for n in bound_by(c)))


def put_gate(query: CompiledQuery, agenda: Agenda, touched: dict[Agenda, None]) -> None:
    """Take the conditions without variables out of the query of a production, where something is left to be joined.

    A pattern stays whose fact has a name that other conditions use.
    """
    names = Counter(n for p in query.patterns for n in set(own_variables(p)))
    names.update(n for test in query.tests for n in own_variables(test))
    names.update(n for view in query.views for n in own_variables(view.condition))
    names.update(n for view in query.views for n in view.key)
    patterns = tuple(
        p
        for p in query.patterns
        if not any(isinstance(t, Var) for t in p.terms) and (p.fact is None or names[p.fact] == 1)
    )
    views = tuple(v for v in query.views if not v.key and not v.function)
    if len(patterns) == len(query.patterns) or not (patterns or views):
        return
    query.gate_patterns, query.gate_views = patterns, views
    query.patterns = tuple(p for p in query.patterns if p not in patterns)
    query.views = tuple(v for v in query.views if v not in views)
    query.known = {p.fact: cast(Fact, p.terms) for p in patterns if p.fact is not None}
    query.sink = Gate(agenda, touched)


def alternatives(
    conditions: Sequence[Condition], outside: frozenset[str], name: str
) -> list[tuple[Condition, ...]]:
    """Return conditions without alternatives in them: all ways to choose one group of each.

    Args:
        outside: variables that conditions around give a value to.

    Raises:
        UserError: there are too many, or they stand where they make no sense.
    """
    known = outside | {n for c in conditions for n in bound_by(c)}
    ways: list[tuple[Condition, ...]] = [()]
    for condition in conditions:
        more = _ways(condition, known, name)
        if len(ways) * len(more) > MAX_ALTERNATIVES:
            raise UserError(
                f"production {name!r}: its alternatives can be combined in more than {MAX_ALTERNATIVES} ways: divide "
                "it into several productions, or assert one fact for each group"
            )
        ways = [(*way, *one) for way in ways for one in more]
    return ways


def _ways(condition: Condition, known: frozenset[str], name: str) -> list[tuple[Condition, ...]]:
    match condition:
        case Either(branches):
            found: list[tuple[Condition, ...]] = []
            for branch in branches:
                own = {n for c in branch for n in bound_by(c)} - known
                # What one group alone gives a value to is that group's: it may have the name of another's.
                renamed = _with_names(branch, {n: f"{n}~{next(_fresh)}" for n in sorted(own)})
                found += alternatives(renamed, known, name)
            return found
        case Negation(inner):
            # Not (a or b) is not a, and not b.
            return [tuple(Negation(way) for way in alternatives(inner, known, name))]
        case Existence(inner):
            return [(Existence(way),) for way in alternatives(inner, known, name)]
        case Aggregate() if any(isinstance(part, Either) for part in parts_of(condition)):
            raise UserError(
                f"production {name!r}: alternatives inside of an aggregate are not supported: assert a fact for each "
                "with productions of their own, and compute over those"
            )
        case _:
            return [(condition,)]


def _check_actions(production: Production) -> None:
    known = set(token_variables(production))
    facts = {c.fact for c in production.conditions if isinstance(c, Pattern)}
    own = {c.terms for c in production.conditions if isinstance(c, Pattern)}
    for action in production.actions:
        for term in action.terms:
            for name in variables_of(term):
                if name not in known:
                    raise UserError(
                        f"production {production.name!r}: the right-hand side uses <{name}>, which no condition "
                        "outside of a group gives a value to"
                    )
        if not isinstance(action, Retraction) or not production.justifies:
            continue
        takes_own = action.terms in own or (
            isinstance(action.terms[0], Var) and action.terms[0].name in facts
        )
        if takes_own:
            raise UserError(
                f"production {production.name!r}: {action} takes back what its token stands on, so what it asserts "
                "with '!' would go at once: write '!!'"
            )


def _check_circles(conditions: Sequence[Condition]) -> None:
    """Raise UserError when an aggregate needs its own value, or those beside each other need each other's."""
    bound = {n for c in conditions if isinstance(c, Pattern) for n in bound_by(c)}
    aggregates = {c.variable: c for c in conditions if isinstance(c, Aggregate) and c.variable not in bound}
    for name, one in aggregates.items():
        used = {n for c in one.conditions for n in all_variables(c)} | {*variables_of(one.expression)}
        if name in used - {n for c in one.conditions for n in bound_by(c)}:
            raise UserError(
                f"this aggregate needs its own value <{name}>: use another name inside of it: {one}"
            )
    needs = {
        name: {n for c in one.conditions for n in all_variables(c)} & aggregates.keys() - {name}
        for name, one in aggregates.items()
    }
    while ready := [name for name, needed in needs.items() if not needed & needs.keys()]:
        for name in ready:
            del needs[name]
    if needs:
        circle = " ".join(str(aggregates[name]) for name in needs)
        raise UserError(f"these aggregates depend on each other's values: {circle}")
    for condition in conditions:
        if isinstance(condition, Negation | Existence | Aggregate):
            _check_circles(condition.conditions)


def _query(conditions: Sequence[Condition], scopes: list[_Scope], name: str) -> CompiledQuery:
    """Compile conditions whose scope is the last of the scopes; groups inside are closed first."""
    views: list[View] = []
    plain: list[Condition] = []
    for condition in conditions:
        if isinstance(condition, Negation | Existence | Aggregate):
            views.append(_view(condition, scopes, name))
        else:
            plain.append(condition)
    patterns = tuple(dict.fromkeys(c for c in plain if isinstance(c, Pattern)))
    tests = tuple(dict.fromkeys(c for c in plain if isinstance(c, Comparison)))
    order = [n for c in conditions for n in bound_by(c)]
    variables = tuple(dict.fromkeys(order))
    known = set(variables)
    for test in tests:
        for used in own_variables(test):
            if used not in known:
                raise UserError(
                    f"production {name!r}: the test {test} uses <{used}>, which no condition gives a value to"
                )
    for view in views:
        if isinstance(view.condition, Aggregate):
            _check_expression(view, name)
    return CompiledQuery(patterns, tests, tuple(views), variables)


def _check_expression(view: View, name: str) -> None:
    assert isinstance(view.condition, Aggregate)
    for used in variables_of(view.condition.expression):
        if used not in view.query.variables:
            raise UserError(
                f"production {name!r}: #{view.condition.function} is over <{used}>, which no condition inside of its "
                "braces gives a value to"
            )


def _view(condition: Negation | Existence | Aggregate, scopes: list[_Scope], name: str) -> View:
    """Close a group over what it uses from outside, and compile it."""
    conditions = _close_group(condition.conditions, scopes, _expression_of(condition), name)
    closed = replace(condition, conditions=conditions)
    inner = _Scope(list(conditions))
    query = _query(conditions, [*scopes, inner], name)
    outside = {n for scope in scopes for n in scope.binders}
    used = dict.fromkeys(n for c in conditions for n in all_variables(c))
    result = condition.variable if isinstance(condition, Aggregate) else None
    key = tuple(n for n in used if n in outside and n != result)
    return View(closed, query, key, len(scopes))


def _expression_of(condition: Condition) -> Expression | None:
    return condition.expression if isinstance(condition, Aggregate) else None


def _close_group(
    conditions: Sequence[Condition], scopes: list[_Scope], expression: Expression | None, name: str
) -> tuple[Condition, ...]:
    """Add to a group those outer conditions that give a value to what the group uses and does not bind itself.

    Groups inside come first: what they take from further out, this group must have too.
    """
    scope = _Scope(list(conditions))
    grown: list[Condition] = []
    for condition in conditions:
        if isinstance(condition, Negation | Existence | Aggregate):
            inner = _close_group(condition.conditions, [*scopes, scope], _expression_of(condition), name)
            condition = replace(condition, conditions=inner)
        grown.append(condition)
    while True:
        own = {n for c in grown for n in bound_by(c)}
        used = dict.fromkeys(n for c in grown for n in all_variables(c))
        used.update(dict.fromkeys(variables_of(expression)))
        for missing in used:
            binder = None if missing in own else _binder(missing, scopes)
            if binder is not None:
                grown.append(_renamed(binder, scopes) if isinstance(binder, Aggregate) else binder)
                break
        else:
            return tuple(grown)


def _binder(name: str, scopes: list[_Scope]) -> Condition | None:
    for scope in reversed(scopes):
        if name in scope.binders:
            return scope.binders[name]
    return None


_fresh = count(1)


def _renamed(aggregate: Aggregate, scopes: list[_Scope]) -> Aggregate:
    """Copy an aggregate so that what is its own cannot be taken for a variable of the group it is copied into."""
    outside = {n for scope in scopes for n in scope.binders}
    own = {n for c in aggregate.conditions for n in all_variables(c)} - outside
    renamed: Aggregate = _with_names(aggregate, {n: f"{n}~{next(_fresh)}" for n in sorted(own)})
    return renamed


def _with_names(part: Any, names: Mapping[str, str]) -> Any:
    """Copy a condition, or any part of one, with other names for variables."""
    match part:
        case Var(name):
            return Var(names.get(name, name))
        case tuple():
            return tuple(_with_names(one, names) for one in part)
        case (
            Pattern()
            | Comparison()
            | Binary()
            | FunctionCall()
            | Either()
            | Negation()
            | Existence()
            | Aggregate()
        ):
            copy = replace(part, **{f.name: _with_names(getattr(part, f.name), names) for f in fields(part)})
            if isinstance(copy, Pattern) and copy.fact is not None:
                return replace(copy, fact=names.get(copy.fact, copy.fact))
            if isinstance(copy, Aggregate):
                return replace(copy, variable=names.get(copy.variable, copy.variable))
            return copy
        case _:
            return part
