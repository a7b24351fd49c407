"""What a database in a prepared folder may cost."""

from __future__ import annotations

import resource
import sqlite3
from contextlib import closing, nullcontext
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest
from metatree_memory_tools import build_tree
from metatree_memory_tools.databases import _sqlite, _sqlite_apart, file_type
from metatree_memory_tools.databases.file_type import SQLiteFile
from metatree_routers import TextEvidence

from metatree.errors import UserError
from metatree.node import Source
from metatree.trees.source_types import SourceFile
from tests.integration.trust.prepared import Clone

pytestmark = pytest.mark.integration


def views(folder: Path, *definitions: str) -> None:
    with closing(sqlite3.connect(folder / "shop.db")) as made:
        for number, definition in enumerate(definitions):
            made.execute(f"CREATE VIEW v{number} AS {definition}")
        made.commit()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the process that reads databases is asked for."""
    methods: list[str] = []
    ask = _sqlite_apart.SQLiteApart._ask

    def counted(self: Any, method: str, *rest: Any, **more: Any) -> Any:
        methods.append(method)
        return ask(self, method, *rest, **more)

    monkeypatch.setattr(_sqlite_apart.SQLiteApart, "_ask", counted)
    return methods


def test_views_without_an_end_hold_no_build_up(clone: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in (("QUERY_S", 0.2), ("_COUNT_S", 0.01), ("_TABLES_S", 0.3)):
        monkeypatch.setattr(_sqlite, name, seconds, raising=False)
    endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT 1 FROM c) SELECT x FROM c WHERE x = 2"
    views(clone.folder, *[endless] * 20)
    data = (clone.folder / "shop.db").read_bytes()
    with closing(_sqlite.SQLite.open_bytes(data, "shop.db")) as database:
        problems = {table.name: table.problem for table in database.tables()}
    assert "not read" in problems["v9"]


def test_a_row_of_many_large_values_is_not_read(clone: Clone) -> None:
    views(clone.folder, "SELECT " + ", ".join(f"zeroblob(4900000) AS c{n}" for n in range(100)))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with build_tree(clone.folder) as tree:
        assert "larger than" in str(tree.get("shop.db#v0").attributes["note"])
    # SQLite makes values without Python.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 250_000


def test_tables_of_a_file_are_read_once_for_all_their_columns(clone: Clone, asked: list[str]) -> None:
    views(clone.folder, *["SELECT 1 AS a, 2 AS b, 3 AS c"] * 10)
    with build_tree(clone.folder) as tree:
        TextEvidence(tree).refresh()
        before = asked.count("tables")
        assert 0 < before <= 4
        for _, node in tree.walk():
            if node.kind == "column":
                tree.content(node)
    assert asked.count("tables") <= before + 1


@pytest.mark.parametrize("damaged", [False, True])
def test_a_database_that_comes_again_is_not_read_again(clone: Clone, asked: list[str], damaged: bool) -> None:
    views(clone.folder, "SELECT 1 AS a")
    data = (clone.folder / "shop.db").read_bytes()[: 1_000 if damaged else None]
    kind = SQLiteFile()
    for _ in range(5):
        file = SourceFile("shop.db", bytes(bytearray(data)))
        with pytest.raises(UserError) if damaged else nullcontext():
            kind.content(file, Source(type="sqlite", path="shop.db", start_line=1))
    assert 0 < len(asked) <= 2, asked


def test_a_database_is_looked_at_once_for_all_of_its_columns(
    clone: Clone, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its digest took a tenth of a second for each of thousands of columns."""
    views(clone.folder, "SELECT " + ", ".join(f"1 AS c{number}" for number in range(50)))
    digests: list[int] = []

    def counted(data: bytes, **options: Any) -> Any:
        digests.append(len(data))
        return blake2b(data, **options)

    monkeypatch.setattr(file_type, "blake2b", counted)
    file, kind = SourceFile("shop.db", (clone.folder / "shop.db").read_bytes()), SQLiteFile()
    said = [kind.content(file, Source(type="sqlite", path="shop.db", start_line=n)) for n in range(1, 51)]
    assert [each.partition(":")[0] for each in said] == [f"v0.c{number}" for number in range(50)]
    assert digests.count(len(file.data)) == 1
