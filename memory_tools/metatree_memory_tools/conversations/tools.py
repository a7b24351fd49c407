"""The tools of conversations: turns around a turn, by speaker, by date; facts that are remembered from a turn."""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import blake2b
from typing import Annotated

from pydantic import Field

from metatree.errors import UserError
from metatree.node import Node
from metatree.tools.tool import ToolGroup, tool
from metatree.trees.tree import Tree
from metatree_memory_tools.conversations._dates import iso, long_date
from metatree_memory_tools.text.descriptions import shorten

KINDS = ("turn", "session", "conversation")
_MOST_SEEN = 100_000
_DAY = re.compile(r"\d{4}(?:-\d\d){0,2}$")


@tool(kind="exploratory", title="turns before and after", kinds=("turn",), reuse="run")
def turns_around(
    node: Node,
    tree: Tree,
    before: Annotated[int, Field(ge=0, le=50)] = 5,
    after: Annotated[int, Field(ge=0, le=50)] = 5,
) -> str:
    """Read what was said just before and after this turn: the question it answers, the reply that it got."""
    parent = tree.parent(node)
    turns = [child.id for child in tree.children(parent or tree.root) if child.kind == "turn"]
    at = turns.index(node.id)
    shown = turns[max(0, at - before) : at + after + 1]
    answered = str(node.attributes.get("reply_to") or "")
    if answered and answered not in shown and answered in tree:
        shown = [answered, *shown]
    return "\n".join(text for _, _, text in tree.texts(shown))


@tool(kind="exploratory", title="turns of one speaker", kinds=KINDS, reuse="run")
def turns_by_speaker(
    node: Node,
    tree: Tree,
    speaker: Annotated[str, Field(description="Name of the person, or part of it.")],
    words: Annotated[str, Field(description="Only turns with one of these words; empty for all.")] = "",
    limit: Annotated[int, Field(ge=1, le=200)] = 40,
) -> str:
    """List what one person said in this conversation or session, all of it or what has certain words."""
    wanted = speaker.casefold().strip()
    if not wanted:
        raise UserError("give the name of a speaker")
    turns = [
        turn
        for turn in _turns(tree, node)
        if wanted in str(turn.attributes.get("speaker", turn.title)).casefold()
    ]
    if not turns:
        known = dict.fromkeys(str(turn.attributes.get("speaker", turn.title)) for turn in _turns(tree, node))
        raise UserError(f"{speaker!r} says nothing here; the speakers are {', '.join(list(known)[:20])}")
    terms = [word.casefold() for word in re.findall(r"\w+", words)]
    texts = (text for _, _, text in tree.texts(turn.id for turn in turns))
    return _listed(
        (text for text in texts if not terms or any(word in text.casefold() for word in terms)), limit
    )


@tool(kind="exploratory", title="turns of a day or a time", kinds=KINDS, reuse="run")
def turns_by_date(
    node: Node,
    tree: Tree,
    date: Annotated[
        str,
        Field(description="A year, month or day: 2023, 2023-05, 2023-05-08; or the first of several days."),
    ],
    until: Annotated[str, Field(description="The last day; empty for the date alone.")] = "",
    limit: Annotated[int, Field(ge=1, le=200)] = 60,
) -> str:
    """List what was said on a date, in a month or between two dates, in this conversation or session."""
    first, last = _span(date, until)
    turns = [turn for turn in _turns(tree, node) if first <= str(turn.attributes.get("at", ""))[:10] <= last]
    if not turns:
        times = sorted(at[:10] for turn in _turns(tree, node) if (at := str(turn.attributes.get("at", ""))))
        if not times:
            raise UserError("no turn here has a date")
        raise UserError(f"nothing was said then; there are turns from {times[0]} to {times[-1]}")
    return _listed((text for _, _, text in tree.texts(turn.id for turn in turns)), limit)


@tool(kind="interactive", title="remember a fact", kinds=KINDS)
def remember_fact(
    node: Node,
    tree: Tree,
    fact: Annotated[
        str, Field(description="The fact, in one sentence that can be understood by itself.", max_length=2000)
    ],
) -> Node:
    """Keep a fact that follows from this turn as a memory, with who said it and when.

    A file may name anybody as its speaker, so what a file says is not said by that person to this tree.
    """
    fact = " ".join(fact.split())
    if not fact:
        raise UserError("give the fact that is to be remembered")
    who = str(node.attributes.get("speaker", ""))
    at = str(node.attributes.get("at", ""))
    of_file = node.source is not None
    place = f" in {node.path or node.id}" if of_file else ""
    origin = f"said by {who}{place}" + (f" on {long_date(at)}" if at else "") if who else f"from {node.title}"
    quote = f"\n\n“{shorten(' '.join((node.content or '').split()), 500)}”" if node.kind == "turn" else ""
    said = {} if of_file else {"who": who, "at": at}
    provenance = {"from": node.id, **{name: value for name, value in said.items() if value}}
    return Node(
        f"{node.id}~fact-{blake2b(fact.encode('utf-8', 'replace'), digest_size=6).hexdigest()}",
        shorten(fact, 120),
        f"A fact, {origin}",
        f"{fact} ({origin}){quote}",
        "fact",
        provenance=provenance,
    )


def _turns(tree: Tree, node: Node) -> Iterator[Node]:
    """Yield the turns of the conversation that a node belongs to; of a session, those of the session."""
    top = node.id
    if node.kind == "turn":
        top = next(
            (each for each in tree.ancestors(node) if tree.get(each).kind in ("conversation", "file")),
            tree.parent(node) or tree.root,
        )
    for number, (_, each) in enumerate(tree.walk(top)):
        if number >= _MOST_SEEN:
            return
        if each.kind == "turn":
            yield each


def _span(date: str, until: str) -> tuple[str, str]:
    """Return the first and the last day that are meant, `9999` for an open end of a month or year."""
    first, last = _day(date), _day(until) if until.strip() else _day(date)
    if len(last) < 10:
        last = f"{last}-99" if len(last) == 7 else f"{last}-99-99"
    return first, last


def _day(text: str) -> str:
    text = text.strip()
    day = text if _DAY.match(text) else iso(text)[:10]
    if not day:
        raise UserError(f"{text!r} is no date: give one as in 2023-05-08")
    return day


def _listed(texts: Iterator[str], limit: int) -> str:
    lines: list[str] = []
    for text in texts:
        if len(lines) == limit:
            lines.append("… there is more")
            break
        lines.append(text)
    return "\n".join(lines)


CONVERSATION_TOOLS = ToolGroup(
    "conversation",
    "look around in the conversation",
    "Read the turns before and after, what one speaker or person said, what was said on a date or day; remember a fact",
    (turns_around, turns_by_speaker, turns_by_date, remember_fact),
)
"""The tool tree of conversations."""
