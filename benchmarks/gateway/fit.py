"""Fit the order of tools (`metatree_agents.gateway._ranking`) to requests, and say what it gives for others.

usage: [METATREE_EMBEDDING=minilm] python -m benchmarks.gateway.fit --data FOLDER [--together] [--requests N]

Each set is mounted alone, or with `--together` all in one gateway too. Requests are split in halves by a hash of their
text; the weights are fitted to one half, and what they give is told for the other half, beside the evidence alone. The
weights of the package are those of the first half, rounded.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from metatree_agents.gateway._ranking import (
    CANDIDATES,
    FEATURES,
    GAINS,
    WEIGHTS,
    Candidates,
    ToolEvidence,
)
from metatree_routers import TextEvidence

from benchmarks.gateway.mixed import EITHER, BenchTool, ToolSet, mounted, sets

Floats = npt.NDArray[np.float64]
_STEPS, _RATE, _PENALTY, _ROUNDS = 200, 0.05, 0.01, 3


@dataclass(slots=True)
class Asked:
    """One request of a set with its candidates, in the order of the evidence."""

    half: int
    candidates: Candidates
    right: Floats
    """(n,) 1 for a tool that is needed."""
    needed: int


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder with tools/")
    parser.add_argument("--together", action="store_true", help="the tools of all sets in one gateway too")
    parser.add_argument(
        "--requests", type=int, default=100_000, help="at most so many of each set, at random; all by default"
    )
    chosen = parser.parse_args()
    asyncio.run(_run(chosen.data, together=chosen.together, most=chosen.requests))


async def _run(data: Path, *, together: bool, most: int) -> None:
    found = [each for each in sets(data, most=most, seed=1) if each.name != EITHER]
    asked = {each.name: await _asked(each.tools, each) for each in found}
    if together:
        every = list({tool.id: tool for each in found for tool in each.tools}.values())
        asked |= {f"{each.name}, all": await _asked(every, each) for each in found}
    fitted = [fit([[row for row in rows if row.half == half] for rows in asked.values()]) for half in (0, 1)]
    print(f"{'set':24} {'evidence':>9} {'fitted to the other half':>25} {'as shipped':>11}")
    for name, rows in asked.items():
        first = name.startswith("MetaTool one")
        cells = [
            np.mean([score(row, None, first) for row in rows]),
            np.mean([score(row, fitted[1 - row.half], first) for row in rows]),
            np.mean([score(row, (WEIGHTS, GAINS), first) for row in rows]),
        ]
        print(f"{name:24} {cells[0]:9.3f} {cells[1]:25.3f} {cells[2]:11.3f}")
    for weights, gains in (*fitted, fit(list(asked.values()))):
        print(
            dict(zip((*FEATURES, "steps left", "words left"), np.round([*weights, *gains], 2), strict=True))
        )


async def _asked(tools: Sequence[BenchTool], of: ToolSet) -> list[Asked]:
    catalog, ids = await mounted(tools)
    evidence, rows = ToolEvidence(catalog.tree), []
    for request in of.requests:
        found = evidence.tools(TextEvidence.rank(evidence, [request.text], k=CANDIDATES))
        if len(found) > 1:
            right = np.array([float(ids[node.id] in request.gold) for _, node in found])
            half = hashlib.sha256(request.text.encode()).digest()[0] % 2
            rows.append(Asked(half, evidence.candidates(request.text, found), right, len(request.gold)))
    catalog.close()
    print(f"{of.name}: {len(rows)} requests, {len(tools)} tools", flush=True)
    return rows


def fit(sets_: Sequence[Sequence[Asked]]) -> tuple[Floats, Floats]:
    """Return weights under which the tools that are needed come first, and those of the gains.

    Places are filled as the weights of the round before fill them; at each, the loss is that of a softmax over the
    candidates that are left, whose right ones are the needed tools that are left. Each set counts as the square root of
    its places.
    """
    weights, gains = np.zeros(len(FEATURES)), np.zeros(len(GAINS))
    for round_ in range(_ROUNDS):
        parts = [_places(rows, weights, gains, 5 if round_ else 1) for rows in sets_]
        both = _fitted([part for part in parts if part])
        weights, gains = both[: len(FEATURES)], both[len(FEATURES) :]
    return weights, gains


def _places(rows: Sequence[Asked], weights: Floats, gains: Floats, most: int) -> list[tuple[Floats, Floats]]:
    """Return the numbers of the tools that are left at each place, and the share of each among the needed ones."""
    found = []
    for row in rows:
        order = row.candidates.order(weights, gains, most)
        for place in range(min(most, len(order))):
            left = np.ones(len(order), dtype=bool)
            left[order[:place]] = False
            if not row.right[left].any():
                break
            both = np.concatenate([row.candidates.features, row.candidates.gains(order[:place])], axis=1)
            found.append((both[left], row.right[left] / row.right[left].sum()))
    return found


def _fitted(parts: Sequence[Sequence[tuple[Floats, Floats]]]) -> Floats:
    """Return the weights of the least loss, found by Adam over all places at once."""
    weights = moment = square = np.zeros(len(FEATURES) + len(GAINS))
    total = sum(len(places) ** 0.5 for places in parts)
    padded = [_padded(places) for places in parts]
    for step in range(1, _STEPS + 1):
        slope = _PENALTY * weights
        for features, wanted, there in padded:
            sums = np.where(there, features @ weights, -np.inf)
            share = np.exp(sums - sums.max(axis=1, keepdims=True))
            share /= share.sum(axis=1, keepdims=True)
            slope = slope + np.einsum("pn,pnf->f", share - wanted, features) * len(wanted) ** -0.5 / total
        moment, square = 0.9 * moment + 0.1 * slope, 0.999 * square + 0.001 * slope**2
        weights = weights - _RATE * (moment / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
    return weights


def _padded(places: Sequence[tuple[Floats, Floats]]) -> tuple[Floats, Floats, npt.NDArray[np.bool_]]:
    most = max(len(wanted) for _, wanted in places)
    features = np.zeros((len(places), most, places[0][0].shape[1]))
    shares, there = np.zeros((len(places), most)), np.zeros((len(places), most), dtype=bool)
    for at, (own, wanted) in enumerate(places):
        features[at, : len(wanted)], shares[at, : len(wanted)], there[at, : len(wanted)] = own, wanted, True
    return features, shares, there


def score(row: Asked, fitted: tuple[Floats, Floats] | None, first: bool) -> float:
    """Return the share of the needed tools among the first five, or whether the first is one."""
    right = row.right if fitted is None else row.right[row.candidates.order(*fitted, most=5)]
    return float(right[0]) if first else float(right[:5].sum()) / row.needed


if __name__ == "__main__":
    main()
