"""Views at work: the tables of negations, existences and aggregates, and how they take in what changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from metatree.rules.language.conditions import Aggregate, Pattern, Var
from metatree.rules.language.values import Value
from metatree.rules.matcher._aggregates import GROUPS, NEUTRAL, Group
from metatree.rules.matcher._alpha import Alpha
from metatree.rules.matcher._emit import names_of, value_function
from metatree.rules.matcher.scopes import CompiledQuery, View
from metatree.rules.matcher.tokens import Agenda


class ViewTable:
    """A view at work."""

    __slots__ = (
        "appear",
        "change",
        "compute",
        "counts",
        "groups",
        "names",
        "owner",
        "pending",
        "query",
        "rank",
        "values",
        "vanish",
        "view",
    )

    def __init__(self, view: View, owner: QueryNode) -> None:
        self.view = view
        self.owner = owner
        self.rank = -view.depth
        """Deeper views come first; of one depth, negations and existences before aggregates, which cost more."""
        self.counts: dict[Any, int] = {}
        """Negation, existence: key -> how many combinations there are; only keys that have some."""
        self.groups: dict[Any, Group] = {}
        self.values: dict[Any, Value] = {}
        """Aggregate: key -> its value, for keys that have combinations."""
        self.pending: Any = [] if view.function else {}
        self.query = QueryNode(view.query, self)
        self.appear = self.vanish = self.change = _not_connected
        self.names = names_of(view.condition.expression) if isinstance(view.condition, Aggregate) else []
        expression = view.condition.expression if isinstance(view.condition, Aggregate) else None
        plain = expression is None or isinstance(expression, Var)
        self.compute = None if plain or expression is None else value_function(expression, self.names)


class QueryNode:
    """A query at work: its memories, its tables, and where its combinations go."""

    __slots__ = ("alphas", "query", "sink", "tables")

    def __init__(self, query: CompiledQuery, sink: ViewTable | Agenda) -> None:
        self.query = query
        self.sink = sink
        self.alphas: dict[Pattern, Alpha] = {}
        self.tables = {id(view): ViewTable(view, self) for view in query.views}


def rank_of(table: ViewTable) -> tuple[int, bool]:
    """Return the order in which tables are settled: the deepest first, aggregates last."""
    return table.rank, bool(table.view.function)


def table_of(table: ViewTable) -> dict[Any, Any]:
    """Return what is looked up by key."""
    return table.values if table.view.function else table.counts


def tables_of(node: QueryNode) -> Iterator[ViewTable]:
    """Yield all tables of a query, those that lie deepest first."""
    for table in node.tables.values():
        yield from tables_of(table.query)
        yield table


def settle_counts(table: ViewTable, event: int) -> None:
    """Take in the pending changes of a negation or existence, and tell of keys that appear or vanish."""
    pending = list(table.pending.items())
    table.pending.clear()
    counts = table.counts
    for key, change in pending:
        old = counts.get(key, 0)
        now = old + change
        if now:
            counts[key] = now
            if not old:
                table.appear(key, event)
        elif old:
            del counts[key]
            table.vanish(key, event)


def settle_groups(table: ViewTable, event: int) -> None:
    """Take in the pending changes of an aggregate, and tell of keys whose value changes."""
    assert table.view.function
    neutral = NEUTRAL[table.view.function]
    values, change = table.values, table.change
    before: dict[Any, Value | None] = {}
    for key in _apply_groups(table):
        if key not in before:
            before[key] = values.get(key, neutral)
    for key, old in before.items():
        group = table.groups[key]
        if group.size:
            new = group.result()
        else:
            new = neutral
            del table.groups[key]
        if group.size and new is not None:
            values[key] = new
        else:
            values.pop(key, None)
        if new != old:
            change(key, old, new, event)


def absorb_groups(table: ViewTable) -> None:
    """Take in what a fresh join gave, without telling anybody."""
    for key in dict.fromkeys(_apply_groups(table)):
        result = table.groups[key].result()
        if result is not None:
            table.values[key] = result


def _apply_groups(table: ViewTable) -> list[Any]:
    """Put pending values into their groups, or take them out; return the keys."""
    assert table.view.function
    pending = list(table.pending)
    table.pending.clear()
    groups, make = table.groups, GROUPS[table.view.function]
    for key, value, sign in pending:
        group = groups.get(key)
        if group is None:
            group = groups[key] = make()
        if sign > 0:
            group.add(value)
        else:
            group.remove(value)
    return [key for key, _, _ in pending]


def _not_connected(*_: Any) -> None:
    raise AssertionError("a view changed before its query was connected")
