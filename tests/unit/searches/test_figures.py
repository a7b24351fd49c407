"""The figures of the specification: a tree of 1,000 leaves, branching 10, a router that errs, a reader that knows."""

from __future__ import annotations

import random
from functools import cache

import pytest

from metatree import Answer, Reading, ReadRequest, RouteDecision, RouteRequest, Tree, search
from metatree.testing.parts import tree_of

RUNS = 200


@cache
def thousand() -> Tree:
    digits = "0123456789"
    return tree_of(
        {a: {a + b: {a + b + c: f"leaf {a + b + c}" for c in digits} for b in digits} for a in digits}
    )


class Erring:
    """Knows the way to one leaf; errs at a rate, and then may rule the right option out too."""

    def __init__(self, leaf: str, rng: random.Random, errors: float, wrong_marks: float) -> None:
        self.leaf, self.rng, self.errors, self.wrong_marks = leaf, rng, errors, wrong_marks

    async def route(self, request: RouteRequest) -> RouteDecision:
        ids = [option.id for option in request.options]
        right = next((i for i in ids if self.leaf.startswith(i)), None)
        if self.rng.random() >= self.errors:
            return RouteDecision(right)  # off the way to the leaf it says that nothing here leads there
        unviable = {right: "wrong"} if right is not None and self.rng.random() < self.wrong_marks else {}
        return RouteDecision(self.rng.choice([i for i in ids if i != right] or ids), unviable)

    async def read(self, request: ReadRequest) -> Reading:
        if request.node.id == self.leaf:
            return Reading((Answer("q", "found", request.content),))
        return Reading(useful=False)


def rate(errors: float, wrong_marks: float = 0.0) -> tuple[float, float]:
    """Return the share of runs that found the leaf, and the mean of their router calls."""
    answered = calls = 0
    for seed in range(RUNS):
        rng = random.Random(seed)
        leaf = f"{rng.randrange(1000):03}"
        part = Erring(leaf, rng, errors, wrong_marks)
        result = search("q", tree=thousand(), router=part, reader=part, evidence=False)
        answered += result.ended == "answered"
        calls += result.usage.router_calls
    return answered / RUNS, calls / RUNS


def test_a_router_that_is_right_takes_as_many_calls_as_the_tree_is_deep() -> None:
    assert rate(0.0) == (1.0, 3.0)


@pytest.mark.parametrize(("errors", "most_calls"), [(0.1, 4.0), (0.3, 7.0)])
def test_the_leaf_is_found_though_the_router_errs(errors: float, most_calls: float) -> None:
    share, calls = rate(errors)
    assert share >= 0.995
    assert calls <= most_calls


@pytest.mark.parametrize("errors", [0.1, 0.3])
def test_the_second_look_finds_what_was_ruled_out_by_mistake(errors: float) -> None:
    share, _ = rate(errors, 0.2)
    assert share >= 0.98
