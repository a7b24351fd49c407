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
from metatree_agents.planner import Agents

from tests.integration.agents.stalled_worker import make_domain

pytestmark = pytest.mark.integration

HERE = Path(__file__).parent


def test_a_run_that_is_killed_at_any_commit_ends_as_the_undisturbed_one(tmp_path: Path) -> None:
    """Trace 7: the body that may not happen twice happens once, since a person says whether it did."""
    done = subprocess.run(
        [sys.executable, HERE / "kill_points.py", tmp_path], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    undisturbed, *killed = json.loads(done.stdout)
    assert undisturbed["status"] == "complete"
    assert len([one for one in killed if one["killed"]]) > 40
    for one in killed:
        assert {**one, "point": 0, "killed": False} == undisturbed, one


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


def _until(holds: object, seconds: float = 30.0) -> None:
    assert callable(holds)
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(0.02)
