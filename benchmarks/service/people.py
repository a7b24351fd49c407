"""People at the web page of a service: each logs in, asks, watches the answer come, reads on, and asks again."""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2

Times = defaultdict[str, list[float]]
"""Seconds of each request, by what was asked for."""
READ: Mapping[str, str] = {
    "/topics": "/topics",
    "/topics, page 5": "/topics?start=120",
    "/topics, words": "/topics?q=parcel",
    "/thread": "/thread?topic={old}",
    "/thread/export": "/thread/export?topic={old}&form=md",
    "/tree": "/tree",
    "/tree, deep": "/tree?id={node}",
    "/node": "/node?id={node}",
    "/find": "/find?q={words}",
    "/memories": "/memories",
    "/account": "/account",
}
"""What a person opens between two questions."""
WORDS: Sequence[str] = (
    *("parcel", "weight", "letter", "stamp", "customs", "box", "tape", "label", "scale", "belt"),
    *("depot", "van", "route", "post", "office"),
)
"""What the tree of the load is written with, and what is looked for in it: three of them, seldom the same."""
ADMIN: Mapping[str, str] = {
    "/admin": "/admin",
    "/admin/users": "/admin/users",
    "/admin/keys": "/admin/keys",
    "/admin/trees": "/admin/trees",
    "/admin/engines": "/admin/engines",
    "/admin/limits": "/admin/limits",
    "/admin/backups": "/admin/backups",
    "/topics of another": "/topics?of=Person_7",
    "/runs": "/runs",
    "/metrics": "/metrics",
}
_CLOSED = (httpx2.ReadError, httpx2.WriteError, httpx2.RemoteProtocolError)
"""What a request on a kept connection ends with that the server closed in the same moment."""
_CSRF = re.compile(r'name="csrf" value="([^"]+)"')


class Person:
    """One browser; counts the seconds of each page as it comes, whole.

    Args:
        base: the address of the server.
        old: topics of this person that are there.
        nodes: ids of nodes that are there.
        think_s: how long a page is read before the next.
    """

    def __init__(
        self,
        base: str,
        name: str,
        secret: str,
        *,
        old: list[str],
        nodes: list[str],
        think_s: float,
        times: Times,
    ) -> None:
        self.name, self._secret = name, secret
        self._old, self._nodes, self._think_s, self._times = old, nodes, think_s, times
        self._client = httpx2.AsyncClient(
            base_url=base, timeout=120, headers={"Sec-Fetch-Site": "same-origin", "Accept": "text/html"}
        )
        self._csrf = ""
        self.waited: list[float] = []
        """Seconds from each question to its answer."""

    async def enter(self) -> None:
        """Log in."""
        said = await self._client.post("/login", data={"name": self.name, "secret": self._secret})
        assert said.status_code == 303, said.text
        self._csrf = _CSRF.findall((await self._client.get("/topics")).text)[0]

    async def close(self) -> None:
        await self._client.aclose()

    async def open(self, name: str, path: str) -> str:
        """Open a page."""
        began = time.perf_counter()
        said = await self._again("GET", path)
        self._times[name].append(time.perf_counter() - began)
        if said.status_code != 200:
            raise RuntimeError(f"{path} was answered {said.status_code}: {said.text[:200]}")
        if self._think_s:
            await asyncio.sleep(random.uniform(0.5, 1.5) * self._think_s)
        return said.text

    async def ask(self, text: str) -> None:
        """Ask, look at the thread, watch the events until the answer is there, and have it shown."""
        asked = time.perf_counter()
        said = await self._again("POST", "/ask", data={"csrf": self._csrf, "question": text})
        self._times["/ask"].append(time.perf_counter() - asked)
        if said.status_code != 303:
            raise RuntimeError(f"/ask was answered {said.status_code}: {said.text[:200]}")
        topic = parse_qs(urlsplit(said.headers["Location"]).query)["topic"][0]
        await self.open("/thread, live", said.headers["Location"])
        given = {"topic": topic, "seq": "1"}
        while not await self._watch(given):
            pass
        self.waited.append(time.perf_counter() - asked)
        await self._part("/thread/question", given)

    async def _watch(self, given: Mapping[str, str]) -> bool:
        """Watch the events of a question; say whether the answer came, or else the connection ended before."""
        steps = 0
        with suppress(*_CLOSED):
            async with self._client.stream("GET", "/thread/events", params=given) as events:
                async for line in events.aiter_lines():
                    if line.startswith("event: step"):
                        steps += 1
                        if steps % 3 == 1:  # the page draws the walk at most a few times a second
                            await self._part("/thread/walk", given)
                    if line.startswith("event: answer"):
                        return True
        self._times["connections made again"].append(0.0)
        return False

    async def _again(self, method: str, path: str, **given: Any) -> httpx2.Response:
        """Send a request as a browser does: once more when the connection that was kept has just been closed."""
        try:
            return await self._client.request(method, path, **given)
        except _CLOSED:
            self._times["connections made again"].append(0.0)
            return await self._client.request(method, path, **given)

    async def _part(self, path: str, given: Mapping[str, str]) -> None:
        began = time.perf_counter()
        said = await self._again("GET", path, params=given)
        self._times[path].append(time.perf_counter() - began)
        assert said.status_code == 200, said.text[:200]

    async def use(self, until: float) -> None:
        """Ask and read in turns until a moment."""
        number = 0
        while time.monotonic() < until:
            number += 1
            await self.ask(f"Question {number} of {self.name}: how is a parcel weighed?")
            for name in random.sample([*READ], 4):
                given = {
                    "old": random.choice(self._old),
                    "node": random.choice(self._nodes),
                    "words": " ".join(random.sample(WORDS, 3)),
                }
                await self.open(name, READ[name].format(**given))
            await self.open("/healthz", "/healthz")

    async def administer(self, until: float) -> None:
        """Look through the pages of administrators until a moment."""
        while time.monotonic() < until:
            for name, path in ADMIN.items():
                await self.open(name, path)
            await self.open("/healthz", "/healthz")

    async def flood(self, questions: int) -> None:
        """Ask many questions at once, and wait for none."""
        for number in range(questions):
            await self._client.post("/ask", data={"csrf": self._csrf, "question": f"Flood {number}"})
