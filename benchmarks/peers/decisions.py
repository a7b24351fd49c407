"""metatree with its shipped prompts, and with decision models, on the made tree of the peers.

    python -m benchmarks.peers.decisions [--searches 60]

Searches, leaves and errors are those of `benchmarks.peers`; tokens are counted with metatree's own counter, since the
packages that are compared there are not needed here. A calibrated model is as sure as it is right; an over-confident
one is sure with 0.99, right or wrong.
"""

from __future__ import annotations

import argparse
import logging
import random
import statistics
from collections.abc import Callable
from typing import Any

from metatree_routers.decisions import DecisionRouter
from metatree_routers.evidence.evidence import text_evidence
from metatree_routers.llm._tokens import counter_for

from benchmarks.peers.decision_stub import StubDecisions, StubLetters
from benchmarks.peers.made_tree import MadeTree
from benchmarks.peers.measure import measure
from benchmarks.peers.ours import Metatree, make_tree
from benchmarks.peers.shipped import shipped
from benchmarks.peers.stub import Condition, Stub

ERRORS = (0.0, 0.1, 0.3)


class Counted(Metatree):
    """The same, with the calls of each search."""

    def __init__(self, stub: Stub, *args: Any) -> None:
        super().__init__(*args)
        self._stub = stub
        self.calls: list[int] = []

    def search(self, question: str) -> str:
        answer = super().search(question)
        self.calls.append(self._stub.meter.calls)
        return answer


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--searches", type=int, default=60)
    parser.add_argument("--leaves", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--only", default="", help="models whose names hold this")
    given = parser.parse_args()
    logging.disable(logging.WARNING)
    made = MadeTree(len(str(given.leaves)) - 1)
    stub = Stub(random.Random(given.seed), count=counter_for("gpt-4o").text)
    tree = make_tree(made, None)
    evidence = text_evidence(tree)
    evidence.refresh()
    routers: dict[str, Callable[[], Any]] = {
        "chat model, shipped prompts": lambda: shipped(stub),
        "decisions, calibrated": lambda: DecisionRouter(StubDecisions(stub, calibrated=True), cache=False),
        "decisions, over-confident": lambda: DecisionRouter(
            StubDecisions(stub, calibrated=False), cache=False
        ),
        "letters, two orders": lambda: DecisionRouter(StubLetters(stub).model(), cache=False),
    }
    print(f"{made.leaves:,} leaves, {given.searches} searches each")
    print(f"{'model':28} {'hints':6} errors   found  calls, mean  median  tokens  largest")
    for name, make in ((name, make) for name, make in routers.items() if given.only in name):
        for hints in (True, False):
            for errors in ERRORS:
                system = Counted(stub, tree, make, evidence if hints else False)
                measured = measure(
                    system, stub, made, Condition(errors, 0.2), searches=given.searches, seed=given.seed
                )
                print(
                    f"{name:28} {'with' if hints else 'without':7} {errors:4.1f} {100 * measured.hit_rate:7.1f}"
                    f" {measured.calls:12.2f} {statistics.median(system.calls):7.0f} {measured.tokens:7.0f}"
                    f" {measured.largest:8}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
