"""A worker whose task blocks the event loop for several leases, for `test_planner_postgres.py`.

usage: python planner_blocking.py ADDRESS FOLDER LEASE_S
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from metatree_agents.planner import Agents, Domain
from metatree_agents.planner.agents.postgres import work

LEASES = 4
"""For how many leases the body blocks."""


def make_domain(folder: Path, lease_s: float = 0.0) -> Domain:
    """Return a domain with a task that blocks the loop, and one that asks a person."""
    domain = Domain("blocking")

    @domain.task("block()")
    async def block() -> str:
        file = os.open(folder / "ledger", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(file, f"{os.getpid()}\n".encode())
        os.close(file)
        time.sleep(LEASES * lease_s)  # what is tried here
        return "blocked"

    domain.task("ask(?what)", does={"ask": "May ?what be sold?"})
    return domain


if __name__ == "__main__":
    address, folder, lease_s = sys.argv[1], Path(sys.argv[2]), float(sys.argv[3])
    with Agents(address, make_domain(folder, lease_s), lease_s=lease_s) as agents:
        work(address, agents, lease_s=lease_s, poll_s=0.1, stop=lambda: (folder / "stop").exists())
