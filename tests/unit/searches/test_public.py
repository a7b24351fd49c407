"""What callers see: wrong use, events, runs that exist, cancelling, and parts that are made wrong."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import threading
from dataclasses import asdict
from decimal import Decimal
from typing import Any

import pytest

from metatree import (
    Answer,
    Limits,
    Node,
    Reading,
    RouteDecision,
    RouteRequest,
    SearchResult,
    TraceEntry,
    Tree,
    UserError,
    aresume,
    asearch,
    astream,
    cancel,
    load_run,
    resume,
    runs,
    search,
)
from metatree.durable import MemoryJournal
from metatree.errors import MissingExtra, RouterUnavailable, RunExists, UnknownNode, UnknownRun
from metatree.searches._run import limits_json, limits_of
from metatree.testing.parts import FunctionRouter, PlainComposer, ScriptedReader, tree_of

SHAPE: Any = {b: {b + n: f"text {b}{n}" for n in "123"} for b in "abc"}


def first(request: RouteRequest) -> str:
    return request.options[0].id


def parts(**given: Any) -> dict[str, Any]:
    return {
        "router": FunctionRouter(first),
        "reader": ScriptedReader({"c3": {"q": "found"}}),
        "composer": PlainComposer(),
        "evidence": False,
        **given,
    }


@pytest.mark.parametrize("questions", ["", "  ", [], [""], ["q", " "], 5, [5], None])
def test_no_question_is_wrong_use(questions: Any) -> None:
    with pytest.raises(UserError, match="there is no question, or an empty one"):
        search(questions, tree=tree_of(SHAPE), **parts())


def test_half_a_surrogate_pair_in_a_question_or_an_answer_becomes_a_question_mark() -> None:
    questions: list[str] = []

    def route(request: RouteRequest) -> str:
        questions.extend(request.questions)
        return first(request)

    reader = ScriptedReader({"a1": {"half ? q": "half \udfff"}})
    result = search(
        "half \ud800 q", tree=tree_of(SHAPE), **parts(router=FunctionRouter(route), reader=reader)
    )
    assert {*questions} == {"half ? q"}
    assert asdict(result.answers[0])["question"] == "half ? q" and result.answer == "half ?"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"returns": "files"}, "use 'answer' or 'nodes'"),
        ({"k": 0}, "use 1 or more"),
        ({"concurrency": 0}, "use 1 or more"),
        ({"tools": [len]}, "is not a tool: decorate it"),
    ],
)
def test_wrong_options_say_what_to_do(given: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said):
        search("q", tree=tree_of(SHAPE), **parts(**given))


def test_an_unknown_start_node_comes_with_suggestions() -> None:
    with pytest.raises(UnknownNode) as caught:
        search("q", "source", tree=tree_of({"src": {"sources": "x"}}), **parts())
    assert "sources" in caught.value.suggestions
    assert "did you mean" in str(caught.value)


def test_a_start_node_may_be_a_node_or_a_path() -> None:
    tree = tree_of({"src": {"src/a": "x"}})
    for start in (tree.get("src/a"), "src/a", "./src/a/", "src/"):
        assert search("q", start, tree=tree, **parts()).ended == "exhausted"


def test_a_run_id_is_used_once() -> None:
    tree = tree_of(SHAPE)
    search("q", tree=tree, run_id="r", **parts())
    with pytest.raises(RunExists, match=r"use resume\('r'\)"):
        search("q", tree=tree, run_id="r", **parts())
    with pytest.raises(UnknownRun, match="no run 'z'"):
        resume("z", tree=tree, **parts())
    with pytest.raises(UnknownRun):
        load_run("z", tree=tree)
    with pytest.raises(UnknownRun):
        cancel("z", tree=tree)
    with pytest.raises(UserError, match="give the journal or the tree"):
        runs()
    with pytest.raises(UserError, match="needs the tree or the journal"):
        resume("r")


def test_a_run_that_has_ended_gives_its_result_once_more() -> None:
    tree = tree_of(SHAPE)
    result = search("q", tree=tree, run_id="r", **parts())
    never = FunctionRouter(lambda request: pytest.fail("nothing is asked again"))
    again = resume("r", tree=tree, router=never, reader=ScriptedReader({}), evidence=False)
    loaded = load_run("r", tree=tree)
    for other in (again, loaded):
        assert (other.trace, other.answers, other.answer, other.ended, other.run_id, other.nodes) == (
            result.trace,
            result.answers,
            "found",
            "answered",
            "r",
            result.nodes,
        )
        assert {**asdict(other.usage), "seconds": 0} == {**asdict(result.usage), "seconds": 0}
    (info,) = runs(tree=tree)
    assert (info.run_id, info.machine, info.ended, info.given["questions"]) == (
        "r",
        "search",
        "answered",
        ["q"],
    )
    assert info.began_at <= info.updated_at


def test_runs_are_listed_the_last_changed_first() -> None:
    tree = tree_of(SHAPE)
    for name in ("one", "two", "three"):
        search("q", tree=tree, run_id=name, limits=Limits(reads=1), **parts())
    resume("one", tree=tree, limits=Limits(), **parts())
    assert [(info.run_id, info.ended) for info in runs(tree=tree)] == [
        ("one", "answered"),
        ("three", "limit"),
        ("two", "limit"),
    ]


def test_events_come_while_it_runs_and_once_each_also_over_a_resume() -> None:
    tree = tree_of(SHAPE)
    seen: list[TraceEntry] = []
    result = search("q", tree=tree, run_id="r", limits=Limits(reads=2), on_event=seen.append, **parts())
    assert tuple(seen) == result.trace
    done = resume("r", tree=tree, limits=Limits(), on_event=seen.append, **parts())
    assert tuple(seen) == done.trace


def test_a_listener_that_raises_does_not_stop_the_search(caplog: pytest.LogCaptureFixture) -> None:
    def broken(entry: TraceEntry) -> None:
        raise ValueError("no")

    assert search("q", tree=tree_of(SHAPE), on_event=broken, **parts()).answer == "found"
    assert "on_event raised; the search goes on" in caplog.text


def test_a_stream_yields_entries_then_the_result() -> None:
    async def consume() -> list[Any]:
        return [each async for each in astream("q", tree=tree_of(SHAPE), **parts())]

    *entries, result = asyncio.run(consume())
    assert isinstance(result, SearchResult)
    assert tuple(entries) == result.trace
    assert len(entries) > 5


def test_a_stream_that_is_left_stops_the_run_and_it_can_be_taken_up() -> None:
    tree = tree_of(SHAPE)

    async def consume() -> None:
        stream = astream("q", tree=tree, run_id="r", **parts())
        async for entry in stream:
            if isinstance(entry, TraceEntry) and entry.event == "read":
                break
        await stream.aclose()  # type: ignore[attr-defined]

    asyncio.run(consume())
    assert runs(tree=tree)[0].ended in ("cancelled", "answered")
    assert resume("r", tree=tree, **parts()).answer == "found"


def test_a_stream_of_wrong_use_raises() -> None:
    async def consume() -> None:
        async for _ in astream("", tree=tree_of(SHAPE), **parts()):
            pass

    with pytest.raises(UserError):
        asyncio.run(consume())


def test_search_works_inside_a_running_loop_and_sees_the_callers_context() -> None:
    name: contextvars.ContextVar[str] = contextvars.ContextVar("name", default="nobody")
    seen: list[str] = []

    def route(request: RouteRequest) -> str:
        seen.append(name.get())
        return first(request)

    async def inside() -> SearchResult:
        name.set("caller")
        return search("q", tree=tree_of(SHAPE), **parts(router=FunctionRouter(route)))

    assert asyncio.run(inside()).answer == "found"
    assert set(seen) == {"caller"}


def test_a_run_is_cancelled_between_two_effects() -> None:
    tree = tree_of(SHAPE)

    def route(request: RouteRequest) -> str:
        cancel("r", tree=tree)
        return first(request)

    result = search("q", tree=tree, run_id="r", **parts(router=FunctionRouter(route)))
    assert (result.ended, result.usage.router_calls) == ("cancelled", 1)
    assert resume("r", tree=tree, **parts()).answer == "found"


def test_a_cancelled_task_leaves_a_run_that_can_be_taken_up() -> None:
    tree = tree_of(SHAPE)

    class Slow:
        async def route(self, request: RouteRequest) -> RouteDecision:
            await asyncio.sleep(30)
            raise AssertionError

    async def cancelled() -> None:
        task = asyncio.ensure_future(asearch("q", tree=tree, run_id="r", **parts(router=Slow())))
        await asyncio.sleep(0.05)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancelled())
    assert load_run("r", tree=tree).ended == "cancelled"
    assert asyncio.run(aresume("r", tree=tree, **parts())).answer == "found"


def test_two_threads_may_search_one_tree() -> None:
    tree = tree_of(SHAPE)
    answers: list[str] = []
    threads = [
        threading.Thread(target=lambda: answers.append(search("q", tree=tree, **parts()).answer))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == ["found"] * 4


@pytest.mark.parametrize("error", [UserError("set METATREE_KEY"), MissingExtra("x", what="this router")])
def test_a_router_that_was_set_up_wrong_ends_the_run_as_failed_and_says_what_to_do(error: Exception) -> None:
    tree = tree_of(SHAPE)
    result = search("q", tree=tree, run_id="r", **parts(router=FunctionRouter(lambda request: error)))
    assert result.ended == "failed"
    assert str(error) in result.detail
    assert result.usage.router_calls == 1
    assert resume("r", tree=tree, **parts()).answer == "found"


def test_a_reader_out_of_reach_ends_the_run_as_failed_and_marks_nothing() -> None:
    class Away:
        async def read(self, request: Any) -> Reading:
            raise RouterUnavailable("the model is away", retry_after_s=0.001)

    tree = tree_of(SHAPE)
    result = search("q", tree=tree, run_id="r", **parts(reader=Away()))
    assert (result.ended, result.detail) == ("failed", "RouterUnavailable: the model is away")
    assert (result.usage.reads, result.usage.failed_attempts) == (3, 2)
    assert not [entry for entry in result.trace if entry.event == "mark"]
    assert resume("r", tree=tree, **parts()).answer == "found"


def test_a_function_that_says_what_is_accepted_and_raises_fails_the_run() -> None:
    def accept(node: Node) -> bool:
        raise KeyError("kind")

    result = search("q", tree=tree_of(SHAPE), returns="nodes", accept=accept, **parts())
    assert (result.ended, result.detail) == ("failed", "KeyError: 'kind'")


def test_a_run_in_a_memory_journal_of_the_callers_own() -> None:
    journal = MemoryJournal()
    tree = tree_of(SHAPE)
    search("q", tree=tree, run_id="r", journal=journal, limits=Limits(reads=1), **parts())
    assert runs(tree=tree) == []
    assert [info.run_id for info in runs(journal=journal)] == ["r"]
    with pytest.raises(UserError, match="searched a tree in memory: give that tree"):
        resume("r", journal=journal, **parts())
    assert resume("r", journal=journal, tree=tree, limits=Limits(), **parts()).answer == "found"


def test_a_tree_file_is_opened_again_by_its_run(tmp_path: Any) -> None:
    with Tree.create(tmp_path / "t.db") as tree:
        tree_of(SHAPE, tree)
        search("q", tree=tree, run_id="r", journal=tmp_path / "j.db", limits=Limits(reads=1), **parts())
    assert resume("r", journal=tmp_path / "j.db", limits=Limits(), **parts()).answer == "found"


def test_limits_come_back_from_the_journal_as_they_were() -> None:
    limits = Limits(cost_usd=Decimal("0.10"), seconds=None, tokens=7)
    assert limits_of(limits_json(limits)) == limits


def test_sources_and_nodes_of_an_answer() -> None:
    tree = tree_of(SHAPE)
    reader = ScriptedReader({"b2": Reading((Answer("q", "yes", "text b2"),))})
    result = search("q", tree=tree, **parts(reader=reader))
    (source,) = result.answers[0].sources
    assert (source.node, source.title, source.quote) == ("b2", "b2", "text b2")
    assert [(node.id, node.score) for node in result.nodes] == [("b2", 1.0)]


def test_a_finished_search_is_freed_at_once() -> None:
    """Cycles would make the interpreter look through all objects of the program, in the middle of other work."""
    from metatree.searches._run import Search
    from metatree.searches._toolbox import Toolbox
    from metatree.searches._world import World

    def alive() -> set[int]:
        return {id(one) for one in gc.get_objects() if isinstance(one, Search | Toolbox | World)}

    gc.collect()
    gc.disable()
    try:
        before = alive()
        search("q", tree=tree_of(SHAPE), **parts())
        assert alive() <= before
    finally:
        gc.enable()
