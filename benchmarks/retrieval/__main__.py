"""Measure how well nodes are found without a model, beside BM25 in the same run.

usage: python -m benchmarks.retrieval SET… --data FOLDER

The tree of each set is built through the public API and asked by `search(…, returns="nodes")`. In brackets are 95 %
bootstrap intervals over questions; `gain` is the paired difference. docs/benchmarks/retrieval.md names the sets.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.retrieval import report
from benchmarks.retrieval.dataset import Benchmark, Options, Outcome
from benchmarks.retrieval.sets import SETS


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "sets", nargs="+", metavar="SET", choices=[*SETS, "all"], help=f"all, or of {', '.join(SETS)}"
    )
    parser.add_argument("--data", type=Path, required=True, help="folder with documents/, memory/, …")
    parser.add_argument("--limit", type=int, help="only the first N questions of each set")
    parser.add_argument("--wrong", type=float, default=0.0, help="share of wrong choices of the router")
    parser.add_argument("--words", type=int, help="cut the descriptions of the tree to so many words")
    parser.add_argument("--mirrors", type=Path, help="folder with OWNER+NAME/repo git directories, for code")
    parser.add_argument("--work", type=Path, help="where checkouts and trees are kept, for code")
    parser.add_argument(
        "--keep", action="store_true", help="keep the tree of each commit in --work, for code"
    )
    parser.add_argument(
        "--again", action="store_true", help="rank anew, on the trees that were kept, for code"
    )
    parser.add_argument("--out", type=Path, help="append a line of JSON for each question")
    chosen = parser.parse_args()
    options = Options(
        chosen.data,
        chosen.limit,
        chosen.mirrors,
        chosen.work,
        keep=chosen.keep,
        again=chosen.again,
        wrong=chosen.wrong,
        words=chosen.words,
    )
    missing = False
    print(report.header(), flush=True)
    for name in dict.fromkeys(SETS if "all" in chosen.sets else chosen.sets):
        benchmark = SETS[name]
        try:
            outcomes = _run(benchmark, options)
        except FileNotFoundError as exc:
            print(f"{name}: left out, there is no {exc.filename or exc}", file=sys.stderr)
            missing = True
            continue
        for line in report.lines(benchmark, outcomes):
            print(line)
        print(report.footnote(benchmark, outcomes), flush=True)
        if chosen.out:
            _write(chosen.out, benchmark, outcomes)
    sys.exit(2 if missing and "all" not in chosen.sets else 0)


def _run(benchmark: Benchmark, options: Options) -> list[Outcome]:
    found = []
    for outcome in benchmark.outcomes(options):
        found.append(outcome)
        if sys.stderr.isatty():
            print(f"\r{benchmark.name} {len(found)}", end="", file=sys.stderr, flush=True)
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
    return found


def _write(file: Path, benchmark: Benchmark, outcomes: Sequence[Outcome]) -> None:
    with file.open("a", encoding="utf-8") as out:
        for outcome in outcomes:
            row = {
                "set": benchmark.name,
                "id": outcome.id,
                "gold": sorted(outcome.gold),
                "ranked": {system: list(ids) for system, ids in outcome.ranked.items()},
                "seconds": round(outcome.seconds, 4),
                "calls": outcome.calls,
            }
            out.write(json.dumps(row, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
