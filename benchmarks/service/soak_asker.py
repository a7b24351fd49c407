"""A frontend that asks until every query surely is in its topic, and tries to use proofs twice on the way.

usage: python -m benchmarks.service.soak_asker LOG SEED NAME JOBS PORT ...

The log has a line for each query that was surely added, with its number in the topic, and for each proof used twice.
"""

from __future__ import annotations

import random
import sys
import time
from typing import Any

from benchmarks.service.caller import Caller
from benchmarks.service.soak_engine import PATIENCE_S, Log

MAX_QUERIES = 8
TWICE = 0.05
"""Share of the queries that are sent to two servers at once with one proof."""


def exchange(caller: Caller, request: bytes) -> tuple[int, Any]:
    """Make a call; return status 0 when it is not known what became of it."""
    try:
        return caller.exchange(request)
    except (OSError, ValueError):
        caller.close()
        return 0, None


def at_once(callers: list[Caller], request: bytes) -> list[tuple[int, Any]]:
    """Send the same request to several servers before any has answered."""
    said: list[tuple[int, Any]] = []
    for caller in callers:
        try:
            caller.send(request)
        except OSError:
            caller.close()
    for caller in callers:
        try:
            said.append(caller.receive() if caller.connected else (0, None))
        except (OSError, ValueError):
            caller.close()
            said.append((0, None))
    return said


def asked(callers: list[Caller], rng: random.Random, log: Log, body: dict[str, Any]) -> int:
    """Ask until the query surely is in its topic; return its number."""
    while True:
        caller = rng.choice(callers)
        request = caller.signed("POST", "add-query", body)
        if len(callers) > 1 and rng.random() < TWICE:
            said = at_once(rng.sample(callers, 2), request)
            log.write(twice=[status for status, _ in said])
        else:
            said = [exchange(caller, request)]
        for status, added in said:
            if status == 200:
                return int(added["Seq"])
        for query in thread_of(callers, rng, body["Topic"]):
            if query["Query"] == body["Query"]:
                return int(query["Seq"])


def thread_of(callers: list[Caller], rng: random.Random, topic: str) -> list[dict[str, Any]]:
    """Return the queries of a topic, as soon as a server says which these are."""
    while True:
        time.sleep(PATIENCE_S)
        caller = rng.choice(callers)
        status, thread = exchange(caller, caller.signed("GET", "get-topic-thread", Topic=topic))
        if status in (200, 404):
            return list(thread) if status == 200 else []


def ask_all(log: Log, rng: random.Random, callers: list[Caller], name: str, jobs: int) -> None:
    """Ask so many queries in topics of some queries each, several topics at a time."""
    topics: list[tuple[str, int]] = []
    made = 0
    for job in range(jobs):
        if len(topics) < 5:
            made += 1
            topics.append((f"{name}/{made}+", rng.randint(1, MAX_QUERIES)))
        at = rng.randrange(len(topics))
        topic, left = topics[at]
        body = {"Topic": topic, "User": name, "Query": f"{topic} {job}"}
        log.write(topic=topic, text=body["Query"], seq=asked(callers, rng, log, body))
        topics[at] = (topic, left - 1)
        if left == 1:
            del topics[at]


if __name__ == "__main__":
    ask_all(
        Log(sys.argv[1]),
        random.Random(int(sys.argv[2])),
        [Caller(int(port), "frontend", timeout_s=2.5) for port in sys.argv[5:]],
        sys.argv[3],
        int(sys.argv[4]),
    )
