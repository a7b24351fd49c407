"""Columns of tables between delimiters that a name says hold passwords or keys.

A cell is masked where its column is named so and it looks like one: eight characters and more, letters and digits. So
the column `token` of a table of words stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from metatree._util._secret_names import NAME

_DELIMITERS = ",;\t|"
_NAMED = re.compile(rf"(?i)(?:.{{0,60}}[_\s.-])?{NAME}(?:[_\s-]?(?:hash|value))?")
_MOST_BEFORE = 20
"""Lines before the names of columns: blank ones, comments, and what names the delimiter to Excel."""
_LONGEST_HEAD = 100_000
_DASHES = re.compile(r"(?m)^[ \t]{0,3}\|?[ \t]*+:?-[-:| \t]*+$")
_SECRET = re.compile(r"(?=\S{0,200}\d)(?=\S{0,200}[A-Za-z])\S{8,}")


def masked_columns(text: str) -> tuple[str, int]:
    """Return a table with `*` for each character of what its columns of secrets hold, and how many cells these were.

    Args:
        text: the table; the names of its columns stand in its first row that is no comment, or in one. Cells may
            stand in double quotes.

    Example:
        >>> masked_columns("user,password" + chr(10) + "ann,hunter2hunter2")
        ('user,password\\nann,**************', 1)
    """
    begin = 0
    for _ in range(_MOST_BEFORE):
        head, newline, _ = text[begin : begin + _LONGEST_HEAD].partition("\n")
        bare = head.strip().lstrip("\ufeff#").lstrip()
        delimiter = max(_DELIMITERS, key=bare.count)
        named = [_NAMED.fullmatch(cell.strip().strip('"')) is not None for cell in bare.split(delimiter)]
        may_precede = not bare or head.startswith("#") or bare.lower().startswith("sep=")
        if any(named) or not newline or not may_precede:
            break
        begin += len(head) + 1
    if not any(named):
        return text, 0
    parts, at, number = [], 0, 0
    for row, column, start, end in _cells(text, delimiter, begin):
        if row and column < len(named) and named[column] and _SECRET.fullmatch(text, start, end):
            parts += [text[at:start], "*" * (end - start)]
            at, number = end, number + 1
    return "".join([*parts, text[at:]]), number


def masked_tables(text: str) -> tuple[str, int]:
    """Return a text with the same done in its tables of Markdown, which are bars, and dashes below the names.

    Example:
        >>> masked_tables("| user | password |" + chr(10) + "|---|---|" + chr(10) + "| ann | hunter2hunter2 |")
        ('| user | password |\\n|---|---|\\n| ann | ************** |', 1)
    """
    parts, at, number = [], 0, 0
    for line in _DASHES.finditer(text) if "|" in text else ():  # as each row of a table has
        begin = text.rfind("\n", 0, max(0, line.start() - 1)) + 1
        names = text[max(begin, line.start() - _LONGEST_HEAD) : max(0, line.start() - 1)].strip().split("|")
        named = {column for column, name in enumerate(names) if _NAMED.fullmatch(name.strip(" \t`*_"))}
        row = line.end() + 1
        while named and row < len(text) and row >= at:
            end = text.find("\n", row)
            end = len(text) if end < 0 else end
            if "|" not in text[row:end] or _DASHES.match(text, row):  # there another table begins
                break
            start = row + len(text[row:end]) - len(text[row:end].lstrip())
            for column, cell in enumerate(text[start:end].rstrip().split("|")):
                value = cell.strip(" \t`*_")
                if column in named and _SECRET.fullmatch(value):
                    place = start + cell.index(value)
                    parts += [text[at:place], "*" * len(value)]
                    at, number = place + len(value), number + 1
                start += len(cell) + 1
            row = end + 1
    return "".join([*parts, text[at:]]), number


def is_named_secret(name: str, value: str) -> bool:
    """Whether a value looks like a secret under a name that says so.

    Example:
        >>> is_named_secret("api_key", "hunter2hunter2"), is_named_secret("colour", "hunter2hunter2")
        (True, False)
    """
    return _NAMED.fullmatch(name) is not None and _SECRET.fullmatch(value) is not None


def _cells(text: str, delimiter: str, at: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield row, column, start and end of each cell from a place on, without its quotes."""
    sign = re.escape(delimiter)
    cell = re.compile(
        rf'(?:"(?P<quoted>(?:[^"]++|"")*+)"|(?P<bare>[^{sign}\r\n]*))(?P<end>{sign}|\r?\n|\r|\Z)'
    )
    row = column = 0
    while (match := cell.match(text, at)) is not None:
        start, end = match.span("bare" if match["quoted"] is None else "quoted")
        yield row, column, start, end
        if match.end() == at or match.end() >= len(text):
            return
        at = match.end()
        row, column = (row, column + 1) if match["end"] == delimiter else (row + 1, 0)
