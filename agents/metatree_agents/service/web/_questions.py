"""What the page shows of one question: its heading, its answer with sources, the way of its search, what it asks."""

from __future__ import annotations

import json
from typing import Any

from metatree_agents.service.openai.answer_segments import quotes_of
from metatree_agents.service.openai.closest_passages import closest_of, said_of_open
from metatree_agents.service.queue.human_input import forms
from metatree_agents.service.queue.queue import Query
from metatree_agents.service.settings import Service
from metatree_agents.service.web._search_path import PathNode, search_path
from metatree_agents.service.web.sessions import Session


async def question_of(service: Service, session: Session, query: Query) -> dict[str, Any]:
    """Return what the template of a question shows."""
    walk, latest = await search_path_so_far(service, query.topic, query.seq)
    head, rest = headline(query.text)
    return {
        "query": query,
        "head": head,
        "rest": rest,
        "walk": walk,
        "latest": latest,
        "quotes": quotes_of(query.sources),
        "sources": _sources(query),
        "answered": query.ending.answered,
        "not_said": None if query.ending.answered else said_of_open(query),
        "closest": closest_of(query),
        "forms": forms(query.topic, query.seq, query.asked, admin=session.role == "admin"),
        "told": [ask for ask in query.asked if ask.answer is not None],
    }


def _sources(query: Query) -> list[dict[str, str]]:
    """Return the sources of an answer in the order of their numbers, each place once."""
    rows: dict[tuple[str, str], dict[str, str]] = {}
    for source in sorted(query.sources or (), key=lambda source: source.get("Number") or 0):
        node = source.get("Node")
        if isinstance(node, str):
            title, path = str(source.get("Title") or node), str(source.get("Path") or "")
            rows.setdefault(
                (node, where := _where(source)), {"node": node, "title": title, "path": path + where}
            )
    return list(rows.values())


def _where(source: dict[str, Any]) -> str:
    """Return the lines or pages of a source as they are put behind its path; '' when it has none."""
    for name, one, several in (("Lines", ", line ", ", lines "), ("Pages", ", page ", ", pages ")):
        match source.get(name):
            case [int(first), int(last)]:
                return f"{one}{first}" if first == last else f"{several}{first}–{last}"
    return ""


async def search_path_so_far(service: Service, topic: str, seq: int) -> tuple[list[PathNode], int]:
    """Return the path of the search for an answer, and the number of its latest step."""
    steps: list[tuple[int, Any]] = []
    while True:
        came = await service.progress.after(topic, seq, steps[-1][0] if steps else 0)
        steps += [(number, json.loads(data)) for number, data in came]
        if not came:
            break
    return search_path([step for step in steps if isinstance(step[1], dict)]), steps[-1][0] if steps else 0


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
