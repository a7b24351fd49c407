"""SQLite databases in a process of its own: a view may be made to take gigabytes before SQLite asks anybody."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

from metatree.errors import UserError
from metatree_memory_tools.databases._delimited import table_in
from metatree_memory_tools.databases._model import SAMPLE_ROWS, Column, ForeignKey, Rows, Table
from metatree_memory_tools.databases._sqlite import SQLite
from metatree_memory_tools.reading.own_process import allowance, end_reader, read_apart

_LIMIT_S: Final = 15.0
_TABLES_S: Final = 30.0
_TIMES: Final = 20
"""How many times the size of its file a table between commas may take of memory while it is read."""
_MISSING: Final = "missing"


class SQLiteApart:
    """A SQLite database that can only be read, as `SQLite` is, in the process that reads what strangers made."""

    product = SQLite.product
    has_schemas = SQLite.has_schemas

    def __init__(self, kind: str, place: str, data: bytes, *, secrets: bool) -> None:
        """Use `open_file`, `open_bytes` or `open_rows`."""
        self.title = Path(place).name
        self._data = data
        digest = blake2b(data, digest_size=16).hexdigest()
        self._opened = (kind, place, secrets, digest)
        try:
            self._ask("open")
        except UserError:
            end_reader()  # it keeps the memory that it took
            raise

    @classmethod
    def open_file(cls, path: Path, *, secrets: bool = False) -> SQLiteApart:
        """Open a file for reading.

        Raises:
            UserError: it is no SQLite database, or cannot be read.
        """
        return cls("file", str(path.absolute()), b"", secrets=secrets)

    @classmethod
    def open_bytes(cls, data: bytes, title: str, *, secrets: bool = False) -> SQLiteApart:
        """Open a database that was read into memory; raises as `open_file`."""
        return cls("bytes", title, data, secrets=secrets)

    @classmethod
    def open_rows(cls, path: str, text: str, *, secrets: bool = False) -> SQLiteApart:
        """Open the table in a file of rows between commas or tabs.

        Raises:
            ValueError: it is no table.
            UserError: it takes too much to read it.
        """
        return cls("rows", path, text.encode("utf-8", "surrogatepass"), secrets=secrets)

    def close(self) -> None:
        """Do nothing: what the process has open it closes by itself."""

    def tables(self) -> Iterator[Table]:
        yield from map(_table, self._ask("tables", limit_s=_TABLES_S))

    def sample(self, schema: str, table: str, limit: int = SAMPLE_ROWS) -> Rows:
        return _rows(self._ask("sample", schema, table, limit))

    def find(self, schema: str, table: str, texts: Sequence[str], limit: int) -> Rows:
        return _rows(self._ask("find", schema, table, list(texts), limit))

    def query(self, sql: str, limit: int) -> Rows:
        return _rows(self._ask("query", sql, limit))

    def _ask(self, method: str, *arguments: Any, limit_s: float = _LIMIT_S) -> Any:
        answer: Any = _MISSING
        for data in (b"", self._data):  # as long as it is the one that was asked before, its bytes are there
            if answer == _MISSING:
                answer = read_apart(
                    answered,
                    data,
                    *self._opened,
                    method,
                    list(arguments),
                    limit_s=limit_s,
                    memory_bytes=allowance(self._data, _TIMES if self._opened[0] == "rows" else 1),
                )
        return answer


_latest: dict[tuple[Any, ...], SQLite] = {}
"""In that process: the database that was asked last, by what it was opened with."""


def answered(
    data: bytes, kind: str, place: str, secrets: bool, digest: str, method: str, arguments: list[Any]
) -> Any:
    """Return as JSON what a database gives; for the process that reads what strangers made."""
    if kind == "file":  # others may write it
        with closing(SQLite.open_file(Path(place), secrets=secrets)) as database:
            return _METHODS[method](database, *arguments)
    key = (kind, place, secrets, digest)
    if key not in _latest:
        if not data:
            return _MISSING
        for other in _latest.values():
            other.close()
        _latest.clear()
        title = Path(place).name
        if kind == "rows":
            data = table_in(place, data.decode("utf-8", "surrogatepass")).database
        _latest[key] = SQLite.open_bytes(data, title, secrets=secrets)
    return _METHODS[method](_latest[key], *arguments)


def table_between(data: bytes, path: str) -> Any:
    """Return as JSON the table of a text of rows, how many they are, and what is wrong; for that process, too."""
    read = table_in(path, data.decode("utf-8", "surrogatepass"))
    with closing(SQLite.open_bytes(read.database, Path(path).name)) as database:
        (table,) = database.tables()
    return [asdict(table), read.rows, read.problem]


def read_table(path: str, text: str, limit_s: float) -> tuple[Table, int, str]:
    """Return the table in a text of rows, how many they are, and what is wrong with some.

    Raises:
        ValueError: it is no table.
        UserError: it takes too much to read it.
    """
    data = text.encode("utf-8", "surrogatepass")
    table, rows, problem = read_apart(
        table_between, data, path, limit_s=limit_s, memory_bytes=allowance(data, _TIMES)
    )
    return _table(table), rows, problem


_METHODS: Final[Mapping[str, Callable[..., Any]]] = {
    "open": lambda database: None,
    "tables": lambda database: [asdict(table) for table in database.tables()],
    "sample": lambda database, *given: _rows_json(database.sample(*given)),
    "find": lambda database, *given: _rows_json(database.find(*given)),
    "query": lambda database, *given: _rows_json(database.query(*given)),
}


def _table(given: Mapping[str, Any]) -> Table:
    columns = tuple(Column(**column) for column in given["columns"])
    keys = tuple(
        ForeignKey(tuple(key["columns"]), (key["table"][0], key["table"][1]), tuple(key["targets"]))
        for key in given["foreign_keys"]
    )
    return Table(**{**given, "columns": columns, "foreign_keys": keys, "indexes": tuple(given["indexes"])})


def _rows_json(rows: Rows) -> Any:
    cells = [
        [{"base64": b64encode(cell).decode()} if isinstance(cell, bytes) else cell for cell in row]
        for row in rows.rows
    ]
    return [list(rows.columns), cells, rows.more, sorted(rows.masked), list(rows.hidden)]


def _rows(given: Sequence[Any]) -> Rows:
    columns, cells, more, masked, hidden = given
    rows = tuple(
        tuple(b64decode(cell["base64"]) if isinstance(cell, dict) else cell for cell in row) for row in cells
    )
    return Rows(tuple(columns), rows, more, frozenset(masked), tuple(hidden))
