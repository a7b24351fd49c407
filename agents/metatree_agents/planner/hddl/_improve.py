"""Cheaper plans, one after the other: built anew from the front, changed in windows, and searched for.

Each has its turn. What windows find is good where a plan is long; the searches see that nothing is cheaper where it is
short.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import fsum
from random import Random
from typing import Final

from metatree_agents.planner.hddl._compiled import Compiled
from metatree_agents.planner.hddl._depth_first import random_order, search
from metatree_agents.planner.hddl._progression import progress
from metatree_agents.planner.hddl._windows import Pieces, Trail, Windows, whole

NODES: Final = 2_000
"""Nodes of a window at first."""

WINDOWS: Final = 60
"""Windows in a round."""

SIZES: Final = (4.0, 8.0, 16.0, 32.0)
"""What windows cost, in steps of the plan's mean cost."""

DEAD_ENDS: Final = 500
"""Of a run that searches for a cheaper plan, at first."""


def improve(problem: Compiled, trail: Trail, *, total: bool, seed: int) -> Iterator[Trail]:
    """Yield plans, each cheaper than the one before; ends when there is no cheaper one.

    Args:
        problem: what the plan is for.
        trail: of the plan that there is.
        total: whether all networks are totally ordered.
        seed: of what is drawn at random.

    Raises:
        LimitReached: at the problem's limits.
    """
    rng = Random(f"{seed}:improve")
    cost = cost_of(problem, trail)
    nodes, dead_ends, turn = NODES, DEAD_ENDS, 0
    while True:
        turn += 1
        before = cost
        for made in _round(problem, trail, turn, nodes, dead_ends, rng, total):
            if made is None:
                return
            new = cost_of(problem, made)
            if new < cost:
                trail, cost = made, new
                yield trail
        if cost >= before:
            nodes, dead_ends = nodes * 3 // 2, dead_ends * 2


def cost_of(problem: Compiled, trail: Trail) -> float:
    """Return what the steps of a trail cost."""
    return fsum(problem.cost_of(entry[2], entry[3]) for entry in trail if entry[0] == "step")


def _round(
    problem: Compiled, trail: Trail, turn: int, nodes: int, dead_ends: int, rng: Random, total: bool
) -> Iterator[Trail | None]:
    """Yield plans that may be cheaper; None when there is no cheaper one."""
    windows = Windows(problem, 0, rng, False, 0, None, False)
    best, cost = trail, cost_of(problem, trail)
    for ahead in (1, 2) if turn == 1 else (rng.choice((1, 2, 3)),):
        windows.ids = max(entry[1] for entry in best) + sum(len(e[5]) for e in best if e[0] == "method")
        top = best[0]
        made = windows.built(top, random_order(top[3], rng), [], ahead=ahead, below=cost, nodes=nodes)
        if made is not None:
            best, cost = made, cost_of(problem, made)
            yield best
    if len(best) > 1 and whole(best):
        pieces = _pieces(windows, best)
        mean = pieces.costs[-1] / max(1, len(best) - 1)
        for _ in range(WINDOWS):
            window = pieces.drawn(rng, rng.choice(SIZES) * mean)
            found = pieces.redone(*window, nodes, "near" if rng.random() < 0.8 else "all")
            if found is not None:
                best, cost = found, cost_of(problem, found)
                pieces = _pieces(windows, best)
                yield best
    kind = turn % 3
    result = search(problem, dead_ends=dead_ends, rng=rng if kind else None, cheaper_than=cost)
    if result.exhausted and total:
        yield None
    if result.plan is None and kind == 1:
        result = progress(problem, nodes=dead_ends)
    if result.plan is not None:
        yield result.trail


def _pieces(windows: Windows, trail: Trail) -> Pieces:
    windows.ids = max(windows.ids, max(number for entry in trail for number in (entry[1], *_ids(entry))))
    return Pieces(windows, trail)


def _ids(entry: tuple[object, ...]) -> tuple[int, ...]:
    return entry[5] if entry[0] == "method" else ()  # type: ignore[return-value]
