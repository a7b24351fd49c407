"""The state of an agent: plain data that its journal folds to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from metatree.errors import UserError
from metatree_agents.planner.domain.facts import Facts, RelationReader
from metatree_agents.planner.domain.model import RESULT, Goal, Library
from metatree_agents.planner.domain.network import Intent
from metatree_agents.planner.planning.planning import PlanLimits


@dataclass(frozen=True, slots=True)
class AgentOptions:
    """How an agent plans and acts."""

    seed: int = 0
    """Draws among candidates of equal cost."""
    least_cost: bool = False
    """Look for the plan of least total cost."""
    replan: bool = False
    """When an intent fails, strike its candidate and plan again from the nearest goal that has another."""
    on_stuck: Literal["fail", "wait"] = "fail"
    """What to do with goals that cannot be planned now: fail, or wait for an event."""
    concurrency: int = 4
    """How many bodies run at once."""
    depth: int = PlanLimits().depth
    nodes: int = PlanLimits().nodes
    plan_s: float = PlanLimits().seconds
    """Limits of each planning."""

    def __post_init__(self) -> None:
        if self.on_stuck not in ("fail", "wait"):
            raise UserError(f"on_stuck={self.on_stuck!r}: use 'fail' or 'wait'")
        if self.concurrency < 1:
            raise UserError(f"concurrency={self.concurrency}: use 1 or more")

    def to_json(self) -> dict[str, Any]:
        """Return this as JSON."""
        return asdict(self)

    @property
    def limits(self) -> PlanLimits:
        """The limits of each planning."""
        return PlanLimits(self.depth, self.nodes, self.plan_s)


@dataclass(slots=True)
class AgentState:
    """An agent."""

    goal: Goal
    library: Library
    options: AgentOptions
    network: dict[int, Intent] = field(default_factory=dict)
    facts: dict[str, set[tuple[Any, ...]]] = field(default_factory=dict)
    done: set[Goal] = field(default_factory=set)
    """Goals that are complete."""
    issued: dict[int, tuple[str, int]] = field(default_factory=dict)
    """Effect in flight -> what it is for (`plan`, `check`, `task`, `ask`, `doubt`) and its intent."""
    questions: dict[int, str] = field(default_factory=dict)
    """Effect -> the question that it puts to the person; those that were answered, too."""
    effects: int = 0
    later: list[Goal] = field(default_factory=list)
    """Goals that were asserted while planning was in progress."""
    repair: int | None = None
    """An intent that failed, whose candidate is to be excluded."""
    plan_again: bool = True
    """Whether something has happened since the last planning that may make goals plannable."""
    ended: str | None = None
    """`complete`, `failed`, `limit` or `cancelled`."""
    detail: str = ""
    closing: str | None = None
    """How it ends once the bodies that still run have returned."""
    trace: list[dict[str, Any]] = field(default_factory=list)
    """What happened, JSON."""
    considered: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    """Goal -> what planning thought of its candidates; JSON."""

    def put(self, intent: Intent, **changes: Any) -> Intent:
        """Change an intent and return it as it is now."""
        made = replace(intent, **changes)
        self.network[intent.id] = made
        return made

    def snapshot(self) -> AgentState:
        """Return the agent as it is now; what is planned from it changes with it no more."""
        return replace(
            self,
            network=dict(self.network),
            facts={name: set(rows) for name, rows in self.facts.items()},
            done=set(self.done),
        )

    def world(self, readers: Mapping[str, RelationReader] | None = None) -> Facts:
        """Return the facts as they are now."""
        return Facts(self.library, self.facts, readers)

    def purposes(self) -> set[tuple[str, int]]:
        """Return what effects in flight are for."""
        return set(self.issued.values())

    def note(self, event: str, now: float, intent: Intent | None = None, detail: str = "") -> None:
        """Add an entry to the trace."""
        entry: dict[str, Any] = {"event": event, "at": now, "detail": detail}
        if intent is not None:
            entry |= {"intent": intent.id, "goal": list(intent.goal), "action": intent.action}
        self.trace.append(entry)

    def apply(self, effects: tuple[tuple[bool, str, tuple[Any, ...]], ...], result: Any = None) -> None:
        """Apply effects; deletions first, so that what is both is there."""
        for adding in (False, True):
            for adds, relation, terms in effects:
                if adds is not adding:
                    continue
                rows = self.facts.setdefault(relation, set())
                fact = tuple(result if term == RESULT else term for term in terms)
                if adds:
                    rows.add(fact)
                else:
                    rows.discard(fact)
