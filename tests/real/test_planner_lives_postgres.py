"""Children, sleeps, schedules and undoing on a real PostgreSQL, whose workers are killed."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from metatree_agents.planner import Agents

from tests.real.planner_trips import make_domain
from tests.real.postgres import serving

pytestmark = pytest.mark.real

AGENTS = 20
LEASE_S = 1.0
KILLS = 6


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with serving() as running:
        yield running.address()


def test_trips_end_as_undisturbed_ones_though_workers_are_killed(address: str, tmp_path: Path) -> None:
    script = Path(__file__).with_name("planner_trips.py")
    command = [sys.executable, str(script), address, str(tmp_path), str(LEASE_S)]
    agents = Agents(address, make_domain(tmp_path), lease_s=LEASE_S)
    for number in range(AGENTS):
        agents.start(("trip", number), id=f"trip-{number}")
    agents.schedule("later", "0 6 * * *", "trip(100)", zone="Europe/Berlin")
    agents.journal.database.execute("UPDATE schedule SET next_at = ?", (time.time() - 1,))
    kills, deadline = 0, time.monotonic() + 180
    with (tmp_path / "log").open("w") as log:
        running = [subprocess.Popen(command, stderr=log) for _ in range(2)]
        try:
            while True:
                assert time.monotonic() < deadline, (tmp_path / "log").read_text()[-3000:]
                signal.sigtimedwait([], 1.5)
                listed = {one[0]: one[2] for one in agents.all() if "." not in one[0]}
                ended = [one for one in listed.values() if one in ("complete", "failed")]
                if len(ended) == AGENTS + 1 and kills >= KILLS:
                    break
                if kills < KILLS:
                    one = running.pop(0)
                    one.kill()
                    one.wait()
                    running.append(subprocess.Popen(command, stderr=log))
                    kills += 1
        finally:
            for one in running:
                one.kill()
                one.wait()
    lines = (tmp_path / "ledger").read_text().splitlines()
    assert len([one for one in listed if one.startswith("later@")]) == 1
    for number in range(AGENTS):
        info = agents.show(f"trip-{number}")
        assert info.status == ("failed" if number % 2 else "complete"), info.detail
        assert {one.goal: one.result for one in info.intents}[("ask", number)] == 2 * number
        expected = set() if number % 2 else {("booked", number, what) for what in ("train", "hotel", "boat")}
        assert set(info.facts) == expected
        own = [one.split() for one in lines if one.split()[1] == str(number)]
        released = [one[2] for one in dict.fromkeys(map(tuple, own)) if one[0] == "release"]
        assert released == (["hotel", "train"] if number % 2 else []), (
            "each key once, what was done last first"
        )
    agents.close()
