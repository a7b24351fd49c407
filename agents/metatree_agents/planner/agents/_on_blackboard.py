"""An agent on a blackboard: what it does, its goals, intents and relations, and its questions for the person.

trajectories    one item for each thing that happened
questions       what tasks ask, and interrupted bodies that may not happen twice
goals, intents, relations    one item of each for an agent, kept up to date
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from metatree._util.numbers import whole_number
from metatree.durable import Effect
from metatree.errors import Conflict, UnknownItem
from metatree_agents.planner.agents.state import AgentState
from metatree_agents.planner.domain.conditions import atom_text
from metatree_agents.planner.domain.network import is_planned

if TYPE_CHECKING:
    from metatree.blackboard import Blackboard
    from metatree.blackboard.items import About

_log = logging.getLogger("metatree")
EVERY_S: Final = 0.5
"""How often, while it is at work, an agent's goals, intents and relations are brought up to date."""


class AgentOnBoard:
    """Ties one agent to a board; writing the same again changes nothing, and a board that fails stops no agent."""

    def __init__(self, board: Blackboard, agent: str) -> None:
        self.board = board.whole()
        self._agent = agent
        self._next_entry = -1
        self._questions_sent: set[int] = set()
        self._questions_over: set[int] = set()
        self._drawn_at_s = 0.0
        self._failed = False

    def write(self, state: AgentState) -> None:
        """Write down what has happened since the last call."""
        try:
            self._write(state)
            if time.monotonic() - self._drawn_at_s > EVERY_S:
                self.show(state)
        except Exception:
            if not self._failed:
                _log.warning("agent %s could not write to its board; it goes on", self._agent, exc_info=True)
            self._failed = True

    def finish(self, state: AgentState) -> None:
        """Bring everything up to date."""
        try:
            self._write(state)
            self.show(state)
        except Exception:
            _log.warning("agent %s could not write to its board", self._agent, exc_info=True)

    def answers(self, effects: Iterable[Effect]) -> dict[int, dict[str, Any]]:
        """Return the answers that the board has, by effect."""
        answers: dict[int, dict[str, Any]] = {}
        for effect in effects:
            if effect.kind != "ask":
                continue
            try:
                answer = self.board.get(self.question_id(effect.id)).get_value("answer")
            except UnknownItem:
                continue
            if answer is not None:
                answers[effect.id] = {"answer": str(answer)}
        return answers

    def question_id(self, effect: int) -> str:
        """Return the id of a question on the board."""
        return f"{self._agent}:q{effect}"

    def _write(self, state: AgentState) -> None:
        if self._next_entry < 0:
            last = self.board.last_id(f"{self._agent}:t")
            self._next_entry = 0 if last is None else (whole_number(last.rpartition(":t")[2]) or 0) + 1
        entries = state.trace[self._next_entry :]
        questions = {key: text for key, text in state.questions.items() if key not in self._questions_sent}
        over = state.questions.keys() - state.open_questions().keys() - self._questions_over
        if not entries and not questions and not over:
            return
        listed: list[tuple[str, Any, About]] = [
            (
                "trajectories",
                {
                    "step": index,
                    "subtask": atom_text(entry["goal"]) if "goal" in entry else atom_text(state.goal),
                    "action_representation": " ".join(
                        part for part in (entry["event"], entry.get("action", ""), entry["detail"]) if part
                    ),
                },
                {"id": f"{self._agent}:t{index:07d}", "run": self._agent, "step": index},
            )
            for index, entry in enumerate(entries, start=self._next_entry)
        ]
        listed += [
            (
                "questions",
                {"question": text, "answer": None},
                {"id": self.question_id(key), "run": self._agent},
            )
            for key, text in questions.items()
        ]
        self.board.add_all(listed)
        self._next_entry = len(state.trace)
        self._questions_sent |= questions.keys()
        for key in over:
            self._withdraw(self.question_id(key))
        self._questions_over |= over

    def _withdraw(self, question: str) -> None:
        """Take a question back that has no answer, since nobody waits for one any more."""
        try:
            item = self.board.get(question)
            if item.get_value("answer") is None:
                self.board.remove(question, if_version=item.version)
        except (UnknownItem, Conflict):
            pass  # it was taken back before, or answered meanwhile

    def show(self, state: AgentState) -> None:
        """Bring the agent's goals, intents and relations up to date."""
        self._drawn_at_s = time.monotonic()
        for section, data in agent_sections(state).items():
            item_id = f"{self._agent}:{section}"
            try:
                if self.board.get(item_id).data != data:
                    self.board.update(item_id, data)
            except UnknownItem:
                self.board.add(section, data, id=item_id, run=self._agent)


def agent_sections(state: AgentState) -> Mapping[str, dict[str, Any]]:
    """Return what a board shows of an agent, by section."""
    intents = sorted(state.network.values(), key=lambda one: one.id)
    return {
        "goals": {
            "goal": atom_text(state.goal),
            "ended": state.ended,
            "goals": [{"id": one.id, "goal": atom_text(one.goal), "status": one.status} for one in intents],
        },
        "intents": {
            "intents": [
                {
                    "id": one.id,
                    "goal": atom_text(one.goal),
                    "action": one.action,
                    "status": one.status,
                    "attempt": one.attempt,
                    "detail": one.detail,
                }
                for one in intents
                if is_planned(one)
            ]
        },
        "relations": {
            "facts": sorted(atom_text((name, *row)) for name, rows in state.facts.items() for row in rows)
        },
    }
