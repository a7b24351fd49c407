"""A real Chromium for one page at a time: a picture of it, and the text that it shows.

It is driven over its debugging pipe and reaches the web through a proxy of ours. Lost: playwright (165 MB installed,
with a Node.js of its own; its interception does not see all requests, such as those of WebRTC and of workers),
`chromium --screenshot` (no text of the page, no wait for its scripts), a debugging port (open to every process of the
machine).
"""

from __future__ import annotations

import asyncio
import base64
import os
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from metatree._util.process import program
from metatree._util.threads import run_apart
from metatree.errors import FetchFailed, UserError
from metatree_memory_tools.text.descriptions import cut_masked
from metatree_memory_tools.web._browser_process import Pipe, running_browser
from metatree_memory_tools.web._proxy import GuardedProxy
from metatree_memory_tools.web.addresses import AddressRules
from metatree_memory_tools.web.fetch import ROBOTS, FetchLimits, RobotsCache, afetch

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
VARIABLE = "METATREE_CHROMIUM"
"""Names another browser of the family than the first of `NAMES` in the path."""
_MAX_TEXT = 200_000
_MAX_HEIGHT = 8_000
_SETTLE_S = 0.5
_SETTLE_MOST_S = 5.0


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
    for name in [named] if named else NAMES:
        with suppress(FileNotFoundError):
            return program(name)
    if named:
        raise UserError(f"{VARIABLE} names {named!r}, which is no program: a whole path, or a name in PATH")
    raise UserError(f"screenshots need Chromium: install it (apt install chromium), or name it in {VARIABLE}")


def has_chromium() -> bool:
    """Whether there is a browser."""
    try:
        return bool(find_chromium())
    except UserError:
        return False


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
    browser = find_chromium()
    try:
        async with asyncio.timeout(seconds):
            checked = await afetch(url, rules=rules, robots=robots, limits=FetchLimits(seconds=seconds))
            async with (
                GuardedProxy(rules, max_bytes=max_bytes) as proxy,
                running_browser(browser, proxy.port) as pipe,
            ):
                page = await _Page.open(pipe, width, height)
                await page.go(checked.url)
                state = await page.look()
                png, high = await page.picture(width, height, full_page=full_page)
                return Screenshot(
                    url=str(state["url"]),
                    title=str(state["title"]),
                    text=cut_masked(str(state["text"]), _MAX_TEXT),
                    png=png,
                    width=width,
                    height=high,
                    refused=tuple(proxy.refused),
                )
    except TimeoutError as exc:
        raise FetchFailed(f"{url!r} was not shown within {seconds:g} s", url=url) from exc


class _Page:
    """One tab."""

    def __init__(self, pipe: Pipe, session: str) -> None:
        self._pipe = pipe
        self._session = session

    @classmethod
    async def open(cls, pipe: Pipe, width: int, height: int) -> _Page:
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

    async def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the tab."""
        return await self._pipe.call(method, session=self._session, **parameters)

    async def go(self, url: str) -> None:
        """Load a page and wait until it is quiet, at most some seconds after it is loaded."""
        loaded = self._pipe.event("Page.loadEventFired")
        reply = await self.call("Page.navigate", url=url)
        if reply.get("errorText"):
            raise FetchFailed(f"{url!r} cannot be shown: {reply['errorText']}", url=url)
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
        reply = await self.call("Runtime.evaluate", expression=expression, returnByValue=True, timeout=5_000)
        return reply["result"].get("value")

    async def look(self) -> dict[str, Any]:
        """Return where the tab is, its title and its text."""
        text = f"(document.body ? document.body.innerText : '').slice(0, {_MAX_TEXT + 20_000})"
        state = await self.value(f"({{url: location.href, title: document.title, text: {text}}})")
        if not isinstance(state, dict):
            raise FetchFailed("the page cannot be read", url="")
        return state

    async def picture(self, width: int, height: int, *, full_page: bool) -> tuple[bytes, int]:
        """Return the page as PNG, and how high it is."""
        if full_page:
            size = await self.call("Page.getLayoutMetrics")
            height = min(_MAX_HEIGHT, max(height, int(size["cssContentSize"]["height"])))
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        shot = await self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        return base64.b64decode(shot["data"]), height
