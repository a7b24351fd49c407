"""One answer of the answers that several trees gave to a question, each with the name of its tree."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from metatree_agents.service.queue.models import NARROWED_NOTHING, NOT_SAID, Ending, EngineAnswer

READ_AS = "Read as: "
"""How a note begins on words that a tree has otherwise; where another has them as they were typed, it is left out."""
NOTHING_CALLED = "Nothing is called "
"""The same of a name that a tree does not have."""
_MARK = re.compile(r"\[(\d{1,4})\]")


def named(tree: str, reply: EngineAnswer) -> EngineAnswer:
    """Return an answer whose sources and passages say which tree they are in."""
    ending = replace(reply.ending, closest=[{**each, "Tree": tree} for each in reply.ending.closest])
    return replace(reply, sources=[{**each, "Tree": tree} for each in reply.sources], ending=ending)


def joined(replies: Sequence[tuple[str, str, EngineAnswer]]) -> EngineAnswer:
    """Return one answer of several.

    Where any tree answers, the answer is theirs, each under the title of its tree where more than one does; what stayed
    open stays open where no tree answers it. Otherwise it is open, with the likeliest passages of all, or a person is
    asked what any of the searches asks.

    Args:
        replies: (name, title, answer) of each tree.
    """
    given = [(title, named(name, reply)) for name, title, reply in replies]
    if len(given) == 1:
        return given[0][1]
    think = [f"{title}: {line}" for title, reply in given for line in reply.think]
    closest = sorted(
        (each for _, reply in given for each in reply.ending.closest),
        key=lambda each: -float(each.get("Score") or 0.0),
    )
    every = [reply.ending.notes for _, reply in given]
    notes = [
        note
        for note in dict.fromkeys(note for its in every for note in its)
        if not (note.endswith(NARROWED_NOTHING) or note.startswith((READ_AS, NOTHING_CALLED)))
        or all(note in its for its in every)
    ]
    found = _each_once([(title, reply) for title, reply in given if reply.ending.end == "answered"])
    if found:
        text: list[str] = []
        sources: list[dict[str, Any]] = []
        for title, reply in found:
            before = max((int(each.get("Number") or 0) for each in sources), default=0)
            text += [f"{title}:"] if len(found) > 1 else []
            text += _renumbered(reply, before)
            sources += [
                {**each, "Number": each["Number"] + before} if each.get("Number") else each
                for each in reply.sources
            ]
        still = set.intersection(*(set(reply.ending.open) for _, reply in found))
        opened = [question for question in found[0][1].ending.open if question in still]
        kept = [each for each in closest if each.get("Question") in still]
        return EngineAnswer(
            text, think, sources, found[0][1].ended, ending=Ending("answered", opened, kept, notes=notes)
        )
    ended = next((reply for _, reply in given if reply.ended in ("failed", "limit")), given[0][1])
    asks = [ask for _, reply in given for ask in reply.asks]
    opened = list(dict.fromkeys(question for _, reply in given for question in reply.ending.open))
    return EngineAnswer(
        ended.answer or [NOT_SAID],
        think,
        [each for _, reply in given for each in reply.sources],
        "waiting" if asks else ended.ended,
        ended.detail,
        list({ask["Question"]: ask for ask in asks}.values()),
        Ending("closest" if closest else "nothing", opened, closest, notes=notes),
    )


def _each_once(found: Sequence[tuple[str, EngineAnswer]]) -> list[tuple[str, EngineAnswer]]:
    """Return the answers of trees, and what a person said to the search once: each of their searches heard it."""
    kept = [(title, reply) for title, reply in found if any(each.get("Node") for each in reply.sources)]
    said = {part for _, reply in kept for part in reply.answer}
    for title, reply in found:
        if reply.sources and not any(each.get("Node") for each in reply.sources):
            if not said.issuperset(reply.answer):
                kept.append(("A person", reply))
                said.update(reply.answer)
        elif not reply.sources:
            kept.append((title, reply))
    return kept


def found_in(replies: Sequence[tuple[str, str, EngineAnswer]]) -> EngineAnswer:
    """Return what the searches of a stopped question had found."""
    text = [part for _, _, reply in replies for part in reply.answer]
    sources = [each for name, _, reply in replies for each in named(name, reply).sources]
    think = [line for _, _, reply in replies for line in reply.think]
    return EngineAnswer(text, think, sources, "cancelled", ending=Ending("stopped"))


def _renumbered(reply: EngineAnswer, before: int) -> list[str]:
    """Return the paragraphs of an answer, with the numbers of its sources counted on; what is quoted stays."""
    numbers = {int(each["Number"]) for each in reply.sources if each.get("Number")}
    quotes = "\n".join(str(each.get("Quote") or "") for each in reply.sources)

    def shifted(mark: re.Match[str]) -> str:
        return f"[{int(mark[1]) + before}]" if int(mark[1]) in numbers else mark[0]

    return [part if part in quotes or not before else _MARK.sub(shifted, part) for part in reply.answer]
