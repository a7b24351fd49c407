"""Agents on a real PostgreSQL, driven by workers of procrastinate that are killed and stopped at random."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import psycopg
import pytest
from metatree_agents.planner import Agents, Domain
from metatree_agents.planner.agents._machine import MACHINE

from metatree import Blackboard, Tree, tool
from metatree.durable import Record
from metatree.durable.sql_journal import SqlJournal
from metatree.errors import LeaseLost, RunExists, TransientError, UnknownRun
from metatree.storage.postgres_address import RUNS
from metatree.storage.postgres_store import PostgresStore
from tests.real.planner_blocking import make_domain as make_blocking
from tests.real.planner_worker import make_domain
from tests.real.postgres import serving

pytestmark = pytest.mark.real

AGENTS = 200
WORKERS = 3
DISTURBANCES = 12
AT_FIRST = 80
"""Agents that are there at the beginning."""
AT_A_TIME = 10
LEASE_S = 1.0


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with serving() as running:
        yield running.address()


def journal_at(address: str, owner: str, lease_s: float) -> SqlJournal:
    """Return the journal of the agents, as one of several processes opens it."""
    return SqlJournal(PostgresStore(address, schema=RUNS, lock_s=lease_s), owner=owner, lease_s=lease_s)


def test_the_journal_on_postgresql_keeps_the_promises_of_a_journal(address: str) -> None:
    mine = journal_at(address, "elsewhere:1", 60.0)
    token = mine.create(
        "r", "m", Record("begin", 1.0, body={"machine": "m", "version": 1, "given": {"a": "\0"}})
    )
    other = journal_at(address, "elsewhere:2", 60.0)
    with pytest.raises(RunExists):
        other.create("r", "m", Record("begin", 1.0))
    with pytest.raises(LeaseLost):
        other.acquire("r")
    with pytest.raises(UnknownRun):
        other.acquire("nobody")
    assert mine.append("r", token, 1, Record("outcome", 2.0, 7, {"=": [1]}, {"calls": 2.0})) == 0
    with pytest.raises(LeaseLost):
        mine.append("r", token, 1, Record("stop", 2.0))
    other.post("r", "hello", {"b": 2})
    other.post("r", "hello", {"b": 3})
    assert [record.body["value"]["b"] for record in mine.take("r", token, 2)] == [2, 3]
    assert mine.take("r", token, 4) == []
    other.cancel("r")
    assert mine.renew("r", token) == 1
    assert mine.claimable("m") == []
    mine.release("r", token, None)
    assert mine.claimable("m") == ["r"]
    newer = other.acquire("r")
    with pytest.raises(LeaseLost):
        mine.append("r", token, 4, Record("stop", 3.0))
    with pytest.raises(LeaseLost):
        mine.renew("r", token)
    assert other.refused("r") == 3
    other.append("r", newer, 4, Record("stop", 3.0))
    assert [record.kind for record in other.read("r")] == ["begin", "outcome", "signal", "signal", "stop"]
    assert mine.read("r")[1] == Record("outcome", 2.0, 7, {"=": [1]}, {"calls": 2.0})
    assert mine.read("r")[0].body["given"] == {"a": "\0"}
    assert [info.run_id for info in other.runs()] == ["r"]
    mine.close()
    other.close()


def test_a_process_that_is_stopped_inside_a_transaction_keeps_nobody_out(address: str) -> None:
    stopped = journal_at(address, "elsewhere:1", 0.3)
    stopped.create("locked", "m", Record("begin", 1.0))
    store: Any = stopped.database
    store._connection.execute("BEGIN")
    store._connection.execute("SELECT 1 FROM run WHERE id = 'locked' FOR UPDATE")
    other = journal_at(address, "elsewhere:2", 0.3)
    tried: list[str] = []

    def taken_over() -> bool:
        try:
            return other.acquire("locked") == 2
        except (TransientError, LeaseLost) as exc:
            tried.append(type(exc).__name__)
            return False

    _until(taken_over)
    other.append("locked", 2, 1, Record("stop", 2.0))
    with pytest.raises(TransientError):
        stopped.append("locked", 1, 1, Record("stop", 2.0))
    with pytest.raises(LeaseLost):
        stopped.append("locked", 1, 1, Record("stop", 2.0))
    stopped.close()
    other.close()


def test_a_worker_that_was_stopped_past_its_lease_writes_too_late(address: str, tmp_path: Path) -> None:
    with Blackboard(tmp_path / "board.db") as board:
        agents = Agents(address, make_domain(tmp_path), board=board, lease_s=LEASE_S)
        agents.start(("order", 999), [("stock", 999)], id="late")
        command: list[str | Path] = [
            sys.executable,
            Path(__file__).with_name("planner_worker.py"),
            address,
            tmp_path,
            str(LEASE_S),
        ]
        old, new = subprocess.Popen(command), None
        try:
            _until(lambda: (tmp_path / "ledger").exists())  # in a body
            old.send_signal(signal.SIGSTOP)
            new = subprocess.Popen(command)

            def taken_over() -> bool:
                for item in board.open_questions():
                    agents.answer(item.id, "yes")
                return agents.show("late").status == "complete"

            _until(taken_over)
            assert agents.journal.refused("late") == 0
            old.send_signal(signal.SIGCONT)
            _until(lambda: agents.journal.refused("late") > 0)
            assert agents.show("late").status == "complete"
        finally:
            for one in (old, new):
                if one is not None:
                    one.kill()
                    one.wait()
    agents.close()


def _until(holds: Callable[[], bool], seconds: float = 120.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not come"
        signal.sigtimedwait([], 0.05)


class Workers:
    """Processes that drive agents; those that end are replaced."""

    def __init__(self, address: str, folder: Path) -> None:
        self._command: list[str | Path] = [
            sys.executable,
            Path(__file__).with_name("planner_worker.py"),
            address,
            folder,
            str(LEASE_S),
        ]
        self._log = (folder / "log").open("w")
        self.processes: list[subprocess.Popen[bytes]] = []
        self.stopped: dict[int, float] = {}
        """Pid -> when it was stopped."""
        self.doubtful: set[int] = set()
        """Those that were ever stopped, so that a body may still be at work in them."""
        self.fill()

    def fill(self) -> None:
        self.processes = [one for one in self.processes if one.poll() is None]
        while len(self.processes) < WORKERS:
            self.processes.append(subprocess.Popen(self._command, stderr=self._log))

    def wake(self) -> None:
        """Let those go on that were stopped for longer than a lease."""
        now = time.monotonic()
        for one in self.processes:
            if one.pid in self.stopped and now - self.stopped[one.pid] > 5 * LEASE_S:
                one.send_signal(signal.SIGCONT)
                del self.stopped[one.pid]

    def can_be_disturbed(self) -> bool:
        """Say whether one can be killed or stopped and another one goes on."""
        return sum(one.pid not in self.stopped for one in self.processes) > 1

    def disturb(self, rng: Random, at_work: set[int]) -> bool:
        """Kill or stop one of those that are at work; say whether there was one."""
        running = [one for one in self.processes if one.pid not in self.stopped]
        able = [one for one in running if one.pid in at_work]
        if not able or len(running) < 2:
            return False
        one = rng.choice(able)
        if rng.random() < 0.4:
            self.kill(one)
        else:
            one.send_signal(signal.SIGSTOP)
            self.stopped[one.pid] = time.monotonic()
            self.doubtful.add(one.pid)
        return True

    def kill(self, one: subprocess.Popen[bytes]) -> None:
        one.kill()
        one.wait()
        self.stopped.pop(one.pid, None)
        self.doubtful.discard(one.pid)
        self.fill()

    def kill_doubtful(self, refused: Callable[[], int]) -> None:
        """Do what a person would make sure of before saying that something has not happened.

        Those that were stopped wake up first: what they write comes too late.
        """
        before, woken = refused(), False
        for one in self.processes:
            if one.pid in self.stopped:
                one.send_signal(signal.SIGCONT)
                del self.stopped[one.pid]
                woken = True
        for _ in range(25 if woken else 0):
            if refused() > before:
                break
            signal.sigtimedwait([], 0.2)
        for one in [one for one in self.processes if one.pid in self.doubtful]:
            self.kill(one)

    def end(self) -> None:
        for one in self.processes:
            one.kill()
            one.wait()
        self._log.close()


def _ends(agents: Agents) -> dict[str, Any]:
    found = {}
    for agent in (one[0] for one in agents.all() if one[0].startswith("order-")):
        info = agents.show(agent)
        found[agent] = (info.status, info.facts, sorted((one.goal, one.status) for one in info.intents))
    return found


def _orders(agents: Agents, numbers: range) -> None:
    for number in numbers:
        agents.start(("order", number), [("stock", number)], id=f"order-{number}")


def test_workers_that_are_killed_and_stopped_at_random_lose_and_repeat_nothing(
    address: str, tmp_path: Path
) -> None:
    calm = tmp_path / "calm"
    calm.mkdir()
    with Agents(":memory:", make_domain(calm), board=False) as agents:
        _orders(agents, range(AGENTS))
        agents.work(until_idle=True, at_once=20)
        undisturbed = _ends(agents)
    rng = Random(7)
    done = 0
    with Blackboard(tmp_path / "board.db") as board:
        agents = Agents(address, make_domain(tmp_path), board=board, lease_s=LEASE_S)
        _orders(agents, range(AT_FIRST))
        started = AT_FIRST
        workers = Workers(address, tmp_path)
        deadline = time.monotonic() + 240
        try:
            while started < AGENTS or len(_ended(agents, started)) < AGENTS:
                assert time.monotonic() < deadline, (tmp_path / "log").read_text()[-3000:]
                # Orders come with the disturbances, so that there is work to disturb on a fast machine too.
                if done >= DISTURBANCES:
                    _orders(agents, range(started, AGENTS))
                    started = AGENTS
                elif workers.can_be_disturbed():
                    if len(_ended(agents, started)) == started:
                        more = range(started, min(started + AT_A_TIME, AGENTS))
                        _orders(agents, more)
                        started += len(more)
                    for _ in range(40):
                        if workers.disturb(rng, _at_work(address)):
                            done += 1
                            break
                        signal.sigtimedwait([], 0.02)
                workers.wake()
                workers.fill()
                for item in board.open_questions():
                    workers.kill_doubtful(lambda: _refused(agents))
                    number = item.run.removeprefix("order-")
                    happened = f"pay {number}" in (tmp_path / "ledger").read_text().splitlines()
                    agents.answer(item.id, "yes" if happened else "no")
                signal.sigtimedwait([], 0.4)
            ends, refused = _ends(agents), _refused(agents)
        finally:
            workers.end()
    lines = (tmp_path / "ledger").read_text().splitlines()
    paid = Counter(line for line in lines if line.startswith("pay "))
    keys = {line for line in lines if line.startswith("reserve ")}
    print(f"{done} disturbances, {refused} late writes refused, {len(lines)} bodies begun")
    receipts = {agent for agent, end in ends.items() if ("receipt", int(agent[6:]), "yes") in end[1]}
    for agent, (status, facts, intents) in ends.items():
        without = tuple(fact for fact in facts if fact[0] != "receipt")
        calm_status, calm_facts, calm_intents = undisturbed[agent]
        assert (status, intents) == (calm_status, calm_intents)
        assert without == tuple(fact for fact in calm_facts if fact[0] != "receipt")
    assert set(paid.values()) == {1}, "nothing is paid for twice"
    assert len(paid) == AGENTS
    assert len(keys) == AGENTS, "a repeated body has the key of the first"
    assert len(receipts) <= AGENTS
    assert done >= DISTURBANCES // 2
    agents.close()


def _refused(agents: Agents) -> int:
    return sum(agents.journal.refused(one[0]) for one in agents.all() if one[0].startswith("order-"))


def _at_work(address: str) -> set[int]:
    """Return the processes that hold an agent."""
    with psycopg.connect(address) as connection:
        found = connection.execute(
            "SELECT DISTINCT owner FROM metatree_runs.run WHERE owner IS NOT NULL"
        ).fetchall()
    return {int(owner.rsplit("/", 2)[1]) for (owner,) in found if owner.count("/") >= 2}


def _ended(agents: Agents, started: int) -> list[str]:
    waiting = agents.journal.is_waiting
    return [f"order-{n}" for n in range(started) if not waiting(f"order-{n}", MACHINE)]


def test_a_tool_call_of_one_process_is_known_to_another(address: str, tmp_path: Path) -> None:
    """Whichever tree it searches: the calls are recorded where the agents are."""
    made: list[str] = []

    @tool(kind="exploratory")
    def weigh(what: str) -> str:
        """Weigh something."""
        made.append(what)
        return f"{what}: 4 kg"

    def domain() -> Domain:
        weighing = Domain("weighing")
        weighing.relation("weight", 2, dynamic=True)
        asks = {"tool": "weigh", "arguments": {"what": "?what"}, "into": "weight"}
        weighing.task("weigh(?what)", does=asks)
        return weighing

    for name in ("one", "two"):
        with (
            Tree.create(tmp_path / f"{name}.db") as tree,
            Agents(address, domain(), tools=[weigh], tree=tree, board=False) as agents,
        ):
            info = agents.run(agents.start("weigh(cat)", id=f"weighs-{name}"))
            assert info.facts == (("weight", "cat", "cat: 4 kg"),)
            assert tree.memory.rows("SELECT * FROM call") == []
    assert made == ["cat"]


@pytest.fixture
def workers(address: str, tmp_path: Path) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Two workers whose tasks block, with a lease of a second; none may end by itself."""
    script = Path(__file__).with_name("planner_blocking.py")
    with (tmp_path / "log").open("w") as log:
        command = [sys.executable, str(script), address, str(tmp_path), str(LEASE_S)]
        running = [subprocess.Popen(command, stderr=log) for _ in range(2)]
        try:
            yield running
            assert [one.poll() for one in running] == [None, None], (tmp_path / "log").read_text()[-3000:]
            (tmp_path / "stop").touch()
            for one in running:
                one.wait(30)
        finally:
            for one in running:
                one.kill()
                one.wait()


@pytest.mark.usefixtures("workers")
def test_a_body_that_blocks_the_event_loop_is_run_by_one_of_two_workers(address: str, tmp_path: Path) -> None:
    with Agents(address, make_blocking(tmp_path), board=False, lease_s=LEASE_S) as agents:
        agents.start("block()", id="blocks")
        _until(lambda: (tmp_path / "ledger").exists())  # in the body
        free: list[str] = []

        def ended() -> bool:
            free.extend(agents.journal.claimable(MACHINE))
            return agents.show("blocks").status == "complete"

        _until(ended)
        assert free == []
        assert agents.show("blocks").refused == 0
    assert len((tmp_path / "ledger").read_text().splitlines()) == 1
    assert (tmp_path / "log").read_text() == "", "no worker took another for dead"


@pytest.mark.usefixtures("workers")
def test_a_question_of_an_agent_is_answered_from_another_machine(address: str, tmp_path: Path) -> None:
    """Agents without a board of their own ask on that of their database."""
    with Agents(address, make_blocking(tmp_path), lease_s=LEASE_S) as agents:
        for what in ("piano", "lamp"):
            agents.start(("ask", what), id=f"asks-{what}")
            _until(lambda what=what: agents.show(f"asks-{what}").status == "waiting")  # type: ignore[misc]
        with Blackboard(address) as board:
            asked = {item.get_value("question"): item.id for item in board.open_questions()}
            board.answer(asked["May piano be sold?"], "yes")
        _until(lambda: agents.show("asks-piano").status == "complete")
        assert agents.show("asks-piano").result == "yes"
        # It may just be looking whether the answer was meant for it.
        _until(lambda: agents.show("asks-lamp").status == "waiting")
        agents.answer(asked["May lamp be sold?"], "no")
        _until(lambda: agents.show("asks-lamp").status == "complete")
        assert agents.show("asks-lamp").result == "no"
