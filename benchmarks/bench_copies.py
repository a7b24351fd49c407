"""What a tree costs to publish and to copy, whole and after one file was changed: `python benchmarks/bench_copies.py`.

The tree is of Python packages that are installed for the tests, or of the folder that is named. The service is in
this process, its database a SQLite file, and is called over the loopback interface. CPU times are of the server and the
engine together.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from metatree_agents.listening import listen
from metatree_agents.service._app import create_app
from metatree_agents.service.accounts.users import Users
from metatree_agents.service.database.database import SqliteDatabase
from metatree_agents.service.engine.client import ServiceClient
from metatree_agents.service.replication.copies import TreeCopy
from metatree_agents.service.replication.publisher import Publication, Published
from metatree_agents.service.replication.trees import Trees
from metatree_agents.service.serving import server_of
from metatree_memory_tools import build_tree
from metatree_routers import TextEvidence

PACKAGES = ("networkx", "mypy")


def sources(folder: Path) -> Path:
    """Copy what the tree is of."""
    if sys.argv[1:]:
        return Path(shutil.copytree(sys.argv[1], folder, ignore=shutil.ignore_patterns(".git", ".metatree")))
    for name in PACKAGES:
        found = find_spec(name)
        if found is None or found.origin is None:
            sys.exit(f"{name} is not installed: run `make setup`")
        shutil.copytree(
            Path(found.origin).parent, folder / name, ignore=shutil.ignore_patterns("*.so", "*.pyc")
        )
    return folder


@contextmanager
def served(database: SqliteDatabase) -> Iterator[str]:
    """Serve in a thread while the block runs, and give the address."""
    listening = listen("127.0.0.1", 0)
    server = server_of(create_app(database))
    thread = threading.Thread(target=asyncio.run, args=(server.serve(sockets=[listening]),))
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


async def timed(what: str, done: Awaitable[object], said: list[str]) -> None:
    """Await something and print a row of the table."""
    cpu, wall = time.process_time(), time.perf_counter()
    await done
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    print(f"| {what} | {cpu:.3f} s | {wall:.3f} s | {said.pop().partition(': ')[2] if said else ''} |")


async def measure(folder: Path) -> None:
    source = sources(folder / "source")
    own = SqliteDatabase.open(folder / "service.db")
    secret = await Users(own).add("engine", "engine")
    said: list[str] = []
    with build_tree(source) as tree, served(SqliteDatabase.open(folder / "service.db")) as url:
        TextEvidence(tree).refresh()
        print(f"{len(tree):,} nodes, {tree.index.size_bytes() / 1e6:.0f} MB\n")
        print("| | CPU | time | |\n|---|---|---|---|")
        async with (
            ServiceClient(url, "engine", secret) as server,
            ServiceClient(url, "engine", secret) as engine,
        ):
            published = Published(
                server, Trees(own), Publication(tree, copies=folder / "own"), say=said.append
            )
            await timed("publish the whole tree", published.start(), said)
            copy = TreeCopy(engine, folder / "copies", say=said.append)
            await timed("copy the whole tree", copy.__aenter__(), said)
            file = max(source.rglob("*.py"), key=lambda each: each.stat().st_size)
            file.write_text(file.read_text() + "\n\ndef added():\n    'A function that was added.'\n")
            tree.refresh()
            await timed("publish one changed file", published.publish(), said)
            await timed("copy one changed file", copy.follow(), said)
            await timed("ask what is current", copy.follow(), said)
            assert len(copy.tree) == len(tree)
            await copy.__aexit__()
    await own.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="metatree-bench-") as made:
        asyncio.run(measure(Path(made)))
