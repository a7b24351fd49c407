"""Kill a gateway again and again during parallel calls, and one of its servers too; then count what was done.

usage: python tests/soak_gateway.py [--servers N] [--calls N] [--kills N] [--seed N]

Every call has a key and is repeated until there is an outcome: a result, or that nobody knows whether it was made. The
servers note what they did. Nothing that changes something may be made twice, and no result may be of a call that was
not made.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ODD = Path(__file__).with_name("integration") / "agents/gateway/odd_server.py"
METATREE = str(Path(sys.executable).with_name("metatree"))
_MOST_ROUNDS = 60


@dataclass(frozen=True)
class Outcome:
    """What became of all calls."""

    done: int
    """Calls with a result."""
    unknown: int
    """Calls of which nobody knows whether they were made."""
    twice: list[str]
    """Calls that were made more than once."""
    missing: list[str]
    """Calls with a result that no server made."""
    open: int
    """Calls without any outcome."""
    kills: int


def soak(folder: Path, *, servers: int, calls: int, kills: int, seed: int) -> Outcome:
    """Make the calls in gateways that are killed, and return what became of them.

    Args:
        folder: an empty folder.
        servers: how many servers there are; calls go to each in turn.
        calls: how many calls are made in parallel, each with a key of its own.
        kills: how many gateways are killed at random moments before one may end its work.
        seed: of the moments.
    """
    moments = random.Random(seed)
    log = folder / "log"
    log.touch()
    table = {
        f"s{n}": {"command": sys.executable, "args": [str(ODD)], "env": {"LOG": str(log), "SERVER": str(n)}}
        for n in range(servers)
    }
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": table}))
    (folder / "policy.json").write_text('{"allow": ["*"]}')
    results: dict[str, str] = {}
    wanted = [f"call {number}" for number in range(calls)]
    killed = 0
    for _ in range(_MOST_ROUNDS):
        left = [each for each in wanted if each not in results]
        if not left and killed >= kills:
            break
        # The first gateways are killed whatever is left, also while they only start.
        pause = moments.uniform(0.2, 2.5) if killed < kills else None
        asyncio.run(_round(folder, left or wanted[:1], results, servers, pause, moments))
        killed += pause is not None
    made = Counter(
        json.loads(line.partition(" ")[2])["line"]
        for line in log.read_text().splitlines()
        if line.startswith("write ")
    )
    done = [key for key, outcome in results.items() if outcome == "done"]
    return Outcome(
        len(done),
        sum(outcome == "unknown" for outcome in results.values()),
        [key for key, count in made.items() if count > 1],
        [key for key in done if not made[key]],
        len(wanted) - len(results),
        killed,
    )


async def _round(
    folder: Path,
    left: list[str],
    results: dict[str, str],
    servers: int,
    pause: float | None,
    moments: random.Random,
) -> None:
    """Start a gateway, make the calls that are left, and kill it after a pause if there is one."""
    from mcp import Client

    command = [
        METATREE,
        "gateway",
        "--servers",
        str(folder / "mcp.json"),
        "--policy",
        str(folder / "policy.json"),
    ]
    command += ["--memory", str(folder / "gateway.db"), "--http", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        line = process.stderr.readline()
        assert line.startswith("listening on "), line + process.stderr.read()
        url = line.removeprefix("listening on ").strip()
        work = asyncio.create_task(_calls(Client, url, left, results, servers))
        if pause is None:  # the gateway lives, and one of its servers dies in the midst of its calls
            await asyncio.sleep(moments.uniform(0.5, 2.0))
            _kill_a_server(folder, moments)
            await work
            return
        await asyncio.sleep(pause / 2)
        _kill_a_server(folder, moments)
        await asyncio.sleep(pause / 2)
        process.kill()
        work.cancel()
        with suppress(asyncio.CancelledError, Exception, BaseExceptionGroup):
            await work
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


async def _calls(client_class: Any, url: str, left: list[str], results: dict[str, str], servers: int) -> None:
    async with client_class(url) as client:

        async def one(key: str) -> None:
            number = int(key.split()[1])
            arguments = {"id": f"s{number % servers}/write", "arguments": {"line": key}, "key": key}
            result = await client.call_tool("call_tool", arguments)
            text = "\n".join(part.text for part in result.content if part.type == "text")
            if not result.is_error:
                results[key] = "done"
            elif "may have" in text:
                results[key] = "unknown"

        await asyncio.gather(*(one(key) for key in left))


def _kill_a_server(folder: Path, moments: random.Random) -> None:
    """Kill one of the servers that were started last, if it still runs."""
    started = [
        line.split()[1] for line in (folder / "log").read_text().splitlines() if line.startswith("started")
    ]
    if started:
        number = int(moments.choice(started[-10:]))
        with suppress(ProcessLookupError, OSError):
            if ODD.name.encode() in Path(f"/proc/{number}/cmdline").read_bytes():
                os.kill(number, signal.SIGKILL)


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--servers", type=int, default=20)
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        outcome = soak(Path(folder), **vars(chosen))
    print(
        f"{outcome.kills} gateways killed, {chosen.calls} calls to {chosen.servers} servers: {outcome.done} done,"
    )
    print(
        f"{outcome.unknown} of which nobody knows, {len(outcome.twice)} made twice, {len(outcome.missing)} not made,"
    )
    print(f"{outcome.open} without an outcome; {time.monotonic() - started:.0f} s")
    sys.exit(bool(outcome.twice or outcome.missing or outcome.open))


if __name__ == "__main__":
    main()
