"""How a file of an earlier schema is moved to the one that files begin with, once, in the transaction of its opener.

A table that is defined as it is now stays; any other is made anew and takes its rows over, by the names of their
columns. So it does not matter which of the earlier versions a file is of.

Lost: an older `index.db` thrown away and built again from its sources (a minute of work for a large tree, and none of
its rows means anything else now).
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from typing import Final, Protocol

from metatree.storage.schema import FILES, SQLITE, Rows

FIRST: Final = replace(FILES, changes=())
"""What later changes are made to afterwards, as in any file."""
RENAMED: Final = {("run", "flags"): "cancel"}
"""What a column was called in the older tables."""


class _File(Protocol):
    """What is needed of a store."""

    def rows(self, sql: str) -> Rows: ...
    def execute(self, sql: str) -> int: ...


def move_older(store: _File) -> None:
    """Bring the tables of an older store to the schema that files begin with."""
    with closing(sqlite3.connect(":memory:")) as fresh:
        for statement in FIRST.statements(None, SQLITE):
            fresh.execute(statement)
        query = "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE sql IS NOT NULL"
        wanted = fresh.execute(query).fetchall()
        columns = {
            table: _columns(fresh.execute(_COLUMNS.format(table)).fetchall()) for table in FIRST.tables
        }
    have = {name: (table, sql) for _, name, table, sql in store.rows(query)}
    unchanged = {
        name for kind, name, _, sql in wanted if kind == "table" and have.get(name, ("", ""))[1] == sql
    }
    for name, (table, _) in have.items():
        if (
            table in FIRST.tables - unchanged
        ):  # first of all: an index keeps its name when its table is renamed
            store.execute(
                f"ALTER TABLE {name} RENAME TO older_{name}" if name == table else f"DROP INDEX {name}"
            )
    for kind, name, table, sql in wanted:
        if table not in unchanged or name not in have:
            store.execute(sql)
        if kind == "table" and name in have and name not in unchanged:
            older = _columns(store.rows(_COLUMNS.format(f"older_{name}")))
            pairs = [(column, RENAMED.get((name, column), column)) for column in columns[name]]
            known = [(column, was) for column, was in pairs if was in older]
            store.execute(
                f"INSERT INTO {name}({', '.join(column for column, _ in known)})"
                f" SELECT {', '.join(was for _, was in known)} FROM older_{name}"
            )
            store.execute(f"DROP TABLE older_{name}")


_COLUMNS: Final = "SELECT name FROM pragma_table_info('{}')"


def _columns(rows: Rows) -> list[str]:
    return [name for (name,) in rows]
