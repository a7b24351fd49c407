"""One query, answered by a search: what was said before goes in as context, its steps and sources come out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from metatree import Limits, Tree, aresume, asearch, load_run
from metatree.errors import UnknownRun
from metatree.result import SearchResult, TraceEntry

NOTHING = "No answer was found in this memory."
_TURNS = 10
_TURN_CHARS = 1_500


@dataclass(frozen=True, slots=True)
class Asked:
    """A query as an engine got it."""

    topic: str
    seq: int
    text: str
    modifiers: Mapping[str, Any]
    earlier: Sequence[Mapping[str, Any]] = ()
    """The queries of the topic with their answers, as the wire has them."""


@dataclass(frozen=True, slots=True)
class Said:
    """What an engine gives back."""

    answer: list[str]
    think: list[str]
    sources: list[dict[str, Any]]
    ended: str
    detail: str = ""


def run_id_of(asked: Asked) -> str:
    """Return the name of the run of a query, the same in every engine: one that takes over goes on where it ended."""
    return "query-" + sha256(f"{asked.topic}\0{asked.seq}\0{asked.text}".encode()).hexdigest()[:20]


async def answer_query(
    tree: Tree,
    asked: Asked,
    *,
    parts: Mapping[str, Any],
    limits: Limits | None = None,
    on_step: Callable[[dict[str, Any]], None] | None = None,
) -> Said:
    """Search a tree for the answer to a query; a run of it that was cut off goes on where it was.

    Args:
        tree: the memory.
        asked: the query.
        parts: router and reader and so on, as for `search`.
        limits: bounds of the run.
        on_step: called with each step, as JSON for those who watch.
    """

    def told(entry: TraceEntry) -> None:
        if on_step is not None and (step := step_of(tree, entry)):
            on_step(step)

    run_id, given = run_id_of(asked), {**parts, "on_event": told}
    try:
        known = load_run(run_id, tree=tree)
    except UnknownRun:
        start, context = _narrowed(tree, asked)
        result = await asearch(
            asked.text,
            tree=tree,
            start_node=start,
            context=context,
            run_id=run_id,
            limits=limits or Limits(),
            **given,
        )
    else:
        done = known.ended in ("answered", "exhausted")
        result = known if done else await aresume(run_id, tree=tree, limits=limits, **given)
    return said_of(tree, result)


def said_of(tree: Tree, result: SearchResult) -> Said:
    """Return a result in paragraphs, with the thinking of its search and where each answer comes from."""
    answer = [part.strip() for part in result.answer.split("\n\n") if part.strip()]
    sources = [
        {"Node": quote.node, "Title": quote.title, "Quote": quote.quote, "Path": _path(tree, quote.node)}
        for each in result.answers
        for quote in each.sources
    ]
    think = [step["Text"] for entry in result.trace if (step := step_of(tree, entry))]
    return Said(answer or [NOTHING], think[:500], sources, result.ended, result.detail)


def step_of(tree: Tree, entry: TraceEntry) -> dict[str, Any] | None:
    """Return one step of a search for people who watch, None for one that says nothing of its own."""
    title = _title(tree, entry.node)
    match entry.event:
        case "route":
            chosen = entry.data.get("choice")
            out = len(entry.data.get("unviable") or ())
            text = f"chose {_title(tree, chosen)}" if chosen else "chose nothing here"
            text += f" of {len(entry.data.get('offered') or ())}" + (f", ruled out {out}" if out else "")
            text += f": {entry.reason}" if entry.reason else ""
        case "read":
            found = len(entry.data.get("answers") or ())
            text = f"read {title}: " + (f"{found} answer{'s' * (found != 1)}" if found else "nothing of use")
        case "ask":
            text = f"asks first: {entry.reason}"
        case "tool" | "create" | "fallback" | "restart" | "second_look" | "person":
            text = f"{entry.event.replace('_', ' ')} {title}: {entry.reason}".replace(" : ", ": ")
        case _:
            return None
    return {
        "Event": entry.event,
        "Node": entry.node,
        "Choice": entry.data.get("choice"),
        "Text": text[:1_000],
    }


def _narrowed(tree: Tree, asked: Asked) -> tuple[str | None, str]:
    """Return where the search of a query starts, and what it is told besides.

    A `Category` or `Region` that is the title of one node near the root narrows the search to it; others are said.
    """
    said = []
    start: str | None = None
    for name in ("Category", "Region"):
        value = asked.modifiers.get(name)
        for wish in value if isinstance(value, list) else [value]:
            if not isinstance(wish, str) or not wish.strip():
                continue
            found = [
                node.id
                for depth, node in tree.walk(start or tree.root, depth=2)
                if depth and node.title.casefold() == wish.strip().casefold()
            ]
            if len(found) == 1:
                start = found[0]
            else:
                said.append(f"{name}: {wish.strip()[:200]}")
    if isinstance(wish := asked.modifiers.get("Instructions"), str) and wish.strip():
        said.append(f"Instructions of the asker's program: {wish.strip()[:_TURN_CHARS]}")
    turns = [one for one in asked.earlier if one.get("Seq", 0) < asked.seq and one.get("Answer")]
    for turn in turns[-_TURNS:]:
        said.append(
            f"Asked before: {turn['Query'][:_TURN_CHARS]}\nAnswered: {' '.join(turn['Answer'])[:_TURN_CHARS]}"
        )
    return start, "\n".join(said)


def _title(tree: Tree, node: str | None) -> str:
    found = tree.find(node) if node else None
    return found.title if found is not None else str(node or "")


def _path(tree: Tree, node: str) -> str | None:
    found = tree.find(node)
    return None if found is None else found.path
