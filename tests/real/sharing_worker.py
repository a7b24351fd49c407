"""A machine of `test_sharing_postgres.py`: a process with a tree and a folder of its own that works on shared runs.

usage: python sharing_worker.py ADDRESS FOLDER NAME LEASE_S LEDGER RUN…
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from metatree import (
    Answer,
    Node,
    Reading,
    ReadRequest,
    RouteDecision,
    RouteRequest,
    Tree,
    resume,
    search,
    tool,
)
from metatree.errors import LeaseLost, RunExists, UnknownRun
from metatree.shared import Shared
from metatree.testing.parts import PlainComposer, PlainDescriber, ScriptedToolCaller

PAGES = 6
ENDED = ("answered", "exhausted", "waiting")
"""A run that was cut off in a call that may not be made twice waits for a person."""


def parts(ledger: Path, nap_s: float = 0.02, *, kind: str = "page") -> dict[str, Any]:
    """Return a router that goes to the page that a question names, and two tools that write down each call."""

    def note(what: str) -> None:
        file = os.open(ledger, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(file, f"{what}\n".encode())
        os.close(file)

    @tool(kind="exploratory", kinds=[kind])
    def look(node: Node) -> str:
        """Look at what a page links to."""
        note(f"look {node.id} begin")
        time.sleep(nap_s)
        note(f"look {node.id} end")
        return "nothing to see"

    @tool(kind="exploratory", kinds=[kind], repeatable=False)
    def pay(node: Node) -> str:
        """Pay for a page."""
        note(f"pay {node.id} begin")
        time.sleep(nap_s)
        note(f"pay {node.id} end")
        return f"{node.id} is paid"

    class Part:
        async def route(self, request: RouteRequest) -> RouteDecision:
            wanted = request.questions[0].split()[1]
            offered = [option.id for option in request.options]
            return RouteDecision(
                next((i for i in (wanted, "look", "pay") if i in offered), None), {}, "by name"
            )

        async def read(self, request: ReadRequest) -> Reading:
            wanted = f"{request.questions[0].split()[1]} is paid"
            if wanted not in request.content:
                return Reading(notes="dull")
            return Reading((Answer(request.questions[0], "yes", wanted),))

    part = Part()
    return {
        "router": part,
        "reader": part,
        "tool_caller": ScriptedToolCaller({"look": {}, "pay": {}}),
        "composer": PlainComposer(),
        "describer": PlainDescriber(),
        "evidence": False,
        "tools": [look, pay],
    }


def make_tree(folder: Path) -> Tree:
    """Return the tree that every machine has a copy of."""
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / "tree.db").exists():
        return Tree.open(folder / "tree.db")
    tree = Tree.create(folder / "tree.db")
    for number in range(PAGES):
        tree.add(Node(f"w{number}", f"w{number}", "A page", "links", "page"))
    return tree


def carry_on(tree: Tree, run_id: str, thinking: dict[str, Any]) -> bool:
    """Begin a run or take it up; return whether it has ended."""
    try:
        return resume(run_id, tree=tree, **thinking).ended in ENDED
    except LeaseLost:
        return False
    except UnknownRun:
        pass
    page = run_id.partition("-")[2]
    try:
        return search(f"Is {page} paid?", tree=tree, run_id=run_id, **thinking).ended in ENDED
    except (RunExists, LeaseLost):
        return False


def until(true: Callable[[], bool], timeout_s: float = 60.0) -> None:
    """Wait for something that another process does."""
    deadline = time.monotonic() + timeout_s
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


if __name__ == "__main__":
    address, folder, name, lease_s, ledger = sys.argv[1:6]
    with make_tree(Path(folder)) as tree, Shared(address, lease_s=float(lease_s), owner=name) as shared:
        tree.shared = shared
        thinking = parts(Path(ledger), float(os.environ.get("NAP_S", "0.02")))
        left = sys.argv[6:]
        while left:
            random.shuffle(left)
            left = [run_id for run_id in left if not carry_on(tree, run_id, thinking)]
            time.sleep(0.05)
