"""Rows between commas, tabs or the like as a table of SQLite in memory, so that they are asked as any database is.

What a file does not say is told from its rows: the sign between cells, whether the first row names the columns, and of
which type each is. A column is of numbers or dates only when all its values are, those apart that stand for none; so
the largest, the latest and an average are right, and a postal code with a zero before it stays a text.

Lost: `csv.Sniffer`, which takes letters of prose for the sign between cells; numbers in a column with other texts as
numbers, since SQLite sorts texts behind all numbers and would call one of them the largest; tables of DuckDB, which is
24 MB for what the standard library does.
"""

from __future__ import annotations

import csv
import math
import re
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from itertools import islice
from pathlib import PurePosixPath
from typing import Final

MOST_BYTES: Final = 50_000_000
"""A larger file is a text alone: each question would read all of it."""
_SUFFIXES: Final = (".csv", ".tsv", ".tab")
_SIGNS: Final = (",", "\t", ";", "|")
_LOOKED_AT = 200
"""Rows by which the sign between cells and the names of the columns are told."""
_MOST_COLUMNS = 1_000
_MOST_UNEVEN = 0.3
"""Of the rows: where more have another number of cells, it is no table."""
_MOST_NAME_CHARS = 80
_MOST_LINES_OF_CELL = 2_000
"""A quotation mark that opens a longer cell was never closed: then marks are no marks."""
_MISSING = frozenset({"", "na", "n/a", "#n/a", "nan", "null", "none", "-", "--", "?"})
_NUMBER = re.compile(
    r"[-+]?(?=[\d.])(?:0|[1-9]\d{0,2}(?:,\d{3})+|[1-9]\d{0,18})?(?:\.\d+)?(?:[eE][-+]?\d{1,3})?", re.ASCII
)
_CONTINUES = re.compile("[\u00c2-\u00f4][\u0080-\u00bf]")
"""Two signs of Latin-1 that are one of UTF-8."""
_ISO = re.compile(r"(\d{4})([-/])(\d\d)\2(\d\d)(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?")
_FORMS: Final = ("%b %d %Y", "%B %d %Y", "%d %b %Y", "%d %B %Y", "%d-%b-%Y")
_DAY_MONTH = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2(\d{4})")


@dataclass(frozen=True, slots=True)
class Delimited:
    """A table that was read."""

    database: bytes
    """A SQLite database with the one table."""
    columns: tuple[str, ...]
    rows: int
    has_names: bool
    """Whether the first row names the columns."""
    problem: str = ""
    """What is wrong with some of the rows, in a few words."""


def is_delimited(path: str) -> bool:
    """Whether a file has rows between commas or tabs, by its name."""
    return path.lower().endswith(_SUFFIXES)


def table_in(path: str, text: str) -> Delimited:
    """Read a file as a table, which is called as the file is; raises ValueError when it is none."""
    name = PurePosixPath(path)
    return read_delimited(text, name.stem, tabs=name.suffix.lower() != ".csv")


def read_delimited(text: str, name: str, *, tabs: bool = False) -> Delimited:
    """Read a text of rows as a table; the latest is remembered.

    Args:
        text: the file; lines of UTF-8 in a text that was read as Latin-1 are put right.
        name: of the table.
        tabs: whether its name says that tabs stand between the cells.

    Raises:
        ValueError: it is no table: it has one column, or none.
    """
    global _latest
    key = blake2b(f"{name}\0{tabs}\0{text}".encode("utf-8", "surrogatepass")).digest()
    latest = _latest
    if latest is None or latest[0] != key:
        latest = _latest = (key, _read(text, name, tabs=tabs))
    return latest[1]


_latest: tuple[bytes, Delimited] | None = None


def _read(text: str, name: str, *, tabs: bool) -> Delimited:
    sign = "\t" if tabs else _sign_of(text)
    if sign is None:
        raise ValueError("no sign between cells was found")
    beginning = [row for row in islice(_rows(text, sign), _LOOKED_AT) if any(cell.strip() for cell in row)]
    width = _width(beginning)
    if width < 1 or (width < 2 and not tabs and sign != ","):
        raise ValueError("it has no columns")
    skipped = next((n for n, row in enumerate(beginning) if len(row) >= max(2, width - 1) or width == 1), 0)
    first = [*beginning[skipped], *[""] * width][:width] if beginning else []
    has_names = _names_columns(first, [row[:width] for row in beginning[skipped + 1 :]])
    names = _unique(first if has_names else [""] * width)

    def filled() -> Iterator[list[str]]:
        return islice(
            (row for row in _rows(text, sign) if any(cell.strip() for cell in row)), skipped + has_names, None
        )

    # Before they are filled up: a short row costs a letter in the file, and all columns here.
    count = uneven = 0
    for row in filled():
        count += 1
        uneven += len(row) != width
    if uneven > _MOST_UNEVEN * count:
        raise ValueError("most rows have another number of cells")
    rows = list[list[str | None]]()
    for row in filled():
        rows.append([cell.strip() or None for cell in row[:width]] + [None] * (width - len(row)))
    columns = [_typed(cells) for cells in zip(*rows, strict=True)] or [("TEXT", ())] * width
    problem = f"{uneven:,} of {len(rows):,} rows have another number of cells" if uneven else ""
    return Delimited(_database(name, names, columns), tuple(names), len(rows), has_names, problem)


def _rows(text: str, sign: str) -> Iterator[list[str]]:
    """Yield the rows of a text; where a quotation mark is never closed, as if there were none."""
    lines = [_right(line) for line in text.split("\n")] if _looks_misread(text) else text.split("\n")
    csv.field_size_limit(max(csv.field_size_limit(), min(len(text) + 1, 2**31 - 1)))
    with_ends = (f"{line}\n" for line in lines)
    if _quotes_close(lines, sign):
        yield from csv.reader(with_ends, delimiter=sign, skipinitialspace=True)
    else:
        yield from csv.reader(with_ends, delimiter=sign, quoting=csv.QUOTE_NONE, skipinitialspace=True)


def _quotes_close(lines: Sequence[str], sign: str) -> bool:
    reader = csv.reader((f"{line}\n" for line in lines), delimiter=sign, skipinitialspace=True)
    before = 0
    try:
        for _ in reader:
            if reader.line_num - before > _MOST_LINES_OF_CELL:
                return False
            before = reader.line_num
    except csv.Error:
        return False
    # The last cell takes up all lines to the end when its mark is not closed.
    return not lines or sum(line.count('"') for line in lines) % 2 == 0


def _looks_misread(text: str) -> bool:
    """Whether some lines are UTF-8 that was read as Latin-1, since another line was none."""
    return _CONTINUES.search(text) is not None


def _right(line: str) -> str:
    try:
        return line.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return line


def _sign_of(text: str) -> str | None:
    """Return the sign that cuts most of the first rows into equally many cells."""
    best, found = 0.0, None
    lines = text[:200_000].split("\n")[: _LOOKED_AT // 2]
    for sign in _SIGNS:
        rows = [row for row in _rows("\n".join(lines), sign) if any(cell.strip() for cell in row)]
        width = _width(rows)
        if width < 2:
            continue
        share = sum(len(row) == width for row in rows) / len(rows)
        if share * math.log2(width + 1) > best * 1.05:
            best, found = share * math.log2(width + 1), sign
    return found


def _width(rows: Sequence[Sequence[str]]) -> int:
    counts = Counter(len(row) for row in rows)
    return min(max(counts, key=lambda width: (counts[width], width)), _MOST_COLUMNS) if counts else 0


def _names_columns(first: Sequence[str], others: Sequence[Sequence[str]]) -> bool:
    """Whether a row names the columns: texts alone, each once, that no row below repeats."""
    cells = [cell.strip() for cell in first]
    named = [cell for cell in cells if cell]
    if len(named) * 2 < len(cells) or len({cell.casefold() for cell in named}) < len(named):
        return False
    if any(
        _number(cell) is not None or _ISO.fullmatch(cell) or len(cell) > _MOST_NAME_CHARS for cell in named
    ):
        return False
    # Years and ids may name columns, too, but then nothing tells that from a row of values.
    return not any(
        at < len(row) and cell and row[at].strip() == cell for row in others for at, cell in enumerate(cells)
    )


def _unique(names: Sequence[str]) -> list[str]:
    taken: set[str] = set()
    unique = []
    for number, given in enumerate(names, start=1):
        name = (
            " ".join(given.replace("\0", "").replace("\ufeff", "").split())[:_MOST_NAME_CHARS]
            or f"column_{number}"
        )
        own, times = name, 1
        while own.casefold() in taken:
            times += 1
            own = f"{name}_{times}"
        taken.add(own.casefold())
        unique.append(own)
    return unique


def _typed(cells: Sequence[str | None]) -> tuple[str, Sequence[object]]:
    """Return the type of a column, and its cells as values of it."""
    there = {cell for cell in cells if cell is not None and cell.casefold() not in _MISSING}
    if not there:
        return "TEXT", cells
    # An amount of money or a share: the sign is that of all, so it is no part of any.
    sign = next((sign for sign in "$€£%" if all(sign in (cell[0], cell[-1]) for cell in there)), "")
    numbers = {cell: _number(cell.strip(f"{sign} ") if sign else cell) for cell in there}
    if None not in numbers.values():
        whole = all(isinstance(number, int) for number in numbers.values())
        return ("INTEGER" if whole else "REAL"), [
            None if cell is None else numbers.get(cell) for cell in cells
        ]
    if all(
        (day := _ISO.fullmatch(cell)) and _is_day(int(day[1]), int(day[3]), int(day[4])) for cell in there
    ):
        type_ = "DATE" if all(len(cell) == 10 for cell in there) else "DATETIME"
        return type_, [
            cell[:10].replace("/", "-") + cell[10:] if cell is not None and cell in there else None
            for cell in cells
        ]
    days = _days(there)
    return ("DATE", [None if cell is None else days.get(cell) for cell in cells]) if days else ("TEXT", cells)


def _days(there: Iterable[str]) -> dict[str, str]:
    """Return days as `13.02.2024` and `02/13/2024` in a form that sorts; none where one is no day, or may be two."""
    if (first := next(iter(there))) and (form := next((f for f in _FORMS if _day_in(first, f)), "")):
        named = {cell: _day_in(cell, form) for cell in there}
        return named if all(named.values()) else {}
    matches = {cell: _DAY_MONTH.fullmatch(cell) for cell in there}
    read: list[dict[str, str]] = []
    for day, month in ((1, 3), (3, 1)):
        found = {
            cell: f"{match[4]}-{int(match[month]):02}-{int(match[day]):02}"
            for cell, match in matches.items()
            if match is not None and _is_day(int(match[4]), int(match[month]), int(match[day]))
        }
        if len(found) == len(matches):
            read.append(found)
    dotted = all(match is not None and match[2] == "." for match in matches.values())
    # Points stand behind days; between slashes, a day beyond the twelfth tells which is which.
    return read[0] if read and (dotted or len(read) == 1) else {}


def _day_in(text: str, form: str) -> str:
    """Return a day with the name of its month as ISO 8601; '' when it has another form."""
    try:
        return datetime.strptime(" ".join(text.replace(",", " ").split()), form).date().isoformat()
    except ValueError:
        return ""


def _number(text: str) -> int | float | None:
    """Return a number; None for what is none, or has a zero before it as codes have."""
    if not text or not _NUMBER.fullmatch(text):
        return None
    plain = text.replace(",", "")
    try:
        number = int(plain)
        return number if abs(number) < 2**63 else None
    except ValueError:
        pass
    try:
        return fraction if math.isfinite(fraction := float(plain)) else None
    except ValueError:
        return None


def _is_day(year: int, month: int, day: int) -> bool:
    return year > 0 and 1 <= month <= 12 and 1 <= day <= 31


def _database(name: str, names: Sequence[str], columns: Sequence[tuple[str, Sequence[object]]]) -> bytes:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.setlimit(sqlite3.SQLITE_LIMIT_COLUMN, _MOST_COLUMNS)
        declared = ", ".join(
            f"{quoted(each)} {type_}" for each, (type_, _) in zip(names, columns, strict=True)
        )
        connection.execute(f"CREATE TABLE {quoted(name)} ({declared})")
        places = ", ".join("?" * len(names))
        connection.execute("BEGIN")
        connection.executemany(
            f"INSERT INTO {quoted(name)} VALUES ({places})",
            zip(*(values for _, values in columns), strict=True),
        )
        connection.execute("COMMIT")
        return bytes(connection.serialize())


def quoted(name: str) -> str:
    """Return a name as SQL has it."""
    return '"' + name.replace('"', '""') + '"'
