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
    timer        {at}             -> null, when it is that time
    child        {id, given}      -> null; begins an agent, which sends the message `child` when it has ended
    stop         {id}             -> null; cancels one

An agent that fails or is cancelled ends when the bodies and the children that it had at work have ended, and what it
did is undone, the last first: each undoing is a goal of its own beside the top-level one, planned and carried out as
others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from metatree.durable import Effect, Event, Outcome, Signal
from metatree.errors import UserError
from metatree_agents.planner.agents._events import apply_signal, assert_goal
from metatree_agents.planner.agents.bodies import fill_in
from metatree_agents.planner.agents.state import ENDED, AgentOptions, AgentState, plain
from metatree_agents.planner.domain import network as net
from metatree_agents.planner.domain.conditions import atom_text, condition_text, group_of
from metatree_agents.planner.domain.facts import facts_by_relation
from metatree_agents.planner.domain.model import RESULT, Library, action_from, library_data, library_from
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
WAITS: Final = frozenset(("ask", "sleep", "until", "receive", "agent"))
"""What tasks do that have no body, but wait for something."""
UNKNOWN_ENDS: Final = ("TaskCancelled", "timeout", "in_doubt")
"""Errors after which it is not known whether a body has done its work."""
CLOSED: Final = "the agent ended"
"""Why an intent is cancelled that nobody has cancelled."""

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
            id=given.get("id", ""),
            parent=None if given.get("parent") is None else (given["parent"][0], given["parent"][1]),
        )
        planned = given.get("network")
        if planned:
            state.network = {one["id"]: Intent.from_json(one) for one in planned}
            state.plan_again = any(not net.is_planned(one) for one in state.network.values())
        else:
            state.network = {TOP: Intent(TOP, state.goal)}
        turn = _Turn(state, now)
        if (at := state.options.ends_at(now)) is not None:
            turn.issue("deadline", state.network[TOP], "timer", {"at": at})
        return state, turn.advance()

    def ended(self, state: AgentState) -> str | None:
        return state.ended

    def step(self, state: AgentState, event: Event) -> list[Effect]:
        turn = _Turn(state, event.now)
        if isinstance(event, Signal):
            if event.name == "began":
                turn.note_start(event.value)
                return turn.out
            if event.name == "answer":
                turn.outcome(Outcome(event.value["effect"], {"answer": event.value["answer"]}, now=event.now))
            else:
                apply_signal(state, event, turn)
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
        purpose, key = self.state.issued.get(value["effect"], ("", 0))
        intent = self.state.network.get(key)
        if purpose == "task" and intent is not None and intent.status in ("pending", "active"):
            intent = self.state.put(intent, status="active", attempt=value["attempt"], key=_key(intent))
            self.state.note("active", self.now, intent, f"attempt {intent.attempt}")
            if intent.attempt == 1:
                self._limit(intent)

    def outcome(self, event: Outcome) -> None:
        """Apply what came of an effect."""
        purpose, key = self.state.issued.pop(event.effect, ("", 0))  # nothing: it was answered in another way
        if purpose == "plan":
            self._planned(event)
            return
        intent = self.state.network.get(key)
        if purpose == "task" and intent is not None and intent.attempt:
            wanted = event.error is None and intent.status in ("pending", "active")
            if not wanted and (
                event.error is None or event.error_kind in UNKNOWN_ENDS
            ):  # it may have happened
                self._undo_later(intent, (event.value or {}).get("result"))
        if purpose in ("", "stop"):
            return
        at_any_time = purpose == "deadline" and intent is not None and intent.status not in ENDED
        if intent is None or (intent.status not in ("pending", "active") and not at_any_time):
            return  # it was cancelled, or planned otherwise, meanwhile
        match purpose:
            case "timeout":
                limit = self.state.library.timeouts.get(str(intent.goal[0]), 0.0)
                self._out_of_time(intent, f"it took too long: over {limit:g} s")
            case "deadline":
                self.state.options = replace(self.state.options, replan=False)
                self._out_of_time(intent, "it has not ended in time")
            case "timer":
                self.complete(intent, None)
            case "child":
                if event.error is not None:
                    self.state.children.pop(intent.id, None)
                    self.fail(intent, event.error)
            case "task" if event.error is not None and not self.state.wants(intent):
                cancelled = event.error_kind in ("TaskCancelled", "TaskRefused")
                self.state.put(intent, status="cancelled", detail=CLOSED if cancelled else event.error)
                self.state.note("cancelled", self.now, intent, "" if cancelled else event.error)
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
            if state.closing is None or state.undoing is not None:
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
        if state.closing is not None and state.undoing is None:
            return
        if value["ended"] != "planned":
            goal, why = value["failed"] or (None, "no plan was found")
            if value["ended"] == "limit" and state.closing is None:
                state.note("limit", self.now, None, "planning reached its limit")
                self.close("limit", f"planning reached its limit; {why}")
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
        if state.options.on_stuck == "wait" and not intent.excluded and state.closing is None:
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
            self.issue("doubt", intent, "ask", {"question": DOUBT.format(what=what), "intent": intent})
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
            self.issue("task", intent, f"task {intent.action}", payload)
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
        self._undo_later(intent, result)
        state.done.add(intent.goal)
        state.plan_again = True
        state.note("complete", self.now, intent, detail)

    def fail(self, intent: Intent, why: str) -> None:
        """Fail an intent: strike its candidate and plan again, or fail what it belongs to."""
        state = self.state
        root = state.root(intent)
        intent = state.put(intent, status="failed", detail=why)
        state.note("failed", self.now, intent, why)
        if state.options.replan and state.closing is None:
            state.repair = intent.id
            return
        for above in list(net.lineage(state.network, intent))[1:]:
            state.put(above, status="failed", detail=f"{atom_text(intent.goal)} failed: {why}")
            state.note("failed", self.now, above, f"{atom_text(intent.goal)} failed")
        if root.id == state.undoing:
            self._cancel_below(root)
            state.detail += f"; not undone: {atom_text(root.goal)}: {why}"
        else:
            self.close("failed", f"{atom_text(intent.goal)}: {why}")

    def _out_of_time(self, intent: Intent, why: str) -> None:
        """Fail a goal that took too long, and call off what is at work for it."""
        self._cancel_below(intent)
        self.fail(intent, why)

    def _cancel_below(self, intent: Intent) -> None:
        for key in descendants(self.state.network, intent.id):
            one = self.state.network[key]
            if one.status not in ("complete", "failed", "cancelled"):
                self.state.put(one, status="cancelled", detail=CLOSED)

    def _undo_later(self, intent: Intent, result: Any) -> None:
        """Note what undoes a task that was carried out, or may have been."""
        state = self.state
        action = state.library.actions.get(intent.action)
        if action is None or not action.undo or state.root(intent).id == state.undoing:
            return
        values = {**dict(intent.binding), RESULT: plain(result)}
        goal = (
            action.undo[0],
            *(values.get(one, one) if isinstance(one, str) else one for one in action.undo[1:]),
        )
        state.undo = [one for one in state.undo if one[0] != intent.id]
        state.undo.append((intent.id, goal))

    def close(self, ended: str, detail: str) -> None:
        """End the agent as soon as no body and no child is at work any more, and what it did is undone."""
        state = self.state
        state.closing, state.detail = state.closing or ended, state.detail if state.closing else detail
        state.repair = None
        for one in list(state.network.values()):
            at_work = one.status == "active" and one.kind == "task" and self._is_body(one)
            if one.status not in ("complete", "failed", "cancelled") and not at_work:
                state.put(one, status="cancelled", detail=CLOSED)

    def _is_body(self, intent: Intent) -> bool:
        """Say whether a body is at work for a task, which is told to end; what waits for something just ends."""
        return ("task", intent.id) in self.state.purposes()

    def _undo_next(self) -> bool:
        """Ask for the next thing to be undone, what was done last first; False when nothing is left."""
        state = self.state
        if not state.undo:
            state.undoing = None
            return False
        done, goal = state.undo.pop()
        undo = Intent(state.new_id(), goal)
        state.network[undo.id] = undo
        state.undoing, state.plan_again = undo.id, True
        intent = state.network.get(done)
        if intent is not None:
            state.done.discard(intent.goal)
            state.put(intent, detail=f"undone by {atom_text(goal)}")
        state.note("undo", self.now, undo)
        return True

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
            self.close("failed", intent.detail)
            return True
        else:  # it has no candidate at all: the rule above needs another
            above = state.network[intent.parent]
            state.repair = above.id
            state.put(above, status="failed", detail=f"{atom_text(intent.goal)}: {intent.detail}")
            return self._repaired()
        opened = self._reopen(intent, excluded)
        state.note("struck", self.now, opened, excluded[-1])
        state.repair, state.plan_again = None, True
        return True

    def _reopen(self, intent: Intent, excluded: tuple[str, ...]) -> Intent:
        """Take the intent of a goal away, and all that is below it."""
        state = self.state
        below = descendants(state.network, intent.id)
        removed = below | {intent.id}
        remaining = {
            key: net.without(state.network, one, removed)
            for key, one in state.network.items()
            if key not in removed
        }
        state.last_id = state.new_id() - 1
        for key in below:
            del state.network[key]
        state.network.update(remaining)
        opened = Intent(intent.id, intent.goal, intent.parent, intent.after, excluded=excluded)
        state.network[intent.id] = opened
        return opened

    # What is next -------------------------------------------------------------------------------------------------

    def advance(self) -> list[Effect]:
        """Begin what is ready, complete rules, plan what is open; return the effects for it."""
        state = self.state
        self._stop_children()
        changed = True
        while changed and (state.closing is None or state.undoing is not None):
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
                if (state.closing is not None and state.undoing is None) or state.repair is not None:
                    changed = True
                    break
        if state.closing is not None:
            self._stop_children()
            if state.undoing is None or state.network[state.undoing].status in ENDED:
                if any(purpose in ("task", "plan", "child") for purpose, _ in state.issued.values()):
                    return self.out
                if state.children:
                    return self.out
                if self._undo_next():
                    return self.advance()
                state.ended = state.closing
                state.note(state.ended, self.now, None, state.detail)
                return []
        elif state.network[TOP].status in SETTLED:
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
            self.issue("plan", None, "plan", {"state": state})
        return self.out

    def _stop_children(self) -> None:
        """Cancel the children that nobody waits for any more."""
        state = self.state
        for key, child in state.children.items():
            intent = state.network.get(key)
            if child not in state.stopped and (intent is None or not state.wants(intent)):
                state.stopped.add(child)
                self.issue("stop", None, "stop", {"id": child})

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
        if any(
            key == intent.id
            for purpose, key in state.issued.values()
            if purpose not in ("plan", "timeout", "deadline")
        ):
            return False
        again = intent.goal[0] in state.library.again
        if intent.kind == "nothing" or (
            intent.goal in state.done and not again and intent.id not in (TOP, state.undoing)
        ):
            state.put(intent, status="complete", effects=())
            state.note("complete", self.now, intent, "it was complete already")
            state.plan_again = True
            return True
        does = state.library.actions[intent.action].does if intent.kind == "task" else {}
        if intent.kind == "task" and WAITS.isdisjoint(does):
            self.issue("task", intent, f"task {intent.action}", {"state": state, "intent": intent.id})
            return False
        if intent.live:
            self.issue("check", intent, "check", {"state": state, "intent": intent.id})
            return False
        if not state.world().holds(intent.precondition):
            self.fail(
                intent, f"its precondition does not hold any more: {condition_text(intent.precondition)}"
            )
            return True
        self._begin(intent)
        return True

    def _begin(self, intent: Intent) -> None:
        """Begin a rule, or a task that waits for something and has no body."""
        state = self.state
        intent = state.put(intent, status="active", attempt=intent.attempt + 1, key=_key(intent))
        state.note("active", self.now, intent)
        self._limit(intent)
        if intent.kind != "task":
            return
        does, binding = state.library.actions[intent.action].does, dict(intent.binding)
        if "ask" in does:
            question = fill_in(str(does["ask"]), binding)
            self.issue("ask", intent, "ask", {"question": question, "intent": intent})
        elif "receive" in does:
            name = fill_in(str(does["receive"]), binding)
            if values := state.received.get(name):
                self.complete(intent, values.pop(0))
        elif "agent" in does:
            self._begin_child(intent, does, binding)
        else:
            try:
                at = state.due(intent, self.now)
            except UserError as exc:
                self.fail(intent, str(exc))
            else:
                self.issue("timer", intent, "timer", {"at": at})

    def _begin_child(self, intent: Intent, does: Mapping[str, Any], binding: Mapping[str, Any]) -> None:
        state = self.state
        child = f"{state.id}.{intent.key}" + (f".r{state.retries}" if state.retries else "")
        try:
            name, terms = group_of(str(does["agent"]))
            facts = [group_of(fill_in(str(one), binding)) for one in does.get("facts", ())]
        except UserError as exc:
            self.fail(intent, str(exc))
            return
        state.children[intent.id] = child
        given = {
            "goal": [name, *(binding.get(one, one) if isinstance(one, str) else one for one in terms)],
            "facts": [[relation.lower(), *values] for relation, values in facts],
            "library": library_data(state.library),
            "options": {**state.options.to_json(), "timeout_s": None, "deadline": ""},
            "parent": [state.id, intent.id],
            "id": child,
        }
        self.issue("child", intent, "child", {"id": child, "given": given})

    def child_ended(self, value: Mapping[str, Any]) -> None:
        """Take up what a child has come to."""
        state, key = self.state, int(value["intent"])
        if state.children.get(key) != value["id"]:
            return  # told before
        del state.children[key]
        intent = state.network.get(key)
        if intent is None or intent.status != "active":
            return
        if value["ended"] == "complete":
            self.complete(intent, value["result"])
        else:
            self.fail(intent, f"agent {value['id']} ended {value['ended']}: {value['detail']}".rstrip(": "))

    def retry(self) -> None:
        """Go on with an agent that has failed: what failed is done again, what is complete is kept."""
        state = self.state
        if state.ended is None or (why := why_not_again(state)):
            state.note("unheard", self.now, None, "retry: it has not ended" if state.ended is None else why)
            return
        state.ended, state.closing, state.detail, state.plan_again = None, None, "", True
        state.retries += 1
        state.note("retried", self.now)
        for one in list(state.network.values()):
            if one.status == "failed" or (one.status == "cancelled" and one.detail == CLOSED):
                begun = one.kind == "rule" and one.attempt
                status = "active" if begun else "pending" if one.kind else "open"
                state.put(one, status=status, detail="", excluded=())
        if state.options.timeout_s is not None:
            self.issue("deadline", state.network[TOP], "timer", {"at": self.now + state.options.timeout_s})

    def move(self, data: Mapping[str, Any]) -> None:
        """Go on with another version of the library: what was not begun is planned again with it."""
        state, library = self.state, library_from(data)
        if why := why_not_with(state, library):
            state.note("unheard", self.now, None, why)
            return
        before, state.library = state.library.version, library
        state.note("moved", self.now, None, f"from version {before!r} of its library to {library.version!r}")
        if state.closing is not None:
            return
        first = [
            one
            for one in state.network.values()
            if one.status == "pending"
            and (one.parent is None or state.network[one.parent].status == "active")
            and not any(key == one.id for _, key in state.issued.values())
        ]
        for one in first:
            self._reopen(one, one.excluded)
        state.plan_again = True

    def receive(self, name: str, value: Any) -> None:
        """Give a message to the task that waits for it, the first of several; keep it for one that will."""
        state = self.state
        for intent in sorted(state.network.values(), key=lambda one: one.id):
            if intent.status != "active" or intent.kind != "task":
                continue
            wanted = state.library.actions[intent.action].does.get("receive")
            if wanted is not None and fill_in(str(wanted), dict(intent.binding)) == name:
                self.complete(intent, value)
                return
        state.received.setdefault(name, []).append(value)
        state.note("received", self.now, None, f"{name}: nobody waits for it yet")

    def _limit(self, intent: Intent) -> None:
        """Set the time that a goal may take."""
        limit = self.state.library.timeouts.get(str(intent.goal[0]))
        if limit is not None and ("timeout", intent.id) not in self.state.purposes():
            self.issue("timeout", intent, "timer", {"at": self.now + limit})

    def _complete_rule(self, intent: Intent) -> bool:
        """Complete a rule all of whose sub-goals are complete."""
        state = self.state
        if intent.kind != "rule" or state.network[intent.id].status != "active":
            return False
        if any(one.status not in SETTLED for one in children(state.network, intent.id)):
            return False
        self.complete(state.network[intent.id], None)
        return True

    def issue(self, purpose: str, intent: Intent | None, kind: str, payload: dict[str, Any]) -> None:
        state = self.state
        state.effects += 1
        state.issued[state.effects] = (purpose, 0 if intent is None else intent.id)
        if kind == "ask":
            state.questions[state.effects] = payload["question"]
        self.out.append(Effect(state.effects, kind, payload))


def why_not_again(state: AgentState) -> str:
    """Say why an agent that has ended cannot be taken up again; nothing when it can."""
    if state.ended not in ("failed", "limit"):
        return f"it has ended ({state.ended}): only what has failed is tried again"
    if any(entry["event"] == "undo" for entry in state.trace):
        return "what it did was undone: start another"
    return ""


def why_not_with(state: AgentState, library: Library) -> str:
    """Say why an agent cannot go on with another library; nothing when it can.

    It can when each of its goals that has not ended is reached there, tasks that are under way are declared there for
    the same goals, and the relations of its facts are as they were.
    """
    for name in (name for name, rows in state.facts.items() if rows):
        if library.relations.get(name) != state.library.relations.get(name):
            return f"relation {name!r} is another one there"
    for one in state.network.values():
        if one.status not in ENDED and not library.for_goal(str(one.goal[0])):
            return f"nothing reaches the goal {atom_text(one.goal)} there"
        if one.status == "active" and one.kind == "task":
            action, before = library.actions.get(one.action), state.library.actions[one.action]
            if action is None or (action.kind, action.goal, action.terms) != (
                before.kind,
                before.goal,
                before.terms,
            ):
                return f"{before.kind} {one.action!r}, which is under way, is another one there"
    for _, goal in state.undo:
        if not library.for_goal(str(goal[0])):
            return f"nothing reaches {goal[0]!r} there, which undoes what was done"
    return ""


def _key(intent: Intent) -> str:
    """Return the part of a body's idempotency key that tells it from others of its agent."""
    return f"{intent.id}.{len(intent.excluded)}"
