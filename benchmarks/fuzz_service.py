"""Let schemathesis try all that the service's OpenAPI description allows and forbids, with signed requests.

usage: python -m benchmarks.fuzz_service --schemathesis PROGRAM [--examples N] [--seed N] [--part PART ...]
                                         [--role ROLE ...] [-- OPTION ...]

Each role tries all routes, against new databases with two topics that are answered; an engine answers what is added.
First what is at the bounds of the description, one by one; then requests at random, and sequences of them.
Exits with 1 when a run finds anything: an answer of 500 or more, a status or a body that is not described, an invalid
request that is accepted, a valid one that is refused as invalid.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from metatree_agents.service.accounts.keys import Keys

from benchmarks.service.caller import SECRETS, Caller
from benchmarks.service.costs import claim_and_answer, right
from benchmarks.service.databases import opened
from benchmarks.service.processes import ROOT, servers

TOPICS = ("T/1+", "T2")
CONFIG = ROOT / "benchmarks/service/schemathesis.toml"
# Nothing may take long: a query may wait for a person for ever, or for an engine that was taken out.
SETTINGS = {
    "claim_timeout_s": 0.0,
    "answer_timeout_s": 0.0,
    "lease_s": 1.0,
    "chat_wait_s": 0.5,
    "stream_s": 0.5,
}
# What a status means depends on what is in the database and who asks, which the description cannot say; so a valid
# request may well be answered with 403, 404 or 409.
EXCLUDED = "positive_data_acceptance"
PARTS: dict[str, tuple[list[str], dict[str, str]]] = {
    "bounds": (["--phases", "examples,coverage"], {}),
    "random": (["--phases", "fuzzing,stateful"], {"METATREE_FUZZ_RANDOM": "1"}),
}
"""The parts of a run: options and environment of each."""


def fuzz(program: str, role: str, options: list[str], given: dict[str, str]) -> int:
    """Run schemathesis as one role; return its exit code."""
    name, secret = SECRETS[role]
    with tempfile.TemporaryDirectory() as folder, servers(f"{folder}/service.db", SETTINGS) as (server,):
        database = f"{folder}/service.db"
        frontend, engine = Caller(server.port, "frontend"), Caller(server.port, "engine")
        for topic in TOPICS:
            for text in ("a", "b", "c"):
                right(frontend.call("POST", "add-query", {"Topic": topic, "User": "User_1", "Query": text}))
            claim_and_answer(engine)
        key = asyncio.run(key_of(database, name))
        log = str(Path(folder) / "engine.jsonl")
        engine_inside = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.service.soak_engine", log, "1", str(server.port)], cwd=ROOT
        )
        try:
            return subprocess.run(
                [
                    str(Path(program).absolute()),
                    "--config-file",
                    str(CONFIG),
                    "run",
                    f"http://127.0.0.1:{server.port}/openapi.json",
                    *("--header", f"Authorization: Bearer {key}"),
                    *options,
                ],
                env={
                    **os.environ,
                    "SCHEMATHESIS_HOOKS": "benchmarks.service.signing_hooks",
                    "PYTHONPATH": str(ROOT),
                    "METATREE_FUZZ_USER": f"{name}:{secret}",
                    **given,
                },
                cwd=folder,
                check=False,
            ).returncode
        finally:
            engine_inside.kill()
            engine_inside.wait()


async def key_of(where: str, name: str) -> str:
    """Return a new API key of a user."""
    database = opened(where)
    try:
        return await Keys(database).add(name)
    finally:
        await database.close()


def main() -> int:
    """Run all roles."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--schemathesis", required=True, help="the command; it need not share this environment"
    )
    parser.add_argument("--examples", type=int, default=30, help="for each route, at random")
    parser.add_argument("--seed", type=int, default=1, help="of what is made at random")
    parser.add_argument("--part", action="append", choices=list(PARTS), help="both of them by default")
    parser.add_argument("--role", action="append", choices=list(SECRETS), help="all of them by default")
    parser.add_argument("options", nargs="*", help="options of schemathesis")
    given = parser.parse_args()
    options = ["--checks", "all", "--exclude-checks", EXCLUDED, "-n", str(given.examples), *given.options]
    options += ["--request-timeout", "20", "--no-color", "--continue-on-failure", "--seed", str(given.seed)]
    failed = []
    for role in given.role or SECRETS:
        for part in given.part or PARTS:
            print(f"== {role}, {part}", flush=True)
            phases, environment = PARTS[part]
            if fuzz(given.schemathesis, role, [*phases, *options], environment):
                failed.append(f"{role}, {part}")
    print(f"failed: {'; '.join(failed)}" if failed else "nothing found")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
