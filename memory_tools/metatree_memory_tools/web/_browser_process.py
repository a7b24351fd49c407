"""A browser's process: started with a profile of its own, driven over its debugging pipe, ended with all that it left.

The pipe is Chromium's own way to be driven, two file descriptors with JSON between zero bytes. It needs no package and
no driver, and no other process can listen in, as one could on a debugging port.
"""

from __future__ import annotations

import asyncio
import errno
import fcntl
import json
import os
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from metatree._util.process import absolute_path
from metatree.errors import FetchFailed, MetatreeError

_MAX_MESSAGE = 60_000_000
_FLAGS = (
    "--headless",
    "--remote-debugging-pipe",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--disable-default-apps",
    "--disable-dev-shm-usage",
    "--disable-breakpad",
    "--deny-permission-prompts",
    "--mute-audio",
    "--hide-scrollbars",
    "--password-store=basic",
    # Nothing may go around the proxy: no loopback exception, no names looked up, no datagrams.
    "--proxy-bypass-list=<-loopback>",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
)


class Pipe:
    """Calls and events of a browser."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._calls: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._events: dict[str, list[asyncio.Future[None]]] = {}
        self._last = 0

    async def call(self, method: str, *, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Call a method and return what it gives.

        Raises:
            FetchFailed: the browser says that it cannot, or is gone.
        """
        self._last += 1
        message: dict[str, Any] = {"id": self._last, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        waiting = self._calls[self._last] = asyncio.get_running_loop().create_future()
        self._writer.write(json.dumps(message).encode() + b"\0")
        await self._writer.drain()
        reply = await waiting
        if "error" in reply:
            raise FetchFailed(f"the browser cannot do {method}: {reply['error'].get('message')}", url="")
        result: dict[str, Any] = reply.get("result", {})
        return result

    def event(self, name: str) -> asyncio.Future[None]:
        """Return what is done when an event comes next."""
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._events.setdefault(name, []).append(waiting)
        return waiting

    async def listen(self) -> None:
        """Take in what the browser says until it is gone."""
        try:
            while True:
                message = json.loads((await self._reader.readuntil(b"\0"))[:-1])
                if "id" in message:
                    waiting = self._calls.pop(message["id"], None)
                    if waiting is not None and not waiting.done():
                        waiting.set_result(message)
                for event in self._events.pop(message.get("method", ""), ()):
                    if not event.done():
                        event.set_result(None)
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError, ValueError):
            pass
        error = FetchFailed("the browser has stopped", url="")
        pending: list[asyncio.Future[Any]] = [*self._calls.values()]
        pending += [event for events in self._events.values() for event in events]
        for future in pending:
            if not future.done():
                future.set_exception(error)
                future.exception()  # nobody may be waiting for it


@asynccontextmanager
async def running_browser(program: str, proxy_port: int) -> AsyncIterator[Pipe]:
    """Start a browser with a profile of its own, and end it with all its processes and files."""
    profile = tempfile.mkdtemp(prefix="metatree-browser-")
    arguments = [
        program,
        *_FLAGS,
        f"--proxy-server=http://127.0.0.1:{proxy_port}",
        f"--user-data-dir={profile}",
    ]
    if os.geteuid() == 0:
        arguments.append("--no-sandbox")  # as root Chromium refuses to start with it
    commands_read, commands = os.pipe()
    answers, answers_write = os.pipe()
    try:
        pid = _spawn([*arguments, "about:blank"], commands_read, answers_write, profile)
    except OSError as exc:
        for number in (commands, answers, commands_read, answers_write):
            os.close(number)
        shutil.rmtree(profile, ignore_errors=True)
        raise MetatreeError(f"{program!r} cannot be started: {exc.strerror}") from exc
    os.close(commands_read)
    os.close(answers_write)
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=_MAX_MESSAGE)
    protocol = asyncio.StreamReaderProtocol(reader)
    reading, _ = await loop.connect_read_pipe(lambda: protocol, os.fdopen(answers, "rb", buffering=0))
    writing, flow = await loop.connect_write_pipe(
        asyncio.streams.FlowControlMixin, os.fdopen(commands, "wb", buffering=0)
    )
    pipe = Pipe(reader, asyncio.StreamWriter(writing, flow, None, loop))
    listening = asyncio.create_task(pipe.listen())
    try:
        yield pipe
    finally:
        listening.cancel()
        with suppress(asyncio.CancelledError):
            await listening
        writing.close()
        reading.close()
        _end(pid)
        shutil.rmtree(profile, ignore_errors=True)


def _spawn(arguments: Sequence[str], commands: int, answers: int, home: str) -> int:
    """Start a program in a process group of its own, with the pipe at descriptors 3 and 4; return its id.

    It is started in `home`: Chromium's loader of Vulkan looks for libraries in the folder `:` of the current one. A
    shell goes there and becomes the program, since `posix_spawn` takes no folder. Not `subprocess`, which cannot give a
    child descriptors by number except through code between fork and exec.

    Raises:
        OSError: it cannot be started.
    """
    if not os.access(arguments[0], os.X_OK):  # the shell would only end
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    arguments = ["/bin/sh", "-c", 'cd -- "$0" && exec "$@"', home, *arguments]
    # Out of the way first, so that neither of the two is overwritten by the other's place.
    high = [fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, 10) for number in (commands, answers)]
    environment = {name: os.environ[name] for name in ("LANG", "LC_ALL", "TZ") if name in os.environ}
    # What the system calls chromium may be a script, which looks for programs.
    environment |= {"PATH": absolute_path(), "HOME": home, "TMPDIR": home}
    nothing = os.open(os.devnull, os.O_RDWR)
    try:
        actions = [(os.POSIX_SPAWN_DUP2, nothing, number) for number in (0, 1, 2)]
        actions += [(os.POSIX_SPAWN_DUP2, number, 3 + place) for place, number in enumerate(high)]
        return os.posix_spawn(arguments[0], arguments, environment, file_actions=actions, setpgroup=0)
    finally:
        for number in (nothing, *high):
            os.close(number)


def _end(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    with suppress(ChildProcessError):
        os.waitpid(pid, 0)
