"""Blocking work in threads of its own: a coroutine for callers without a loop, a function for a loop that goes on.

What blocks, or computes for long, runs on loops in threads of ours (`run_apart`, `side_loop`, `run_beside`), never on
the loop of a caller.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
import weakref
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

T = TypeVar("T")
P = ParamSpec("P")
S = TypeVar("S")

_gave_up: contextvars.ContextVar[threading.Event | None] = contextvars.ContextVar(
    "metatree_gave_up", default=None
)
"""Set when the caller of this work has cancelled it."""
_PUT_AWAY_S = 1.0
"""What a coroutine that was cancelled may take to put its things away."""


class _Thread(threading.local):
    ours = False
    """Whether this thread was made here to run a loop, so that it may block."""


_thread = _Thread()
_side_loops: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.AbstractEventLoop] = (
    weakref.WeakKeyDictionary()
)


def check_cancelled() -> None:
    """End work that computes for long, when its caller has cancelled it; its loop cannot say so before it returns.

    Raises:
        asyncio.CancelledError: nobody waits for it any more.
    """
    gave_up = _gave_up.get()
    if gave_up is not None and gave_up.is_set():
        raise asyncio.CancelledError


def _context() -> tuple[contextvars.Context, threading.Event]:
    """Return the caller's context variables for work of its own, and what to set when it is cancelled."""
    context, gave_up = contextvars.copy_context(), threading.Event()
    context.run(_gave_up.set, gave_up)
    return context, gave_up


def run_apart(make: Callable[[], Awaitable[T]]) -> T:
    """Run a coroutine to its end on a loop of its own in a fresh thread, with the caller's context variables.

    An interrupt of the caller (Ctrl-C) cancels it, waits until it has stopped, and goes on upwards.
    """
    context, gave_up = _context()
    result: list[T] = []
    failure: list[BaseException] = []
    loop = asyncio.new_event_loop()
    task: list[asyncio.Future[T]] = []

    async def awaited() -> T:
        return await make()

    def work() -> None:
        asyncio.set_event_loop(loop)
        _thread.ours = True
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
        gave_up.set()
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
    caller_loop = asyncio.get_running_loop()
    started: asyncio.Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[T]]] = caller_loop.create_future()

    async def awaited() -> T:
        return await make()

    async def inside() -> T:
        task = asyncio.create_task(awaited())
        work_loop = asyncio.get_running_loop()
        caller_loop.call_soon_threadsafe(started.set_result, (work_loop, task))
        return await task

    ended = asyncio.ensure_future(in_thread(lambda: _outcome(inside)))
    try:
        await asyncio.wait({ended})
    except asyncio.CancelledError:
        work_loop, task = await started
        with suppress(RuntimeError):  # it has just ended by itself
            work_loop.call_soon_threadsafe(task.cancel)
        await asyncio.wait({ended})
        raise
    result, failure = ended.result()
    if failure is not None:
        raise failure
    return cast(T, result)


def _outcome(make: Callable[[], Coroutine[Any, Any, T]]) -> tuple[T | None, BaseException | None]:
    _thread.ours = True
    try:
        return asyncio.run(make()), None
    except BaseException as exc:
        return None, exc


def side_loop() -> asyncio.AbstractEventLoop:
    """Return the loop, in a thread of its own, where work that blocks goes beside the running loop.

    It is made when it is first asked for, and ends when the running loop is gone. In a thread of ours it is the
    running loop itself. Lost: a thread and a loop for each piece of work, three open files each.
    """
    current = asyncio.get_running_loop()
    if _thread.ours:
        return current
    loop = _side_loops.get(current)
    if loop is None:
        loop = _side_loops[current] = asyncio.new_event_loop()
        threading.Thread(target=_serve, args=(loop,), name="metatree-search", daemon=True).start()
        weakref.finalize(current, loop.call_soon_threadsafe, loop.stop)
    return loop


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    _thread.ours = True
    try:
        loop.run_forever()
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
    finally:
        loop.close()


async def run_on(work_loop: asyncio.AbstractEventLoop, make: Callable[[], Awaitable[T]]) -> T:
    """Run a coroutine to its end on the loop of another thread, with the caller's context variables.

    When this is cancelled, the coroutine is cancelled too, and has stopped before this returns.
    """
    caller_loop = asyncio.get_running_loop()
    if work_loop is caller_loop:
        return await make()
    context, gave_up = _context()
    call = _Call(caller_loop, work_loop, make, context)
    work_loop.call_soon_threadsafe(call.start)
    try:
        await call.ended
    except asyncio.CancelledError:
        gave_up.set()
        if not call.reported:
            call.ended = caller_loop.create_future()
            with suppress(RuntimeError):  # the loop is closed
                work_loop.call_soon_threadsafe(call.cancel)
                await call.ended
        raise
    if call.failure is not None:
        raise call.failure
    return cast(T, call.result)


class _Call:
    """A coroutine that one loop awaits and another runs. A task and a future for each would cost twice the time."""

    __slots__ = (
        "caller_loop",
        "context",
        "ended",
        "failure",
        "make",
        "reported",
        "result",
        "started",
        "task",
        "work_loop",
    )

    def __init__(
        self,
        caller_loop: asyncio.AbstractEventLoop,
        work_loop: asyncio.AbstractEventLoop,
        make: Callable[[], Awaitable[Any]],
        context: contextvars.Context,
    ) -> None:
        self.caller_loop, self.work_loop, self.make, self.context = caller_loop, work_loop, make, context
        self.ended: asyncio.Future[None] = caller_loop.create_future()
        self.task: asyncio.Task[None] | None = None
        self.started = self.reported = False
        self.result: Any = None
        self.failure: BaseException | None = None

    def start(self) -> None:
        self.task = self.work_loop.create_task(self.run(), context=self.context)

    async def run(self) -> None:
        self.started = True
        try:
            self.result = await self.make()
        except BaseException as exc:
            self.failure = exc
        self.report()

    def cancel(self) -> None:
        if self.task is not None:
            self.task.cancel()
            if not self.started:  # it never will be
                self.failure = asyncio.CancelledError()
                self.report()

    def report(self) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits
            self.caller_loop.call_soon_threadsafe(self.settle)

    def settle(self) -> None:
        self.reported = True
        if not self.ended.done():
            self.ended.set_result(None)


def off_loop(
    function: Callable[Concatenate[S, P], T],
) -> Callable[Concatenate[S, P], Coroutine[Any, Any, T]]:
    """Make a coroutine method of a method that computes: where a caller's loop awaits it, it runs in a thread."""

    @wraps(function)
    async def called(self: S, /, *args: P.args, **given: P.kwargs) -> T:
        if _thread.ours:
            return function(self, *args, **given)
        return await in_thread(lambda: function(self, *args, **given))

    return called
