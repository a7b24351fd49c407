"""The engine's client: a service that is away is spoken of once, and once when it is back."""

from __future__ import annotations

import asyncio
import logging
from types import SimpleNamespace

import httpx2
import pytest
from metatree_agents.cli.warnings import warnings_shown
from metatree_agents.service.client import ServiceAway, ServiceClient

URL = "http://service.example"


@pytest.fixture
def seconds(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time that the client sees; tests write it."""
    now = [0.0]
    monkeypatch.setattr("metatree_agents.service.client.time", SimpleNamespace(monotonic=lambda: now[0]))
    return now


def test_a_service_that_is_away_is_told_of_once_and_once_when_it_is_back(
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
            for _ in range(2):  # another time is told of again
                up = False
                for at in (0.0, 2.9, 3.0, 3.1, 60.0):
                    seconds[0] += at
                    for route in ("get-new-queries", "get-new-lookup"):
                        with pytest.raises(ServiceAway, match="cannot be reached: nobody there"):
                            await client.call("GET", route)
                up = True
                await client.call("GET", "get-new-queries")
                await client.call("GET", "get-new-lookup")

    with warnings_shown(traceback=False):
        asyncio.run(check())
    away = f"metatree: warning: the service at {URL} cannot be reached: nobody there; trying again"
    back = f"metatree: warning: the service at {URL} answers again"
    assert capsys.readouterr().err.splitlines() == [away, back] * 2


def test_a_short_absence_is_not_told_of(seconds: list[float], caplog: pytest.LogCaptureFixture) -> None:
    statuses = [502, 503, 200, 503, 200]

    async def check() -> None:
        transport = httpx2.MockTransport(lambda _: httpx2.Response(statuses.pop(0), json={}))
        async with ServiceClient(URL, "E", "s", transport=transport) as client:
            while statuses:
                if statuses[0] == 200:
                    await client.call("GET", "get-identity")
                else:
                    with pytest.raises(ServiceAway, match="is busy"):
                        await client.call("GET", "get-identity")
                seconds[0] += 2.0

    with caplog.at_level(logging.INFO, "metatree"):
        asyncio.run(check())
    assert not caplog.records
