"""A search that reached its limit asks the person who asked, as one that has looked everywhere does.

The limits are the kernel's, and a run that reached one stands still: nothing of it may go on, its fallbacks neither. So
the question is asked outside of the run, and what the person says is added to what the run found before.

Only the service does so; `search` returns `limit`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from metatree import ask_person
from metatree.result import SearchResult
from metatree_agents.service.queue.models import REMEMBERED, Ending, EngineAnswer, EngineQuery

A_PERSON: Final = "a person"
SAID_BEFORE: Final = "what the asker said before"


def with_person(
    query: EngineQuery, result: SearchResult, reply: EngineAnswer, parts: Mapping[str, Any]
) -> EngineAnswer:
    """Return what an engine gives back for a run: what it asks the person, or with what the person said to that.

    Args:
        query: the query, with the replies of a person.
        result: what its run came to.
        reply: the same as an engine gives it back.
        parts: those of the search; `ask_person` among the fallbacks says whether a person may be asked.
    """
    remembered = next(
        (
            str(one["Answer"])
            for one in query.told
            if one["Key"] == REMEMBERED and same_question(one["Question"], query.text)
        ),
        None,
    )
    if remembered is not None and not result.answer.strip() and result.ended != "waiting":
        return _with_answer(query, result, reply, remembered, SAID_BEFORE)
    if result.ended != "limit" or not result.open_questions or ask_person not in parts.get("fallbacks", ()):
        return reply
    replies = [one["Answer"] for one in query.told if same_question(one["Question"], query.text)]
    text = next((answer for answer in replies if answer is not None), None)
    if text is None:
        ask = {"Key": f"limit:{result.run_id}", "Question": query.text, "Kind": "question"}
        return replace(reply, answer=[], asks=[ask])
    if not text.strip():
        return replace(reply, think=[*reply.think, f"person declined: {query.text}"])
    return _with_answer(query, result, reply, text)


def _with_answer(
    query: EngineQuery, result: SearchResult, reply: EngineAnswer, text: str, title: str = A_PERSON
) -> EngineAnswer:
    source = {"Node": None, "Title": title, "Quote": text, "Path": None}
    return replace(
        reply,
        answer=[*(reply.answer if result.answer else ()), *text.strip().split("\n\n")],
        think=[*reply.think, f"person answered: {query.text}"],
        sources=[*reply.sources, source],
        ended="answered",
        ending=Ending("answered"),
    )


def same_question(one: str, other: str) -> bool:
    """Say whether two questions are the same but for capitals, blanks and how they end.

    Example:
        >>> same_question("Who pays  the lamps?", "who pays the lamps")
        True
    """
    return _plain(one) == _plain(other)


def _plain(question: str) -> str:
    return " ".join(question.split()).casefold().rstrip(" ?.!")
