"""Recommendations become memory: what people promote or correct is remembered in the tree of an engine, and what they
flag or correct counts less in searches for the same.

What a negative one names is told by where its words are: in a memory, a quote of the answer, a source, a text.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from metatree_routers import text_evidence

from metatree import Tree
from metatree._util.secret_text import masked
from metatree.errors import BrokenStore, MetatreeError, UserError
from metatree.notes.erasure import Said, forget_said
from metatree.notes.feedback import MAX_QUESTION, flag, flag_ids, flags, take_back
from metatree.notes.notes import known_text, mentions, remember
from metatree.trees.layer import Layer
from metatree_agents.service.database.identity import Earlier, Identity
from metatree_agents.service.database.schema import ADDRESS
from metatree_agents.service.engine._corrections import CORRECTED, keep_corrected
from metatree_agents.service.engine._origins import keep_origins
from metatree_agents.service.engine.client import ServiceClient, ServiceRefused, patiently
from metatree_agents.service.queue.recommendations import CORRECTION, NEGATIVE, PROMOTION

_FACT = "recommendations-from:"
_MADE: Final = "recommendation-flags:"
"""What a fact begins with that says which flags one recommendation of a service set."""
_MOST_NAMED: Final = 10
_LEAST_CHARS: Final = 12
"""A quote or fragment of fewer characters is in too many texts to say which is meant."""
_LOOKED_AT: Final = 20
_log = logging.getLogger("metatree.engine")

Turn = Mapping[str, Any]
"""A query of a thread with its answer, as the wire has it."""


async def learn(client: ServiceClient, tree: Tree, name: str = "") -> int:
    """Remember what was recommended since the last time; return how many recommendations came.

    Each is remembered once in a tree, whatever happens in between: the same text is one memory, the same flag one flag.
    One that no memory can be made of is left out, or it would keep all later ones away for ever.

    Args:
        name: of the tree at the service; empty where trees have no names.

    Raises:
        TransientError: the store is locked; the next call goes on with the same recommendation.
        BrokenStore: the store is damaged.
    """
    layer = Layer(tree.memory)
    fact, came = await _came(client, layer, name)
    for one in came:
        thread: list[Turn] = []
        if one["type"] in (*NEGATIVE, CORRECTION, PROMOTION):
            with suppress(ServiceRefused):  # the topic is gone; what it named may be in the tree all the same
                thread = await patiently(client, "GET", "get-topic-thread", Topic=one["topic"])
        try:
            await asyncio.to_thread(_take, tree, one, thread, _MADE + fact.removeprefix(_FACT) + ":")
        except BrokenStore:
            raise
        except UserError as exc:
            _log.warning("recommendation %s is left out: %s", one["number"], exc)
        with tree.memory.transaction():
            layer.set_fact(fact, one["number"])
    return len(came)


async def _came(client: ServiceClient, layer: Layer, tree: str) -> tuple[str, list[dict[str, Any]]]:
    """Return what was recommended that a tree has not learned yet, and the fact that says up to where it has.

    The name of the database is asked for once; the service refuses when it has another one by now.
    """
    asked_now = client.identity is None
    named = client.identity = client.identity or await _identity(client)
    fact, after = _FACT + client.url, 0
    of: dict[str, str] = {"Tree": tree} if tree else {}
    if named.id:
        names = (named.id, *(one.id for one in named.before if one.id != ADDRESS))
        facts = {ADDRESS: fact, **{name: _FACT + name for name in names}}
        known = {name: int(value) for name, its in facts.items() if (value := layer.fact(its)) is not None}
        fact, after, of = _FACT + named.id, named.position(known), {**of, "Of": named.id}
    else:
        after = int(layer.fact(fact) or 0)
    try:
        return fact, await patiently(client, "GET", "get-recommendations", After=after, **of)
    except ServiceRefused as exc:
        client.identity = None
        if exc.status != 409 or asked_now:
            raise
    return await _came(client, layer, tree)


async def _identity(client: ServiceClient) -> Identity:
    """Return what the database of a service is called; no name for a service that does not say it."""
    try:
        reply = await patiently(client, "GET", "get-identity")
    except ServiceRefused as exc:
        if exc.status != 404:
            raise
        return Identity("")
    return Identity(reply["Id"], tuple(Earlier(one["Id"], one["Until"]) for one in reply["Before"]))


def _take(tree: Tree, one: Mapping[str, Any], thread: Sequence[Turn], made_by: str) -> None:
    """Have a tree learn a recommendation.

    Args:
        made_by: what the facts begin with that say which flags each recommendation of this service set.
    """
    if one.get("withdraws") is not None:
        _undo(tree, {**one, **(one.get("withdrawn") or {})}, made_by)
        return
    if one["type"] in NEGATIVE:
        _flag(tree, one, named(tree, one, thread), "off topic", made_by)
        return
    if one["type"] != CORRECTION:
        remembered = _remember(tree, one, one["fragment"], one["comment"])
        if remembered is not None and one["type"] == PROMOTION:
            said = [turn for turn in thread if _contains(turn, one["fragment"])]
            keep_origins(tree, remembered, [each for turn in said[-1:] for each in turn.get("Sources") or ()])
        return
    # A paragraph of the answer is what is wrong, and the comment says what is right; any other text is what is right,
    # and the answer that was given is wrong.
    wrong = next((turn for turn in thread if _contains(turn, one["fragment"])), None)
    same = [turn for turn in thread if _same(turn["Query"], one["query"])]
    turns = same if wrong is None else [wrong]
    texts = (one["comment"],) if wrong is not None else (one["fragment"], one["comment"])
    remembered = _remember(tree, one, *texts)
    quoted = [node for turn in turns for node in _sources(turn)]
    nodes = quoted if wrong is None else named(tree, one, turns)
    flagged = [node for node in nodes if node != remembered]
    _flag(tree, one, flagged, CORRECTED, made_by)
    if remembered is not None:
        keep_corrected(tree, remembered, _corrected_words(one, turns, flagged))


def _corrected_words(
    one: Mapping[str, str], turns: Sequence[Turn], flagged: Sequence[str]
) -> list[tuple[str, str]]:
    """Return which words of which nodes a correction says are wrong: those of the fragment, or all that were quoted."""
    words = []
    for turn in turns:
        for each in turn.get("Sources") or ():
            if (node := each.get("Node")) in flagged and (quote := each.get("Quote")):
                words.append((node, one["fragment"] if _pieces_in(one["fragment"], quote) else quote))
    return words


def named(tree: Tree, one: Mapping[str, str], thread: Sequence[Turn]) -> list[str]:
    """Return the nodes that a fragment of an answer, or of a text, comes from.

    The memory that says it; the sources that it quotes, or all of the answer that says it; else the nodes that say it
    word for word.
    """
    fragment, ids = one["fragment"], list[str]()
    memory = known_text(tree, fragment)
    if memory is not None:
        ids.append(memory.id)
    for turn in thread:
        if _contains(turn, fragment):
            sources = _sources(turn)
            quotes = [(each.get("Node"), each.get("Quote") or "") for each in turn.get("Sources") or ()]
            quoted = [node for node, quote in quotes if node and _meet(quote, fragment)]
            ids += quoted or [node for node in sources if _says(tree, node, fragment)] or sources
    if not ids and len(_plain(fragment)) >= _LEAST_CHARS:
        near = text_evidence(tree).rank([fragment], k=_LOOKED_AT)
        ids = [scored.node_id for scored in near if _says(tree, scored.node_id, fragment)]
    return [node for node in dict.fromkeys(ids) if node in tree][:_MOST_NAMED]


def _flag(tree: Tree, one: Mapping[str, Any], nodes: Sequence[str], why: str, made_by: str) -> None:
    """Flag some nodes, and keep which flags this recommendation stands behind, with others of the same person."""
    layer = Layer(tree.memory)
    before, known = set(flag_ids(tree.memory)), _stood_behind(layer, made_by)
    made = [
        flag(tree, node, one["query"], why=why, who=one["on_behalf_of"], source=_source(one)).id
        for node in nodes
        if node in tree
    ]
    # One that was there and that no recommendation set is somebody's own: it stays whatever is taken back.
    kept = [each for each in made if each not in before or each in known]
    with tree.memory.transaction():
        layer.set_fact(f"{made_by}{one['number']}", kept)


def _stood_behind(layer: Layer, made_by: str, *, but: object = None) -> set[str]:
    """Return the flags that recommendations stand behind."""
    facts = layer.facts(made_by)
    return {each for key, ids in facts.items() if key != f"{made_by}{but}" for each in ids}


def _take_back_flags(tree: Tree, one: Mapping[str, Any], made_by: str) -> None:
    """Take back the flags that a recommendation set and that no other one stands behind."""
    layer, number = Layer(tree.memory), one.get("withdraws")
    ids = layer.fact(f"{made_by}{number}")
    if ids is None:  # learned by an earlier version, which did not keep them
        question = " ".join(one["query"].split())[:MAX_QUESTION]
        said = (one["on_behalf_of"], _source(one), question)
        ids = [each.id for each in flags(tree.memory) if (each.who, each.source, each.question) == said]
    others = _stood_behind(layer, made_by, but=number)
    for each in ids:
        if each not in others:
            with suppress(UserError):  # somebody has taken it back already
                take_back(tree, each)
    with tree.memory.transaction():
        layer.drop_fact(f"{made_by}{number}")


def _undo(tree: Tree, one: Mapping[str, Any], made_by: str) -> None:
    """Forget what a recommendation made a tree remember, once, and take back its flags; what others said stays."""
    who, source = one["on_behalf_of"], _source(one)
    for texts in ((one["fragment"], one["comment"]), (one["comment"],)):
        node = known_text(tree, note) if (note := _note(texts)).strip() else None
        said = (
            [each for each in mentions(node) if each["who"] == who and _is_from(each, source)] if node else []
        )
        if said:
            at = said[-1]["at"]
            forget_said(tree, Said(who=who, source=said[-1]["source"], since=at, until=at))
            break
    _take_back_flags(tree, one, made_by)


def _source(one: Mapping[str, str]) -> str:
    return f"{one['type']}, topic {one['topic']}"


def _is_from(mention: Mapping[str, Any], source: str) -> bool:
    """Say whether somebody said a memory there; a long name is kept cut."""
    kept = mention.get("source") or ""
    plain = " ".join(source.split())
    return bool(kept) and (kept == plain or (kept.endswith("…") and plain.startswith(kept[:-1])))


def _note(texts: Sequence[str]) -> str:
    return "\n\n".join(text for text in texts if text.strip())[:190_000]


def _remember(tree: Tree, one: Mapping[str, str], *texts: str) -> str | None:
    note = _note(texts)
    if not note.strip():
        return None
    made = remember(
        tree,
        note,
        title=" ".join(masked(one["query"])[0].split())[:100] or None,
        source=_source(one),
        who=one["on_behalf_of"],
    )
    return made.node.id


def _sources(turn: Turn) -> list[str]:
    return [each["Node"] for each in turn.get("Sources") or () if each.get("Node")]


def _contains(turn: Turn, fragment: str) -> bool:
    """Say whether an answer says a text: it is in one of its paragraphs, or in all of them together."""
    answer = turn.get("Answer") or []
    return len(_plain(fragment)) >= _LEAST_CHARS and _plain(fragment) in _plain(" ".join(answer))


def _meet(quote: str, fragment: str) -> bool:
    if _pieces_in(fragment, quote):
        return True
    return len(_plain(quote)) >= _LEAST_CHARS and _plain(quote) in _plain(fragment)


def _pieces_in(fragment: str, text: str) -> bool:
    """Say whether a text has a fragment, or all that is between the places where an answer left something out."""
    pieces = [plain for piece in fragment.split("…") if (plain := _plain(piece))]
    return len("".join(pieces)) >= _LEAST_CHARS and all(piece in _plain(text) for piece in pieces)


def _says(tree: Tree, node: str, fragment: str) -> bool:
    try:
        return _pieces_in(fragment, tree.content(node))
    except (MetatreeError, OSError):
        return False


def _same(one: str, other: str) -> bool:
    return _plain(one) == _plain(other)


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()
