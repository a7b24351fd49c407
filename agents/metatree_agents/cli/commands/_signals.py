"""Commands that work until they are told to stop: by Ctrl-C, or a TERM signal."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from metatree_agents.cli import _output as output

T = TypeVar("T")


def run_until_stopped(what: Callable[[asyncio.Event], Coroutine[Any, Any, None]]) -> None:
    """Run a coroutine until it ends, or a signal asks it to stop; a second signal stops it at once."""

    async def run() -> None:
        stop, loop = asyncio.Event(), asyncio.get_running_loop()

        def request_stop() -> None:
            for name in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(name)
            output.note(
                "stopping; what is not answered yet goes back to the queue (Ctrl-C again to stop at once)"
            )
            stop.set()

        for name in (signal.SIGINT, signal.SIGTERM):
            with suppress(NotImplementedError):  # Windows
                loop.add_signal_handler(name, request_stop)
        await what(stop)

    asyncio.run(run())


async def unless_stopped(stop: asyncio.Event, what: Coroutine[Any, Any, T]) -> T | None:
    """Await something that may take long, or give it up and return None when it is time to stop."""
    task, stopped = asyncio.ensure_future(what), asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({task, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return None
    finally:
        stopped.cancel()


async def on_stop(stop: asyncio.Event, what: Callable[[], None]) -> None:
    """Call a function when it is time to stop."""
    await stop.wait()
    what()
