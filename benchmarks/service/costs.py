"""What a request costs the server, as a ratio to a route that does nothing on the same server in the same run."""

from __future__ import annotations

import secrets
import statistics
from collections.abc import Callable
from functools import partial

from benchmarks.service.caller import Caller, plain
from benchmarks.service.processes import ServerProcess, servers

BASE = "a route that does nothing"
REQUESTS = 400
ROUNDS = 7


def costs(database: str, *, requests: int = REQUESTS, rounds: int = ROUNDS) -> dict[str, tuple[float, float]]:
    """Return (microseconds of the server, ratio to the base) of each kind of request.

    Kinds take turns, and the median of the rounds' ratios counts, since other programs of the machine disturb some.
    """
    times: dict[str, list[float]] = {}
    with servers(database, {"claim_timeout_s": 0.0}) as (server,):
        frontend, engine = Caller(server.port, "frontend"), Caller(server.port, "engine")
        measured(server, frontend, requests, lambda _: nothing(frontend))
        for _ in range(rounds):
            mark = secrets.token_hex(4)
            kinds: dict[str, Callable[[int], object]] = {
                BASE: lambda _: nothing(frontend),
                "the proof alone": lambda _: right(frontend.call("GET", "bench-proof")),
                "add-query": partial(add, frontend, mark),
                "get-new-queries + give-new-answer": lambda _: claim_and_answer(engine),
                "check-query": partial(check, frontend, mark),
            }
            for name, do in kinds.items():
                used = measured(server, engine if "new" in name else frontend, requests, do)
                times.setdefault(name, []).append(used)
        frontend.close()
        engine.close()
    ratios = {
        name: [used / base for used, base in zip(many, times[BASE], strict=True)]
        for name, many in times.items()
    }
    return {name: (statistics.median(times[name]) * 1e6, statistics.median(ratios[name])) for name in times}


def measured(server: ServerProcess, caller: Caller, requests: int, do: Callable[[int], object]) -> float:
    """Return the processor seconds that the server took for each of some requests."""
    caller.close()  # the server may have closed a connection that rested
    before = server.cpu_s()
    for each in range(requests):
        do(each)
    return (server.cpu_s() - before) / requests


def right(said: tuple[int, object]) -> object:
    """Return the body of an answer that must be 200."""
    assert said[0] == 200, said
    return said[1]


def nothing(caller: Caller) -> None:
    """Ask for nothing."""
    right(caller.exchange(plain("GET", "/bench/nothing")))


def add(caller: Caller, mark: str, number: int) -> None:
    """Ask something in a topic of its own."""
    right(
        caller.call(
            "POST", "add-query", {"Topic": f"{mark}{number}", "User": "John_Doe", "Query": "What day is it?"}
        )
    )


def check(caller: Caller, mark: str, number: int) -> None:
    """Read the answer to the first query of a topic."""
    found = right(caller.call("GET", "check-query", Topic=f"{mark}{number}", Seq=1))
    assert isinstance(found, dict) and found["Answer"], found


def claim_and_answer(caller: Caller) -> int:
    """Claim a topic and answer its queries; return how many these were."""
    batch = right(caller.call("GET", "get-new-queries"))
    assert isinstance(batch, dict)
    if batch["Topic"] is None:
        return 0
    for item in batch["Queries"]:
        ((seq, text),) = item.items()
        said = {
            "Topic": batch["Topic"],
            "Seq": int(seq),
            "Query": text,
            "Answer": ["Friday."],
            "Think": ["A day."],
        }
        right(caller.call("POST", "give-new-answer", said))
    return len(batch["Queries"])
