"""SQLite files, opened so that SQLite itself refuses to change them, or to reach anything else.

Columns are hidden by its authorizer, under all names. PostgreSQL has no such means, so there results are masked by the
columns that the server says they come from, and expressions are refused by their words.
"""

from __future__ import annotations

import re
import sqlite3
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from metatree._util.secret_text import masked
from metatree.errors import UserError
from metatree_memory_tools.databases._model import (
    SAMPLE_ROWS,
    Column,
    ForeignKey,
    Rows,
    Table,
    is_secret_name,
    rows_without_secrets,
)

MAGIC = b"SQLite format 3\0"
QUERY_S = 5.0
_COUNT_S = 0.2
_TABLES_S = 20.0
"""How long all tables may be read together: a view may be made to take as long as it is let."""
_MAX_VALUE_BYTES = 5_000_000
_MAX_ROWS_BYTES = 20_000_000
_LEAST_BOUND = 100_000
"""More is not taken of the rows of a query: a view of thousands of columns can make gigabytes of one row."""
_LONGEST_NAME = 1_000
"""Of a table; each of its columns has it in its id, so a longer one is left out."""
_MOST_TABLES = 5_000
_MOST_COLUMNS = 30_000
"""Of all tables together; each is a node."""
_MOST_DEFINITIONS = 4_000_000
"""Characters; SQLite keeps some twenty times as much memory for them while a database is open."""
_STEPS = 5_000
_HITS = '"number of texts held"'
_UNWANTED = frozenset(
    {"load_extension", "readfile", "writefile", "edit", "lsdir", "fsdir", "zipfile", "fts3_tokenizer"}
)
_HIDDEN_SUFFIXES = (
    "_data",
    "_idx",
    "_content",
    "_docsize",
    "_config",
    "_segments",
    "_segdir",
    "_stat",
    "_node",
    "_parent",
    "_rowid",
)


def _check_definitions(connection: sqlite3.Connection, title: str) -> None:
    """Refuse a database whose tables alone take too much.

    Raises:
        UserError: it has too many, or too long definitions of them.
        sqlite3.Error: it is no database.
    """
    tables, chars = connection.execute(
        "SELECT sum(type IN ('table', 'view')), sum(length(sql)) FROM sqlite_master"
    ).fetchone()
    if (tables or 0) > _MOST_TABLES or (chars or 0) > _MOST_DEFINITIONS:
        raise UserError(
            f"{title!r} has {tables:,} tables and views, with definitions of {chars / 1e6:.1f} million characters:"
            f" at most {_MOST_TABLES:,} and {_MOST_DEFINITIONS / 1e6:g} million are read"
        )


class SQLite:
    """An open SQLite database.

    Three of SQLite's own means keep it as it is: it is opened for reading, `query_only` is set, and an authorizer
    refuses every action but reading (no ATTACH, no PRAGMA, no extension); columns that may hold secrets read as NULL.
    """

    product = "SQLite"
    has_schemas = False

    def __init__(self, connection: sqlite3.Connection, title: str, *, secrets: bool = False) -> None:
        """Use `open_file` or `open_bytes`."""
        self.title = title
        self._connection = connection
        self._secrets = secrets
        self._masked: set[str] = set()
        self._deadline = 0.0
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_VALUE_BYTES)
        connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        connection.execute("PRAGMA query_only=ON")
        with suppress(sqlite3.Error):
            connection.execute("PRAGMA trusted_schema=OFF")
        connection.set_progress_handler(self._is_late, _STEPS)
        self._wake_virtual_tables()

    def _wake_virtual_tables(self) -> None:
        # They declare what they look like when they are first used, as a CREATE that the authorizer would refuse.
        sql = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE 'CREATE VIRTUAL%'"
        for (name,) in self._run(sql):
            with suppress(sqlite3.Error):
                self._run(f"SELECT * FROM {_quoted(name)} LIMIT 0")

    @classmethod
    def open_file(cls, path: Path, *, secrets: bool = False) -> SQLite:
        """Open a file for reading.

        Raises:
            UserError: it is no SQLite database, or cannot be read.
        """
        connection = None
        try:
            wal = path.with_name(path.name + "-wal")
            # Without a log there is nobody to share it with, and SQLite would want to make one in its folder.
            quiet = not wal.exists() or wal.stat().st_size == 0
            if not quiet:
                _check_log(wal)
                _check_log(path.with_name(path.name + "-shm"))
            mode = "?mode=ro&immutable=1" if quiet else "?mode=ro"
            connection = _connect(path.absolute().as_uri() + mode)
            _check_definitions(connection, path.name)
            return cls(connection, path.name, secrets=secrets)
        except (sqlite3.Error, OSError, UserError) as exc:
            if connection is not None:
                connection.close()
            if isinstance(exc, UserError):
                raise
            raise UserError(
                f"{path.name!r} cannot be read as a SQLite database: {_without_names(exc, '')}"
            ) from exc

    @classmethod
    def open_bytes(cls, data: bytes, title: str, *, secrets: bool = False) -> SQLite:
        """Open a database that was read into memory; raises as `open_file`."""
        connection = _connect(":memory:")
        try:
            if data[18:20] == b"\2\2":
                # A file with a log beside it says so in two bytes, and in memory there can be none.
                data = data[:18] + b"\1\1" + data[20:]
            connection.deserialize(data)
            _check_definitions(connection, title)
            return cls(connection, title, secrets=secrets)
        except (sqlite3.Error, OverflowError, MemoryError, UserError) as exc:
            connection.close()
            if isinstance(exc, UserError):
                raise
            raise UserError(
                f"{title!r} cannot be read as a SQLite database: {_without_names(exc, '')}"
            ) from exc

    def close(self) -> None:
        self._connection.close()

    def tables(self) -> Iterator[Table]:
        names = self._run(
            "SELECT name, type, sql FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%'"
            f" ESCAPE '\\' AND length(name) <= {_LONGEST_NAME} ORDER BY name"
        )
        virtual = {name for name, _, sql in names if str(sql).lstrip()[:14].upper() == "CREATE VIRTUAL"}
        shadows = {f"{name}{end}" for name in virtual for end in _HIDDEN_SUFFIXES}
        end, left = time.monotonic() + _TABLES_S, _MOST_COLUMNS
        for name, kind, _ in names:
            if name in shadows:
                continue
            if left >= 0:
                table = self._table(name, kind, read=time.monotonic() < end)
                left -= len(table.columns)
            if left < 0:
                problem = f"the tables up to here have more than {_MOST_COLUMNS:,} columns"
                table = Table("", name, kind, (), (), (), "", None, True, "", problem)
            yield table

    def _table(self, name: str, kind: str, *, read: bool) -> Table:
        """Return a table; `read` says whether there is still time for its rows."""
        columns: tuple[Column, ...] = ()
        foreign: dict[int, list[tuple[str, str, str | None]]] = {}
        problem = ""
        try:
            columns = tuple(
                Column(row[1], self._type(row[1], row[2]), not row[3], row[4], key=bool(row[5]))
                for row in self._run(
                    'SELECT cid, name, type, "notnull", dflt_value, pk FROM pragma_table_xinfo(?) WHERE hidden <> 1',
                    name,
                )
            )
            for number, _, table, own, there in self._run(
                'SELECT id, seq, "table", "from", "to" FROM pragma_foreign_key_list(?) ORDER BY id, seq', name
            ):
                foreign.setdefault(number, []).append((own, table, there))
        except sqlite3.Error as exc:  # a view of a table that is gone
            problem = _without_names(exc, name)
        keys = tuple(
            ForeignKey(
                tuple(own for own, _, _ in parts),
                ("", parts[0][1]),
                tuple(there for _, _, there in parts if there is not None),
            )
            for _, parts in sorted(foreign.items())
        )
        if not (problem or read):
            problem = f"not read: the tables before it took {_TABLES_S:g} s"
        self._connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LEAST_BOUND)  # to count takes no long value
        count, exact = (None, True) if problem else self._count(name, kind)
        self._connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_VALUE_BYTES)
        sample, problem = ("", problem) if problem else self._sample_digest(name)
        return Table("", name, kind, columns, keys, (), "", count, exact, sample, problem)

    def _type(self, column: str, words: str) -> str:
        """Return the words of a type without a secret that begins with the name of its column.

        SQLite takes any: `machine m login ann password …` is a column `machine`.
        """
        before = f"{column} "
        return words if self._secrets else masked(before + words)[0][len(before) :]

    def _count(self, name: str, kind: str) -> tuple[int | None, bool]:
        try:
            return int(self._run(f"SELECT count(*) FROM {_quoted(name)}", seconds=_COUNT_S)[0][0]), True
        except sqlite3.Error:
            pass
        if kind == "table":
            with suppress(sqlite3.Error):
                highest = self._run(f"SELECT max(rowid) FROM {_quoted(name)}", seconds=_COUNT_S)[0][0]
                return (None if highest is None else int(highest)), False
        return None, True

    def _sample_digest(self, name: str) -> tuple[str, str]:
        try:
            return self.sample("", name).digest(), ""
        except UserError as exc:
            return "", str(exc)

    def sample(self, schema: str, table: str, limit: int = SAMPLE_ROWS) -> Rows:
        return self.query(f"SELECT * FROM {_quoted(table)}", limit)

    def find(self, schema: str, table: str, texts: Sequence[str], limit: int) -> Rows:
        names = [
            row[0] for row in self._run("SELECT name FROM pragma_table_xinfo(?) WHERE hidden <> 1", table)
        ]
        searched = [_quoted(name) for name in names if self._secrets or not is_secret_name(name)]
        if not searched:
            raise UserError(f"there is no table {table!r} with columns that are shown")
        row = " || char(10) || ".join(f"ifnull(CAST({name} AS TEXT), '')" for name in searched)
        matches = " + ".join(f"(instr(lower({row}), lower(?{n})) > 0)" for n in range(1, len(texts) + 1))
        columns = ", ".join(map(_quoted, names))
        return self.query(
            f"WITH held AS (SELECT {columns}, {matches} AS {_HITS} FROM {_quoted(table)})"
            f" SELECT {columns} FROM held WHERE {_HITS} > 0 AND {_HITS} = (SELECT max({_HITS}) FROM held)",
            limit,
            tuple(texts),
        )

    def query(self, sql: str, limit: int, parameters: tuple[str, ...] = ()) -> Rows:
        self._masked = set()
        self._deadline = time.monotonic() + QUERY_S
        self._connection.set_authorizer(self._allows)
        try:
            self._bound_values(sql, parameters)
            cursor = self._connection.execute(sql, parameters)
            if cursor.description is None:
                raise UserError("only statements that read are run: begin with SELECT, WITH or VALUES")
            columns = tuple(each[0] for each in cursor.description)
            rows, size = [], 0
            for row in islice(cursor, limit + 1):
                rows.append(row)
                size += sum(len(value) for value in row if isinstance(value, str | bytes))
                if size > _MAX_ROWS_BYTES:
                    raise UserError(f"the rows are larger than {_MAX_ROWS_BYTES / 1e6:g} MB: ask for less")
            cursor.close()
        except (sqlite3.Error, sqlite3.Warning, OverflowError, MemoryError, ValueError) as exc:
            raise UserError(_explained(exc, sql)) from exc
        finally:
            self._connection.set_authorizer(None)
            self._connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_VALUE_BYTES)
        masked = frozenset(number for number, name in enumerate(columns) if name.lower() in self._masked)
        shown = tuple(rows[:limit]) if self._secrets else rows_without_secrets(rows[:limit])
        return Rows(columns, shown, len(rows) > limit, masked, tuple(sorted(self._masked)))

    def _bound_values(self, sql: str, parameters: tuple[str, ...]) -> None:
        """Let one row be no larger than all rows may be, by its number of columns; SQLite makes the first at once."""
        # Also of no row SQLite makes the values that are the same in all, so it begins with the least bound.
        self._connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LEAST_BOUND)
        with suppress(sqlite3.Error):  # what cannot stand in brackets says what is wrong when it is run
            whole = sql.rstrip().rstrip(";")
            cursor = self._connection.execute(f"SELECT * FROM ({whole}\n) LIMIT 0", parameters)
            longest = _MAX_ROWS_BYTES // max(1, len(cursor.description))
            self._connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(longest, _MAX_VALUE_BYTES))

    def _allows(self, action: int, first: str | None, second: str | None, *_: str | None) -> int:
        if action == sqlite3.SQLITE_READ:
            if second and not self._secrets and is_secret_name(second):
                self._masked.add(second.lower())
                return sqlite3.SQLITE_IGNORE
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_FUNCTION:
            return sqlite3.SQLITE_DENY if (second or "").lower() in _UNWANTED else sqlite3.SQLITE_OK
        if action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE):
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_PRAGMA and first == "data_version" and second is None:
            return sqlite3.SQLITE_OK  # full-text tables ask for it themselves
        return sqlite3.SQLITE_DENY

    def _run(self, sql: str, *parameters: Any, seconds: float = QUERY_S) -> list[tuple[Any, ...]]:
        """Run a statement of our own."""
        self._deadline = time.monotonic() + seconds
        return self._connection.execute(sql, parameters).fetchall()

    def _is_late(self) -> int:
        return int(time.monotonic() > self._deadline)


def _check_log(log: Path) -> None:
    """Refuse a log that is a file elsewhere, too: SQLite writes into what lies beside a log when it reads one."""
    with suppress(FileNotFoundError):
        state = log.lstat()
        if not stat.S_ISREG(state.st_mode) or state.st_nlink > 1:
            raise UserError(f"{log.name!r} is a link, or no regular file: delete it, or copy the database")


def _connect(location: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        location, uri=location != ":memory:", timeout=2.0, isolation_level=None, check_same_thread=False
    )
    connection.text_factory = lambda data: data.decode("utf-8", "replace")
    return connection


_MALFORMED = "malformed database schema"
"""Behind it SQLite quotes the definition that it cannot read."""


def _without_names(exc: Exception, given: str) -> str:
    """Return what SQLite says, without a name that it found elsewhere than in what it was given.

    In the definition of a view it reads `glpat-…` as a difference, and says of what is behind `-` that it is no column.
    """
    text = str(exc)
    if text.startswith(_MALFORMED):
        return _MALFORMED
    if near := re.fullmatch(r'near "(.*)": (.*)', text, re.DOTALL):
        return text if near[1] in given else near[2]
    what, _, name = text.partition(": ")
    return text if "table" in what or name in given else what


def _explained(exc: Exception, given: str) -> str:
    text = _without_names(exc, given)
    if "interrupted" in text:
        return f"the query took longer than {QUERY_S:g} s: ask for less"
    if "not authorized" in text or "prohibited" in text:
        return f"refused: {text}; only statements that read the tables of this database are run"
    if "one statement" in text:
        return "refused: give one statement alone"
    if "too big" in text or "too long" in text:
        most = f"{_MAX_VALUE_BYTES / 1e6:g} MB, or a row of such values than {_MAX_ROWS_BYTES / 1e6:g} MB"
        return f"a value is larger than {most}: ask for less"
    return f"the query failed: {text}"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
