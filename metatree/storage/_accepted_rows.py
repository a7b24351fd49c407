"""Whether the rows of a store that somebody else made are such as a program of ours writes and reads."""

from __future__ import annotations

import json
from typing import Final

from metatree.errors import UserError
from metatree.storage.store import Store

_CHARS: Final = 200
_MOST_NUMBER: Final = 1 << 60
"""Of rows: SQLite ends at 2^63 - 1."""
_TYPES: Final = {
    "INT": "'integer'",
    "TEXT": "'text'",
    "DOUBLE": "'real', 'integer'",
    "REAL": "'real', 'integer'",
}


def _check_values(store: Store, table: str) -> None:
    """Refuse values of another type than that of their column: a number of 29.5 would pass for 29 elsewhere.

    Raises:
        UserError: there is one.
    """
    for _, column, declared, *_ in store.rows(f"PRAGMA table_info({table})"):
        # By the affinity of the column (sqlite.org/datatype3.html, 3.1).
        types = next((types for part, types in _TYPES.items() if part in declared.upper()), None)
        if types and store.rows(
            f"SELECT 1 FROM {table} NOT INDEXED WHERE typeof({column}) NOT IN ({types}, 'null') LIMIT 1"
        ):
            raise _out_of_form(store, table, column)


def _out_of_form(store: Store, table: str, column: str) -> UserError:
    return UserError(
        f"{store.name!r} cannot be accepted: {column!r} of a row in {table!r} is out of form; ask who made it"
    )


def check_rows(store: Store) -> None:
    """Refuse nodes that no program of ours could write or read, and numbers after which there are no more.

    They would end every command.

    Raises:
        UserError: there is such a node, or such a number.
    """
    for (table,) in store.rows("SELECT name FROM sqlite_master WHERE type = 'table'"):
        _check_values(store, table)
        columns = {name for _, name, *_ in store.rows(f"PRAGMA table_info({table})")}
        for column in sorted(columns & {"seq", "number", "position"}):
            most = store.value(f"SELECT max({column}) FROM {table}")
            least = store.value(f"SELECT min({column}) FROM {table}") if column == "seq" else 0
            if most is not None and not (isinstance(most, int) and most < _MOST_NUMBER and least >= 0):
                raise _out_of_form(store, table, column)
    texts = " OR ".join(
        f"typeof({column}) <> 'text'" for column in ("id", "kind", "title", "description", "digest")
    )
    bad = store.rows(f"SELECT id FROM node NOT INDEXED WHERE {texts} LIMIT 1")
    seq = -1
    while not bad and (
        page := store.rows(
            "SELECT seq, id, attributes, provenance, parts FROM node NOT INDEXED WHERE seq > ? AND"
            " (attributes IS NOT NULL OR provenance IS NOT NULL OR parts IS NOT NULL) ORDER BY seq LIMIT 1000",
            (seq,),
        )
    ):
        forms = ((2, dict), (3, dict), (4, list))
        bad = [
            row[1:2]
            for row in page
            if not all(row[at] is None or is_json(row[at], form) for at, form in forms)
        ]
        seq = page[-1][0]
    if bad:
        raise UserError(
            f"{store.name!r} cannot be accepted: its node {str(bad[0][0])[:_CHARS]!r} is out of form; ask who made it"
        )


def is_json(text: object, form: type) -> bool:
    """Whether a text is JSON that Python and SQLite read alike.

    SQLite reads deeper values, and longer numbers; of a name that stands twice it takes the first, Python the last.
    """
    try:
        return isinstance(text, str) and isinstance(json.loads(text, object_pairs_hook=_named_once), form)
    except (ValueError, RecursionError):
        return False


def _named_once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    values = dict(pairs)
    if len(values) < len(pairs):
        raise ValueError("a name stands twice")
    return values
