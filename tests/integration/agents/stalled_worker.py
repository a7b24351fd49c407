"""A worker whose task waits until a file is there, for `test_planner_processes.py`.

usage: python stalled_worker.py STORE FOLDER LEASE_S
"""

from __future__ import annotations

import logging
import os
import sys
import time
from pathlib import Path

from metatree_agents.planner import Agents, Domain, TaskContext


def make_domain(folder: Path, who: str) -> Domain:
    """Return a domain with one task that says that it has begun and goes on when `go-WHO` is there."""
    domain = Domain("stall")

    @domain.task("work()")
    def work(context: TaskContext) -> str:
        (folder / f"begun-{who}").write_text(str(context.attempt))
        while not (folder / f"go-{who}").exists():
            time.sleep(0.01)
        return who

    return domain


if __name__ == "__main__":
    store, folder, lease_s = Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3])
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    with Agents(store, make_domain(folder, "old"), lease_s=lease_s) as agents:
        agents.work(stop=lambda: (folder / "stop-old").exists(), poll_s=0.05)
    os._exit(0)
