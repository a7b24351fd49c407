"""Fit the ranker and the claim model on the own set, and report them on sources that they were not fitted on.

`python -m benchmarks.answers.fit --work DIR [--write]` takes the sources that `python -m benchmarks.answers` has
fetched. What it prints comes from models fitted with one source left out at a time, both of them; what it writes is
fitted on all.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from metatree_routers import TextEvidence
from metatree_routers.embeddings.static import static_embedder
from metatree_routers.passages import ranking
from metatree_routers.passages.asked import Asked, read_question
from metatree_routers.passages.candidates import KEPT, candidates_of, weigh
from metatree_routers.passages.features import FEATURES, features
from metatree_routers.passages.ranking import claim_features

from benchmarks.answers.dataset import ready
from benchmarks.answers.scoring import Passed, is_right
from benchmarks.answers.sets import OWN, load

MOST = 220
"""Questions of a set."""
RANKER_L2, CLAIM_L2 = 10.0, 10.0
INNER = 4
"""Parts of the training sources, for scores of the ranker that it was not fitted on."""

Floats = npt.NDArray[np.float64]


@dataclass
class Row:
    """A question with its candidates."""

    set: str
    source: str
    own: str
    """The source that it was written for."""
    asked: Asked
    answerable: bool
    features: Floats
    right: npt.NDArray[np.bool_]


def rows(names: Sequence[str], data: Path | None, work: Path, limit: int) -> Iterator[Row]:
    """Yield the questions of some sets, and those that are answered once more, asked of another source."""
    embedder = static_embedder()
    for name in names:
        asked = load(name, data, work)
        step = max(1, len(asked.questions) // limit)
        for source, where in asked.sources.items():
            with ready(where, source, work, lambda tree: None) as tree:
                evidence = TextEvidence(tree)
                for question in asked.questions[::step]:
                    own = question.source == source
                    if not own and not (question.answerable and asked.other(question.source) == source):
                        continue
                    taken = read_question(question.text)
                    weights = weigh(taken, *evidence.document_frequencies(taken.weights))
                    candidates = candidates_of(taken, evidence.texts(question.text), weights, embedder)
                    answerable = question.answerable and own
                    right = [
                        answerable and is_right(question, [Passed(c.text, (c.node,))]) for c in candidates
                    ]
                    yield Row(
                        name,
                        source,
                        question.source,
                        taken,
                        answerable,
                        features(taken, candidates, weights, embedder),
                        np.array(right, dtype=bool),
                    )


def fit_ranker(given: Sequence[Row]) -> Floats:
    """Return weights of the features: cross entropy over each list that has a right and a wrong passage."""
    lists = [(row.features, row.right) for row in given if row.right.any() and not row.right.all()]
    scale = np.vstack([matrix for matrix, _ in lists]).std(axis=0) + 1e-6

    def slope(weights: Floats) -> Floats:
        total: Floats = RANKER_L2 * weights
        for matrix, right in lists:
            scores = matrix / scale @ weights
            share = np.exp(scores - scores.max())
            wanted = share * right
            total = total + (matrix / scale).T @ (share / share.sum() - wanted / wanted.sum())
        return np.asarray(total / len(lists))

    return np.asarray(_descend(slope, len(FEATURES)) / scale)


def fit_claim(matrix: Floats, right: Floats) -> tuple[Floats, float]:
    """Return weights and bias of a logistic regression."""
    mean, scale = matrix.mean(axis=0), matrix.std(axis=0) + 1e-6
    standard = np.hstack([(matrix - mean) / scale, np.ones((len(matrix), 1))])
    penalty = np.array([CLAIM_L2] * matrix.shape[1] + [0.0])

    def slope(weights: Floats) -> Floats:
        p = 1.0 / (1.0 + np.exp(-standard @ weights))
        return np.asarray((standard.T @ (p - right) + penalty * weights) / len(right))

    weights = _descend(slope, matrix.shape[1] + 1)
    return weights[:-1] / scale, float(weights[-1] - (weights[:-1] / scale) @ mean)


def _descend(slope: Any, size: int, steps: int = 400, rate: float = 0.05) -> Floats:
    """Minimise by Adam (Kingma, Ba 2015): smooth and convex, so that any method comes to the same."""
    weights, mean, square = np.zeros(size), np.zeros(size), np.zeros(size)
    for step in range(1, steps + 1):
        at = slope(weights)
        mean, square = 0.9 * mean + 0.1 * at, 0.99 * square + 0.01 * at * at
        weights = weights - rate * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.99**step)) + 1e-8)
    return weights


def best_of(row: Row, ranker: Floats) -> tuple[Floats, bool]:
    """Return the claim features of what the ranker puts first, and whether it is right."""
    scores = row.features @ ranker
    order = np.argsort(-scores, kind="stable")
    return claim_features(row.asked, row.features[order], scores[order]), bool(row.right[order[0]])


def claims_of(given: Sequence[Row], sources: Sequence[str]) -> tuple[Floats, Floats]:
    """Return claim features, each by a ranker that was fitted on other sources, and what was right."""
    matrix, right = [], []
    for part in range(INNER):
        held = set(sources[part::INNER])
        ranker = fit_ranker([row for row in given if row.source not in held])
        for row in given:
            if row.source in held and len(row.features):
                best, is_right = best_of(row, ranker)
                matrix.append(best)
                right.append(is_right)
    return np.array(matrix), np.array(right, dtype=float)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True, help="folder of `python -m benchmarks.answers`")
    parser.add_argument("--data", type=Path, help="folder of the sets of others, which are fitted on too")
    parser.add_argument("--sets", nargs="*", default=["qasper", "locomo"], help="those sets")
    parser.add_argument("--write", action="store_true", help="write the numbers into the package")
    options = parser.parse_args()
    given = list(rows(tuple(OWN), None, options.work, MOST))
    given += rows(options.sets if options.data else (), options.data, options.work, MOST)
    sources = sorted({row.source for row in given})
    judged: list[tuple[float, bool, Row]] = []
    for left_out in sorted({row.source for row in given if row.set in OWN}):
        train = [row for row in given if left_out not in (row.source, row.own)]
        ranker = fit_ranker(train)
        claim, bias = fit_claim(*claims_of(train, [name for name in sources if name != left_out]))
        for row in given:
            if row.source == left_out:
                best, is_right = best_of(row, ranker) if len(row.features) else (np.zeros(len(claim)), False)
                p = 1.0 / (1.0 + np.exp(-(best @ claim + bias))) if len(row.features) else 0.0
                judged.append((float(p), is_right, row))
    report(judged)
    if options.write:
        claim, bias = fit_claim(*claims_of(given, sources))
        write(fit_ranker(given), claim, bias)


def report(judged: list[tuple[float, bool, Row]]) -> None:
    """Print precision and false claims at some coverages."""
    asked = [one for one in judged if one[2].own == one[2].source]
    wrong = [one for one in judged if one[2].own != one[2].source]
    answerable = sum(row.answerable for _, _, row in asked)
    absent = len(asked) - answerable
    first = sum(right for _, right, _ in asked) / answerable
    known = sum(row.right.any() for _, _, row in asked) / answerable
    print(
        f"{answerable} answerable, {absent} absent; right in {KEPT} candidates {known:.3f}, first {first:.3f}"
    )
    print("| coverage | precision | false claims | claims of a wrong source | threshold |")
    print("|---|---|---|---|---|")
    asked.sort(key=lambda one: -one[0])
    right = false = 0
    targets = [0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4]
    for number, (p, hit, row) in enumerate(asked, start=1):
        right += hit
        false += not row.answerable
        while targets and right / answerable >= targets[0]:
            elsewhere = sum(other >= p for other, _, _ in wrong) / len(wrong)
            print(
                f"| {targets.pop(0)} | {right / number:.2f} | {false / absent:.2f} | {elsewhere:.3f} | {p:.2f} |"
            )
    bins = np.array_split(np.array([[p, float(hit)] for p, hit, _ in asked]), 10)
    error = sum(len(part) * abs(part[:, 0].mean() - part[:, 1].mean()) for part in bins) / len(asked)
    print(f"calibration error {error:.3f}")


def write(ranker: Floats, claim: Floats, bias: float) -> None:
    """Write the numbers into `metatree_routers.passages._model`."""

    def listed(values: Floats) -> str:
        return ", ".join(f"{value:.4g}" for value in values)

    path = Path(ranking.__file__).with_name("_model.py")
    text = path.read_text(encoding="utf-8")
    text = re.sub(
        r"(RANKER: Final = )np\.\w+\(.*?\)\n\"",
        rf'\g<1>np.array([{listed(ranker)}])\n"',
        text,
        flags=re.DOTALL,
    )
    text = re.sub(
        r"(CLAIM: Final = )np\.\w+\(.*?\)\n\"", rf'\g<1>np.array([{listed(claim)}])\n"', text, flags=re.DOTALL
    )
    text = re.sub(r"BIAS: Final = .*", f"BIAS: Final = {bias:.4g}", text)
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
