"""The planner: goals, rules and tasks into intents, carried out by agents that survive their processes.

domain = Domain("delivery")           relations, rules and tasks, by decorators, TOML or YAML
plan(library, network, facts)         planning alone, a function over data
Agents("agents.db", domain)           durable agents: start, run, signal, cancel, look into
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from metatree_agents.planner.domain.domain import Domain, ordered, unordered
from metatree_agents.planner.domain.model import BadDefinition

if TYPE_CHECKING:
    from metatree_agents.planner.agents.agents import AgentInfo, Agents
    from metatree_agents.planner.agents.bodies import Done, TaskContext
    from metatree_agents.planner.agents.state import AgentOptions
    from metatree_agents.planner.planning.planning import PlanLimits, plan

__all__ = [
    "AgentInfo",
    "AgentOptions",
    "Agents",
    "BadDefinition",
    "Domain",
    "Done",
    "PlanLimits",
    "TaskContext",
    "ordered",
    "plan",
    "unordered",
]

_LATER = {
    "AgentInfo": "metatree_agents.planner.agents.agents",
    "AgentOptions": "metatree_agents.planner.agents.state",
    "Agents": "metatree_agents.planner.agents.agents",
    "Done": "metatree_agents.planner.agents.bodies",
    "PlanLimits": "metatree_agents.planner.planning.planning",
    "TaskContext": "metatree_agents.planner.agents.bodies",
    "plan": "metatree_agents.planner.planning.planning",
}


def __getattr__(name: str) -> Any:
    """Import what runs agents when it is first asked for."""
    if name in _LATER:
        from importlib import import_module

        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
