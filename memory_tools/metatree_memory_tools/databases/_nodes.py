"""A database as nodes: schemas, tables and views, their columns, and their sample rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from hashlib import blake2b

from metatree.node import Node, Source
from metatree_memory_tools.databases._model import OpenDatabase, Table, key_of, names_of, public_key_of
from metatree_memory_tools.databases._show import column_text, count_text, rows_text, table_text

ROWS = "rows"
"""Kind of the node with the sample rows of a table."""

KINDS = ("database", "schema", "table", "view", "column", ROWS, "query")
"""Kinds of nodes that come from databases."""

_LISTED = 15


def database_nodes(
    open_: OpenDatabase, source_type: str, *, secrets: bool = False
) -> Iterator[tuple[Node, str | None]]:
    """Yield the nodes of a database, parents first; the first is its top with the id `.`.

    Args:
        secrets: whether ids and paths may hold a name that looks like a secret.
    """
    key = key_of if secrets else public_key_of
    tables = list(open_.tables())
    names = [f"{table.schema}.{table.name}" if table.schema else table.name for table in tables]
    views = sum(table.kind == "view" for table in tables)
    what = _tables(len(tables) - views) + (f" and {_tables(views, 'view')}" if views else "")
    listing = ", ".join(names[:_LISTED]) + (", …" if len(names) > _LISTED else "")
    description = f"{open_.product} database with {what}" + (f": {listing}" if listing else "")
    attributes = {"product": open_.product, "tables": len(tables)}
    yield Node(".", open_.title, description, kind="database", attributes=attributes), None
    # The tables that something refers to are the ones that links lead to, so all have to be known.
    known = {(table.schema, table.name) for table in tables}
    schema = None
    for table in tables:
        if open_.has_schemas and table.schema != schema:
            schema = table.schema
            inside = [each.name for each in tables if each.schema == schema]
            text = f"Schema with {_tables(len(inside))}: {', '.join(inside[:_LISTED])}"
            yield Node(key(schema), schema, text, kind="schema"), "."
        yield from _table_nodes(table, source_type, open_.has_schemas, known, key)


def _table_nodes(
    table: Table, source_type: str, has_schemas: bool, known: set[tuple[str, str]], key: Callable[..., str]
) -> Iterator[tuple[Node, str | None]]:
    def id_of(schema: str, name: str) -> str:
        return key(schema, name) if has_schemas else key(name)

    node_id = id_of(table.schema, table.name)
    parent = key(table.schema) if has_schemas else "."
    links = [
        ["refers_to", id_of(*foreign.table)]
        for foreign in table.foreign_keys
        if foreign.table in known and foreign.table != (table.schema, table.name)
    ]
    attributes = {
        "columns": len(table.columns),
        **({"rows": table.rows, "rows_exact": table.exact} if table.rows is not None else {}),
        **({"linked": links} if links else {}),
        **({"note": f"its rows cannot be read: {table.problem}"} if table.problem else {}),
    }
    yield Node(node_id, table.name, table_text(table), kind=table.kind, attributes=attributes), parent
    for column in table.columns:
        text = column_text(table, column)
        yield (
            Node(
                f"{node_id}/{key(column.name)}",
                column.name,
                text,
                content=f"{table.name}.{column.name}: {text}",
                kind="column",
            ),
            node_id,
        )
    if table.problem:
        return
    count = count_text(table)
    node = Node(
        f"{node_id}#rows",
        f"{table.name}: sample rows",
        f"The first rows of {table.name}" + (f", of {count}" if count else ""),
        kind=ROWS,
        source=Source(type=source_type, path=key(table.schema, table.name)),
        digest=blake2b(f"{node_id}\0{count}\0{table.sample_digest}".encode(), digest_size=16).hexdigest(),
    )
    yield node, node_id


def rows_content(open_: OpenDatabase, key: str) -> str:
    """Return the sample rows of a table as text, by the key of their node."""
    schema, name = names_of(key)
    if "masked-" in key:
        named = (table for table in open_.tables() if public_key_of(table.schema, table.name) == key)
        schema, name = next(((table.schema, table.name) for table in named), (schema, name))
    return rows_text(open_.sample(schema, name))


def _tables(number: int, what: str = "table") -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
