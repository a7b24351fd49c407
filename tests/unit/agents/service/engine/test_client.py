"""The engine's client: a service that is away is spoken of once, and once when it is back."""

from __future__ import annotations

import asyncio
import logging
from email.utils import formatdate
from types import SimpleNamespace

import httpx2
import pytest
from metatree_agents.cli._errors import show_warnings
from metatree_agents.service.accounts.nonces import WINDOW_S, end_of
from metatree_agents.service.engine.client import ServiceAway, ServiceClient, WrongCredentials

URL = "http://service.example"


@pytest.fixture
def seconds(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time that the client sees; tests write it."""
    now = [0.0]
    clock = SimpleNamespace(monotonic=lambda: now[0], time=lambda: now[0])
    monkeypatch.setattr("metatree_agents.service.engine.client.time", clock)
    return now


def test_a_service_that_is_away_is_reported_once_and_once_when_it_is_back(
    seconds: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    up = False

    def answered(_: httpx2.Request) -> httpx2.Response:
        if not up:
            raise httpx2.ConnectError("nobody there")
        return httpx2.Response(200, json={})

    async def check() -> None:
        nonlocal up
        async with ServiceClient(URL, "E", "s", transport=httpx2.MockTransport(answered)) as client:
            for _ in range(2):  # another time is reported again
                up = False
                for at in (0.0, 2.9, 3.0, 3.1, 60.0):
                    seconds[0] += at
                    for route in ("give-progress", "leave"):
                        with pytest.raises(ServiceAway, match="cannot be reached: nobody there"):
                            await client.call("GET", route)
                up = True
                await client.call("POST", "leave")
                await client.call("POST", "leave")

    with show_warnings(traceback=False):
        asyncio.run(check())
    why = "cannot be reached: nobody there; see whether it runs there"
    away = f"metatree: warning: the service at {URL} {why}; trying again"
    back = f"metatree: warning: the service at {URL} answers again"
    assert capsys.readouterr().err.splitlines() == [away, back] * 2


def test_a_short_absence_is_not_reported(seconds: list[float], caplog: pytest.LogCaptureFixture) -> None:
    statuses = [502, 503, 200, 503, 200]

    async def check() -> None:
        transport = httpx2.MockTransport(lambda _: httpx2.Response(statuses.pop(0), json={}))
        async with ServiceClient(URL, "E", "s", transport=transport) as client:
            while statuses:
                if statuses[0] == 200:
                    await client.call("POST", "leave")
                else:
                    with pytest.raises(ServiceAway, match="is busy"):
                        await client.call("POST", "leave")
                seconds[0] += 2.0

    with caplog.at_level(logging.INFO, "metatree"):
        asyncio.run(check())
    assert not caplog.records


@pytest.mark.parametrize("far_s", [-86_400.0, 86_400.0])
def test_a_client_whose_clock_is_wrong_goes_by_that_of_the_service(
    seconds: list[float], far_s: float
) -> None:
    seconds[0] = 1_700_000_000.0
    service_s = seconds[0] + far_s
    asked: list[float] = []

    def answered(request: httpx2.Request) -> httpx2.Response:
        end = end_of(request.url.params["Nonce"])
        assert end is not None
        asked.append(end - WINDOW_S)
        status = 200 if abs(end - WINDOW_S - service_s) <= WINDOW_S else 401
        return httpx2.Response(status, json={}, headers={"Date": formatdate(service_s, usegmt=True)})

    async def check() -> None:
        async with ServiceClient(URL, "E", "s", transport=httpx2.MockTransport(answered)) as client:
            for _ in range(2):
                await client.call("POST", "leave")

    asyncio.run(check())
    assert asked == [seconds[0], service_s, service_s], "the second call knows the time"


def test_a_wrong_secret_is_not_tried_again() -> None:
    asked = 0

    def answered(_: httpx2.Request) -> httpx2.Response:
        nonlocal asked
        asked += 1
        return httpx2.Response(401, json={}, headers={"Date": formatdate(usegmt=True)})

    async def check() -> None:
        async with ServiceClient(URL, "E", "s", transport=httpx2.MockTransport(answered)) as client:
            with pytest.raises(WrongCredentials):
                await client.call("POST", "leave")

    asyncio.run(check())
    assert asked == 1


def test_a_key_is_sent_as_it_is_and_without_a_proof() -> None:
    def answered(request: httpx2.Request) -> httpx2.Response:
        assert request.headers["Authorization"] == "Bearer mtk-abc" and not request.url.params
        return httpx2.Response(200, json={})

    async def check() -> None:
        async with ServiceClient(URL, "E", "mtk-abc", transport=httpx2.MockTransport(answered)) as client:
            await client.call("POST", "leave")

    asyncio.run(check())
