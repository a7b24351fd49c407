"""Kill the service's servers and engines at random while queries come in; say what was lost or done twice.

usage: python -m benchmarks.kill_service [--jobs N] [--database DATABASE] [--seed N]

Several servers work on one database; they and the engines get SIGKILL, or SIGSTOP and some time later SIGCONT, one
after another without end. Askers try again whatever happens and use some proofs twice, at two servers at once. In
the end the database is compared with what askers and engines wrote down. Exits with 1 when anything is wrong.
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
import tempfile
from pathlib import Path

from benchmarks.service.killing import Soak


def main() -> int:
    """Run and print the outcome."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--database", help="a file or a postgresql:// address; a new file by default")
    parser.add_argument("--servers", type=int, default=3)
    parser.add_argument("--engines", type=int, default=4)
    parser.add_argument("--askers", type=int, default=3)
    parser.add_argument("--every", type=int, default=100, help="answers between disturbances, on average")
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # so that no process is left behind
    with tempfile.TemporaryDirectory() as folder:
        database = given.database or str(Path(folder) / "service.db")
        print(f"seed {given.seed}, {database}", flush=True)
        soak = Soak(
            database,
            Path(folder),
            jobs=given.jobs,
            servers=given.servers,
            engines=given.engines,
            askers=given.askers,
            seed=given.seed,
        )
        outcome = soak.run(every=given.every, say=lambda text: print(text, flush=True), limit_s=120.0)
    print(outcome.table())
    return 1 if outcome.wrong() else 0


if __name__ == "__main__":
    sys.exit(main())
