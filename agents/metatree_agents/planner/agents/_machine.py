"""An agent as a machine: goals are planned, ready intents are begun, and what comes of them leads on.

    plan ── intents ──► begin those that are ready ──► outcomes ──► effects, complete ──► plan what was deferred
     ▲                                                    │ failed
     └────────── strike the candidate (replan) ◄──────────┴──► fail the rule, up to the top-level goal

Planning is an effect: its outcome is in the journal, so a resume does not search again, and a planner of another
version replays old journals. Lost: planning in the step, replayed each time.

Effects and the values of their outcomes:

    plan         {state}          -> {ended, intents, failed, considered, added}
    check        {state, intent}  -> {holds, why}
    task NAME    {state, intent}  -> {result, facts}, and a note; again: a person wants it run again
    ask          {question, …}    -> {answer}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from metatree.durable import Effect, Event, Outcome, Signal
from metatree_agents.planner.agents._events import apply_signal, assert_goal
from metatree_agents.planner.agents.bodies import fill_in
from metatree_agents.planner.agents.state import AgentOptions, AgentState
from metatree_agents.planner.domain import network as net
from metatree_agents.planner.domain.conditions import atom_text, condition_text
from metatree_agents.planner.domain.facts import facts_by_relation
from metatree_agents.planner.domain.model import action_from, library_from
from metatree_agents.planner.domain.network import (
    SETTLED,
    TOP,
    Intent,
    candidate_key,
    children,
    descendants,
    is_ready,
)

MACHINE: Final = "planner"

DOUBT: Final = (
    "{what} was interrupted while it was at work, and may not happen twice. Did it happen?"
    " Answer yes (go on after it), no (run it again) or fail."
)


class PlannerMachine:
    """Implements `metatree.durable.Machine` for agents.

    `begin` is given: `goal`, `facts`, `library`, `options`, and `network` for an agent whose intents are planned.
    """

    name = MACHINE
    version = 1

    def begin(self, given: dict[str, Any], now: float) -> tuple[AgentState, list[Effect]]:
        state = AgentState(
            tuple(given["goal"]),
            library_from(given["library"]),
            AgentOptions(**given["options"]),
            facts=facts_by_relation(given["facts"]),
        )
        planned = given.get("network")
        if planned:
            state.network = {one["id"]: Intent.from_json(one) for one in planned}
            state.plan_again = any(not net.is_planned(one) for one in state.network.values())
        else:
            state.network = {TOP: Intent(TOP, state.goal)}
        return state, _Turn(state, now).advance()

    def ended(self, state: AgentState) -> str | None:
        return state.ended

    def step(self, state: AgentState, event: Event) -> list[Effect]:
        turn = _Turn(state, event.now)
        if isinstance(event, Signal):
            if event.name == "began":
                turn.note_start(event.value)
                return []
            if event.name == "answer":
                turn.outcome(Outcome(event.value["effect"], {"answer": event.value["answer"]}, now=event.now))
            else:
                apply_signal(state, event, turn.fail)
        else:
            turn.outcome(event)
        return turn.advance()


class _Turn:
    """What follows from one event."""

    def __init__(self, state: AgentState, now: float) -> None:
        self.state = state
        self.now = now
        self.out: list[Effect] = []

    # What happened ------------------------------------------------------------------------------------------------

    def note_start(self, value: Mapping[str, Any]) -> None:
        """Note that a body is about to run: a record that the kernel writes before it; the outcome is the second."""
        purpose, key = self.state.issued[value["effect"]]
        intent = self.state.network.get(key)
        if purpose == "task" and intent is not None and intent.status in ("pending", "active"):
            intent = self.state.put(intent, status="active", attempt=value["attempt"], key=_key(intent))
            self.state.note("active", self.now, intent, f"attempt {intent.attempt}")

    def outcome(self, event: Outcome) -> None:
        """Apply what came of an effect."""
        purpose, key = self.state.issued.pop(event.effect, ("", 0))  # nothing: it was answered in another way
        if purpose == "plan":
            self._planned(event)
            return
        intent = self.state.network.get(key)
        if intent is None or intent.status not in ("pending", "active"):
            return  # it was cancelled, or planned otherwise, meanwhile
        match purpose:
            case "check":
                self._checked(intent, event)
            case "doubt":
                self._decided(intent, str((event.value or {}).get("answer", "")))
            case "ask":
                answer = None if event.value is None else event.value.get("answer")
                if answer is None:
                    self.fail(intent, "the question was declined")
                else:
                    self.complete(intent, answer)
            case _:
                self._done(intent, event)

    def _planned(self, event: Outcome) -> None:
        state = self.state
        if event.error is not None:
            self._plan_failed(None, f"planning failed: {event.error}")
            return
        value = event.value
        for one in value.get("added", ()):
            action = action_from(one)
            if action.name not in state.library.actions:
                state.library.add(action)
                state.note("rule added", self.now, None, action.name)
        for entry in value["considered"]:
            state.considered[entry["intent"]] = []
        for entry in value["considered"]:
            state.considered[entry["intent"]].append(entry)
        if value["ended"] != "planned":
            goal, why = value["failed"] or (None, "no plan was found")
            if value["ended"] == "limit":
                state.note("limit", self.now, None, "planning reached its limit")
                self._close("limit", f"planning reached its limit; {why}")
                return
            self._plan_failed(goal, why)
            return
        for one in value["intents"]:
            intent = Intent.from_json(one)
            before = state.network.get(intent.id)
            if before is not None and net.is_planned(before):
                continue
            above = None if intent.parent is None else state.network.get(intent.parent)
            if intent.parent is not None and (above is None or above.status not in ("pending", "active")):
                continue  # what it belongs to was cancelled meanwhile
            state.network[intent.id] = intent
            if net.is_planned(intent):
                state.note("planned", self.now, intent, candidate_key(intent.action, dict(intent.binding)))

        self._assert_later_goals()

    def _assert_later_goals(self) -> None:
        """Add the goals that were asserted while planning was in progress, which gives out the ids."""
        for goal in self.state.later:
            assert_goal(self.state, goal, self.now)
        self.state.later.clear()

    def _plan_failed(self, goal: int | None, why: str) -> None:
        state = self.state
        waiting = [one for one in state.network.values() if not net.is_planned(one)]
        intent = state.network.get(goal) if goal is not None else None
        if intent is None or net.is_planned(intent):
            intent = next((one for one in waiting if net.is_supported(state.network, one)), None)
        intent = intent or (waiting[0] if waiting else state.network[TOP])
        state.note("no plan", self.now, intent, why)
        if state.options.on_stuck == "wait" and not intent.excluded:
            state.detail = why
            for one in waiting:
                state.put(one, status="deferred")
            return
        self.fail(intent, why)

    def _checked(self, intent: Intent, event: Outcome) -> None:
        if event.error is not None:
            self.fail(intent, f"its precondition could not be read: {event.error}")
        elif not event.value["holds"]:
            self.fail(
                intent, f"its precondition does not hold any more: {condition_text(intent.precondition)}"
            )
        else:
            self._begin(intent)

    def _done(self, intent: Intent, event: Outcome) -> None:
        if event.error_kind == "in_doubt":
            what = f"{intent.action} for {atom_text(intent.goal)}"
            self.state.note("in doubt", self.now, intent, event.error or "")
            self._issue("doubt", intent, "ask", {"question": DOUBT.format(what=what), "intent": intent})
        elif event.error is not None:
            self.fail(intent, event.error)
        else:
            facts = tuple((bool(a), str(r), tuple(t)) for a, r, t in event.value.get("facts", ()))
            self.complete(intent, event.value.get("result"), facts, event.value.get("note", ""))

    def _decided(self, intent: Intent, answer: str) -> None:
        """Heed what a person says about an interrupted body."""
        decision = answer.strip().lower()
        self.state.note("decided", self.now, intent, answer)
        if decision.startswith(("y", "done", "it happened")):
            self.complete(intent, None)
        elif decision.startswith(("n", "again", "run")):
            self.state.put(intent, status="pending")
            payload = {"state": self.state, "intent": intent.id, "again": True}
            self._issue("task", intent, f"task {intent.action}", payload)
        else:
            self.fail(intent, f"a person said: {answer}" if answer else "a person declined to say")

    # What becomes of intents --------------------------------------------------------------------------------------

    def complete(
        self,
        intent: Intent,
        result: Any,
        facts: tuple[tuple[bool, str, tuple[Any, ...]], ...] = (),
        detail: str = "",
    ) -> None:
        """Complete an intent: its effects and its result in one step."""
        state = self.state
        state.apply(intent.effects, result)
        state.apply(tuple(fact for fact in facts if state.library.relations[fact[1]].dynamic), result)
        intent = state.put(intent, status="complete", result=result)
        state.done.add(intent.goal)
        state.plan_again = True
        state.note("complete", self.now, intent, detail)

    def fail(self, intent: Intent, why: str) -> None:
        """Fail an intent: strike its candidate and plan again, or fail what it belongs to."""
        state = self.state
        intent = state.put(intent, status="failed", detail=why)
        state.note("failed", self.now, intent, why)
        if state.options.replan:
            state.repair = intent.id
            return
        for above in list(net.lineage(state.network, intent))[1:]:
            state.put(above, status="failed", detail=f"{atom_text(intent.goal)} failed: {why}")
            state.note("failed", self.now, above, f"{atom_text(intent.goal)} failed")
        self._close("failed", f"{atom_text(intent.goal)}: {why}")

    def _close(self, ended: str, detail: str) -> None:
        """End the agent as soon as no body runs any more."""
        state = self.state
        state.closing, state.detail = state.closing or ended, state.detail if state.closing else detail
        for one in list(state.network.values()):
            if one.status in ("open", "deferred", "pending") or (
                one.kind == "rule" and one.status == "active"
            ):
                state.put(one, status="cancelled")

    def _repaired(self) -> bool:
        """Strike the candidate of an intent that failed and open its goal again; False while bodies below it run."""
        state = self.state
        assert state.repair is not None
        intent = state.network[state.repair]
        below = descendants(state.network, intent.id)
        if any(
            purpose == "plan" or (purpose == "task" and key in below)
            for purpose, key in state.issued.values()
        ):
            return False
        if intent.action:
            excluded = (*intent.excluded, candidate_key(intent.action, dict(intent.binding)))
        elif intent.parent is None:
            self._close("failed", intent.detail)
            return True
        else:  # it has no candidate at all: the rule above needs another
            above = state.network[intent.parent]
            state.repair = above.id
            state.put(above, status="failed", detail=f"{atom_text(intent.goal)}: {intent.detail}")
            return self._repaired()
        removed = below | {intent.id}
        remaining = {
            key: net.without(state.network, one, removed)
            for key, one in state.network.items()
            if key not in removed
        }
        for key in below:
            del state.network[key]
        state.network.update(remaining)
        opened = Intent(intent.id, intent.goal, intent.parent, intent.after, excluded=excluded)
        state.network[intent.id] = opened
        state.note("struck", self.now, opened, excluded[-1])
        state.repair, state.plan_again = None, True
        return True

    # What is next -------------------------------------------------------------------------------------------------

    def advance(self) -> list[Effect]:
        """Begin what is ready, complete rules, plan what is open; return the effects for it."""
        state = self.state
        changed = True
        while changed and state.closing is None:
            changed = False
            if state.repair is not None:
                if not self._repaired():
                    break
                changed = True
                continue
            for intent in list(state.network.values()):
                now = state.network.get(intent.id)
                if now is not None and (self._start_if_ready(now) or self._complete_rule(now)):
                    changed = True
                if state.closing is not None or state.repair is not None:
                    changed = True
                    break
        if state.closing is not None:
            if not any(purpose in ("task", "plan") for purpose, _ in state.issued.values()):
                state.ended = state.closing
                state.note(state.ended, self.now, None, state.detail)
            return self.out if state.ended is None else []
        if state.network[TOP].status in SETTLED:
            state.ended = state.network[TOP].status
            state.note("end", self.now, None, state.ended)
            return []
        if (
            state.plan_again
            and state.repair is None
            and ("plan", 0) not in state.purposes()
            and self._plannable()
        ):
            state.plan_again = False
            self._issue("plan", None, "plan", {"state": state})
        return self.out

    def _plannable(self) -> bool:
        """Say whether planning may find something: a goal is open, or deferred behind what is complete by now."""
        network = self.state.network
        return any(
            one.status == "open" or (one.status == "deferred" and net.is_supported(network, one))
            for one in network.values()
        )

    def _start_if_ready(self, intent: Intent) -> bool:
        """Begin an intent that is ready; say whether anything changed at once."""
        state = self.state
        if not is_ready(state.network, intent):
            return False
        if any(key == intent.id for purpose, key in state.issued.values() if purpose != "plan"):
            return False
        again = intent.goal[0] in state.library.again
        if intent.kind == "nothing" or (intent.goal in state.done and not again and intent.id != TOP):
            state.put(intent, status="complete", effects=())
            state.note("complete", self.now, intent, "it was complete already")
            state.plan_again = True
            return True
        does = state.library.actions[intent.action].does if intent.kind == "task" else {}
        if intent.kind == "task" and "ask" not in does:
            self._issue("task", intent, f"task {intent.action}", {"state": state, "intent": intent.id})
            return False
        if intent.live:
            self._issue("check", intent, "check", {"state": state, "intent": intent.id})
            return False
        if not state.world().holds(intent.precondition):
            self.fail(
                intent, f"its precondition does not hold any more: {condition_text(intent.precondition)}"
            )
            return True
        self._begin(intent)
        return True

    def _begin(self, intent: Intent) -> None:
        """Begin a rule, or put a question to the person."""
        state = self.state
        intent = state.put(intent, status="active", attempt=intent.attempt + 1, key=_key(intent))
        state.note("active", self.now, intent)
        if intent.kind == "task":
            text = str(state.library.actions[intent.action].does["ask"])
            question = fill_in(text, dict(intent.binding))
            self._issue("ask", intent, "ask", {"question": question, "intent": intent})

    def _complete_rule(self, intent: Intent) -> bool:
        """Complete a rule all of whose sub-goals are complete."""
        state = self.state
        if intent.kind != "rule" or state.network[intent.id].status != "active":
            return False
        if any(one.status not in SETTLED for one in children(state.network, intent.id)):
            return False
        self.complete(state.network[intent.id], None)
        return True

    def _issue(self, purpose: str, intent: Intent | None, kind: str, payload: dict[str, Any]) -> None:
        state = self.state
        state.effects += 1
        state.issued[state.effects] = (purpose, 0 if intent is None else intent.id)
        if kind == "ask":
            state.questions[state.effects] = payload["question"]
        self.out.append(Effect(state.effects, kind, payload))


def _key(intent: Intent) -> str:
    """Return the part of a body's idempotency key that tells it from others of its agent."""
    return f"{intent.id}.{len(intent.excluded)}"
