"""Goals and intents of an agent: one network of them, plain data.

A goal that has been planned has an intent: the rule or task that was chosen for it. Both are one entry here, since what
follows a goal waits for its intent, and a rule's sub-goals wait for the rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from metatree_agents.planner.domain.conditions import TRUE, Condition, as_json, from_json
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
    waits: tuple[int, ...] = ()
    """Intents that have to be complete first, since they interfere."""
    begun: tuple[int, ...] = ()
    """Rules that have to be active first, since this would disturb their preconditions."""
    struck: tuple[str, ...] = ()
    """Candidates that failed, as `candidate_key` names them."""
    attempt: int = 0
    key: str = ""
    """The idempotency key of its body."""
    result: Any = None
    detail: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return this as JSON, without what has its default."""
        # Not asdict, which copies deeply: an agent writes each of its intents down.
        data = {
            name: value for name in _NAMES if (value := getattr(self, name)) != _DEFAULTS.get(name, _NOTHING)
        }
        if "precondition" in data:
            data["precondition"] = as_json(self.precondition)
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Intent:
        """Return what `to_json` was given."""
        return cls(**{k: v if k in ("result",) else from_json(v) for k, v in data.items()})


_NOTHING: Any = object()
_NAMES = tuple(one.name for one in fields(Intent))
_DEFAULTS = {one.name: one.default for one in fields(Intent) if one.name not in ("id", "goal")}

Network = Mapping[int, Intent]


SETTLED = ("complete", "cancelled")
"""What follows a goal may go on: it is complete, or nobody wants it any more."""


def planned(intent: Intent) -> bool:
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
    found: set[int] = set()
    waiting = [before for one in lineage(network, intent) for before in one.after]
    while waiting:
        one = waiting.pop()
        if one not in found:
            found.add(one)
            waiting += network[one].after
    return found


def supported(network: Network, intent: Intent) -> bool:
    """Say whether all support goals of a goal are complete."""
    return all(network[one].status in SETTLED for one in supports(network, intent))


def ready(network: Network, intent: Intent) -> bool:
    """Say whether an intent may be begun: pending, with its rule active and all predecessors complete."""
    if intent.status != "pending":
        return False
    if intent.parent is not None and network[intent.parent].status != "active":
        return False
    return _over(network, (*intent.after, *intent.waits), intent.begun)


def _over(network: Network, ends: Iterable[int], begun: Iterable[int]) -> bool:
    """Say whether intents have ended, and others have begun.

    One that was cancelled waited for others, for which nobody else may wait by name.
    """
    seen: set[int] = set()
    for waiting, done in (([*begun], ("active", "complete")), ([*ends], ("complete",))):
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
                waiting += (*above.after, *above.waits)
                if any(network[key].status == "pending" for key in above.begun):
                    return False
    return True


def without(network: Network, intent: Intent, gone: set[int]) -> Intent:
    """Return an intent that waits for what those waited for that are gone, instead of for them."""
    if gone.isdisjoint((*intent.waits, *intent.begun)):
        return intent
    waits, begun = set(intent.waits), set(intent.begun)
    waiting = list(gone & (waits | begun))
    seen = set(waiting)
    while waiting:
        for above in lineage(network, network[waiting.pop()]):
            waits.update(above.after, above.waits)
            begun.update(above.begun)
            if above.id not in gone and above.status == "pending":
                begun.add(above.id)
            more = [key for key in (*above.after, *above.waits, *above.begun) if key in gone - seen]
            seen.update(more)
            waiting += more
    left = {key for key in waits - gone if network[key].status != "complete"}
    return replace(intent, waits=tuple(sorted(left)), begun=tuple(sorted(begun - gone)))


def descendants(network: Network, above: int) -> set[int]:
    """Return all that is below an intent."""
    below: dict[int, list[int]] = {}
    for one in network.values():
        if one.parent is not None:
            below.setdefault(one.parent, []).append(one.id)
    found: set[int] = set()
    waiting = list(below.get(above, ()))
    while waiting:
        one_id = waiting.pop()
        found.add(one_id)
        waiting += below.get(one_id, ())
    return found


def candidate_key(action: str, binding: Mapping[str, Any]) -> str:
    """Return the name of a candidate: its action and the values of its variables."""
    values = ", ".join(f"{name}={value}" for name, value in sorted(binding.items()))
    return f"{action}({values})" if values else action
