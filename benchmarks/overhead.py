"""What the engine itself costs for each step, as CPU time: `python benchmarks/overhead.py [--steps N]`.

A step is one outcome: it is journaled, applied, and the next effects are started. The world is a stub that answers
at once, so what is left is the kernel and the search machine; then each real part is put in by itself: the journal
in a file, and the tree. Every figure is the best of several runs, since other processes disturb the others.

    machine and kernel                      goal: at most 20 µs
    with the journal in a file              goal: at most 200 µs
    with a real tree, and with both
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from metatree import Limits, Node, Reading, ReadRequest, RouteDecision, RouteRequest, Tree, search
from metatree.durable import Attempt, Effect, Journal, MemoryJournal, Policy, Runner, first_record, replay
from metatree.durable.sql_journal import SqlJournal
from metatree.searches._machine import SearchMachine
from metatree.searches._run import limits_json
from metatree.storage.store import Store
from metatree.testing.parts import FunctionRouter

BRANCHING = 10
NO_LIMITS = Limits(router_calls=None, reads=None, model_calls=None)


class StubWorld:
    """A tree of three levels that exists only as ids, with a router that takes the first option."""

    def handlers(self) -> dict[str, Any]:
        return {"list": self.list, "route": self.route, "read": self.read, "closest": self.closest}

    def list(self, effect: Effect, attempt: Attempt) -> dict[str, Any]:
        node, marks = effect.payload.node, effect.payload.marks
        leaf = len(node) == 4
        children = [] if leaf else [child for i in range(BRANCHING) if (child := f"{node}{i}") not in marks]
        return {
            "id": node,
            "title": node,
            "version": node,
            "content": leaf,
            "tools": False,
            "accept": False,
            "children": children,
            "collectable": False,
        }

    def route(self, effect: Effect, attempt: Attempt) -> dict[str, Any]:
        options = effect.payload.options
        return {
            "choice": options[0],
            "title": "",
            "score": 0.0,
            "hint": "",
            "accept": False,
            "unviable": {},
            "reason": "",
            "offered": options,
        }

    def read(self, effect: Effect, attempt: Attempt) -> dict[str, Any]:
        return {"answers": [], "new_questions": [], "notes": "", "useful": False}

    def closest(self, effect: Effect, attempt: Attempt) -> dict[str, Any]:
        return {"passages": []}


def stub_steps(journal: Journal, run_id: str) -> int:
    """Explore the whole stub tree; return the number of steps."""
    machine = SearchMachine()
    given = {
        "questions": ["q"],
        "context": "",
        "returns": "answer",
        "k": 5,
        "trail": ["."],
        "limits": limits_json(NO_LIMITS),
        "second_look": True,
        "fallbacks": [],
        "separate_frames": False,
    }
    first = first_record(machine, given, time.time())
    token = journal.create(run_id, machine.name, first)
    policies = {
        "route": Policy(attempts=3, timeout_s=60.0, counts=("router_calls",)),
        "read": Policy(attempts=3, timeout_s=60.0, counts=("reads",)),
    }
    runner = Runner(
        machine,
        journal,
        run_id,
        token,
        handlers=StubWorld().handlers(),
        policies=policies,
        limits={"seconds": 600.0, "tokens": 1_000_000},
    )
    return asyncio.run(runner.drive(replay(machine, [first]))).state.steps


def real_tree(path: Path) -> Tree:
    """Make a tree file with the same shape."""
    tree = Tree.create(path)
    level = [tree.root]
    for depth in range(3):
        nodes = [
            (Node(f"{above}{i}", f"{above}{i}", content="x" if depth == 2 else None), above)
            for above in level
            for i in range(BRANCHING)
        ]
        tree.add_many(nodes)
        level = [node.id for node, _ in nodes]
    return tree


def real_steps(tree: Tree, journal: Any, run_id: str) -> int:
    """Explore a real tree with parts that answer at once; return the number of steps."""

    def first(request: RouteRequest) -> RouteDecision:
        return RouteDecision(request.options[0].id)

    found = search(
        "q",
        tree=tree,
        router=FunctionRouter(first),
        reader=Silent(),
        evidence=False,
        limits=NO_LIMITS,
        journal=journal,
        run_id=run_id,
    )
    return found.trace[-1].step


NOTHING = Reading(useful=False)


class Silent:
    """Finds nothing and keeps nothing."""

    async def read(self, request: ReadRequest) -> Reading:
        return NOTHING


def best(steps: Callable[[str], int], repeats: int) -> tuple[float, int]:
    """Return microseconds of CPU for each step, the best of several runs, and the number of steps."""
    figures = []
    count = 0
    for number in range(repeats):
        began = time.process_time()
        count = steps(f"run{number}")
        figures.append((time.process_time() - began) / count * 1e6)
    return min(figures), count


def main() -> None:
    parser = argparse.ArgumentParser(description="CPU time of the engine for each step")
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder) / "runs.db") as store:
        durable = SqlJournal(store)
        with real_tree(Path(folder) / "tree.db") as tree:
            rows: list[tuple[str, Callable[[str], int], str]] = [
                ("machine and kernel", lambda run: stub_steps(MemoryJournal(), run), "20"),
                ("with the journal in a file", lambda run: stub_steps(durable, run), "200"),
                ("with a real tree", lambda run: real_steps(tree, MemoryJournal(), run), ""),
                ("with both", lambda run: real_steps(tree, durable, f"both-{run}"), "200"),
            ]
            print(f"{'':32}{'µs a step':>10}{'goal':>8}{'steps':>8}")
            for name, steps, goal in rows:
                figure, count = best(steps, repeats)
                print(f"{name:32}{figure:>10.1f}{goal:>8}{count:>8}")


if __name__ == "__main__":
    main()
