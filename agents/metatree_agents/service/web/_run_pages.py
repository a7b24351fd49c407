"""What a run did: each step with what was offered, chosen and ruled out, why, and what it cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from fastapi import APIRouter, Request
from fastapi.responses import Response

from metatree import SearchResult, Tree, load_run, runs
from metatree.errors import UnknownRun
from metatree.result import TraceEntry
from metatree_agents.service.engine.answering import run_id_of, step_of
from metatree_agents.service.engine.router_state import without_error
from metatree_agents.service.queue.models import EngineQuery
from metatree_agents.service.web._browse import titles
from metatree_agents.service.web._guard import Entered, Here, Id, Number
from metatree_agents.service.web._memory_pages import reading, tree_named, trees_here
from metatree_agents.service.web._replies import PageError, page
from metatree_agents.service.web._search_path import search_path
from metatree_agents.service.web._thread_pages import question_in

router = APIRouter()
RUNS: Final = 200
STEPS: Final = 2_000


@router.get("/run")
async def run_page(
    request: Request,
    session: Entered,
    service: Here,
    topic: str = "",
    seq: Number = 0,
    name: Id = "",
    tree: str = "",
) -> Response:
    """Show the trace of a run: that of a question, or one by its name for those who see all topics."""
    if topic:
        query = await question_in(service, session, topic, seq)
        name = run_id_of(EngineQuery(topic, seq, query.text, query.modifiers, run=query.run))
    elif not session.sees_all:
        raise PageError(403, "Runs by their names are for administrators: open this one from its question.")
    others: list[str] = []
    if topic:
        place = await service.queue.place(topic)
        others = await service.tree_rights.names_in(place.trees) if place is not None else []
        tree = tree or (others[0] if others else "")
    named = await tree_named(request, session, tree)
    try:
        view = await reading(request, named, lambda opened: _run_view(opened, name, session.role == "admin"))
    except UnknownRun:
        raise PageError(
            404, "The trace of this run is not in this server's memory: it is with the engine that answered."
        ) from None
    return page(
        request,
        "run.html",
        session=session,
        topic=topic,
        seq=seq,
        name=name,
        tree=named,
        others=[each for each in others if each != named],
        **view,
    )


@router.get("/runs")
async def runs_page(request: Request, session: Entered, tree: str = "") -> Response:
    """List the runs in the journal of the memory, for those who see all topics."""
    if not session.sees_all:
        raise PageError(403, "The list of all runs is for administrators.")
    named = await tree_named(request, session, tree)
    listed = await reading(request, named, lambda opened: runs(tree=opened)[:RUNS])
    rows = [
        {
            "id": each.run_id,
            "questions": [str(text) for text in (each.given or {}).get("questions", ())],
            "ended": each.ended or "unfinished",
            "at": each.updated_at,
        }
        for each in listed
    ]
    trees = await trees_here(request, session)
    return page(request, "runs.html", session=session, runs=rows, tree=named, trees=trees)


def _run_view(tree: Tree, name: str, errors: bool) -> dict[str, Any]:
    """Return what the template of a run shows.

    Args:
        errors: whether those of parts are shown, which may name servers of the operator.
    """
    result = load_run(name, tree=tree)
    entries = [entry for number, entry in enumerate(result.trace) if not _follows(result.trace, number)]
    steps = [(number, step_of(tree, entry, ruled_out=None)) for number, entry in enumerate(result.trace, 1)]
    return {
        "result": result,
        "detail": result.detail if errors else _detail_for_askers(result),
        "walk": search_path([(number, step) for number, step in steps if step is not None]),
        "questions": _questions(result),
        "steps": [_step_view(tree, entry, errors) for entry in entries[:STEPS]],
        "more": max(0, len(entries) - STEPS),
        "used": _usage_lines(result),
    }


def _follows(trace: Sequence[TraceEntry], number: int) -> bool:
    """Say whether an entry only carries out the one before it of the same step, which tells it already."""
    entry = trace[number]
    if entry.event not in ("enter", "mark"):
        return False
    while number and trace[number].event in ("enter", "mark"):
        number -= 1
    before = trace[number]
    return (before.step, before.frame) == (entry.step, entry.frame) and before.event in (
        "route",
        "read",
        "collect",
    )


def _questions(result: SearchResult) -> list[str]:
    for entry in result.trace:
        if entry.event == "frame":
            return [str(text) for text in entry.data.get("questions") or ()]
    return []


_SAID: Final = {
    "frame": "asked",
    "route": "decided at",
    "enter": "went into",
    "up": "went back up to",
    "ask": "has to know first",
    "end": "ended",
    "compose": "put the answers together",
}


def _detail_for_askers(result: SearchResult) -> str:
    """Return which limit a run reached, or whom it waits for; all else that a detail says is of parts that failed."""
    return result.detail.partition(";")[0] if result.ended in ("limit", "waiting") else ""


def _step_view(tree: Tree, entry: TraceEntry, errors: bool) -> dict[str, Any]:
    """Return one entry of a trace with everything that it says, and titles for ids."""
    data = entry.data
    offered, unviable = list(data.get("offered") or ()), dict(data.get("unviable") or {})
    known = titles(tree, [*offered, *([entry.node] if entry.node else [])])
    options = [
        {
            "node": node,
            "title": known.get(node, node),
            "mark": "chosen" if node == data.get("choice") else "out" if node in unviable else "open",
            "why": entry.reason if node == data.get("choice") else str(unviable.get(node, "")),
        }
        for node in offered
    ]
    order = {"chosen": 0, "open": 1, "out": 2}
    options.sort(key=lambda option: order[str(option["mark"])])
    label = _SAID.get(entry.event, entry.event.replace("_", " "))
    if entry.event == "mark":
        label = "ruled out" if data.get("mark") == "unviable" else "done with"
    more = {"tool": data.get("tool"), "by": data.get("by") if data.get("by") != "router" else None}
    answers = [str(one.get("answer", "")) for one in data.get("answers") or () if isinstance(one, dict)]
    return {
        "step": entry.step,
        "frame": entry.frame,
        "said": label,
        "node": entry.node,
        "title": known.get(entry.node or "", entry.node or ""),
        "reason": entry.reason if errors else without_error(entry.reason),
        "options": options,
        "answers": answers,
        "more": {name: str(value) for name, value in more.items() if value},
        "questions": [str(text) for text in data.get("questions") or ()],
    }


def _usage_lines(result: SearchResult) -> list[tuple[str, str]]:
    """Return what a run used, in the words of people; what was not used is left out."""
    usage = result.usage
    rows: list[tuple[str, Any]] = [
        ("Decisions of the router", usage.router_calls),
        ("Nodes read", usage.reads),
        ("Calls of a model", usage.model_calls),
        ("Calls of tools", usage.tool_calls),
        ("Tokens read by the model", usage.tokens_in),
        ("Tokens from its cache", usage.tokens_cached),
        ("Tokens written by it", usage.tokens_out),
        ("Answers from a cache", usage.cache_hits),
        ("Failed attempts", usage.failed_attempts),
    ]
    lines = [(name, f"{value:,}") for name, value in rows if value]
    if usage.cost_usd is not None:
        lines.append(("Cost", f"{usage.cost_usd:.4f} USD"))
    lines.append(("Time at work", f"{usage.seconds:.2f} s"))
    return lines
