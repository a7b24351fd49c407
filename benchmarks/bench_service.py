"""What the query service costs and how fast it is, as ratios to a route that does nothing on the same server.

usage: python -m benchmarks.bench_service [DATABASE ...] [--quick]

DATABASE is a file or a postgresql:// address; without one: a file in a temporary folder, and a PostgreSQL server
that is started for it where Debian's is installed.

The server is a process of its own, run as `metatree serve` runs it; callers are other processes or threads, and their
time does not count. Times are processor seconds of the server by getrusage. The base is a plain FastAPI route without
parameters that returns an empty object, without the proof that all other routes ask for.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.service.costs import costs
from benchmarks.service.databases import postgres, schema_of, there_is_postgres
from benchmarks.service.peer import ours, ours_without_a_server, procrastinates
from benchmarks.service.processes import many_files
from benchmarks.service.waits import add_to_claim, waiting_engines

LIMITS = {
    "sqlite": {"get-new-queries + give-new-answer": 10.0, "add-query": 4.0, "median_ms": 5.0},
    "postgresql": {"get-new-queries + give-new-answer": 15.0, "add-query": 8.0, "median_ms": 20.0},
}
"""What must hold: ratios to the base, and the median from adding to claiming."""
WORST_MS = 250.0
PEER_RATIO = 2.0
WAITING_SHARE = 0.05


def kind_of(database: str) -> str:
    """Return which of the two databases an address names."""
    return "postgresql" if "://" in database else "sqlite"


def verdict(value: float, limit: float | None) -> str:
    """Return how a value compares with what must hold."""
    return "" if limit is None else f"at most {limit:g}: {'holds' if value <= limit else 'DOES NOT HOLD'}"


def report(database: str, *, quick: bool) -> None:
    """Measure one database and print its table."""
    kind = kind_of(database)
    limits = LIMITS[kind]
    print(
        f"\n### {kind}\n\n| request | server's time | times the base | must be |\n|---|---|---|---|",
        flush=True,
    )
    for name, (time_us, ratio) in costs(database, rounds=3 if quick else 7).items():
        print(f"| {name} | {time_us:.0f} µs | {ratio:.2f} | {verdict(ratio, limits.get(name))} |", flush=True)
    print(
        "\n| from add-query to an engine that waits | median | 95 % | longest | must be |\n|---|---|---|---|---|"
    )
    for processes in (1, 2):
        took = [
            1000 * each for each in add_to_claim(database, processes=processes, rounds=50 if quick else 300)
        ]
        median, most = statistics.median(took), took[-1]
        said = f"median {verdict(median, limits['median_ms'])}; longest {verdict(most, WORST_MS)}"
        name = "one server" if processes == 1 else "added at one server, claimed at another"
        print(f"| {name} | {median:.1f} ms | {took[len(took) * 95 // 100]:.1f} ms | {most:.1f} ms | {said} |")
    shares = waiting_engines(database, engines=1000, seconds=10 if quick else 30)
    print("\n| share of one processor | | must be |\n|---|---|---|")
    print(f"| nobody calls | {shares['idle']:.2%} | |")
    print(
        f"| 1,000 engines wait | {shares['waiting']:.2%} | {verdict(100 * shares['waiting'], 100 * WAITING_SHARE)} |"
    )
    print(f"| and call again every 55 s | {shares['asking']:.2%} | |", flush=True)


def beside(address: str, *, quick: bool) -> None:
    """Print no-op jobs per second, ours and procrastinate's in turns, and their ratio."""
    rounds, jobs = (1, 200) if quick else (3, 1000)
    found: list[tuple[float, float, float]] = []
    for _ in range(rounds):
        theirs = max(procrastinates(address, jobs, concurrency) for concurrency in (1, 10))
        alone = max(ours_without_a_server(address, jobs, engines) for engines in (1, 4))
        found.append((max(ours(address, jobs, engines) for engines in (1, 4)), alone, theirs))
    served, alone, others = (statistics.median(each) for each in zip(*found, strict=True))
    print("\n| no-op jobs a second, one server or worker | | ratio | must be |\n|---|---|---|---|")
    print(f"| procrastinate: the better of a concurrency of 1 and 10 | {others:.0f} | 1.00 | |")
    for name, rate, place in (
        ("ours, the queue alone: the better of 1 and 4 engines", alone, 1),
        ("ours, signed HTTP requests: the better of 1 and 4 engines", served, 0),
    ):
        ratio = statistics.median(each[place] / each[2] for each in found)
        held = "holds" if ratio >= PEER_RATIO else "DOES NOT HOLD"
        print(f"| {name} | {rate:.0f} | {ratio:.2f} | at least {PEER_RATIO:g}: {held} |", flush=True)


@contextmanager
def databases(given: list[str]) -> Iterator[list[str]]:
    """Give the databases that were named, or those that can be had here."""
    if given:
        yield given
        return
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        found = [str(Path(folder) / "service.db")]
        if there_is_postgres():
            found.append(stack.enter_context(postgres()))
        yield found


def main() -> None:
    """Print the tables of all databases."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("database", nargs="*")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    given = parser.parse_args()
    many_files()
    with databases(given.database) as all_:
        for database in all_:
            if kind_of(database) == "sqlite":
                report(database, quick=given.quick)
            else:
                report(schema_of(database), quick=given.quick)
                beside(database, quick=given.quick)


if __name__ == "__main__":
    main()
