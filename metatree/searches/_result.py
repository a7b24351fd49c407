"""From the state of a run to the result that its caller gets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from decimal import Decimal
from typing import Any, cast

from metatree._util.numbers import whole_number
from metatree.durable import Effect
from metatree.result import (
    ClosestPassage,
    EarlierAnswer,
    Ended,
    NodeRef,
    PersonQuestion,
    QuestionAnswer,
    QuestionNote,
    Quote,
    SearchResult,
    TraceEntry,
    Usage,
    Wish,
)
from metatree.searches._citations import Span, cited, numbers_of, support_of
from metatree.searches._context import question_key
from metatree.searches._outcomes import EarlierFound, PassageFound
from metatree.searches._state import Part, SearchState


def result_of(
    state: SearchState,
    used: Mapping[str, float],
    *,
    ended: str,
    detail: str,
    run_id: str,
    waiting: Iterable[Effect] = (),
) -> SearchResult:
    """Return what a run has found so far, whether or not it has ended; `waiting` are the effects it waits with."""
    roots = [frame for frame in state.frames.values() if frame.parent is None]
    parts = [part for frame in roots for part in frame.parts]
    drafts = []
    for question in dict.fromkeys(state.given["questions"]):
        own = [part for part in parts if question_key(part.question) == question_key(question)]
        if own:
            drafts.append(_Draft(question, own))
    text = state.composed if state.composed is not None else _join_answers(drafts)
    answers, cited_text = _with_sources(text, drafts)
    if state.given["returns"] == "nodes":
        nodes = [NodeRef(c.id, c.title, c.score, c.reason, c.path, c.lines, c.at) for c in state.collected]
        if state.given.get("in_time"):
            nodes.sort(key=lambda node: (node.at, _numbered(node.id)))
    else:
        nodes = _sources(answers)
    open_questions = list(dict.fromkeys(q for frame in roots for q in frame.open))
    if state.given["returns"] == "nodes" and nodes:
        open_questions = []
    return SearchResult(
        answer=text,
        cited=cited_text,
        answers=tuple(answers),
        nodes=tuple(nodes),
        open_questions=tuple(open_questions),
        notes=tuple(
            QuestionNote(**{**note, "tree_languages": tuple(note["tree_languages"])})
            for note in state.given.get("notes", ())
        ),
        wishes=tuple(Wish(**wish) for wish in state.given.get("wishes", ())),
        closest=tuple(_closest_passage(passage) for passage in state.closest or ()),
        trace=trace_of(state.trace),
        usage=usage_of(used),
        ended=cast(Ended, ended),
        detail=_detail(state, ended, detail),
        asks=tuple(
            PersonQuestion(effect.id, effect.payload.question, effect.payload.about)
            for effect in waiting
            if effect.kind == "ask"
        ),
        run_id=run_id,
    )


def _numbered(node_id: str) -> list[tuple[int, str]]:
    """Return what sorts ids by the numbers in them: what was said on one day has the numbers of its turns."""
    parts = re.split(r"(\d+)", node_id)
    return [(0, part) if (number := whole_number(part)) is None else (number, "") for part in parts]


def _detail(state: SearchState, ended: str, detail: str) -> str:
    """Say why a run ended so; at a limit also which parts failed, since that may be what used it up."""
    if detail and ended != "limit":
        return detail
    return "; ".join(filter(None, (detail, _troubles(state))))


def _troubles(state: SearchState) -> str:
    """Say which parts failed and what could not be read, so that a dead router does not look like a poor tree."""
    sentences = []
    if state.without_model:
        sentences.append(f"{state.why_without}: the search went on without it")
    elif state.without_router and state.given.get("own_router"):
        sentences.append(f"{state.why_without}: the embedded router chose the way from there")
    elif state.without_router:
        sentences.append(f"{state.why_without}: the evidence chose the way from there")
    order = "the order by evidence" if state.given.get("has_evidence", True) else "the order of the tree"
    for kind, who, then in (
        ("route", "the router", f"; {order} decided"),
        ("read", "the reader", ""),
        ("compose", "the composer", "; the answers stand one under the other"),
    ):
        tally = state.tallies.get(kind)
        if kind == "route" and state.without_router and state.given.get("own_router"):
            continue  # said above
        if tally is not None and tally.failed:
            calls = tally.done + tally.failed
            sentences.append(
                f"{who} failed at {tally.failed} of {calls} requests{then} (last error: {tally.error})"
            )
    if state.unread:
        sentences.append(f"{state.unread} nodes could not be read (the last: {state.why_unread})")
    return "; ".join(sentences)


def trace_of(entries: Sequence[Mapping[str, Any]]) -> tuple[TraceEntry, ...]:
    """Return trace entries as objects."""
    return tuple(
        TraceEntry(e["step"], e["frame"], e["event"], e["node"], e["reason"], e["data"]) for e in entries
    )


def usage_of(counters: Mapping[str, float]) -> Usage:
    """Return the kernel's counters as usage."""
    usage = Usage()
    for field in fields(Usage):
        if field.name in counters:
            amount = counters[field.name]
            if field.name == "cost_usd":
                usage.cost_usd = Decimal(str(round(amount, 9)))
            else:
                setattr(usage, field.name, round(amount, 6) if field.name == "seconds" else int(amount))
    return usage


class _Draft:
    """An answer before its sources are numbered. A complete part was given by a reader that saw the parts before it."""

    def __init__(self, question: str, parts: Sequence[Part]) -> None:
        self.question, self.parts = question, parts
        complete = [part for part in parts if part.complete]
        self.last = complete[-1] if complete else None
        self.text = self.last.answer if self.last else "\n".join(dict.fromkeys(part.answer for part in parts))

    def spans(self, text: str) -> list[tuple[Span, Part]]:
        """Return where a text rests on which parts."""
        found = [
            (support_of(text, part, is_own=part is self.last or self.last is None), part)
            for part in self.parts
        ]
        return [(span, part) for span, part in found if span is not None]

    def answer(self, numbers: Mapping[tuple[str, str], int]) -> QuestionAnswer:
        """Return the answer, its sources in the order of their numbers."""
        spans = [(span, part) for span, part in self.spans(self.text) if _source(part) in numbers]
        sources = {
            numbers[_source(part)]: Quote(
                part.node,
                part.title,
                part.quote,
                numbers[_source(part)],
                part.place or part.node,
                part.lines,
                part.pages,
            )
            for _, part in spans
        }
        last = self.last
        return QuestionAnswer(
            self.question,
            self.text,
            tuple(sources[number] for number in sorted(sources)),
            last is not None,
            None if last is None else last.confidence,
            all(part.verified for part in self.parts) if last is None else last.verified,
            cited(self.text, [(span, numbers[_source(part)]) for span, part in spans]),
            () if last is None else tuple(map(_earlier_answer, last.earlier)),
        )


def _with_sources(text: str, drafts: Sequence[_Draft]) -> tuple[list[QuestionAnswer], str]:
    """Return the answers with their sources, which are numbered over all of them, and the whole text with numbers."""
    spans: list[tuple[Span, Part]] = []
    for draft in drafts:
        at = text.find(draft.text)
        if at >= 0 and text[at + len(draft.text) :][:1] in ("", "\n"):
            spans += [((start + at, end + at), part) for (start, end), part in draft.spans(draft.text)]
        else:  # a composer has said it in words of its own
            spans += draft.spans(text)
    numbers = numbers_of([(span, _source(part)) for span, part in spans])
    answers = [draft.answer(numbers) for draft in drafts]
    return answers, cited(text, [(span, numbers[_source(part)]) for span, part in spans])


def _source(part: Part) -> tuple[str, str]:
    return part.node, part.quote


def _earlier_answer(found: EarlierFound) -> EarlierAnswer:
    lines = found["lines"]
    return EarlierAnswer(
        found["node"],
        found["title"],
        found["at"],
        found["quote"],
        found["place"],
        None if lines is None else (lines[0], lines[1]),
    )


def _closest_passage(found: PassageFound) -> ClosestPassage:
    first, last = found["lines"]
    return ClosestPassage(
        found["question"],
        found["node"],
        found["title"],
        found["place"],
        (first, last),
        found["quote"],
        found["score"],
    )


def _sources(answers: Sequence[QuestionAnswer]) -> list[NodeRef]:
    nodes: dict[str, NodeRef] = {}
    for answer in answers:
        for source in answer.sources:
            if source.node:
                nodes.setdefault(
                    source.node, NodeRef(source.node, source.title, 1.0, f"answers {answer.question!r}")
                )
    return list(nodes.values())


def _join_answers(drafts: Sequence[_Draft]) -> str:
    if len(drafts) == 1:
        return drafts[0].text
    return "\n\n".join(f"{draft.question}\n{draft.text}" for draft in drafts)
