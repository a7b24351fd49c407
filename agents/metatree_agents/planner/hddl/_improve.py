"""Cheaper plans, one after the other: built anew from the front, changed in windows, and searched for.

Each has its turn. What windows find is good where a plan is long; the searches see that nothing is cheaper where it is
short.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import fsum
from random import Random
from typing import Final

from metatree_agents.planner.hddl._compiled import Compiled, CompiledMethod
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
    front, inside = (Windows(problem, 0, rng, False, 0, None, False) for _ in range(2))
    best, cost = trail, cost_of(problem, trail)
    if turn < 3:
        front.ids = max(_ids(best))
        order = _order(best) if turn == 1 and whole(best) else random_order(best[0][3], rng)
        made = front.built(best[0], order, ahead=turn, below=cost, nodes=BUILD * nodes)
        if made is not None:
            best, cost = made, cost_of(problem, made)
            yield best
    if len(best) > 1 and whole(best):
        inside.ids = max(_ids(best))
        pieces = Pieces(inside, best)
        mean = pieces.costs[-1] / max(1, len(best) - 1)
        for turned in range(WINDOWS):
            if turned % 2:
                front.ids = inside.ids
                found = _shaken(front, best, cost, mean, nodes, rng)
            else:
                window = pieces.drawn(rng, rng.choice(SIZES) * mean)
                found = pieces.redone(*window, nodes, rng.choice(_HOW))
            if found is not None:
                inside.ids = max(front.ids, inside.ids)
                best, cost = found, cost_of(problem, found)
                pieces = Pieces(inside, best)
                yield best
    kind = turn % 3
    result = search(problem, dead_ends=dead_ends, rng=rng if kind else None, cheaper_than=cost)
    if result.exhausted and total:
        yield None
    if result.plan is None and kind == 1:
        result = progress(problem, nodes=dead_ends)
    if result.plan is not None:
        yield result.trail


def _shaken(
    windows: Windows, trail: Trail, cost: float, mean: float, nodes: int, rng: Random
) -> Trail | None:
    """Do a few tasks of the initial network anew, and in another order where that is open, and what that disturbs."""
    top, order, pieces, place = trail[0], _order(trail), dict[int, Trail](), 1
    if not order:
        return None
    ends = ends_of(trail)
    while place < len(trail):
        pieces[trail[place][1]] = trail[place : ends[place]]
        place = ends[place]
    first = rng.randrange(len(order))
    for one in order[first : first + rng.choice((1, 1, 2, 3))]:
        del pieces[top[5][one]]
    if not top[3].total:
        order = _moved(order, top[3], rng)
    return windows.built(
        top,
        order,
        ahead=rng.choice((1, 1, 2)),
        below=cost + 1e-9,
        nodes=nodes,
        old=pieces,
        slack=mean * rng.choice((0, 2, 8)),
    )


def _order(trail: Trail) -> list[int]:
    """Return the order in which the tasks of the initial network are done."""
    place = {number: index for index, number in enumerate(trail[0][5])}
    return [place[entry[1]] for entry in trail[1:] if entry[1] in place]


def _moved(order: list[int], method: CompiledMethod, rng: Random) -> list[int]:
    """Return an order with one task moved to another place that the method allows it."""
    one = order[rng.randrange(len(order))]
    rest = [other for other in order if other != one]
    low = max((n + 1 for n, other in enumerate(rest) if method.before[one] >> other & 1), default=0)
    high = min((n for n, other in enumerate(rest) if method.before[other] >> one & 1), default=len(rest))
    place = rng.randint(low, high)
    return [*rest[:place], one, *rest[place:]]


def _ids(trail: Trail) -> Iterator[int]:
    """Yield the ids of all tasks of a plan."""
    yield from trail[0][5]
    for entry in trail:
        yield entry[1]
