"""Runs the searches of one system under one condition, and sums up what they took."""

from __future__ import annotations

import random
import statistics
import time
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from benchmarks.peers.made_tree import MadeTree
from benchmarks.peers.stub import Condition, Stub

WARM_UP = 2


class System(Protocol):
    """Something that answers a question from the made tree."""

    def search(self, question: str) -> str:
        """Return the answer; empty, or without the fact, when it was not found."""
        ...


@runtime_checkable
class Learns(Protocol):
    """A system that knows something of its model after some searches."""

    def begin(self) -> None:
        """Forget it."""
        ...


@dataclass(frozen=True)
class Measured:
    """What the searches of one system under one condition took."""

    searches: int
    hit_rate: float
    calls: float
    """Model calls a search, on average."""
    tokens: float
    """Prompt tokens a search, on average."""
    largest: int
    """Tokens of the largest prompt of all."""
    cpu_ms: float
    """CPU time a model call, the model's own taken off, in the middle search."""


def measure(
    system: System, stub: Stub, made: MadeTree, condition: Condition, *, searches: int, seed: int
) -> Measured:
    """Ask for leaves at random; the same ones for every system and condition."""
    targets = random.Random(seed)
    stub.rng = random.Random(seed + 1)
    stub.condition = condition
    if isinstance(system, Learns):
        system.begin()
    hits, calls, tokens, largest = 0, [], [], 0
    cpu_ms = []
    for number in range(-WARM_UP, searches):
        leaf = made.leaf(targets.randrange(made.leaves))
        question = made.question(leaf)
        stub.ask(question, leaf)
        start = time.process_time()
        answer = system.search(question)
        spent = time.process_time() - start - stub.meter.stub_cpu_s
        if number < 0:
            continue
        hits += made.fact(leaf) in answer
        calls.append(stub.meter.calls)
        tokens.append(stub.meter.tokens)
        largest = max(largest, stub.meter.largest)
        cpu_ms.append(1000 * spent / stub.meter.calls)
    return Measured(
        searches,
        hits / searches,
        statistics.fmean(calls),
        statistics.fmean(tokens),
        largest,
        statistics.median(cpu_ms),
    )
