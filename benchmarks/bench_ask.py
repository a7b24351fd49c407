"""How fast a tree is built, brought up to date and asked: by default of Python's own standard library.

usage: python benchmarks/bench_ask.py [FOLDER]
"""

from __future__ import annotations

import platform
import resource
import shutil
import statistics
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from metatree_agents import files_to_edit
from metatree_memory_tools import build_tree

from metatree import Tree, search

ISSUE = """Parsing a date with a time zone offset of seconds fails

datetime.fromisoformat raises ValueError for an offset such as +05:30:15 when it is given a string with a space
between the date and the time, as json.loads and csv.reader return it.
"""
QUESTIONS = (
    "How are time zone offsets parsed?",
    "Where is a temporary file given its name?",
    "When does a socket time out?",
    "Which errors does json raise for bad input?",
    "How are command line options abbreviated?",
)


def timed(action: Callable[[], object]) -> tuple[float, float]:
    """Return how long an action takes: seconds on the clock, and seconds of CPU, which no other program lengthens."""
    began, began_cpu = time.perf_counter(), time.process_time()
    action()
    return time.perf_counter() - began, time.process_time() - began_cpu


def median(times: list[tuple[float, float]]) -> tuple[float, float]:
    """Return the medians of both clocks."""
    clock, cpu = zip(*times, strict=True)
    return statistics.median(clock), statistics.median(cpu)


def standard_library(copy: Path) -> Path:
    """Copy Python's standard library, without its tests and the packages that are installed into it."""
    ignored = shutil.ignore_patterns(
        "site-packages", "dist-packages", "__pycache__", "config-*", "test", "tests", "idle_test"
    )
    shutil.copytree(sysconfig.get_path("stdlib"), copy, ignore=ignored)
    return copy


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "tree")
        source = Path(sys.argv[1]) if len(sys.argv) > 1 else standard_library(Path(folder, "python"))

        def build() -> Tree:
            return build_tree(source, out=place)

        rows = [("build", timed(lambda: build().close()))]
        rows.append(("build again, nothing changed", timed(lambda: build().close())))
        with build() as tree:
            rows.append(
                ("first question (makes the text index)", timed(lambda: search(QUESTIONS[0], tree=tree)))
            )
            asked = [timed(partial(search, question, tree=tree)) for question in QUESTIONS]
            rows.append(("question, median of 5", median(asked)))
            rows.append(
                (
                    "files to edit, median of 5",
                    median([timed(partial(files_to_edit, ISSUE, tree)) for _ in range(5)]),
                )
            )
            info = tree.info()
    print(sys.argv[1] if len(sys.argv) > 1 else f"standard library of Python {platform.python_version()}")
    print(
        f"{info['kinds']['file']:,} files, {info['nodes']:,} nodes, {info['index_bytes'] / 1e6:.0f} MB on disk, ",
        end="",
    )
    print(f"at most {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB in memory")
    print(f"{'what':40} {'s':>8} {'CPU s':>8}")
    for name, (seconds, cpu_seconds) in rows:
        print(f"{name:40} {seconds:8.2f} {cpu_seconds:8.2f}")


if __name__ == "__main__":
    main()
