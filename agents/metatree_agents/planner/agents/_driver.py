"""What carries the effects of an agent out: planning, reading preconditions live, bodies of tasks."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from metatree._util.threads import in_thread
from metatree.durable import Attempt, Effect, Handler, InDoubt, Policy
from metatree.errors import ToolFailed, TransientError, UserError
from metatree_agents.planner.agents.bodies import TaskContext, TaskRefused, World
from metatree_agents.planner.agents.state import AgentState
from metatree_agents.planner.domain.conditions import as_data, condition_text
from metatree_agents.planner.domain.model import Action, Goal, Library
from metatree_agents.planner.domain.network import Intent
from metatree_agents.planner.planning.planning import Order, Planned, plan

_log = logging.getLogger("metatree")

Propose = Callable[[Goal, Library, str], "Awaitable[Sequence[Action]] | Sequence[Action]"]
"""The fallback for a goal that no candidate reaches: given the goal, the library and why, proposes rules."""


@dataclass
class Driving:
    """Handlers and policies for the effects of one agent."""

    agent: str
    world: World
    library: Library
    order: Order | None = None
    propose: Propose | None = None
    began: float = 0.0
    """When the agent was begun."""

    @cached_property
    def policies(self) -> Mapping[str, Policy]:
        """Kind of effect -> how. Proposed rules bring no tasks, so those of the beginning are all."""
        policies = {"ask": Policy(external=True)}
        for name, action in self.library.actions.items():
            policies[f"task {name}"] = Policy(
                attempts=action.attempts,
                timeout_s=action.timeout_s,
                backoff_s=action.backoff_s,
                repeatable=action.repeatable,
                announced=True,
                guard=self._guard,
            )
        return policies

    @property
    def handlers(self) -> Mapping[str, Handler]:
        """Kind of effect -> what carries it out."""
        return {**dict.fromkeys(self.policies, self._task), "plan": self._plan, "check": self._check}

    async def _plan(self, effect: Effect, attempt: Attempt) -> dict[str, Any]:
        # As it is now: outcomes of bodies change the agent while a thread plans, and it goes on from both.
        state: AgentState = effect.payload["state"].snapshot()
        made = await in_thread(self._planned, state=state, library=state.library)
        added: list[Action] = []
        if made.ended == "failed" and self.propose is not None:
            added, made = await self._proposed(state, made)
        return {
            "ended": made.ended,
            "intents": [
                one.to_json()
                for one in made.network.values()
                if one.id not in state.network or state.network[one.id] != one
            ],
            "failed": None if made.failed is None else list(made.failed),
            "considered": [
                {
                    "goal": list(one.goal),
                    "intent": one.intent,
                    "candidate": one.candidate,
                    "verdict": one.verdict,
                    "why": one.why,
                }
                for one in made.considered
            ],
            "added": [as_data(one) for one in added],
        }

    def _planned(self, state: AgentState, library: Library) -> Planned:
        facts = state.world(self.world.domain.readers)
        facts.library = library
        return plan(
            library,
            state.network,
            facts,
            seed=state.options.seed,
            limits=state.options.limits,
            least_cost=state.options.least_cost,
            done=frozenset(state.done),
            order=self.order,
            expand=self.world.domain.expand,
        )

    async def _proposed(self, state: AgentState, failed: Planned) -> tuple[list[Action], Planned]:
        """Ask the fallback for rules, and keep those with which there is a plan."""
        from metatree_agents.planner.planning.proposals import goals_without_candidate, library_with

        assert self.propose is not None
        for goal, why in goals_without_candidate(failed):
            try:
                proposals = self.propose(goal, state.library, why)
                proposed = await proposals if isinstance(proposals, Awaitable) else proposals
            except Exception as exc:  # a fallback that fails proposes nothing
                _log.warning("the fallback for %s failed: %s", goal[0], exc)
                continue
            for action in proposed:
                library = library_with(state.library, action, goal)
                if isinstance(library, str):
                    _log.warning("a proposed rule for %s was refused: %s", goal[0], library)
                    continue
                made = await in_thread(self._planned, state=state, library=library)
                if made.ended == "planned":
                    return [library.actions[action.name]], made
        return [], failed

    def _check(self, effect: Effect, attempt: Attempt) -> dict[str, Any]:
        state: AgentState = effect.payload["state"]
        intent = state.network.get(effect.payload["intent"])
        return {"holds": intent is not None and self._holds(state, intent)}

    def _holds(self, state: AgentState, intent: Intent) -> bool:
        return state.world(self.world.domain.readers).holds(intent.precondition)

    def _guard(self, effect: Effect, attempt: Attempt) -> None:
        state: AgentState = effect.payload["state"]
        intent = state.network.get(effect.payload["intent"])
        if intent is None or intent.status not in ("pending", "active"):
            raise TaskRefused("nobody wants it any more")
        if not self._holds(state, intent):
            raise TaskRefused(
                f"its precondition does not hold any more: {condition_text(intent.precondition)}"
            )

    async def _task(self, effect: Effect, attempt: Attempt) -> dict[str, Any]:
        state: AgentState = effect.payload["state"]
        intent = state.network[effect.payload["intent"]]
        action = state.library.actions[intent.action]
        context = TaskContext(
            self.agent,
            intent.id,
            intent.goal,
            attempt.number,
            f"{self.agent}:{intent.key}",
            state.world(self.world.domain.readers),
            self.began,
            # Only the first time: when it is interrupted once more, a person is asked once more.
            bool(effect.payload.get("again")) and attempt.number == 1,
            _since(state, intent),
            partial(_is_wanted, state, intent),
        )
        try:
            return await self.world.run(action, intent, context)
        except (UserError, InDoubt, TransientError, TimeoutError):
            raise
        except Exception as exc:
            if action.attempts == 1:
                raise
            # The kernel waits between attempts at what may work later.
            why = str(exc) if isinstance(exc, ToolFailed) else f"{type(exc).__name__}: {exc}"
            raise TransientError(why) from exc


def _since(state: AgentState, intent: Intent) -> float:
    """Return when an intent was first begun, with the candidate that it has now."""
    since = 0.0
    for entry in reversed(state.trace):
        if entry.get("intent") == intent.id:
            if entry["event"] == "struck":
                break
            if entry["event"] == "active":
                since = entry["at"]
    return since


def _is_wanted(state: AgentState, intent: Intent) -> bool:
    now = state.network.get(intent.id)
    if state.closing is not None or state.ended is not None or now is None:
        return False
    return now.status in ("pending", "active") and now.key == intent.key


def missing_functions(library: Library, world: World) -> list[str]:
    """Return the actions whose functions this process does not have."""
    return sorted(
        name
        for name, action in library.actions.items()
        if action.does.get("function") and name not in world.domain.functions
    )
