"""Servers that misbehave: each has a clear outcome for the agent and on the board, and harms no other."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from metatree_agents.gateway.gateway import BOARD, SECTION, Gateway

from metatree import Blackboard
from tests.integration.agents.gateway.gateway_bench import Bench, odd

pytestmark = pytest.mark.integration

Run = Callable[[Coroutine[Any, Any, None]], None]


def said(result: dict[str, Any]) -> str:
    return "\n".join(part.get("text", "") for part in result["content"])


def on_board(bench: Bench, tool: str) -> str:
    items = Blackboard(bench.memory, name=BOARD).items(SECTION)
    (data,) = [item.data for item in items if item.data["tool"] == tool]
    return f"{data['status']}: {data['result']}"


async def others_work(gateway: Gateway) -> None:
    result = await asyncio.wait_for(gateway.call("other/echo", {"text": os.urandom(4).hex()}), 20)
    assert not result.get("isError"), result


@pytest.mark.parametrize(
    ("tool", "arguments", "outcome"),
    [
        ("never", {}, "gave no answer to 'never' within 1 s"),
        ("garbage", {}, "within 1 s; lines that it wrote to standard output and that are no messages: "),
        (
            "no_result",
            {},
            "answered 'no_result' with what is no result: content: Input should be a valid list",
        ),
        ("die", {}, "ended before it answered 'die'"),
    ],
)
def test_a_tool_without_an_answer(
    bench: Bench, run: Run, tool: str, arguments: dict[str, Any], outcome: str
) -> None:
    async def main() -> None:
        async with bench.gateway(office=odd(seconds=1), other=odd()) as gateway:
            await gateway.known()
            pending = asyncio.create_task(gateway.call(f"office/{tool}", arguments))
            await others_work(gateway)
            result = await pending
            assert result["isError"] and outcome in said(result), said(result)
            assert on_board(bench, f"office/{tool}").startswith("failed: ")
            assert outcome in on_board(bench, f"office/{tool}") and "pydantic.dev" not in said(result)
            if tool != "die":
                assert said(await gateway.call("office/echo", {"text": "still there"})) == "still there"

    run(main())


def test_50_megabytes_are_not_taken_and_the_next_answer_is(bench: Bench, run: Run) -> None:
    async def main() -> None:
        async with bench.gateway(office=odd(), other=odd()) as gateway:
            await gateway.known()
            pending = asyncio.create_task(gateway.call("office/flood", {"characters": 50_000_000}))
            await others_work(gateway)
            result = await pending
            assert "longer than 16,000,000 bytes" in said(result) and "longer" in on_board(
                bench, "office/flood"
            )
            assert said(await gateway.call("office/echo", {"text": "next"})) == "next"
            kept = await gateway.call("office/flood", {"characters": 5_000_000})
            assert "of 4,999,995 characters are left out" in said(kept)

    run(main())


def test_10000_tools_are_taken_and_found(bench: Bench, run: Run) -> None:
    async def main() -> None:
        async with bench.gateway(office=odd("many=10001")) as gateway:
            found = await gateway.find("handle the matter number 7345 of the office", 3)
            assert found.startswith(("office/handle_7345 ", "office/handle_7345\n")), found
            assert "lists 1 tools more than are taken in" in found
            assert len(gateway.catalog) == 10_000

    run(main())


def test_a_list_without_an_end_is_cut_off(bench: Bench, run: Run) -> None:
    async def main() -> None:
        async with bench.gateway(office=odd("endless"), other=odd()) as gateway:
            await others_work(gateway)
            assert "office/echo" in await gateway.browse("office")

    run(main())


@pytest.mark.parametrize("word", ["silent", "noise", "out"])
def test_a_server_that_does_not_start_keeps_no_other_waiting(bench: Bench, run: Run, word: str) -> None:
    async def main() -> None:
        async with bench.gateway(office=odd(word, start_seconds=1.5), other=odd()) as gateway:
            await others_work(gateway)
            listed = await gateway.browse()
            assert "other (" in listed and "(office: the MCP server" in listed
            result = await gateway.call("office/echo", {"text": "a"})
            assert result["isError"]

    run(main())


def test_a_server_that_writes_text_where_messages_belong_is_told_so(bench: Bench, run: Run) -> None:
    async def main() -> None:
        async with bench.gateway(office=odd("noise", start_seconds=1.5)) as gateway:
            listed = await gateway.browse()
            assert (
                "within 1.5 s; lines that it wrote to standard output and that are no messages: 1" in listed
            )

    run(main())


def test_a_server_that_fails_to_list_its_resources_has_its_tools(bench: Bench, run: Run) -> None:
    """Nothing in a gateway uses resources."""

    async def main() -> None:
        async with bench.gateway(office=odd("resources")) as gateway:
            await gateway.known()
            assert said(await gateway.call("office/echo", {"text": "here"})) == "here"

    run(main())


def test_before_any_tool_is_known_no_other_words_are_asked_for(bench: Bench, run: Run) -> None:
    async def main() -> None:
        async with bench.gateway(office=odd("silent", start_seconds=1.5)) as gateway:
            found = await gateway.find("say a thing again")
            assert found.startswith("No tool is known yet:") and "(office" in found

    run(main())


def test_a_server_that_crashes_again_and_again_is_started_ever_more_rarely(bench: Bench, run: Run) -> None:
    async def main() -> None:
        async with bench.gateway(office=odd()) as gateway:
            outcomes = [said(await gateway.call("office/die", {})) for _ in range(8)]
            assert "started again in" in outcomes[-1]
            assert bench.starts() < 8, "each call tries twice, and would start it 16 times"

    run(main())


def test_a_server_that_was_killed_is_started_again(bench: Bench, run: Run) -> None:
    async def main() -> None:
        async with bench.gateway(office=odd()) as gateway:
            number = int(said(await gateway.call("office/process", {})))
            os.kill(number, signal.SIGKILL)
            await asyncio.sleep(0.3)
            again = await gateway.call("office/process", {}, fresh=True)
            assert int(said(again)) != number

    run(main())


@pytest.mark.parametrize("tool", ["ask_model", "ask_person", "ask_roots"])
def test_a_server_has_no_use_of_the_hosts_model_person_and_folders(bench: Bench, run: Run, tool: str) -> None:
    async def main() -> None:
        async with bench.gateway(office=odd()) as gateway:
            result = await gateway.call(f"office/{tool}", {})
            assert "not supported" in said(result), said(result)

    run(main())


@pytest.mark.parametrize("kind", ["link", "resource", "image", "meta"])
def test_a_result_of_many_parts_is_bounded(bench: Bench, run: Run, kind: str) -> None:
    async def main() -> None:
        async with bench.gateway(office=odd(), max_tokens=500) as gateway:
            result = await gateway.call("office/parts", {"kind": kind, "count": 30})
            shown = json.dumps(result["content"])
            if kind == "image":
                assert len(shown) < 1_600_000 and "too large, left out" in shown
            elif kind == "meta":
                assert "Read me" not in shown and shown.count("short") == 30
            else:
                assert len(shown) < 2_500 and "browse_tools(node=" in shown and "Read me" in shown

    run(main())


def test_the_words_of_a_refusal_are_bounded(bench: Bench, run: Run) -> None:
    async def main() -> None:
        async with bench.gateway(office=odd()) as gateway:
            result = await gateway.call("office/angry", {"words": 1_000_000})
            assert result["isError"] and "refuses to call 'angry'" in said(result)
            assert len(said(result)) < 4_100

    run(main())


def test_a_server_that_refuses_with_the_code_of_a_closed_session_is_still_there(
    bench: Bench, run: Run
) -> None:
    """Servers use -32000 for errors of their own; what may change something is then not called, and not in doubt."""

    async def main() -> None:
        async with bench.gateway(office=odd(read_only="none"), allow=["*"]) as gateway:
            first = said(await gateway.call("office/process", {}))
            refused = await gateway.call("office/angry", {"words": 2, "code": -32000}, key="once")
            assert said(refused) == "'office' refuses to call 'angry': no no "
            assert said(await gateway.call("office/process", {})) == first, "it was not started again"

    run(main())


def test_a_schema_without_an_end_keeps_nobody_waiting(bench: Bench, run: Run) -> None:
    async def main() -> None:
        async with bench.gateway(office=odd()) as gateway:
            result = await asyncio.wait_for(gateway.call("office/maze", {"n": 1}), 30)
            assert said(result) == 'maze: {"n": 1}'

    run(main())
