"""Leases of topics: renewed while an engine works, whatever it blocks; given up when lost; free when a process died."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
from metatree_agents.cli.commands.service.serve import serve as serve_command
from metatree_agents.service.accounts.users import Users
from metatree_agents.service.queue import queue as queue_module
from metatree_agents.service.queue.queue import Queue, Status
from metatree_agents.service.replication.trees import Trees

from metatree import Node, RouteDecision, RouteRequest, Tree
from metatree._util.process import this_process
from metatree.testing.parts import FunctionRouter

from .conftest import SECRETS, Client, Served, opened
from .test_engine import working

pytestmark = pytest.mark.integration
Serve = Callable[..., Served]
LEASE_S = 2.0
LEASES = 4
"""For how many leases something blocks."""
SERVER = "tests.integration.service.slow_server"


@pytest.fixture
def tree() -> Iterator[Tree]:
    with Tree.create(":memory:") as made:
        for name in ("one", "two"):
            made.add(Node(id=name, title=name, content=f"The lamp {name} has nine watts."), parent=made.root)
        yield made


class Blocking:
    """A memory that blocks the event loop of its engine before each search."""

    version, index = 0, None

    def __init__(self, tree: Tree, begun: threading.Event) -> None:
        self._tree, self._begun = tree, begun

    @asynccontextmanager
    async def using(self) -> AsyncIterator[Tree]:
        self._begun.set()
        time.sleep(LEASES * LEASE_S)
        yield self._tree

    async def follow(self) -> None:
        """Learn nothing."""


@pytest.mark.parametrize("blocked", ["engine", "search"])
def test_an_engine_whose_event_loop_is_blocked_keeps_its_topic(
    serve: Serve, tree: Tree, blocked: str
) -> None:
    begun = threading.Event()

    def choose(request: RouteRequest) -> str:
        begun.set()
        time.sleep(LEASES * LEASE_S / 2)
        return request.options[0].id

    service = serve(lease_s=LEASE_S)
    service.frontend.ask("How many watts has the lamp one?")
    memory = Blocking(tree, begun) if blocked == "engine" else tree
    parts = {"router": FunctionRouter(choose)} if blocked == "search" else {}
    with working(service, memory, parts=parts):
        assert begun.wait(30)
        claimed = []
        while (said := service.frontend.get("check-query", Topic="T", Seq=1).json())["Answer"] is None:
            claimed.append(service.other_engine.get("get-new-queries").json()["Topic"])
            assert said["Status"] == "Pending"
        assert set(claimed) == {None}
    assert "nine watts" in " ".join(said["Answer"])
    assert len(claimed) > 2


def test_an_engine_gives_up_what_another_one_has(serve: Serve, tree: Tree) -> None:
    searching, given_up = threading.Event(), threading.Event()

    class Waits:
        async def route(self, request: RouteRequest) -> RouteDecision:
            if given_up.is_set():
                return RouteDecision(request.options[0].id)
            searching.set()
            try:
                await asyncio.sleep(60)
            finally:
                given_up.set()
            raise AssertionError("it was not given up")

    service = serve(lease_s=LEASE_S)
    service.frontend.ask("How many watts has the lamp?")
    with working(service, tree, parts={"router": Waits()}):
        assert searching.wait(30)
        assert service.admin.post("admin/release", {"Topic": "T"}).status_code == 200
        assert service.other_engine.get("get-new-queries").json()["Topic"] == "T"
        assert given_up.wait(30)
        service.frontend.ask("How many watts has the other lamp?", topic="U")
        while not (said := service.frontend.get("check-query", Topic="U", Seq=1).json())["Answer"]:
            pass
        assert service.frontend.get("check-query", Topic="T", Seq=1).json()["Answer"] is None
        answer = service.other_engine.answer("How many watts has the lamp?", "ten", topic="T")
        assert answer.status_code == 200
    assert "nine watts" in " ".join(said["Answer"])


def test_engines_get_the_length_of_their_lease(serve: Serve) -> None:
    service = serve(lease_s=7.0)
    service.frontend.ask("q")
    assert service.engine.get("get-new-queries").json()["LeaseSeconds"] == 7.0


def test_nobody_waits_longer_than_a_minute_for_an_engine_that_is_gone(
    place: Path | str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def claimed() -> list[bool]:
        database = opened(place)
        await database.start()
        queue, start = Queue(database), database.clock()
        await queue.add("T", "ann", "q")
        given = []
        for seconds in (0, 29, 61):
            monkeypatch.setattr(database, "clock", lambda seconds=seconds: start + seconds)
            given.append(await queue.claim("engine", process="other.example.org/1/2") is not None)
        await database.close()
        return given

    assert asyncio.run(claimed()) == [True, False, True]
    assert signature(serve_command).parameters["lease"].default == queue_module.LEASE_S


# What dead processes had -------------------------------------------------------------------------------------------


def dead_process() -> str:
    """Return the name of a process of this machine that is gone."""
    code = "from metatree._util.process import this_process; print(this_process())"
    return subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout.strip()


def test_what_a_dead_process_had_is_open_at_once(place: Path | str) -> None:
    """What it searched keeps its attempt and fails after too many, what waited behind it does not."""

    async def tried() -> list[list[tuple[int, Status, int]]]:
        database = opened(place)
        await database.start()
        queue, leases = Queue(database, attempts=2), list[str]()
        seen: list[list[tuple[int, Status, int]]] = []
        for text in "abc":
            await queue.add("T", "ann", text)
        for _ in range(3):
            claim = await queue.claim("inside", process=dead)
            assert claim is not None
            leases.append(claim.lease)
            assert await queue.claim("inside") is None
            assert await queue.free_dead() == 1
            seen.append([(one.seq, one.status, one.attempts) for one in await queue.thread("T")])
        assert not await queue.hand_back("T", leases[-1]), "that lease has ended"
        await database.close()
        return seen

    dead = dead_process()
    assert asyncio.run(tried()) == [
        [(1, "Open", 1), (2, "Open", 0), (3, "Open", 0)],
        [(1, "Failed", 2), (2, "Open", 0), (3, "Open", 0)],
        [(1, "Failed", 2), (2, "Open", 1), (3, "Open", 0)],
    ]


@pytest.mark.parametrize("whose", ["alive", "elsewhere", "worker", "before a reboot"])
def test_what_a_living_process_may_have_stays_its_own(place: Path | str, whose: str) -> None:
    host, _, there = dead_process().rpartition(" ")
    boot, _, pid_and_start = there.partition("/")
    process = {
        "alive": this_process(),
        "elsewhere": f"other.example.org pid:[1] {boot}/{pid_and_start}",
        "worker": "",
        "before a reboot": f"{host} 00000000-0000-0000-0000-000000000000/{pid_and_start}",
    }[whose]

    async def freed() -> int:
        database = opened(place)
        await database.start()
        queue = Queue(database)
        await queue.add("T", "ann", "q")
        assert await queue.claim("inside", process=process)
        count = await queue.free_dead()
        await database.close()
        return count

    # Processes of several machines, which may have one name, have PostgreSQL; a file is this machine's.
    assert asyncio.run(freed()) == (whose == "before a reboot" and isinstance(place, Path))


def test_the_next_server_publishes_at_once_when_the_one_that_did_was_killed(place: Path | str) -> None:
    async def led() -> list[int | None]:
        database = opened(place)
        await database.start()
        trees = Trees(database)
        who = [dead_process(), this_process(), "other.example.org/1/2"]
        tokens = [await trees.lead(one) for one in (*who, who[1])]
        await database.close()
        return tokens

    assert asyncio.run(led()) == [1, 2, None, 2]


@contextmanager
def slow_server(
    place: Path | str, folder: Path, port: int = 0
) -> Iterator[tuple[subprocess.Popen[str], Client]]:
    """Run a server whose searches wait, with a lease that is longer than any test."""
    command = [
        sys.executable,
        "-m",
        SERVER,
        str(place),
        str(folder / "source"),
        str(folder),
        str(port),
        "600",
    ]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        url = next(line for line in server.stdout if "listening on" in line).split()[-1]
        yield server, Client(url, "Frontend_1", SECRETS["Frontend_1"][1])
    finally:
        server.kill()
        server.wait()
        assert server.stdout is not None
        server.stdout.close()


def test_a_query_whose_server_was_killed_is_answered_by_the_next_one_at_once(
    place: Path | str, tmp_path: Path
) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "house.md").write_text(
        "# House\n\nThe lamp in the hall has a bulb of nine watts.\n"
    )
    (tmp_path / "source" / "garden.md").write_text("# Garden\n\nRoses are watered at dawn.\n")
    asyncio.run(add_frontend(place))
    searching = tmp_path / "searching"

    def searched(times: int) -> bool:
        return searching.exists() and len(searching.read_text().split()) >= times

    for kills in range(1, 3):
        with slow_server(place, tmp_path) as (server, frontend):
            if kills == 1:
                assert frontend.ask("How many watts has the bulb of the lamp?").status_code == 200
            until(partial(searched, kills))
            server.kill()
            server.wait()
    (tmp_path / "go").touch()
    with slow_server(place, tmp_path) as (_, frontend):
        said: dict[str, Any] = {}

        def answered() -> bool:
            said.update(frontend.get("check-query", Topic="T", Seq=1).json())
            return said["Answer"] is not None

        until(answered)
    assert "nine watts" in " ".join(said["Answer"])
    assert asyncio.run(attempts(place)) == 3


async def add_frontend(place: Path | str) -> None:
    database = opened(place)
    await database.start()
    await Users(database).add("Frontend_1", "frontend", secret=SECRETS["Frontend_1"][1])
    await database.close()


async def attempts(place: Path | str) -> int:
    database = opened(place)
    await database.start()
    (query,) = await Queue(database).thread("T")
    await database.close()
    return query.attempts


def until(holds: Callable[[], bool], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(0.05)
