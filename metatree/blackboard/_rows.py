"""The rows of one board: added in batches, changed under a condition, read through a filter."""

from __future__ import annotations

import json
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from metatree.blackboard._item import Item, estimate
from metatree.blackboard._notify import Notifier
from metatree.blackboard._words import Words
from metatree.errors import Conflict, TransientError, UnknownItem, UserError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from metatree.storage.database import Database

_COLUMNS: Final = (
    "id, section, data, number, version, changed, at, agent, run, step, round,"
    " sources, audience, pinned, image"
)
NEXT: Final = "(SELECT coalesce(max(changed), 0) + 1 FROM item WHERE board = ?)"
_INSERT: Final = (
    "INSERT INTO item(board, id, section, data, tokens, at, agent, run, step, round, sources, audience, pinned, image,"
    f" removed, version, changed) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 1, {NEXT})"
    " ON CONFLICT(board, id) DO NOTHING"
    " RETURNING number, changed, EXISTS(SELECT 1 FROM board_waiter)"
)
_LARGEST: Final = 2**63 - 1
_PAGE: Final = 1_000
_NO_BOARD: Final = 0
"""Number of a board that is not there; none has it."""


class Draft(NamedTuple):
    """An item that is about to be added; its fields are those of an `Item`, in that order, without the board's own."""

    id: str
    section: str
    json: str
    at: float
    agent: str = ""
    run: str = ""
    step: int | None = None
    round: int | None = None
    sources: tuple[str, ...] = ()
    audience: tuple[str, ...] | None = None
    pinned: bool = False
    image: str = ""

    def item(self, number: int, changed: int) -> Item:
        """Return it as it is on the board."""
        values: tuple[Any, ...] = (*self[:3], number, 1, changed, *self[3:])
        return Item(*values)


@dataclass(slots=True)
class _Ticket:
    drafts: Sequence[Draft]
    if_version: int | None
    made: list[tuple[int, int] | None] | None = None
    """Number and version for each draft, None for an id that is there already."""
    error: BaseException | None = None


@dataclass(frozen=True, slots=True)
class Filter:
    """Which items are meant; every field that is set must hold."""

    sections: tuple[str, ...] | None = None
    agents: tuple[str, ...] | None = None
    """Written by one of them."""
    runs: tuple[str, ...] | None = None
    rounds: tuple[int, ...] | None = None
    ids: tuple[str, ...] | None = None
    pinned: bool | None = None
    since: float | None = None
    """Added at this time or later, in seconds since the epoch."""
    until: float | None = None
    """Added before this time."""
    reader: str = ""
    """Only what this agent may see: no audience is named, or it is in it, or it wrote the item."""

    def sql(self, store: Database) -> tuple[str, list[Any]]:
        """Return the condition and its parameters, as a store says it."""
        terms: list[str] = []
        values: list[Any] = []
        for column, allowed_values in (
            ("section", self.sections),
            ("agent", self.agents),
            ("run", self.runs),
            ("round", self.rounds),
            ("id", self.ids),
        ):
            if allowed_values is not None and len(allowed_values) == 1:
                terms.append(f"{column} = ?")
                values.append(allowed_values[0])
            elif allowed_values is not None:
                terms.append(f"{column} IN ({', '.join('?' * len(allowed_values)) or 'NULL'})")
                values += allowed_values
        for term, value in (("pinned = ?", self.pinned), ("at >= ?", self.since), ("at < ?", self.until)):
            if value is not None:
                terms.append(term)
                values.append(value)
        if self.reader:
            audience = store.json_each("audience")
            terms.append(
                f"(audience IS NULL OR agent = ? OR EXISTS (SELECT 1 FROM {audience} WHERE value = ?))"
            )
            values += [self.reader, self.reader]
        return "".join(f" AND {term}" for term in terms), values

    def within(self, other: Filter) -> Filter:
        """Return the filter that lets through what both do."""
        both: dict[str, Any] = {}
        for each in fields(self):
            mine, yours = getattr(self, each.name), getattr(other, each.name)
            if mine is None or yours is None or mine == "" or yours == "":
                both[each.name] = yours if mine is None or mine == "" else mine
            elif isinstance(mine, tuple):
                both[each.name] = tuple(value for value in mine if value in yours)
            elif each.name == "since":
                both[each.name] = max(mine, yours)
            elif each.name == "until":
                both[each.name] = min(mine, yours)
            elif mine == yours:
                both[each.name] = mine
            else:
                both["ids"] = ()  # two readers, or pinned and not pinned: nothing is both
        return Filter(**both)


@dataclass(slots=True)
class Rows:
    """One board in a store, shared by all who look at it in this process. Threads may use it at once.

    Adding is one commit; what several threads add at the same moment is one commit together, made by the first of
    them, so that processes contend for the file less often.
    """

    store: Database
    board: int
    notifier: Notifier = field(init=False)
    words: Words = field(init=False)
    """What `find` looks in."""
    _queue: deque[_Ticket] = field(default_factory=deque)
    _process: int = field(default_factory=os.getpid)

    def __post_init__(self) -> None:
        self.notifier = Notifier(self.store, self.board)
        self.words = Words(self)

    # writing

    def add(self, drafts: Sequence[Draft], *, if_version: int | None = None) -> list[tuple[int, int] | None]:
        """Add items in order, all or none; return number and version of each, None for an id that is there.

        Raises:
            Conflict: the board is not at the version `if_version`.
        """
        self._check_process()
        ticket = _Ticket(drafts, if_version)
        self._queue.append(ticket)
        with self.store.turn() as inside_transaction:
            if ticket.made is None and ticket.error is None:
                if inside_transaction:  # the others must not hang on whether it is kept
                    self._queue.remove(ticket)
                    self._write([ticket])
                else:
                    batch = []
                    while self._queue:
                        batch.append(self._queue.popleft())
                    self._write(batch)
        if ticket.error is not None:
            raise ticket.error
        assert ticket.made is not None
        return ticket.made

    def _write(self, batch: list[_Ticket]) -> None:
        """Write what a batch holds, in one commit."""
        try:
            if len(batch) == 1 and len(batch[0].drafts) == 1 and batch[0].if_version is None:
                waited_for = self._insert(batch[0])  # one statement is a transaction by itself
            else:
                waited_for = False
                with self.store.transaction():
                    for ticket in batch:
                        waited_for |= self._insert(ticket)
        except Exception as exc:
            for ticket in batch:
                ticket.made, ticket.error = None, exc
            return
        except BaseException:
            for ticket in batch:
                ticket.error = TransientError(
                    "writing to the board was interrupted: look whether the item is there"
                )
            raise
        if waited_for:
            self.notifier.notify()

    def _insert(self, ticket: _Ticket) -> bool:
        """Insert what a ticket holds; return whether somebody waits for changes."""
        waited_for = False
        if ticket.if_version is not None and (version := self.version()) != ticket.if_version:
            ticket.error = Conflict(
                f"the board is at version {version}, not {ticket.if_version}: read what changed and try again",
                expected=ticket.if_version,
                found=version,
            )
            return False
        numbers: list[tuple[int, int] | None] = []
        for draft in ticket.drafts:
            sources = json.dumps(draft.sources) if draft.sources else None
            audience = None if draft.audience is None else json.dumps(draft.audience)
            values = (*draft[:3], estimate(draft.json) + 1, *draft[3:8], sources, audience, *draft[10:])
            rows = self.store.rows(_INSERT, (self.board, *values, self.board))
            numbers.append((rows[0][0], rows[0][1]) if rows else None)
            waited_for = waited_for or bool(rows and rows[0][2])
        ticket.made = numbers
        return waited_for

    def change(
        self,
        item_id: str,
        make: Callable[[Item], dict[str, Any]],
        *,
        visible: Filter,
        if_version: int | None = None,
    ) -> Item:
        """Change columns of one item: `make` gets the item as it is and returns column -> value.

        Raises:
            UnknownItem: there is no such item, or the filter hides it.
            Conflict: the item is not at the version `if_version`.
        """
        self._check_process()
        with self.store.transaction():
            item = self.get(item_id, visible)
            if if_version is not None and item.version != if_version:
                raise Conflict(
                    f"item {item_id!r} is at version {item.version}, not {if_version}: read it and try again",
                    expected=if_version,
                    found=item.version,
                )
            columns = make(item)
            if columns:
                names = ", ".join(f"{name} = ?" for name in columns)
                self.store.execute(
                    f"UPDATE item SET {names}, version = version + 1, changed = {NEXT} WHERE number = ?",
                    (*columns.values(), self.board, item.number),
                )
                if not columns.get("removed"):
                    item = self.get(item_id, visible=Filter())
        if columns:
            self.notifier.notify()
        return item

    def remove_all(self, which: Filter) -> int:
        """Remove all items that a filter lets through; return how many."""
        self._check_process()
        where, values = self._where(which)
        with self.store.transaction():
            removed = self.store.execute(
                f"UPDATE item SET removed = 1, data = '', tokens = 0, image = '', version = version + 1,"
                f" changed = {NEXT} WHERE {where}",
                (self.board, *values),
            )
        if removed:
            self.notifier.notify()
        return removed

    def forget_removed(self) -> int:
        """Delete the rows of removed items, but for the one that carries the board's version; return how many."""
        self._check_process()
        with self.store.transaction():
            return self.store.execute(
                "DELETE FROM item WHERE board = ? AND removed = 1 AND number <>"
                " (SELECT number FROM item WHERE board = ? ORDER BY changed DESC, number DESC LIMIT 1)"
                " AND number < (SELECT max(number) FROM item)",
                (self.board, self.board),
            )

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Keep all changes of the block, or none, and tell those who wait afterwards."""
        self._check_process()
        with self.store.transaction():
            yield
        self.notifier.notify()

    # reading

    def version(self) -> int:
        """Return the version of the board: raised by every change, 0 for one that was never written to."""
        return int(
            self.store.value("SELECT coalesce(max(changed), 0) FROM item WHERE board = ?", (self.board,))
        )

    def get(self, item_id: str, visible: Filter) -> Item:
        """Return an item. Raises UnknownItem."""
        where, values = self._where(visible)
        row = self.store.row(f"SELECT {_COLUMNS} FROM item WHERE {where} AND id = ?", (*values, item_id))
        if row is None:
            raise UnknownItem(item_id)
        return _item(row)

    def select(
        self, which: Filter, *, limit: int | None = None, newest: bool = False, before: int | None = None
    ) -> list[Item]:
        """Return items, oldest first; with `newest` the newest of them first; `before` a number."""
        where, values = self._where(which)
        if before is not None:
            where += " AND number < ?"
            values.append(before)
        rows = self.store.rows(
            f"SELECT {_COLUMNS} FROM item{self._plan(which)} WHERE {where}"
            f" ORDER BY number {'DESC' if newest else ''} LIMIT ?",
            (*values, _LARGEST if limit is None else limit),
        )
        return [_item(row) for row in rows]

    def texts(self, which: Filter) -> list[str]:
        """Return what items say, as JSON, oldest first; quicker than `select`."""
        where, values = self._where(which)
        return [
            row[0] for row in self.store.rows(f"SELECT data FROM item WHERE {where} ORDER BY number", values)
        ]

    def count(self, which: Filter) -> int:
        """Return how many items a filter lets through."""
        where, values = self._where(which)
        return int(self.store.value(f"SELECT count(*) FROM item WHERE {where}", values))

    def count_and_version(self) -> tuple[int, int]:
        """Return how many items the board has, and its version at the same moment."""
        items, version = self.store.rows(
            "SELECT (SELECT count(*) FROM item WHERE board = ? AND removed = 0),"
            " (SELECT coalesce(max(changed), 0) FROM item WHERE board = ?)",
            (self.board, self.board),
        )[0]
        return int(items), int(version)

    def numbers(self, which: Filter) -> set[int]:
        """Return the numbers of the items that a filter lets through."""
        where, values = self._where(which)
        return {number for (number,) in self.store.rows(f"SELECT number FROM item WHERE {where}", values)}

    def changed_texts(self, since: tuple[int, int], limit: int) -> list[tuple[int, int, int, str]]:
        """Return number, version, whether it was removed, and text of what changed after a version and number."""
        rows: list[tuple[int, int, int, str]] = self.store.rows(
            "SELECT number, changed, removed, data FROM item WHERE board = ? AND (changed, number) > (?, ?)"
            " ORDER BY changed, number LIMIT ?",
            (self.board, *since, limit),
        )
        return rows

    def by_number(self, numbers: Sequence[int]) -> Iterator[Item]:
        """Yield items by their numbers, in that order; those that are there."""
        for begin in range(0, len(numbers), _PAGE):
            page = numbers[begin : begin + _PAGE]
            marks = ", ".join("?" * len(page))
            rows = self.store.rows(
                f"SELECT {_COLUMNS} FROM item WHERE removed = 0 AND number IN ({marks})", page
            )
            items = {row[3]: _item(row) for row in rows}
            yield from (items[number] for number in page if number in items)

    def weigh(self, which: Filter, most: int) -> tuple[int, int]:
        """Return how many items there are and how many tokens they take, each counted for at most `most`."""
        where, values = self._where(which)
        ((items, tokens),) = self.store.rows(
            "SELECT count(*), coalesce(sum(CASE WHEN tokens < ? THEN tokens ELSE ? END), 0) FROM item"
            f" WHERE {where}",
            (most, most, *values),
        )
        return int(items), int(tokens)

    def changes(self, since: int, which: Filter, limit: int | None = None) -> list[Item]:
        """Return what changed after a version, in the order of the changes; removed items too."""
        where, values = self._where(which, removed=True)
        sql = f"SELECT {_COLUMNS} FROM item WHERE {where}"
        rows = self.store.rows(
            f"{sql} AND changed > ? ORDER BY changed, number LIMIT ?",
            (*values, since, _LARGEST if limit is None else limit),
        )
        if limit is not None and len(rows) == limit > 0:  # what changed together is reported together
            rows += self.store.rows(
                f"{sql} AND changed = ? AND number > ? ORDER BY number", (*values, rows[-1][5], rows[-1][3])
            )
        return [_item(row) for row in rows]

    def last_round(self) -> int:
        """Return the number of the latest round of requests, 0 when there is none."""
        where, values = self._where(Filter(sections=("requests",)))
        return int(self.store.value(f"SELECT coalesce(max(round), 0) FROM item WHERE {where}", values))

    def last_id(self, prefix: str) -> str | None:
        """Return the greatest id that begins with a text, also of a removed item."""
        last: str | None = self.store.value(
            "SELECT max(id) FROM item WHERE board = ? AND id >= ? AND id < ?",
            (self.board, prefix, prefix + "\U0010ffff"),
        )
        return last

    def find_ids(self, prefix: str, which: Filter) -> list[str]:
        """Return up to three ids that begin with a text."""
        where, values = self._where(which)
        rows = self.store.rows(
            f"SELECT id FROM item WHERE {where} AND id >= ? AND id < ? LIMIT 3",
            (*values, prefix, prefix + "\U0010ffff"),
        )
        return [row[0] for row in rows]

    def _where(self, which: Filter, *, removed: bool = False) -> tuple[str, list[Any]]:
        """Return the condition that items of this board are meant, and its parameters.

        Args:
            which: what must hold besides.
            removed: whether removed items are meant, too.
        """
        condition, values = which.sql(self.store)
        return f"board = ?{'' if removed else ' AND removed = 0'}{condition}", [self.board, *values]

    def _plan(self, which: Filter) -> str:
        """Return how items are to be found in their order.

        The indexes have them in order only within one section. For several, SQLite would sort the whole board at each
        page of a listing, where reading the table in its own order ends with the page.
        """
        one_section = which.sections is not None and len(which.sections) == 1
        return "" if one_section or which.ids is not None else self.store.in_table_order

    def _check_process(self) -> None:
        if os.getpid() != self._process:
            raise UserError("this board was opened before the process forked: open it again in the child")


def _item(row: tuple[Any, ...]) -> Item:
    values: list[Any] = list(row)
    values[11] = () if row[11] is None else tuple(json.loads(row[11]))
    values[12] = None if row[12] is None else tuple(json.loads(row[12]))
    values[13] = bool(row[13])
    return Item(*values)


def find_or_make_board(
    store: Database,
    name: str,
    *,
    first: Callable[[], Iterable[Draft]],
) -> Rows:
    """Return the rows of a board by its name, made when it is not there.

    Args:
        store: where it is.
        name: its name, unique in the store.
        first: gives the items that a board begins with; they are there, all of them, whenever the board is.

    In a store that can only be read, a board that is not there is one without items.
    """
    by_name = "SELECT number FROM board WHERE name = ?"
    number = store.value(by_name, (name,))
    if number is not None:
        return Rows(store, number)
    if store.read_only:
        return Rows(store, _NO_BOARD)
    drafts = list(first())
    with store.transaction():
        number = store.value(by_name, (name,))
        if number is not None:  # another process was faster
            return Rows(store, number)
        number = store.value(
            "INSERT INTO board(name, made_at) VALUES (?, ?) RETURNING number", (name, time.time())
        )
        board = Rows(store, number)
        if drafts:
            board._insert(_Ticket(drafts, None))
    if store.path is not None:
        store.rows("PRAGMA wal_checkpoint(TRUNCATE)")  # the schema need not lie in the file and in its log
    return board
