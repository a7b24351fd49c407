"""Wrappers around routers, the person at the terminal, and the limit that they share."""

from __future__ import annotations

import asyncio
import io
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

import pytest
from metatree_routers import (
    CachedRouter,
    FallbackRouter,
    HumanRouter,
    LimitedRouter,
    RecordedRouter,
    ReplayedRouter,
)
from metatree_routers.wrappers._codec import answer_from, answer_json
from metatree_routers.wrappers.disk_cache import MemoryCache
from metatree_routers.wrappers.limiter import Limiter

from metatree import (
    Answer,
    ComposeRequest,
    DescribeRequest,
    EarlierStatement,
    Node,
    Option,
    Reading,
    ReadRequest,
    RouteDecision,
    RouteRequest,
    Suite,
    ToolSpec,
    Traits,
    Tree,
    search,
)
from metatree.errors import BadModelAnswer, RouterUnavailable, UserError
from metatree.protocols import Description, Router, ToolRequest
from metatree.testing.parts import (
    FunctionRouter,
    PlainComposer,
    PlainDescriber,
    ScriptedReader,
    ScriptedRouter,
    ScriptedToolCaller,
)

MENU = RouteRequest(
    ("Where?",), "", Node("n", "src"), (Option("a", "a.py"), Option("b", "b.py"), Option("c", "c.py"))
)
NODE = Node("a", "a.py", "About a", "TTL = 60")


def scripted() -> Suite:
    """A suite of scripted parts."""
    return Suite(
        ScriptedRouter(["b"] * 9),
        ScriptedReader({"a": {"q": "60"}}),
        ScriptedToolCaller({"grep": {"pattern": "x"}}),
        PlainComposer(),
        PlainDescriber(),
    )


WRAPPERS: list[Callable[[Any, Any], Any]] = [
    lambda inner, path: CachedRouter(inner, MemoryCache()),
    lambda inner, path: LimitedRouter(inner, concurrency=2),
    lambda inner, path: FallbackRouter(inner, scripted()),
    lambda inner, path: RecordedRouter(inner, path / "r.jsonl"),
]


@pytest.mark.integration
@pytest.mark.parametrize("wrap", WRAPPERS)
def test_all_five_parts_pass_through_a_wrapper_unchanged(wrap: Any, tmp_path: Any) -> None:
    parts = wrap(scripted(), tmp_path).suite()

    async def ask() -> list[Any]:
        return [
            await parts.router.route(MENU),
            await parts.reader.read(ReadRequest(NODE, "TTL = 60", ("q",))),
            await parts.tool_caller.fill(
                ToolRequest(ToolSpec("grep", "grep", "", "exploratory", {}), NODE, ("q",))
            ),
            await parts.composer.compose(ComposeRequest(("q",), (Answer("q", "60"),), ())),
            await parts.describer.describe(DescribeRequest("a text", NODE)),
        ]

    for _ in range(2):
        assert asyncio.run(ask()) == [
            RouteDecision("b", {}, "scripted"),
            Reading((Answer("q", "60", "60"),)),
            {"pattern": "x"},
            "60",
            Description("a text", "a text"),
        ]
    assert isinstance(parts.router, Router)


def test_a_wrapper_says_of_itself_what_is_wrapped() -> None:
    class Model(ScriptedRouter):
        traits = Traits(uses_model=True, capacity=lambda request: 2)

    wrapped = LimitedRouter(CachedRouter(Model(["a"]), MemoryCache()))
    assert wrapped.traits.uses_model
    assert wrapped.traits.capacity is not None
    assert wrapped.traits.capacity(MENU) == 2
    assert LimitedRouter(ScriptedRouter()).traits.capacity is None
    assert not wrapped.suite().reader.traits.uses_model


@pytest.mark.parametrize(
    ("method", "answer"),
    [
        ("route", RouteDecision("a", {"b": "no"}, "why")),
        ("read", Reading((Answer("q", "a", "quote", False),), ("new?",), "note", True)),
        ("read", Reading((Answer("q", "a", earlier=(EarlierStatement("n", "N", "b", "2025-03-02"),)),))),
        ("fill", {"pattern": "x", "most": 3}),
        ("compose", "a text"),
        ("describe", Description("t", "d")),
    ],
)
def test_answers_go_to_json_and_back(method: str, answer: Any) -> None:
    import json

    assert answer_from(method, json.loads(json.dumps(answer_json(method, answer)))) == answer


def test_a_cache_asks_once_and_again_after_a_bad_answer() -> None:
    from dataclasses import replace

    inner = ScriptedRouter(["a", "b", "c"])
    router = CachedRouter(inner, MemoryCache())

    def ask(request: RouteRequest) -> str | None:
        return asyncio.run(router.route(request)).choice

    assert (ask(MENU), ask(MENU), len(inner.requests)) == ("a", "a", 1)
    assert ask(replace(MENU, errors=("that was wrong",))) == "b", "a retry is not answered from the cache"
    assert ask(MENU) == "b", "and its answer replaces the earlier one"
    assert ask(replace(MENU, questions=("What?",))) == "c"


def test_what_does_not_fit_in_a_cache_is_a_miss() -> None:
    cache = MemoryCache()
    router = CachedRouter(ScriptedRouter(["a", "b"]), cache)
    assert asyncio.run(router.route(MENU)).choice == "a"
    (key,) = cache._texts
    cache.set(key, {"something": "else"})
    assert asyncio.run(router.route(MENU)).choice == "b"


def test_the_next_router_is_asked_when_one_cannot_answer() -> None:
    down = RouterUnavailable("down")
    for failure in (down, UserError("no key")):
        router = FallbackRouter(ScriptedRouter([failure]), ScriptedRouter([down]), ScriptedRouter("a"))
        assert asyncio.run(router.route(MENU)).choice == "a"
    router = FallbackRouter(ScriptedRouter([UserError("x")]), ScriptedRouter([RouterUnavailable("both")]))
    with pytest.raises(RouterUnavailable, match="both"):
        asyncio.run(router.route(MENU))


def test_a_bad_answer_is_first_shown_to_the_one_who_gave_it() -> None:
    from dataclasses import replace

    bad = ScriptedRouter([BadModelAnswer("no form"), BadModelAnswer("no form")])
    router = FallbackRouter(bad, ScriptedRouter(["b"]), bad_answers=2)
    with pytest.raises(BadModelAnswer):
        asyncio.run(router.route(MENU))
    assert asyncio.run(router.route(replace(MENU, errors=("no form",)))).choice == "b"
    assert len(bad.requests) == 2


def test_a_search_goes_on_with_the_next_router_and_says_why(caplog: pytest.LogCaptureFixture) -> None:
    with Tree.create(":memory:") as tree:
        tree.add(Node("a", "a.py", "", "TTL = 60"))
        tree.add(Node("b", "b.py", "", "x"))
        router = FallbackRouter(
            FunctionRouter(lambda _: RouterUnavailable("down")),
            FunctionRouter(lambda request: request.options[-1].id),
        )
        with caplog.at_level("WARNING"):
            result = search("q", tree=tree, router=router, evidence=False, returns="nodes", k=2)
        assert [node.id for node in result.nodes] == ["b", "a"]
        assert result.usage.failed_attempts == 0
        reasons = [entry.reason for entry in result.trace if entry.event == "route"]
        assert reasons and all("FunctionRouter gave up: down" in reason for reason in reasons)
        told = [record.message for record in caplog.records if "gave up" in record.message]
        assert told == ["FunctionRouter gave up: down; the next is asked"], "once for all requests"


@pytest.mark.integration
def test_errors_are_replayed_as_they_were(tmp_path: Any) -> None:
    path = tmp_path / "r.jsonl"
    failures = [RouterUnavailable("down"), BadModelAnswer("no form"), UserError("no key"), KeyError("?")]
    inner = ScriptedRouter([*failures, "a"])
    recorded = RecordedRouter(inner, path)
    kinds = [RouterUnavailable, BadModelAnswer, UserError, KeyError]
    for kind in kinds:
        with pytest.raises(kind):
            asyncio.run(recorded.route(MENU))
    assert asyncio.run(recorded.route(MENU)).choice == "a"
    replayed = ReplayedRouter(path)
    for kind in [*kinds[:3], BadModelAnswer]:
        with pytest.raises(kind):
            asyncio.run(replayed.route(MENU))
    assert asyncio.run(replayed.route(MENU)).choice == "a"


# The limit


def test_calls_begin_evenly_spaced() -> None:
    class Noting:
        def __init__(self) -> None:
            self.at: list[float] = []

        async def route(self, request: RouteRequest) -> RouteDecision:
            self.at.append(time.monotonic())
            return RouteDecision("a")

    inner = Noting()
    router = LimitedRouter(inner, concurrency=9, per_minute=60 / 0.05)

    async def ask() -> None:
        await asyncio.gather(*(router.route(MENU) for _ in range(5)))

    start = time.monotonic()
    asyncio.run(ask())
    # None begins before its time; how much later it does is the machine's affair.
    assert [at - start > number * 0.05 - 0.01 for number, at in enumerate(inner.at)] == [True] * 5


def test_places_survive_cancellations_on_many_loops() -> None:
    limiter = Limiter(3)
    at_once = most = 0
    lock = threading.Lock()

    async def use(number: int) -> None:
        nonlocal at_once, most
        async with limiter.slot():
            with lock:
                at_once += 1
                most = max(most, at_once)
            try:
                await asyncio.sleep(0.001)
            finally:
                with lock:
                    at_once -= 1

    async def several() -> None:
        tasks = [asyncio.create_task(use(number)) for number in range(40)]
        await asyncio.sleep(0.004)
        for task in tasks[::3]:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    threads = [threading.Thread(target=lambda: asyncio.run(several())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert most <= 3
    assert limiter._free == 3, "no place is lost and none is made"


def test_a_loop_that_is_gone_takes_no_place_with_it() -> None:
    limiter = Limiter(1)
    waiting = asyncio.new_event_loop()

    async def hold() -> None:
        async with limiter.slot():
            limiter._waiting.append((waiting, Future()))
            waiting.close()

    asyncio.run(hold())
    assert limiter._free == 1


# A person


def human(*lines: str) -> tuple[HumanRouter, io.StringIO]:
    typed: Iterator[str] = iter(lines)

    def read() -> str:
        try:
            return next(typed)
        except StopIteration:
            raise EOFError from None

    out = io.StringIO()
    return HumanRouter(read=read, out=out), out


@pytest.mark.parametrize(
    ("lines", "decision"),
    [
        (["B"], RouteDecision("b", {}, "chosen by a person")),
        (["what?", "Z", "", " c "], RouteDecision("c", {}, "chosen by a person")),
        (["n"], RouteDecision(None, {}, "a person chose none")),
        (
            ["- a, C"],
            RouteDecision(None, dict.fromkeys("ac", "ruled out by a person"), "ruled out by a person"),
        ),
        (["- a x", "b.py"], RouteDecision("b", {}, "chosen by a person")),
    ],
)
def test_a_person_decides(lines: list[str], decision: RouteDecision) -> None:
    router, out = human(*lines)
    assert asyncio.run(router.route(MENU)) == decision
    assert "  B  b.py" in out.getvalue()
    assert out.getvalue().count("is none of the options") == len(lines) - 1


@pytest.mark.parametrize("lines", [["q"], []])
def test_a_person_who_leaves_stops_the_run(lines: list[str]) -> None:
    router, _ = human(*lines)
    with pytest.raises(UserError):
        asyncio.run(router.route(MENU))


def test_what_is_shown_to_a_person_cannot_move_the_cursor() -> None:
    router, out = human("a")
    evil = Option("a", "a\x1b[2J.py", "text\r\nmore\x07", None, 0.5, ("\x1b]0;title\x07",))
    asyncio.run(router.route(RouteRequest(("q",), "", Node("n", "n"), (evil, Option("b", "b")))))
    assert not any(ord(char) < 32 and char != "\n" for char in out.getvalue())


def test_a_late_line_answers_the_next_menu() -> None:
    """A search that gives up on a person leaves a thread that still reads; its line is not lost."""
    ready = threading.Event()

    def read() -> str:
        ready.wait(10)
        return "b"

    router = HumanRouter(read=read, out=io.StringIO())

    async def ask() -> str | None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(router.route(MENU), 0.05)
        ready.set()
        return (await asyncio.wait_for(router.route(MENU), 5)).choice

    assert asyncio.run(ask()) == "b"


def test_a_person_leads_a_search() -> None:
    with Tree.create(":memory:") as tree:
        tree.add(Node("a", "a.py", "", "x"))
        tree.add(Node("b", "b.py", "", "y"))
        router, _ = human("b")
        result = search("q", tree=tree, router=router, evidence=False, returns="nodes", k=1)
        assert [node.id for node in result.nodes] == ["b"]
