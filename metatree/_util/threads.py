"""Blocking work in threads of its own: a coroutine for callers without a loop, a function for a loop that goes on."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any, TypeVar, cast

T = TypeVar("T")

_PUT_AWAY_S = 1.0
"""What a coroutine that was cancelled may take to put its things away."""


def run_apart(make: Callable[[], Awaitable[T]]) -> T:
    """Run a coroutine to its end on a loop of its own in a fresh thread, with the caller's context variables.

    An interrupt of the caller (Ctrl-C) cancels it, waits until it has stopped, and goes on upwards.
    """
    context = contextvars.copy_context()
    result: list[T] = []
    failure: list[BaseException] = []
    loop = asyncio.new_event_loop()
    task: list[asyncio.Future[T]] = []

    async def awaited() -> T:
        return await make()

    def work() -> None:
        asyncio.set_event_loop(loop)
        try:
            task.append(loop.create_task(awaited(), context=context))
            result.append(loop.run_until_complete(task[0]))
        except BaseException as exc:
            failure.append(exc)
        finally:
            try:
                loop.run_until_complete(loop.shutdown_asyncgens())
                loop.run_until_complete(loop.shutdown_default_executor())
            finally:
                loop.close()
                done.set()

    # Not Thread.join: before 3.13 it takes a thread for ended when an interrupt comes while it waits, and returns at
    # once when it is called again (its mending of https://bugs.python.org/issue45274 asks whether the lock is held).
    done = threading.Event()
    threading.Thread(target=work, name="metatree-search", daemon=True).start()
    try:
        done.wait()
    except BaseException:
        with suppress(RuntimeError):  # it has just ended by itself
            loop.call_soon_threadsafe(lambda: task and task[0].cancel())
        done.wait()
        raise
    if failure:
        raise failure[0]
    return result[0]


async def in_thread(function: Callable[..., T], /, **given: Any) -> T:
    """Call a blocking function in a thread of its own, with the caller's context variables.

    When this is cancelled, or times out, nobody waits for the thread any more, not even at the end of the process;
    `asyncio.to_thread` would, for as long as the function blocks.

    Raises:
        RuntimeError: the function raised something that is no `Exception`, such as `SystemExit`.
    """
    loop = asyncio.get_running_loop()
    settled: asyncio.Future[T] = loop.create_future()
    context = contextvars.copy_context()

    def settle(result: Any, error: Exception | None) -> None:
        if settled.done():
            return
        if error is None:
            settled.set_result(result)
        else:
            settled.set_exception(error)

    def work() -> None:
        result: Any = None
        error: Exception | None = None
        try:
            result = context.run(function, **given)
        except BaseException as exc:
            error = exc if isinstance(exc, Exception) else RuntimeError(f"{type(exc).__name__}: {exc}")
            if isinstance(exc, StopIteration):  # a future refuses it
                error = RuntimeError("StopIteration")
        with suppress(RuntimeError):  # the loop is closed: nobody waits
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=work, name="metatree-tool", daemon=True).start()
    return await settled


async def called(function: Callable[..., Any], given: Mapping[str, Any]) -> Any:
    """Call a coroutine function on this loop, and any other in a thread of its own; return what comes of it."""
    if inspect.iscoroutinefunction(function):
        return await function(**given)
    result = await in_thread(function, **given)
    return await result if inspect.isawaitable(result) else result


class GaveUp(Exception):
    """What was awaited did not come in time."""


async def within(make: Callable[[], Awaitable[T]], seconds: float) -> T:
    """Await somebody else's coroutine for at most so long, on this loop.

    One that is out of time is cancelled and has a moment to put its things away; nobody waits for one that goes on.

    Raises:
        GaveUp: the time is over.
        RuntimeError: it raised something that is no `Exception`, such as `SystemExit`, which would end the loop.
    """

    async def guarded() -> T:
        try:
            return await make()
        except Exception:
            raise
        except BaseException as exc:
            if task.cancelling() and isinstance(exc, asyncio.CancelledError | GeneratorExit):
                raise
            raise RuntimeError(f"{type(exc).__name__}: {exc}") from exc

    task = asyncio.ensure_future(guarded())
    try:
        await asyncio.wait({task}, timeout=seconds)
        if task.done():
            return task.result()
        raise GaveUp
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait({task}, timeout=_PUT_AWAY_S)


async def run_beside(make: Callable[[], Awaitable[T]]) -> T:
    """Run a coroutine to its end on a loop of its own in a fresh thread, while this loop goes on.

    For work that computes: on the loop of a server it would make everybody wait. When this is cancelled, the coroutine
    is cancelled too, and has stopped before this returns.
    """
    here = asyncio.get_running_loop()
    begun: asyncio.Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[T]]] = here.create_future()

    async def awaited() -> T:
        return await make()

    async def inside() -> T:
        task = asyncio.create_task(awaited())
        there = asyncio.get_running_loop()
        here.call_soon_threadsafe(begun.set_result, (there, task))
        return await task

    ended = asyncio.ensure_future(in_thread(lambda: _outcome(inside)))
    try:
        await asyncio.wait({ended})
    except asyncio.CancelledError:
        there, task = await begun
        with suppress(RuntimeError):  # it has just ended by itself
            there.call_soon_threadsafe(task.cancel)
        await asyncio.wait({ended})
        raise
    result, failure = ended.result()
    if failure is not None:
        raise failure
    return cast(T, result)


def _outcome(make: Callable[[], Coroutine[Any, Any, T]]) -> tuple[T | None, BaseException | None]:
    try:
        return asyncio.run(make()), None
    except BaseException as exc:
        return None, exc
