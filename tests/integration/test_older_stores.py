"""Stores of earlier versions: moved to the tables of this one when they are opened, with all that is in them.

The files in `older_stores` were made by the code of their time, without the mark of their maker. Two of them have the
same number and other tables, since branches counted for themselves.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from metatree_memory_tools.build.build import build_tree

from metatree import Blackboard, Node, Tree, tool
from metatree.durable.sql_journal import SqlJournal
from metatree.errors import MetatreeError
from metatree.notes.notes import memories
from metatree.storage.schema import FILES
from metatree.storage.store import Store
from metatree.tools.call_log import CallLog, call_of

pytestmark = pytest.mark.integration
OLDER = sorted((Path(__file__).parent / "older_stores").glob("*.sql"))
LAST = OLDER[-1]


def made(script: Path, file: Path, change: str = "") -> Path:
    """Make the file that a script was taken from."""
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript(script.read_text() + change)
    return file


def definitions(store: Store) -> set[Any]:
    """Return all tables and indexes with their definitions."""
    return set(store.rows("SELECT type, name, tbl_name, sql FROM sqlite_master"))


def content(rows: Callable[[str], list[tuple[Any, ...]]]) -> dict[str, list[tuple[Any, ...]]]:
    """Return the rows of every table that has any, as far as its columns were there before."""
    found: dict[str, list[tuple[Any, ...]]] = {}
    for (table,) in rows("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"):
        columns = [name for (name,) in rows(f"SELECT name FROM pragma_table_info('{table}')")]
        shown = [f"{name} AS cancel" if name == "flags" else name for name in columns]
        later = {"refused", "ctime_ns", "wake_at"}
        known = ", ".join(
            sorted((name for name in shown if name not in later), key=lambda name: name.split()[-1])
        )
        kept = rows(f"SELECT {known} FROM {table} WHERE {columns[0]} NOT LIKE 'trust:%' ORDER BY 1, 2")
        found |= {table: kept} if kept else {}
    return found


@pytest.mark.parametrize("script", OLDER, ids=lambda script: script.stem)
def test_an_older_store_has_the_tables_of_a_new_one_and_all_its_rows(script: Path, tmp_path: Path) -> None:
    file = made(script, tmp_path / "memory.db")
    with closing(sqlite3.connect(file)) as connection:
        before = content(lambda sql: connection.execute(sql).fetchall())
    assert len(before) >= 3
    with Store.open(file, trust=True) as moved, Store.open(":memory:") as fresh:
        assert definitions(moved) == definitions(fresh)
        assert moved.rows("PRAGMA user_version") == [(FILES.version,)]
        assert content(moved.rows) == before
    changed = file.read_bytes()
    Store.open(file, trust=True).close()
    assert file.read_bytes() == changed, "it is moved once"


def test_a_memory_of_an_earlier_version_is_used_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("METATREE_TRUST", str(tmp_path))
    (tmp_path / "lamps.md").write_text("# Lamps\n\nA lamp in the hall has a bulb of nine watts.\n")
    build_tree(tmp_path)
    folder = tmp_path / ".metatree"
    for old in folder.glob("memory.db*"):
        old.unlink()
    made(LAST, folder / "memory.db")

    @tool(kind="exploratory")
    def once(number: int) -> str:
        """Do it."""
        return "x"

    with Tree.open(folder) as tree:
        assert [tree.content(note) for note in memories(tree)] == ["The hall lamp was replaced by Ann."]
        journal = SqlJournal(tree.memory)
        assert [record.kind for record in journal.read("r1")] == ["begin", "outcome"]
        assert journal.claimable("m") == ["r1"], "its lease has ended"
        token = journal.acquire("r1")
        (letter,) = journal.take("r1", token, 2)
        assert letter.body == {"name": "hello", "value": {"b": 2}}
        call = call_of(once, {"number": 1}, Node("n", "n"))
        result = CallLog(tree.memory).result_of(call, key="r1:1")
        assert result is not None and result.result == {"text": "done"}
        board = Blackboard(tree)
        assert [item.data["subtask"] for item in board.items(sections=["trajectories"])] == ["log in"]
        assert board.merge(Blackboard(tree, name="side")).added
        board.add_trajectories({"step": 3, "subtask": "log out"})


def test_an_older_store_that_cannot_be_moved_stays_as_it_was(tmp_path: Path) -> None:
    file = made(LAST, tmp_path / "memory.db", "ALTER TABLE item DROP COLUMN data;")
    before = file.read_bytes()
    with pytest.raises(MetatreeError, match=r"NOT NULL constraint failed: item\.data"):
        Store.open(file, trust=True)
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (7,)
        assert connection.execute("SELECT count(*) FROM item").fetchone() == (5,)
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    assert not any(name.startswith("older_") for name in tables)
    assert len(file.read_bytes()) == len(before)
