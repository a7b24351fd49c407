"""The tools of databases: read-only queries, and queries that are kept as nodes."""

from __future__ import annotations

from contextlib import closing
from hashlib import blake2b
from typing import Annotated

from pydantic import Field

from metatree.errors import UserError
from metatree.node import Node
from metatree.tool import ToolGroup, tool
from metatree.tree import Tree
from metatree_memory_tools.databases.model import Connection
from metatree_memory_tools.databases.nodes import KINDS
from metatree_memory_tools.databases.show import rows_text
from metatree_memory_tools.databases.source import open_database, shows_secrets
from metatree_memory_tools.databases.sqlite import SQLite

MAX_ROWS = 200
_SQL_HELP = "One SELECT statement; it is run read-only, within 5 seconds."


def database_of(tree: Tree, node: Node) -> Connection:
    """Open the database that a node came from, for reading.

    Raises:
        UserError: the node came from no database.
        MetatreeError: it cannot be opened.
    """
    source = tree.source_of(node)
    if source is not None and source.type == "database":
        return open_database(source)
    path = tree.file_of(node)
    if source is None or path is None or not path.is_file():
        raise UserError(f"node {node.id!r} does not come from a database")
    return SQLite.open_file(path, secrets=shows_secrets(source.options))


@tool(kind="exploratory", title="query the database", kinds=KINDS, reuse="run", timeout_s=30.0)
def query_database(
    node: Node,
    tree: Tree,
    sql: Annotated[str, Field(description=_SQL_HELP)],
    max_rows: Annotated[int, Field(ge=1, le=MAX_ROWS)] = 50,
) -> str:
    """Count, sum, filter, sort or join rows of the database by one SQL query that only reads."""
    with closing(database_of(tree, node)) as database:
        return rows_text(database.query(sql, max_rows))


@tool(kind="exploratory", title="find rows by a text", kinds=("table", "view", "column", "rows"), reuse="run")
def find_rows(
    node: Node,
    tree: Tree,
    text: Annotated[str, Field(description="A name, number or other text that a row of the table holds.")],
    max_rows: Annotated[int, Field(ge=1, le=MAX_ROWS)] = 20,
) -> str:
    """Look up the rows or records of this table that hold a text, such as a name, a number or a date."""
    schema, name = _table_of(tree, node)
    with closing(database_of(tree, node)) as database:
        return rows_text(database.find(schema, name, text, max_rows))


@tool(kind="interactive", title="keep a query as a node", kinds=KINDS, timeout_s=30.0)
def save_query(
    node: Node,
    tree: Tree,
    sql: Annotated[str, Field(description=_SQL_HELP)],
    title: Annotated[str, Field(description="What the query answers, in a few words.", max_length=200)] = "",
) -> Node:
    """Save a query with what it gives now, so that it is found again."""
    with closing(database_of(tree, node)) as database:
        found = database.query(sql, MAX_ROWS)
        told = database.title
    text = rows_text(found)
    name = title or f"query: {' '.join(sql.split())[:80]}"
    return Node(
        id=f"{node.id}#query-{blake2b(sql.encode(), digest_size=6).hexdigest()}",
        title=name,
        description=f"A query of {told}, with what it gave: {' '.join(sql.split())[:200]}",
        content=f"{sql.strip()}\n\n{text}",
        kind="query",
        attributes={"sql": sql, "rows": len(found.rows)},
    )


def _table_of(tree: Tree, node: Node) -> tuple[str, str]:
    """Return schema and name of the table that a node is, or belongs to."""
    for node_id in (node.id, *reversed(tree.ancestors(node))):
        found = tree.get(node_id)
        if found.kind in ("table", "view"):
            above = tree.parent(found)
            schema = tree.get(above) if above is not None else None
            return (schema.title if schema is not None and schema.kind == "schema" else ""), found.title
    raise UserError(f"node {node.id!r} belongs to no table")


DATABASE_TOOLS = ToolGroup(
    "database",
    "query the database",
    "Run a read-only query on the database or table: count, sum, average, filter, sort, join or look up rows",
    (query_database, find_rows, save_query),
)
"""The tool tree of databases."""
