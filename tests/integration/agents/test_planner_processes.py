"""Agents and the processes that drive them: killed at every commit, stopped past the lease, in doubt."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from metatree_agents.planner import Agents, Domain

from tests.integration.agents.stalled_worker import make_domain

pytestmark = pytest.mark.integration

HERE = Path(__file__).parent


def test_a_run_that_is_killed_at_any_commit_ends_as_the_undisturbed_one(tmp_path: Path) -> None:
    """Trace 7: the body that may not happen twice happens once, since a person says whether it did."""
    done = subprocess.run(
        [sys.executable, HERE / "kill_points.py", tmp_path, "errand"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    undisturbed, *killed = json.loads(done.stdout)
    assert undisturbed["status"] == "complete"
    assert len([one for one in killed if one["killed"]]) > 40
    for one in killed:
        assert {**one, "point": 0, "killed": False} == undisturbed, one


def test_children_and_undoing_that_are_killed_at_any_commit_end_as_the_undisturbed_run(
    tmp_path: Path,
) -> None:
    done = subprocess.run(
        [sys.executable, HERE / "kill_points.py", tmp_path, "trip"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    undisturbed, *killed = json.loads(done.stdout)
    assert (undisturbed["status"], undisturbed["facts"], undisturbed["keys"]) == ("failed", [], 6)
    assert len([one for one in killed if one["killed"]]) > 60
    for one in killed:
        assert {**one, "point": 0, "killed": False} == undisturbed, one


@pytest.mark.parametrize("name", ["stays", "moves", "upgrade"])
def test_versions_of_a_library_hold_though_processes_are_killed_at_any_commit(
    tmp_path: Path, name: str
) -> None:
    """An agent goes on with the version that it began with, or moves to the one that takes it over, for good."""
    done = subprocess.run(
        [sys.executable, HERE / "kill_points.py", tmp_path, name], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    undisturbed, *killed = json.loads(done.stdout)
    assert len([one for one in killed if one["killed"]]) > 30
    assert undisturbed["version"] == ("1" if name == "stays" else "2")
    for one in killed:
        assert (one["status"], one["facts"]) == ("complete", [["picked", n] for n in (1, 2, 3)]), one
        versions = [version for _, version in one["lines"]]
        assert versions == sorted(versions), "no step of version 1 after one of version 2"
        by_two = [what for what, version in one["lines"] if version == "2"]
        steps = list(dict.fromkeys(what for what, _ in one["lines"]))
        assert steps == ["pick-1", "pick-2", "pick-3", *(["label"] if "label" in by_two else [])]
        assert one["keys"] == len(steps), "each step has the same key in every process and version"
        if name == "stays":
            assert versions == ["1"] * len(versions)
        elif name == "moves":
            assert (one["version"], by_two[-1]) == ("2", "label"), (
                "what was not begun is planned with version 2"
            )
            assert versions[0] == "1", "what version 1 has done is not done again"
    assert {one["version"] for one in killed} == (
        {"1", "2"} if name == "upgrade" else {undisturbed["version"]}
    )


def test_the_write_of_a_stopped_process_is_refused_and_counted(tmp_path: Path) -> None:
    """Trace 8: two workers, the older one stopped past its lease and then continued."""
    place = tmp_path / "agents.db"
    log = tmp_path / "log"
    lease_s = 0.3
    with Agents(place, make_domain(tmp_path, "new"), lease_s=lease_s) as agents:
        agent = agents.start("work()")
        with log.open("w") as stream:
            old = subprocess.Popen(
                [sys.executable, HERE / "stalled_worker.py", place, tmp_path, str(lease_s)], stderr=stream
            )
        try:
            _until(lambda: (tmp_path / "begun-old").exists())
            old.send_signal(signal.SIGSTOP)
            (tmp_path / "go-new").touch()
            agents.work(stop=lambda: agents.show(agent).status == "complete", poll_s=0.02)
            assert (tmp_path / "begun-new").read_text() == "2", "the second attempt, under the same key"
            assert agents.show(agent).refused == 0
            (tmp_path / "go-old").touch()
            old.send_signal(signal.SIGCONT)
            _until(lambda: agents.show(agent).refused > 0)
            (tmp_path / "stop-old").touch()
            assert old.wait(30) == 0
            info = agents.show(agent)
        finally:
            if old.poll() is None:
                os.kill(old.pid, signal.SIGKILL)
                old.wait()
    assert (info.status, info.result) == ("complete", "new")
    assert "driven by another process" in log.read_text()


BLOCKING = """
import sys, time
from metatree_agents.planner import Agents, Domain
place, ledger, lease_s = sys.argv[1], sys.argv[2], float(sys.argv[3])
domain = Domain("blocking")
@domain.task("block()")
async def block():
    with open(ledger, "a") as stream:
        stream.write("begun\\n")
    time.sleep(5 * lease_s)
with Agents(place, domain, board=False, lease_s=lease_s) as agents:
    agents.work(stop=lambda: agents.show("a").status == "complete", poll_s=0.05)
"""


def test_a_body_that_blocks_the_event_loop_is_run_by_one_of_two_workers(tmp_path: Path) -> None:
    place, ledger = tmp_path / "agents.db", tmp_path / "ledger"
    domain = Domain("blocking")
    domain.task("block()", does={"function": True})
    with Agents(place, domain, board=False) as agents:
        agents.start("block()", id="a")
        command = [sys.executable, "-c", BLOCKING, str(place), str(ledger), "0.5"]
        workers = [subprocess.Popen(command) for _ in range(2)]
        try:
            assert [one.wait(60) for one in workers] == [0, 0]
        finally:
            for one in workers:
                one.kill()
        assert (agents.show("a").status, agents.show("a").refused) == ("complete", 0)
    assert ledger.read_text().splitlines() == ["begun"]


def _until(holds: object, seconds: float = 30.0) -> None:
    assert callable(holds)
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(0.02)


BEGUN_ONCE = """
import os, sys
from metatree_agents.planner import Agents, Domain, TaskContext

domain = Domain("clock")

@domain.task("note()")
def note(context: TaskContext) -> None:
    with open(sys.argv[2], "a") as file:
        file.write(f"{context.attempt} {context.since!r}\\n")
    if context.attempt == 1:
        os.kill(os.getpid(), 9)

with Agents(sys.argv[1], domain) as agents:
    agent = agents.start("note()") if sys.argv[3] == "start" else sys.argv[3]
    print(agent, flush=True)
    print(agents.run(agent).status)
"""


def test_when_an_intent_was_begun_is_the_same_in_the_process_that_takes_over(tmp_path: Path) -> None:
    command = [sys.executable, "-c", BEGUN_ONCE, str(tmp_path / "a.db"), str(tmp_path / "times")]
    killed = subprocess.run([*command, "start"], capture_output=True, text=True, check=False)
    assert killed.returncode == -9
    agent = killed.stdout.split()[0]
    done = subprocess.run([*command, agent], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [agent, "complete"]
    (first, since), (second, again) = (line.split() for line in (tmp_path / "times").read_text().splitlines())
    assert (first, second) == ("1", "2")
    assert since == again != "0.0"
