"""The JSON of `metatree plan` and `metatree goals`."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AliasChoices, BeforeValidator, Field

from metatree_agents.cli.schemas._model import Output, Time


def _atom_string(atom: Any) -> str:
    from metatree_agents.planner.domain.conditions import atom_text

    return atom if isinstance(atom, str) else atom_text(atom)


Atom = Annotated[str, BeforeValidator(_atom_string)]
"""A goal or fact, `name(value, …)`."""


class PlanStepOutput(Output):
    """An action or task of a plan; `after` are the steps that have to be done first."""

    id: int
    name: str
    arguments: list[Any]
    after: list[int]


class PlanFoundOutput(Output):
    """When a plan was found that is cheaper than those before, in seconds, and what it costs."""

    seconds: float
    cost: float


class PlanOutput(Output):
    """`metatree plan --json`; `text` is the plan in the format of IPC 2020, empty for a domain that is not HDDL."""

    ended: str
    steps: list[PlanStepOutput]
    text: str
    cost: float
    nodes: int
    seconds: float
    why: str
    agent: str | None
    status: str | None
    found: list[PlanFoundOutput]


class IntentOutput(Output):
    """A goal of an agent with its intent; `action` is empty while it has none."""

    id: int
    goal: Atom
    parent: int | None
    status: str
    kind: str
    action: str
    attempt: int
    result: Any
    detail: str


class AgentOutput(Output):
    """`metatree goals show --json`, and `start`, `run`, `signal`, `cancel`, `answer`, `retry`; `waits` tells of each
    intent that has not ended what it waits for."""

    agent: str = Field(validation_alias=AliasChoices("agent", "id"))
    goal: Atom
    status: str
    detail: str
    result: Any
    intents: list[IntentOutput]
    facts: list[Atom]
    questions: list[str]
    refused: int
    waits: dict[int, str]
    version: str
    parent: str
    children: list[str]


class AgentLineOutput(Output):
    """An agent in a list."""

    agent: str
    goal: Atom
    status: str
    changed_at: Time


class AgentsOutput(Output):
    """`metatree goals list --json`."""

    agents: list[AgentLineOutput]


class ScheduleOutput(Output):
    """A schedule of agents; `next_at` is null for never again, `last` the agent that was begun last."""

    name: str
    cron: str
    zone: str
    goal: Atom
    missed: str
    overlap: str
    last: str
    next_at: Time | None


class SchedulesOutput(Output):
    """`metatree goals schedules --json`, and `schedule`, `unschedule`."""

    schedules: list[ScheduleOutput]


class ConsideredOutput(Output):
    """What planning thought of a candidate: `chosen`, `eligible`, `potential`, `struck` or `out`."""

    goal: Atom
    candidate: str
    verdict: str
    why: str


class ExplainOutput(Output):
    """`metatree goals explain --json`."""

    agent: str
    considered: list[ConsideredOutput]
