"""The state of an agent: plain data that its journal folds to."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import datetime
from typing import Any, Final, Literal

from metatree.errors import UserError
from metatree_agents.planner.domain.facts import Facts, RelationReader
from metatree_agents.planner.domain.given import checked
from metatree_agents.planner.domain.model import RESULT, Goal, Library
from metatree_agents.planner.domain.network import Intent, lineage
from metatree_agents.planner.planning.planning import PlanLimits

ENDED: Final = ("complete", "failed", "cancelled")
"""Intents that come to nothing else."""
LONGEST_S: Final = 1e10
"""Some three hundred years."""


def plain(result: Any) -> Any:
    """Return a result as it stands in facts and goals: a list or an object as JSON."""
    return json.dumps(result, ensure_ascii=False) if isinstance(result, list | dict) else result


def moment_of(value: Any, where: str) -> float:
    """Return a time with its zone in seconds since the epoch; raises UserError."""
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise UserError(
            f"{where}={value!r}: give a date and a time with its zone, such as 2026-12-01T08:00:00+01:00"
        )
    return moment.timestamp()


def _seconds(value: Any, where: str) -> float:
    try:
        seconds = float(value)
    except (TypeError, ValueError):
        seconds = -1.0
    if isinstance(value, bool) or not 0 <= seconds <= LONGEST_S:
        raise UserError(f"{where} sleeps {value!r}: give seconds, as a number from 0 to {LONGEST_S:g}")
    return seconds


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
    timeout_s: float | None = None
    """The agent fails when it has not ended so long after it was begun."""
    deadline: str = ""
    """The agent fails when it has not ended by then: a date and a time with its zone."""

    def __post_init__(self) -> None:
        for name, kinds in (
            ("seed", (int,)),
            ("least_cost", (bool,)),
            ("replan", (bool,)),
            ("on_stuck", (str,)),
            ("concurrency", (int,)),
            ("depth", (int,)),
            ("nodes", (int,)),
            ("plan_s", (float,)),
            ("timeout_s", (float, None)),
            ("deadline", (str,)),
        ):
            checked("an agent's options", name, getattr(self, name), *kinds)
        for name in ("depth", "nodes", "plan_s"):
            if not getattr(self, name) > 0:
                raise UserError(f"{name}={getattr(self, name)}: use a number above 0")
        if self.on_stuck not in ("fail", "wait"):
            raise UserError(f"on_stuck={self.on_stuck!r}: use 'fail' or 'wait'")
        if self.concurrency < 1:
            raise UserError(f"concurrency={self.concurrency}: use 1 or more")
        if self.timeout_s is not None and not 0 < self.timeout_s < float("inf"):
            raise UserError(f"timeout_s={self.timeout_s}: use seconds above 0")
        if self.deadline:
            moment_of(self.deadline, "deadline")

    def to_json(self) -> dict[str, Any]:
        """Return this as JSON."""
        return asdict(self)

    def ends_at(self, began: float) -> float | None:
        """Return when an agent has to have ended, in seconds since the epoch."""
        at = [] if self.timeout_s is None else [began + self.timeout_s]
        at += [moment_of(self.deadline, "deadline")] if self.deadline else []
        return min(at, default=None)

    @property
    def limits(self) -> PlanLimits:
        """The limits of each planning."""
        return PlanLimits(self.depth, self.nodes, self.plan_s)


def options_of(settings: Mapping[str, Any]) -> AgentOptions:
    """Return options by their names; raises UserError."""
    known = [one.name for one in fields(AgentOptions)]
    for name in settings:
        if name not in known:
            raise UserError(f"agents have no option {name!r}: use one of {', '.join(known)}")
    return AgentOptions(**settings)


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
    """Effect in flight -> what it is for and its intent: `plan`, `check`, `task`, `ask`, `doubt`; `timer` (a task that
    waits for a time), `timeout` (of a goal), `deadline`, `child` (begins one), `stop` (cancels one)."""
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
    """How it ends once the bodies that still run have returned, and what it did is undone."""
    id: str = ""
    """Its name; empty for agents of before it was kept here."""
    parent: tuple[str, int] | None = None
    """The agent whose child it is, and the intent there that waits for it."""
    children: dict[int, str] = field(default_factory=dict)
    """Intent -> the agent that it waits for."""
    stopped: set[str] = field(default_factory=set)
    """Children that were told to stop."""
    received: dict[str, list[Any]] = field(default_factory=dict)
    """Messages that nobody has waited for yet, by name."""
    undo: list[tuple[int, Goal]] = field(default_factory=list)
    """What was done and can be undone, in the order of its doing: the intent, and the goal that undoes it."""
    last_id: int = 0
    """The highest id of the goals that are gone."""
    retries: int = 0
    """How often it was taken up again after it had failed."""
    undoing: int | None = None
    """The goal that undoes something now."""
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

    def due(self, intent: Intent, now: float) -> float:
        """Return when a task that waits for a time goes on, in seconds since the epoch.

        Args:
            now: when it is begun.

        Raises:
            UserError: what the task names is no time.
        """
        does, binding = self.library.actions[intent.action].does, dict(intent.binding)
        value = does["sleep"] if "sleep" in does else does["until"]
        value = binding.get(value, value) if isinstance(value, str) else value
        where = f"task {intent.action!r}"
        return now + _seconds(value, where) if "sleep" in does else moment_of(value, f"{where}: until")

    def new_id(self) -> int:
        """Return an id that no goal of the agent has had."""
        return max(self.last_id, *self.network) + 1

    def root(self, intent: Intent) -> Intent:
        """Return the goal that an intent is for: the top-level one, or one that undoes something."""
        *_, top = lineage(self.network, intent)
        return top

    def wants(self, intent: Intent) -> bool:
        """Say whether the agent still wants what an intent is for."""
        if self.ended is not None or intent.status not in ("pending", "active"):
            return False
        return self.closing is None or self.root(intent).id == self.undoing

    def world(self, readers: Mapping[str, RelationReader] | None = None) -> Facts:
        """Return the facts as they are now."""
        return Facts(self.library, self.facts, readers)

    def purposes(self) -> set[tuple[str, int]]:
        """Return what effects in flight are for."""
        return set(self.issued.values())

    def open_questions(self) -> dict[int, str]:
        """Return the questions that somebody still waits for, by effect."""
        if self.ended is not None:
            return {}
        return {
            key: text
            for key, text in self.questions.items()
            if key in self.issued
            and ((one := self.network.get(self.issued[key][1])) is None or one.status not in ENDED)
        }

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
                fact = tuple(plain(result) if term == RESULT else term for term in terms)
                if adds:
                    rows.add(fact)
                else:
                    rows.discard(fact)
