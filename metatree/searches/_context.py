"""What a search has learned, as its parts get it."""

from __future__ import annotations

from functools import lru_cache

from metatree.searches._outcomes import FoundAnswer
from metatree.searches._state import Fact, Frame, Part, SearchState

MAX_FACTS_SHOWN = 12
MAX_FACT_CHARS = 400


@lru_cache(maxsize=64)
def question_key(question: str) -> str:
    """Return the form in which questions are compared: case and white space folded."""
    return " ".join(question.casefold().split())


def facts_for(frame: Frame, node: str, title: str) -> list[str]:
    """Return the facts that concern a node: it asked for them or said them, or they name it."""
    name = title.casefold()
    relevant = [
        fact
        for fact in frame.facts
        if (fact.node == node and fact.question)
        or (len(name) > 3 and fact.node != node and name in fact.text.casefold())
    ]
    return list(dict.fromkeys(map(_fact_text, relevant)))[-MAX_FACTS_SHOWN:]


def _fact_text(fact: Fact) -> str:
    text = fact.text if len(fact.text) <= MAX_FACT_CHARS else fact.text[: MAX_FACT_CHARS - 1] + "…"
    return f"{fact.question} {text}" if fact.question else text


def context_of(state: SearchState, frame: Frame) -> str:
    return join(state.given["context"], list(dict.fromkeys(map(_fact_text, frame.facts)))[-MAX_FACTS_SHOWN:])


def join(context: str, facts: list[str]) -> str:
    if not facts:
        return context
    known = "Known so far:\n" + "\n".join(f"- {fact}" for fact in facts)
    return f"{context}\n\n{known}" if context else known


def part_json(part: Part) -> FoundAnswer:
    return {
        "question": part.question,
        "answer": part.answer,
        "quote": part.quote,
        "complete": part.complete,
        "node": part.node,
        "title": part.title,
        "confidence": part.confidence,
        "verified": part.verified,
    }
