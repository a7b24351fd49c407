"""Tables and rows as text."""

from __future__ import annotations

from typing import Any

from metatree_memory_tools.databases._model import Column, Rows, Table

MAX_CELL_CHARS = 200
_MOST_TARGETS = 20
MAX_TEXT_CHARS = 20_000
MASK = "***"


def rows_text(result: Rows) -> str:
    """Return rows as lines of `name: value` for few columns of long text, as a table with bars otherwise."""
    if not result.rows:
        return f"no rows; the columns are {', '.join(result.columns)}" if result.columns else "no rows"
    cells = [
        [MASK if number in result.masked else cell(value) for number, value in enumerate(row)]
        for row in result.rows
    ]
    lines = [" | ".join(result.columns), *(" | ".join(row) for row in cells)]
    text: list[str] = []
    used = 0
    for number, line in enumerate(lines):
        used += len(line) + 1
        if used > MAX_TEXT_CHARS:
            text.append(f"… cut: {len(lines) - number:,} more rows were read")
            break
        text.append(line)
    if result.more:
        text.append("… there are more rows")
    if result.hidden:
        text.append(f"{', '.join(result.hidden)}: may hold secrets, so the values are not shown")
    return "\n".join(text)


def cell(value: Any) -> str:
    """Return one value on one line, bounded."""
    if value is None:
        return "NULL"
    if isinstance(value, bytes | bytearray | memoryview):
        data = bytes(value)
        text = f"{len(data):,} bytes" if len(data) > 16 else "x" + data.hex()
    else:
        text = str(value)
    text = " ".join(text[: 4 * MAX_CELL_CHARS].split())
    return text if len(text) <= MAX_CELL_CHARS else text[: MAX_CELL_CHARS - 1] + "…"


def count_text(table: Table) -> str:
    """Say how many rows a table has."""
    if table.rows is None:
        return ""
    number = f"{table.rows:,} row" + ("" if table.rows == 1 else "s")
    return number if table.exact else f"about {number}"


def column_text(table: Table, column: Column) -> str:
    """Return what is known of a column: type, constraints, what it refers to, comment."""
    facts = [column.type or "of any type"]
    if column.key:
        facts.append("primary key")
    elif not column.nullable:
        facts.append("not null")
    if column.default is not None and not column.is_secret:
        facts.append(f"default {column.default}")
    targets = table.refers_to.get(column.name, [])
    facts += [f"refers to {target}" for target in targets[:_MOST_TARGETS]]
    if column.is_secret:
        facts.append("may hold secrets, values are not shown")
    text = ", ".join(facts)
    return f"{text} — {column.comment}" if column.comment else text


def table_text(table: Table) -> str:
    """Say what a table is, in one or two sentences."""
    names = [column.name for column in table.columns]
    count = count_text(table)
    kind = table.kind.capitalize() + (f" of {count}" if count else "")
    listing = ", ".join(names[:12]) + (f", … ({len(names)} columns)" if len(names) > 12 else "")
    text = f"{kind}: {listing}" if names else kind
    if table.problem:
        text = f"{text}; its rows cannot be read: {table.problem}"
    return f"{table.comment.rstrip('.')}. {text}" if table.comment else text
