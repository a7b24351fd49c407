"""Scores of rankings, and bootstrap intervals."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from benchmarks.retrieval.dataset import BESIDE, OURS, Outcome

RESAMPLES = 2_000
Values = npt.NDArray[np.float64]


def metric(name: str, gold: frozenset[str], ranked: Sequence[str]) -> float:
    """Score one ranking.

    Args:
        name: `R@k`, the share of gold that is in the first k; `Hit@k`, whether any is; `Acc@k`, whether all are;
            `MRR`, one through the place of the first.

    Example:
        >>> metric("R@2", frozenset("ab"), ["x", "a", "b"]), metric("MRR", frozenset("ab"), ["x", "a", "b"])
        (0.5, 0.5)
    """
    if name == "MRR":
        return next((1 / place for place, id_ in enumerate(ranked, 1) if id_ in gold), 0.0)
    kind, _, k = name.partition("@")
    found = gold & set(ranked[: int(k)])
    match kind:
        case "R":
            return len(found) / len(gold)
        case "Hit":
            return float(bool(found))
        case "Acc":
            return float(found == gold)
        case _:
            raise ValueError(f"{name!r} is no metric: use R@k, Hit@k, Acc@k or MRR")


def values(name: str, system: str, outcomes: Sequence[Outcome]) -> Values:
    """Score one system: (questions,).

    `R@10+3` counts our first ten and up to three that are offered beside them; of the other system the first thirteen.
    `R@10-3` counts ten in all: what is offered beside takes the last places, up to three; of the other the first ten.
    """
    kind, _, counted = name.partition("@")
    parts = re.fullmatch(r"(\d+)([+-])(\d+)", counted)
    if parts is None:
        return np.array([metric(name, each.gold, each.ranked.get(system, ())) for each in outcomes])
    first, beside = int(parts[1]), int(parts[3])
    most = first + beside if parts[2] == "+" else first
    ranked = [
        _with_beside(each, first, beside, most) if system == OURS else each.ranked.get(system, ())
        for each in outcomes
    ]
    return np.array(
        [metric(f"{kind}@{most}", each.gold, ids) for each, ids in zip(outcomes, ranked, strict=True)]
    )


def _with_beside(outcome: Outcome, first: int, beside: int, most: int) -> list[str]:
    """Return what was found, with what was offered beside it in the last of `most` places; each id once."""
    found = list(outcome.ranked.get(OURS, ()))[:first]
    offered = outcome.ranked.get(BESIDE, ())[:beside]
    kept = found[: most - len(offered)]
    return list(dict.fromkeys([*kept, *offered, *found]))[:most]


def interval(scores: Values) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of the mean over questions; of paired differences, give the differences."""
    rng = np.random.default_rng(0)
    means = scores[rng.integers(0, len(scores), (RESAMPLES, len(scores)))].mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)
