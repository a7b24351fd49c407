"""50 people at the page of a service at once: how long each page takes beside `/healthz`, and who waits.

usage: python -m benchmarks.load_service [--minutes M] [--people N] [--topics N] [--nodes N] [--think S]
           [--database postgresql]

The server is a process of its own, with a tree of `--nodes` nodes and a database with `--topics` answered topics. The
people are another process: each has a session, asks a question, watches its events until the answer is there, reads
four other pages, and asks `/healthz`, again and again; administrators go through their pages meanwhile. Engines are a
third process, which answers after half a second with steps and sources: what is measured is the service, and not
searches, which would take the processors. One person asks 100 questions at once at the beginning.

It prints the 95th percentile of each page and its ratio to that of `/healthz` in the same run, which must be at most
2.5; how long those wait who ask one question at a time beside the one with a hundred; and the server's memory.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from contextlib import ExitStack, suppress
from pathlib import Path

from metatree_agents.service.accounts.users import Users
from metatree_agents.service.engine.client import ServiceClient
from metatree_memory_tools import build_tree

from benchmarks.service.caller import SECRETS
from benchmarks.service.databases import opened, postgres, schema_of
from benchmarks.service.people import WORDS, Person, Times
from benchmarks.service.processes import ROOT, ServerProcess, many_files

RATIO = 2.5
FLOOD = 100
STEPS = 6
WARM_S = 10.0
"""What the first seconds are left out for: indexes are read, and all begin at once."""
ANSWER_S = 0.5
SECTIONS = 69
ADMIN = ("Admin_1", SECRETS["admin"][1])


def make_sources(folder: Path, nodes: int) -> None:
    """Write Markdown files whose tree has so many nodes: each file has its sections."""
    maker = random.Random(1)
    for number in range(max(1, nodes // (SECTIONS + 1))):
        sections = (
            f"# {maker.choice(WORDS)} {maker.choice(WORDS)} {number}.{section}\n\n"
            + " ".join(maker.choices(WORDS, k=30))
            + ".\n"
            for section in range(SECTIONS)
        )
        (folder / f"page-{number:04}.md").write_text("\n".join(sections))


def name_of(number: int) -> str:
    """Return the name of a person."""
    return f"Person_{number}"


async def fill(where: str, people: int, topics: int, nodes: list[str]) -> None:
    """Add people and their topics, two answered questions in each, with sources and steps."""
    database = opened(where)
    await database.start()
    users, now = Users(database), time.time()
    for number in range(people):
        await users.add(name_of(number), "user", secret=f"{number:024}")
    await users.add(ADMIN[0], "admin", secret=ADMIN[1])
    maker = random.Random(2)
    for start in range(0, topics, 500):
        async with database.transaction() as do:
            for number in range(start, min(topics, start + 500)):
                owner, topic, at = name_of(number % people), f"old-{number}", now - topics + number
                await do.execute(
                    "INSERT INTO topic(id, owner, asker, made_at, last_seq) VALUES (?, ?, ?, ?, 2)",
                    topic,
                    owner,
                    owner,
                    at,
                )
                for seq in (1, 2):
                    node = maker.choice(nodes)
                    text = " ".join(maker.choices(WORDS, k=12))
                    source = {
                        "Node": node,
                        "Title": node,
                        "Quote": text,
                        "Path": node.partition("#")[0],
                        "Number": 1,
                    }
                    await do.execute(
                        "INSERT INTO query(topic, seq, text, asked_by, model, modifiers, at, status, attempts, answer,"
                        " think, sources, answered_at, ending)"
                        " VALUES (?, ?, ?, ?, 'default', '{}', ?, 'Done', 1, ?, ?, ?, ?, ?)",
                        *(
                            topic,
                            seq,
                            f"{text}?",
                            owner,
                            at,
                            json.dumps([f"{text}."]),
                            json.dumps([text] * STEPS),
                        ),
                        *(
                            json.dumps([source]),
                            at,
                            json.dumps({"end": "answered", "open": [], "closest": []}),
                        ),
                    )
                    for step in steps_of(nodes, maker):
                        await do.execute(
                            "INSERT INTO progress(topic, seq, data) VALUES (?, ?, ?)",
                            topic,
                            seq,
                            json.dumps(step),
                        )
                if number % 20 == 0:
                    await do.execute(
                        "INSERT INTO recommendation(topic, on_behalf_of, query, fragment, comment, type, at)"
                        " VALUES (?, ?, 'q', 'f', '', 'Promote Answer', ?)",
                        *(topic, owner, at),
                    )
    await database.close()


def steps_of(nodes: list[str], maker: random.Random) -> list[dict[str, object]]:
    """Return the steps of a search as an engine tells them."""
    steps: list[dict[str, object]] = []
    for number in range(STEPS):
        node = maker.choice(nodes)
        steps.append(
            {"Event": "route", "Node": ".", "Title": "root", "Choice": node, "Chosen": node, "Offered": 40, "Frame": 0,
             "Reason": "fits best", "Text": f"chose {node}", "Step": number, "Above": [],
             "RuledOut": [{"Node": each, "Title": each, "Reason": "fits less"} for each in maker.sample(nodes, 5)]}
        )  # fmt: skip
    return steps


async def engines(url: str, nodes: list[str], number: int) -> None:
    """Answer whatever is asked until this process is ended."""
    maker = random.Random(3)

    async def work() -> None:
        async with ServiceClient(url, *SECRETS["engine"]) as client:
            while True:
                batch = await client.call("GET", "get-new-queries")
                for item in batch["Queries"] or ():
                    ((seq, text),) = item.items()
                    about = {"Topic": batch["Topic"], "Seq": int(seq)}
                    for step in steps_of(nodes, maker):
                        await asyncio.sleep(ANSWER_S / STEPS)
                        await client.call("POST", "give-progress", body={**about, "Steps": [step]})
                    source = {"Node": maker.choice(nodes), "Title": "A page", "Quote": "parcel", "Number": 1}
                    answer = {
                        **about,
                        "Query": text,
                        "Answer": ["By a scale."],
                        "Sources": [source],
                        "End": "answered",
                    }
                    with suppress(Exception):
                        await client.call("POST", "give-new-answer", body=answer)

    await asyncio.gather(*(work() for _ in range(number)))


async def load(
    server: ServerProcess, url: str, given: argparse.Namespace, nodes: list[str]
) -> tuple[Times, dict[str, float], list[tuple[float, float]]]:
    """Have all of them use the page; return the seconds of each page, waits in words, and (minute, MB)."""
    times: Times = defaultdict(list)
    topics = {
        number: [f"old-{each}" for each in range(number, given.topics, given.people)] or ["old-0"]
        for number in range(given.people)
    }
    people = [
        Person(url, name_of(n), f"{n:024}", old=topics[n], nodes=nodes, think_s=given.think, times=times)
        for n in range(given.people)
    ]
    admin = Person(url, *ADMIN, old=[], nodes=nodes, think_s=given.think, times=times)
    for each in (*people, admin):
        await each.enter()
    times.clear()
    memory: list[tuple[float, float]] = []
    began = time.monotonic()
    until = began + WARM_S + 60 * given.minutes

    async def weigh() -> None:
        while True:
            memory.append(((time.monotonic() - began) / 60, resident_mb(server.process.pid)))
            await asyncio.sleep(10)

    async def warmed() -> None:
        await asyncio.sleep(WARM_S)
        times.clear()

    weighing, warming = asyncio.ensure_future(weigh()), asyncio.ensure_future(warmed())
    await people[0].flood(FLOOD)
    unserved = asyncio.ensure_future(open_of_flood(url, people))
    await asyncio.gather(*(each.use(until) for each in people[1:]), admin.administer(until))
    flooded = await unserved
    weighing.cancel()
    await warming
    waited = sorted(wait for each in people[1:] for wait in each.waited)
    for each in (*people, admin):
        await each.close()
    waits = {"asked": float(len(waited)), "median": percentile(waited, 50), "p95": percentile(waited, 95)}
    return (
        times,
        {**waits, f"of the {FLOOD} of one, open when all others had a first answer": flooded},
        memory,
    )


async def open_of_flood(url: str, people: list[Person]) -> float:
    """Return how many questions of the flood are open when everybody else has a first answer."""
    while not all(each.waited for each in people[1:]):
        await asyncio.sleep(0.05)
    async with ServiceClient(url, *ADMIN) as client:
        overview = await client.call("GET", "admin/overview")
    return float(sum(each["Owner"] == name_of(0) for each in overview["Queries"]))


def resident_mb(pid: int) -> float:
    """Return the memory of a process."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


def percentile(times: list[float], at: int) -> float:
    """Return a percentile, by the nearest rank."""
    ranked = sorted(times)
    return ranked[min(len(ranked) - 1, len(ranked) * at // 100)] if ranked else 0.0


def report(times: Times, waits: dict[str, float], memory: list[tuple[float, float]]) -> bool:
    """Print the tables; say whether all holds."""
    base = percentile(times["/healthz"], 95)
    print(
        f"\n| page | requests | median | p95 | times `/healthz` | at most {RATIO:g} |\n|---|---:|---:|---:|---:|---|"
    )
    held = True
    for name, its in sorted(times.items(), key=lambda each: -percentile(each[1], 95)):
        p95 = percentile(its, 95)
        good = p95 <= RATIO * base
        held &= good
        median = 1000 * percentile(its, 50)
        print(
            f"| {name} | {len(its):,} | {median:.0f} ms | {1000 * p95:.0f} ms | {p95 / base:.2f} |"
            f" {'holds' if good else 'DOES NOT HOLD'} |"
        )
    print("\n" + "; ".join(f"{name}: {value:,.2f}" for name, value in waits.items()))
    settled = [each for each in memory if each[0] >= memory[-1][0] / 5] or memory
    print(
        "memory: "
        + ", ".join(f"{at:.1f} min {mb:.0f} MB" for at, mb in memory[:: max(1, len(memory) // 12)])
        + f"; after a fifth of the time {settled[0][1]:.0f} MB, at the end {settled[-1][1]:.0f} MB"
    )
    return held


def main() -> int:
    """Run it; the code is 1 when a page takes too long."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--people", type=int, default=50)
    parser.add_argument("--topics", type=int, default=10_000)
    parser.add_argument("--nodes", type=int, default=49_000)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--think", type=float, default=0.0, help="seconds that a person reads a page")
    parser.add_argument("--database", default="", help="`postgresql` starts one; else an address, or a file")
    parser.add_argument("--answering", type=int, default=50, help="questions that engines answer at a time")
    parser.add_argument("--engines", metavar="URL", help=argparse.SUPPRESS)
    parser.add_argument("--tree", type=Path, help="keep the tree there, and take it from there")
    given = parser.parse_args()
    many_files()
    if given.engines:
        asyncio.run(engines(given.engines, ids_of(given.tree), given.answering))
        return 0
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        place = given.tree or folder / "tree"
        if not place.exists():
            source = folder / "source"
            source.mkdir()
            make_sources(source, given.nodes)
            build_tree(source, out=place).close()
        nodes = ids_of(place)
        where = given.database or str(folder / "service.db")
        if where == "postgresql":
            where = schema_of(stack.enter_context(postgres()))
        asyncio.run(fill(where, given.people, given.topics, nodes))
        print(
            f"{len(nodes):,} nodes, {given.topics:,} topics, {given.people} people, think {given.think:g} s",
            flush=True,
        )
        server = ServerProcess(where, {}, tree=place)
        stack.callback(server.stop)
        url = f"http://127.0.0.1:{server.port}"
        command = [sys.executable, "-m", "benchmarks.load_service", "--engines", url, "--tree", str(place)]
        command += ["--answering", str(given.answering)]
        answering = subprocess.Popen(command, cwd=ROOT)
        stack.callback(answering.wait)
        stack.callback(answering.terminate)
        held = report(*asyncio.run(load(server, url, given, nodes)))
    return 0 if held else 1


def ids_of(place: Path) -> list[str]:
    """Return the ids of a tree."""
    from metatree import Tree

    with Tree.open(place) as tree:
        return [node.id for _, node in tree.walk()][1:]


if __name__ == "__main__":
    sys.exit(main())
