"""Agents as plain data, for pages and programs that show them and let a person answer, try again or cancel."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

from metatree.errors import UserError
from metatree_agents.planner.agents.agents import Agents
from metatree_agents.planner.domain.conditions import atom_text


class AgentViews:
    """What a service shows of the agents of a store; it drives none of them.

    Args:
        agents: opened without a domain, so that nothing of theirs runs here.
    """

    def __init__(self, agents: Agents) -> None:
        self._agents = agents

    def listed(self, start: int, count: int) -> Sequence[dict[str, Any]]:
        """Return some of the agents, the last changed first: `Agent`, `Goal`, `Status`, `Changed` (epoch seconds)."""
        return [
            {"Agent": agent, "Goal": atom_text(goal), "Status": status, "Changed": changed}
            for agent, goal, status, changed in islice(self._agents.all(), start, start + count)
        ]

    def shown(self, agent: str) -> dict[str, Any]:
        """Return an agent with its goals as a tree, told by `Depth`. Raises UnknownRun."""
        info = self._agents.show(agent)
        below: dict[int | None, list[Any]] = {}
        for one in info.intents:
            below.setdefault(one.parent, []).append(one)
        goals, waiting = [], [(one, 0) for one in reversed(below.get(None, []))]
        while waiting:
            one, depth = waiting.pop()
            waiting += [(inner, depth + 1) for inner in reversed(below.get(one.id, []))]
            goals.append(
                {
                    "Id": one.id,
                    "Depth": depth,
                    "Goal": atom_text(one.goal),
                    "By": one.action,
                    "Status": one.status,
                    "Attempt": one.attempt,
                    "WaitsFor": info.waits.get(one.id, ""),
                    "Result": None if one.result is None else str(one.result),
                    "Detail": one.detail,
                }
            )
        board = self._agents.board
        asked = [] if board is None else board.open_questions(run=agent)
        return {
            "Agent": agent,
            "Goal": atom_text(info.goal),
            "Status": info.status,
            "Detail": info.detail,
            "Version": info.version,
            "Parent": info.parent,
            "Children": list(info.children),
            "Goals": goals,
            "Questions": [{"Id": one.id, "Question": str(one.get_value("question"))} for one in asked],
            "Facts": [atom_text(one) for one in info.facts],
        }

    def answer(self, agent: str, question: str, text: str) -> None:
        """Answer a question of an agent by its id; raises UserError, UnknownRun."""
        if question not in [one["Id"] for one in self.shown(agent)["Questions"]]:
            raise UserError(f"agent {agent!r} does not ask this any more")
        self._agents.answer(question, text)

    def retry(self, agent: str) -> None:
        """Let an agent that failed go on; raises UserError, UnknownRun, LeaseLost."""
        self._agents.retry(agent)

    def cancel(self, agent: str) -> None:
        """Cancel an agent; raises UserError, UnknownRun."""
        self._agents.cancel(agent)
