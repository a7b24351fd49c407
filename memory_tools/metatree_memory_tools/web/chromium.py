"""A real Chromium for one page at a time: started, told what to do over its debugging pipe, and gone.

The pipe is Chromium's own way to be driven, two file descriptors with JSON between zero bytes. It needs no package and
no driver, and no other process can listen in, as one could on a debugging port.
"""

from __future__ import annotations

import asyncio
import base64
import fcntl
import json
import os
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

from metatree.errors import FetchFailed, MetatreeError, UserError
from metatree.threads import run_apart
from metatree_memory_tools.web.addresses import AddressRules
from metatree_memory_tools.web.fetch import ROBOTS, FetchLimits, RobotsCache, afetch
from metatree_memory_tools.web.proxy import GuardedProxy

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
VARIABLE = "METATREE_CHROMIUM"
"""Names another browser of the family than the first of `NAMES` in the path."""
_MAX_MESSAGE = 60_000_000
_MAX_TEXT = 200_000
_MAX_HEIGHT = 8_000
_SETTLE_S = 0.5
_SETTLE_MOST_S = 5.0
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Screenshot:
    """A page as a browser showed it."""

    url: str
    """Where the browser was in the end."""
    title: str
    text: str
    """What the page showed as text, after its scripts had run."""
    png: bytes
    width: int
    height: int
    refused: tuple[str, ...]
    """What the page asked for and the address rules refused, with the reasons."""


def find_chromium() -> str:
    """Return the path of a browser.

    Raises:
        UserError: there is none; the message says what to install.
    """
    named = os.environ.get(VARIABLE)
    if named:
        found = shutil.which(named)
        if found is None:
            raise UserError(f"{VARIABLE} names {named!r}, which is no program")
        return found
    for name in NAMES:
        if found := shutil.which(name):
            return found
    raise UserError(f"screenshots need Chromium: install it (apt install chromium), or name it in {VARIABLE}")


def has_chromium() -> bool:
    """Whether there is a browser."""
    return any(shutil.which(name) for name in (os.environ.get(VARIABLE) or "", *NAMES) if name)


def take_screenshot(url: str, **options: Any) -> Screenshot:
    """Do what `atake_screenshot` does, and wait for it."""
    return run_apart(lambda: atake_screenshot(url, **options))


async def atake_screenshot(
    url: str,
    *,
    rules: AddressRules | None = None,
    width: int = 1280,
    height: int = 900,
    full_page: bool = True,
    seconds: float = 30.0,
    robots: RobotsCache | None = ROBOTS,
    max_bytes: int = 50_000_000,
) -> Screenshot:
    """Open a page in a fresh browser and return a picture and the text of it.

    The page is fetched once before, so that address rules, redirects and `robots.txt` are those of every fetch; what
    the browser then asks for goes through a proxy with the same rules.

    Args:
        url: http or https.
        rules: what may be reached; None for public addresses alone.
        width, height: of the window, in pixels.
        full_page: whether the picture goes down to the end of the page, at most 8,000 pixels.
        seconds: for all of it.
        robots: None to fetch whatever `robots.txt` says.
        max_bytes: of everything that the page asks for.

    Raises:
        RefusedAddress: the page may not be fetched.
        FetchFailed: it cannot be fetched or shown.
        UserError: there is no browser.
    """
    rules = rules or AddressRules()
    program = find_chromium()
    try:
        async with asyncio.timeout(seconds):
            checked = await afetch(url, rules=rules, robots=robots, limits=FetchLimits(seconds=seconds))
            async with (
                GuardedProxy(rules, max_bytes=max_bytes) as proxy,
                _browser(program, proxy.port) as pipe,
            ):
                page = await _Page.open(pipe, width, height)
                await page.go(checked.url)
                said = await page.look()
                png, high = await page.picture(width, height, full_page=full_page)
                return Screenshot(
                    url=str(said["url"]),
                    title=str(said["title"]),
                    text=str(said["text"])[:_MAX_TEXT],
                    png=png,
                    width=width,
                    height=high,
                    refused=tuple(proxy.refused),
                )
    except TimeoutError as exc:
        raise FetchFailed(f"{url!r} was not shown within {seconds:g} s", url=url) from exc


class _Page:
    """One tab."""

    def __init__(self, pipe: _Pipe, session: str) -> None:
        self._pipe = pipe
        self._session = session

    @classmethod
    async def open(cls, pipe: _Pipe, width: int, height: int) -> _Page:
        """Open an empty tab of a size; downloads are refused."""
        await pipe.call("Browser.setDownloadBehavior", behavior="deny")
        target = await pipe.call("Target.createTarget", url="about:blank")
        attached = await pipe.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        page = cls(pipe, attached["sessionId"])
        await page.call("Page.enable")
        await page.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        return page

    async def call(self, method: str, **given: Any) -> dict[str, Any]:
        """Call a method of the tab."""
        return await self._pipe.call(method, session=self._session, **given)

    async def go(self, url: str) -> None:
        """Load a page and wait until it is quiet, at most some seconds after it is loaded."""
        loaded = self._pipe.event("Page.loadEventFired")
        went = await self.call("Page.navigate", url=url)
        if went.get("errorText"):
            raise FetchFailed(f"{url!r} cannot be shown: {went['errorText']}", url=url)
        await loaded
        before, steps = -1, int(_SETTLE_MOST_S / _SETTLE_S)
        for _ in range(steps):  # scripts that fill the page do so after it is loaded
            await asyncio.sleep(_SETTLE_S)
            size = int(await self.value("document.documentElement.outerHTML.length"))
            if size == before:
                return
            before = size

    async def value(self, expression: str) -> Any:
        """Return what an expression gives in the page."""
        said = await self.call("Runtime.evaluate", expression=expression, returnByValue=True, timeout=5_000)
        return said["result"].get("value")

    async def look(self) -> dict[str, Any]:
        """Return where the tab is, its title and its text."""
        text = f"(document.body ? document.body.innerText : '').slice(0, {_MAX_TEXT})"
        found = await self.value(f"({{url: location.href, title: document.title, text: {text}}})")
        if not isinstance(found, dict):
            raise FetchFailed("the page cannot be read", url="")
        return found

    async def picture(self, width: int, height: int, *, full_page: bool) -> tuple[bytes, int]:
        """Return the page as PNG, and how high it is."""
        if full_page:
            size = await self.call("Page.getLayoutMetrics")
            height = min(_MAX_HEIGHT, max(height, int(size["cssContentSize"]["height"])))
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        shot = await self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        return base64.b64decode(shot["data"]), height


class _Pipe:
    """Calls and events of a browser."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._calls: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._events: dict[str, list[asyncio.Future[None]]] = {}
        self._last = 0

    async def call(self, method: str, *, session: str | None = None, **given: Any) -> dict[str, Any]:
        """Call a method and return what it gives.

        Raises:
            FetchFailed: the browser says that it cannot, or is gone.
        """
        self._last += 1
        message: dict[str, Any] = {"id": self._last, "method": method, "params": given}
        if session is not None:
            message["sessionId"] = session
        waiting = self._calls[self._last] = asyncio.get_running_loop().create_future()
        self._writer.write(json.dumps(message).encode() + b"\0")
        await self._writer.drain()
        said = await waiting
        if "error" in said:
            raise FetchFailed(f"the browser cannot do {method}: {said['error'].get('message')}", url="")
        result: dict[str, Any] = said.get("result", {})
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
                said = json.loads((await self._reader.readuntil(b"\0"))[:-1])
                if "id" in said:
                    waiting = self._calls.pop(said["id"], None)
                    if waiting is not None and not waiting.done():
                        waiting.set_result(said)
                for event in self._events.pop(said.get("method", ""), ()):
                    if not event.done():
                        event.set_result(None)
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError, ValueError):
            pass
        gone = FetchFailed("the browser has stopped", url="")
        pending: list[asyncio.Future[Any]] = [*self._calls.values()]
        pending += [event for events in self._events.values() for event in events]
        for future in pending:
            if not future.done():
                future.set_exception(gone)
                future.exception()  # nobody may be waiting for it


@asynccontextmanager
async def _browser(program: str, proxy_port: int) -> AsyncIterator[_Pipe]:
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
    pipe = _Pipe(reader, asyncio.StreamWriter(writing, flow, None, loop))
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

    Not `subprocess`, which cannot give a child descriptors by number except through code between fork and exec.
    """
    # Out of the way first, so that neither of the two is overwritten by the other's place.
    high = [fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, 10) for number in (commands, answers)]
    environment = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL", "TZ") if name in os.environ}
    environment |= {"HOME": home, "TMPDIR": home}
    nothing = os.open(os.devnull, os.O_RDWR)
    try:
        actions = [(os.POSIX_SPAWN_DUP2, nothing, number) for number in (0, 1, 2)]
        actions += [(os.POSIX_SPAWN_DUP2, number, 3 + place) for place, number in enumerate(high)]
        return os.posix_spawn(arguments[0], list(arguments), environment, file_actions=actions, setpgroup=0)
    finally:
        for number in (nothing, *high):
            os.close(number)


def _end(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    with suppress(ChildProcessError):
        os.waitpid(pid, 0)
