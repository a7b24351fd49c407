"""The JSON that `metatree plan` and `metatree agents` print, as types; docs/json.md is generated from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

if TYPE_CHECKING:
    from metatree_agents.planner.agents.agents import AgentInfo


class PlanStepShape(TypedDict):
    """An action or task of a plan; `after` are the steps that have to be done first."""

    id: int
    name: str
    arguments: list[Any]
    after: list[int]


class PlanShape(TypedDict):
    """`metatree plan --json`; `text` is the plan in the format of IPC 2020, empty for a domain that is not HDDL."""

    ended: str
    steps: list[PlanStepShape]
    text: str
    cost: float
    nodes: int
    seconds: float
    why: str
    agent: str | None
    status: str | None


class IntentShape(TypedDict):
    """A goal of an agent with its intent; `action` is empty while it has none."""

    id: int
    goal: str
    parent: int | None
    status: str
    kind: str
    action: str
    attempt: int
    result: Any
    detail: str


class AgentShape(TypedDict):
    """`metatree agents show --json`, and `start`, `run`, `signal`, `cancel`, `answer`."""

    agent: str
    goal: str
    status: str
    detail: str
    result: Any
    intents: list[IntentShape]
    facts: list[str]
    questions: list[str]
    refused: int


class AgentLineShape(TypedDict):
    """An agent in a list."""

    agent: str
    goal: str
    status: str
    changed_at: str


class AgentsShape(TypedDict):
    """`metatree agents list --json`."""

    agents: list[AgentLineShape]


class ConsideredShape(TypedDict):
    """What planning thought of a candidate: `chosen`, `eligible`, `potential`, `struck` or `out`."""

    goal: str
    candidate: str
    verdict: str
    why: str


class ExplainShape(TypedDict):
    """`metatree agents explain --json`."""

    agent: str
    considered: list[ConsideredShape]


def agent_shape(info: AgentInfo) -> AgentShape:
    """Return an agent as JSON."""
    from metatree_agents.planner.domain.conditions import written_atom

    return AgentShape(
        agent=info.id,
        goal=written_atom(info.goal),
        status=info.status,
        detail=info.detail,
        result=info.result,
        intents=[
            IntentShape(
                id=one.id,
                goal=written_atom(one.goal),
                parent=one.parent,
                status=one.status,
                kind=one.kind,
                action=one.action,
                attempt=one.attempt,
                result=one.result,
                detail=one.detail,
            )
            for one in info.intents
        ],
        facts=[written_atom(fact) for fact in info.facts],
        questions=list(info.questions),
        refused=info.refused,
    )
