"""An engine that answers at once and may be killed at any moment: it writes down what it gave before it goes on.

usage: python -m benchmarks.service.soak_engine LOG SEED PORT ...

The log has a line for each claim, and one for each answer that the service said it took or refused.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
import uuid
from typing import Any

from benchmarks.service.caller import Caller

PATIENCE_S = 0.05


class Log:
    """Lines of JSON that are in the file when `write` returns, whatever becomes of the process."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def write(self, **said: Any) -> None:
        os.write(self._file, (json.dumps(said) + "\n").encode())


def give(callers: list[Caller], rng: random.Random, answer: dict[str, Any]) -> int:
    """Give an answer to any of the servers until one takes or refuses it; return the status."""
    while True:
        caller = rng.choice(callers)
        try:
            status, _ = caller.call("POST", "give-new-answer", answer)
        except (OSError, ValueError):
            caller.close()
            time.sleep(PATIENCE_S)
            continue
        if status in (200, 404, 409):
            return status
        time.sleep(PATIENCE_S)  # 503: the database is taken by a server that was stopped


def work(log: Log, rng: random.Random, callers: list[Caller]) -> None:
    """Claim and answer for ever."""
    while True:
        caller = rng.choice(callers)
        try:
            status, batch = caller.call("GET", "get-new-queries")
        except (OSError, ValueError):
            caller.close()
            time.sleep(PATIENCE_S)
            continue
        if status != 200 or batch["Topic"] is None:
            continue
        log.write(claimed=batch["Topic"], seqs=[int(seq) for item in batch["Queries"] for seq in item])
        for item in batch["Queries"]:
            ((seq, text),) = item.items()
            mark = uuid.uuid4().hex
            said = {"Topic": batch["Topic"], "Seq": int(seq), "Query": text, "Answer": [text, mark]}
            log.write(gave=mark, topic=batch["Topic"], seq=int(seq), status=give(callers, rng, said))


if __name__ == "__main__":
    work(
        Log(sys.argv[1]),
        random.Random(int(sys.argv[2])),
        [Caller(int(port), "engine", timeout_s=2.5) for port in sys.argv[3:]],
    )
