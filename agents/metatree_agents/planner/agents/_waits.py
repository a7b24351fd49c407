"""What the goals of an agent wait for, in words for people."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from metatree_agents.planner.agents.bodies import fill_in
from metatree_agents.planner.agents.state import AgentState
from metatree_agents.planner.domain.conditions import atom_text, condition_text
from metatree_agents.planner.domain.network import SETTLED, Intent, children


def waits_of(state: AgentState) -> Mapping[int, str]:
    """Return, for each goal that has not ended, what it waits for; nothing for a rule whose sub-goals say it."""
    if state.ended is not None:
        return {}
    reasons = {one.id: _reason(state, one) for one in state.network.values()}
    return {key: reason for key, reason in sorted(reasons.items()) if reason}


def _reason(state: AgentState, intent: Intent) -> str:
    match intent.status:
        case "active" if intent.kind == "task":
            return _of_task(state, intent)
        case "active" if not children(state.network, intent.id):
            return "to be completed"
        case "pending" | "open" | "deferred":
            return _of_later(state, intent)
        case _:
            return ""


def _of_task(state: AgentState, intent: Intent) -> str:
    does, binding = state.library.actions[intent.action].does, dict(intent.binding)
    if intent.id in state.children:
        return f"agent {state.children[intent.id]}"
    if "receive" in does:
        return f"a message {fill_in(str(does['receive']), binding)!r}"
    for effect, (purpose, key) in state.issued.items():
        if key != intent.id:
            continue
        if purpose in ("ask", "doubt"):
            return f"an answer: {state.questions[effect]}"
        if purpose == "timer":
            return f"its time, {_stamp(_begun(state, intent), state, intent)}"
        if purpose == "task":
            return f"its body, attempt {intent.attempt}, begun {_moment(_begun(state, intent))}"
    return "what follows from its outcome"


def _of_later(state: AgentState, intent: Intent) -> str:
    network = state.network
    if intent.status == "pending" and intent.parent is not None and network[intent.parent].status != "active":
        return f"the beginning of {atom_text(network[intent.parent].goal)}"
    before = [network[key] for key in (*intent.after, *intent.after_end) if key in network]
    open_ones = [atom_text(one.goal) for one in before if one.status not in SETTLED]
    open_ones += [
        f"the beginning of {atom_text(network[key].goal)}"
        for key in intent.after_start
        if key in network and network[key].status == "pending"
    ]
    if open_ones:
        return ", ".join(open_ones)
    if intent.status == "deferred":
        return f"an event: {state.detail}" if state.detail else "what is read live"
    if intent.status == "open":
        return "to be planned"
    return f"its turn, when {condition_text(intent.precondition)}" if intent.live else "its turn"


def _begun(state: AgentState, intent: Intent) -> float:
    entries = (one for one in state.trace if one.get("intent") == intent.id and one["event"] == "active")
    return max((float(one["at"]) for one in entries), default=0.0)


def _stamp(begun: float, state: AgentState, intent: Intent) -> str:
    return _moment(state.due(intent, begun))


def _moment(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC"
