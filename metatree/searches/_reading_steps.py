"""Reading: what a text answers, what a frame learns from it, and the nested frames of questions that come up.

read ──┬─ new questions ── nested frame ── its answers come back to the read, which is taken up again
       └─ answers ── all closed? done
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from metatree.durable import Effect, Outcome
from metatree.errors import NotWorthAsking
from metatree.protocols import SURE
from metatree.searches._context import facts_for, join, part_json, question_key
from metatree.searches._effects import ReadText
from metatree.searches._outcomes import FoundAnswer, ReadResult
from metatree.searches._state import Fact, Frame, Part, ReadTarget, SearchState
from metatree.searches._steps import Moves, asks_model, effect_of, learn, note


class ReadingSteps(Moves):
    """The part of the search machine that reads."""

    def _read(
        self,
        state: SearchState,
        frame: Frame,
        node: str,
        title: str,
        version: str,
        content: str | None = None,
        notice: str = "",
        question: str = "",
    ) -> list[Effect]:
        """Read a node, or text that one of its tools returned; a known read is taken from the journal.

        Args:
            notice: what the reader has to know of that text.
            question: the one question that the text is read for; '' for all that are open.
        """
        facts = facts_for(frame, node, title)
        questions = (question,) if question else tuple(frame.open)
        asked = ["asked for"] if question else []
        key = _hash(
            version if content is None else content, sorted(map(question_key, questions)), facts, *asked
        )
        target = ReadTarget(node, title, version, content, key, notice, question)
        known = state.readings.get(key)
        if known is not None:
            return self._apply_reading(state, frame, target, known, known=True)
        context = join(state.given["context"], [*facts, notice] if notice else facts)
        parts = [part_json(p) for p in frame.parts if question_key(p.question) in _keys(questions)]
        return effect_of(
            state, frame, ReadText(target, questions, context, parts, state.given.get("sure", SURE))
        )

    def _on_read(self, state: SearchState, frame: Frame, payload: ReadText, event: Outcome) -> list[Effect]:
        target = payload.target
        if event.error is not None and asks_model(state, payload):
            if event.error_kind != NotWorthAsking.__name__:
                why = f"the embedded reader reads it, since the model could not: {event.error}"
                note(state, frame, "without_model", target.node, why)
            return effect_of(state, frame, replace(payload, embedded=True))
        if event.error is not None:
            note(state, frame, "read", target.node, f"it could not be read: {event.error}", useful=False)
            return self._after_reading(state, frame, f"it could not be read: {event.error}")
        value: ReadResult = event.value
        if value.get("unread"):
            state.unread += 1
            state.why_unread = value["notes"]
        state.readings[target.key] = value
        return self._apply_reading(state, frame, target, value, known=False)

    def _apply_reading(
        self, state: SearchState, frame: Frame, target: ReadTarget, value: ReadResult, *, known: bool
    ) -> list[Effect]:
        node, title = target.node, target.title
        useful = value["useful"]
        if useful:
            state.in_vain.clear()  # what is asked and known has changed
            state.fruitless = 0
        why = "useful" if useful else value["notes"] or "nothing here answers"
        note(state, frame, "read", node, why, answers=value["answers"], useful=useful, known=known)
        for answer in value["answers"]:
            self._take(state, frame, answer, node, title)
        if value["notes"] and useful and not known:
            learn(state, frame, Fact(value["notes"], node))
        if not frame.open:
            return self._finish(state, frame, "answered")
        if not known:
            effects = self._open_nested(state, frame, target, value["new_questions"])
            if effects:
                return effects
        return self._after_reading(state, frame, "read" if useful else why)

    def _after_reading(self, state: SearchState, frame: Frame, reason: str) -> list[Effect]:
        if frame.tools is not None:
            return self._list_tools(state, frame)
        if not frame.options and not frame.has_tools:
            return self._leave(state, frame, reason)  # a leaf: say why
        return self._descend(state, frame)

    def _take(self, state: SearchState, frame: Frame, answer: FoundAnswer, node: str, title: str) -> None:
        """Take an answer or a part of one; a complete one closes its question."""
        key = question_key(answer["question"])
        question = next((q for q in frame.open if question_key(q) == key), None)
        if question is None or not answer["answer"]:
            return
        confidence = answer.get("confidence")
        if confidence is not None and confidence < state.given.get("sure", SURE):
            return  # not claimed: what comes closest is looked for when the question stays open
        part = Part(
            question,
            answer["answer"],
            answer["quote"],
            answer["complete"],
            node,
            title,
            confidence,
            answer.get("verified", True),
            answer.get("place", node),
            _pair(answer.get("lines")),
            _pair(answer.get("pages")),
            answer.get("earlier", ()),
        )
        if part not in frame.parts:  # a known read, taken again
            frame.parts.append(part)
        if part.complete:
            frame.open.remove(question)

    def _open_nested(
        self, state: SearchState, frame: Frame, target: ReadTarget, questions: Iterable[str]
    ) -> list[Effect]:
        """Open a frame at the root for questions that came up, or take up the read again when they are known."""
        asking = _open_question_keys(state, frame)
        to_ask: list[str] = []
        has_news = False
        for question in questions:
            key = question_key(question)
            parts = state.answered.get(key)
            if parts:  # each place that asks is notified once
                knows = any(f.node == target.node and question_key(f.question) == key for f in frame.facts)
                if not knows:
                    learn(state, frame, Fact(" ".join(p.answer for p in parts), target.node, question))
                    has_news = True
                continue
            if not key or key in frame.asked:
                continue
            frame.asked[key] = state.steps
            dropped = ""
            if key in asking:
                dropped = "an enclosing search is asking it"
            elif parts is not None:
                dropped = "an earlier search found no answer to it"
            elif frame.depth + 1 > state.limits["depth"]:
                dropped = f"nested deeper than {state.limits['depth']}"
            elif state.opened >= state.limits["questions"]:
                dropped = f"more than {state.limits['questions']} questions were opened"
            if dropped:
                note(state, frame, "dropped", target.node, dropped, question=question)
                continue
            state.opened += 1
            to_ask.append(question)
        if to_ask:
            frame.interrupted = target
            nested = Frame(
                len(state.frames),
                to_ask,
                list(state.given["trail"][:1]),
                parent=frame.id,
                asked_at=target.node,
                depth=frame.depth + 1,
                open=list(to_ask),
            )
            state.frames[nested.id] = nested
            note(state, nested, "frame", target.node, "questions that came up", questions=to_ask)
            return self._list(state, nested)
        if has_news:
            return self._read_again(state, frame, target)
        return []

    def _read_again(self, state: SearchState, frame: Frame, target: ReadTarget) -> list[Effect]:
        return self._read(
            state,
            frame,
            target.node,
            target.title,
            target.version,
            target.content,
            target.notice,
            target.question,
        )

    def _resume_read(self, state: SearchState, frame: Frame, nested: Frame) -> list[Effect]:
        """Take up the read again that opened a nested frame, with what that has found."""
        target, frame.interrupted = frame.interrupted, None
        assert target is not None
        has_news = False
        for question in nested.questions:
            parts = state.answered[question_key(question)]
            if parts:
                learn(state, frame, Fact(" ".join(p.answer for p in parts), target.node, question))
                has_news = True
        if has_news:
            return self._read_again(state, frame, target)
        return self._after_reading(state, frame, "its questions found no answer")


def _pair(numbers: Sequence[int] | None) -> tuple[int, int] | None:
    return None if numbers is None else (numbers[0], numbers[1])


def _keys(questions: Iterable[str]) -> set[str]:
    return {question_key(q) for q in questions}


def _open_question_keys(state: SearchState, frame: Frame) -> set[str]:
    """Return the keys of the questions that this frame or one around it is asking."""
    asking: set[str] = set()
    at: Frame | None = frame
    while at is not None:
        asking |= _keys(at.questions)
        at = None if at.parent is None else state.frames[at.parent]
    return asking


def _hash(*values: Any) -> str:
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()
