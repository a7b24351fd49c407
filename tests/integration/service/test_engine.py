"""Real engines on real trees: answers with sources, steps for those who watch, lookups, memory, a graceful stop."""

from __future__ import annotations

import asyncio
import json
import re
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Protocol

import pytest
import requests
from metatree_agents.service.engine._memories import Memory, OwnTree
from metatree_agents.service.engine.answering import CUT_OFF
from metatree_agents.service.engine.client import ServiceClient
from metatree_agents.service.engine.engine import TRIES, Engine
from metatree_agents.service.engine.memory import learn
from metatree_agents.service.queue.models import EngineQuery
from metatree_memory_tools import build_tree

from metatree import RouteDecision, RouteRequest, Tree, search
from metatree.errors import MetatreeError, RouterUnavailable, TransientError, UserError

from .conftest import SECRETS, Served, proof
from .test_web import Browser, entered

pytestmark = pytest.mark.integration
Serve = Callable[..., Served]
FILES = {
    "billing/invoice.py": "def total_of(invoice):\n    'Add up the lines of an invoice, with value added tax.'\n",
    "billing/reminder.py": "def remind(customer):\n    'Send a reminder to a customer after thirty days.'\n",
    "billing/rates.py": "def discount_rate():\n    'The discount rate is three percent.'\n",
    "shipping/rates.py": "def discount_rate():\n    'The discount rate is nine percent.'\n",
    "shipping/parcel.py": "def weigh(parcel):\n    'Weigh a parcel in grams.'\n",
}


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[Tree]:
    for name, text in FILES.items():
        place = tmp_path / "source" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    with build_tree(tmp_path / "source") as made:
        yield made


class HasUrl(Protocol):
    """A service, ours or another."""

    @property
    def url(self) -> str: ...


@contextmanager
def working(
    service: HasUrl, tree: Tree | Memory, *, name: str = "Inference_1", **given: Any
) -> Iterator[Engine]:
    """Run an engine in a thread of its own, and stop it gracefully."""
    made: list[tuple[Engine, asyncio.AbstractEventLoop]] = []
    ready = threading.Event()

    async def work() -> None:
        async with ServiceClient(service.url, name, SECRETS[name][1]) as client:
            made.append((Engine(client, tree, **given), asyncio.get_running_loop()))
            ready.set()
            await made[0][0].run()

    thread = threading.Thread(target=lambda: asyncio.run(work()))
    thread.start()
    ready.wait(10)
    engine, loop = made[0]
    try:
        yield engine
    finally:
        loop.call_soon_threadsafe(engine.stop)
        thread.join(30)
        assert not thread.is_alive()


def test_a_conversation_is_answered_with_sources_and_steps(serve: Serve, tree: Tree) -> None:
    service = serve(answer_timeout_s=20.0, claim_timeout_s=5.0)
    service.frontend.ask("How are the lines of an invoice added up?")
    service.frontend.ask("When is a reminder sent to a customer?")
    with working(service, tree):
        first = service.frontend.get("check-query", Topic="T", Seq=1).json()
        second = service.frontend.get("check-query", Topic="T", Seq=2).json()
    assert "value added tax" in " ".join(first["Answer"])
    assert first["Sources"][0]["Path"] == "billing/invoice.py"
    assert "thirty days" in " ".join(second["Answer"])
    assert any("read total_of" in line for line in first["Think"])
    pairs = proof("Frontend_1", SECRETS["Frontend_1"][1])
    with requests.get(
        f"{service.url}/api/events", params={**pairs, "Topic": "T", "Seq": "1"}, timeout=20
    ) as said:
        blocks = [block for block in said.text.split("\n\n") if "event: " in block]
    steps = [json.loads(block.partition("data: ")[2]) for block in blocks]
    assert [step.get("Event") for step in steps[:-1]].count("read") >= 1
    assert steps[-1]["Answer"] == first["Answer"]
    last = [block for block in blocks if "event: step" in block][-1].split("\n")[0].removeprefix("id: ")
    again = requests.get(
        f"{service.url}/api/events",
        params={**proof("Frontend_1", SECRETS["Frontend_1"][1]), "Topic": "T", "Seq": "1"},
        headers={"Last-Event-ID": last},
        timeout=120,
    )
    assert "event: step" not in again.text and "event: answer" in again.text


@pytest.mark.parametrize("category", ["billing", "shipping"])
def test_a_category_narrows_the_search(serve: Serve, tree: Tree, category: str) -> None:
    service = serve(answer_timeout_s=20.0)
    service.frontend.ask(
        "What is the discount rate?", Modifiers={"Category": [category.title()], "Region": 5}
    )
    with working(service, tree):
        said = service.frontend.get("check-query", Topic="T", Seq=1).json()
    assert said["Sources"][0]["Path"] == f"{category}/rates.py"
    assert not any("narrowed nothing" in note for note in said["Notes"])


def test_a_category_that_is_none_is_said_to_narrow_nothing(serve: Serve, tree: Tree) -> None:
    service = serve(answer_timeout_s=20.0)
    service.frontend.ask("What is the discount rate?", Modifiers={"Category": "Nonsense"})
    with working(service, tree):
        said = service.frontend.get("check-query", Topic="T", Seq=1).json()
    assert "Category “Nonsense” narrowed nothing: no one part near the top" in said["Notes"][0]


def test_lookups_are_answered_nearest_first_within_the_threshold(serve: Serve, tree: Tree) -> None:
    service = serve()
    service.frontend.ask("q")
    wish = {"Topic": "T", "Seq": 1, "Fragment": "weigh a parcel", "Count": 2}
    service.frontend.post("add-lookup", wish)
    service.frontend.post("add-lookup", {**wish, "Fragment": "reminder for a customer", "Threshold": 0.0})
    with working(service, tree):
        deadline = time.monotonic() + 20
        found: list[dict[str, list[str]]] = []
        while time.monotonic() < deadline and not (found and found[0]["weigh a parcel"]):
            time.sleep(0.1)
            found = service.frontend.get("get-lookups", Topic="T").json()["Lookups"][0]["Fragments"]
    matches = found[0]["weigh a parcel"]
    assert 1 <= len(matches) <= 2
    head, dots, text = matches[0].partition("\n.....\n")
    assert dots and "Weigh a parcel" in text and "Path: shipping/parcel.py" in head
    distances = [float(match.split("\n")[0].removeprefix("Distance: ")) for match in matches]
    assert distances == sorted(distances) and all(0 <= each <= 1 for each in distances)
    assert found[1]["reminder for a customer"] == [], "nothing is at distance 0"


def test_what_is_recommended_is_found_afterwards(service: Served, tree: Tree) -> None:
    body = {"Topic": "T", "OnBehalfOf": "Ann", "Query": "Who approves refunds?", "Comment": "since May"}
    service.frontend.post(
        "recommend",
        {**body, "Fragment": "Refunds are approved by the zebra team.", "Type": "Make Correction"},
    )
    service.frontend.post(
        "recommend", {**body, "Fragment": "Refunds are a myth.", "Type": "Flag as Off Topic"}
    )

    async def twice() -> list[int]:
        async with ServiceClient(service.url, "Inference_1", SECRETS["Inference_1"][1]) as client:
            return [await learn(client, tree), await learn(client, tree)]

    assert asyncio.run(twice()) == [2, 0]
    found = search("Who approves refunds?", tree=tree)
    assert "zebra team" in found.answer
    memory = tree.get(found.answers[0].sources[0].node)
    assert memory.provenance["who"] == "Ann"
    assert "myth" not in found.answer


class Down:
    """A router whose model server is out of reach, and a reader too."""

    async def route(self, request: RouteRequest) -> RouteDecision:
        raise RouterUnavailable("the server at http://inner.lan cannot be reached")

    async def read(self, request: Any) -> Any:
        raise RouterUnavailable("the server at http://inner.lan cannot be reached")


@pytest.mark.filterwarnings("ignore")
def test_a_search_that_fails_says_so(serve: Serve, tree: Tree) -> None:
    service = serve(answer_timeout_s=20.0)
    service.frontend.ask("How are the lines of an invoice added up?")
    with working(service, tree, parts={"router": Down(), "reader": Down()}):
        said = service.frontend.get("check-query", Topic="T", Seq=1).json()
    assert said["Answer"] == ["The search failed before an answer was found; the log of the engine says why."]


def test_each_part_of_a_question_is_answered_by_its_quote_with_its_number(
    serve: Serve, tmp_path: Path
) -> None:
    (tmp_path / "holidays.md").write_text("# Holidays\n\nEverybody has 30 days of holiday a year.\n")
    (tmp_path / "coffee.md").write_text("# Coffee\n\nDescale the coffee machine every three months.\n")
    service = serve(answer_timeout_s=20.0)
    asked = "How many days of holiday are there and how often must the coffee machine be descaled?"
    service.user.ask(asked, topic="T", user="User_1")
    with build_tree(tmp_path) as built, working(service, built):
        said = service.user.get("check-query", Topic="T", Seq=1).json()
    assert said["Answer"] == [
        "How many days of holiday are there?",
        "Everybody has 30 days of holiday a year.",
        "And how often must the coffee machine be descaled?",
        "Descale the coffee machine every three months.",
    ]
    page = entered(service, "User_1").get("/thread?topic=T").text
    marks = re.findall(
        r'<blockquote class="exact words">([^<]+)</blockquote><a class="mark"[^>]*>(.*?)</a>', page
    )
    assert marks == [
        ("Everybody has 30 days of holiday a year.", "[1]"),
        ("Descale the coffee machine every three months.", "[2]"),
    ]


class Flaky:
    """A router whose model server is out of reach until it is back."""

    def __init__(self) -> None:
        self.back = False

    async def route(self, request: RouteRequest) -> RouteDecision:
        if not self.back:
            raise RouterUnavailable("the server at http://inner.lan cannot be reached")
        return RouteDecision(choice=request.options[0].id, reason="the first")


def test_a_router_that_fails_is_for_the_log_and_for_administrators_alone(
    serve: Serve, tree: Tree, caplog: pytest.LogCaptureFixture
) -> None:
    service, router = serve(answer_timeout_s=20.0, memory=tree), Flaky()
    people = {name: entered(service, name) for name in ("User_1", "Admin_1")}

    def asked(number: int) -> dict[str, Any]:
        service.user.ask("How are the lines of an invoice added up?", topic=f"T{number}", user="User_1")
        said = service.user.get("check-query", Topic=f"T{number}", Seq=1)
        assert "inner.lan" not in said.text
        return dict(said.json())

    def noted(browser: Browser) -> bool:
        return "The router of Inference_1 fails since" in browser.get("/admin").text

    def until_noted(wanted: bool) -> None:
        end = time.monotonic() + 20.0
        while noted(people["Admin_1"]) is not wanted:
            assert time.monotonic() < end
            time.sleep(0.05)

    with working(service, tree, parts={"router": router}):
        for number in (1, 2):
            said = asked(number)
            assert "value added tax" in " ".join(said["Answer"])
            assert any("the router failed" in line for line in said["Think"])
        until_noted(True)
        assert [line for line in caplog.messages if "inner.lan" in line] == [
            "the router fails, and searches go on without it: the server at http://inner.lan cannot be reached"
        ]
        page = people["Admin_1"].get("/admin/engines").text
        assert "http://inner.lan cannot be reached" in page and not noted(people["User_1"])
        traces = {name: browser.get("/run?topic=T1&seq=1").text for name, browser in people.items()}
        assert "inner.lan" in traces["Admin_1"] and "inner.lan" not in traces["User_1"]
        assert "the router failed" in traces["User_1"]
        router.back = True
        asked(3)
        until_noted(False)
        assert caplog.messages.count("the router works again") == 1


LOCKED = "http://10.1.2.3:8000 refused (database /srv/tree.db is locked)"


class Failing:
    """Gives the parts of a search, but fails a number of times before."""

    def __init__(self, times: int, error: type[MetatreeError]) -> None:
        self.left, self.error, self.asked = times, error, 0

    def __call__(self, tree: Tree) -> dict[str, Any]:
        self.asked += 1
        if self.asked <= self.left:
            raise self.error(LOCKED)
        return {}


@pytest.mark.parametrize(
    ("times", "error", "asked", "answer"),
    [
        (TRIES - 1, TransientError, TRIES, "value added tax"),
        (100, TransientError, TRIES, CUT_OFF["failed"]),
        (100, UserError, 1, CUT_OFF["failed"]),
    ],
)
def test_a_search_that_fails_for_now_is_made_again_and_its_error_is_for_the_log_alone(
    serve: Serve,
    tree: Tree,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    times: int,
    error: type[MetatreeError],
    asked: int,
    answer: str,
) -> None:
    monkeypatch.setattr("metatree_agents.service.engine.engine.PAUSE_S", 0.0)
    service = serve(answer_timeout_s=20.0)
    service.frontend.ask("How are the lines of an invoice added up?")
    failing = Failing(times, error)
    with working(service, tree, parts=failing):
        said = service.frontend.get("check-query", Topic="T", Seq=1)
    assert answer in " ".join(said.json()["Answer"])
    assert "10.1.2.3" not in said.text and "10.1.2.3" in caplog.text
    assert failing.asked == asked


def test_a_failing_search_is_retried_after_ever_longer_delays(
    serve: Serve, tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []

    async def pause(_: Engine, seconds: float) -> None:
        pauses.append(seconds)

    async def fail() -> None:
        async with ServiceClient("http://127.0.0.1:1", "Inference_1", SECRETS["Inference_1"][1]) as client:
            engine = Engine(client, tree)
            said = [
                await engine._failed(EngineQuery("T", 1, "q", {}), TransientError("away"))
                for _ in range(TRIES)
            ]
            assert said[:-1] == [None] * (TRIES - 1) and said[-1] is not None

    monkeypatch.setattr(Engine, "_pause", pause)
    asyncio.run(fail())
    assert pauses == [5.0, 10.0, 20.0, 40.0]


class Locked(OwnTree):
    """A tree that is locked whenever somebody wants to use it for the first times."""

    def __init__(self, client: Any, tree: Tree, errors: list[Exception]) -> None:
        super().__init__(client, tree)
        self.errors = errors

    @asynccontextmanager
    async def using(self) -> AsyncIterator[Tree]:
        if self.errors:
            raise self.errors.pop()
        async with super().using() as tree:
            yield tree

    async def follow(self) -> None:
        raise OSError("disk I/O error")


def test_an_engine_outlives_a_store_that_is_locked_for_a_while(
    serve: Serve, tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PAUSE_S", "IDLE_S", "LOOKUP_LEASE_S"):
        where = "queue.lookups" if name == "LOOKUP_LEASE_S" else "engine.engine"
        monkeypatch.setattr(f"metatree_agents.service.{where}.{name}", 0.01)
    errors: list[Exception] = [TransientError(LOCKED), OSError("disk I/O error")]
    service = serve(answer_timeout_s=20.0)
    service.frontend.ask("q", topic="L")
    service.frontend.post("add-lookup", {"Topic": "L", "Seq": 1, "Fragment": "weigh a parcel"})
    with working(service, Locked(None, tree, errors), concurrency=1):
        service.frontend.ask("How are the lines of an invoice added up?")
        assert "value added tax" in str(
            service.frontend.get("check-query", Topic="T", Seq=1).json()["Answer"]
        )
        deadline, found = time.monotonic() + 20, [""]
        while time.monotonic() < deadline and "shipping/parcel.py" not in found[0]:
            time.sleep(0.1)
            found = [service.frontend.get("get-lookups", Topic="L").text]
    assert "shipping/parcel.py" in found[0] and not errors


def test_an_idle_engine_asks_for_lookups_ever_less_often(
    service: Served, tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []

    async def pause(engine: Engine, seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 6:
            service.frontend.ask("q")
            service.frontend.post("add-lookup", {"Topic": "T", "Seq": 1, "Fragment": "weigh a parcel"})
        if len(pauses) == 8:
            engine.stop()

    async def work() -> None:
        async with ServiceClient(service.url, "Inference_1", SECRETS["Inference_1"][1]) as client:
            await Engine(client, tree)._look_up()

    monkeypatch.setattr(Engine, "_pause", pause)
    asyncio.run(work())
    assert pauses == [1.0, 2.0, 4.0, 8.0, 10.0, 10.0, 1.0, 2.0]


class Stuck:
    """A router that never comes back, as a model that hangs."""

    def __init__(self) -> None:
        self.asked = threading.Event()

    async def route(self, request: RouteRequest) -> RouteDecision:
        self.asked.set()
        await asyncio.sleep(3_600)
        return RouteDecision(None)


def test_an_engine_that_stops_hands_its_topic_back_and_another_answers(serve: Serve, tree: Tree) -> None:
    service = serve(answer_timeout_s=20.0)
    service.frontend.ask("How are the lines of an invoice added up?")
    stuck = Stuck()
    with working(service, tree, parts={"router": stuck}):
        assert stuck.asked.wait(20)
    assert service.frontend.get("get-topic-thread", Topic="T").json()[0]["Status"] == "Open"
    with working(service, tree, name="Inference_2"):
        said = service.frontend.get("check-query", Topic="T", Seq=1).json()
    assert "value added tax" in " ".join(said["Answer"])


def test_wrong_credentials_are_reported_at_once(
    service: Served, tree: Tree, caplog: pytest.LogCaptureFixture
) -> None:
    async def work(name: str, secret: str) -> None:
        async with ServiceClient(service.url, name, secret) as client:
            await asyncio.wait_for(Engine(client, tree).run(), 20)

    with pytest.raises(UserError, match="does not accept 'Inference_1'"):
        asyncio.run(work("Inference_1", "wrong"))
    with pytest.raises(UserError, match="may not use this route"):
        asyncio.run(work("User_1", SECRETS["User_1"][1]))
    assert not [record for record in caplog.records if record.name == "metatree.engine"], "said twice"
