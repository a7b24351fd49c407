"""A tree of a million nodes: how fast it opens and steps, and what memory it takes.

    python benchmarks/million.py [--nodes N] [--keep FILE]      # a made tree, branching 10
    python benchmarks/million.py --folder DIR                   # one built from the files of a folder

Opening and stepping happen in a fresh process, so that nothing is warm but the disk.
A step is the listing of a node, the decision of a router that knows the way, or a read; steps are timed one by one
over many searches for random leaves. Goals: open in less than 100 ms, 99 % of the steps in less than 1 ms, less than
300 MB of memory added.
"""

from __future__ import annotations

import argparse
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from metatree import Answer, Limits, Node, Reading, ReadRequest, RouteDecision, RouteRequest, Tree, search
from metatree.durable import MemoryJournal

SEARCHES = 300


def nodes_of(count: int) -> Iterator[tuple[Node, str]]:
    """Yield nodes with their parents, level by level; node n lies under node (n - 1) // 10."""
    for number in range(count):
        parent = "." if number < 10 else f"n{(number - 10) // 10}"
        leaf = number * 10 + 10 >= count
        content = f"text of node {number}" if leaf else None
        yield Node(f"n{number}", f"node {number}", f"what lies at {number}", content), parent


def make(path: Path, count: int) -> None:
    began = time.monotonic()
    with Tree.create(path) as tree:
        tree.add_many(nodes_of(count))
    took_s = time.monotonic() - began
    size_mb = path.stat().st_size / 1e6
    print(f"{'made':24}{count:>12,} nodes in {took_s:.1f} s, {size_mb:.0f} MB", flush=True)


class Guide:
    """Knows the way to one leaf; counts the time between the questions it is asked."""

    def __init__(self, trail: set[str], leaf: str) -> None:
        self.trail, self.leaf = trail, leaf

    async def route(self, request: RouteRequest) -> RouteDecision:
        return RouteDecision(next(o.id for o in request.options if o.id in self.trail))

    async def read(self, request: ReadRequest) -> Reading:
        return Reading((Answer("q", "found", request.content),))


class Timed(MemoryJournal):
    """Notes the time between one outcome and the next, which is one step."""

    def __init__(self) -> None:
        super().__init__()
        self.steps_s: list[float] = []
        self._last = 0.0

    def append(self, run_id, token, seq, record):  # type: ignore[no-untyped-def]
        now = time.perf_counter()
        if seq > 1:
            self.steps_s.append(now - self._last)
        self._last = now
        return super().append(run_id, token, seq, record)


def peak_mb() -> float:
    """Return the most memory that this process has had; `getrusage` would count its parent's too."""
    status = Path("/proc/self/status")
    if status.exists():
        return int(status.read_text().split("VmHWM:")[1].split()[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def build(folder: Path, out: Path) -> None:
    from metatree_memory_tools import build_tree

    began = time.monotonic()
    with build_tree(folder, out=out) as tree:
        count = len(tree)
    size_mb = sum(file.stat().st_size for file in out.iterdir()) / 1e6
    print(f"{'built':24}{count:>12,} nodes in {time.monotonic() - began:.1f} s, {size_mb:.0f} MB", flush=True)
    print(f"{'peak memory':24}{peak_mb():>12.0f} MB", flush=True)


def leaves_of(tree: Tree, rng: random.Random) -> Iterator[str]:
    """Yield random leaves with content, by random walks from the root."""
    while True:
        node = tree.get(tree.root)
        while children := tree.children(node):
            node = rng.choice(children)
        if node.has_content:
            yield node.id


def measure(path: Path) -> None:
    before_mb = peak_mb()
    began = time.perf_counter()
    tree = Tree.open(path)
    tree.get(tree.root)
    open_ms = (time.perf_counter() - began) * 1e3
    rng = random.Random(1)
    journal = Timed()
    limits = Limits(seconds=None)
    targets = list(islice(leaves_of(tree, rng), SEARCHES))
    for leaf in targets:
        guide = Guide({*tree.ancestors(leaf), leaf}, leaf)
        found = search(
            "q", tree=tree, router=guide, reader=guide, evidence=False, journal=journal, limits=limits
        )
        assert found.ended == "answered", found
    steps_ms = sorted(step * 1e3 for step in journal.steps_s)
    print(f"{'open':24}{open_ms:>12.1f} ms   (goal 100)")
    print(f"{'step, median':24}{statistics.median(steps_ms):>12.3f} ms")
    print(f"{'step, 99 %':24}{steps_ms[int(len(steps_ms) * 0.99)]:>12.3f} ms   (goal 1)")
    print(f"{'memory added':24}{peak_mb() - before_mb:>12.0f} MB   (goal 300)")
    edits = []
    for number in range(300):
        one, other = rng.choice(targets), rng.choice(targets)
        began = time.perf_counter()
        tree.add(Node(f"edit{number}", "an edit", content="x"), parent=one)
        tree.move(f"edit{number}", other)
        tree.delete(f"edit{number}")
        edits.append((time.perf_counter() - began) * 1e3)
    print(f"{'insert, move and delete':24}{statistics.median(edits):>12.3f} ms   together, median")
    tree.close()


def main() -> None:
    parser = argparse.ArgumentParser(description="Open, step and memory of a tree of a million nodes")
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--keep", type=Path, help="keep the tree in this file, and use it when it is there")
    parser.add_argument("--folder", type=Path, help="build the tree from the files of this folder")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure is not None:
        measure(arguments.measure)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = arguments.keep or Path(folder) / "million.db"
        if arguments.folder is not None:
            path = arguments.keep or Path(folder) / "built"
            build(arguments.folder, path)
        elif not path.exists():
            make(path, arguments.nodes)
        command = [sys.executable, __file__, "--measure", str(path)]
        subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
