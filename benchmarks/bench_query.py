"""How long questions take on the tree of a folder with the embedded router: the first ones and later ones, and memory.

usage: python benchmarks/bench_query.py [FOLDER …]      (this repository when none is given)

The questions are what definitions of the folder say of themselves, so each has an answer. `index` is the first question
on a tree without a text index, `cold` the first one of a process on an indexed tree, opening included, imports not;
`CPU` is the mean of all. What was found is a check that questions are answered, no measure of how well: they are easy.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Literal

from metatree_memory_tools import build_tree

from metatree import Tree, search

HERE = Path(__file__).resolve()
Returns = Literal["answer", "nodes"]


def questions_for(tree: Tree, number: int) -> list[tuple[str, str]]:
    """Return (id, question) of definitions picked at random: the words of their descriptions behind the signature."""
    found: list[tuple[str, str]] = []
    for _, node in tree.walk():
        said = node.description.rpartition(" — ")[2].strip()
        if node.kind == "definition" and " — " in node.description and len(said.split()) >= 5:
            found.append((node.id, said))
    return random.Random(1).sample(found, min(number, len(found)))


def ask_in_this_process(place: Path, asked: list[tuple[str, str]], returns: Returns) -> dict[str, Any]:
    """Ask the questions one after the other; times in seconds, the first with the opening of the tree."""
    times, found = [], 0
    cpu = time.process_time()
    started = time.perf_counter()
    tree = Tree.open(place)
    for node, question in asked:
        result = search(question, tree=tree, returns=returns, k=5)
        times.append(time.perf_counter() - started)
        found += any(_at(each.id, node) for each in result.nodes)
        started = time.perf_counter()
    cpu = (time.process_time() - cpu) / len(asked)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"times": times, "cpu": cpu, "found": found / len(asked), "peak_bytes": peak}


def _at(found: str, node: str) -> bool:
    """Say whether what was found is the node, its file, or a part of it."""
    return found == node or node.startswith(f"{found}::") or found.startswith((f"{node}.", f"{node}::"))


def in_own_process(place: Path, asked: list[tuple[str, str]], returns: Returns) -> dict[str, Any]:
    """Return what `ask_in_this_process` gives in a fresh process."""
    command = [sys.executable, str(HERE), "--measure", returns, str(place)]
    done = subprocess.run(command, input=json.dumps(asked), stdout=subprocess.PIPE, check=True, text=True)
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Measure how long questions take.")
    parser.add_argument("folders", nargs="*", type=Path, default=[HERE.parents[1]], metavar="FOLDER")
    parser.add_argument("--questions", type=int, default=50)
    parser.add_argument("--measure", choices=("answer", "nodes"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        asked = [(node, question) for node, question in json.load(sys.stdin)]
        print(json.dumps(ask_in_this_process(given.folders[0], asked, given.measure)))
        return
    head = (
        "folder",
        "nodes",
        "returns",
        "index s",
        "cold ms",
        "warm ms",
        "warm p95 ms",
        "CPU ms",
        "peak MB",
        "found in 5",
    )
    print("| " + " | ".join(head) + " |")
    print("|---|---:|---|" + "---:|" * (len(head) - 3))
    for folder in given.folders:
        with tempfile.TemporaryDirectory() as out:
            place = Path(out)
            with build_tree(folder, out=place) as tree:
                nodes = len(tree)
                asked = questions_for(tree, given.questions)
            if len(asked) < 3:
                raise SystemExit(f"{folder} has too few definitions with a docstring to ask about")
            indexed = in_own_process(place, asked[:1], "nodes")["times"][0]
            ways: tuple[Returns, ...] = ("nodes", "answer")
            for returns in ways:
                figures = in_own_process(place, asked, returns)
                cold, *warm = (1000 * seconds for seconds in figures["times"])
                cells = (
                    folder.resolve().name,
                    f"{nodes:,}",
                    returns,
                    f"{indexed:.2f}",
                    f"{cold:.0f}",
                    f"{statistics.median(warm):.0f}",
                    f"{statistics.quantiles(warm, n=20)[-1]:.0f}",
                    f"{1000 * figures['cpu']:.0f}",
                    f"{figures['peak_bytes'] / 1e6:.0f}",
                    f"{100 * figures['found']:.0f} %",
                )
                print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
