"""Compare what is found with models of every quality with what is found without one.

    python -m benchmarks.model_quality [--questions 200] [--seed 1 …] [--nodes | --answers] [--plot FILE]

Each search looks for the one right section of this project's documentation (`returns="nodes"`, k=1), and for an answer
from it. A model errs at random, and errs in what it rules out besides; it begins as one of which nothing is known, and
all questions are asked of it one after the other. Quality is how often it is right in a menu and about a text.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.model_quality.model import ODD, Model
from benchmarks.model_quality.questions import Question, documentation, questions_of
from metatree import Tree, search

READERS = ((1.0, 0.0), (0.0, 0.0), (0.5, 0.0), (0.0, 1.0))
"""How often a model is right in a menu, and about a text."""
QUALITIES = (0.0, 0.1, 0.25, 0.5, 0.7, 0.85, 0.95, 1.0)


@dataclass(frozen=True)
class Row:
    """What the searches with one model found, and what they took."""

    name: str
    found: float
    """Share of searches whose first node is the right one."""
    answered: float
    """Share of searches with an answer from the right section."""
    claimed: float
    """Share of searches with any answer."""
    calls: float
    """Requests of a search for a node, on average."""
    reading_calls: float
    """Requests of a search for an answer, on average."""
    tokens: float
    """Of the prompts of a search for an answer, on average."""
    accuracy: float | None
    """How often the model is taken to be right in the end."""


def measure(
    name: str,
    tree: Tree,
    questions: Sequence[Question],
    model: Model | None,
    *,
    nodes: bool = True,
    answers: bool = True,
) -> Row:
    """Ask all questions, for nodes, for answers, or for both."""
    router = None if model is None else model.router()
    parts: dict[str, Any] = {} if router is None else {"router": router}
    found, answered, claimed = 0, 0, 0
    calls, reading, tokens = list[int](), list[int](), list[int]()
    for question in questions:
        if model is not None:
            model.section = question.section
        if nodes:
            first = search(question.text, tree=tree, returns="nodes", k=1, accept=["section"], **parts)
            found += [node.id for node in first.nodes] == [question.section]
            calls.append(first.usage.model_calls)
        if not answers:
            continue
        said = search(question.text, tree=tree, **parts)
        sources = [source.node for answer in said.answers for source in answer.sources]
        answered += question.section in sources
        claimed += bool(said.answers)
        reading.append(said.usage.model_calls)
        tokens.append(said.usage.tokens_in)
    count = len(questions)
    return Row(
        name,
        found / count,
        answered / count,
        claimed / count,
        statistics.fmean(calls or [0]),
        statistics.fmean(reading or [0]),
        statistics.fmean(tokens or [0]),
        None if router is None else router.connection.trust.accuracy,
    )


def pooled(name: str, rows: Sequence[Row]) -> Row:
    """Return the averages of rows of as many questions each."""

    def mean(of: str) -> float:
        return statistics.fmean(getattr(row, of) for row in rows)

    measured = {each.name: mean(each.name) for each in fields(Row) if each.name not in ("name", "accuracy")}
    known = [row.accuracy for row in rows if row.accuracy is not None]
    return Row(name, **measured, accuracy=statistics.fmean(known) if known else None)


def line(row: Row) -> str:
    """Return a row as text."""
    trust = "" if row.accuracy is None else f"{row.accuracy:.2f}"
    return (
        f"{row.name:28} {100 * row.found:6.1f} {100 * row.answered:9.1f} {100 * row.claimed:8.1f}"
        f" {row.calls:7.2f} {row.reading_calls:8.2f} {row.tokens:8.0f} {trust:>6}"
    )


def plot(rows: Sequence[tuple[float, Row]], without: Row, file: Path) -> None:
    """Draw found and calls over the quality of the model."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.5))
    quality = [each for each, _ in rows]
    left.set(xlabel="how often the model is right", ylabel="%", ylim=(0, 105))
    if any(row.found for _, row in rows):
        left.plot(quality, [100 * row.found for _, row in rows], marker="o", label="right section first")
        left.axhline(100 * without.found, linestyle="--", color="grey", label="without a model")
        right.plot(quality, [row.calls for _, row in rows], marker="o", label="for a node")
    if any(row.reading_calls for _, row in rows):
        wrong = [100 * (row.claimed - row.answered) for _, row in rows]
        left.plot(quality, [100 * row.answered for _, row in rows], marker="s", label="answered rightly")
        left.plot(quality, wrong, marker="x", label="answered wrongly")
        left.axhline(100 * without.answered, linestyle=":", color="grey", label="rightly, without a model")
        right.plot(quality, [row.reading_calls for _, row in rows], marker="s", label="for an answer")
    left.legend()
    right.legend()
    right.set(xlabel="how often the model is right", ylabel="requests a search", ylim=(0, None))
    figure.tight_layout()
    figure.savefig(file)


def _model(tree: Tree, quality: float, rules_out: float, reads: float | None, seed: int) -> Model:
    return Model(tree, quality, rules_out, reads, seed)


def _odd(tree: Tree, kind: Callable[..., Model], seed: int) -> Model:
    return kind(tree, 0.0, seed=seed)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument(
        "--seed", type=int, nargs="+", default=[1], help="each has its questions and its model"
    )
    parser.add_argument("--plot", type=Path, help="an SVG file to write")
    parser.add_argument("--answers", action="store_true", help="search for answers alone")
    parser.add_argument(
        "--nodes", action="store_true", help="search for nodes alone, which takes half the time"
    )
    parser.add_argument(
        "--rules-out", type=float, nargs="+", default=[0.2, 0.9], help="shares of options that are ruled out"
    )
    parser.add_argument("--only", help="rows whose names hold this text")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, documentation(Path(folder)) as tree:
        sets = [(seed, questions_of(tree, chosen.questions, seed)) for seed in chosen.seed]
        print(f"{chosen.questions} questions on {len(tree.ids(['section']))} sections, seeds {chosen.seed}")
        print(f"{'model':28}  found  answered  claimed   calls  reading   tokens  trust")
        what = {"nodes": not chosen.answers, "answers": not chosen.nodes}

        def measured(name: str, make: Callable[[int], Model | None]) -> Row | None:
            if name != "none" and chosen.only and chosen.only not in name:
                return None
            row = pooled(
                name, [measure(name, tree, questions, make(seed), **what) for seed, questions in sets]
            )
            print(line(row), flush=True)
            return row

        without = measured("none", lambda seed: None)
        rows = []
        for quality in QUALITIES:
            for rules_out in chosen.rules_out:
                name = f"right {quality:.2f}, rules out {rules_out:.1f}"
                row = measured(name, partial(_model, tree, quality, rules_out, None))
                if row is not None and rules_out == chosen.rules_out[0]:
                    rows.append((quality, row))
        for routes, reads in READERS if not chosen.nodes else ():
            name = f"routes {routes:.1f}, reads {reads:.1f}"
            measured(name, partial(_model, tree, routes, chosen.rules_out[0], reads))
        for name, kind in ODD.items():
            measured(name, partial(_odd, tree, kind))
        if chosen.plot is not None and without is not None:
            plot(rows, without, chosen.plot)


if __name__ == "__main__":
    main()
