"""The tools of databases: read-only queries, and queries that are kept as nodes.

Rows are looked up at tables, schemas and databases, which are offered without doubt. Lost: at columns too, which are
leaves and would be jumped to, so that a row was quoted from the column `city`. The embedded caller uses `find_rows`,
which takes a question; SQL is for models.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import closing
from hashlib import blake2b
from itertools import islice
from pathlib import PurePosixPath
from typing import Annotated

from pydantic import Field

from metatree._util.secret_text import masked
from metatree.errors import UserError
from metatree.node import Node
from metatree.tools.tool import ToolGroup, tool
from metatree.trees.source_files import read_inside
from metatree.trees.sources import check_kept, disk_root
from metatree.trees.tree import Tree
from metatree_memory_tools.databases._delimited import is_delimited
from metatree_memory_tools.databases._look_up import Column, Lookup, Shape, fit
from metatree_memory_tools.databases._model import OpenDatabase, Rows
from metatree_memory_tools.databases._nodes import KINDS
from metatree_memory_tools.databases._open import open_database, shows_secrets
from metatree_memory_tools.databases._show import rows_text
from metatree_memory_tools.databases._sqlite_apart import SQLiteApart
from metatree_memory_tools.text.lines import path_of, text_of

MAX_ROWS = 200
_MOST_WORDS = 20
_MOST_TABLES = 100
_MOST_BYTES = 100_000_000
_SEARCH_S = 20.0
_SQL_HELP = "One SELECT statement; it is run read-only, within 5 seconds."


def database_of(tree: Tree, node: Node) -> OpenDatabase:
    """Open the database that a node came from, for reading.

    Raises:
        UserError: the node came from no database.
        MetatreeError: it cannot be opened.
    """
    if tree.is_imported(node):
        raise UserError(f"node {node.id!r} was made elsewhere: no database is read for what it says")
    source = tree.source_of(node)
    if source is not None and source.type == "database":
        check_kept(source)
        return open_database(source)
    root = None if source is None else disk_root(source)
    path = tree.file_of(node)
    if source is None or root is None or path is None or not path.is_file():
        raise UserError(f"node {node.id!r} does not come from a database")
    if is_delimited(path.name):
        text = text_of(tree, path_of(tree, node))
        try:
            return SQLiteApart.open_rows(
                path.name, "\n".join(text.lines), secrets=shows_secrets(source.options)
            )
        except ValueError as exc:
            raise UserError(f"{path.name!r} is no table: {exc}") from exc
    # As its nodes were made, and never by its name: something else may have that by the time that SQLite opens it.
    try:
        data = read_inside(root, path.relative_to(root).as_posix(), limit=_MOST_BYTES + 1, links=False)[0]
    except OSError as exc:
        raise UserError(f"{path.name!r} cannot be read: {exc.strerror}") from exc
    if len(data) > _MOST_BYTES:
        raise UserError(
            f"{path.name!r} is larger than {_MOST_BYTES / 1e6:g} MB: build it as a source by itself"
        )
    return SQLiteApart.open_bytes(data, path.name, secrets=shows_secrets(source.options))


@tool(kind="exploratory", title="query the database", kinds=KINDS, reuse="run", timeout_s=30.0)
def query_database(
    node: Node,
    tree: Tree,
    sql: Annotated[str, Field(description=_SQL_HELP)],
    max_rows: Annotated[int, Field(ge=1, le=MAX_ROWS)] = 50,
) -> str:
    """Count, sum, filter, sort or join rows of the database by one SQL query that only reads."""
    with closing(database_of(tree, node)) as database:
        return _shown(tree, node, database.query(sql, max_rows))


@tool(
    kind="exploratory",
    title="find rows by a text",
    # Not columns and sample rows: a row is a row of its table, to which a search goes up from them.
    kinds=("database", "file", "schema", "table", "view"),
    reuse="run",
    answers_outside_tree=True,
)
def find_rows(
    node: Node,
    tree: Tree,
    text: Annotated[
        str, Field(description="What the row holds: a name, a number, a text; or a question about it.")
    ],
    max_rows: Annotated[int, Field(ge=1, le=MAX_ROWS)] = 20,
) -> str:
    """Look up the record or row of a certain name, number or date: which customer, person, city, product, order."""
    tables = list(islice(_tables_at(tree, node), _MOST_TABLES))
    deadline = time.monotonic() + _SEARCH_S
    with closing(database_of(tree, node)) as database:
        for texts in _looked_for(text):
            if len(texts) > 1 and len(tables) > 1:
                break  # some words of a question are in some row of nearly every table
            sections = []
            for schema, name in tables:
                matches = (
                    None if time.monotonic() > deadline else _matches(database, schema, name, texts, max_rows)
                )
                if matches is not None and matches.rows:
                    found = _shown(tree, node, matches)
                    sections.append(found if len(tables) == 1 else f"{name}:\n{found}")
            if sections:
                return "\n\n".join(sections)
    raise UserError(f"no row of {', '.join(name for _, name in tables[:5]) or node.title} holds this")


def _shown(tree: Tree, node: Node, rows: Rows) -> str:
    """Return rows as a text, masked as one: each may hold a line of a key."""
    source = tree.source_of(node)
    text = rows_text(rows)
    return text if source is not None and shows_secrets(source.options) else masked(text)[0]


def _matches(
    database: OpenDatabase, schema: str, name: str, texts: tuple[str, ...], limit: int
) -> Rows | None:
    try:
        return database.find(schema, name, texts, limit)
    except UserError:  # a view that is broken, or a table that takes too long
        return None


def _tables_for(tree: Tree, question: str) -> list[Node]:
    """Return the tables that a question may be about, the best first, by what they and their columns are called."""
    ids = islice(sorted(tree.ids({"table", "view"})), _MOST_TABLES)
    fits = [
        (-fit(_shape(tree, table), question), number, table)
        for number, table in enumerate(map(tree.get, ids))
    ]
    return [table for score, _, table in sorted(fits, key=lambda one: one[:2]) if score < 0]


def _shape(tree: Tree, table: Node) -> Shape:
    """Return what a tree says of a table, without asking the database."""
    columns = tuple(
        Column(node.title, node.description.partition(",")[0])
        for node in tree.children(table.id)
        if node.kind == "column"
    )
    above = tree.parent(table)
    siblings = (
        [] if above is None else [node for node in tree.children(above) if node.kind in ("table", "view")]
    )
    called = (PurePosixPath(tree.get(above).title).stem,) if above is not None and len(siblings) == 1 else ()
    return Shape(*_named(tree, table), columns, called)


@tool(
    kind="exploratory",
    title="answer from the rows",
    kinds=("table", "view"),
    reuse="run",
    first_on=_tables_for,
)
def look_up(
    node: Node,
    tree: Tree,
    question: Annotated[str, Field(description="The question, in its own words.")],
) -> str:
    """Answer a question about values in a table: of the row that it names, how many, the largest, latest or average."""
    with closing(database_of(tree, node)) as database:
        rows, sql = Lookup(database, _shape(tree, node), question).answer()
        return f"{_shown(tree, node, rows)}\n\n{sql}"


@tool(kind="interactive", title="keep a query as a node", kinds=KINDS, timeout_s=30.0)
def save_query(
    node: Node,
    tree: Tree,
    sql: Annotated[str, Field(description=_SQL_HELP)],
    title: Annotated[str, Field(description="What the query answers, in a few words.", max_length=200)] = "",
) -> Node:
    """Save a query with what it gives now, so that it is found again."""
    with closing(database_of(tree, node)) as database:
        rows = database.query(sql, MAX_ROWS)
        database_title = database.title
    text = _shown(tree, node, rows)
    name = title or f"query: {' '.join(sql.split())[:80]}"
    return Node(
        id=f"{node.id}#query-{blake2b(sql.encode(), digest_size=6).hexdigest()}",
        title=name,
        description=f"A query of {database_title}, with what it gave: {' '.join(sql.split())[:200]}",
        content=f"{sql.strip()}\n\n{text}",
        kind="query",
        attributes={"sql": sql, "rows": len(rows.rows)},
    )


def _looked_for(text: str) -> Iterator[tuple[str, ...]]:
    """Yield what rows may hold, the surest first: the whole text, what it quotes, as many of its words as possible."""
    yield (text.strip(),)
    for quoted in re.findall(r"[\"“'`]([^\"”'`]{2,100})[\"”'`]", text):
        yield (quoted,)
    words = [word for word in re.findall(r"[\w.@-]*\w", text) if len(word) > 2 or word.isdigit()]
    if len(words) > 1:
        yield tuple(dict.fromkeys(words))[:_MOST_WORDS]


def _tables_at(tree: Tree, node: Node) -> Iterator[tuple[str, str]]:
    """Yield schema and name of the table that a node is or belongs to, or of all below a database or a schema."""
    for node_id in (node.id, *reversed(tree.ancestors(node))):
        parent = tree.get(node_id)
        if parent.kind in ("table", "view"):
            yield _named(tree, parent)
            return
        if parent.kind in ("database", "schema", "file"):
            break
    for _, below in tree.walk(parent, depth=2):
        if below.kind in ("table", "view"):
            yield _named(tree, below)


def _named(tree: Tree, table: Node) -> tuple[str, str]:
    above = tree.parent(table)
    schema = tree.get(above) if above is not None else None
    return (schema.title if schema is not None and schema.kind == "schema" else ""), table.title


DATABASE_TOOLS = ToolGroup(
    "database",
    "query the database",
    "Ask the table or database itself: count, sum, average, filter, sort, join, or look up the record of a name,"
    " customer, person, product, order, city, number or date",
    (look_up, query_database, find_rows, save_query),
)
"""The tool tree of databases."""
