"""Fit the order of tools (`metatree_agents.gateway._ranking`) to requests, and say what it gives for others.

usage: python -m benchmarks.gateway.fit --data FOLDER [--together]

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
from metatree_agents.gateway._ranking import CANDIDATES, FEATURES, WEIGHTS, ToolEvidence
from metatree_routers import TextEvidence

from benchmarks.gateway.mixed import BenchTool, ToolSet, mounted, sets

Floats = npt.NDArray[np.float64]
_STEPS, _RATE, _PENALTY = 300, 0.05, 0.02


@dataclass(slots=True)
class Asked:
    """One request of a set with its candidates, in the order of the evidence."""

    half: int
    features: Floats
    """(n, 6)"""
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
    chosen = parser.parse_args()
    asyncio.run(_run(chosen.data, together=chosen.together))


async def _run(data: Path, *, together: bool) -> None:
    found = sets(data, most=100_000, seed=1)
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
            np.mean([score(row, WEIGHTS, first) for row in rows]),
        ]
        print(f"{name:24} {cells[0]:9.3f} {cells[1]:25.3f} {cells[2]:11.3f}")
    for weights in (*fitted, fit(list(asked.values()))):
        print({name: round(float(weight), 2) for name, weight in zip(FEATURES, weights, strict=True)})


async def _asked(tools: Sequence[BenchTool], of: ToolSet) -> list[Asked]:
    catalog, ids = await mounted(tools)
    evidence, rows = ToolEvidence(catalog.tree), []
    for request in of.requests:
        found = evidence.tools(TextEvidence.rank(evidence, [request.text], k=CANDIDATES))
        if len(found) > 1:
            right = np.array([float(ids[node.id] in request.gold) for _, node in found])
            half = hashlib.sha256(request.text.encode()).digest()[0] % 2
            rows.append(Asked(half, evidence.features(request.text, found), right, len(request.gold)))
    catalog.close()
    print(f"{of.name}: {len(rows)} requests, {len(tools)} tools", flush=True)
    return rows


def fit(sets_: Sequence[Sequence[Asked]]) -> Floats:
    """Return weights under which the tools that are needed come first: a softmax over the candidates of a request.

    Each set counts as the square root of its requests.
    """
    weights = moment = square = np.zeros(len(FEATURES))
    parts = [[row for row in rows if row.right.any()] for rows in sets_]
    total = sum(len(rows) ** 0.5 for rows in parts)
    for step in range(1, _STEPS + 1):
        slope = _PENALTY * weights
        for rows in parts:
            for row in rows:
                sums = row.features @ weights
                share = np.exp(sums - sums.max())
                change = row.features.T @ (share / share.sum() - row.right / row.right.sum())
                slope = slope + change * len(rows) ** -0.5 / total
        moment, square = 0.9 * moment + 0.1 * slope, 0.999 * square + 0.001 * slope**2
        weights = weights - _RATE * (moment / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
    return weights


def score(row: Asked, weights: Floats | None, first: bool) -> float:
    """Return the share of the needed tools among the first five, or whether the first is one."""
    order = (
        np.arange(len(row.right)) if weights is None else np.argsort(-(row.features @ weights), kind="stable")
    )
    right = row.right[order]
    return float(right[0]) if first else float(right[:5].sum()) / row.needed


if __name__ == "__main__":
    main()
