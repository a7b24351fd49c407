"""What the page shows of one question: its heading, its answer with sources, the way of its search, what it asks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from metatree.trees.masking import is_code
from metatree_agents.service.accounts.tree_rights import NamedTree
from metatree_agents.service.http.bodies import stamp
from metatree_agents.service.http.tree_access import may_read, named_trees
from metatree_agents.service.http.wait_for import has_engines, questions_before
from metatree_agents.service.openai.answer_segments import numbers_of, quoted_sources, quotes_of
from metatree_agents.service.openai.closest_passages import (
    closest_of,
    place_of,
    said_by_of,
    said_in_words,
    said_of_open,
    shown_quote,
)
from metatree_agents.service.queue.human_input import forms
from metatree_agents.service.queue.models import STOPPED, STOPPED_WITH
from metatree_agents.service.queue.queue import Query
from metatree_agents.service.queue.recommendations import MISSING
from metatree_agents.service.queue.thanks import WELCOME
from metatree_agents.service.settings import Service
from metatree_agents.service.web._search_path import PathNode, search_path
from metatree_agents.service.web.sessions import Session

_QUOTE_LINES = 6
_QUOTE_CHARS = 400
_MOST_NEW: Final = 0.1
"""Of the words of a quote of code, those that the answer has not: it is shown without the markup of comments."""


@dataclass(frozen=True, slots=True)
class SaidBy:
    """Who said a memory, for people."""

    text: str
    """Empty for what is in the sources."""
    topic: str | None = None
    """Where they said it; None where there is none, or it is not the reader's to see."""
    title: str = ""
    where: str = "in"
    """What stands before the title."""
    gone: bool = False
    """Whether it was taken back, so that engines forget it."""


async def said_by_for(service: Service, session: Session, text: str) -> SaidBy:
    """Return who said a memory, with the topic by its title where the reader may see that."""
    told = said_in_words(text)
    said, gone = told.text, False
    if not told.topic:
        return SaidBy(said)
    if told.who:
        made = await service.recommendations.made_from([told.topic])
        if made.get((told.who, told.kind, told.topic)) is False:
            said += ", taken back since"
            gone = told.once  # of what was said more often the rest stands
    place = await service.queue.place(told.topic)
    seen = place is not None and (service.queue.shared or session.sees_all or place.owner == session.name)
    if place is None or not seen or not await may_read(service, session.caller, place):
        return SaidBy(said, gone=gone)
    first = await service.queue.query(told.topic, 1)
    named = await service.queue.title(told.topic)
    title = named or (headline(first.text)[0] if first else told.topic)
    return SaidBy(said, told.topic, title, "in" if named else "to the question", gone)


async def question_of(service: Service, session: Session, query: Query) -> dict[str, Any]:
    """Return what the template of a question shows."""
    walk, latest = await search_path_so_far(service, query.topic, query.seq)
    head, rest = headline(query.text)
    sources, closest = _sources(query, await _told_before(service, query)), closest_of(query)
    said = {row["said_by"] for row in sources} | {each.said_by for its in closest.values() for each in its}
    holder = await service.queue.holder(query.topic) if query.status == "Pending" else None
    return {
        "query": query,
        "head": head,
        "rest": rest,
        "walk": walk,
        "no_engine": await _no_engine(service, query) if query.status == "Open" else "",
        "titles": {tree.name: tree.title for tree in await service.tree_rights.all()},
        "holder": holder,
        "thanks": query.answer == [WELCOME],
        "before": await questions_before(service, query) if query.status == "Open" else (0, 0),
        "looked": list(dict.fromkeys(each.title for each in _all(walk) if each.read and not each.useful)),
        "latest": latest,
        "quotes": quotes_of(query.sources),
        "numbers": numbers_of(query.sources),
        "pages": {at for at, each in enumerate(quoted_sources(query.sources)) if each.get("Pages")},
        "verbatim": {
            at
            for at, each in enumerate(quoted_sources(query.sources))
            if each.get("SaidBy") or not each.get("Node")
        },
        "sources": sources,
        "nearest": next((each.tree for its in closest.values() for each in its if each.tree), ""),
        "remember": await _trees_of_answer(service, session, query),
        "said_by": {text: await said_by_for(service, session, text) for text in sorted(said)},
        "answered": query.ending.answered,
        "not_said": _not_said(query),
        "closest": closest,
        "for_all": await _for_all(service, query) if query.status == "Waiting" else False,
        "forms": forms(query.topic, query.seq, query.asked, admin=session.role == "admin")
        if query.status == "Waiting"
        else [],
        "said_of_it": await service.recommendations.about(query.topic, query.text)
        if query.answer is not None
        else [],
        "trees": [] if query.ending.answered else await _trees_to_tell(service, session, query.topic),
        # What the answer says already stands there once.
        "told": [ask for ask in query.asked if ask.answer is not None and not _answers(query, ask.answer)],
        "repeated": {ask.answer for ask in query.asked if ask.answer and _answers(query, ask.answer)},
    }


async def _no_engine(service: Service, query: Query) -> str:
    """Return why nobody searches for an answer; empty where an engine is connected that may."""
    if await has_engines(service, query):
        return ""
    place = await service.queue.place(query.topic)
    kept = "The question is kept, and is answered as soon as one is."
    if place is None or not await service.admin.has_engines(waiting=len(service.waiting.engines)):
        return f"Nobody is searching: no engine is connected. {kept}"
    titles = [tree.title for tree in await service.tree_rights.all() if tree.bit & place.trees]
    return f"Nobody is searching: no engine that has {' and '.join(titles)} is connected. {kept}"


async def _for_all(service: Service, query: Query) -> bool:
    """Whether what a person answers to the search is kept for others too."""
    place = await service.queue.place(query.topic)
    return service.human_input.shares(place.trees) if place is not None else False


async def _trees_to_tell(service: Service, session: Session, topic: str) -> list[NamedTree]:
    """Return the trees of a topic, where they have names, that a person may tell what they know."""
    place = await service.queue.place(topic)
    may = await named_trees(service, session.caller)
    return [tree for tree in may if place is not None and tree.bit & place.trees]


async def _trees_of_answer(service: Service, session: Session, query: Query) -> list[NamedTree]:
    """Return the trees of which one has to be chosen, where an answer from several is to be remembered."""
    names = {str(source.get("Tree") or "") for source in query.sources or ()}
    if not query.ending.answered or len(names) < 2:
        return []
    return [tree for tree in await named_trees(service, session.caller) if tree.name in names]


def _answers(query: Query, said: str) -> bool:
    """Whether what a person said to the search is the answer, or a part of it."""
    answer = " ".join(_words("\n".join(query.answer or ())))
    return query.ending.answered and bool(said.strip()) and " ".join(_words(said)) in answer


def _not_said(query: Query) -> str | None:
    """Return what is said of a question that has no answer; None for one that has."""
    if query.status == "Stopped":
        return STOPPED_WITH if query.answer else STOPPED
    return None if query.ending.answered else said_of_open(query)


async def _told_before(service: Service, query: Query) -> dict[str, str]:
    """Return who said what an answer quotes of its asker, who told it an earlier search, and where; by the quotes."""
    found = dict[str, str]()
    for source in query.sources or ():
        quote = str(source.get("Quote") or "").strip()
        if source.get("Node") is None and quote and not _who_said(query, quote):
            told = await service.recommendations.told_by(query.by, quote)
            if told is not None:
                found[quote] = f"said by {query.by} on {stamp(told[1])[:10]} ({MISSING}, topic {told[0]})"
    return found


def _sources(query: Query, told: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return what an answer quotes, in the order of the numbers; where nothing is quoted, each place once.

    Args:
        told: who said what is quoted of the asker, by the quotes.
    """
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for source in quoted_sources(query.sources) or query.sources or ():
        node = source.get("Node")
        if isinstance(node, str) or source.get("Quote"):
            quote = shown_quote(source, lines=_QUOTE_LINES, chars=_QUOTE_CHARS) if source.get("Quote") else ""
            title, place = (
                str(source.get("Title") or node or ""),
                place_of(source) if source.get("Path") and not str(node).startswith("memory:") else "",
            )
            if node is None:  # a person said it to the search
                title = _who_said(query, str(source["Quote"])) or title
            number = source.get("Number") or 0
            said_by = said_by_of(source)
            if node is None and (earlier := told.get(str(source["Quote"]).strip())):
                title, said_by = f"said by {query.by}", earlier
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
                    "pdf_page": _pdf_page(source),
                    "whole": _is_shown(source, query),
                },
            )
    return list(rows.values())


def _who_said(query: Query, quote: str) -> str:
    """Return who answered the search with these words; empty where nobody of the query did."""
    said = _words(quote)
    return next((f"said by {ask.by}" for ask in query.asked if ask.by and _words(ask.answer) == said), "")


def _pdf_page(source: Mapping[str, Any]) -> int | None:
    """Return the page of a PDF that a source quotes; None for one of another file."""
    match source.get("Pages"):
        case [int(first), int()] if str(source.get("Path") or "").lower().endswith(".pdf"):
            return first
    return None


def _is_shown(source: Mapping[str, Any], query: Query) -> bool:
    """Whether the answer is the quote, or has the lines of code that it is of, so that it need not stand twice."""
    answer = "\n".join(query.answer or ())
    if is_code(str(source.get("Path") or "")):
        said = set(re.findall(r"\w+", str(source.get("Quote") or "")))
        return len(said - set(re.findall(r"\w+", answer))) <= _MOST_NEW * len(said)
    return _words(source.get("Quote")) == _words(answer)


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
