"""How long a search blocks the event loop of its caller: `python benchmarks/bench_loop.py [--nodes N]`.

A task on the loop looks at the clock every millisecond while `asearch` runs beside it, with the embedded router: for
the first time in the process, on a small tree, which loads the embeddings (their tokenizer keeps the interpreter's lock
in pieces); for the first time on a tree of many nodes, which builds the text index; and again on that. Four figures of
each:

    search    how long the search takes
    own CPU   the most CPU time that the loop's own thread spends on one turn
    CPU       the most CPU time that all threads spend while the loop waits for one turn: the interpreter's lock, which
              the working thread gives up every 5 ms, and later in the middle of a call of C; goal: at most 50 ms
    late      the most that the task comes late, by the clock, whatever else the machine does
"""

from __future__ import annotations

import argparse
import asyncio
import random
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from metatree import Node, SearchResult, Tree, asearch

TICK_S = 0.001
WORDS = 4_000
WORDS_OF_A_NODE = 60
FOLDERS = 100
QUESTIONS = 20


@dataclass
class Longest:
    """The worst turn of a loop, in seconds."""

    own_cpu: float = 0.0
    cpu: float = 0.0
    late: float = 0.0

    async def watch(self) -> None:
        """Look at the clocks again and again, until this is cancelled."""
        before = (time.thread_time(), time.process_time(), time.perf_counter())
        while True:
            await asyncio.sleep(TICK_S)
            now = (time.thread_time(), time.process_time(), time.perf_counter())
            self.own_cpu = max(self.own_cpu, now[0] - before[0])
            self.cpu = max(self.cpu, now[1] - before[1])
            self.late = max(self.late, now[2] - before[2] - TICK_S)
            before = now


def word(rng: random.Random) -> str:
    """Return a word, few of which are frequent."""
    return f"word{int(WORDS * rng.random() ** 3):x}"


def big_tree(path: Path, nodes: int) -> Tree:
    """Make a tree of folders with texts of words."""
    rng = random.Random(1)
    tree = Tree.create(path)
    folders = [Node(f"folder{i}", f"Folder {i}", word(rng)) for i in range(min(FOLDERS, nodes))]
    tree.add_many([(folder, tree.root) for folder in folders])
    texts = [" ".join(word(rng) for _ in range(WORDS_OF_A_NODE)) for _ in range(nodes - len(folders))]
    tree.add_many(
        [
            (Node(f"node{i}", f"Node {i}", text[:80], content=text), folders[i % len(folders)].id)
            for i, text in enumerate(texts)
        ]
    )
    return tree


async def watched(tree: Tree, question: str) -> tuple[SearchResult, float, Longest]:
    """Search once; return the result, the seconds, and the worst turn of the loop."""
    longest = Longest()
    task = asyncio.ensure_future(longest.watch())
    await asyncio.sleep(0.05)
    longest.own_cpu = longest.cpu = longest.late = 0.0
    began = time.perf_counter()
    result = await asearch(question, tree=tree)
    seconds = time.perf_counter() - began
    await asyncio.sleep(0.05)  # for the tick that is due
    task.cancel()
    await asyncio.wait([task])
    return result, seconds, longest


def row(name: str, seconds: float, own_cpu: float, cpu: float, late: float) -> str:
    """Return a line of the table, in milliseconds."""
    return f"{name:28}{seconds * 1e3:>10.0f}{own_cpu * 1e3:>10.1f}{cpu * 1e3:>10.1f}{late * 1e3:>10.1f}"


async def run(tree: Tree) -> None:
    """Print the figures of a first search, and the worst of several later ones."""
    rng = random.Random(2)
    with Tree.create(":memory:") as small:
        small.add(Node("a", "A", content="one text"), parent=small.root)
        _, seconds, first = await watched(small, "Which text?")
    print(f"{'ms':28}{'search':>10}{'own CPU':>10}{'CPU':>10}{'late':>10}")
    print(row("first, loads embeddings", seconds, first.own_cpu, first.cpu, first.late))
    _, seconds, first = await watched(tree, f"{word(rng)} {word(rng)}")
    print(row("first, builds the index", seconds, first.own_cpu, first.cpu, first.late))
    later = [await watched(tree, f"{word(rng)} {word(rng)} {word(rng)}") for _ in range(QUESTIONS)]
    assert all(found.ended in ("answered", "exhausted") for found, _, _ in later)
    worst = [max(each) for each in zip(*((s, w.own_cpu, w.cpu, w.late) for _, s, w in later), strict=True)]
    print(row(f"worst of {QUESTIONS} later ones", *worst))


def main() -> None:
    parser = argparse.ArgumentParser(description="how long a search blocks the loop of its caller")
    parser.add_argument("--nodes", type=int, default=10_000)
    nodes = parser.parse_args().nodes
    with tempfile.TemporaryDirectory() as folder, big_tree(Path(folder) / "tree.db", nodes) as tree:
        asyncio.run(run(tree))


if __name__ == "__main__":
    main()
