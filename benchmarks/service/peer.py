"""No-op jobs per second on the same PostgreSQL: ours, over HTTP with signed requests and without a server between, and
procrastinate's, whose workers have none."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

from metatree_agents.service.queue.queue import Queue

from benchmarks.service.caller import Caller
from benchmarks.service.costs import add, claim_and_answer
from benchmarks.service.databases import opened, schema_of
from benchmarks.service.processes import ROOT, servers

SETTINGS = {
    "claim_timeout_s": 0.0,
    "answer_timeout_s": 0.0,
}  # waiting for more at the end is no part of the work


def ours(address: str, jobs: int, engines: int) -> float:
    """Return how many queries a second are claimed and answered, each in a topic of its own, by processes that do
    nothing else; they are asked before.
    """
    database = schema_of(address)
    with servers(database, SETTINGS) as (server,):
        frontend = Caller(server.port, "frontend")
        for each in range(jobs):
            add(frontend, "T", each)
        frontend.close()
        running = [
            subprocess.Popen(
                [sys.executable, "-m", "benchmarks.service.peer", str(server.port)],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for _ in range(engines)
        ]
        for process in running:  # procrastinate's worker has been imported, too
            assert process.stdout is not None and process.stdout.readline() == "ready\n"
        began = time.monotonic()
        done = [int(said) for said in _all_at_once(running)]
        took = time.monotonic() - began
        assert sum(done) == jobs, done
    return jobs / took


def _all_at_once(running: Sequence[subprocess.Popen[str]]) -> list[str]:
    for process in running:
        assert process.stdin is not None
        process.stdin.close()
        process.stdin = None
    return [process.communicate()[0] for process in running]


def ours_without_a_server(address: str, jobs: int, engines: int) -> float:
    """Return how many queries a second engines in one process claim and answer on the database itself, as workers of
    procrastinate do: the queue alone.
    """

    async def run() -> float:
        database = opened(schema_of(address))
        await database.start()
        try:
            queue = Queue(database)
            for each in range(jobs):
                await queue.add(f"T{each}", "User_1", "Which day is it?")

            async def engine(name: str) -> int:
                done = 0
                while (claim := await queue.claim(name)) is not None:
                    for query in claim.queries:
                        await queue.answer(
                            claim.topic, query.text, seq=query.seq, answer=["Friday."], engine=name
                        )
                        done += 1
                return done

            began = time.monotonic()
            done = await asyncio.gather(*(engine(f"Inference_{each}") for each in range(engines)))
            took = time.monotonic() - began
            assert sum(done) == jobs, done
            return jobs / took
        finally:
            await database.close()

    return asyncio.run(run())


def answer_all(port: int) -> int:
    """Claim and answer until there is nothing; return how many."""
    caller, done = Caller(port, "engine"), 0
    while came := claim_and_answer(caller):
        done += came
    return done


def procrastinates(address: str, jobs: int, concurrency: int) -> float:
    """Return how many jobs a second one worker of procrastinate runs; they are deferred before."""
    import psycopg
    from procrastinate import App, PsycopgConnector
    from procrastinate.jobs import DeleteJobCondition
    from procrastinate.schema import SchemaManager

    logging.getLogger("procrastinate").setLevel(logging.ERROR)
    schema = schema_of(address).rpartition("=")[2]
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f'CREATE SCHEMA "{schema}"')
    connector = PsycopgConnector(conninfo=address, kwargs={"options": f"-c search_path={schema}"})
    app = App(connector=connector)

    @app.task(name="nothing")
    async def nothing(number: int) -> None:
        return None

    async def run() -> float:
        async with app.open_async():
            await SchemaManager(connector).apply_schema_async()
            given: list[dict[str, Any]] = [{"number": each} for each in range(jobs)]
            await nothing.batch_defer_async(*given)
            began = time.monotonic()
            await app.run_worker_async(
                wait=False,
                concurrency=concurrency,
                install_signal_handlers=False,
                delete_jobs=DeleteJobCondition.NEVER,
            )
            took = time.monotonic() - began
            done = await app.job_manager.list_jobs_async(status="succeeded")
            assert len(list(done)) == jobs
            return jobs / took

    return asyncio.run(run())


if __name__ == "__main__":
    print("ready", flush=True)
    sys.stdin.read()
    print(answer_all(int(sys.argv[1])))
