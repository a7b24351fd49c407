"""Can it be seen by time whether a user is known? Wrong proofs of a known and an unknown name, in turns.

usage: python -m benchmarks.timing_service [DATABASE] [--pairs N]

Prints the medians and how often the known name took longer than the unknown one right after it, with the number of
standard deviations (sign test) by which that differs from one half. One caller on the same machine sees far more than
anybody across a network.
"""

from __future__ import annotations

import argparse
import math
import random
import secrets
import statistics
import tempfile
import time
from pathlib import Path

from benchmarks.service.caller import SECRETS, Caller, plain
from benchmarks.service.processes import servers


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("database", nargs="?")
    parser.add_argument("--pairs", type=int, default=5_000)
    given = parser.parse_args()
    known = SECRETS["user"][0]
    names = [known, "Usex_1"]
    took: dict[str, list[float]] = {name: [] for name in names}
    with tempfile.TemporaryDirectory() as folder:
        database = given.database or str(Path(folder) / "service.db")
        with servers(database, {}) as (server,):
            caller = Caller(server.port, "user")
            for each in range(given.pairs + 100):
                for name in random.sample(names, 2):
                    path = f"/api/login?User={name}&Nonce={secrets.token_hex(8)}&Hash={secrets.token_hex(32)}"
                    before = time.perf_counter_ns()
                    status, _ = caller.exchange(plain("GET", path))
                    after = time.perf_counter_ns()
                    assert status == 401
                    if each >= 100:
                        took[name].append((after - before) / 1000)
            caller.close()
    for name in names:
        what = "known" if name == known else "unknown"
        print(f"{what:8} median {statistics.median(took[name]):8.1f} µs")
    longer = sum(one > other for one, other in zip(*took.values(), strict=True))
    deviations = (longer - given.pairs / 2) / math.sqrt(given.pairs / 4)
    print(
        f"the known name took longer in {longer / given.pairs:.1%} of pairs: {deviations:+.1f} standard deviations"
    )


if __name__ == "__main__":
    main()
