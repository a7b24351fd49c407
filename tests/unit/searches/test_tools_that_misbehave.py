"""Tools that raise what is no `Exception`, return what is no JSON, or do not stop: marked, and the search goes on."""

from __future__ import annotations

import asyncio
import gc
import time
from typing import Any

import pytest

from metatree import Node, SearchResult, Tree, search, tool
from metatree.testing.parts import (
    FunctionRouter,
    PlainComposer,
    PlainDescriber,
    ScriptedReader,
    ScriptedToolCaller,
    tree_of,
)
from metatree.tools.tool import Tool


class Odd(BaseException):
    """No `Exception`."""


def run(tree: Tree, *tools: Tool, **given: Any) -> SearchResult:
    return search(
        "q",
        tree=tree,
        tools=tools,
        router=FunctionRouter(lambda request: request.options[0].id),
        reader=ScriptedReader({}),
        tool_caller=ScriptedToolCaller({one.id: {} for one in tools}),
        composer=PlainComposer(),
        describer=PlainDescriber(),
        evidence=False,
        permit=lambda *_: True,
        **given,
    )


def tool_reasons(result: SearchResult) -> list[tuple[str, str]]:
    return [(e.data["tool"], e.reason) for e in result.trace if e.event in ("tool", "missed_node")]


@pytest.mark.parametrize(
    "raised", [SystemExit(3), KeyboardInterrupt(), Odd("x"), GeneratorExit(), asyncio.CancelledError()]
)
@pytest.mark.parametrize("changes", [False, True])
@pytest.mark.parametrize("kind", ["function", "coroutine", "awaitable"])
def test_whatever_a_tool_raises_marks_the_tool_and_the_search_goes_on(
    raised: BaseException, kind: str, changes: bool
) -> None:
    def plain(node: Node) -> str:
        raise raised

    async def coroutine(node: Node) -> str:
        await asyncio.sleep(0)
        raise raised

    def awaitable(node: Node) -> Any:
        return coroutine(node)

    functions: dict[str, Any] = {"function": plain, "coroutine": coroutine, "awaitable": awaitable}
    look = tool(kind="exploratory", name="look", changes=changes)(functions[kind])
    result = run(tree_of({"a": "text", "b": "text b"}), look, start_node="a")
    assert result.ended == "exhausted"
    assert len(tool_reasons(result)) >= 2
    for _, reason in tool_reasons(result):
        assert reason.startswith("it failed: ") and type(raised).__name__ in reason


class Unwritable:
    def __repr__(self) -> str:
        raise RuntimeError("cannot be written")

    __str__ = __repr__


CIRCLE: list[Any] = []
CIRCLE.append(CIRCLE)


@pytest.mark.parametrize(
    "result", [CIRCLE, Unwritable(), {(1, 2): 3}, {1: {2}}, b"\xff", float("nan"), object()]
)
def test_whatever_a_tool_returns_is_a_text_or_marks_the_tool(result: Any) -> None:
    calls: list[int] = []

    @tool(kind="exploratory", changes=True)
    def look(node: Node) -> Any:
        calls.append(1)
        return result

    outcome = run(tree_of({"a": "text"}), look, start_node="a")
    assert outcome.ended == "exhausted"
    assert len(calls) == len(tool_reasons(outcome)) == 2, "the node and the root"


def test_a_coroutine_that_does_not_stop_when_it_is_cancelled_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("metatree._util.threads._PUT_AWAY_S", 0.05)

    @tool(kind="exploratory", kinds=["note"], timeout_s=0.05)
    async def stubborn(node: Node) -> str:
        while True:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                continue

    began = time.monotonic()
    result = run(tree_of({"a": "text"}), stubborn)
    assert time.monotonic() - began < 20, "it would never come to an end"
    assert tool_reasons(result) == [("stubborn", "it failed: 'stubborn' gave nothing within 0.05 s")]
    assert result.ended == "exhausted"
    gc.collect()  # asyncio says here, and not in another test, that the tool was still at work


def test_a_coroutine_that_is_out_of_time_may_still_put_things_away() -> None:
    put_away: list[str] = []

    @tool(kind="exploratory", kinds=["note"], timeout_s=0.05)
    async def slow(node: Node) -> str:
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.01)
            put_away.append("connection")
        return ""

    run(tree_of({"a": "text"}), slow)
    assert put_away == ["connection"]


def test_a_timeout_that_a_tool_raises_itself_is_its_failure() -> None:
    @tool(kind="exploratory", kinds=["note"], changes=True)
    async def look(node: Node) -> str:
        raise TimeoutError("the server says nothing")

    result = run(tree_of({"a": "text"}), look)
    assert tool_reasons(result) == [("look", "it failed: TimeoutError: the server says nothing")]
