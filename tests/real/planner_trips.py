"""A worker for `test_planner_lives_postgres.py`: trips with a child agent, a sleep, and bookings that are taken back.

usage: python planner_trips.py ADDRESS FOLDER LEASE_S
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from metatree_agents.planner import Agents, Domain, TaskContext
from metatree_agents.planner.agents.postgres import work


def make_domain(folder: Path) -> Domain:
    """Return trips: a price by a child, a train, a sleep, a hotel, and a boat that there is not for odd numbers."""
    domain = Domain("trips")
    domain.relation("booked", 2)

    def note(what: str) -> None:
        file = os.open(folder / "ledger", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(file, f"{what}\n".encode())
        os.close(file)

    @domain.task("book(?n, ?what)", effect="(booked ?n ?what)", undo="release(?n, ?what)")
    def book(n: int, what: str, context: TaskContext) -> str:
        note(f"book {n} {what} {context.key}")
        if what == "boat" and n % 2:
            raise ValueError("no boat")
        return "booked"

    @domain.task("release(?n, ?what)", when="(booked ?n ?what)", effect="(not (booked ?n ?what))")
    def release(n: int, what: str, context: TaskContext) -> None:
        note(f"release {n} {what} {context.key}")

    @domain.task("price(?n)")
    def price(n: int) -> int:
        return 2 * n

    domain.task("ask(?n)", does={"agent": "price(?n)"})
    domain.task("nap()", does={"sleep": 1.5})
    domain.rule(
        "trip(?n)",
        subgoals=["ask(?n)", "book(?n, train)", "nap()", "book(?n, hotel)", "book(?n, boat)"],
    )
    return domain


if __name__ == "__main__":
    address, folder, lease_s = sys.argv[1], Path(sys.argv[2]), float(sys.argv[3])
    agents = Agents(address, make_domain(folder), lease_s=lease_s)
    work(address, agents, lease_s=lease_s, poll_s=0.2)
