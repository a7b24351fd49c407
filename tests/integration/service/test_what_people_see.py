"""What people see of a search, of what they said and of each other, over real HTTP."""

from __future__ import annotations

import asyncio
import html
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests
from metatree_agents.service.engine.client import ServiceClient
from metatree_agents.service.engine.engine import Engine
from metatree_agents.service.http import events

from metatree import Node, Tree

from .conftest import SECRETS, Served
from .test_pages import answered, buttons, learned
from .test_web import Browser, asked, entered

pytestmark = pytest.mark.integration
Serve = Callable[..., Served]
ANSWER = "The lamp in the hall has a bulb of nine watts."


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    made = Tree.create(tmp_path / "house.db", title="house")
    made.add(Node(id="hall", title="Hall", content=f"# Lamps\n\n{ANSWER}\n"))
    return made


@pytest.fixture
def service(serve: Serve, tree: Tree) -> Served:
    return serve(memory=tree)


def words(page: str) -> str:
    """Return what a page says, without its tags."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", page)).split())


# how far a search is


@contextmanager
def watching(browser: Browser, topic: str) -> Iterator[Iterator[tuple[str, str]]]:
    """Watch a question: (name, data) of its events as they come."""
    with browser.get(f"/thread/events?topic={topic}&seq=1", stream=True) as answer:
        lines = (line.decode() for line in answer.iter_lines(chunk_size=1))

        def came() -> Iterator[tuple[str, str]]:
            name = ""
            for line in lines:
                if line.startswith("event: "):
                    name = line.removeprefix("event: ")
                elif line.startswith("data: "):
                    yield name, line.removeprefix("data: ")

        yield came()


def test_an_open_thread_learns_who_searches(service: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "BEAT_S", 0.05)
    user = entered(service, "User_1")
    topic = asked(user)
    with watching(user, topic) as came:
        assert next(came) == ("state", '{"Status": "Open", "Engines": false, "Attempts": 0}')
        service.other_engine.get("get-identity")
        assert next(came) == ("state", '{"Status": "Open", "Engines": true, "Attempts": 0}')
        claimed = service.engine.get("get-new-queries").json()
        assert next(came) == ("state", '{"Status": "Pending", "Engines": true, "Attempts": 1}')
        for page in (user.get(f"/thread?topic={topic}").text, user.get("/topics").text):
            assert "being answered" in page and "waiting for an engine" not in page
        assert "An engine (Inference_1) took it just now" in user.get(f"/thread?topic={topic}").text
        admin = words(entered(service, "Admin_1").get("/admin").text)
        assert admin.count("being answered") == 2 and "pending" not in admin
        handed = {"Topic": topic, "Lease": claimed["Lease"]}
        assert service.engine.post("hand-back", handed).status_code == 200
        assert next(came) == ("state", '{"Status": "Open", "Engines": true, "Attempts": 0}')
        for each in (service.engine, service.other_engine):
            assert each.post("leave", {}).status_code == 200
        assert next(came) == ("state", '{"Status": "Open", "Engines": false, "Attempts": 0}')
    assert "Nobody is searching" in user.get(f"/thread?topic={topic}").text
    assert service.user.post("leave", {}).status_code == 403


def test_an_engine_that_is_stopped_is_gone_at_once(service: Served, tree: Tree) -> None:
    async def work() -> None:
        name, (_, secret) = "Inference_1", SECRETS["Inference_1"]
        async with ServiceClient(service.url, name, secret) as client:
            engine = Engine(client, tree)
            working = asyncio.ensure_future(engine.run())
            while "yes" not in words(await asyncio.to_thread(lambda: root.get("/admin/engines").text)):
                await asyncio.sleep(0.05)
            engine.stop()
            await working

    root = entered(service, "Admin_1")
    asyncio.run(work())
    page = root.get("/admin/engines").text
    assert "Nobody is searching" in page and 'data-again="20"' in page
    assert not re.search(r">yes<", page)
    service.engine.get("get-identity")
    assert "Nobody is searching" not in root.get("/admin").text, "it is heard of again"


def test_an_engine_with_a_key_counts_as_soon_as_it_is_back(service: Served) -> None:
    key = {"Authorization": f"Bearer {service.keys['Inference_1']}"}
    root = entered(service, "Admin_1")
    for there in (True, False, True):
        if there:
            assert requests.get(f"{service.url}/api/get-identity", headers=key, timeout=60).ok
        else:
            assert requests.post(f"{service.url}/api/leave", headers=key, json={}, timeout=60).ok
        assert ("Nobody is searching" in root.get("/admin").text) is not there
