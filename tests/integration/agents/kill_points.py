"""Kill an agent's process before and after each of its commits, drive it to its end, and print what it came to.

usage: python kill_points.py FOLDER NAME      prints a JSON list: the crash-free run first, then one entry for each kill
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

from metatree_agents.planner import Agents, Domain, Done, TaskContext

from metatree.storage.acceptance import accept
from metatree.storage.store import Store


def make_domain(ledger: Path) -> Domain:
    """Return a domain with a sequence, two unordered tasks, a fact that is read live, and a body done only once."""
    domain = Domain("errand")
    domain.relation("at", 1)
    domain.relation("seen", 1, dynamic=True)

    def note(what: str) -> None:
        with ledger.open("a") as file:
            file.write(what + "\n")

    @domain.task("go(?to)", when="(at ?here)", effect="(and (not (at ?here)) (at ?to))")
    def go(to: str, context: TaskContext) -> str:
        note(f"go {context.key}")
        return f"at {to}"

    @domain.task("look()")
    def look() -> Done:
        note("look")
        return Done(facts=[("seen", "bread")])

    @domain.task("greet(?who)")
    async def greet(who: str) -> str:
        note(f"greet {who}")
        return who

    @domain.task("pay(?what)", when="(seen ?what)", repeatable=False)
    def pay(what: str) -> str:
        note(f"pay {what}")
        return f"paid {what}"

    domain.rule("talk()", subgoals=["greet(ann)", "greet(bob)"], order=False)
    domain.rule("shop()", subgoals=["go(shop)", "look()", "pay(bread)", "talk()"])
    return domain


def make_trip(ledger: Path) -> Domain:
    """Return a domain with a child agent, a sleep, and two bookings that are taken back since the third fails."""
    domain = Domain("trip")
    domain.relation("booked", 1)

    def note(what: str, context: TaskContext) -> None:
        with ledger.open("a") as file:
            file.write(f"go {what} {context.key}\n")

    @domain.task("book(?what)", effect="(booked ?what)", undo="release(?what, ?result)")
    def book(what: str, context: TaskContext) -> str:
        note(f"book {what}", context)
        if what == "boat":
            raise ValueError("no boat")
        return f"number of {what}"

    @domain.task("release(?what, ?number)", when="(booked ?what)", effect="(not (booked ?what))")
    def release(what: str, number: str, context: TaskContext) -> None:
        note(f"release {what} {number}", context)

    @domain.task("price()")
    def price(context: TaskContext) -> int:
        note("price", context)
        return 3

    domain.task("ask()", does={"agent": "price()"})
    domain.task("nap()", does={"sleep": 0.01})
    domain.rule("travel()", subgoals=["ask()", "book(train)", "nap()", "book(hotel)", "book(boat)"])
    return domain


def make_shop(ledger: Path, version: str, takes_over: tuple[str, ...] = ()) -> Domain:
    """Return a domain in one of its versions: three things are picked; version 2 labels them as well."""
    domain = Domain("shop", version=version, takes_over=takes_over)
    domain.relation("picked", 1)

    def note(what: str, context: TaskContext) -> None:
        with ledger.open("a") as file:
            file.write(f"go {what} {version} {context.key}\n")

    @domain.task("pick(?n)", effect="(picked ?n)")
    def pick(n: int, context: TaskContext) -> str:
        note(f"pick-{n}", context)
        return version

    @domain.task("label()", when="(and (picked 1) (picked 2) (picked 3))")
    def label(context: TaskContext) -> str:
        note("label", context)
        return version

    domain.task("wait()", does={"receive": "paid"})
    last = ["label()"] if version == "2" else []
    domain.rule("finish()", name=f"finish-{version}", subgoals=["pick(3)", *last])
    domain.rule("all()", subgoals=["pick(1)", "wait()", "pick(2)", "finish()"])
    return domain


def versions(folder: Path, name: str) -> None:
    """Kill an agent of version 1 at each commit, in a process of both versions, of version 2, or of version 1.

    `stays`: both versions are there. `moves`: version 2 takes over agents of version 1. `upgrade`: the process that is
    killed has version 1, and those after it have version 2, which takes over.
    """
    results: list[dict[str, Any]] = []
    begun = folder / "begun.db"
    with Agents(begun, make_shop(folder / "begun.txt", "1")) as agents:
        agents.run(agents.start("all()", id="a"))
        agents.send("a", "paid")
    for point in count():
        place, ledger = folder / f"{point}.db", folder / f"{point}.txt"
        shutil.copy(begun, place)
        shutil.copy(folder / "begun.txt", ledger)
        accept(place, own=True)
        first, second = make_shop(ledger, "1"), make_shop(ledger, "2", ("1",) if name != "stays" else ())
        older = [first] if name == "stays" else []
        killed = _forked(place, first if name == "upgrade" and point else second, point, older)
        for _ in range(2):
            if _forked(place, second, 0, older):
                raise SystemExit("a run without a kill died")
        with Agents(place, second, older=older) as agents:
            info = agents.show("a")
        lines = [line.split()[1:] for line in ledger.read_text().splitlines()]
        results.append(
            {
                "killed": killed,
                "status": info.status,
                "version": info.version,
                "facts": sorted(map(list, info.facts)),
                "lines": [[what, version] for what, version, _ in lines],
                "keys": len({(what, key) for what, _, key in lines}),
            }
        )
        if point and not killed:
            break
    print(json.dumps(results))


DOMAINS: dict[str, tuple[Any, str]] = {"errand": (make_domain, "shop()"), "trip": (make_trip, "travel()")}


def main(folder: Path, name: str) -> None:
    """Do it."""
    make, goal = DOMAINS[name]
    results: list[dict[str, Any]] = []
    begun = folder / "begun.db"
    with Agents(begun, make(folder / "none.txt")) as agents:
        agents.start(goal, facts=[("at", "home")] if name == "errand" else [], id="a")
    point = 0
    while True:
        place, ledger = folder / f"{point}.db", folder / f"{point}.txt"
        domain = make(ledger)
        shutil.copy(begun, place)
        accept(place, own=True)
        killed = _forked(place, domain, point)
        for _ in range(10):
            if _forked(place, domain, 0):
                raise SystemExit("a run without a kill died")
            with Agents(place, domain) as agents:
                info = agents.show("a")
                if not info.questions:
                    break
                assert agents.board is not None
                happened = "pay bread" in ledger.read_text().splitlines()
                agents.answer(agents.board.open_questions()[0].id, "yes" if happened else "no")
        results.append(
            {
                "point": point,
                "killed": killed,
                "status": info.status,
                "intents": sorted([list(one.goal), one.status] for one in info.intents),
                "facts": sorted(map(list, info.facts)),
                "paid": ledger.read_text().splitlines().count("pay bread"),
                "keys": len({line for line in ledger.read_text().splitlines() if line.startswith("go ")}),
            }
        )
        if point and not killed:
            break
        point += 1
    print(json.dumps(results))


def _forked(place: Path, domain: Domain, point: int, older: Sequence[Domain] = ()) -> bool:
    """Drive the agent in a child that is killed at a moment, or never; say whether it was."""
    child = os.fork()
    if child == 0:
        try:
            _drive(place, domain, point, older)
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL


def _drive(place: Path, domain: Domain, point: int, older: Sequence[Domain]) -> None:
    with Agents(place, domain, older=older, lease_s=0.2) as agents:
        if point:
            _kill_at(point)
        agents.work(until_idle=True)


def _kill_at(point: int) -> None:
    """Kill this process at the n-th moment right before or after a commit."""
    moment = 0
    execute, rows = Store.execute, Store.rows

    def counted(original: Any) -> Any:
        def call(self: Store, sql: str, *arguments: Any) -> Any:
            nonlocal moment
            commits = sql == "COMMIT" or (
                not self._in_transaction and sql.lstrip().startswith(("INSERT", "UPDATE", "DELETE"))
            )
            if not commits:
                return original(self, sql, *arguments)
            moment += 1
            if moment == point:
                os.kill(os.getpid(), signal.SIGKILL)
            found = original(self, sql, *arguments)
            moment += 1
            if moment == point:
                os.kill(os.getpid(), signal.SIGKILL)
            return found

        return call

    Store.execute = counted(execute)  # type: ignore[method-assign]
    Store.rows = counted(rows)  # type: ignore[method-assign]


if __name__ == "__main__":
    (main if sys.argv[2] in DOMAINS else versions)(Path(sys.argv[1]), sys.argv[2])
