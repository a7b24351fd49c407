"""Nothing of a search that computes or blocks runs on the loop of its caller."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from metatree_routers import EmbeddedRouter, LimitedRouter, TextEvidence
from metatree_routers.embedded.reader import EmbeddedReader
from metatree_routers.index.index import TextIndex
from metatree_routers.index.postings import SegmentBuilder

from metatree import (
    Blackboard,
    Limits,
    Node,
    RouteDecision,
    RouteRequest,
    SearchResult,
    TraceEntry,
    Tree,
    aresume,
    asearch,
    astream,
    load_run,
    search,
    tool,
)
from metatree.durable import MemoryJournal
from metatree.durable.sql_journal import SqlJournal
from metatree.errors import UnknownRun
from metatree.storage.store import Store
from metatree.testing.parts import FunctionRouter, ScriptedToolCaller
from metatree.trees.tree import Tree as TreeClass

pytestmark = pytest.mark.integration

QUESTION = "Which colour has the lighthouse?"


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[Tree]:
    with Tree.create(tmp_path / "tree.db") as made:
        for topic in ("ships", "lighthouse", "harbour"):
            made.add(Node(id=topic, title=topic, description=f"About the {topic}"), parent=made.root)
            for number in range(4):
                says = (
                    "The lighthouse has the colour red." if (topic, number) == ("lighthouse", 0) else "Nets."
                )
                made.add(Node(id=f"{topic}{number}", title=f"{topic} {number}", content=says), parent=topic)
        yield made


@contextmanager
def recording(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, set[int]]]:
    """Note the threads in which the methods run that compute, read or write."""
    threads: dict[str, set[int]] = {}

    def watch(kind: str, owner: Any, *names: str) -> None:
        for name in names:
            function = getattr(owner, name)

            def called(*args: Any, _function: Callable[..., Any] = function, **given: Any) -> Any:
                threads.setdefault(kind, set()).add(threading.get_ident())
                return _function(*args, **given)

            patch.setattr(owner, name, called)

    with monkeypatch.context() as patch:
        watch("evidence", TextEvidence, "score", "rank", "why", "passages")
        watch("index", TextIndex, "refresh")
        watch("reader", EmbeddedReader, "_likeliest")
        watch("router", EmbeddedRouter, "_scores")
        watch("tree", TreeClass, "children", "find", "content", "ancestors", "get")
        watch("journal", SqlJournal, "create", "append", "release", "read", "acquire")
        watch("store", Store, "row", "rows", "execute", "transaction")
        yield threads


def first_of(request: RouteRequest) -> RouteDecision:
    return RouteDecision(max(request.options, key=lambda option: option.score or 0.0).id)


class OnLoop:
    """A router whose client is bound to the loop that made it."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.gate = asyncio.Event()
        self.gate.set()
        self.threads: set[int] = set()

    async def route(self, request: RouteRequest) -> RouteDecision:
        assert asyncio.get_running_loop() is self.loop
        self.threads.add(threading.get_ident())
        await self.gate.wait()
        await asyncio.sleep(0)
        return first_of(request)


async def streamed(**given: Any) -> SearchResult:
    *entries, result = [entry async for entry in astream(QUESTION, **given)]
    assert all(isinstance(entry, TraceEntry) for entry in entries) and entries
    assert isinstance(result, SearchResult)
    return result


async def resumed(**given: Any) -> SearchResult:
    cut = await asearch(QUESTION, run_id="r1", limits=Limits(reads=0), **given)
    assert cut.ended == "limit"
    return await aresume("r1", limits=Limits(), **given)


async def plain(**given: Any) -> SearchResult:
    return await asearch(QUESTION, **given)


PARTS: dict[str, Callable[[], Any]] = {
    "embedded": lambda: None,
    "given": EmbeddedRouter,
    "wrapped": lambda: LimitedRouter(EmbeddedRouter()),
    "bound to the loop": OnLoop,
}


@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("way", [plain, streamed, resumed])
def test_evidence_index_tree_journal_and_embedded_parts_run_in_a_thread_beside_the_loop(
    tree: Tree, monkeypatch: pytest.MonkeyPatch, way: Callable[..., Any], parts: str
) -> None:
    evidence = None if parts == "embedded" else TextEvidence(tree)

    async def go() -> tuple[int, SearchResult, Any]:
        router = PARTS[parts]()
        return threading.get_ident(), await way(tree=tree, router=router, evidence=evidence), router

    with recording(monkeypatch) as threads:
        loop_thread, result, router = asyncio.run(go())
    assert "red" in result.answer
    expected = {"evidence", "index", "reader", "router", "tree", "journal", "store"}
    assert set(threads) == (expected - {"router"} if parts == "bound to the loop" else expected)
    assert [kind for kind, ids in threads.items() if loop_thread in ids] == []
    if isinstance(router, OnLoop):
        assert router.threads == {loop_thread}


def test_a_wrapper_that_says_nothing_is_asked_on_the_loop_and_embedded_parts_in_it_are_not(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Wrapper:
        def __init__(self) -> None:
            self.inner = EmbeddedRouter()
            self.threads: set[int] = set()

        async def route(self, request: RouteRequest) -> RouteDecision:
            self.threads.add(threading.get_ident())
            return await self.inner.route(request)

    evidence = TextEvidence(tree)

    async def go() -> tuple[int, set[int]]:
        router = Wrapper()
        await asearch(QUESTION, tree=tree, router=router, evidence=evidence)
        return threading.get_ident(), router.threads

    with recording(monkeypatch) as threads:
        loop_thread, asked = asyncio.run(go())
    assert asked == {loop_thread} and loop_thread not in threads["router"]


def test_what_a_caller_gives_is_called_on_its_loop(tree: Tree) -> None:
    """Events, permissions, fallbacks and tools that are coroutine functions."""
    seen: dict[str, set[int]] = {}

    def note(what: str) -> None:
        asyncio.get_running_loop()
        seen.setdefault(what, set()).add(threading.get_ident())

    @tool(kind="exploratory", changes=True)
    async def look(node: Node) -> str:
        note("tool")
        return "The lighthouse is green."

    async def permit(*_: object) -> bool:
        note("permit")
        return True

    async def fallback(_: object) -> None:
        note("fallback")

    async def go() -> int:
        await asearch(
            "Who is the keeper?",
            tree=tree,
            tools=[look],
            permit=permit,
            fallbacks=[fallback],
            tool_caller=ScriptedToolCaller({"look": {}}),
            blackboard=Blackboard(tree),
            on_event=lambda _: note("event"),
        )
        return threading.get_ident()

    loop_thread = asyncio.run(go())
    assert seen == {what: {loop_thread} for what in ("tool", "permit", "fallback", "event")}


def test_events_come_in_order_and_before_the_result(tree: Tree) -> None:
    seen: list[TraceEntry] = []
    result = asyncio.run(plain(tree=tree, on_event=seen.append))
    assert tuple(seen) == result.trace


def test_cancelling_stops_at_once_what_is_on_the_loop_and_the_journal_has_all_that_was_paid_for(
    tree: Tree,
) -> None:
    class Slow(OnLoop):
        calls = 0
        stopped = False

        async def route(self, request: RouteRequest) -> RouteDecision:
            type(self).calls += 1
            if self.calls == 2:
                self.waits.set()
                try:
                    await asyncio.sleep(600)
                finally:
                    await asyncio.sleep(0)  # a client that is put away
                    self.stopped = True
            return await super().route(request)

        def __init__(self) -> None:
            super().__init__()
            self.waits = asyncio.Event()

    journal = MemoryJournal()

    async def go() -> None:
        router = Slow()
        task = asyncio.ensure_future(
            asearch(QUESTION, tree=tree, router=router, journal=journal, run_id="r", evidence=False)
        )
        await router.waits.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert router.stopped

    asyncio.run(go())
    stopped = load_run("r", journal=journal)
    assert stopped.ended == "cancelled" and stopped.usage.router_calls == 2
    assert [record.kind for record in journal.read("r")][-2:] == ["cut", "stop"]

    async def again() -> SearchResult:
        return await aresume("r", journal=journal, tree=tree, router=OnLoop(), evidence=False)

    done = asyncio.run(again())
    assert done.trace[: len(stopped.trace)] == stopped.trace and "red" in done.answer


def test_cancelling_stops_the_building_of_the_index_and_the_next_search_builds_all_of_it(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loop of the search cannot hear of it meanwhile: the build itself looks."""
    add, indexed = SegmentBuilder.add, []
    building, cancelled = threading.Event(), threading.Event()
    journal = MemoryJournal()

    def slow(self: SegmentBuilder, number: int, **given: Any) -> None:
        indexed.append(number)
        building.set()
        assert cancelled.wait(30)
        add(self, number, **given)

    async def cut() -> None:
        task = asyncio.ensure_future(plain(tree=tree, journal=journal, run_id="r"))
        while not building.is_set():
            await asyncio.sleep(0.001)
        task.cancel()
        await asyncio.sleep(0)  # the search has been told
        cancelled.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    with monkeypatch.context() as patch:
        patch.setattr(SegmentBuilder, "add", slow)
        asyncio.run(cut())
    assert len(indexed) == 1
    with pytest.raises(UnknownRun):  # how its questions are read is part of what a run begins with
        load_run("r", journal=journal)
    assert "red" in asyncio.run(plain(tree=tree, journal=journal, run_id="r")).answer


def test_the_loop_goes_on_while_a_search_computes(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    ticks: list[str] = []
    passages = TextEvidence.passages
    computing, ticked = threading.Event(), threading.Event()

    def slow(*args: Any, **given: Any) -> Any:
        if not ticks:
            computing.set()
            assert ticked.wait(30), "the loop stood still while the evidence computed"
        return passages(*args, **given)

    monkeypatch.setattr(TextEvidence, "passages", slow)

    async def go() -> SearchResult:
        task = asyncio.ensure_future(plain(tree=tree))
        while not computing.is_set():
            await asyncio.sleep(0.001)
        ticks.append("tick")
        ticked.set()
        return await task

    assert "red" in asyncio.run(go()).answer


def test_many_searches_of_one_loop_share_one_thread_which_ends_with_the_loop(tree: Tree) -> None:
    def beside() -> set[threading.Thread]:
        return {each for each in threading.enumerate() if each.name == "metatree-search"}

    before = beside()

    async def go() -> set[threading.Thread]:
        await asyncio.gather(*(plain(tree=tree) for _ in range(20)))
        return beside() - before

    (thread,) = asyncio.run(go())
    gc.collect()
    thread.join(30)
    assert not thread.is_alive()


def test_a_search_inside_a_search_runs_in_the_thread_that_is_there(tree: Tree) -> None:
    """A tool may search, with either function."""
    answers: list[str] = []

    @tool(kind="exploratory")
    async def ask(node: Node) -> str:
        answers.append((await plain(tree=tree)).answer)
        return "nothing"

    @tool(kind="exploratory")
    def ask_too(node: Node) -> str:
        answers.append(search(QUESTION, tree=tree).answer)
        return "nothing"

    parts: Any = {"tools": [ask, ask_too], "tool_caller": ScriptedToolCaller({"ask": {}, "ask_too": {}})}
    last = FunctionRouter(lambda request: request.options[-1].id)
    asyncio.run(asearch("Who is the keeper?", tree=tree, router=last, **parts))
    assert answers and all("red" in answer for answer in answers)
