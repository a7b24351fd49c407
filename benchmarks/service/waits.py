"""How long an idle service takes to hand a query to an engine that waits, and what engines that wait cost it."""

from __future__ import annotations

import secrets
import threading
import time

from benchmarks.service.caller import Caller, plain
from benchmarks.service.costs import add, right
from benchmarks.service.processes import ServerProcess, servers


def add_to_claim(database: str, *, processes: int, rounds: int) -> list[float]:
    """Return the seconds from sending `add-query` until a waiting engine has the query, shortest first.

    With two processes the engine waits at one and the query is added at the other.
    """
    found: list[float] = []
    with servers(database, {"claim_timeout_s": 30.0}, processes) as running:
        frontend, engine = Caller(running[0].port, "frontend"), Caller(running[-1].port, "engine")
        mark = secrets.token_hex(4)
        for each in range(rounds + 5):
            came: list[float] = []
            engine.send(engine.signed("GET", "get-new-queries"))
            reading = threading.Thread(target=lambda came=came: came.append(_claimed(engine)))
            reading.start()
            # Another time each round, so that no rhythm of the server is always met at the same point.
            time.sleep(0.05 + secrets.randbelow(50_000) / 1e6)
            before = time.monotonic()
            add(frontend, mark, each)
            reading.join()
            found.append(came[0] - before)
            answer(engine, f"{mark}{each}")
        frontend.close()
        engine.close()
    return sorted(found[5:])  # the first ones meet a server that has just started


def _claimed(engine: Caller) -> float:
    status, batch = engine.receive()
    assert status == 200 and batch["Topic"] is not None, batch
    return time.monotonic()


def answer(engine: Caller, topic: str) -> None:
    """Answer the first query of a topic."""
    said = {"Topic": topic, "Seq": 1, "Query": "What day is it?", "Answer": ["Friday."]}
    right(engine.call("POST", "give-new-answer", said))


def until_all_wait(server: ServerProcess, engines: int) -> None:
    """Return once so many engines wait; raises `RuntimeError` when they do not."""
    caller = Caller(server.port, "engine")
    for _ in range(3000):
        if caller.exchange(plain("GET", "/bench/waiting"))[1] >= engines:
            caller.close()
            return
        time.sleep(0.02)
    raise RuntimeError(f"{engines} engines called, and not all of them wait")


def waiting_engines(database: str, *, engines: int, seconds: float) -> dict[str, float]:
    """Return the shares of one processor that a server needs: idle, with engines that wait, and for their own calls.

    `idle` is without any caller; `waiting` while all wait; `asking` adds what it takes to receive their calls
    once for every 55 s, as they come in when they wait for as long as they do by default.
    """
    with servers(database, {"claim_timeout_s": 600.0}) as (server,):
        before = server.cpu_s()
        time.sleep(seconds / 2)
        idle = (server.cpu_s() - before) / (seconds / 2)
        callers = [Caller(server.port, "engine") for _ in range(engines)]
        before = server.cpu_s()
        for number, caller in enumerate(callers, start=1):
            caller.send(caller.signed("GET", "get-new-queries"))
            if number % 20 == 0:  # not more at once than come at once
                until_all_wait(server, number)
        calls = server.cpu_s() - before
        before = server.cpu_s()
        time.sleep(seconds)
        waiting = (server.cpu_s() - before) / seconds
        for caller in callers:
            caller.close()
    return {"idle": idle, "waiting": waiting, "asking": waiting + calls / 55.0}
