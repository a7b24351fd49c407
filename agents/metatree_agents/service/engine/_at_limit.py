"""A search that reached its limit asks the person who asked, as one that has looked everywhere does.

The limits are the kernel's, and a run that reached one stands still: nothing of it may go on, its fallbacks neither. So
the question is asked outside of the run, and what the person says is added to what the run found before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from metatree import ask_person
from metatree.result import SearchResult
from metatree_agents.service.queue.models import Asked, Said

A_PERSON: Final = "a person"


def with_person(asked: Asked, result: SearchResult, said: Said, parts: Mapping[str, Any]) -> Said:
    """Return what an engine gives back for a run: what it asks the person, or with what the person said to that.

    Args:
        asked: the query, with what a person was told and said.
        result: what its run came to.
        said: the same as an engine gives it back.
        parts: those of the search; `ask_person` among the fallbacks says whether a person may be asked.
    """
    if result.ended != "limit" or not result.open_questions or ask_person not in parts.get("fallbacks", ()):
        return said
    told = [one["Answer"] for one in asked.told if one["Question"] == asked.text]
    heard = next((answer for answer in told if answer is not None), None)
    if heard is None:
        ask = {"Key": f"limit:{result.run_id}", "Question": asked.text, "Kind": "question"}
        return replace(said, answer=[], asks=[ask])
    if not heard.strip():
        return replace(said, think=[*said.think, f"person declined: {asked.text}"])
    source = {"Node": None, "Title": A_PERSON, "Quote": heard, "Path": None}
    return replace(
        said,
        answer=[*(said.answer if result.answer else ()), *heard.strip().split("\n\n")],
        think=[*said.think, f"person answered: {asked.text}"],
        sources=[*said.sources, source],
        ended="answered",
    )
