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
from metatree_agents.planner.hddl._windows import How, Pieces, Trail, Windows, ends_of, whole

NODES: Final = 1_000
"""Nodes of a window at first."""

BUILD: Final = 80
"""How many times as many are for a plan that is built."""

WINDOWS: Final = 60
"""Windows in a round."""

SIZES: Final = (4.0, 8.0, 16.0, 32.0)
"""What windows cost, in steps of the plan's mean cost."""

_HOW: Final[tuple[How, ...]] = ("near", "near", "some", "all")

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
    nodes, dead_ends, turn, least = NODES, DEAD_ENDS, 0, problem.floor_of(problem.top)
    while cost > least:
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
    windows.ids = max(_ids(best))
    keep: Trail = []
    order = random_order(best[0][3], rng)
    if turn > 2 and whole(best):
        keep, order = _front(best, order, rng)
    ahead = turn if turn < 3 else rng.choice((1, 2, 3))
    made = windows.built(best[0], order, keep, ahead=ahead, below=cost, nodes=BUILD * nodes)
    if made is not None:
        best, cost = made, cost_of(problem, made)
        yield best
    if len(best) > 1 and whole(best):
        pieces = _pieces(windows, best)
        mean = pieces.costs[-1] / max(1, len(best) - 1)
        for _ in range(WINDOWS):
            window = pieces.drawn(rng, rng.choice(SIZES) * mean)
            found = pieces.redone(*window, nodes, rng.choice(_HOW))
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
    windows.ids = max(windows.ids, *_ids(trail))
    return Pieces(windows, trail)


def _front(trail: Trail, order: list[int], rng: Random) -> tuple[Trail, list[int]]:
    """Draw how much of a plan to keep; return that, and the order of its network with the rest as it was drawn."""
    ends, ids, place, first = ends_of(trail), trail[0][5], 1, []
    for _ in range(rng.randrange(len(ids))):
        first.append(ids.index(trail[place][1]))
        place = ends[place]
    return trail[1:place], first + [one for one in order if one not in set(first)]


def _ids(trail: Trail) -> Iterator[int]:
    """Yield the ids of all tasks of a plan."""
    yield from trail[0][5]
    for entry in trail:
        yield entry[1]
