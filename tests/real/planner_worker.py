"""A worker of procrastinate for agents on PostgreSQL, for `test_planner_postgres.py`.

usage: python planner_worker.py ADDRESS FOLDER LEASE_S
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from metatree_agents.planner import Agents, Domain, Done, TaskContext
from metatree_agents.planner.agents.postgres import work

from metatree import Blackboard


def make_domain(folder: Path) -> Domain:
    """Return orders: reserved, paid for once and never twice, then packed and announced at the same time."""
    domain = Domain("orders")
    domain.relation("stock", 1)
    domain.relation("reserved", 1)
    domain.relation("receipt", 2, dynamic=True)

    def note(what: str) -> None:
        file = os.open(folder / "ledger", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(file, f"{what}\n".encode())
        os.close(file)

    @domain.task("reserve(?n)", when="(stock ?n)", effect="(and (reserved ?n) (not (stock ?n)))")
    def reserve(n: int, context: TaskContext) -> str:
        note(f"reserve {n} {context.key}")
        time.sleep(0.05)
        return "reserved"

    @domain.task("pay(?n)", when="(reserved ?n)", repeatable=False)
    def pay(n: int) -> Done:
        note(f"pay {n}")
        time.sleep(0.1)
        return Done("paid", facts=[("receipt", n, "yes")])

    @domain.task("pack(?n)", when="(reserved ?n)")
    async def pack(n: int) -> str:
        note(f"pack {n}")
        return "packed"

    @domain.task("announce(?n)", when="(reserved ?n)")
    def announce(n: int) -> str:
        return "announced"

    domain.rule("finish(?n)", subgoals=["pack(?n)", "announce(?n)"], order=False)
    domain.rule("order(?n)", subgoals=["reserve(?n)", "pay(?n)", "finish(?n)"])
    return domain


if __name__ == "__main__":
    address, folder, lease_s = sys.argv[1], Path(sys.argv[2]), float(sys.argv[3])
    with Blackboard(folder / "board.db") as board:
        agents = Agents(address, make_domain(folder), board=board, lease_s=lease_s)
        work(address, agents, lease_s=lease_s, poll_s=0.2, stop=lambda: (folder / "stop").exists())
    os._exit(0)
