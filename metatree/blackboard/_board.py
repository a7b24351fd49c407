"""The blackboard: items of several agents and runs, in sections, durable and shared by threads and processes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Self, Unpack

from metatree._util.named_file import typed_path
from metatree.blackboard._fork import Merge, OnConflict, fork_rows, merge_rows
from metatree.blackboard._images import Images
from metatree.blackboard._json_lines import read_lines
from metatree.blackboard._person import Watching
from metatree.blackboard._rows import Draft, Filter, find_or_make_board
from metatree.blackboard._seed_names import Sections
from metatree.blackboard.items import OpenBoard, Which
from metatree.errors import UserError
from metatree.protocols import GivenToTools
from metatree.settings import Settings
from metatree.storage.database import Database
from metatree.storage.postgres_address import is_postgres
from metatree.storage.store import Store

if TYPE_CHECKING:
    from metatree.trees.tree import Tree


class Blackboard(Sections, Watching, GivenToTools):
    """What agents share: questions, requests, trajectories, screenshots, and whatever sections they agree on.

    A call that adds or changes something has done so, durably, when it returns. Threads may share a board, processes
    may open the same file. `with` closes it.

    Args:
        place: None or `:memory:` for one in memory; a file, made when it is not there; `postgresql://…`, for several
            machines; a tree, whose memory it then lives in, or what that shares with other machines; a store.
        name: of the board; a place may hold several.
        agent: who writes here, and who reads: what names an audience is seen by that audience alone. Without an
            agent everything is seen.
        settings: None to read them from the environment and the file that it names.
        now: the clock, in seconds since the epoch.
        new_id: makes the ids of items.

    Raises:
        UserError: the place cannot be opened, or the file with question pairs in the settings cannot be read.

    Example:
        >>> board = Blackboard()
        >>> item = board.add_trajectories({"step": 1, "subtask": "log in", "thought": "not among the kept keys"})
        >>> board.trajectories_to_json()
        '[{"step": 1, "subtask": "log in"}]'
        >>> board.update(item.id, {"subtask": "sign in"}, if_version=1).version
        2
    """

    _is_opener = False

    def __init__(
        self,
        place: str | Path | Tree | Database | None = None,
        *,
        name: str = "main",
        agent: str = "",
        settings: Settings | None = None,
        now: Callable[[], float] = time.time,
        new_id: Callable[[], str] | None = None,
    ) -> None:
        settings = settings if settings is not None else Settings.load()
        store, owns_store = _open_store(place)
        self._view = Filter(reader=agent)
        self._is_opener = True
        self.agent = agent
        self._share = OpenBoard(
            store,
            owns_store,
            None,  # type: ignore[arg-type]  # the next statement makes it; the drafts of its first items need the rest
            Images(store, settings),
            settings,
            now,
            new_id or _random_id,
            name,
        )
        try:
            self._share.rows = find_or_make_board(store, name, first=self._first_drafts)
        except BaseException:
            if owns_store:
                store.close()
            raise

    def _first_drafts(self) -> list[Draft]:
        """Return the question pairs that a board begins with."""
        settings = self.settings
        if not settings.qa_pair_file:
            return []
        if not Path(settings.qa_pair_file).expanduser().is_file():
            raise UserError(
                f"`qa_pair_file` names {settings.qa_pair_file!r}, which is no file: change the setting"
            )
        pairs = read_lines(settings.qa_pair_file, settings.qa_pair_num)
        return [self._draft("questions", pair, {}) for pair in pairs]

    def view(self, agent: str | None = None, **which: Unpack[Which]) -> Blackboard:
        """Return this board as an agent sees it: only what `which` lets through and it may see.

        What is written there is on the board for all who may see it. A view of a view sees no more than that.
        """
        filter_ = self._filter(which)
        if agent is not None and not self._view.reader:
            filter_ = replace(filter_, reader=agent)
        elif agent is not None and agent != self._view.reader:
            raise UserError(
                f"a view of {self._view.reader!r} cannot become one of {agent!r}: ask the whole board"
            )
        return _seen(self._share, self.agent if agent is None else agent, filter_)

    def whole(self) -> Blackboard:
        """Return this board without the limits of its view, for code that keeps its own records on it.

        Views keep agents apart that play by the rules; this is no way around a lock.
        """
        return _seen(self._share, self.agent, Filter())

    def fork(self, name: str, *, agent: str | None = None) -> Blackboard:
        """Return a copy of what this view shows, under a name of its own in the same place, for a child agent.

        `merge` brings back what it changes. Ids, versions and authors stay the same; images are not copied.

        Raises:
            UserError: there is a board of this name.
        """
        rows = fork_rows(self._share.store, self._share.rows.board, name, self._view)
        share = replace(self._share, rows=rows, name=name, owns_store=False)
        agent = self.agent if agent is None else agent
        return _seen(share, agent, Filter(reader=agent))

    def merge(self, fork: Blackboard, *, on_conflict: OnConflict = "error") -> Merge:
        """Bring into this board what was added, changed and removed on a fork of it, all or nothing.

        Args:
            fork: made by `fork`; it may be used on and merged again.
            on_conflict: for items changed on both: keep `ours`, take `theirs`, or raise.

        Raises:
            Conflict: an item was changed on both.
            UserError: it is no fork of this board, or of another store.
        """
        return merge_rows(self._share.rows, fork._share.rows, on_conflict)

    def forget_removed(self) -> int:
        """Delete what is kept of removed items, and images that no item shows; return how many items.

        A reader that asks for `changes` since an older version does not learn of these removals.
        """
        forgotten = self._share.rows.forget_removed()
        self._share.images.sweep()
        return forgotten

    def close(self) -> None:
        """Close the file if this object opened it, not a view or a fork of it; a board in memory is gone then.

        Closing twice is allowed.
        """
        share = self._share
        if self._is_opener and not share.closed and share.owns_store:
            share.closed = True
            share.images.close()
            share.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        agent = f", agent={self.agent!r}" if self.agent else ""
        return (
            f"Blackboard({':memory:' if self.path is None else str(self.path)!r}, name={self.name!r}{agent})"
        )


def _seen(share: OpenBoard, agent: str, view: Filter) -> Blackboard:
    """Return an open board as an agent sees it."""
    board = object.__new__(Blackboard)
    board._share, board.agent, board._view = share, agent, view
    return board


def _open_store(place: str | Path | Tree | Database | None) -> tuple[Database, bool]:
    """Return the store at a place, and whether it was opened here."""
    if place is None:
        return Store.open(":memory:"), True
    if isinstance(place, Database):
        return place, False
    if is_postgres(place):
        from metatree.storage.postgres_store import PostgresStore

        return PostgresStore(str(place)), True
    if isinstance(place, str | Path):
        path = typed_path(place)
        if path.is_dir():
            memory = (path if path.name == ".metatree" else path / ".metatree") / "memory.db"
            if not memory.parent.is_dir():
                raise UserError(
                    f"{str(place)!r} is a folder without a tree: name a file in it, such as board.db"
                )
            path = memory
        return Store.open(":memory:" if str(place) == ":memory:" else path), True
    return (place.memory if place.shared is None else place.shared.boards), False


def _random_id() -> str:
    return os.urandom(8).hex()
