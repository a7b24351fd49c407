"""Interference: which unordered intents must still not be carried out in any order.

Source: Weld 1994, "An introduction to least commitment planning" (threats between steps).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from metatree_agents.planner.conditions import is_variable
from metatree_agents.planner.model import Library
from metatree_agents.planner.network import Intent, lineage, supports

Effects = tuple[tuple[bool, str, tuple[Any, ...]], ...]
"""What an action changes: whether it adds, the relation, and the terms."""


def ordered(library: Library, network: Mapping[int, Intent], intent: Intent) -> Intent:
    """Return an intent behind the unordered ones before it with which it interferes.

    It `waits` for the end of tasks that change what it reads, read what it changes, or change the same; where it
    changes what a rule was chosen by, it waits until that rule has `begun`.
    """
    earlier = supports(network, intent)
    above = {one.id for one in lineage(network, intent)}
    reads, writes = library.reads(intent.precondition), intent.effects
    waits, begun = [], []
    for other in network.values():
        if other.status not in ("pending", "active") or other.id in above or other.number == 0:
            continue
        if earlier & {one.id for one in lineage(network, other)}:
            continue
        if other.kind == "task":
            if (
                _disturbs(other.effects, reads)
                or _disturbs(writes, library.reads(other.precondition))
                or _conflicts(other.effects, writes)
            ):
                waits.append(other.id)
        elif other.kind == "rule" and _disturbs(writes, library.reads(other.precondition)):
            begun.append(other.id)
    return replace(intent, waits=tuple(waits), begun=tuple(begun))


def _disturbs(effects: Effects, reads: frozenset[tuple[str, tuple[Any, ...]]]) -> bool:
    """Say whether effects may change what is read."""
    return any(
        changed == relation and _alike(terms, read)
        for _, changed, terms in effects
        for relation, read in reads
    )


def _conflicts(one: Effects, other: Effects) -> bool:
    """Say whether one adds what the other deletes."""
    return any(a != b and x == y and _alike(s, t) for a, x, s in one for b, y, t in other)


def _alike(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    return len(one) == len(other) and all(
        a == b or is_variable(a) or is_variable(b) for a, b in zip(one, other, strict=True)
    )
