"""Views at work: how the tables of negations, existences and aggregates take in what changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from metatree.rules.matcher._aggregates import GROUPS, NEUTRAL
from metatree.rules.matcher.scopes import CompiledQuery, View


def rank_of(view: View) -> tuple[int, bool]:
    """Return the order in which views are settled: the deepest first, of one depth aggregates last: they cost more."""
    return -view.depth, bool(view.function)


def views_of(query: CompiledQuery) -> Iterator[View]:
    """Yield all views of a query, those that lie deepest first."""
    for view in query.views:
        yield from views_of(view.query)
        yield view


def settle(view: View, event: int) -> None:
    """Take in the pending changes of a view, one key at a time, and tell of each."""
    if view.function:
        _settle_groups(view, event)
    else:
        _settle_counts(view, event)


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
