"""Searches that are stopped: at once, with what they had found, with their engine free; and how they go on."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import requests
from metatree_agents.service.queue.stopping import Stopping
from metatree_memory_tools import build_tree
from metatree_routers import EmbeddedRouter

from metatree import RouteDecision, RouteRequest, Tree

from .conftest import Client, Served, opened
from .test_engine import FILES, working
from .test_openai import post, topics
from .test_web import Browser

pytestmark = pytest.mark.integration
Serve = Callable[..., Served]
LINES = "How are the lines of an invoice added up?"


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[Tree]:
    for name, text in FILES.items():
        place = tmp_path / "source" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    with build_tree(tmp_path / "source") as made:
        yield made


class StuckOnce:
    """A router that decides, and then hangs at its second decision of the first question."""

    def __init__(self) -> None:
        self.inner, self.calls, self.stuck = EmbeddedRouter(), 0, threading.Event()

    async def route(self, request: RouteRequest) -> RouteDecision:
        self.calls += 1
        if self.calls == 2:
            self.stuck.set()
            await asyncio.sleep(3_600)
        return await self.inner.route(request)


def thread_of(service: Served, topic: str = "T") -> list[dict[str, Any]]:
    said: list[dict[str, Any]] = service.frontend.get("get-topic-thread", Topic=topic).json()
    return said


def stop(client: Client, seq: int = 1, topic: str = "T") -> requests.Response:
    return client.post("stop-query", {"Topic": topic, "Seq": seq})


def test_a_stopped_search_keeps_what_it_found_and_its_engine_is_free(serve: Serve, tree: Tree) -> None:
    service = serve(claim_timeout_s=5.0, answer_timeout_s=30.0)
    service.frontend.ask(LINES)
    router = StuckOnce()
    with working(service, tree, parts={"router": router, "evidence": False}):  # so that it decides twice
        assert router.stuck.wait(30)
        stopped = stop(service.frontend).json()
        assert (stopped["Status"], stopped["End"]) == ("Stopped", "stopped")
        assert stopped["Answer"] == [] and stopped["Think"], "the decision before it hung"
        service.frontend.ask("Weigh a parcel", topic="other")
        other = service.frontend.get("check-query", Topic="other", Seq=1).json()
        assert other["Status"] == "Done", "the only engine is free"
        assert thread_of(service)[0]["Status"] == "Stopped"
        assert service.frontend.post("continue-query", {"Topic": "T", "Seq": 1}).status_code == 200
        went_on = service.frontend.get("check-query", Topic="T", Seq=1).json()
    assert went_on["Status"] == "Done" and "value added tax" in " ".join(went_on["Answer"])
    assert service.frontend.post("continue-query", {"Topic": "T", "Seq": 1}).status_code == 409


def test_an_engine_hears_of_it_and_what_it_gives_is_kept_with_the_stopped_query(serve: Serve) -> None:
    service = serve(claim_timeout_s=20.0)
    service.frontend.ask("First?")
    service.frontend.ask("Second?")
    batch = service.engine.get("get-new-queries").json()
    held = {"Topic": "T", "Seq": 1, "Lease": batch["Lease"]}
    with ThreadPoolExecutor(2) as pool:
        waiting = pool.submit(service.engine.post, "wait-for-stop", held)
        stopping = pool.submit(stop, service.frontend)
        assert waiting.result(20).json() == {"Ended": "stopped"}
        found = {"Answer": ["Half of it."], "Think": ["Looked."], "End": "stopped"}
        body = {"Query": "First?", "Topic": "T", "Seq": 1, **found}
        assert service.engine.post("give-new-answer", body).status_code == 200
        said = stopping.result(20).json()
    assert (said["Status"], said["Answer"], said["End"]) == ("Stopped", ["Half of it."], "stopped")
    assert service.engine.post("renew-lease", {"Topic": "T", "Lease": batch["Lease"]}).status_code == 409
    again = service.other_engine.get("get-new-queries").json()
    assert again["Queries"] == [{"2": "Second?"}], "what else was open is"
    late = {**body, "Answer": ["All of it."], "End": "answered"}
    assert service.engine.post("give-new-answer", late).status_code == 409


def test_what_waits_behind_the_search_is_stopped_without_ending_it(service: Served) -> None:
    service.frontend.ask("First?")
    service.frontend.ask("Second?")
    lease = service.engine.get("get-new-queries").json()["Lease"]
    assert stop(service.frontend, seq=2).json()["Status"] == "Stopped"
    assert service.engine.post("renew-lease", {"Topic": "T", "Lease": lease}).status_code == 200
    said = service.engine.post("wait-for-stop", {"Topic": "T", "Seq": 1, "Lease": lease}).json()
    assert said == {"Ended": None}
    assert service.engine.post("wait-for-stop", {"Topic": "T", "Seq": 1, "Lease": "x"}).json() == {
        "Ended": "lost"
    }
    assert service.engine.answer("First?", "Yes.").status_code == 200
    assert [each["Status"] for each in thread_of(service)] == ["Done", "Stopped"]
    assert service.engine.get("get-new-queries").json()["Queries"] is None


def test_what_is_in_the_queue_and_what_waits_for_a_person_is_stopped(service: Served) -> None:
    service.frontend.ask("First?")
    lease = service.engine.get("get-new-queries").json()["Lease"]
    service.frontend.ask("Second?")
    asks = {"Topic": "T", "Seq": 1, "Lease": lease, "Questions": [{"Key": "k", "Question": "Which one?"}]}
    assert service.engine.post("ask-person", asks).status_code == 200
    assert stop(service.frontend).json()["Status"] == "Stopped"
    assert (
        service.frontend.post("answer-question", {"Topic": "T", "Seq": 1, "Answer": "x"}).status_code == 409
    )
    assert service.engine.get("get-new-queries").json()["Queries"] == [{"2": "Second?"}]
    service.frontend.ask("Third?", topic="queued")
    assert stop(service.frontend, topic="queued").json()["Status"] == "Stopped"
    assert service.other_engine.get("get-new-queries").json()["Queries"] is None


def test_a_chat_client_that_read_what_is_asked_leaves_it_open(service: Served, place: Path | str) -> None:
    """It closes its connection then, and comes back with the answer of a person."""
    service.frontend.ask("Book it?")
    lease = service.engine.get("get-new-queries").json()["Lease"]
    asks = {"Topic": "T", "Seq": 1, "Lease": lease, "Questions": [{"Key": "k", "Question": "Which day?"}]}
    assert service.engine.post("ask-person", asks).status_code == 200

    async def leave() -> str:
        database = opened(place)
        try:
            return await Stopping(database).stop("T", 1, by="its client", parked=False)
        finally:
            await database.close()

    assert asyncio.run(leave()) == "ended"
    assert thread_of(service)[0]["Status"] == "Waiting"
    assert stop(service.frontend).json()["Status"] == "Stopped"


def test_what_has_ended_is_not_stopped_nor_what_belongs_to_another(service: Served) -> None:
    service.user.ask("q", user="User_1")
    assert stop(service.other_user).status_code == 404
    assert stop(service.user, seq=2).status_code == 404
    found = {"Query": "q", "Topic": "T", "Seq": 1, "Answer": ["Half."], "End": "stopped"}
    service.engine.get("get-new-queries")
    assert service.engine.post("give-new-answer", found).status_code == 409, "nobody stopped it"
    assert service.engine.answer("q", "All.").status_code == 200
    assert stop(service.user).status_code == 409
    assert thread_of(service)[0]["Answer"] == ["All."]


def test_a_person_stops_a_search_on_the_page_and_goes_on_with_it(service: Served) -> None:
    browser, other = Browser(service.url), Browser(service.url)
    browser.log_in("User_1")
    other.log_in("User_2")
    service.user.ask("Why?", user="User_1", topic="P")
    assert 'action="/stop"' in browser.get("/thread?topic=P").text
    assert other.send("/stop", topic="P", seq="1").status_code == 404
    assert browser.send("/stop", topic="P", seq="1").status_code == 303
    page = browser.get("/thread?topic=P").text
    assert "stopped by User_1" in page and 'action="/continue"' in page and "data-live" not in page
    assert ">stopped</span>" in browser.get("/topics").text
    assert browser.send("/continue", topic="P", seq="1").status_code == 303
    assert service.engine.get("get-new-queries").json()["Queries"] == [{"1": "Why?"}]


@pytest.mark.parametrize("stream", [False, True])
def test_a_chat_client_that_goes_away_stops_its_search_and_its_retry_goes_on_with_it(
    serve: Serve, *, stream: bool
) -> None:
    service = serve(claim_timeout_s=5.0, chat_wait_s=20.0)
    body: Any = {"model": "metatree", "messages": [{"role": "user", "content": "Leaving?"}]}
    key = {"Authorization": f"Bearer {service.keys['User_1']}"}
    url = f"{service.url}/v1/chat/completions"
    with requests.post(url, json={**body, "stream": True}, headers=key, timeout=20, stream=True) as chat:
        if not stream:  # the search that both wait for goes on while one of them does
            with pytest.raises(requests.exceptions.RequestException, match="timed out"):
                requests.post(url, json=body, headers=key, timeout=0.5)
        lines = chat.iter_lines()
        next(lines)
        (topic,) = topics(service)
        batch = service.engine.get("get-new-queries").json()
        held = {"Topic": topic, "Seq": 1, "Lease": batch["Lease"]}
        assert thread_of(service, topic)[0]["Status"] == "Pending"
    assert service.engine.post("wait-for-stop", held).json() == {"Ended": "stopped"}
    assert thread_of(service, topic)[0]["Status"] == "Stopped"
    with ThreadPoolExecutor(1) as pool:
        retry = pool.submit(post, service, body)
        assert service.engine.get("get-new-queries").json()["Queries"] == [{"1": "Leaving?"}]
        service.engine.answer("Leaving?", "LEAVING!", topic=topic)
        assert retry.result(20).json()["choices"][0]["message"]["content"].startswith("LEAVING!")
    assert len(topics(service)) == 1


def test_a_chat_whose_search_somebody_stops_is_told_so(service: Served) -> None:
    with ThreadPoolExecutor(1) as pool:
        chat = pool.submit(
            post, service, {"model": "metatree", "messages": [{"role": "user", "content": "q"}]}
        )
        while not topics(service):
            threading.Event().wait(0.05)
        (topic,) = topics(service)
        assert stop(service.frontend, topic=topic).status_code == 200
        said = chat.result(20).json()
    assert said["choices"][0]["message"]["content"] == "The search was stopped before it found an answer."
    assert (said["metatree"]["status"], said["metatree"]["end"]) == ("Stopped", "stopped")
