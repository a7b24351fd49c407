"""What a tree costs to publish and to copy, whole and after one file was changed: `python benchmarks/bench_copies.py`.

The tree is of Python packages that are installed for the tests; the service is in this process, its database a SQLite
file. CPU times are of the server and the engine together.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import httpx2
from metatree_agents.service._app import create_app
from metatree_agents.service.accounts.users import Users
from metatree_agents.service.database.database import SqliteDatabase
from metatree_agents.service.engine.client import ServiceClient
from metatree_agents.service.replication.copies import TreeCopy
from metatree_agents.service.replication.publisher import Published
from metatree_agents.service.replication.trees import Trees
from metatree_memory_tools import build_tree

PACKAGES = ("networkx", "mypy")


def sources(folder: Path) -> Path:
    """Copy the packages that the tree is of."""
    for name in PACKAGES:
        found = find_spec(name)
        if found is None or found.origin is None:
            sys.exit(f"{name} is not installed: run `make setup`")
        shutil.copytree(
            Path(found.origin).parent, folder / name, ignore=shutil.ignore_patterns("*.so", "*.pyc")
        )
    return folder


async def measure(folder: Path) -> None:
    source = sources(folder / "source")
    with build_tree(source) as tree:
        database = SqliteDatabase.open(folder / "service.db")
        secret = await Users(database).add("engine", "engine")
        said: list[str] = []
        client = ServiceClient(
            "http://inside", "engine", secret, transport=httpx2.ASGITransport(create_app(database))
        )
        async with client:
            published = Published(client, Trees(database), tree, copies=folder / "own", say=said.append)
            rows = []
            began = time.process_time()
            await published.start()
            rows.append(("publish the whole tree", time.process_time() - began, said[-1]))
            began = time.process_time()
            async with TreeCopy(client, folder / "copies", say=said.append) as copy:
                rows.append(("copy the whole tree", time.process_time() - began, said[-1]))
                file = source / "networkx" / "algorithms" / "clique.py"
                file.write_text(file.read_text() + "\n\ndef added():\n    'A function that was added.'\n")
                tree.refresh()
                began = time.process_time()
                await published.publish()
                rows.append(("publish one changed file", time.process_time() - began, said[-1]))
                began = time.process_time()
                await copy.follow()
                rows.append(("copy one changed file", time.process_time() - began, said[-1]))
                began = time.process_time()
                for _ in range(100):
                    await copy.follow()
                rows.append(("ask what is current", (time.process_time() - began) / 100, ""))
                assert len(copy.tree) == len(tree)
        print(f"{len(tree):,} nodes, {tree.index.size_bytes() / 1e6:.0f} MB\n")
        print("| | CPU | |\n|---|---|---|")
        for what, seconds, note in rows:
            print(f"| {what} | {seconds:.3f} s | {note.partition(': ')[2]} |")
        await database.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="metatree-bench-") as made:
        asyncio.run(measure(Path(made)))
