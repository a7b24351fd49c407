"""The search machine: where a search goes next, as a pure step over plain state.

Here are the beginning, the dispatch of outcomes, and the end of frames and runs; `_reading_steps`, `_tool_steps` and
`_tree_steps`, each built on the one before, have the rest:

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

from typing import Any, assert_never

from metatree.durable import Effect, Event, Outcome, Signal
from metatree.errors import NotWorthAsking
from metatree.protocols import SURE
from metatree.searches._context import context_of, part_json, question_key
from metatree.searches._effects import (
    AskHuman,
    CallTool,
    ComposeAnswers,
    DescribeNode,
    FillArguments,
    FindCalls,
    FindClosest,
    InsertNode,
    ListNode,
    ListTools,
    RankMenu,
    ReadText,
    RouteMenu,
    RunFallback,
    SearchEffect,
)
from metatree.searches._outcomes import FallbackOutput, FoundAnswer
from metatree.searches._state import (
    MOST_UNUSABLE,
    UNVIABLE,
    VISITED,
    Collected,
    Frame,
    Mark,
    ReadTarget,
    SearchState,
    Tally,
)
from metatree.searches._steps import asks_model, collecting, effect_of, note
from metatree.searches._tree_steps import TreeWalk

A_PERSON = "a person"


class SearchMachine(TreeWalk):
    """Implements `metatree.durable.Machine` for searches.

    `begin` is given: `questions`, `context`, `returns` (`answer` or `nodes`), `k`, `trail` (ids from the root to the
    start node), `limits` (the machine's own: `questions`, `depth`, `nodes_created`, `restarts`), `sure`, `second_look`,
    `fallbacks` (a list of `call` and `person`), `separate_frames` (each question in a frame of its own), `asked_tools`
    (whether tools that questions ask for outright are called first), `by_model` (kinds of effects for which a model is
    asked), `own_router` (the name of a router that asks none), `has_evidence` (whether options have scores),
    `by_probabilities` (whether the probabilities of the router's decisions are gone by).

    `_effects` has its effects, `_outcomes` what comes of each.
    """

    name = "search"
    version = 2

    def begin(self, given: dict[str, Any], now: float) -> tuple[SearchState, list[Effect]]:
        state = SearchState(given=given, limits=dict(given["limits"]))
        questions: list[str] = given["questions"]
        groups = [[q] for q in questions] if given["separate_frames"] else [questions]
        effects: list[Effect] = []
        for group in groups:
            frame = Frame(len(state.frames), list(group), list(given["trail"]), open=list(group))
            state.frames[frame.id] = frame
            note(state, frame, "frame", frame.trail[-1], "", questions=group)
            asked = given.get("asked_tools") and not collecting(state)
            effects += self._find_calls(state, frame) if asked else self._list(state, frame)
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
            tally.failed_in_row = 0
        elif event.error_kind != NotWorthAsking.__name__:  # nobody was asked
            tally.failed += 1
            tally.failed_in_row += 1
            tally.error = event.error
        payload: SearchEffect = waiting.effect.payload
        if asks_model(state, payload):
            self._count_unusable(state, frame, event)
        match payload:
            case ListNode():
                return self._on_list(state, frame, event)
            case RouteMenu():
                return self._on_route(state, frame, payload, event)
            case ReadText() if frame.ended is not None:
                return self._on_last_read(state, frame, payload, event)
            case ReadText():
                return self._on_read(state, frame, payload, event)
            case RankMenu():
                return self._on_rank(state, frame, payload.menu, event)
            case ListTools():
                return self._on_tools(state, frame, event)
            case FindCalls():
                return self._on_calls(state, frame, event)
            case FillArguments():
                return self._on_fill(state, frame, event)
            case CallTool():
                return self._on_call(state, frame, event)
            case DescribeNode():
                return self._on_describe(state, frame, payload, event)
            case InsertNode():
                return self._on_insert(state, frame, event)
            case RunFallback():
                return self._on_fallback(state, frame, payload, event)
            case AskHuman():
                return self._on_answer(state, frame, payload, event)
            case ComposeAnswers():
                return self._on_compose(state, frame, event)
            case FindClosest():
                state.closest = [] if event.error is not None else event.value["passages"]
                return self._last_reads(state, frame)
            case _:
                assert_never(payload)

    def _count_unusable(self, state: SearchState, frame: Frame, event: Outcome) -> None:
        """Go on with the embedded parts when a model gave no usable answer several times in a row, or is too poor.

        Whatever it was: refused, cut off, not in form, no answer in time. Each counts after all of its attempts.
        """
        if event.error_kind == NotWorthAsking.__name__:
            if not state.without_model:
                state.without_model, state.why_without = True, event.error or ""
                note(state, frame, "without_model", None, state.why_without)
            return
        most = state.given.get("most_fruitless")
        state.fruitless += frame.knockout is None  # the groups of one menu are one decision
        if most is not None and state.fruitless >= most and not state.without_model:
            state.without_model = state.fruitless >= 2 * most
            if state.without_model or not state.without_router:
                state.without_router = True
                state.why_without = f"{state.fruitless} requests to the model led to nothing"
                note(state, frame, "without_model", None, state.why_without)
        if event.error is None:
            state.unusable = 0
            return
        state.unusable += 1
        if state.unusable >= MOST_UNUSABLE and not state.without_model:
            state.without_model = True
            why = f"no usable answer to {state.unusable} requests in a row: {event.error}"
            state.why_without = f"the model gave no usable answer to {MOST_UNUSABLE} requests in a row"
            note(state, frame, "without_model", None, why)

    def _finish(self, state: SearchState, frame: Frame, ended: str) -> list[Effect]:
        frame.ended = ended
        for question in frame.questions:
            parts = [p for p in frame.parts if p.question == question]
            if parts or question_key(question) not in state.answered:
                state.answered[question_key(question)] = parts
        note(state, frame, "end", None, ended, open=list(frame.open))
        if frame.parent is None:
            return self._finish_run(state, frame)
        return self._resume_read(state, state.frames[frame.parent], frame)

    def _finish_run(self, state: SearchState, frame: Frame) -> list[Effect]:
        roots = [f for f in state.frames.values() if f.parent is None]
        if any(f.ended is None for f in roots):
            return []
        if collecting(state):
            state.ended = "answered" if state.collected or frame.parts else "exhausted"
            return []
        if state.closest is None and (still_open := [q for f in roots for q in f.open]):
            return effect_of(state, frame, FindClosest(tuple(dict.fromkeys(still_open))))
        order = {question_key(question): number for number, question in enumerate(state.given["questions"])}
        parts = sorted((p for f in roots for p in f.parts), key=lambda p: order[question_key(p.question)])
        answers = [part_json(p) for p in parts]
        if len({question_key(a["question"]) for a in answers}) > 1:
            given, still_open = state.given, [q for f in roots for q in f.open]
            payload = ComposeAnswers(given["questions"], answers, still_open, given["context"])
            return effect_of(state, frame, payload)
        self._end_run(state)
        return []

    def _last_reads(self, state: SearchState, frame: Frame) -> list[Effect]:
        """Have the embedded reader read what likely answers and no model has read, as when it was led elsewhere."""
        assert state.closest is not None
        sure, seen = state.given.get("sure", SURE), {e["node"] for e in state.trace if e["event"] == "read"}
        roots = [f for f in state.frames.values() if f.parent is None]
        for passage in state.closest if state.given.get("last_reads") else ():
            asking = next((f for f in roots if passage["question"] in f.open), None)
            if asking is not None and passage["score"] >= sure and passage["node"] not in seen:
                target = ReadTarget(passage["node"], passage["title"], "", None, "")
                return effect_of(
                    state, asking, ReadText(target, (passage["question"],), "", [], sure, embedded=True)
                )
        state.closest = [p for p in state.closest if any(p["question"] in f.open for f in roots)]
        return self._finish_run(state, frame)

    def _on_last_read(
        self, state: SearchState, frame: Frame, payload: ReadText, event: Outcome
    ) -> list[Effect]:
        node, title = payload.target.node, payload.target.title
        answers = [] if event.error is not None else event.value["answers"]
        why = "no model has read what likely answers" if answers else event.error or "nothing here answers"
        note(state, frame, "read", node, why, answers=answers, useful=bool(answers), known=False)
        for answer in answers:
            self._take(state, frame, answer, node, title)
        return self._last_reads(state, frame)

    def _on_compose(self, state: SearchState, frame: Frame, event: Outcome) -> list[Effect]:
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

    def _exhausted(self, state: SearchState, frame: Frame) -> list[Effect]:
        if frame.learned and frame.restarts < state.limits["restarts"] and not collecting(state):
            frame.restarts += 1
            frame.learned = False
            frame.marks = {}
            frame.read, frame.visits, frame.likely = {}, {}, {}
            note(state, frame, "restart", None, "something was learned since it began")
            return self._from_root(state, frame)
        if self._may_look_twice(state, frame):
            frame.looked_twice, frame.likely = True, {}
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
                return [e for q in frame.open for e in effect_of(state, frame, AskHuman(q, "question"))]
            may_create = max(0, state.limits["nodes_created"] - state.created)
            payload = RunFallback(index, tuple(frame.open), context_of(state, frame), may_create)
            return effect_of(state, frame, payload)
        return self._finish(state, frame, "exhausted")

    def _may_look_twice(self, state: SearchState, frame: Frame) -> bool:
        if not state.given["second_look"] or frame.looked_twice or (collecting(state) and state.collected):
            return False
        return any(mark.kind == UNVIABLE for mark in frame.marks.values())

    def _from_root(self, state: SearchState, frame: Frame) -> list[Effect]:
        frame.trail = list(state.given["trail"][:1])
        frame.tools = None
        return self._list(state, frame)

    def _on_fallback(
        self, state: SearchState, frame: Frame, payload: RunFallback, event: Outcome
    ) -> list[Effect]:
        if event.error is not None:
            note(state, frame, "fallback", None, f"it failed: {event.error}", index=payload.index)
            return self._exhausted(state, frame)
        value: FallbackOutput = event.value
        for answer in value["answers"]:
            self._take(state, frame, answer, "", "")
        nodes = value["nodes"]
        if value["left_out"]:
            why = f"no more nodes may be made: {value['left_out']} left out"
            note(state, frame, "dropped", None, why, index=payload.index)
        for node in nodes:
            state.created += 1
            unmarked = [above for above in node["trail"] if frame.marks.pop(above, None) is not None]
            note(state, frame, "create", node["id"], "made by a fallback", opened=unmarked)
            if collecting(state) and node["accept"] and len(state.collected) < state.given["k"]:
                state.collected.append(Collected(node["id"], node["title"], 1.0, "made by a fallback"))
                note(state, frame, "collect", node["id"], "made by a fallback", score=1.0)
                frame.marks[node["id"]] = Mark(VISITED, "collected", state.steps, None)
        is_complete = len(state.collected) >= state.given["k"] if collecting(state) else not frame.open
        if is_complete:
            return self._finish(state, frame, "answered")
        return self._from_root(state, frame) if nodes else self._exhausted(state, frame)

    def _on_answer(self, state: SearchState, frame: Frame, payload: AskHuman, event: Outcome) -> list[Effect]:
        reply = "" if event.error is not None else str(event.value["answer"] or "").strip()
        question = payload.question
        note(
            state, frame, "person", None, "answered" if reply else "declined", question=question, answer=reply
        )
        if payload.about == "call":
            if reply.casefold() in ("yes", "y", "true", "1"):
                return self._call(state, frame, again=True)
            return self._tool_done(state, frame, VISITED, "interrupted once, and not called again")
        if payload.about == "permission":
            return self._on_permission(state, frame, reply, payload.fingerprint)
        if reply:
            answer: FoundAnswer = {"question": question, "answer": reply, "quote": reply, "complete": True}
            self._take(state, frame, answer, "", A_PERSON)
        if any(w.frame == frame.id for w in state.waiting.values()):
            return []  # other questions of this frame are still with the person
        return self._exhausted(state, frame) if frame.open else self._finish(state, frame, "answered")


def _clear_unviable(frame: Frame) -> list[str]:
    """Clear the unviable marks, and the visited ones of the menus in which they were offered; return them all."""
    before = list(frame.marks)
    for node in [node for node, mark in frame.marks.items() if mark.kind == UNVIABLE]:
        mark = frame.marks.pop(node, None)
        while mark is not None and mark.menu is not None:
            mark = frame.marks.pop(mark.menu, None)
    return [node for node in before if node not in frame.marks]
