"""Tables of what was measured."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from benchmarks.retrieval.dataset import BASELINE, OURS, Benchmark, Outcome
from benchmarks.retrieval.scores import Values, interval, values

HEAD = ("set", "questions", "metric", "BM25", "metatree", "gain", "goal")
_WIDTHS = (36, 10, 7, 21, 21, 23, 5)


def header() -> str:
    """Return the heads of the columns."""
    return _line(HEAD)


def lines(benchmark: Benchmark, outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Yield a line for each metric: both systems and the paired difference, with 95 % bootstrap intervals."""
    for name in benchmark.metrics:
        goal = f"{benchmark.goals[name]:.2f}" if name in benchmark.goals else ""
        yield _row(benchmark.name, name, outcomes, goal)
    for group in dict.fromkeys(group for outcome in outcomes for group in outcome.groups):
        members = [outcome for outcome in outcomes if group in outcome.groups]
        for name in benchmark.metrics:
            yield _row(f"  {group}", name, members, "")


def _row(title: str, name: str, outcomes: Sequence[Outcome], goal: str) -> str:
    """Return a line for one metric over some questions."""
    line, ours = (values(name, system, outcomes) for system in (BASELINE, OURS))
    return _line((title, str(len(outcomes)), name, _cell(line), _cell(ours), _cell(ours - line, "+"), goal))


def footnote(benchmark: Benchmark, outcomes: Sequence[Outcome]) -> str:
    """Return what it took."""
    seconds = sorted(outcome.seconds for outcome in outcomes)
    slow = seconds[int(0.95 * (len(seconds) - 1))]
    calls = statistics.fmean(outcome.calls for outcome in outcomes)
    notes = benchmark.notes
    built = (
        f"{notes.nodes} nodes built in {notes.build_seconds:.1f} s, indexed in {notes.index_seconds:.1f} s; "
        if notes.nodes
        else ""
    )
    return (
        f"{'':36} {built}a search takes {1000 * statistics.median(seconds):.0f} ms (95 % within"
        f" {1000 * slow:.0f} ms) and {calls:.1f} router calls"
    )


def _cell(scores: Values, sign: str = "") -> str:
    low, high = interval(scores)
    return f"{scores.mean():{sign}.3f} [{low:{sign}.3f} {high:{sign}.3f}]"


def _line(cells: Sequence[str]) -> str:
    return " ".join(f"{cell:{width}}" for cell, width in zip(cells, _WIDTHS, strict=True)).rstrip()
