"""Forks: a copy of a board for a child agent to work on, and what it did merged back.

A fork copies the items, at about 3 us each. Lost: layers, which every query would have had to know of.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from metatree.blackboard._rows import NEXT, Filter, Rows
from metatree.errors import Conflict, UserError

if TYPE_CHECKING:
    from metatree.storage.database import Database

OnConflict = Literal["error", "ours", "theirs"]

_COPIED: Final = (
    "id, section, data, tokens, at, agent, run, step, round,"
    " sources, audience, pinned, image, removed, version"
)


@dataclass(frozen=True, slots=True)
class Merge:
    """What a merge did, as ids."""

    added: tuple[str, ...]
    updated: tuple[str, ...]
    removed: tuple[str, ...]
    conflicts: tuple[str, ...]
    """Changed on both boards; which of the two was kept, the call said."""


def fork_rows(store: Database, parent: int, name: str, view: Filter) -> Rows:
    """Copy what a reader sees of a board to another one of the same store; return that.

    Raises:
        UserError: a board has this name.
    """
    with store.transaction():
        if store.row("SELECT 1 FROM board WHERE name = ?", (name,)):
            raise UserError(
                f"there is a board {name!r} in this store already: choose another name for the fork"
            )
        number = store.value(
            "INSERT INTO board(name, parent, made_at) VALUES (?, ?, ?) RETURNING number",
            (name, parent, time.time()),
        )
        condition, values = view.sql(store)
        # `base` remembers the parent's version; copies are numbered in the parent's order.
        store.execute(
            f"INSERT INTO item(board, {_COPIED}, changed, base, synced)"
            f" SELECT ?, {_COPIED}, row_number() OVER (ORDER BY number), version, version FROM item"
            f" WHERE board = ? AND removed = 0 AND section <> 'summaries'{condition} ORDER BY number",
            (number, parent, *values),
        )
    return Rows(store, number)


def merge_rows(parent: Rows, child: Rows, on_conflict: OnConflict) -> Merge:
    """Bring what changed on a fork into the board that it was made of, all or nothing.

    A second merge brings only what changed since the first.

    Raises:
        UserError: the one is no fork of the other.
        Conflict: an item was changed on both, and `on_conflict` is `error`.
    """
    store = parent.store
    made_of = store.value("SELECT parent FROM board WHERE number = ?", (child.board,))
    if child.store is not store or made_of != parent.board:
        raise UserError(
            "the board to merge is no fork of this one: merge it into the board that it was made of"
        )
    added: list[str] = []
    updated: list[str] = []
    removed: list[str] = []
    conflicts: list[str] = []
    with parent.transaction():
        changed = store.rows(
            "SELECT c.id, c.number, c.version, c.base, c.removed, p.number, p.version, p.removed,"
            " p.data = c.data AND p.pinned = c.pinned AND coalesce(p.audience, '') = coalesce(c.audience, '')"
            " AND coalesce(p.sources, '') = coalesce(c.sources, '')"
            " FROM item c LEFT JOIN item p ON p.board = ? AND p.id = c.id"
            " WHERE c.board = ? AND c.section <> 'summaries' AND (c.base IS NULL OR c.version <> c.synced)"
            " ORDER BY c.number",
            (parent.board, child.board),
        )
        for item_id, number, _, base, deleted, theirs, their_version, theirs_deleted, same in changed:
            if theirs is None and deleted:
                continue
            if theirs is None:
                _copy(store, number, parent.board)
                added.append(item_id)
            elif deleted and theirs_deleted:
                pass
            elif their_version != base and not (same and theirs_deleted == deleted):
                conflicts.append(item_id)
                if on_conflict == "theirs":
                    _overwrite(store, parent.board, theirs, number)
            elif not same or deleted:
                _overwrite(store, parent.board, theirs, number)
                (removed if deleted else updated).append(item_id)
            # Both are now the same, or the difference was decided: count later changes from here.
            store.execute(
                "UPDATE item SET base = (SELECT version FROM item WHERE board = ? AND id = ?), synced = version"
                " WHERE number = ?",
                (parent.board, item_id, number),
            )
        if conflicts and on_conflict == "error":
            raise Conflict(
                f"changed on both boards: {', '.join(map(repr, conflicts[:5]))}"
                f"{' and more' if len(conflicts) > 5 else ''}; merge with on_conflict='ours' or 'theirs'"
            )
    return Merge(tuple(added), tuple(updated), tuple(removed), tuple(conflicts))


def _copy(store: Database, number: int, board: int) -> None:
    store.execute(
        f"INSERT INTO item(board, {_COPIED}, changed) SELECT ?, {_COPIED}, {NEXT} FROM item WHERE number = ?",
        (board, board, number),
    )


def _overwrite(store: Database, board: int, number: int, with_number: int) -> None:
    store.execute(
        "UPDATE item SET (data, tokens, pinned, audience, sources, image, removed) ="
        " (SELECT data, tokens, pinned, audience, sources, image, removed FROM item WHERE number = ?),"
        f" version = version + 1, changed = {NEXT}"
        " WHERE number = ?",
        (with_number, board, number),
    )
