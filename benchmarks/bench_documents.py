"""How fast documents become trees, and how fast a page is read from one.

usage: python benchmarks/bench_documents.py [FILE …]      (the PDFs that `make test-real` downloads when none is given)

Each document is built in a process of its own, with an empty cache folder; then the same process reads 50 of its
pages, and another process one page, as a question on the command line would.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from metatree_memory_tools import build_tree

from metatree import Tree

HERE = Path(__file__).resolve()
MANUALS = HERE.parents[1] / ".venv-real" / "files"


def measure(path: Path, out: Path) -> dict[str, Any]:
    """Build the tree of a document and read pages of it; times in seconds."""
    started = time.perf_counter()
    with build_tree(path, out=out) as tree:
        built = time.perf_counter() - started
        leaves = [node for _, node in tree.walk() if node.has_content]
        some = leaves[:: max(1, len(leaves) // 50)]
        started = time.perf_counter()
        for node in some:
            tree.content(node)
        read = (time.perf_counter() - started) / max(1, len(some))
        pages = next(iter(tree.children("."))).attributes.get("pages", 0)
        nodes = tree.info()["nodes"]
    return {
        "pages": pages,
        "nodes": nodes,
        "build_s": built,
        "read_s": read,
        "leaf": leaves[-1].id if leaves else "",
    }


def read_one(out: Path, leaf: str) -> float:
    """Read one leaf of a tree that is there; seconds."""
    started = time.perf_counter()
    with Tree.open(out) as tree:
        tree.content(leaf)
    return time.perf_counter() - started


def _child(*arguments: str, cache: str) -> Any:
    environment = {**os.environ, "METATREE_CACHE_DIR": cache}
    done = subprocess.run(
        [sys.executable, str(HERE), *arguments], check=True, capture_output=True, text=True, env=environment
    )
    return json.loads(done.stdout)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--measure", nargs=2, metavar=("FILE", "OUT"), help=argparse.SUPPRESS)
    parser.add_argument("--read", nargs=2, metavar=("OUT", "LEAF"), help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.measure:
        print(json.dumps(measure(Path(chosen.measure[0]), Path(chosen.measure[1]))))
        return
    if chosen.read:
        print(json.dumps(read_one(Path(chosen.read[0]), chosen.read[1])))
        return
    files = chosen.files or sorted(MANUALS.rglob("*.pdf"))
    if not files:
        print("no documents: give some, or run `make test-real` first, which downloads manuals")
        return
    print(f"{'document':28} {'MB':>5} {'pages':>6} {'nodes':>6} {'build s':>8} {'page ms':>8} {'cold ms':>8}")
    for path in files:
        with tempfile.TemporaryDirectory() as folder:
            out, cache = str(Path(folder) / "tree"), str(Path(folder) / "cache")
            found = _child("--measure", str(path.resolve()), out, cache=cache)
            cold = _child("--read", out, found["leaf"], cache=cache) if found["leaf"] else 0.0
        print(
            f"{path.name[:28]:28} {path.stat().st_size / 1e6:5.1f} {found['pages']:6} {found['nodes']:6}"
            f" {found['build_s']:8.2f} {found['read_s'] * 1e3:8.2f} {cold * 1e3:8.1f}"
        )


if __name__ == "__main__":
    main()
