"""Calls that begin together: each makes and writes its request before the next one is made."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from metatree_routers.llm import LLMRouter
from metatree_routers.llm.turns import Turn

from metatree.errors import TransientError
from metatree.testing_server import ModelServer

pytestmark = pytest.mark.integration
Serve = Callable[..., ModelServer]
RouterFor = Callable[..., LLMRouter]
MANY = 12
RIGHT = {"reason": "r", "choice": "A", "ruled_out": []}


def test_requests_are_made_and_written_one_after_the_other(
    serve: Serve, router_for: RouterFor, request_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    log: list[str] = []
    trace, router = Turn.trace, router_for(serve(lambda _: RIGHT, latency_s=0.05))
    body = router.connection._body

    async def traced(self: Turn, event: str, info: object) -> None:
        if event.endswith("send_request_body.complete"):
            log.append("written")
        await trace(self, event, info)

    def making(*args: Any) -> dict[str, Any]:
        log.append("made")
        return body(*args)

    monkeypatch.setattr(Turn, "trace", traced)
    monkeypatch.setattr(router.connection, "_body", making)

    async def twice() -> list[str | None]:
        request = request_of("tokens.py", "login.py")
        await asyncio.gather(*(router.route(request) for _ in range(MANY)))  # opens the connections
        log.clear()
        found = await asyncio.gather(*(router.route(request) for _ in range(MANY)))
        return [one.choice for one in found]

    assert asyncio.run(twice()) == ["id-0"] * MANY
    assert log == ["made", "written"] * MANY


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
