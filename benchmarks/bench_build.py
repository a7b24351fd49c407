"""How fast trees of folders are built and indexed, how much memory that takes, and what an unchanged build costs.

usage: python benchmarks/bench_build.py [--history] [FOLDER …]      (this repository when none is given)

Each build runs in a process of its own and keeps its tree in a temporary folder; the folders are only read. `index` is
the CPU that the text index takes, of that of the build without it.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from metatree_memory_tools import build_tree
from metatree_routers import TextEvidence

HERE = Path(__file__).resolve()


def cpu_seconds() -> float:
    """Return the CPU that this process and those that it has waited for have taken: git reads the history."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


def measure_build(folder: Path, out: Path, *, history: bool) -> dict[str, Any]:
    """Build a tree in this process and return its figures; times in seconds, sizes in bytes."""
    started, cpu = time.perf_counter(), cpu_seconds()
    with build_tree(folder, out=out, history=history or None) as tree:
        seconds, cpu = time.perf_counter() - started, cpu_seconds() - cpu
        info = tree.info()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        began = cpu_seconds()
        TextEvidence(tree).refresh()
        index_cpu = cpu_seconds() - began
    return {
        "files": info["kinds"].get("file", 0),
        "nodes": info["nodes"],
        "seconds": seconds,
        "cpu": cpu,
        "index_cpu": index_cpu,
        "peak_bytes": peak,
        "peak_index_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "tree_bytes": info["index_bytes"],
    }


def in_own_process(folder: Path, out: Path, *, history: bool) -> dict[str, Any]:
    """Return what `measure_build` gives in a fresh process."""
    command = [sys.executable, str(HERE), "--measure", str(out), str(folder)]
    if history:
        command.append("--history")
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Measure how trees of folders are built.")
    parser.add_argument("folders", nargs="*", type=Path, default=[HERE.parents[1]], metavar="FOLDER")
    parser.add_argument(
        "--history", action="store_true", help="read and index the commits of each folder too"
    )
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        print(json.dumps(measure_build(given.folders[0], given.measure, history=given.history)))
        return
    head = (
        "folder",
        "files",
        "nodes",
        "build s",
        "files/s",
        "CPU s",
        "index CPU s",
        "index",
        "peak MB",
        "with index MB",
        "tree MB",
        "unchanged s",
    )
    print("| " + " | ".join(head) + " |")
    print("|---|" + "---:|" * (len(head) - 1))
    for folder in given.folders:
        with tempfile.TemporaryDirectory() as out:
            first = in_own_process(folder, Path(out), history=given.history)
            again = min(
                (in_own_process(folder, Path(out), history=given.history) for _ in range(3)),
                key=lambda each: each["seconds"],
            )
        cells = (
            folder.resolve().name,
            f"{first['files']:,}",
            f"{first['nodes']:,}",
            f"{first['seconds']:.2f}",
            f"{first['files'] / first['seconds']:,.0f}",
            f"{first['cpu']:.2f}",
            f"{first['index_cpu']:.2f}",
            f"{first['index_cpu'] / first['cpu']:.0%}",
            f"{first['peak_bytes'] / 1e6:.0f}",
            f"{first['peak_index_bytes'] / 1e6:.0f}",
            f"{first['tree_bytes'] / 1e6:.1f}",
            f"{again['seconds']:.3f}",
        )
        print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
