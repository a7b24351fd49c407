"""Kill a search at random moments, take it up again until it ends, and compare: `python tests/soak_kill.py --kills N`.

A child process searches a tree file with nested questions, tools that make nodes and a fallback, its journal in a
file. It writes a line for every effect that begins into a file of its own, so they are counted outside the process.
This process kills it with SIGKILL after a random time, looks into the journal, and starts the next one. It must hold:

- the end is that of a search that nobody disturbed: the same trace, answers and nodes;
- no effect begins again whose outcome is in the journal;
- what begins again was in flight: at most as many effects as run beside each other, under the same keys.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import sys
import tempfile
import time
from dataclasses import asdict
from itertools import zip_longest
from pathlib import Path
from typing import Any

from metatree import (
    Answer,
    FallbackRequest,
    FallbackResult,
    Node,
    Reading,
    ReadRequest,
    RouteDecision,
    RouteRequest,
    SearchResult,
    Tree,
    resume,
    search,
    tool,
)
from metatree.durable import Attempt, Effect, Handler, Runner
from metatree.durable.sql_journal import SqlJournal
from metatree.errors import UnknownRun, UserError
from metatree.searches import _run as run
from metatree.storage.store import Store
from metatree.testing.parts import PlainComposer, PlainDescriber, tree_of

RUN = "r"
QUESTIONS = ["What is alpha?", "What is bravo?", "What is charlie?"]
NAP_S = 0.001
_MINUTE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC")


def counted(kind: str, handler: Handler, log: int) -> Handler:
    """Return a handler that writes down when an effect begins."""

    def begin(effect: Effect, attempt: Attempt) -> Any:
        os.write(log, f"{attempt.key} {kind}\n".encode())
        return handler(effect, attempt)

    return begin


def count_effects(log: int) -> None:
    """Let every run of this process write down which effects it begins."""

    class Counting(Runner[Any]):
        def __init__(self, *args: Any, handlers: Any, **options: Any) -> None:
            wrapped = {kind: counted(kind, handler, log) for kind, handler in handlers.items()}
            super().__init__(*args, handlers=wrapped, **options)

    vars(run)["Runner"] = Counting


async def nap() -> None:
    import asyncio

    await asyncio.sleep(NAP_S)


class Part:
    """A router, reader and tool caller whose answers depend on the request alone."""

    async def route(self, request: RouteRequest) -> RouteDecision:
        await nap()
        ids = [option.id for option in request.options]
        rng = random.Random(f"{ids}{request.questions}")
        unviable = {rng.choice(ids): "looks wrong"} if rng.random() < 0.3 else {}
        return RouteDecision(rng.choice(ids), unviable, "by lot")

    async def read(self, request: ReadRequest) -> Reading:
        await nap()
        answers, wanted = [], []
        for question in request.questions:
            name = question.removeprefix("What is ").removesuffix("?")
            if request.node.title == f"page on {name}" or f"{name} is" in request.content:
                answers.append(Answer(question, f"{name} is here", request.content))
            elif f"{name} needs" in request.content and f"{name} deeper is here" in request.context:
                answers.append(Answer(question, f"{name} by way of another", request.content))
            elif f"{name} needs" in request.content:
                wanted.append(f"What is {name} deeper?")
        return Reading(
            tuple(answers), tuple(wanted), notes="" if answers or wanted else f"{request.node.id} is dull"
        )

    async def fill(self, request: Any) -> dict[str, Any]:
        await nap()
        return {}


@tool(kind="exploratory", kinds=["note"])
def look(node: Node) -> str:
    """Say nothing much."""
    time.sleep(NAP_S)
    return f"nothing but {node.id}"


@tool(kind="interactive", kinds=["page"])
def fetch(node: Node) -> Node:
    """Fetch what a page points to."""
    time.sleep(NAP_S)
    return Node("", "page on bravo" if node.id == "w2" else "", content=f"below {node.id}", kind="note")


def web(request: FallbackRequest) -> FallbackResult:
    return FallbackResult(nodes=[Node("web", "page on charlie", "Found elsewhere", "from the web", "note")])


def make_tree(path: Path) -> None:
    with Tree.create(path) as tree:
        tree_of(
            {
                "x": {"x1": "text", "x2": "alpha needs more", "x3": "text"},
                "y": {"y1": "text", "y2": {"y2a": "text", "y2b": "What is deeper: alpha deeper is 7"}},
                "z": ("own text", {"z1": "text"}),
            },
            tree,
        )
        for name in ("w1", "w2"):
            tree.add(Node(name, name, "A page", "links", "page"))


def parts() -> dict[str, Any]:
    part = Part()
    return {
        "router": part,
        "reader": part,
        "tool_caller": part,
        "composer": PlainComposer(),
        "describer": PlainDescriber(),
        "evidence": False,
        "tools": [look, fetch],
        "fallbacks": [web],
    }


def carry_on(folder: Path, concurrency: int) -> SearchResult:
    """Begin the run, or take it up where it is."""
    journal = folder / "runs.db"
    with Tree.open(folder / "tree.db") as tree:
        try:
            return resume(RUN, journal=journal, tree=tree, **parts())
        except (UnknownRun, UserError) as exc:
            if not isinstance(exc, UnknownRun) and "no file" not in str(exc):
                raise
        return search(QUESTIONS, tree=tree, journal=journal, run_id=RUN, concurrency=concurrency, **parts())


def essence(result: SearchResult, folder: Path, concurrency: int) -> dict[str, Any]:
    """Return what must be the same, disturbed or not; effects beside each other may come in any order.

    When a call was made that is made use of again stands in the trace by the minute, which is another one each time.
    """
    with Tree.open(folder / "tree.db") as tree:
        nodes = sorted(f"{node.id} {node.title}" for _, node in tree.walk())
    told: dict[str, Any] = {
        "ended": result.ended,
        "answers": [[a.question, a.answer] for a in result.answers],
        "open": list(result.open_questions),
    }
    if concurrency == 1:
        told["trace"] = [asdict(entry) for entry in result.trace]
        told["nodes"] = nodes
    loaded: dict[str, Any] = json.loads(_MINUTE.sub("a minute", json.dumps(told)))
    return loaded


def child(folder: Path, concurrency: int) -> None:
    """Work until the run has ended, and leave what came of it."""
    count_effects(os.open(folder / "effects.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND))
    result = carry_on(folder, concurrency)
    text = json.dumps(essence(result, folder, concurrency))
    (folder / "result.tmp").write_text(text)
    (folder / "result.tmp").rename(folder / "result.json")


def start(folder: Path, concurrency: int) -> int:
    """Start a child; fork, so that nothing needs to be imported again."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            child(folder, concurrency)
            status = 0
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            os._exit(status)
    return pid


def journaled(folder: Path) -> set[str]:
    """Return the keys of the effects whose outcome is in the journal."""
    if not (folder / "runs.db").exists():
        return set()
    with Store.open(folder / "runs.db", create=False) as store:
        try:
            records = SqlJournal(store).read(RUN)
        except UnknownRun:
            return set()
    return {f"{RUN}:{record.effect}" for record in records if record.kind == "outcome"}


def begun(folder: Path, since: int) -> tuple[list[str], int]:
    """Return the keys of the effects that began after a place in the file, and where it ends now."""
    log = folder / "effects.log"
    if not log.exists():
        return [], 0
    text = log.read_bytes()
    return [line.split()[0].decode() for line in text[since:].splitlines()], len(text)


def one_run(
    rng: random.Random, most_kills: int, concurrency: int, patience_s: float
) -> tuple[int, dict[str, Any]]:
    """Kill and take up one run until it has ended; return how often it was killed, and what came of it."""
    kills = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_tree(folder / "tree.db")
        place = 0
        in_flight: set[str] = set()
        ever: set[str] = set()
        while not (folder / "result.json").exists():
            known = journaled(folder)
            pid = start(folder, concurrency)
            killed = False
            if kills < most_kills:
                time.sleep(rng.uniform(0, patience_s))
                os.kill(pid, signal.SIGKILL)
                killed = True
            _, status = os.waitpid(pid, 0)
            if not killed and status != 0:
                raise AssertionError(f"the child failed with {status}")
            kills += killed and os.WIFSIGNALED(status)
            keys, place = begun(folder, place)
            assert not known & set(keys), f"begun again though their outcome is known: {known & set(keys)}"
            repeated = ever & set(keys)
            assert repeated <= in_flight, f"begun again though not in flight: {repeated - in_flight}"
            assert len(repeated) <= concurrency, f"{len(repeated)} begun again"
            ever |= set(keys)
            in_flight = ever - journaled(folder)
        return kills, json.loads((folder / "result.json").read_text())


def difference(found: dict[str, Any], wanted: dict[str, Any]) -> str:
    """Return where two ends differ: the first entries of each list that are not the same."""
    lines = []
    for key in wanted:
        pairs = (
            zip_longest(found[key], wanted[key])
            if isinstance(wanted[key], list)
            else [(found[key], wanted[key])]
        )
        lines += next(([f"{key}: {one}", f"not {other}"] for one, other in pairs if one != other), [])
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description="Kill searches at random moments and take them up again")
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=None)
    arguments = parser.parse_args()
    seed = arguments.seed if arguments.seed is not None else random.randrange(10**6)
    print(f"seed {seed}", flush=True)
    rng = random.Random(seed)
    assert look.spec and fetch.spec  # loads pydantic here, once, and not in each child
    undisturbed = {}
    for concurrency in (1, 3):
        began = time.monotonic()
        undisturbed[concurrency] = one_run(rng, 0, concurrency, 0.0)[1]
        took_s = time.monotonic() - began
        assert undisturbed[concurrency]["ended"] == "answered", undisturbed[concurrency]["open"]
        print(f"undisturbed, {concurrency} beside each other: {took_s:.2f} s", flush=True)
    kills = runs = 0
    while kills < arguments.kills:
        concurrency = rng.choice((1, 1, 3))
        killed, found = one_run(rng, arguments.kills - kills, concurrency, took_s / 3)
        assert found == undisturbed[concurrency], (
            f"another end after {killed} kills, {concurrency} beside each other (seed {seed}):\n"
            + difference(found, undisturbed[concurrency])
        )
        kills += killed
        runs += 1
        if runs % 20 == 0:
            print(f"{kills} kills in {runs} runs", flush=True)
    print(f"{kills} kills in {runs} runs: the same end each time, nothing done twice")
    return 0


if __name__ == "__main__":
    sys.exit(main())
