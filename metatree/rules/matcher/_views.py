"""Views at work: how the tables of negations, existences and aggregates take in what changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from metatree.rules.matcher._aggregates import GROUPS, NEUTRAL
from metatree.rules.matcher.scopes import CompiledQuery, Union, View


def rank_of(view: View | Union) -> tuple[int, bool]:
    """Return the order in which views are settled: the deepest first, of one depth aggregates last: they cost more."""
    return (0, True) if isinstance(view, Union) else (-view.depth, bool(view.function))


def views_of(query: CompiledQuery) -> Iterator[View]:
    """Yield all views of a query, those that lie deepest first."""
    for view in (*query.views, *query.gate_views):
        yield from views_of(view.query)
        yield view


def settle(view: View | Union, event: int) -> None:
    """Take in the pending changes of a view, one key at a time, and tell of each."""
    if isinstance(view, Union):
        _settle_union(view, event)
    elif view.function:
        _settle_groups(view, event)
    else:
        _settle_counts(view, event)


def _settle_union(union: Union, event: int) -> None:
    pending = list(union.pending)
    union.pending.clear()
    table, agenda = union.table, union.agenda
    before: dict[Any, bool] = {}
    weaker: dict[Any, None] = {}
    for token, way, sign in pending:
        before.setdefault(token, token in table)
        if sign > 0:
            table.setdefault(token, {})[way] = None
        else:
            weaker[token] = None
            ways = table.get(token, {})
            ways.pop(way, None)
            if not ways:
                table.pop(token, None)
    for token, held in before.items():
        holds = token in table
        if holds and not held:
            agenda.to_add[token] = event
        elif held and not holds and agenda.to_add.pop(token, None) is None:
            agenda.withdraw(token, event)
    if agenda.production.justifies:
        # What is left may lead back to what the token justifies.
        agenda.weakened += [token for token in weaker if token in agenda.committed]
    if agenda.weakened or (agenda.eager and (agenda.to_add or agenda.to_remove)):
        union.touched[agenda] = None


def _settle_counts(view: View, event: int) -> None:
    pending = list(view.pending.items())
    view.pending.clear()
    counts = view.table
    for key, change in pending:
        old = counts.get(key, 0)
        now = old + change
        if now:
            counts[key] = now
        elif old:
            del counts[key]
        if bool(old) is not bool(now):
            view.change(key, old, now, event)


def _settle_groups(view: View, event: int) -> None:
    assert view.function
    neutral, make = NEUTRAL[view.function], GROUPS[view.function]
    pending = list(view.pending)
    view.pending.clear()
    values, groups = view.table, view.groups
    before: dict[Any, Any] = {}
    for key, value, sign in pending:
        if key not in before:
            before[key] = values.get(key, neutral)
        group = groups.get(key)
        if group is None:
            group = groups[key] = make()
        if sign > 0:
            group.add(value)
        else:
            group.remove(value)
    for key, old in before.items():
        group = groups[key]
        if group.size:
            new = group.result()
        else:
            new = neutral
            del groups[key]
        if group.size and new is not None:
            values[key] = new
        else:
            values.pop(key, None)
        if new != old:
            view.change(key, old, new, event)
