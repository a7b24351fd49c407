"""Sets of others: conversations (LoCoMo, BEAM), papers (QASPER), company filings (FinanceBench).

A claim is right when it quotes a node that is gold, or holds the words of the set's answer. Adversarial questions of
LoCoMo and abstention questions of BEAM are answered by nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks.answers.dataset import Nodes, Question, QuestionSet
from benchmarks.retrieval.dataset import Options, rows
from benchmarks.retrieval.documents import FINANCEBENCH, QASPER
from benchmarks.retrieval.memory import LOCOMO
from metatree import Node


def locomo(data: Path) -> QuestionSet:
    """Read the conversations, each a source of its own, and all their questions."""
    questions = [
        _question(row, row["conv"], row["category"], answerable=row["category"] != "adversarial")
        for row in rows(data / "memory" / "locomo.jsonl")
    ]
    return QuestionSet("locomo", questions, _parts(LOCOMO.read(Options(data)).nodes))


def beam(data: Path) -> QuestionSet:
    """Read the conversations with a model, each a source of its own: sessions with their messages."""
    nodes: dict[str, list[tuple[Node, str]]] = {}
    sessions: set[str] = set()
    for turn in rows(data / "memory" / "beam_turns.jsonl.gz"):
        session = f"{turn['conv']}/S{turn['session']}"
        held = nodes.setdefault(turn["conv"], [])
        if session not in sessions:
            sessions.add(session)
            title = f"Session {turn['session']}, {turn['date']}"
            held.append((Node(id=session, title=title, kind="session"), "."))
        node = Node(
            id=turn["id"],
            title=turn["speaker"],
            content=f"{turn['speaker']}: {turn['text']}",
            kind="turn",
            attributes={"speaker": turn["speaker"], "at": _iso(turn["date"])},
        )
        held.append((node, session))
    questions = [
        _question(row, row["conv"], row["category"], answerable=row["category"] != "abstention")
        for row in rows(data / "memory" / "beam.jsonl")
    ]
    return QuestionSet("beam", questions, {name: Nodes(name, held) for name, held in nodes.items()})


def _iso(date: str) -> str:
    """Return a date as `March-15-2024` as ISO 8601; '' for none."""
    try:
        return datetime.strptime(date, "%B-%d-%Y").date().isoformat()
    except ValueError:
        return ""


def qasper(data: Path) -> QuestionSet:
    """Read the papers as two collections, every second paper in each: the other one is the wrong one.

    The data holds two or three passages of a paper, so that a paper alone would be no collection to search.
    """
    papers = _parts(QASPER.read(Options(data)).nodes)
    sources: dict[str, Nodes] = {}
    holds: dict[str, str] = {}
    for number in range(2):
        name = f"papers-{number}"
        nodes: list[tuple[Node, str]] = []
        for paper in list(papers.values())[number::2]:
            holds[paper.nodes[0][0].title] = name
            nodes += paper.nodes
        sources[name] = Nodes(name, nodes)
    questions = [
        _question(row, holds[row["title"]], "paper") for row in rows(data / "documents" / "qasper.jsonl")
    ]
    return QuestionSet("qasper", questions, sources)


def financebench(data: Path) -> QuestionSet:
    """Read the filings, each a source of its own; the wrong one is the next of another company."""
    sources = _parts(FINANCEBENCH.read(Options(data)).nodes)
    asked = rows(data / "documents" / "financebench.jsonl")
    names = sorted({row["doc"] for row in asked})
    others = {
        name: next(other for other in [*names[place:], *names] if _company(other) != _company(name))
        for place, name in enumerate(names)
    }
    questions = [_question(row, row["doc"], "filing") for row in asked]
    return QuestionSet("financebench", questions, {name: sources[name] for name in names}, others)


def _company(filing: str) -> str:
    return filing.partition("_")[0]


def _question(row: dict[str, Any], source: str, kind: str, *, answerable: bool = True) -> Question:
    answer = "" if row["answer"] is None else str(row["answer"])
    return Question(
        row["id"],
        source,
        kind,
        row["query"],
        answerable,
        gold=frozenset(row["gold"]) if answerable else frozenset(),
        answer=answer if answerable else "",
    )


def _parts(nodes: Iterable[tuple[Node, str]]) -> dict[str, Nodes]:
    """Part the nodes of one tree by the top node that they are below; the top node stays at the top of its part."""
    top: dict[str, str] = {}
    found: dict[str, list[tuple[Node, str]]] = {}
    for node, above in nodes:
        top[node.id] = node.id if above == "." else top[above]
        found.setdefault(top[node.id], []).append((node, above))
    return {name: Nodes(name, held) for name, held in found.items()}
