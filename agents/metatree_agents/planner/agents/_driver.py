"""What carries the effects of an agent out: planning, reading preconditions live, bodies of tasks."""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

from metatree._util.threads import in_thread
from metatree.durable import Attempt, Effect, Handler, InDoubt, Policy, first_record
from metatree.durable.sql_journal import SqlJournal
from metatree.errors import RunExists, ToolFailed, TransientError, UserError
from metatree_agents.planner.agents._machine import MACHINE, PlannerMachine
from metatree_agents.planner.agents.bodies import TaskCancelled, TaskContext, TaskRefused, World
from metatree_agents.planner.agents.state import AgentState
from metatree_agents.planner.domain.conditions import as_data, condition_text
from metatree_agents.planner.domain.model import Action, Goal, Library, library_from
from metatree_agents.planner.domain.network import Intent, descendants
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
    journal: SqlJournal | None = None
    """Where children are begun."""
    bodies: dict[int, asyncio.Task[dict[str, Any]]] = field(default_factory=dict)
    """Intent -> its body at work."""

    @cached_property
    def policies(self) -> Mapping[str, Policy]:
        """Kind of effect -> how. Proposed rules bring no tasks, so those of the beginning are all."""
        policies = {
            "ask": Policy(external=True),
            "timer": Policy(due=lambda effect: effect.payload["at"]),
            **dict.fromkeys(("child", "stop"), Policy(attempts=5)),
        }
        for name, action in self.library.actions.items():
            policies[f"task {name}"] = Policy(
                attempts=action.attempts,
                timeout_s=action.timeout_s,
                heartbeat_s=action.heartbeat_s,
                backoff_s=action.backoff_s,
                repeatable=action.repeatable,
                announced=True,
                guard=self._guard,
            )
        return policies

    @property
    def handlers(self) -> Mapping[str, Handler]:
        """Kind of effect -> what carries it out."""
        tasks = dict.fromkeys((kind for kind in self.policies if kind.startswith("task ")), self._task)
        return {
            **tasks,
            "plan": self._plan,
            "check": self._check,
            "child": self._begin_child,
            "stop": self._stop_child,
        }

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
        network = state.network
        if state.undoing is not None:
            below = descendants(network, state.undoing) | {state.undoing}
            network = {key: one for key, one in network.items() if key in below}
        return plan(
            library,
            network,
            facts,
            seed=state.options.seed,
            limits=state.options.limits,
            least_cost=state.options.least_cost,
            done=frozenset(state.done),
            order=self.order,
            expand=self.world.domain.expand,
            last_id=state.new_id() - 1,
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
        if intent is None or not state.wants(intent):
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
            attempt.progress,
            attempt.report,
        )
        body = asyncio.ensure_future(self.world.run(action, intent, context))
        self.bodies[intent.id] = body
        try:
            return await body
        except asyncio.CancelledError:
            me = asyncio.current_task()
            if me is not None and me.cancelling():
                raise
            raise TaskCancelled("it was cancelled while it was at work") from None
        except (UserError, InDoubt, TransientError, TimeoutError):
            raise
        except Exception as exc:
            if action.attempts == 1:
                raise
            # The kernel waits between attempts at what may work later.
            why = str(exc) if isinstance(exc, ToolFailed) else f"{type(exc).__name__}: {exc}"
            raise TransientError(why) from exc
        finally:
            self.bodies.pop(intent.id, None)

    def call_off(self, state: AgentState) -> None:
        """Cancel the bodies that nobody wants any more.

        A function in a thread cannot be: it is left behind, but for one that can be undone, which is waited for.
        """
        for key, body in list(self.bodies.items()):
            intent = state.network.get(key)
            if intent is not None and _is_wanted(state, intent):
                continue
            if intent is None or not self._is_waited_for(state, intent):
                body.cancel()

    def _is_waited_for(self, state: AgentState, intent: Intent) -> bool:
        action = state.library.actions.get(intent.action)
        function = self.world.domain.functions.get(intent.action)
        return bool(action and action.undo and function) and not inspect.iscoroutinefunction(function)

    def _begin_child(self, effect: Effect, attempt: Attempt) -> None:
        """Begin a child; one that is there was begun by a process that died then."""
        assert self.journal is not None
        given = effect.payload["given"]
        if not self.world.domain.library.for_goal(given["goal"][0]) and not library_from(
            given["library"]
        ).for_goal(given["goal"][0]):
            raise UserError(f"no rule and no task reaches the goal {given['goal'][0]!r}")
        begin_agent(self.journal, effect.payload["id"], given)

    def _stop_child(self, effect: Effect, attempt: Attempt) -> None:
        assert self.journal is not None
        if self.journal.is_waiting(effect.payload["id"], MACHINE):
            self.journal.post(effect.payload["id"], "cancel", {"goal": None})


def begin_agent(journal: SqlJournal, agent: str, given: Mapping[str, Any]) -> bool:
    """Begin an agent that whoever comes next drives; False when it was begun before."""
    try:
        token = journal.create(agent, MACHINE, first_record(PlannerMachine(), given, time.time()))
    except RunExists:
        return False
    journal.release(agent, token, None)
    return True


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
    return now is not None and now.key == intent.key and state.wants(now)


def needs_functions(library: Library) -> bool:
    """Say whether actions of a library are functions."""
    return any(action.does.get("function") for action in library.actions.values())


def missing_functions(library: Library, world: World) -> list[str]:
    """Return the actions whose functions this process does not have."""
    return sorted(
        name
        for name, action in library.actions.items()
        if action.does.get("function") and name not in world.domain.functions
    )
