"""What people see of a search, of what they said and of each other, over real HTTP."""

from __future__ import annotations

import asyncio
import html
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import requests
from metatree_agents.service.engine._origins import with_origins
from metatree_agents.service.engine.client import ServiceClient
from metatree_agents.service.engine.engine import Engine
from metatree_agents.service.http import events
from metatree_memory_tools import build_tree

from metatree import Node, Tree
from metatree.notes.notes import memories

from .conftest import SECRETS, Served
from .test_engine import working
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


# what an answer is from

HANDBOOK = {
    "holidays.md": "# Holidays\n\nEverybody has 28 days of holiday a year. Up to five days may be carried over into the next"
    " year; they must be taken by 31 March.\n\n## Sick leave\n\nWhoever is ill tells their team by nine o'clock.\n",
    "oncall.md": "# Who is on call\n\nMonday to Wednesday: Ines Ferro. Thursday to Sunday: Tom Berg.\n\n"
    "Who is on call answers within 15 minutes. A night with a call gives half a day off.\n",
}


@pytest.fixture
def handbook(tmp_path: Path) -> Iterator[Tree]:
    folder = tmp_path / "handbook"
    folder.mkdir()
    for name, text in HANDBOOK.items():
        (folder / name).write_text(text)
    with build_tree(folder) as made:
        yield made


def test_a_promoted_answer_keeps_the_lines_that_it_is_from(serve: Serve, handbook: Tree) -> None:
    service = serve(memory=handbook, answer_timeout_s=30.0, claim_timeout_s=5.0)
    user = entered(service, "User_1")
    with working(service, handbook):
        topic = asked(user, "How many days may be carried over?")
        first = service.user.get("check-query", Topic=topic, Seq="1").json()
        (source,) = first["Sources"]
        assert source["Place"] == "holidays.md" and source["Lines"] == [3, 3]
        promote = buttons(user.get(f"/thread?topic={topic}").text, "/recommend")[0]
        assert user.post("/recommend", promote).status_code == 303
    learned(service, handbook)
    (memory,) = memories(handbook)
    with working(service, handbook):
        topic = asked(user, "How many days may be carried over, and how?")
        sources = service.user.get("check-query", Topic=topic, Seq="1").json()["Sources"]
    assert [each["Number"] for each in sources] == [1, 2] and sources[1]["Node"] == memory.id
    (file,) = [each for each in sources if each["Place"] == "holidays.md"]
    assert (file["Lines"], file["SaidBy"], file["Number"]) == ([3, 3], "", 1)
    page = words(user.get(f"/thread?topic={topic}").text)
    assert "holidays.md, line 3" in page and "said by User_1" in page
    assert "Promote Answer in How many days may be carried over?" in page and "((" not in page
    # Where the file says it no longer, it is no source any more.
    assert len(with_origins(handbook, [{"Node": memory.id, "Number": 1}])) == 2
    handbook.update(replace(handbook.get(memory.id), attributes={"from": [{"node": file["Node"], "quote": "gone"}]}))
    assert with_origins(handbook, [{"Node": memory.id, "Number": 1}]) == [{"Node": memory.id, "Number": 1}]


def test_a_memory_names_no_topic_that_is_not_the_readers(service: Served) -> None:
    one, two = entered(service, "User_1"), entered(service, "User_2")
    secret = asked(one, "Is Bea pregnant?")
    said = f"said by User_1 on 2026-11-24 (Make Correction, topic {secret})"
    for browser in (one, two):
        topic = asked(browser, "How many watts?")
        sources = [{"Node": "m", "Title": "A memory", "Quote": ANSWER, "Number": 1, "SaidBy": said}]
        service.engine.answer("How many watts?", ANSWER, topic=topic, Sources=sources, End="answered")
        page = browser.get(f"/thread?topic={topic}").text
        assert "said by User_1 on 2026-11-24: Make Correction" in words(page)
        assert (secret in page) is (browser is one) and ("Is Bea pregnant?" in page) is (browser is one)


def test_a_short_section_comes_whole(serve: Serve, handbook: Tree) -> None:
    service = serve(memory=handbook, answer_timeout_s=30.0, claim_timeout_s=5.0)
    with working(service, handbook):
        topic = asked(entered(service, "User_1"), "Which colour has the telephone of who is on call?")
        found = service.user.get("check-query", Topic=topic, Seq="1").json()
    assert found["End"] == "closest"
    (close,) = [each for each in found["Closest"] if each["Place"] == "oncall.md"]
    assert "Tom Berg" in close["Quote"] and "half a day off" in close["Quote"] and close["Lines"] == [1, 5]


def test_a_question_without_words_of_its_own_shows_what_was_quoted_before(serve: Serve, handbook: Tree) -> None:
    service = serve(memory=handbook, answer_timeout_s=30.0, claim_timeout_s=5.0)
    user = entered(service, "User_1")
    with working(service, handbook):
        topic = asked(user, "How many days may be carried over?")
        user.send("/ask", question="and when does that end?", topic=topic)
        service.user.get("check-query", Topic=topic, Seq="1")
        found = service.user.get("check-query", Topic=topic, Seq="2").json()
    if found["End"] != "answered":
        assert found["End"] == "closest"
    assert "31 March" in str([found["Answer"], found["Closest"]])
