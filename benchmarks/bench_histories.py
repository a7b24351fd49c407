"""How fast conversations, git histories and databases are read, and turns noted.

usage: python benchmarks/bench_histories.py [REPOSITORY …]      (this repository when none is given)

Everything is made in a temporary folder; the repositories are only read.
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from metatree_memory_tools import build_tree
from metatree_memory_tools.conversations import ConversationLog, Turn
from metatree_memory_tools.git.log import history_stale, read_history
from metatree_memory_tools.node_ids import HISTORY_SUFFIX

from metatree.storage.store import Store
from metatree.trees.history import history_state
from metatree.trees.tree import Tree

TURNS = 10_000
SENTENCE = (
    "the red pot stands under the old tree behind a shed that nobody opened since the rain began in May"
)
WORDS = SENTENCE.split()


@contextmanager
def measured(what: str) -> Iterator[None]:
    """Print a row with the time that the block takes, and the CPU of it and what it started."""
    before, began = os.times(), time.perf_counter()
    yield
    after, seconds = os.times(), time.perf_counter() - began
    cpu = sum(after[:4]) - sum(before[:4])
    print(f"| {what} | {seconds:.2f} | {cpu:.2f} |", flush=True)


def text_of(number: int) -> str:
    """Return what is said in a turn: twelve words, others each time."""
    return " ".join(WORDS[(number * 7 + i * (1 + number % 5)) % len(WORDS)] for i in range(12))


def conversations(folder: Path) -> None:
    """Measure 10,000 turns in a file, noted together, and noted one by one."""
    source = folder / "chats"
    source.mkdir()
    messages = [{"role": ("user", "assistant")[n % 2], "content": text_of(n)} for n in range(TURNS)]
    (source / "chat.jsonl").write_text("\n".join(map(json.dumps, messages)))
    with measured(f"build a file of {TURNS:,} turns"):
        build_tree(source).close()
    with Tree.create(folder / "together.tree") as tree, measured(f"note {TURNS:,} turns together"):
        ConversationLog(tree, "agent").extend(Turn("Ann", text_of(number)) for number in range(TURNS))
    with Tree.create(folder / "single.tree") as tree, measured(f"note {TURNS:,} turns one by one"):
        log = ConversationLog(tree, "agent")
        for number in range(TURNS):
            log.say("Ann", text_of(number))


def database(folder: Path) -> None:
    """Measure a database of 200 tables with a million rows in all."""
    path = folder / "shop.db"
    with closing(sqlite3.connect(path)) as connection:
        for table in range(200):
            connection.execute(f"CREATE TABLE t{table}(id INTEGER PRIMARY KEY, name TEXT, total REAL)")
            rows = ((f"name {number}", number / 7) for number in range(5_000))
            connection.executemany(f"INSERT INTO t{table}(name, total) VALUES (?, ?)", rows)
        connection.commit()
    with measured("build a SQLite file of 200 tables and 1,000,000 rows"):
        build_tree(path, out=folder / "tree").close()


def history(repository: Path, folder: Path) -> None:
    """Measure the history of a repository: read at first, found unchanged, and with the nodes of files."""
    name = repository.resolve().name
    place = folder / f"{name}.db"
    with Store.open(place) as store:
        with measured(f"read the history of {name}"):
            note = read_history(repository, store)
        state = history_state(store)
        assert state is not None
        print(f"| … {state.commits:,} commits, {store.size_bytes() / 1e6:.0f} MB {note} | | |")
        with measured("find it unchanged"):
            history_stale(repository, store)
    build: Callable[..., Tree] = build_tree
    for wanted in (False, True):
        with measured(f"build {name} {'with' if wanted else 'without'} its history"):
            tree = build(repository, out=folder / f"{name}-{wanted}", history=wanted)
        with tree:
            if wanted:
                with measured("read the histories of all its files"):
                    ids = [node_id for node_id in tree.ids(["history"]) if node_id.endswith(HISTORY_SUFFIX)]
                    sum(len(text) for _, _, text in tree.texts(sorted(ids)))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description="Measure how conversations, histories and databases are read."
    )
    parser.add_argument(
        "repositories", nargs="*", type=Path, default=[Path(__file__).parents[1]], metavar="REPOSITORY"
    )
    given = parser.parse_args()
    print("| what | s | CPU s |\n|---|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        conversations(Path(folder))
        database(Path(folder))
        for repository in given.repositories:
            history(repository, Path(folder))


if __name__ == "__main__":
    main()
