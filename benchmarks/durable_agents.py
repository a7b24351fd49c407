"""Run many durable agents on PostgreSQL while their workers are killed, beside DBOS in the same run.

usage: make bench-durable ARGS="…", or
       python benchmarks/durable_agents.py [--agents 1000] [--workers 4] [--kill-every 10] [--dbos VENV] [--rounds 1]

Each agent has ten tasks in order, each of which writes a line to a ledger. Four workers drive them; every ten seconds
one is killed (SIGKILL) and another begins in its place. VENV is a virtual environment with DBOS (3.4),
whose workers restart under the executor id of the one that was killed, as its documentation has it without its
Conductor. Both have eight agents at a time in each worker and look for work twice a second. The two take turns,
`--rounds` times.

steps/s     lines of the ledger from the first to the last, without what was written twice
take-over   from a kill until the first step of an agent that the killed worker had last been at, median and worst
lost        steps that no line tells of; `doubled` are lines too many (a body that was interrupted after its line)

PostgreSQL is that of `make test-real`, in a temporary folder.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from metatree_agents.planner import Agents, Domain
from metatree_agents.planner.agents.postgres import work

from tests.real.postgres import serving

STEPS = 10
AT_ONCE = 8
POLL_S = 0.5
LONGEST_S = 900.0
PEER = Path(__file__).with_name("peers") / "dbos_worker.py"


@dataclass(frozen=True, slots=True)
class Line:
    """A step that was done."""

    agent: str
    step: int
    pid: int
    at: float


def make_domain(ledger: Path) -> Domain:
    """Return ten tasks in order."""
    domain = Domain("lines")

    @domain.task("write(?agent, ?step)")
    def write(agent: str, step: int) -> int:
        file = os.open(ledger, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(file, f"{agent} {step} {os.getpid()} {time.time()!r}\n".encode())
        os.close(file)
        return step

    domain.rule("ten(?agent)", subgoals=[f"write(?agent, {step})" for step in range(STEPS)])
    return domain


def read(ledger: Path) -> list[Line]:
    """Return the lines of a ledger."""
    if not ledger.exists():
        return []
    fields = (line.split() for line in ledger.read_text().splitlines())
    return [Line(agent, int(step), int(pid), float(at)) for agent, step, pid, at in fields]


def run(name: str, agents: int, workers: int, kill_every_s: float, venv: Path | None, seed: int) -> None:
    """Run one of the two and print its row."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as text, serving() as server:
        folder, ledger, address = Path(text), Path(text) / "ledger", server.address()
        if venv is None:
            own = [sys.executable, __file__, "--worker", address, str(ledger)]
            commands = [own] * workers
            with Agents(address, make_domain(ledger), board=False) as made:
                began = time.time()
                for number in range(agents):
                    made.start(("ten", f"a{number}"), id=f"a{number}")
        else:
            peer = [str(venv / "bin" / "python"), str(PEER), address, str(ledger)]
            commands = [[*peer, "work", f"worker-{number}"] for number in range(workers)]
            subprocess.run([*peer, "prepare", "worker-0"], check=True, stdout=subprocess.DEVNULL)
            began = time.time()
            subprocess.run([*peer, "enqueue", str(agents)], check=True, stdout=subprocess.DEVNULL)
        print(f"{name}: {agents} begun in {time.time() - began:.1f} s", file=sys.stderr, flush=True)
        kills: list[tuple[float, int]] = []
        with (folder / "log").open("w") as log:
            running = [subprocess.Popen(one, stdout=log, stderr=log) for one in commands]
            deadline, next_kill = time.time() + LONGEST_S, None
            try:
                while time.time() < deadline:
                    signal.sigtimedwait([], 0.25)
                    done = {(one.agent, one.step) for one in read(ledger)}
                    if done and next_kill is None:
                        next_kill = time.time() + kill_every_s
                    if len(done) == agents * STEPS:
                        break
                    if next_kill is not None and time.time() > next_kill:
                        index = rng.randrange(workers)
                        kills.append((time.time(), running[index].pid))
                        running[index].kill()
                        running[index].wait()
                        running[index] = subprocess.Popen(commands[index], stdout=log, stderr=log)
                        next_kill = time.time() + kill_every_s
            finally:
                for one in running:
                    one.kill()
                    one.wait()
        print(row(name, read(ledger), kills, agents), flush=True)


def row(name: str, lines: list[Line], kills: list[tuple[float, int]], agents: int) -> str:
    """Return the row of the table."""
    counted = Counter((one.agent, one.step) for one in lines)
    lost = agents * STEPS - len(counted)
    doubled = sum(counted.values()) - len(counted)
    seconds = max(one.at for one in lines) - min(one.at for one in lines)
    waits = []
    for at, pid in kills:
        last = {one.agent: one for one in sorted(lines, key=lambda one: one.at) if one.at <= at}
        for agent, line in last.items():
            after = [one.at for one in lines if one.agent == agent and one.at > at]
            if line.pid == pid and line.step < STEPS - 1 and after:
                waits.append(min(after) - at)
    took = f"{statistics.median(waits):.1f} / {max(waits):.1f} s ({len(waits)})" if waits else "–"
    return f"| {name} | {len(counted) / seconds:.0f} | {seconds:.0f} s | {len(kills)} | {took} | {lost} | {doubled} |"


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--agents", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--kill-every", type=float, default=10.0)
    parser.add_argument("--dbos", type=Path, default=None)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--worker", nargs=2, default=None, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker is not None:
        address, ledger = given.worker
        agents = Agents(address, make_domain(Path(ledger)), board=False)
        work(address, agents, concurrency=AT_ONCE, poll_s=POLL_S)
        return
    print("| | steps/s | all in | kills | take-over, median / worst (agents) | lost | doubled |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for round_ in range(given.rounds):
        for name, venv in (("metatree", None), ("DBOS", given.dbos)):
            if name == "metatree" or venv is not None:
                run(name, given.agents, given.workers, given.kill_every, venv, round_)


if __name__ == "__main__":
    main()
