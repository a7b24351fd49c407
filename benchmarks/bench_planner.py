"""Measure what planning costs, and durable agents: one durable step, many agents, taking over those of a dead worker.

usage: python benchmarks/bench_planner.py [--agents 1000] [--planning] [--folder DIR]

planning   `plan` for a goal with so many sub-goals in order, each reading and changing one fact, and for so many
           deliveries of four tasks each by one truck, in order and unordered
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
from typing import Any

from metatree_agents.planner import Agents, Domain, plan
from metatree_agents.planner.agents._machine import MACHINE
from metatree_agents.planner.domain.facts import Facts
from metatree_agents.planner.domain.network import TOP, Intent

from metatree.durable import Record
from metatree.durable.sql_journal import SqlJournal
from metatree.storage.store import Store

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


def walk(count: int) -> tuple[Domain, dict[str, set[tuple[Any, ...]]]]:
    """Return a domain with a goal of so many steps in order, and its facts."""
    domain = Domain("walk")
    domain.relation("at", 1)
    domain.relation("next", 2)
    domain.task("step(?n)", when="(and (next ?n ?m) (at ?n))", effect="(and (not (at ?n)) (at ?m))")
    domain.rule("all()", subgoals=[("step", n) for n in range(count)])
    return domain, {"at": {(0,)}, "next": {(n, n + 1) for n in range(count)}}


def deliveries(count: int, *, order: bool) -> tuple[Domain, dict[str, set[tuple[Any, ...]]]]:
    """Return a domain with a goal of so many deliveries by one truck, and its facts."""
    domain = Domain("deliveries")
    domain.relation("at", 2)
    domain.task("move(?t, ?to)", when="(at ?t ?from)", effect="(and (not (at ?t ?from)) (at ?t ?to))")
    domain.task(
        "take(?p, ?t)", when="(and (at ?p ?x) (at ?t ?x))", effect="(and (not (at ?p ?x)) (at ?p ?t))"
    )
    domain.task(
        "drop(?p, ?t)", when="(and (at ?p ?t) (at ?t ?x))", effect="(and (not (at ?p ?t)) (at ?p ?x))"
    )
    for goal in ("move", "take", "drop"):
        domain.goal(goal, again=True)
    domain.rule(
        "deliver(?p, ?to)",
        when="(at ?p ?from)",
        subgoals=["move(truck, ?from)", "take(?p, truck)", "move(truck, ?to)", "drop(?p, truck)"],
    )
    domain.rule("all()", subgoals=[("deliver", f"p{n}", f"h{n % 7}") for n in range(count)], order=order)
    return domain, {"at": {("truck", "depot"), *((f"p{n}", f"d{n % 5}") for n in range(count))}}


def plan_s(made: tuple[Domain, dict[str, set[tuple[Any, ...]]]]) -> float:
    """Return how long planning takes."""
    domain, facts = made
    began = time.perf_counter()
    found = plan(domain.library, {TOP: Intent(TOP, ("all",))}, Facts(domain.library, facts))
    took = time.perf_counter() - began
    if found.ended != "planned":
        raise SystemExit(f"planning ended as {found.ended}")
    return took


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
        journal = SqlJournal(store)
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
    parser.add_argument("--planning", action="store_true", help="planning alone")
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
        for count in (50, 100, 200, 400, 1000, 5000):
            took = plan_s(walk(count))
            print(
                f"| {count:,} sub-goals in order | {took:.2f} s | {'5 s' if count == 5000 else '–'} |",
                flush=True,
            )
        for count in (60, 120, 200, 1000):
            took, loose = plan_s(deliveries(count, order=True)), plan_s(deliveries(count, order=False))
            print(f"| {count:,} deliveries, in order and not | {took:.2f} s, {loose:.2f} s | – |", flush=True)
        if arguments.planning:
            return
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
