"""The search machine: where a search goes next, as a pure step over plain state.

    descend ─ list the children ─┬─ something to read ── read ──┬─ new questions ── nested frame ─┐
       ▲                         │                              └─ answers ── all closed? done    │
       │                         ├─ one option ──────── enter it                                  │
       │                         ├─ several options ─── route ── enter the choice, mark the rest  │
       │                         └─ none ── tools ── fill ── call ── read the result / new node   │
       └──────────── up ── the node is visited ◄────────────────────────────────────────────────-─┘
    at the root with nothing left: restart with what was learned, or a second look, or the fallback chain, or the end

Source: the project's notes on metadata trees; `docs/search.md` says where this departs from them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from metatree.durable import Effect, Event, Outcome, Signal
from metatree.searches._context import context_of, facts_for, fold_question, join, part_json
from metatree.searches._state import (
    UNVIABLE,
    VISITED,
    Collected,
    Fact,
    Frame,
    Knockout,
    Mark,
    Part,
    SearchState,
    Tally,
)
from metatree.searches._steps import collecting, effect_of, note
from metatree.searches._tool_steps import ToolWalk

A_PERSON = "a person"


class SearchMachine(ToolWalk):
    """Implements `metatree.durable.Machine` for searches.

    `begin` is given: `questions`, `context`, `returns` (`answer` or `nodes`), `k`, `trail` (ids from the root to the
    start node), `limits` (the machine's own: `questions`, `depth`, `nodes_created`, `restarts`), `second_look`,
    `fallbacks` (a list of `call` and `person`), `apart` (each question in a frame of its own).

    Effects and the values of their outcomes:

        list      {node, marks}             -> {id, title, version, content, tools, accept, children, collectable},
                                               or {gone}
        route     {node, options, tools}    -> {choice, title, score, hint, accept, unviable, reason, offered}
                                               or {split, gone}: too long for one prompt; groups of ids
        rank      {node, options}           -> {choice, title, score, hint, accept}
        read      {node, content, …}        -> {title, answers, new_questions, notes, useful}
        tools     {node, at, marks}         -> {options, callable}
        fill      {node, tool}              -> {arguments}
        call      {node, tool, arguments}   -> {reused, text} or {reused, node: {…}}; if reused, {at, from_run, own}
                                               or {asks, fingerprint}: a person has to permit it
        describe  {parent, node}            -> {title, description}
        insert    {parent, node}            -> {id, title}
        fallback  {index, questions}        -> {answers, nodes: [{id, title, accept, trail}]}
        ask       {question}                -> {answer}
        compose   {questions, answers, …}   -> {text}
    """

    name = "search"
    version = 1

    def begin(self, given: dict[str, Any], now: float) -> tuple[SearchState, list[Effect]]:
        state = SearchState(given=given, limits=dict(given["limits"]))
        questions: list[str] = given["questions"]
        groups = [[q] for q in questions] if given["apart"] else [questions]
        effects: list[Effect] = []
        for group in groups:
            frame = Frame(len(state.frames), list(group), list(given["trail"]), open=list(group))
            state.frames[frame.id] = frame
            note(state, frame, "frame", frame.trail[-1], "", questions=group)
            effects += self._list(state, frame)
        return state, effects

    def ended(self, state: SearchState) -> str | None:
        return state.ended

    def step(self, state: SearchState, event: Event) -> list[Effect]:
        if isinstance(event, Signal):  # no step: other limits leave the trace as it would be
            if event.name == "limits":
                state.limits.update(event.value)
            return []
        state.steps += 1
        waiting = state.waiting.pop(event.effect)
        frame = state.frames[waiting.frame]
        kind = waiting.effect.kind
        tally = state.tallies.setdefault(kind, Tally())
        if event.error is None:
            tally.done += 1
        else:
            tally.failed += 1
            tally.error = event.error
        handle = getattr(self, f"_on_{kind}")
        effects: list[Effect] = handle(state, frame, waiting.effect, event)
        return effects

    # Descending ------------------------------------------------------------------------------------------------

    def _list(self, state: SearchState, frame: Frame) -> list[Effect]:
        return effect_of(state, frame, "list", node=frame.trail[-1], marks=frame.marks)

    def _on_list(self, state: SearchState, frame: Frame, effect: Effect, event: Outcome) -> list[Effect]:
        node = frame.trail[-1]
        value = event.value
        if event.error is not None or value.get("gone"):
            return self._leave(state, frame, event.error or "it is no longer in the tree")
        frame.options = value["children"]
        frame.has_tools = value["tools"]
        if collecting(state):
            if value["accept"] and node not in frame.read and frame.trail == state.given["trail"]:
                frame.read[node] = state.steps  # the start node itself may be what is looked for
                return self._route(state, frame, [node])
            if len(frame.options) == 1 and value["collectable"]:
                return self._route(state, frame, frame.options)
        elif value["content"] and node not in frame.read:
            frame.read[node] = state.steps
            return self._read(state, frame, node, value["title"], value["version"])
        return self._descend(state, frame)

    def _descend(self, state: SearchState, frame: Frame) -> list[Effect]:
        options = [o for o in frame.options if o not in frame.marks]
        if not options:
            return self._use_tools(state, frame)
        if len(options) == 1:
            return self._enter(state, frame, options[0], "the only option")
        return self._route(state, frame, options)

    def _enter(self, state: SearchState, frame: Frame, node: str, reason: str) -> list[Effect]:
        if node in frame.trail:  # an option above: moved during the run
            frame.marks[node] = Mark(VISITED, "it lies above", state.steps, frame.trail[-1])
            return self._list(state, frame)
        frame.trail.append(node)
        note(state, frame, "enter", node, reason)
        return self._list(state, frame)

    def _leave(self, state: SearchState, frame: Frame, reason: str) -> list[Effect]:
        """Mark the node at the end of the trail visited and go up."""
        node = frame.trail.pop()
        self._mark(state, frame, node, VISITED, reason, frame.trail[-1] if frame.trail else None)
        if not frame.trail:
            return self._exhausted(state, frame)
        return self._list(state, frame)

    def _mark(
        self, state: SearchState, frame: Frame, node: str, kind: str, reason: str, menu: str | None
    ) -> None:
        frame.marks[node] = Mark(kind, reason, state.steps, menu)
        note(state, frame, "mark", node, reason, mark=kind)

    # Routing ---------------------------------------------------------------------------------------------------

    def _route(
        self,
        state: SearchState,
        frame: Frame,
        options: list[str],
        *,
        tools: bool = False,
        callable_: Iterable[str] = (),
        jumps: bool = True,
    ) -> list[Effect]:
        return effect_of(
            state,
            frame,
            "route",
            node=frame.trail[-1],
            options=list(options),
            tools=tools,
            callable=list(callable_),
            jumps=jumps,
            marks=frame.marks,
            questions=list(frame.open),
            context=context_of(state, frame),
        )

    def _on_route(self, state: SearchState, frame: Frame, effect: Effect, event: Outcome) -> list[Effect]:
        if event.error is not None:
            note(state, frame, "route", frame.trail[-1], f"the router failed: {event.error}", by="nobody")
            return effect_of(state, frame, "rank", **{**effect.payload, "jumps": False})
        if "split" in event.value:
            if frame.knockout is None:
                frame.knockout = Knockout([])
            frame.knockout.groups[:0] = event.value["split"]
            frame.knockout.unviable.update(event.value["gone"])
            return self._next_group(state, frame)
        if frame.knockout is not None:
            return self._group_decided(state, frame, frame.knockout, event.value, by="router")
        return self._decided(state, frame, effect, event.value, by="router")

    def _next_group(self, state: SearchState, frame: Frame) -> list[Effect]:
        """Route the next group of a menu that is too long for one prompt; at last, the winners among themselves."""
        knockout = frame.knockout
        assert knockout is not None
        if knockout.groups:
            group = knockout.groups.pop(0)
            if len(group) > 1:
                return self._route(state, frame, group, jumps=False)
            knockout.winners += group
            return self._next_group(state, frame)
        frame.knockout = None
        for node, why in knockout.unviable.items():
            self._mark(state, frame, node, UNVIABLE, why, frame.trail[-1])
        if len(knockout.winners) == 1:
            return self._enter_or_collect(state, frame, knockout)
        if not knockout.winners:
            return self._list(state, frame)
        return self._route(state, frame, knockout.winners, jumps=False)

    def _group_decided(
        self, state: SearchState, frame: Frame, knockout: Knockout, value: dict[str, Any], *, by: str
    ) -> list[Effect]:
        choice = value["choice"]
        offered = set(value["offered"])
        ruled_out = {i: r for i, r in value["unviable"].items() if i in offered and i != choice}
        if choice is None and not ruled_out:
            ruled_out = dict.fromkeys(value["offered"], value["reason"] or "nothing was chosen")
        if choice is not None:
            knockout.winners.append(choice)
            knockout.last = value
            if frame.looked_twice:
                ruled_out = {}  # as for a whole menu
        knockout.unviable.update(ruled_out)
        note(
            state,
            frame,
            "route",
            frame.trail[-1],
            value["reason"],
            offered=value["offered"],
            choice=choice,
            unviable=ruled_out,
            by=by,
            group=True,
        )
        return self._next_group(state, frame)

    def _enter_or_collect(self, state: SearchState, frame: Frame, knockout: Knockout) -> list[Effect]:
        """Go on with the only winner of all groups."""
        winner, value = knockout.winners[0], knockout.last
        if collecting(state) and value is not None and value["choice"] == winner and value["accept"]:
            return self._collect(state, frame, winner, value)
        if collecting(state) and value is None:
            return self._route(state, frame, [winner], jumps=False)
        return self._enter(state, frame, winner, "the only one left of its groups")

    def _on_rank(self, state: SearchState, frame: Frame, effect: Effect, event: Outcome) -> list[Effect]:
        options = effect.payload["options"]
        value = event.value
        if event.error is not None:
            value = {"choice": options[0], "title": "", "score": 0.0, "hint": "", "accept": False}
        if value["choice"] is None:  # they are gone
            value = {**value, "unviable": dict.fromkeys(options, "it is no longer in the tree")}
        value = {"unviable": {}, **value, "reason": "order by evidence", "offered": options}
        if frame.knockout is not None:
            return self._group_decided(state, frame, frame.knockout, value, by="evidence")
        return self._decided(state, frame, effect, value, by="evidence")

    def _decided(
        self, state: SearchState, frame: Frame, effect: Effect, value: dict[str, Any], *, by: str
    ) -> list[Effect]:
        """Apply a decision: only ids that were offered count, and a choice that is also ruled out is a choice."""
        offered = set(value["offered"])
        choice = value["choice"] if value["choice"] in offered else None
        unviable = {i: r for i, r in value["unviable"].items() if i in offered and i != choice}
        reason = value["reason"]
        if choice is None and not unviable:
            unviable = dict.fromkeys(value["offered"], reason or "nothing was chosen")
        if choice is not None and frame.looked_twice and not effect.payload["tools"]:
            unviable = {}  # a second look is for routers that are wrong: beside a choice, nothing is ruled out
        here = frame.trail[-1]
        note(
            state,
            frame,
            "route",
            here,
            reason,
            offered=value["offered"],
            choice=choice,
            unviable=unviable,
            by=by,
        )
        visit = frame.tools
        if effect.payload["tools"] and visit is not None:
            for tool, why in unviable.items():
                visit.marks[tool] = Mark(UNVIABLE, why, state.steps, visit.path[-1])
            if choice is None:
                return self._list_tools(state, frame, visit)
            return self._enter_tool(state, frame, visit, choice, choice in effect.payload["callable"])
        for node, why in unviable.items():
            self._mark(state, frame, node, UNVIABLE, why or reason, here)
        if choice is None:
            return self._list(state, frame)
        if collecting(state) and value["accept"]:
            return self._collect(state, frame, choice, value)
        return self._enter(state, frame, choice, reason)

    def _collect(self, state: SearchState, frame: Frame, node: str, value: dict[str, Any]) -> list[Effect]:
        reason = _why_collected(value)
        if all(node != found.id for found in state.collected):
            state.collected.append(Collected(node, value["title"], value["score"], reason))
            note(state, frame, "collect", node, reason, score=value["score"])
        if len(state.collected) >= state.given["k"]:
            return self._finish(state, frame, "answered")
        if node == frame.trail[-1]:
            return self._leave(state, frame, "collected")
        self._mark(state, frame, node, VISITED, "collected", frame.trail[-1])
        return self._list(state, frame)

    # Reading ---------------------------------------------------------------------------------------------------

    def _read(
        self,
        state: SearchState,
        frame: Frame,
        node: str,
        title: str,
        version: str,
        content: str | None = None,
        told: str = "",
    ) -> list[Effect]:
        """Read a node, or text that one of its tools returned; a known read is taken from the journal.

        Args:
            told: what the reader has to know of that text.
        """
        facts = facts_for(frame, node, title)
        key = _hash(version if content is None else content, sorted(map(fold_question, frame.open)), facts)
        place = {
            "node": node,
            "title": title,
            "version": version,
            "content": content,
            "key": key,
            "told": told,
        }
        known = state.readings.get(key)
        if known is not None:
            return self._apply_reading(state, frame, place, known, known=True)
        return effect_of(
            state,
            frame,
            "read",
            **place,
            questions=list(frame.open),
            context=join(state.given["context"], [*facts, told] if told else facts),
            parts=[part_json(p) for p in frame.parts if fold_question(p.question) in _folded(frame.open)],
        )

    def _on_read(self, state: SearchState, frame: Frame, effect: Effect, event: Outcome) -> list[Effect]:
        place = {
            name: effect.payload[name] for name in ("node", "title", "version", "content", "key", "told")
        }
        if event.error is not None:
            note(state, frame, "read", place["node"], f"it could not be read: {event.error}", useful=False)
            return self._after_reading(state, frame, f"it could not be read: {event.error}")
        if event.value.get("unread"):
            state.unread += 1
            state.why_unread = event.value["notes"]
        state.readings[place["key"]] = event.value
        return self._apply_reading(state, frame, place, event.value, known=False)

    def _apply_reading(
        self, state: SearchState, frame: Frame, place: dict[str, Any], value: dict[str, Any], *, known: bool
    ) -> list[Effect]:
        node, title = place["node"], place["title"]
        useful = value["useful"]
        why = "useful" if useful else value["notes"] or "nothing here answers"
        note(state, frame, "read", node, why, answers=value["answers"], useful=useful, known=known)
        for answer in value["answers"]:
            self._take(state, frame, answer, node, title)
        if value["notes"] and useful and not known:
            self._learn(state, frame, Fact(value["notes"], node))
        if not frame.open:
            return self._finish(state, frame, "answered")
        if not known:
            effects = self._open_nested(state, frame, place, value["new_questions"])
            if effects:
                return effects
        return self._after_reading(state, frame, "read" if useful else why)

    def _after_reading(self, state: SearchState, frame: Frame, reason: str) -> list[Effect]:
        visit = frame.tools
        if visit is not None:
            return self._list_tools(state, frame, visit)
        if not frame.options and not frame.has_tools:
            return self._leave(state, frame, reason)  # a leaf: say why
        return self._descend(state, frame)

    def _take(self, state: SearchState, frame: Frame, answer: dict[str, Any], node: str, title: str) -> None:
        """Take an answer or a part of one; a complete one closes its question."""
        folded = fold_question(answer["question"])
        question = next((q for q in frame.open if fold_question(q) == folded), None)
        if question is None or not answer["answer"]:
            return
        part = Part(question, answer["answer"], answer["quote"], answer["complete"], node, title)
        if part not in frame.parts:  # a known read, taken again
            frame.parts.append(part)
        if part.complete:
            frame.open.remove(question)

    def _learn(self, state: SearchState, frame: Frame, fact: Fact) -> None:
        if all((known.text, known.question) != (fact.text, fact.question) for known in frame.facts):
            frame.learned = True
        frame.facts.append(fact)
        note(state, frame, "fact", fact.node, fact.text, question=fact.question)

    # Nested questions ------------------------------------------------------------------------------------------

    def _open_nested(
        self, state: SearchState, frame: Frame, place: dict[str, Any], questions: Iterable[str]
    ) -> list[Effect]:
        """Open a frame at the root for questions that came up, or take up the read again when they are known."""
        asking = _asking(state, frame)
        to_ask: list[str] = []
        learned = False
        for question in questions:
            folded = fold_question(question)
            parts = state.answered.get(folded)
            if parts:  # each place that asks is told once
                told = any(
                    f.node == place["node"] and fold_question(f.question) == folded for f in frame.facts
                )
                if not told:
                    self._learn(
                        state, frame, Fact(" ".join(p.answer for p in parts), place["node"], question)
                    )
                    learned = True
                continue
            if not folded or folded in frame.asked:
                continue
            frame.asked[folded] = state.steps
            dropped = ""
            if folded in asking:
                dropped = "an enclosing search is asking it"
            elif parts is not None:
                dropped = "an earlier search found no answer to it"
            elif frame.depth + 1 > state.limits["depth"]:
                dropped = f"nested deeper than {state.limits['depth']}"
            elif state.opened >= state.limits["questions"]:
                dropped = f"more than {state.limits['questions']} questions were opened"
            if dropped:
                note(state, frame, "dropped", place["node"], dropped, question=question)
                continue
            state.opened += 1
            to_ask.append(question)
        if to_ask:
            frame.place = place
            nested = Frame(
                len(state.frames),
                to_ask,
                list(state.given["trail"][:1]),
                parent=frame.id,
                asked_at=place["node"],
                depth=frame.depth + 1,
                open=list(to_ask),
            )
            state.frames[nested.id] = nested
            note(state, nested, "frame", place["node"], "questions that came up", questions=to_ask)
            return self._list(state, nested)
        if learned:
            return self._read_again(state, frame, place)
        return []

    def _read_again(self, state: SearchState, frame: Frame, place: dict[str, Any]) -> list[Effect]:
        names = ("node", "title", "version", "content", "told")
        return self._read(state, frame, *(place[name] for name in names))

    def _finish(self, state: SearchState, frame: Frame, ended: str) -> list[Effect]:
        """End a frame: hand its answers to the place that asked, or end the run."""
        frame.ended = ended
        for question in frame.questions:
            parts = [p for p in frame.parts if p.question == question]
            if parts or fold_question(question) not in state.answered:
                state.answered[fold_question(question)] = parts
        note(state, frame, "end", None, ended, open=list(frame.open))
        if frame.parent is None:
            return self._finish_run(state, frame)
        parent = state.frames[frame.parent]
        place, parent.place = parent.place, None
        assert place is not None
        learned = False
        for question in frame.questions:
            parts = state.answered[fold_question(question)]
            if parts:
                text = " ".join(p.answer for p in parts)
                self._learn(state, parent, Fact(text, place["node"], question))
                learned = True
        if learned:
            return self._read_again(state, parent, place)
        return self._after_reading(state, parent, "its questions found no answer")

    def _finish_run(self, state: SearchState, frame: Frame) -> list[Effect]:
        roots = [f for f in state.frames.values() if f.parent is None]
        if any(f.ended is None for f in roots):
            return []
        if collecting(state):
            state.ended = "answered" if state.collected or frame.parts else "exhausted"
            return []
        order = {fold_question(question): number for number, question in enumerate(state.given["questions"])}
        parts = sorted((p for f in roots for p in f.parts), key=lambda p: order[fold_question(p.question)])
        answers = [part_json(p) for p in parts]
        if len({fold_question(a["question"]) for a in answers}) > 1:
            return effect_of(
                state,
                frame,
                "compose",
                questions=state.given["questions"],
                answers=answers,
                open=[q for f in roots for q in f.open],
                context=state.given["context"],
            )
        self._end_run(state)
        return []

    def _on_compose(self, state: SearchState, frame: Frame, effect: Effect, event: Outcome) -> list[Effect]:
        if event.error is None:
            state.composed = event.value["text"]
        note(state, frame, "compose", None, event.error or "")
        self._end_run(state)
        return []

    def _end_run(self, state: SearchState) -> None:
        still_open = any(f.open for f in state.frames.values() if f.parent is None)
        state.ended = "exhausted" if still_open else "answered"
        reads = state.tallies.get("read", Tally())
        if still_open and reads.failed and reads.done == state.unread:
            state.ended = "failed"  # nobody has read anything, so nothing is known of what the tree says

    # At the root with nothing left -----------------------------------------------------------------------------

    def _exhausted(self, state: SearchState, frame: Frame) -> list[Effect]:
        if frame.learned and frame.restarts < state.limits["restarts"] and not collecting(state):
            frame.restarts += 1
            frame.learned = False
            frame.marks = {}
            frame.read, frame.visits = {}, {}
            note(state, frame, "restart", None, "something was learned since it began")
            return self._from_root(state, frame)
        if self._may_look_twice(state, frame):
            frame.looked_twice = True
            cleared = _clear_unviable(frame)
            note(
                state, frame, "second_look", None, "what was ruled out is offered once more", cleared=cleared
            )
            return self._from_root(state, frame)
        chain: list[str] = state.given["fallbacks"]
        if frame.fallback < len(chain) and not (collecting(state) and state.collected):
            index = frame.fallback
            frame.fallback += 1
            note(state, frame, "fallback", None, f"the tree is exhausted: fallback {index + 1}", index=index)
            if chain[index] == "person":
                return [
                    e
                    for q in frame.open
                    for e in effect_of(state, frame, "ask", question=q, about="question")
                ]
            return effect_of(
                state,
                frame,
                "fallback",
                index=index,
                questions=list(frame.open),
                context=context_of(state, frame),
                may_create=max(0, state.limits["nodes_created"] - state.created),
            )
        return self._finish(state, frame, "exhausted")

    def _may_look_twice(self, state: SearchState, frame: Frame) -> bool:
        if not state.given["second_look"] or frame.looked_twice or (collecting(state) and state.collected):
            return False
        return any(mark.kind == UNVIABLE for mark in frame.marks.values())

    def _from_root(self, state: SearchState, frame: Frame) -> list[Effect]:
        frame.trail = list(state.given["trail"][:1])
        frame.tools = None
        return self._list(state, frame)

    def _on_fallback(self, state: SearchState, frame: Frame, effect: Effect, event: Outcome) -> list[Effect]:
        if event.error is not None:
            note(state, frame, "fallback", None, f"it failed: {event.error}", index=effect.payload["index"])
            return self._exhausted(state, frame)
        for answer in event.value["answers"]:
            self._take(state, frame, answer, "", "")
        made = event.value["nodes"]
        if event.value["left_out"]:
            why = f"no more nodes may be made: {event.value['left_out']} left out"
            note(state, frame, "dropped", None, why, index=effect.payload["index"])
        for node in made:
            state.created += 1
            opened = [above for above in node["trail"] if frame.marks.pop(above, None) is not None]
            note(state, frame, "create", node["id"], "made by a fallback", opened=opened)
            if collecting(state) and node["accept"] and len(state.collected) < state.given["k"]:
                state.collected.append(Collected(node["id"], node["title"], 1.0, "made by a fallback"))
                note(state, frame, "collect", node["id"], "made by a fallback", score=1.0)
                frame.marks[node["id"]] = Mark(VISITED, "collected", state.steps, None)
        done = len(state.collected) >= state.given["k"] if collecting(state) else not frame.open
        if done:
            return self._finish(state, frame, "answered")
        return self._from_root(state, frame) if made else self._exhausted(state, frame)

    def _on_ask(self, state: SearchState, frame: Frame, effect: Effect, event: Outcome) -> list[Effect]:
        said = "" if event.error is not None else str(event.value["answer"] or "").strip()
        question = effect.payload["question"]
        note(state, frame, "person", None, "answered" if said else "declined", question=question, answer=said)
        if effect.payload["about"] == "call":
            visit = frame.tools
            assert visit is not None
            if said.casefold() in ("yes", "y", "true", "1"):
                return self._call(state, frame, visit, again=True)
            return self._tool_done(state, frame, visit, VISITED, "interrupted once, and not called again")
        if effect.payload["about"] == "permission":
            return self._on_permission(state, frame, said, effect.payload["fingerprint"])
        if said:
            answer = {"question": question, "answer": said, "quote": said, "complete": True}
            self._take(state, frame, answer, "", A_PERSON)
        if any(w.frame == frame.id for w in state.waiting.values()):
            return []  # other questions of this frame are still with the person
        return self._exhausted(state, frame) if frame.open else self._finish(state, frame, "answered")


def _why_collected(value: Mapping[str, Any]) -> str:
    """Return why a node was collected: what the evidence says, with its line or with what the router said."""
    said, hint, why = value["reason"], value["hint"], value.get("why", "")
    if not why:
        return str(said or hint)
    if value.get("thought") and said:
        return f"{said} ({why})"
    return f"{why}: {hint!r}" if hint else str(why)


def _folded(questions: Iterable[str]) -> set[str]:
    return {fold_question(q) for q in questions}


def _asking(state: SearchState, frame: Frame) -> set[str]:
    """Return the folded questions that this frame or one around it is asking."""
    asking: set[str] = set()
    at: Frame | None = frame
    while at is not None:
        asking |= _folded(at.questions)
        at = None if at.parent is None else state.frames[at.parent]
    return asking


def _clear_unviable(frame: Frame) -> list[str]:
    """Clear the unviable marks, and the visited ones of the menus in which they were offered; return them all."""
    before = list(frame.marks)
    for node in [node for node, mark in frame.marks.items() if mark.kind == UNVIABLE]:
        mark = frame.marks.pop(node, None)
        while mark is not None and mark.menu is not None:
            mark = frame.marks.pop(mark.menu, None)
    return [node for node in before if node not in frame.marks]


def _hash(*said: Any) -> str:
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()
