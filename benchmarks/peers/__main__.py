"""Run all systems on the same trees with the same stub model, and print a table in Markdown.

usage: python -m benchmarks.peers [--sizes 1000 10000 1000000] [--searches 500] [--docs docs/benchmarks]

`make bench-peers` makes the venv that this needs, and runs it.
"""

from __future__ import annotations

import argparse
import logging
import random
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal

from metatree_routers.decisions import DecisionRouter
from metatree_routers.evidence.evidence import text_evidence

from benchmarks.peers.decision_stub import StubDecisions
from benchmarks.peers.made_tree import BRANCHING, MadeTree
from benchmarks.peers.measure import System, measure
from benchmarks.peers.ours import Greedy, Metatree, make_tree
from benchmarks.peers.report import CONDITIONS, Row, plot, put_into_page, table
from benchmarks.peers.shipped import shipped
from benchmarks.peers.stub import Condition, Stub
from metatree import Evidence, Router

MODELS = {
    "0 %": Condition(0.0),
    "10 %": Condition(0.1),
    "30 %": Condition(0.3),
    "10 % + marks": Condition(0.1, wrong_marks=0.2),
    "30 % + marks": Condition(0.3, wrong_marks=0.2),
}
LARGEST_FOR_PEERS = 10_000
TURNS = 100
"""Turns that PageIndex is given where its outline alone takes more than the default of 10."""


@dataclass(frozen=True)
class Entry:
    """One row to be."""

    name: str
    make: Callable[[], System]
    marks: bool = False
    """Whether its prompts ask for what to rule out."""
    notices: bool = True
    share: int = 1
    """It is given the searches divided by this: a slow one needs no more."""


def entries(made: MadeTree, stub: Stub, folder: Path) -> Iterator[Entry]:
    """Yield the systems for a tree."""

    def chat() -> Router:
        return shipped(stub)

    def decisions() -> Router:
        return DecisionRouter(StubDecisions(stub, calibrated=True), cache=False)

    if made.leaves <= LARGEST_FOR_PEERS:
        from benchmarks.peers.page_index import PageIndex
        from benchmarks.peers.tree_index import LlamaTreeIndex

        yield Entry("greedy descent", lambda: Greedy(made, stub))
        yield Entry("TreeIndex", lambda: LlamaTreeIndex(made, stub))
        yield Entry("TreeIndex, two branches", lambda: LlamaTreeIndex(made, stub, branches=2))
        pages = folder / "pageindex"
        if made.leaves <= 1000:
            yield Entry("PageIndex", lambda: PageIndex(made, stub, pages))
        else:
            name = f"PageIndex, {TURNS} turns"
            yield Entry(name, lambda: PageIndex(made, stub, pages, max_turns=TURNS), share=50)
        tree = make_tree(made, None)
        text = text_evidence(tree)
        text.refresh()  # here, not in the first search
        both: tuple[tuple[str, Evidence | Literal[False]], ...] = (("", text), (", no index", False))
        for hints, evidence in both:
            share = 2 if made.leaves <= 1000 else 5
            yield Entry(f"metatree{hints}", partial(Metatree, tree, chat, evidence), marks=True, share=share)
            yield Entry(
                f"metatree{hints}, blind model",
                partial(Metatree, tree, chat, evidence),
                marks=True,
                notices=False,
                share=share * (1 if hints == "" else 2),
            )
        yield Entry(
            "metatree, decision model", lambda: Metatree(tree, decisions, text), marks=True, share=share
        )
    durable = folder / "tree.db"
    yield Entry(
        "metatree, no index, durable", lambda: Metatree(make_tree(made, durable), chat), marks=True, share=2
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 10_000, 1_000_000], metavar="LEAVES")
    parser.add_argument("--searches", type=int, default=500, help="for each system and condition")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--only", default="", help="measure the systems whose name contains this")
    parser.add_argument(
        "--docs", type=Path, help="folder of peers.md; its table and the plots are written anew"
    )
    given = parser.parse_args()
    logging.disable(logging.WARNING)
    rows: list[Row] = []
    for leaves in given.sizes:
        depth = len(str(leaves)) - 1
        if BRANCHING**depth != leaves or not 1 <= depth <= 6:
            parser.error(f"{leaves} leaves: use a power of ten, from 10 to 1000000")
        with tempfile.TemporaryDirectory() as folder:
            rows += _rows(MadeTree(depth), Path(folder), given)
    print(table(rows))
    if given.docs:
        put_into_page(given.docs / "peers.md", table(rows))
        plot(rows, given.docs)


def _rows(made: MadeTree, folder: Path, given: argparse.Namespace) -> Iterator[Row]:
    stub = Stub(random.Random(given.seed))
    for entry in entries(made, stub, folder):
        if given.only not in entry.name:
            continue
        print(f"{made.leaves:,} leaves: {entry.name} …", file=sys.stderr)
        system = entry.make()
        searches = max(5, given.searches // entry.share)
        measured = {}
        for condition in CONDITIONS if entry.marks else CONDITIONS[:3]:
            model = replace(MODELS[condition], notices=entry.notices)
            measured[condition] = measure(system, stub, made, model, searches=searches, seed=given.seed)
        yield Row(made.leaves, entry.name, measured)


if __name__ == "__main__":
    main()
