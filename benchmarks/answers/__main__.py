"""Measure whether `ask` claims what the texts say and is silent where they say nothing, beside BM25.

usage: python -m benchmarks.answers --work DIR [--data DIR] [--sets SET…]

The sources of the own sets are fetched into --work; the tree of each source is built there once. Prints tables in
Markdown; docs/benchmarks/answers.md says what the figures are.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from benchmarks.answers import report
from benchmarks.answers.asking import rows
from benchmarks.answers.dataset import QuestionSet
from benchmarks.answers.scoring import Row
from benchmarks.answers.sets import OWN, SETS, load
from metatree.protocols import SURE


@dataclass(frozen=True, slots=True)
class _Job:
    """All that is asked of one source."""

    set: str
    source: str
    data: Path | None
    work: Path
    wrong: bool
    limit: int | None
    sure: float
    kinds: tuple[str, ...] = ()


def main() -> None:
    """Ask, write the rows and print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--work", type=Path, help="folder for sources and trees")
    parser.add_argument(
        "--data", type=Path, help="folder with documents/ and memory/, for all but the own sets"
    )
    parser.add_argument(
        "--sets",
        nargs="+",
        choices=SETS,
        metavar="SET",
        help=f"of {', '.join(SETS)}; {' and '.join(OWN)} by default",
    )
    parser.add_argument(
        "--kinds", nargs="+", metavar="KIND", help="only questions of these kinds, such as abstention"
    )
    parser.add_argument("--no-wrong", action="store_true", help="ask nothing of wrong collections")
    parser.add_argument("--limit", type=int, metavar="N", help="about N questions of each set, taken evenly")
    parser.add_argument("--sure", type=float, default=SURE, metavar="P", help="claim what is so likely right")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes")
    parser.add_argument(
        "--rows", type=Path, metavar="FILE", help="write a line of JSON for each question and system"
    )
    parser.add_argument(
        "--read", type=Path, metavar="FILE", help="ask nothing: report on the rows of an earlier run"
    )
    parser.add_argument(
        "--compare", type=Path, metavar="FILE", help="list what differs from the rows of an earlier run"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures as JSON")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw risk over coverage as a PNG")
    chosen = parser.parse_args()
    earlier = report.read_rows(chosen.compare) if chosen.compare else []
    if chosen.read:
        found = [row for row in report.read_rows(chosen.read) if row.set in (chosen.sets or SETS)]
    elif not chosen.work:
        parser.error("--work is missing: name a folder for sources and trees")
    else:
        try:
            found = list(_asked(chosen))
        except FileNotFoundError as error:
            sys.exit(f"there is no {error.filename}" if error.filename else str(error))
    for line in report.tables(found):
        print(line)
    if chosen.json:
        chosen.json.write_text(json.dumps(report.as_json(found), indent=1) + "\n", encoding="utf-8")
    if chosen.plot:
        from benchmarks.answers.plot import draw

        draw(report.panels(found), chosen.plot)
    if chosen.compare:
        for line in report.changes(earlier, found):
            print(line)


def _asked(chosen: argparse.Namespace) -> Iterator[Row]:
    jobs = [
        _Job(
            name,
            source,
            chosen.data,
            chosen.work,
            not chosen.no_wrong,
            chosen.limit,
            chosen.sure,
            tuple(chosen.kinds or ()),
        )
        for name in dict.fromkeys(chosen.sets or OWN)
        for source in _loaded(name, chosen.data, chosen.work).sources
    ]
    if chosen.rows:
        chosen.rows.unlink(missing_ok=True)
    with ProcessPoolExecutor(chosen.jobs) if chosen.jobs > 1 else nullcontext() as pool:
        for job, found in zip(jobs, pool.map(_run, jobs) if pool else map(_run, jobs), strict=True):
            if chosen.rows:
                report.append_rows(chosen.rows, found)
            _tell(job, found)
            yield from found


def _tell(job: _Job, found: list[Row]) -> None:
    seconds = sum(row.seconds for row in found)
    print(
        f"{job.set} {job.source}: {len(found)} rows, {seconds:.1f} s of asking", file=sys.stderr, flush=True
    )


def _run(job: _Job) -> list[Row]:
    asked = _loaded(job.set, job.data, job.work)
    if job.kinds:
        questions = [question for question in asked.questions if question.kind in job.kinds]
        if not questions:
            known = ", ".join(sorted({question.kind for question in asked.questions}))
            sys.exit(f"{job.set} has no questions of the kind {' or '.join(job.kinds)}; it has {known}")
        asked = replace(asked, questions=questions)
    return list(rows(asked, job.source, job.work, wrong=job.wrong, limit=job.limit, sure=job.sure))


@cache
def _loaded(name: str, data: Path | None, work: Path) -> QuestionSet:
    return load(name, data, work)


if __name__ == "__main__":
    main()
