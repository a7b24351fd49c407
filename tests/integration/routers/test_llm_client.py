"""What goes over the wire is what the SDK would send, and what comes back is read as the SDK would read it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import httpx2
import pytest
from metatree_routers.llm import LLMRouter
from metatree_routers.wrappers.disk_cache import MemoryCache

from metatree.testing._model_server import ModelServer, Reply

pytestmark = pytest.mark.integration
Serve = Callable[..., ModelServer]
RouterFor = Callable[..., LLMRouter]
RequestOf = Callable[..., Any]

FINE = {"reason": "fits", "choice": "B", "ruled_out": []}


async def routed(router: LLMRouter, *requests: Any) -> list[str | None]:
    return [(await router.route(request)).choice for request in requests]


def test_later_requests_are_made_as_the_first_one(
    serve: Serve, router_for: RouterFor, request_of: RequestOf
) -> None:
    """The SDK makes the first; address and headers of the others are taken from it."""
    server = serve(FINE)
    short, long = request_of("a.py", "b.py"), request_of("a.py", "b.py", question="Wo ist „ä“? " * 20)
    router = router_for(server, api_key="secret", extra={"seed": 7})
    assert asyncio.run(routed(router, short, long, short)) == ["id-1"] * 3
    first, second, third = server.requests
    assert (first.headers, first.body) == (third.headers, third.body)
    assert second.headers["content-length"] != first.headers["content-length"]
    assert {**second.headers, "content-length": ""} == {**first.headers, "content-length": ""}
    assert "Wo ist „ä“?" in second.user
    assert first.headers["authorization"] == "Bearer secret"


def test_half_a_surrogate_pair_is_sent_as_a_question_mark(
    serve: Serve, router_for: RouterFor, request_of: RequestOf
) -> None:
    server = serve(FINE)
    request = request_of("a.py", "b.py", question="Where is \ud800?")
    assert asyncio.run(routed(router_for(server), request, request)) == ["id-1"] * 2
    assert all("Where is ??" in each.user for each in server.requests)


def test_cookies_of_a_server_are_sent_back(
    serve: Serve, router_for: RouterFor, request_of: RequestOf
) -> None:
    text = json.dumps(FINE)
    server = serve(FINE).then(*(Reply(text, headers={"set-cookie": f"node={n}; Path=/"}) for n in "123"))
    request = request_of("a.py", "b.py")
    asyncio.run(routed(router_for(server), *[request] * 4))
    assert [r.headers.get("cookie") for r in server.requests] == [None, "node=1", "node=2", "node=3"]


def test_what_an_address_asks_for_comes_behind_the_path(request_of: RequestOf) -> None:
    queries: list[str] = []

    def answered(request: httpx2.Request) -> httpx2.Response:
        queries.append(str(request.url))
        message = {"role": "assistant", "content": json.dumps(FINE)}
        return httpx2.Response(200, json={"choices": [{"message": message, "finish_reason": "stop"}]})

    router = LLMRouter(
        "stub",
        base_url="http://model.example/deployments/one/v1?api-version=2026-01-01&space=one",
        cache=MemoryCache(),
        transport=httpx2.MockTransport(answered),
    )
    assert asyncio.run(routed(router, *[request_of("a.py", "b.py")] * 2)) == ["id-1"] * 2
    place = "http://model.example/deployments/one/v1/chat/completions"
    assert queries == [f"{place}?api-version=2026-01-01&space=one"] * 2


def test_fields_of_the_body_may_be_what_the_sdk_can_write(
    serve: Serve, router_for: RouterFor, request_of: RequestOf
) -> None:
    server = serve(FINE)
    router = router_for(server, extra={"metadata": {"at": datetime(2026, 1, 2, tzinfo=UTC)}})
    asyncio.run(routed(router, *[request_of("a.py", "b.py")] * 2))
    assert [r.body["metadata"]["at"] for r in server.requests] == ["2026-01-02T00:00:00+00:00"] * 2


@pytest.mark.parametrize(
    "changed",
    [
        {"id": None, "object": "chat", "created": None},
        {"choices": [{"message": {"content": json.dumps(FINE)}, "finish_reason": "eos"}]},
        {"usage": {"prompt_tokens": "many"}, "choices": [{"message": {"content": json.dumps(FINE)}}]},
        {"choices": [{"message": {"content": json.dumps({**FINE, "reason": "half a pair: \ud83d"})}}]},
    ],
)
def test_completions_that_are_none_to_the_letter_are_read_too(
    serve: Serve, router_for: RouterFor, request_of: RequestOf, changed: dict[str, Any]
) -> None:
    whole = {
        "id": "x",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop",
                "message": {"role": "assistant", "content": json.dumps(FINE)},
            }
        ],
    }
    for kind in ("application/json", "text/plain"):
        server = serve(Reply(raw=json.dumps({**whole, **changed}), headers={"content-type": kind}))
        assert asyncio.run(routed(router_for(server), request_of("a.py", "b.py"))) == ["id-1"]
