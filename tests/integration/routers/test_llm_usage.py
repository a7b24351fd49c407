"""Usage and cost, caches, recordings, spans, event loops: what goes with every call."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from metatree_routers import CachedRouter, RecordedRouter, ReplayedRouter
from metatree_routers.llm import LLMRouter, Price, Recording, Replay
from metatree_routers.llm._tokens import TokenCounter
from metatree_routers.wrappers.disk_cache import DiskCache, MemoryCache

from metatree import Limits, Tree, asearch, resume, search
from metatree.durable import metered, report_usage
from metatree.durable._runner import _memory
from metatree.errors import UserError
from metatree.testing._model_server import DROP, ModelServer, Reply, status

pytestmark = pytest.mark.integration
Serve = Callable[..., ModelServer]
RouterFor = Callable[..., LLMRouter]
QUESTION = "How long do tokens live?"
USAGE = {
    "prompt_tokens": 1_000,
    "completion_tokens": 100,
    "total_tokens": 1_100,
    "prompt_tokens_details": {"cached_tokens": 600},
}


@pytest.fixture
def right(right_model: Any) -> Any:
    """A model that finds the answer."""
    return right_model("Auth", "tokens.py")


def test_usage_and_cost_are_summed_with_failed_attempts(
    serve: Serve, router_for: RouterFor, tree: Tree, right: Any
) -> None:
    def model(request: Any) -> Reply:
        reply = right(request)
        return Reply(reply if isinstance(reply, str) else json.dumps(reply), usage=USAGE)

    server = serve(model).then(Reply("no JSON", usage=USAGE), status(503))
    router = router_for(server, prices={"stub": Price("1", "10", "0.5")})
    result = search(QUESTION, tree=tree, router=router, evidence=False)
    calls = len(server.requests)
    assert result.usage.model_calls == calls
    paid = calls - 1  # an error costs nothing
    assert result.usage.tokens_in == 1_000 * paid
    assert result.usage.tokens_out == 100 * paid
    assert result.usage.tokens_cached == 600 * paid
    assert result.usage.cost_usd is not None
    one = Decimal("0.0004") + Decimal("0.0003") + Decimal("0.001")
    assert abs(result.usage.cost_usd - one * paid) < Decimal("0.000001")
    assert result.usage.failed_attempts == 2


def test_cost_is_unknown_without_a_price(serve: Serve, router_for: RouterFor, tree: Tree, right: Any) -> None:
    result = search(QUESTION, tree=tree, router=router_for(serve(right)), evidence=False)
    assert result.usage.cost_usd is None


def test_tokens_are_estimated_where_the_server_does_not_say(
    serve: Serve, router_for: RouterFor, tree: Tree, right: Any
) -> None:
    def model(request: Any) -> Reply:
        reply = right(request)
        return Reply(reply if isinstance(reply, str) else json.dumps(reply), usage={})

    server = serve(model)
    result = search(QUESTION, tree=tree, router=router_for(server), evidence=False)
    sent = sum(len(request.system + request.user) for request in server.requests)
    assert sent / 6 < result.usage.tokens_in < sent
    assert result.usage.tokens_out > 10


def test_the_tokens_of_a_long_answer_are_at_most_those_that_were_asked_for(
    serve: Serve, router_for: RouterFor, tree: Tree
) -> None:
    counted: list[int] = []

    def count(text: str) -> int:
        counted.append(len(text))
        return len(text) // 4

    server = serve(lambda request: Reply('{"choice": "A", "reason": "' + "so " * 1_000_000 + '"}', usage={}))
    router = router_for(server, counter=TokenCounter(count, exact=True))
    result = search(QUESTION, tree=tree, router=router, evidence=False, limits=Limits(model_calls=1))
    body = server.requests[0].body
    assert result.usage.tokens_out == body.get("max_tokens", body.get("max_completion_tokens"))
    assert max(counted) <= 20_000


def test_an_answer_of_three_megabytes_ends_no_search(serve: Serve, router_for: RouterFor, tree: Tree) -> None:
    server = serve(lambda request: Reply("{" * 3_000_000, usage={}))
    result = search(QUESTION, tree=tree, router=router_for(server), evidence=False)
    assert len(server.requests) > 1 and result.ended != "limit"
    assert result.usage.tokens_out < 100_000


@pytest.mark.parametrize(
    ("limits", "calls"),
    [
        (Limits(model_calls=2), 2),
        (Limits(router_calls=1), 1),
        (Limits(tokens=1_000), 1),
        (Limits(tokens=2_000), 2),
        (Limits(cost_usd=Decimal("0.0017")), 1),
        (Limits(cost_usd=Decimal("0.0018")), 2),
    ],
)
def test_limits_hold_to_the_call_and_a_run_goes_on_after_them(
    serve: Serve, router_for: RouterFor, tree: Tree, right: Any, limits: Limits, calls: int
) -> None:
    def model(request: Any) -> Reply:
        reply = right(request)
        return Reply(reply if isinstance(reply, str) else json.dumps(reply), usage=USAGE)

    server = serve(model)
    router = router_for(server, prices={"stub": Price("1", "10", "0.5")})
    result = search(QUESTION, tree=tree, router=router, evidence=False, limits=limits, run_id="r")
    assert result.ended == "limit"
    assert len(server.requests) == calls
    after = resume("r", tree=tree, router=router, evidence=False, limits=Limits())
    assert after.ended == "answered"


def test_a_limit_that_is_reached_leaves_the_closest_passages(
    serve: Serve, router_for: RouterFor, tree: Tree
) -> None:
    server = serve({"reason": "", "choice": "A", "ruled_out": []})
    found = search(QUESTION, tree=tree, router=router_for(server), limits=Limits(model_calls=1))
    assert (found.ended, found.answers) == ("limit", ())
    assert found.closest and found.closest[0].node == "auth/tokens"
    nodes = search(
        QUESTION, tree=tree, router=router_for(server), limits=Limits(model_calls=1), returns="nodes", k=9
    )
    assert nodes.closest == ()


@pytest.mark.parametrize(("temperature", "sent"), [(0.0, 1), (0.7, 2)])
def test_a_prompt_that_is_repeated_in_a_run_costs_nothing(
    serve: Serve, router_for: RouterFor, request_of: Any, temperature: float, sent: int
) -> None:
    server = serve({"reason": "", "choice": "A", "ruled_out": []})
    router = router_for(server, temperature=temperature)

    async def twice() -> dict[str, float]:
        with metered() as used:
            for _ in range(2):
                report_usage(model_calls=1)  # as the kernel does
                await router.route(request_of("a.py", "b.py"))
        return used

    async def in_a_run() -> dict[str, float]:
        _memory.set({})
        return await twice()

    used = asyncio.run(in_a_run())
    assert (used["model_calls"], used.get("cache_hits", 0)) == (sent, 2 - sent)
    assert len(server.requests) == sent
    asyncio.run(twice())
    assert len(server.requests) == sent + 2, "another run pays anew"


# Caches


def test_a_second_search_is_answered_from_the_cache(
    serve: Serve, router_for: RouterFor, tree: Tree, right: Any, tmp_path: Path
) -> None:
    server = serve(right)
    first = search(
        QUESTION,
        tree=tree,
        router=CachedRouter(router_for(server), DiskCache(tmp_path / "c")),
        evidence=False,
    )
    calls = len(server.requests)
    again = CachedRouter(router_for(server), DiskCache(tmp_path / "c"))
    second = search(QUESTION, tree=tree, router=again, evidence=False, limits=Limits(model_calls=1))
    assert (second.answer, second.ended) == (first.answer, "answered")
    assert len(server.requests) == calls
    assert second.usage.cache_hits == calls == first.usage.model_calls
    assert second.usage.model_calls == 0
    assert [e.data for e in first.trace if e.event == "route"] == [
        e.data for e in second.trace if e.event == "route"
    ]


def test_another_model_or_prompt_version_is_another_key(
    serve: Serve, tree: Tree, right: Any, tmp_path: Path
) -> None:
    from metatree_routers.llm import Prompts

    server = serve(right)
    cache = MemoryCache()
    calls = []
    for options in (
        {"model": "a"},
        {"model": "b"},
        {"model": "a", "prompts": Prompts(version="mine")},
        {"model": "a"},
    ):
        router = LLMRouter(**options, base_url=server.url, cache=MemoryCache())
        search(QUESTION, tree=tree, router=CachedRouter(router, cache), evidence=False)
        calls.append(len(server.requests))
    assert calls == [3, 6, 9, 9]


def test_a_corrupt_cache_is_a_miss(
    serve: Serve, router_for: RouterFor, tree: Tree, right: Any, tmp_path: Path
) -> None:
    server = serve(right)
    cache = DiskCache(tmp_path)
    search(QUESTION, tree=tree, router=CachedRouter(router_for(server), cache), evidence=False)
    calls = len(server.requests)
    cache.close()
    with sqlite3.connect(tmp_path / "cache.db") as connection:
        connection.execute("UPDATE Cache SET value = x'00ff', filename = NULL, mode = 1")
    connection.close()
    result = search(
        QUESTION, tree=tree, router=CachedRouter(router_for(server), DiskCache(tmp_path)), evidence=False
    )
    assert result.answer == "one hour"
    assert len(server.requests) == 2 * calls


def test_a_full_cache_is_a_miss(tmp_path: Path) -> None:
    (tmp_path / "a-file").write_text("")
    cache = DiskCache(tmp_path / "a-file" / "c")
    cache.set("k", 1)
    assert cache.get("k") is None


def test_the_cache_loads_no_pickles(tmp_path: Path) -> None:
    """Whoever can write to the folder must not be able to run code."""
    import pickle

    class Evil:
        def __reduce__(self) -> Any:
            return (Path.touch, (tmp_path / "owned",))

    cache = DiskCache(tmp_path / "c")
    cache.set("k", "fine")
    assert cache.get("k") == "fine"
    cache.close()
    with sqlite3.connect(tmp_path / "c" / "cache.db") as connection:
        connection.execute("UPDATE Cache SET mode = 4, filename = NULL, value = ?", (pickle.dumps(Evil()),))
    connection.close()
    assert DiskCache(tmp_path / "c").get("k") is None
    assert not (tmp_path / "owned").exists()


# Recording and replay


def test_a_run_is_recorded_and_replayed_without_a_network(
    serve: Serve, router_for: RouterFor, tree: Tree, right: Any, tmp_path: Path
) -> None:
    server = serve(right).then(DROP, status(429, "slow down", retry_after="0.01"), "no JSON")
    path = tmp_path / "run.jsonl"
    key = "sk-very-secret"
    router = router_for(server, api_key=key, transport=Recording(path), extra={"user": "me"})
    first = search(QUESTION, tree=tree, router=router, evidence=False, limits=Limits(model_calls=50))
    text = path.read_text()
    assert key not in text and "authorization" not in text.casefold()
    assert len(text.splitlines()) == len(server.requests)
    calls = len(server.requests)
    replayed = LLMRouter(
        "stub", base_url=server.url, cache=MemoryCache(), transport=Replay(path), extra={"user": "me"}
    )
    second = search(QUESTION, tree=tree, router=replayed, evidence=False, limits=Limits(model_calls=50))
    assert len(server.requests) == calls, "nothing reached the server"
    assert second.answer == first.answer
    assert second.trace == first.trace
    for name in ("tokens_in", "tokens_out", "model_calls", "failed_attempts"):
        assert getattr(second.usage, name) == getattr(first.usage, name)


def test_what_was_not_recorded_stops_the_run(tree: Tree, tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("")
    router = LLMRouter(
        "m", base_url="http://localhost:9/v1", cache=False, transport=Replay(tmp_path / "empty.jsonl")
    )
    result = search(QUESTION, tree=tree, router=router, evidence=False)
    assert result.ended == "failed"
    assert "not in the recording" in result.detail


@pytest.mark.parametrize("text", ["not json", "[]", '{"method": "POST"}'])
@pytest.mark.parametrize("kind", [Replay, ReplayedRouter])
def test_what_is_no_recording_is_said_to_be_none(tmp_path: Path, kind: Any, text: str) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        kind(tmp_path / "missing")
    (tmp_path / "x").write_text(text)
    with pytest.raises(UserError, match="not a recording"):
        kind(tmp_path / "x")


def test_parts_are_recorded_and_replayed(
    serve: Serve, router_for: RouterFor, tree: Tree, right: Any, tmp_path: Path
) -> None:
    server = serve(right).then("no JSON")
    path = tmp_path / "parts.jsonl"
    first = search(
        QUESTION,
        tree=tree,
        router=RecordedRouter(router_for(server, api_key="sk-secret"), path),
        evidence=False,
    )
    assert "sk-secret" not in path.read_text()
    second = search(QUESTION, tree=tree, router=ReplayedRouter(path), evidence=False)
    assert (second.answer, second.trace) == (first.answer, first.trace)


# Spans


@pytest.fixture(scope="module")
def exporter() -> Iterator[Any]:
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    spans = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    trace.set_tracer_provider(provider)
    yield spans
    provider.shutdown()


def test_calls_are_spans_by_the_conventions(
    serve: Serve, router_for: RouterFor, tree: Tree, right: Any, exporter: Any
) -> None:
    exporter.clear()
    server = serve(right).then(status(503))
    search(QUESTION, tree=tree, router=router_for(server), evidence=False)
    spans = exporter.get_finished_spans()
    assert len(spans) == len(server.requests)
    assert {span.name for span in spans} == {"chat stub"}
    failed, first = spans[:2]
    assert failed.attributes["error.type"] == "RouterUnavailable"
    assert failed.status.status_code.name == "ERROR"
    assert first.kind.name == "CLIENT"
    attributes = dict(first.attributes)
    assert attributes["gen_ai.operation.name"] == "chat"
    assert attributes["gen_ai.request.model"] == attributes["gen_ai.response.model"] == "stub"
    assert attributes["gen_ai.usage.input_tokens"] > 0
    assert attributes["gen_ai.response.finish_reasons"] == ("stop",)
    assert attributes["server.address"] == "127.0.0.1"
    assert [span.attributes["metatree.task"] for span in spans[1:]] == ["route", "route", "read"]
    everything = json.dumps([dict(span.attributes) for span in spans], default=str)
    assert "tokens live" not in everything, "no prompts unless they are asked for"


@pytest.mark.parametrize("by", ["argument", "environment"])
def test_contents_are_written_when_switched_on(
    serve: Serve,
    router_for: RouterFor,
    tree: Tree,
    right: Any,
    exporter: Any,
    monkeypatch: pytest.MonkeyPatch,
    by: str,
) -> None:
    exporter.clear()
    if by == "environment":
        monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true")
    options = {"capture_content": True} if by == "argument" else {}
    search(QUESTION, tree=tree, router=router_for(serve(right), **options), evidence=False)
    attributes = dict(exporter.get_finished_spans()[0].attributes)
    assert QUESTION in attributes["gen_ai.input.messages"]
    assert "it is" in attributes["gen_ai.output.messages"]


# Loops and threads


def test_one_router_serves_many_loops_and_leaves_no_connection_open(
    serve: Serve, router_for: RouterFor, tree: Tree, right: Any
) -> None:
    server = serve(right)
    router = router_for(server)
    for _ in range(3):
        assert search(QUESTION, tree=tree, router=router, evidence=False).ended == "answered"
    assert server.connections == 3, "one connection for each loop, used again within it"
    deadline = time.monotonic() + 60
    while server._tasks and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not server._tasks, "all are closed with their loops"


def test_the_limit_on_calls_holds_over_loops_and_threads(
    serve: Serve, router_for: RouterFor, right: Any, request_of: Any
) -> None:
    server = serve(right, latency_s=0.05)
    router = router_for(server, concurrency=3)

    async def several() -> None:
        await asyncio.gather(*(router.route(request_of("Auth", "b")) for _ in range(6)))

    threads = [threading.Thread(target=lambda: asyncio.run(several())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(server.requests) == 24
    assert server.most_at_once == 3


def test_searches_run_side_by_side_on_one_loop(
    serve: Serve, router_for: RouterFor, tree: Tree, right: Any
) -> None:
    server = serve(right, latency_s=1.0)
    router = router_for(server)

    async def many() -> list[Any]:
        return await asyncio.gather(
            *(asearch(QUESTION, tree=tree, router=router, evidence=False, run_id=f"r{n}") for n in range(8))
        )

    assert {result.answer for result in asyncio.run(many())} == {"one hour"}
    assert server.most_at_once >= 4, (
        "one after the other would be 1; a slow machine may not get to all in time"
    )


def test_a_cancelled_call_gives_its_place_back(
    serve: Serve, router_for: RouterFor, right: Any, request_of: Any
) -> None:
    server = serve(right, latency_s=0.2)
    router = router_for(server, concurrency=1)

    async def run() -> None:
        first, second = (asyncio.create_task(router.route(request_of("Auth", "b"))) for _ in range(2))
        await asyncio.sleep(0.05)
        second.cancel()
        first.cancel()
        await asyncio.gather(first, second, return_exceptions=True)
        server.latency_s = 0
        assert (await asyncio.wait_for(router.route(request_of("Auth", "b")), 60)).choice == "id-0"

    asyncio.run(run())


def test_sync_and_async_give_the_same_trace(
    serve: Serve, router_for: RouterFor, tree: Tree, right: Any
) -> None:
    router = router_for(serve(right))
    one = search(QUESTION, tree=tree, router=router, evidence=False)
    other = asyncio.run(asearch(QUESTION, tree=tree, router=router, evidence=False))
    assert one.trace == other.trace
