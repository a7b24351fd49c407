"""Goals and intents of an agent: one network of them, plain data.

A goal that has been planned has an intent: the rule or task that was chosen for it. Both are one entry here, since what
follows a goal waits for its intent, and a rule's sub-goals wait for the rule; so ids survive planning again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from metatree._util.graph import reachable
from metatree_agents.planner.domain.conditions import TRUE, Condition, as_data, from_json
from metatree_agents.planner.domain.model import Goal

Status = Literal["open", "deferred", "pending", "active", "complete", "failed", "cancelled"]
"""`open` and `deferred` are goals without an intent; `ready` is derived: pending, with all predecessors complete."""

TOP = 1
"""The id of the top-level goal."""


@dataclass(frozen=True, slots=True)
class Intent:
    """A goal, with its intent once it is planned."""

    id: int
    goal: Goal
    parent: int | None = None
    after: tuple[int, ...] = ()
    """Siblings that have to be complete first."""
    status: Status = "open"
    kind: Literal["rule", "task", "nothing", ""] = ""
    """`nothing`: the goal is complete already, or will be."""
    action: str = ""
    binding: tuple[tuple[str, Any], ...] = ()
    precondition: Condition = TRUE
    """With the values of its variables."""
    live: bool = False
    """Whether its precondition depends on a dynamic relation."""
    effects: tuple[tuple[bool, str, tuple[Any, ...]], ...] = ()
    cost: float = 0.0
    number: int = 0
    """Its place in the order in which intents were planned."""
    after_end: tuple[int, ...] = ()
    """Intents that have to be complete first, since they interfere."""
    after_start: tuple[int, ...] = ()
    """Rules that have to be active first, since this would disturb their preconditions."""
    excluded: tuple[str, ...] = ()
    """Candidates that failed, as `candidate_key` names them."""
    attempt: int = 0
    key: str = ""
    """The idempotency key of its body."""
    result: Any = None
    detail: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return this as JSON, without what has its default."""
        return as_data(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Intent:
        """Return what `to_json` was given."""
        return cls(**{k: v if k == "result" else from_json(v) for k, v in data.items()})


Network = Mapping[int, Intent]


SETTLED = ("complete", "cancelled")
"""What follows a goal may go on: it is complete, or nobody wants it any more."""


def is_planned(intent: Intent) -> bool:
    """Say whether a goal has its intent."""
    return intent.status not in ("open", "deferred")


def children(network: Network, parent: int) -> list[Intent]:
    """Return the sub-goals of a rule's intent, in the rule's order."""
    return sorted((one for one in network.values() if one.parent == parent), key=lambda one: one.id)


def lineage(network: Network, intent: Intent) -> Iterator[Intent]:
    """Yield an intent and those above it, nearest first."""
    at: Intent | None = intent
    while at is not None:
        yield at
        at = network[at.parent] if at.parent is not None else None


def supports(network: Network, intent: Intent) -> set[int]:
    """Return the support goals of a goal: all that precede it by constraints, those of its ancestors included."""
    first = (before for one in lineage(network, intent) for before in one.after)
    return reachable(first, lambda one: network[one].after)


def is_supported(network: Network, intent: Intent) -> bool:
    """Say whether all support goals of a goal are complete."""
    return all(network[one].status in SETTLED for one in supports(network, intent))


def is_ready(network: Network, intent: Intent) -> bool:
    """Say whether an intent may be begun: pending, with its rule active and all predecessors complete."""
    if intent.status != "pending":
        return False
    if intent.parent is not None and network[intent.parent].status != "active":
        return False
    return _over(network, (*intent.after, *intent.after_end), intent.after_start)


def _over(network: Network, ends: Iterable[int], starts: Iterable[int]) -> bool:
    """Say whether intents have ended, and others have started.

    One that was cancelled waited for others, for which nobody else may wait by name.
    """
    seen: set[int] = set()
    for waiting, done in (([*starts], ("active", "complete")), ([*ends], ("complete",))):
        while waiting:
            one = network[waiting.pop()]
            if one.status in done or one.id in seen:
                continue
            if one.status != "cancelled":
                return False
            seen.add(one.id)
            for above in lineage(network, one):
                if above.status in ("active", "complete"):
                    break
                waiting += (*above.after, *above.after_end)
                if any(network[key].status == "pending" for key in above.after_start):
                    return False
    return True


def without(network: Network, intent: Intent, removed: set[int]) -> Intent:
    """Return an intent that waits for what those waited for that are gone, instead of for them."""
    if removed.isdisjoint((*intent.after_end, *intent.after_start)):
        return intent
    after_end, after_start = set(intent.after_end), set(intent.after_start)
    waiting = list(removed & (after_end | after_start))
    seen = set(waiting)
    while waiting:
        for above in lineage(network, network[waiting.pop()]):
            after_end.update(above.after, above.after_end)
            after_start.update(above.after_start)
            if above.id not in removed and above.status == "pending":
                after_start.add(above.id)
            more = [
                key for key in (*above.after, *above.after_end, *above.after_start) if key in removed - seen
            ]
            seen.update(more)
            waiting += more
    left = {key for key in after_end - removed if network[key].status != "complete"}
    return replace(intent, after_end=tuple(sorted(left)), after_start=tuple(sorted(after_start - removed)))


def descendants(network: Network, above: int) -> set[int]:
    """Return all that is below an intent."""
    below: dict[int, list[int]] = {}
    for one in network.values():
        if one.parent is not None:
            below.setdefault(one.parent, []).append(one.id)
    return reachable(below.get(above, ()), lambda one: below.get(one, ()))


def candidate_key(action: str, binding: Mapping[str, Any]) -> str:
    """Return the name of a candidate: its action and the values of its variables."""
    values = ", ".join(f"{name}={value}" for name, value in sorted(binding.items()))
    return f"{action}({values})" if values else action
