"""A wrapper around the embedded parts changes nothing of what a search finds, says and costs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from metatree_memory_tools import build_tree
from metatree_routers import (
    CachedRouter,
    EmbeddedRouter,
    FallbackRouter,
    LimitedRouter,
    RecordedRouter,
    ReplayedRouter,
)
from metatree_routers.embedded.suite import embedded_suite
from metatree_routers.wrappers.disk_cache import MemoryCache

from metatree import SearchResult, Tree, search

pytestmark = pytest.mark.integration

WRAPPERS: dict[str, Callable[[Any, Path], Any]] = {
    "cached": lambda inner, folder: CachedRouter(inner, MemoryCache()),
    "limited": lambda inner, folder: LimitedRouter(inner),
    "fallback": lambda inner, folder: FallbackRouter(inner),
    "recorded": lambda inner, folder: RecordedRouter(inner, folder / "r.jsonl"),
    "two of them": lambda inner, folder: LimitedRouter(CachedRouter(inner, MemoryCache())),
}
QUESTIONS = (
    "How often are redirects followed?",
    "What is the colour of the quokka in the zoo of Perth?",
    "Which file reads tokens, and how long do they live?",
    "area of a circle",
    "zyzzyva",
)


FILES = {
    "area.py": '''
"""Areas."""

def circle(r: float) -> float:
    """Return the area of a circle."""
    return 3.14 * r * r
''',
    "client.py": '''
"""A client."""

MAX = 30

def follow(url: str) -> str:
    """Follow redirects, at most MAX of them."""
    return url

class Tokens:
    """Reads tokens, which live for an hour."""
''',
    "README.md": """
# Zoo
A client of the zoo.

## Animals
The quokka has a colour. It is brown.

## Tokens
They live for an hour.
""",
}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("source")
    for name, text in FILES.items():
        (folder / name).write_text(text)
    with build_tree(folder) as built:
        yield built


def asked(tree: Tree, router: Any, question: str, **options: Any) -> SearchResult:
    return search(question, tree=tree, router=router, **options)


def seen(found: SearchResult) -> Any:
    """Return all of a result but what is another in each run."""
    trace = json.loads(json.dumps([[e.step, e.event, e.node, e.reason, dict(e.data)] for e in found.trace]))
    for entry in trace:
        for name in ("from_run", "at", "call"):
            entry[4].pop(name, None)
    usage = {
        name: getattr(found.usage, name) for name in ("router_calls", "reads", "tool_calls", "model_calls")
    }
    nodes = [(n.id, n.score, n.reason) for n in found.nodes]
    return found.ended, found.answer, found.answers, found.open_questions, nodes, trace, usage


@pytest.mark.parametrize("name", WRAPPERS)
@pytest.mark.parametrize("inner", ["a router", "a suite"])
def test_a_wrapped_search_is_the_search(tree: Tree, tmp_path: Path, name: str, inner: str) -> None:
    for question in QUESTIONS:
        for options in ({}, {"returns": "nodes", "k": 3}, {"own_tools": True}):
            suite = embedded_suite()
            made: Any = EmbeddedRouter() if inner == "a router" else suite
            parts = {"reader": suite.reader, "tool_caller": suite.tool_caller}  # which know no tree
            given = parts if inner == "a suite" else {}
            plain = asked(tree, EmbeddedRouter(), question, **given, **options)
            wrapped = asked(tree, WRAPPERS[name](made, tmp_path), question, **options)
            assert seen(wrapped) == seen(plain), (question, options)


@pytest.mark.parametrize("name", WRAPPERS)
def test_a_question_that_nothing_answers_calls_no_tool(tree: Tree, tmp_path: Path, name: str) -> None:
    plain = asked(tree, EmbeddedRouter(), "zyzzyva")
    assert (plain.ended, plain.usage.tool_calls) == ("exhausted", 0)
    wrapped = asked(tree, WRAPPERS[name](EmbeddedRouter(), tmp_path), "zyzzyva")
    assert (wrapped.ended, wrapped.usage.tool_calls) == ("exhausted", 0)


def test_a_replayed_search_is_the_search(tree: Tree, tmp_path: Path) -> None:
    for number, question in enumerate(QUESTIONS):
        path = tmp_path / f"{number}.jsonl"
        recorded = asked(tree, RecordedRouter(EmbeddedRouter(), path), question)
        assert seen(asked(tree, ReplayedRouter(path), question)) == seen(recorded), question
