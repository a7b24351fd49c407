"""What the page shows of one question: its heading, its answer with sources, the way of its search, what it asks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from metatree_agents.service.http.wait_for import has_engines
from metatree_agents.service.openai.answer_segments import numbers_of, quoted_sources, quotes_of
from metatree_agents.service.openai.closest_passages import (
    closest_of,
    place_of,
    said_by_of,
    said_of_open,
    shown_quote,
)
from metatree_agents.service.queue.human_input import forms
from metatree_agents.service.queue.models import STOPPED, STOPPED_WITH
from metatree_agents.service.queue.queue import Query
from metatree_agents.service.settings import Service
from metatree_agents.service.web._search_path import PathNode, search_path
from metatree_agents.service.web.sessions import Session

_QUOTE_LINES = 6
_QUOTE_CHARS = 400


async def question_of(service: Service, session: Session, query: Query) -> dict[str, Any]:
    """Return what the template of a question shows."""
    walk, latest = await search_path_so_far(service, query.topic, query.seq)
    head, rest = headline(query.text)
    holder = await service.queue.holder(query.topic) if query.status == "Pending" else None
    return {
        "query": query,
        "head": head,
        "rest": rest,
        "walk": walk,
        "no_engine": query.status == "Open" and not await has_engines(service, query),
        "holder": holder,
        "looked": list(dict.fromkeys(each.title for each in _all(walk) if each.read and not each.useful)),
        "latest": latest,
        "quotes": quotes_of(query.sources),
        "numbers": numbers_of(query.sources),
        "sources": _sources(query),
        "answered": query.ending.answered,
        "not_said": _not_said(query),
        "closest": closest_of(query),
        "forms": forms(query.topic, query.seq, query.asked, admin=session.role == "admin")
        if query.status == "Waiting"
        else [],
        "said_of_it": await service.recommendations.about(query.topic, query.text)
        if query.answer is not None
        else [],
        "told": [ask for ask in query.asked if ask.answer is not None],
    }


def _not_said(query: Query) -> str | None:
    """Return what is said of a question that has no answer; None for one that has."""
    if query.status == "Stopped":
        return STOPPED_WITH if query.answer else STOPPED
    return None if query.ending.answered else said_of_open(query)


def _sources(query: Query) -> list[dict[str, Any]]:
    """Return what an answer quotes, in the order of the numbers; where nothing is quoted, each place once."""
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for source in quoted_sources(query.sources) or query.sources or ():
        node = source.get("Node")
        if isinstance(node, str):
            quote = shown_quote(source, lines=_QUOTE_LINES, chars=_QUOTE_CHARS) if source.get("Quote") else ""
            title, place = str(source.get("Title") or node), place_of(source) if source.get("Path") else ""
            number = source.get("Number") or 0
            said_by = said_by_of(source)
            rows.setdefault(
                (node, place, quote, number, said_by, source.get("Tree")),
                {
                    "tree": source.get("Tree"),
                    "node": node,
                    "title": title,
                    "path": place,
                    "quote": quote,
                    "number": number,
                    "said_by": said_by,
                    "whole": _words(source.get("Quote")) == _words("\n".join(query.answer or ())),
                },
            )
    return list(rows.values())


def _words(text: Any) -> list[str]:
    return str(text or "").split()


def _all(walk: list[PathNode]) -> Iterator[PathNode]:
    """Yield the places of a search, each before those that were reached from it."""
    for place in walk:
        yield place
        yield from _all(place.below)


async def search_path_so_far(service: Service, topic: str, seq: int) -> tuple[list[PathNode], int]:
    """Return the path of the search for an answer, and the number of its latest step."""
    steps: list[tuple[int, Any]] = []
    while True:
        came = await service.progress.after(topic, seq, steps[-1][0] if steps else 0)
        steps += [(number, json.loads(data)) for number, data in came]
        if not came:
            break
    of: dict[str | None, list[tuple[int, Any]]] = {}
    for number, step in steps:
        if isinstance(step, dict):  # each tree has a walk of its own
            name = step.get("Tree")
            of.setdefault(name if isinstance(name, str) else None, []).append((number, step))
    walk = [place for name, its in of.items() for place in search_path(its, tree=name)]
    return walk, steps[-1][0] if steps else 0


def headline(text: str) -> tuple[str, str]:
    """Return what of a question is its heading, and the rest: questions may be whole reports.

    Example:
        >>> headline("It fails\\n\\nTraceback …")
        ('It fails', 'Traceback …')
    """
    head, _, rest = text.strip().partition("\n")
    if len(head) > 240:
        cut = head.rfind(" ", 0, 200)
        cut = cut if cut > 100 else 200
        return head[:cut] + " …", f"… {head[cut:].strip()}\n{rest}".strip()
    return head.strip(), rest.strip()
