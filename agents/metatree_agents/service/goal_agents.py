"""What the service shows of durable agents, which it knows by this protocol alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from metatree.errors import LeaseLost, UnknownRun, UserError

T = TypeVar("T")
MISSING = "This server shows no agents: `metatree serve --agents FILE` does."


class GoalAgents(Protocol):
    """The agents of a store; its methods block."""

    def listed(self, start: int, count: int) -> Sequence[dict[str, Any]]:
        """Return some of them, the last changed first."""
        ...

    def shown(self, agent: str) -> dict[str, Any]:
        """Return one with its goals. Raises UnknownRun."""
        ...

    def answer(self, agent: str, question: str, text: str) -> None:
        """Answer a question of one. Raises UserError, UnknownRun."""
        ...

    def retry(self, agent: str) -> None:
        """Let one that has failed go on. Raises UserError, UnknownRun, LeaseLost."""
        ...

    def cancel(self, agent: str) -> None:
        """Cancel one. Raises UserError, UnknownRun."""
        ...


async def of_agents(
    agents: GoalAgents | None, look: Callable[[GoalAgents], T], refuse: Callable[[int, str], Exception]
) -> T:
    """Return what the agents say, looked up beside the loop.

    Args:
        refuse: makes the error for a status and what is wrong.
    """
    if agents is None:
        raise refuse(404, MISSING)
    try:
        return await asyncio.to_thread(look, agents)
    except UnknownRun:
        raise refuse(404, "There is no such agent.") from None
    except LeaseLost:
        raise refuse(409, "Another process is at work on this agent: try again in a moment.") from None
    except UserError as exc:
        raise refuse(409, str(exc)) from None
