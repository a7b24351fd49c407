"""Searches that begin together: the loop looks at connections between them."""

from __future__ import annotations

import asyncio

from metatree.searches._stagger import begin


def test_one_begins_when_the_one_before_it_waits() -> None:
    log: list[str] = []

    async def search(name: str) -> None:
        await begin()
        log.append(f"{name} begins")
        asyncio.get_running_loop().call_soon(log.append, f"{name} waits")
        await asyncio.sleep(0.01)

    async def all_at_once() -> None:
        await asyncio.gather(*map(search, "abc"))

    for _ in range(2):  # another loop, another row
        asyncio.run(all_at_once())
    assert log == [f"{name} {what}" for name in "abc" for what in ("begins", "waits")] * 2


def test_one_that_is_cancelled_while_it_waits_for_its_turn_keeps_nobody_out() -> None:
    async def cancelled() -> str:
        await begin()
        second, third = asyncio.create_task(begin()), asyncio.create_task(begin())
        await asyncio.sleep(0)
        second.cancel()
        await third
        return "began"

    assert asyncio.run(asyncio.wait_for(cancelled(), 10)) == "began"
