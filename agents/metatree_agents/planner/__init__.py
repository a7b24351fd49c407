"""The planner: goals, rules and tasks into intents, carried out by agents that survive their processes."""

from __future__ import annotations
