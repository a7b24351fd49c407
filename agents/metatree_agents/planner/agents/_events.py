"""What is said to an agent from outside: facts, and goals that are asserted, cancelled or failed.

facts    {add: [[relation, …]], remove: […]}     of dynamic relations
assert   {goal: [name, …]}                       a new goal beside the others, below the top-level one
cancel   {goal: [name, …] | id | null}           nobody wants it any more; what follows it goes on; null: the agent
fail     {goal: [name, …] | id, why}             as if its intent had failed
send     {name, value}                           a message, for the task that waits for one of this name

Its children and whoever takes it up tell it: `child`, `retry`, `library`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, Protocol

from metatree.durable import Signal
from metatree.errors import UserError
from metatree_agents.planner.agents.state import AgentState
from metatree_agents.planner.domain import network as net
from metatree_agents.planner.domain.conditions import atom_text
from metatree_agents.planner.domain.given import facts_given
from metatree_agents.planner.domain.network import TOP, Intent

_GIVEN: Final = {
    "facts": ("add", "remove"),
    "assert": ("goal",),
    "cancel": ("goal",),
    "fail": ("goal", "why"),
    "send": ("name", "value"),
}
EVENTS: Final = tuple(_GIVEN)
_MOST_CHARS: Final = 1_000_000


class _Turn(Protocol):
    """What follows from an event."""

    def fail(self, intent: Intent, why: str) -> None: ...
    def close(self, ended: str, detail: str) -> None: ...
    def receive(self, name: str, value: Any) -> None: ...
    def child_ended(self, value: Mapping[str, Any]) -> None: ...
    def retry(self) -> None: ...
    def move(self, data: Mapping[str, Any]) -> None: ...


def apply_signal(state: AgentState, signal: Signal, turn: _Turn) -> None:
    """Apply what was said; what cannot be is noted in the trace and changes nothing."""
    value = signal.value if isinstance(signal.value, Mapping) else {}
    match signal.name:
        case "send":
            turn.receive(str(value.get("name")), value.get("value"))
        case "child":
            turn.child_ended(value)
        case "retry":
            turn.retry()
        case "library":
            turn.move(value)
        case "facts":
            _facts(state, value, signal.now)
        case "assert":
            goal = tuple(value.get("goal") or ())
            if ("plan", 0) in state.purposes():
                state.later.append(goal)
            else:
                assert_goal(state, goal, signal.now)
        case "cancel":
            target = value.get("goal")
            intent = state.network[TOP] if target is None else _find(state, target)
            if intent is None:
                state.note("unheard", signal.now, None, f"cancel: there is no goal {target!r}")
            else:
                _cancel(state, intent, signal.now)
                if intent.id == TOP and state.closing is None and state.network[TOP].status == "cancelled":
                    turn.close("cancelled", "")
        case "fail":
            intent = _find(state, value.get("goal"))
            if intent is None or intent.status in ("complete", "failed", "cancelled"):
                state.note("unheard", signal.now, None, f"fail: there is no open goal {value.get('goal')!r}")
            else:
                turn.fail(intent, str(value.get("why") or "an event failed it"))
        case _:
            state.note("unheard", signal.now, None, f"{signal.name}: no such event")


def check_signal(state: AgentState, name: str, value: Mapping[str, Any]) -> None:
    """Check an event before it is posted.

    Raises:
        UserError: the agent could not heed it.
    """
    if name not in EVENTS:
        raise UserError(f"no event is called {name!r}: use one of {', '.join(EVENTS)}")
    for key in value:
        if key not in _GIVEN[name]:
            raise UserError(f"the event {name!r} takes no {key!r}: use {', '.join(_GIVEN[name])}")
    if name == "facts":
        for fact in (*facts_given(value.get("add", ())), *facts_given(value.get("remove", ()))):
            why = _unfit(state, fact)
            if why:
                raise UserError(why)
    elif name == "send":
        if not isinstance(value.get("name"), str) or not value["name"]:
            raise UserError("which message? Give its `name`, as the task that waits for it has it")
        try:
            size = len(json.dumps(value.get("value")))
        except (TypeError, ValueError, RecursionError) as exc:
            raise UserError(f"the value of the message {value['name']!r} is no JSON: {exc}") from exc
        if size > _MOST_CHARS:
            raise UserError(
                f"the message {value['name']!r} has {size} characters: send {_MOST_CHARS} at most"
            )
    elif name == "assert" and not isinstance(value.get("goal"), list):
        raise UserError("which goal? Give it, such as goal='go(market)'")
    elif name == "assert" and (why := state.library.why_unreached(tuple(value["goal"]))):
        raise UserError(why)
    elif name in ("cancel", "fail") and value.get("goal") is not None and _find(state, value["goal"]) is None:
        raise UserError(f"the agent has no goal {value['goal']!r}: `metatree goals show` lists them")


def _unfit(state: AgentState, fact: Any) -> str:
    relation = state.library.relations.get(str(fact[0]))
    if relation is None:
        return f"no relation is called {fact[0]!r}"
    if not relation.dynamic:
        return f"relation {fact[0]!r} is static: only the agent's own tasks change it"
    if relation.arity != len(fact) - 1:
        return f"relation {fact[0]!r} takes {relation.arity} arguments, not {len(fact) - 1}"
    return ""


def _facts(state: AgentState, value: Mapping[str, Any], now: float) -> None:
    for adds, facts in ((False, value.get("remove", ())), (True, value.get("add", ()))):
        for fact in facts:
            why = _unfit(state, fact)
            if why:
                state.note("unheard", now, None, why)
                continue
            state.apply(((adds, str(fact[0]), tuple(fact[1:])),))
            state.note("fact", now, None, ("" if adds else "not ") + atom_text(fact))
            state.plan_again = True


def assert_goal(state: AgentState, goal: tuple[Any, ...], now: float) -> None:
    """Add a goal below the top-level one."""
    top = state.network[TOP]
    if not goal or top.kind != "rule" or top.status not in ("pending", "active"):
        state.note("unheard", now, None, f"assert: {goal!r} cannot be a part of {atom_text(state.goal)} now")
        return
    if goal in state.done:
        state.note("asserted", now, None, f"{atom_text(goal)} is complete already")
        return
    made = Intent(state.new_id(), goal, TOP)
    state.network[made.id] = made
    state.plan_again = True
    state.note("asserted", now, made)


def _find(state: AgentState, target: Any) -> Intent | None:
    if isinstance(target, int):
        return state.network.get(target)
    goal = tuple(target) if isinstance(target, list | tuple) else ()
    matches = [one for one in state.network.values() if one.goal == goal]
    return next((one for one in matches if one.status not in ("complete", "cancelled", "failed")), None) or (
        matches[0] if matches else None
    )


def _cancel(state: AgentState, intent: Intent, now: float) -> None:
    if intent.status in ("complete", "failed", "cancelled"):
        state.note("unheard", now, intent, f"cancel: it is {intent.status}")
        return
    for key in (*net.descendants(state.network, intent.id), intent.id):
        one = state.network[key]
        if one.status not in ("complete", "failed"):
            state.put(one, status="cancelled")
    state.plan_again = True
    state.note("cancelled", now, intent)
