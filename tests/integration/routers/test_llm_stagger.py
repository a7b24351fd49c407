"""Calls that begin together: each makes and writes its request before the next one is made."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from aiohttp.http_writer import StreamWriter
from metatree_routers.llm import LLMRouter

from metatree import RouteRequest
from metatree.errors import TransientError
from metatree.testing._model_server import ModelServer

pytestmark = pytest.mark.integration
Serve = Callable[..., ModelServer]
RouterFor = Callable[..., LLMRouter]
MANY = 12
RIGHT = {"reason": "r", "choice": "A", "ruled_out": []}


def test_requests_are_made_and_written_one_after_the_other(
    serve: Serve, router_for: RouterFor, request_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    log: list[str] = []
    router = router_for(serve(lambda _: RIGHT, latency_s=0.05))
    body, write_eof = router.connection._body, StreamWriter.write_eof

    async def written(self: StreamWriter, chunk: bytes = b"") -> None:
        await write_eof(self, chunk)
        log.append("written")

    def making(*args: Any) -> dict[str, Any]:
        log.append("made")
        return body(*args)

    monkeypatch.setattr(StreamWriter, "write_eof", written)
    monkeypatch.setattr(router.connection, "_body", making)

    async def asked(request: RouteRequest) -> str | None:
        found = await router.route(request)
        log.append("answered")
        return found.choice

    async def rounds() -> AsyncIterator[list[str | None]]:
        request = request_of("tokens.py", "login.py")
        while True:
            log.clear()
            yield await asyncio.gather(*(asked(request) for _ in range(MANY)))

    async def until_all_are_connected() -> None:
        """A call that opens a connection lets the next one go before it is written: later rounds open none."""
        number = 0
        async for found in rounds():
            assert found == ["id-0"] * MANY
            number += 1
            requests = [what for what in log if what != "answered"]
            if (requests == ["made", "written"] * MANY and log[:4] == requests[:4]) or number == 6:
                break

    asyncio.run(until_all_are_connected())
    assert [what for what in log if what != "answered"] == ["made", "written"] * MANY
    assert log[:4] == ["made", "written"] * 2, "the second call did not wait for the answer to the first"


def test_a_call_that_is_cancelled_or_fails_gives_its_turn_back(
    router_for: RouterFor, request_of: Any
) -> None:
    request = request_of("tokens.py", "login.py")

    async def cancelled(router: LLMRouter) -> str | None:
        calls = [asyncio.create_task(router.route(request)) for _ in range(MANY)]
        for call in calls[:-1]:
            await asyncio.sleep(0)
            call.cancel()
        return (await calls[-1]).choice

    async def failed(router: LLMRouter) -> None:
        for _ in range(2):
            with pytest.raises(TransientError):
                await asyncio.wait_for(router.route(request), 20)

    with ModelServer(lambda _: RIGHT) as server:
        router = router_for(server)
        assert asyncio.run(cancelled(router)) == "id-0"
    asyncio.run(failed(router))
