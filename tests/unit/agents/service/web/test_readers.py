"""The loop waits for short work, and for long work only a moment."""

import asyncio
import threading
import time
from typing import Any

import pytest
from metatree_agents.service.web import _readers
from metatree_agents.service.web._readers import SHORT_S, THREADS, Readers


def test_short_work_is_done_before_anything_else_of_the_loop() -> None:
    async def check() -> None:
        done: list[str] = []
        asyncio.get_running_loop().call_soon(done.append, "another request")

        def work() -> str:
            done.append("work")
            return threading.current_thread().name

        thread = await Readers().read(work)
        assert done == ["work"] and thread.startswith("reader")

    asyncio.run(check())


def test_while_long_work_goes_on_others_have_their_turn() -> None:
    async def check() -> None:
        readers, over = Readers(), threading.Event()
        long = asyncio.ensure_future(readers.read(over.wait, 60))
        await asyncio.sleep(0)
        assert not long.done() and await readers.read(sum, [1, 2]) == 3
        over.set()
        assert await long is True

    asyncio.run(check())


def test_the_loop_does_not_wait_for_what_has_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    def counted(works: list[Any], seconds: float) -> None:
        waits.append(seconds)

    async def check() -> None:
        readers, over = Readers(), threading.Event()
        works = [asyncio.ensure_future(readers.read(over.wait, 60)) for _ in range(THREADS + 50)]
        await asyncio.sleep(0.01)
        over.set()
        assert await asyncio.gather(*works) == [True] * len(works)
        assert await readers.read(sum, [1, 2]) == 3

    monkeypatch.setattr(_readers, "wait", counted)
    asyncio.run(check())
    assert waits == [SHORT_S] * (THREADS + 1), "and for the next one again"


@pytest.mark.parametrize("seconds", [0, 2 * SHORT_S])
def test_what_work_raises_is_raised(seconds: float) -> None:
    def fail() -> None:
        time.sleep(seconds)
        raise KeyError("gone")

    async def check() -> None:
        readers = Readers()
        with pytest.raises(KeyError, match="gone"):
            await readers.read(fail)
        assert await readers.read(sum, [1]) == 1

    asyncio.run(check())
