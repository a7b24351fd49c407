"""Looking into stores that somebody else made, accepting them, and taking that back; `metatree.trust` says why."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from contextlib import closing, suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, Final

from metatree.errors import MetatreeError, UserError
from metatree.store import APPLICATION_ID, Store
from metatree.trust import (
    OFFERED,
    acceptance,
    bounded,
    check,
    check_files,
    facts_in,
    mark_key,
    sign,
    signed_facts,
)

_NAMES: Final = 50
"""How many names of each kind a survey lists."""


@dataclass(frozen=True, slots=True)
class Survey:
    """What a store would be trusted with."""

    file: Path
    trusted: bool
    """Whether this user made or accepted it."""
    sources: list[dict[str, Any]] = field(default_factory=list)
    """The records of the sources that it names, or, where it was built anew, that the one before it named."""
    offered: bool = False
    """Whether the sources are not used yet, since this index was built anew in the place of somebody else's."""
    permissions: list[str] = field(default_factory=list)
    """The tools that it lets run without asking."""
    memories: int = 0
    authors: list[str] = field(default_factory=list)
    """In whose names the memories are."""
    runs: int = 0
    """How many runs it has whose journals could be resumed."""
    users: list[tuple[str, str]] = field(default_factory=list)
    """Names and roles of a query service."""


def stores_in(place: Path) -> list[Path]:
    """Return the stores of a folder, or the one file that is named, by their names.

    Raises:
        UserError: there is none.
    """
    files = sorted(place.glob("*.db")) if place.is_dir() else [place]
    found = [file for file in files if file.is_file() and _is_store(file)]
    if not found:
        raise UserError(f"there is no tree and no other store of metatree in {str(place)!r}")
    return found


def survey(file: Path) -> Survey:
    """Look into a store, whoever made it; nothing of it runs, and reading is bounded.

    Raises:
        UserError: one of its files is a link, or no regular file.
    """
    check_files(file)
    with closing(_reading(file)) as connection:
        try:
            check(connection, file)
            trusted = True
        except (MetatreeError, sqlite3.Error):
            trusted = False
        with bounded(connection):
            facts = facts_in(connection) or {}
            permissions = _column(
                connection,
                "SELECT json_extract(value, '$.tool') FROM meta WHERE key >= 'permission:' AND key < 'permission;'",
            )
            memories = "FROM node WHERE json_extract(provenance, '$.by') = 'remember' AND kind = 'memory'"
            users = _rows(
                connection, f"SELECT name, role FROM service_user ORDER BY role, name LIMIT {_NAMES}"
            )
            return Survey(
                file,
                trusted,
                sources=_records(facts.get(OFFERED)) or _records(facts.get("sources")),
                offered=OFFERED in facts,
                permissions=permissions,
                memories=_number(connection, f"SELECT count(*) {memories}"),
                authors=_column(connection, f"SELECT DISTINCT json_extract(provenance, '$.who') {memories}"),
                runs=_number(connection, "SELECT count(*) FROM run"),
                users=[(str(name), str(role)) for name, role in users],
            )


def accept(file: Path) -> None:
    """Accept a store that somebody else made, with the sources that it names now.

    Raises:
        UserError: it cannot be read, or there is no place to keep that it was accepted.
    """
    check_files(file)
    with Store.open(file, create=False, trust=True) as store:
        if not store.read_only:
            sign(store)
            return
        facts = signed_facts(store)
    kept = acceptance(file, facts)
    if kept is None:
        raise UserError(
            "there is no home to keep it in: set METATREE_CONFIG_DIR to a folder, or METATREE_TRUST"
        )
    try:
        kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        kept.touch(mode=0o600)
    except OSError as exc:
        raise UserError(
            f"cannot write in {str(kept.parent)!r}: {exc.strerror}; set METATREE_CONFIG_DIR to a folder of yours"
        ) from exc


def drop_offer(file: Path) -> None:
    """Forget what sources an index of somebody else named: they are used now, or will not be."""
    with Store.open(file, create=False) as store:
        store.execute("DELETE FROM meta WHERE key = ?", (OFFERED,))


def revoke(file: Path) -> bool:
    """Take this user's marks off a store, and return whether there were any."""
    check_files(file)
    with Store.open(file, create=False, trust=True) as store:
        kept = acceptance(file, signed_facts(store))
        gone = 0 if store.read_only else store.execute("DELETE FROM meta WHERE key = ?", (mark_key(),))
    if kept is not None and kept.exists():
        kept.unlink()
        gone += 1
    return bool(gone)


def _is_store(file: Path) -> bool:
    with suppress(sqlite3.Error), closing(_reading(file)) as connection:
        return bool(connection.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID)
    return False


def _reading(file: Path) -> sqlite3.Connection:
    check_files(file)
    connection = sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, timeout=5.0)
    connection.execute("PRAGMA trusted_schema=OFF")
    return connection


def _records(text: str | None) -> list[dict[str, Any]]:
    try:
        found = json.loads(text or "[]")
    except (ValueError, RecursionError):
        return []
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _rows(connection: sqlite3.Connection, sql: str) -> list[tuple[Any, ...]]:
    """Return rows; none where a store has no such table, or one that cannot be read within the bounds."""
    try:
        return connection.execute(sql).fetchall()
    except sqlite3.Error:
        return []


def _column(connection: sqlite3.Connection, sql: str) -> list[str]:
    found: Iterable[Any] = chain.from_iterable(_rows(connection, f"{sql} LIMIT {_NAMES}"))
    return sorted({str(each) for each in found if each is not None})


def _number(connection: sqlite3.Connection, sql: str) -> int:
    rows = _rows(connection, sql)
    return int(rows[0][0]) if rows else 0
