"""How a server wants to be asked is found out once, and remembered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from metatree_routers.llm import LLMRouter
from metatree_routers.llm._capabilities import CapabilityDiscovery, Mode, ServerCapabilities
from metatree_routers.llm.errors import CapabilitiesChanged
from metatree_routers.wrappers.disk_cache import DiskCache, MemoryCache

from metatree import Tree, search
from metatree.testing._model_server import ModelRequest, ModelServer, Reply, status

pytestmark = pytest.mark.integration
FINE = {"reason": "fits", "choice": "B", "ruled_out": []}


@pytest.mark.parametrize(
    ("modes", "asked"),
    [
        (("json_schema", "tools", "json"), ["json_schema"]),
        (("tools", "json"), ["json_schema", "tools"]),
        (("json",), ["json_schema", "tools", "json"]),
    ],
)
def test_the_best_mode_that_a_server_has_is_found(
    serve: Callable[..., ModelServer],
    router_for: Callable[..., LLMRouter],
    tree: Tree,
    right_model: Any,
    modes: tuple[str, ...],
    asked: list[str],
) -> None:
    server = serve(right_model("Auth", "tokens.py"), modes=modes)
    result = search("How long do tokens live?", tree=tree, router=router_for(server), evidence=False)
    assert (result.ended, result.answer) == ("answered", "one hour")
    used = [request.mode for request in server.requests]
    assert used[: len(asked)] == asked
    assert set(used[len(asked) :]) <= {asked[-1]}, "found out once"
    assert result.usage.model_calls == len(server.requests), "finding out is counted"


def test_what_was_found_out_is_remembered_on_disk(
    serve: Callable[..., ModelServer], request_of: Callable[..., Any], tmp_path: Path
) -> None:
    server = serve(FINE, modes=("json",))
    request = request_of("a.py", "b.py")

    async def ask(router: LLMRouter) -> None:
        for _ in range(3):
            try:
                await router.route(request)
                return
            except CapabilitiesChanged:
                pass

    asyncio.run(ask(LLMRouter("stub", base_url=server.url)))
    assert len(server.requests) == 3
    asyncio.run(ask(LLMRouter("stub", base_url=server.url)))
    assert [r.mode for r in server.requests[3:]] == ["json"]
    asyncio.run(ask(LLMRouter("other", base_url=server.url)))
    assert [r.mode for r in server.requests[4:]] == ["json_schema", "tools", "json"], "each model for itself"


def test_a_server_that_ignores_the_schema_is_asked_in_another_way(
    serve: Callable[..., ModelServer], router_for: Callable[..., LLMRouter], tree: Tree, right_model: Any
) -> None:
    """It answers prose until it is asked with a tool."""
    model = right_model("Auth", "tokens.py")

    def prose_or_tool(request: ModelRequest) -> Any:
        return model(request) if request.mode == "tools" else "Well, let me think about it."

    server = serve(prose_or_tool)
    result = search("How long do tokens live?", tree=tree, router=router_for(server), evidence=False)
    assert result.ended == "answered"
    assert [r.mode for r in server.requests][:2] == ["json_schema", "tools"]


@pytest.mark.parametrize(
    ("rejection", "field", "value"),
    [
        ("Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead.", "limit",
         "max_completion_tokens"),
        ("Unsupported value: 'temperature' does not support 0.0 with this model.", "temperature", False),
        ("Invalid schema: 'maxLength' is not permitted.", "bounds", False),
    ],
)  # fmt: skip
def test_parameters_that_a_server_rejects_are_left_out(
    serve: Callable[..., ModelServer],
    router_for: Callable[..., LLMRouter],
    request_of: Callable[..., Any],
    rejection: str,
    field: str,
    value: Any,
) -> None:
    server = serve(FINE).then(status(400, rejection))
    router = router_for(server)
    with pytest.raises(CapabilitiesChanged):
        asyncio.run(router.route(request_of("a.py", "b.py")))
    assert asyncio.run(router.route(request_of("a.py", "b.py"))).choice == "id-1"
    assert getattr(router.connection.discovery.current, field) == value
    second = server.requests[1].body
    assert second["response_format"]["type"] == "json_schema"
    if field == "limit":
        assert "max_completion_tokens" in second and "max_tokens" not in second
    elif field == "temperature":
        assert "temperature" not in second
    else:
        assert "maxLength" not in str(second)


def test_a_proven_mode_that_is_rejected_later_is_found_out_anew(
    serve: Callable[..., ModelServer], router_for: Callable[..., LLMRouter], request_of: Callable[..., Any]
) -> None:
    server = serve(FINE)
    router = router_for(server)
    asyncio.run(router.route(request_of("a.py", "b.py")))
    server.modes = frozenset({"tools"})
    with pytest.raises(CapabilitiesChanged):
        asyncio.run(router.route(request_of("a.py", "b.py")))
    assert asyncio.run(router.route(request_of("a.py", "b.py"))).choice == "id-1"
    assert router.connection.discovery.current.mode is Mode.TOOLS


@pytest.mark.parametrize(
    "said",
    [
        'Sure! Here it is:\n```json\n{"reason": "fits", "choice": "B", "ruled_out": []}\n```\nGood luck!',
        '<think>A is {"choice": "A"}? No.</think>{"reason": "fits", "choice": "B", "ruled_out": []}',
        '{"reason": "fits", "choice": "[b]", "ruled_out": "A",}',
        "{'reason': 'fits', 'choice': 'B: b.py', 'ruled_out': None}",
        '{"name": "answer", "arguments": {"choice": "b.py"}}',
        '[{"choice": "B"}]',
    ],
)
def test_answers_with_small_slips_are_read(
    serve: Callable[..., ModelServer],
    router_for: Callable[..., LLMRouter],
    request_of: Callable[..., Any],
    said: str,
) -> None:
    decision = asyncio.run(router_for(serve(said)).route(request_of("a.py", "b.py")))
    assert decision.choice == "id-1"


def test_an_answer_as_text_is_read_where_a_tool_call_was_asked_for(
    serve: Callable[..., ModelServer], request_of: Callable[..., Any]
) -> None:
    server = serve(Reply('The best is {"choice": "B"}', as_text=True), modes=("tools", "json"))
    router = LLMRouter("stub", base_url=server.url, cache=MemoryCache())
    with pytest.raises(CapabilitiesChanged):
        asyncio.run(router.route(request_of("a.py", "b.py")))
    assert asyncio.run(router.route(request_of("a.py", "b.py"))).choice == "id-1"


def test_the_schema_offers_the_labels_and_nothing_else(
    serve: Callable[..., ModelServer], router_for: Callable[..., LLMRouter], request_of: Callable[..., Any]
) -> None:
    server = serve(FINE)
    asyncio.run(router_for(server).route(request_of("a.py", "b.py")))
    sent = server.requests[0].body["response_format"]["json_schema"]
    assert sent["strict"] is True
    assert sent["schema"]["properties"]["choice"]["enum"] == ["A", "B", "none"]
    assert sent["schema"]["properties"]["ruled_out"]["items"] == {"type": "string", "maxLength": 3}
    assert sent["schema"]["additionalProperties"] is False


def test_what_is_remembered_may_be_nonsense() -> None:
    cache = MemoryCache()
    first = CapabilityDiscovery("u", "m", first=ServerCapabilities(), cache=cache)
    first.worked(first.current)
    (key,) = cache._texts
    for nonsense in ({"mode": "telepathy"}, {"mode": "tools", "more": 1}, [1], "x", {}):
        cache.set(key, nonsense)
        assert (
            CapabilityDiscovery("u", "m", first=ServerCapabilities(), cache=cache).current
            == ServerCapabilities()
        )


def test_a_broken_cache_on_disk_is_no_cache(tmp_path: Path) -> None:
    (tmp_path / "cache.db").write_bytes(b"this is no database at all" * 100)
    cache = DiskCache(tmp_path)
    cache.set("k", {"a": 1})
    assert cache.get("k") is None
