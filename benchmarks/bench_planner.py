"""Measure what durable agents cost: one durable step, many agents, and taking over those of a dead worker.

usage: python benchmarks/bench_planner.py [--agents 1000] [--folder DIR]

step       one fenced append to a journal in a file, as an agent makes two for each task: with full synchronisation
           (survives a power failure) and relaxed (survives the end of the process); the median and the slowest of 100
agents     agents of 10 tasks each, bodies that do nothing, driven by one process, with and without a blackboard
take-over  a process that drives an agent is stopped (SIGSTOP), so that only its lease tells; seconds from the stop
           until another process has it, beside the lease; and after SIGKILL, which is seen at once on one machine

DIR is where the files are made; by default a temporary folder. Disks differ much in the first figure.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from metatree_agents.planner import Agents, Domain
from metatree_agents.planner.machine import MACHINE

from metatree.kernel import Record
from metatree.kernel.sqlite_journal import SqliteJournal
from metatree.store import Store

LEASE_S = 2.0


def chores() -> Domain:
    """Return a domain with a goal of ten tasks: two rules, the tasks of one in sequence, those of the other not."""
    domain = Domain("chores")
    domain.relation("done", 1)
    domain.task("do(?n)", when="(not (done ?n))", effect="(done ?n)")
    domain.rule("first()", subgoals=[("do", n) for n in range(5)])
    domain.rule("second()", subgoals=[("do", n) for n in range(5, 10)], order=False)
    domain.rule("all()", subgoals=["first()", "second()"])
    return domain


def stalling(folder: Path) -> Domain:
    """Return a domain with one task that waits until it is told to go on."""
    domain = Domain("stalling")

    @domain.task("wait()")
    def wait() -> None:
        (folder / f"begun-{os.getpid()}").touch()
        while not (folder / "go").exists():
            time.sleep(0.01)

    return domain


def step_ms(folder: Path, synchronous: str) -> tuple[float, float]:
    """Return the median and the 99th percentile of an append."""
    with Store.open(folder / f"{synchronous}.db", synchronous=synchronous) as store:  # type: ignore[arg-type]
        journal = SqliteJournal(store)
        token = journal.create("r", "m", Record("begin", 0.0))
        took = []
        for seq in range(1, 501):
            record = Record("outcome", time.time(), seq, {"=": {"result": "done", "facts": []}})
            began = time.perf_counter()
            journal.append("r", token, seq, record)
            took.append((time.perf_counter() - began) * 1000)
    return statistics.median(took), sorted(took)[int(len(took) * 0.99)]


def many(folder: Path, count: int, *, board: bool) -> float:
    """Return how long a process takes to start and drive so many agents."""
    with Agents(folder / f"many-{board}.db", chores(), board=None if board else False) as agents:
        began = time.perf_counter()
        for number in range(count):
            agents.start("all()", id=f"a{number}")
        agents.work(until_idle=True, at_once=16)
        took = time.perf_counter() - began
        ends = {status for _, _, status, _ in agents.all()}
    if ends != {"complete"}:
        raise SystemExit(f"agents ended as {ends}")
    return took


def take_over_s(folder: Path, how: signal.Signals) -> float:
    """Return how long after a process was stopped or killed another one has begun its agent's task."""
    folder.mkdir()
    place = folder / "agents.db"
    with Agents(place, stalling(folder), lease_s=LEASE_S, board=False) as agents:
        agent = agents.start("wait()")
        child = subprocess.Popen([sys.executable, __file__, "--worker", str(folder)])
        try:
            while not list(folder.glob("begun-*")):
                time.sleep(0.01)
            time.sleep(LEASE_S / 3)
            child.send_signal(how)
            began = time.perf_counter()
            taken: list[float] = []

            def over() -> bool:
                if not taken and (folder / f"begun-{os.getpid()}").exists():
                    taken.append(time.perf_counter() - began)
                    (folder / "go").touch()
                return not agents.journal.is_waiting(agent, MACHINE)

            agents.work(stop=over, poll_s=0.05)
        finally:
            child.kill()
            child.wait()
    return taken[0]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--agents", type=int, default=1000)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker is not None:
        folder = arguments.worker
        with Agents(folder / "agents.db", stalling(folder), lease_s=LEASE_S, board=False) as agents:
            agents.work(until_idle=True, poll_s=0.05)
        return
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        folder = Path(name)
        print("| | | bound |")
        print("|---|---|---|")
        for synchronous, bound in (("FULL", 5.0), ("NORMAL", 0.1)):
            middle, slow = step_ms(folder, synchronous)
            word = "full synchronisation" if synchronous == "FULL" else "relaxed"
            print(f"| durable step, {word} | {middle:.3f} ms, one in 100 over {slow:.3f} ms | {bound:g} ms |")
        for board in (False, True):
            took = many(folder, arguments.agents, board=board)
            word = "with" if board else "without"
            print(
                f"| {arguments.agents:,} agents of 10 tasks, {word} a board | {took:.1f} s | 60 s |",
                flush=True,
            )
        for how, bound in ((signal.SIGSTOP, LEASE_S + 1), (signal.SIGKILL, LEASE_S + 1)):
            took = take_over_s(folder / how.name, how)
            print(
                f"| take-over after {how.name}, lease {LEASE_S:g} s | {took:.2f} s | {bound:g} s |",
                flush=True,
            )


if __name__ == "__main__":
    main()
