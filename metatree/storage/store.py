"""One SQLite file: how it is opened and locked, and how its tables are made."""

from __future__ import annotations

import os
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, ClassVar, Literal, Self
from weakref import WeakSet

from metatree._util.private import publish
from metatree.errors import BrokenStore, MetatreeError, StorageFull, UserError
from metatree.storage import trust as _trust
from metatree.storage._log_index import fill_holes, require_room
from metatree.storage._older import move_older
from metatree.storage.database import Database, T
from metatree.storage.errors import file_error, full, is_busy, replaced, store_error
from metatree.storage.schema import FILES, SQLITE
from metatree.storage.store_files import FIRST_NAME, LEAVE_LOG, check_files, folder_beside, whole

APPLICATION_ID = 0x6D747265
"""`mtre`: tells a metatree store from any other SQLite file."""

BUSY_TIMEOUT_S = 30.0
"""How long a writer waits for another process before it gives up."""

STORE_HEAD = 72
"""Bytes of a file by which `is_store_head` knows a store."""

_FAILURES = (sqlite3.Error, UnicodeEncodeError, OverflowError)
_opening = threading.Lock()
_open: WeakSet[Store] = WeakSet()
"""The stores in files that this process has open."""


def is_store_head(head: bytes) -> bool:
    """Whether a file that begins so, with `STORE_HEAD` bytes or more, says that it is a store of metatree."""
    return (
        head.startswith(b"SQLite format 3\0") and int.from_bytes(head[68:STORE_HEAD], "big") == APPLICATION_ID
    )


class Store(Database):
    """A SQLite file with the schema of metatree, used by all threads of one process through one connection.

    Every store has every table, whichever it uses. Statements of several threads take turns; a `transaction`
    keeps the others out until it ends. Reading never waits for the writer of another process.

    Example:
        >>> store = Store.open(":memory:")
        >>> with store.transaction():
        ...     _ = store.execute("INSERT INTO meta(key, value) VALUES ('colour', '\\"green\\"')")
        >>> store.rows("SELECT value FROM meta WHERE key = 'colour'")
        [('"green"',)]
    """

    shared: ClassVar[bool] = False
    now: ClassVar[str] = "metatree_now()"
    for_update: ClassVar[str] = ""
    for_share: ClassVar[str] = ""
    in_table_order: ClassVar[str] = " NOT INDEXED"

    def __init__(self, connection: sqlite3.Connection, path: Path | None, *, advice: str = "") -> None:
        """Use `Store.open`."""
        self.path = path
        self.read_only = False
        self.accepted = False
        """Whether somebody else wrote all of it: it was accepted where it cannot be written."""
        self.clock: Callable[[], float] = time.time
        """What `now` reads."""
        self._frozen = ""
        self._advice = f"; {advice}" if advice else ""
        self._connection = connection
        connection.create_function("metatree_now", 0, lambda: self.clock())
        self._lock = threading.RLock()
        self._in_transaction = False
        self._closed = False
        self._synchronous = "NORMAL"
        self._place = None if path is None else path.absolute()
        self._file_id = _file_id(self._place)
        self._looked_at = True, False
        self._is_own = False
        self.taken_over = False
        """Whether this user has accepted it while it was open; else what git put there stays so, though it is used."""

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        create: bool = True,
        busy_timeout_s: float = BUSY_TIMEOUT_S,
        advice: str = "put back a copy of it, or choose another path",
        synchronous: Literal["NORMAL", "FULL"] = "NORMAL",
        mode: int = 0o600,
        trust: bool = False,
    ) -> Self:
        """Open a store, or make one where there is no file yet.

        One that cannot be written, or whose folder cannot, is opened for reading alone.

        Args:
            path: a file, or `:memory:`.
            create: whether a missing file is made; its folder must exist.
            busy_timeout_s: how long a write waits for another process.
            advice: what to do when the file is damaged, now or when the damage is met; ends the message.
            mode: who may use a file that is made, before the umask; SQLite's files beside it get the same.
            synchronous: `NORMAL`: what was written survives the end of the process; `FULL`: of the machine, too.
            trust: whether it is used whoever made it; for files that the caller has from a place that it trusts.

        Raises:
            BrokenStore: the file is something else, damaged, or written by a newer version.
            UntrustedStore: somebody else made it; see `metatree.storage.trust`.
            UserError: the file cannot be opened or made.
            StorageFull: there is no room for it.
        """
        file = None if str(path) == ":memory:" else Path(path)
        if file is not None:
            check_files(file)
        if file is not None and not file.exists():
            if not create:
                raise UserError(f"there is no file {str(file)!r}")
            _make(file, mode)
        with _opening:
            looked_at = (True, False) if file is None else cls._look_at(file)
            alone, by_git = (True, False) if trust else looked_at
            read_only = file is not None and not (
                alone
                and writable(file)
                and (trust or not _trust.is_beside_log_of_another(file, by_git=by_git))
            )
            if file is not None and not read_only:
                require_room(file)
            try:
                connection = sqlite3.connect(
                    ":memory:" if file is None else reading_only(file) if read_only else whole(file),
                    uri=read_only,
                    timeout=busy_timeout_s,
                    isolation_level=None,
                    check_same_thread=False,
                    cached_statements=256,
                )
            except sqlite3.Error as exc:
                raise store_error(exc, file, read_only=read_only) from exc
            store = cls(connection, file, advice=advice)
            store._looked_at = looked_at
            if file is not None:
                _open.add(store)
        store.read_only = read_only
        store._synchronous = synchronous
        try:
            store._prepare(synchronous, trust, alone, by_git)
            store._is_own = not (store.read_only or store.accepted)
        except BaseException:
            store.close()
            raise
        return store

    @staticmethod
    def _look_at(file: Path) -> tuple[bool, bool]:
        """Say what `trust.is_known_alone` and `is_of_git` say, who are not asked again of a file that is open here.

        They open the file and close it, and with that POSIX takes all locks of this process away, those of SQLite
        too: then another process takes itself for the last one, and deletes the log that is in use here.
        """
        place = _file_id(file)
        known = [store._looked_at for store in _open if not store.closed and store._file_id == place]
        if known:
            return all(alone for alone, _ in known), any(by_git for _, by_git in known)
        return _trust.is_known_alone(file), _trust.is_of_git(file)

    def _prepare(self, synchronous: str, trust: bool, alone: bool, by_git: bool) -> None:
        self.execute("PRAGMA trusted_schema=OFF")
        self.execute("BEGIN")  # one look, whatever another process makes of a new file meanwhile
        version = self._known_version(trust, alone, by_git)
        self.execute("COMMIT")
        FILES.check(max(version, FILES.first), self.name)
        if self.read_only and version < FILES.version:
            raise UserError(
                f"{self.name} was written by an older version and cannot be brought up to date where it is:"
                " copy it to a folder that can be written, or build the tree elsewhere with --tree"
            )
        if self.path is not None and not self.read_only:
            self._use_wal()
            self._identity()  # which opens the log
            fill_holes(self.path)
        for pragma in (
            f"synchronous={synchronous}",
            "temp_store=MEMORY",
            "foreign_keys=OFF",
            "cache_size=-16000",
        ):
            self.execute(f"PRAGMA {pragma}")
        if version < FILES.version:
            self._bring_up_to_date()
        tables = "SELECT name FROM sqlite_master WHERE type = 'table'"
        if missing := FILES.tables - {name for (name,) in self.rows(tables)}:
            raise BrokenStore(
                f"{self.name} lacks a part of its schema (table {min(missing)}){self._advice}",
                path=self.name,
            )

    def _known_version(self, trust: bool, alone: bool, by_git: bool) -> int:
        """Return the version of the schema of a store that may be used."""
        application, version = self._identity()
        if application not in (0, APPLICATION_ID) or (application == 0 and not self._is_new()):
            raise BrokenStore(
                f"{self.name} is a SQLite file of another program: move it away, or choose another path",
                path=self.name,
                reason="foreign",
            )
        if self.path is not None and not trust:
            path = self.path
            self.accepted = not self._run(
                lambda: _trust.check(self._connection, path, alone=alone, by_git=by_git)
            )
            if self.accepted and not self.read_only:  # nothing was taken out of it when it was accepted
                raise _trust.untrusted(path)
        elif self.path is not None and not self._run(lambda: _trust.is_plain(self._connection)):
            raise BrokenStore(
                f"{self.name} defines what no store of metatree does{self._advice}", path=self.name
            )
        if self.path is not None and (version == 0 or self._is_new()):
            raise BrokenStore(f"{self.name} is empty: what it held is lost{self._advice}", path=self.name)
        return version

    def _identity(self) -> tuple[int, int]:
        return self.value("PRAGMA application_id"), self.value("PRAGMA user_version")

    def _is_new(self) -> bool:
        try:
            with _trust.bounded(self._connection):
                return _trust.is_new(self._connection)
        except sqlite3.Error as exc:
            if _trust.is_excess(exc, self._connection):
                return False
            raise self._translated(exc) from exc

    def _use_wal(self) -> None:
        # SQLite answers "locked" at once here, whatever the busy timeout, when two processes open a new file.
        deadline = time.monotonic() + BUSY_TIMEOUT_S
        while True:
            try:
                if self._connection.execute("PRAGMA journal_mode").fetchone() != ("wal",):
                    self._connection.execute(LEAVE_LOG)  # which it has not, but then it has no journal either
                    self._connection.execute("PRAGMA journal_mode=WAL")
                return
            except sqlite3.Error as exc:
                if not is_busy(exc) or time.monotonic() > deadline:
                    raise self._translated(exc) from exc
                time.sleep(0.01)

    def _bring_up_to_date(self, place: Path | None = None) -> None:
        with self.transaction():
            version = self._identity()[1]  # another process may have been faster
            if 0 < version < FILES.first:
                move_older(self)
                version = FILES.first
            for statement in FILES.statements(version or None, SQLITE):
                self.execute(statement)
            self.execute(f"PRAGMA user_version={FILES.version}")
            self.execute(f"PRAGMA application_id={APPLICATION_ID}")
            if version == 0:
                _trust.sign(self, place)

    @property
    def name(self) -> str:
        return ":memory:" if self.path is None else str(self.path)

    def rows(self, sql: str, parameters: Sequence[Any] | dict[str, Any] = ()) -> list[tuple[Any, ...]]:
        """Run one statement and return all its rows.

        Raises:
            BrokenStore: the file is damaged.
            TransientError: another process kept the file locked for longer than the busy timeout.
        """
        with self._lock:  # written out, as in `execute`: a function more costs a fifth of a short statement
            try:
                return self._connection.execute(sql, parameters).fetchall()
            except _FAILURES as exc:
                raise self._translated(exc) from exc

    def execute(self, sql: str, parameters: Sequence[Any] | dict[str, Any] = ()) -> int:
        """Run one statement and return the number of rows that it changed; raises as `rows` does."""
        with self._lock:
            try:
                return self._connection.execute(sql, parameters).rowcount
            except _FAILURES as exc:
                raise self._translated(exc) from exc

    def execute_many(self, sql: str, parameters: Iterable[Sequence[Any]]) -> int:
        """Run one statement for each set of parameters and return the number of changed rows; raises as `rows` does."""
        return self._run(lambda: self._connection.executemany(sql, parameters).rowcount)

    def records(self, sql: str, parameters: Sequence[Any] = ()) -> Iterator[dict[str, Any]]:
        """Yield the rows of one statement one by one, by the names of their columns; raises as `rows` does.

        Memory stays flat. Other threads wait until the last row was taken.
        """
        with self._lock:
            try:
                cursor = self._connection.execute(sql, parameters)
                names = [column[0] for column in cursor.description]
                for row in cursor:
                    yield dict(zip(names, row, strict=True))
            except _FAILURES as exc:
                raise self._translated(exc) from exc

    def _run(self, statement: Callable[[], T]) -> T:
        """Run a statement when it is this thread's turn, and turn SQLite's errors into ours."""
        with self._lock:
            try:
                return statement()
            except _FAILURES as exc:
                raise self._translated(exc) from exc

    def check_place(self) -> None:
        """Check that its file is where it was opened, as before whatever is read or written beside it by name.

        Raises:
            StoreReplaced: it is not, as where git put a link in the place of a folder above it.
        """
        if _file_id(self._place) != self._file_id:
            raise replaced(self.path)

    @property
    def images_folder(self) -> Path | None:  # type: ignore[override]  # it is looked for each time
        """The folder beside its file that the images of its boards lie in: `board.db.images` beside `board.db`.

        Raises:
            StoreReplaced: as `check_place`.
            UserError: a link is in the place of the folder, or of `.metatree`.
        """
        if self._place is None:
            return None
        folder = folder_beside(self._place, ".images")
        self.check_place()
        return folder

    @staticmethod
    def json_each(array: str) -> str:
        return f"json_each({array})"

    def attempt(self, work: Callable[[bool], T]) -> T:
        return work(False)

    @contextmanager
    def transaction(self, *, alone: bool = True) -> Iterator[None]:
        """Keep all statements of the block, or none of them; a block inside a block belongs to the outer one.

        The write lock is taken at once, so what is read inside is still true when it is written.
        """
        with self._lock:
            if self._in_transaction:
                yield
                return
            self.check_place()  # SQLite would write to the file that has no name any more
            self.execute("BEGIN IMMEDIATE")
            self._in_transaction = True
            try:
                yield
                self.execute("COMMIT")
            except BaseException:
                # SQLite may have rolled back on its own, for example on a full disk.
                with suppress(MetatreeError):
                    self.execute("ROLLBACK")
                raise
            finally:
                self._in_transaction = False

    @contextmanager
    def durable(self) -> Iterator[None]:
        """Have what the block commits survive the end of the machine, too, with all that was committed before.

        Each commit waits for the disk (0.3 ms to some 10 ms). A block inside a transaction leaves it as it is.
        """
        with self._lock:
            if self._in_transaction or self._synchronous == "FULL" or self.read_only:
                yield
                return
            self.execute("PRAGMA synchronous=FULL")
            self._synchronous = "FULL"
            try:
                yield
            finally:
                self._synchronous = "NORMAL"
                self.execute("PRAGMA synchronous=NORMAL")

    @contextmanager
    def turn(self) -> Iterator[bool]:
        """Keep the other threads of this process out; yields whether a transaction of this thread is open."""
        with self._lock:
            yield self._in_transaction

    def version(self) -> int:
        """Return a number that changes when another connection has written to the file."""
        return int(self.rows("PRAGMA data_version")[0][0])

    def freeze(self, why: str = "") -> None:
        """Refuse to write from now on; `why` is the message for a writer."""
        self.execute("PRAGMA query_only=ON")
        self.read_only = True
        self._frozen = why

    def check(self) -> None:
        """Read the whole file and raise `BrokenStore` when it is damaged anywhere; about 1 s for 500 MB."""
        report = self.rows("PRAGMA quick_check(1)")
        if report != [("ok",)]:
            text = str(report[0][0]).splitlines()[-1] if report else "unreadable"
            raise BrokenStore(f"{self.name} is damaged ({text}){self._advice}", path=self.name)

    def copy_to(self, target: sqlite3.Connection) -> None:
        """Copy it page for page, as it is at one moment; whoever else uses this object waits until it is done."""
        with self._lock:
            self._connection.backup(target)

    def size_bytes(self) -> int:
        """Return the size of the data, without what waits in the write-ahead log's file."""
        return int(self.value("PRAGMA page_count") * self.value("PRAGMA page_size"))

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed

    def close(self) -> None:
        """Close the connection; closing twice is allowed."""
        with self._lock:
            was_open, self._closed = not self._closed, True
            self._connection.close()
        # Another file may have come in its place, but not under the number of one that was open.
        if was_open and self._is_own and self.path is not None and _file_id(self._place) == self._file_id:
            by_git = self._looked_at[1] and not self.taken_over
            (_trust.keep_refused if by_git else _trust.keep_left)(self.path)

    def _translated(self, exc: Exception) -> MetatreeError:
        if self._closed:
            return UserError(f"{self.name} is closed: open it again")
        if not isinstance(exc, sqlite3.Error):
            return UserError(f"{self.name} cannot keep a value: {exc}")
        if self._frozen and getattr(exc, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_READONLY:
            return UserError(self._frozen)
        return store_error(exc, self.path, read_only=self.read_only, advice=self._advice)


def writable(file: Path) -> bool:
    """Whether a file can be written, and others beside it, as SQLite needs it."""
    return os.access(file.absolute().parent, os.W_OK) and (not file.exists() or os.access(file, os.W_OK))


def _make(file: Path, mode: int) -> None:
    """Make a store as a whole under another name first: a file that is there and empty has lost what it had."""
    part = file.with_name(FIRST_NAME.format(name=file.name, digits=secrets.token_hex(4)))
    try:
        made = os.fdopen(os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode), "rb", buffering=0)
        with made, Store(sqlite3.connect(whole(part), isolation_level=None), part) as store:
            store.execute("PRAGMA synchronous=OFF")  # the disk is waited for once, at the end
            # What does not fit fails here. A log is moved into the file when that is closed, which says nothing when
            # there is no room for it, and the log goes with the name.
            store.execute("PRAGMA journal_mode=MEMORY")
            _require_same(store, made)
            store._bring_up_to_date(file)
        _sync(part)
        publish(part, file)
        sync_folder(file.absolute().parent)
    except OSError as exc:
        raise file_error(exc, "cannot make", file) from exc
    except StorageFull as exc:
        raise full(file) from exc
    finally:
        for end in ("", "-wal", "-shm"):
            part.with_name(part.name + end).unlink(missing_ok=True)


def _require_same(store: Store, made: IO[bytes]) -> None:
    """Refuse to go on when SQLite has another file open than the one that was made: it would be given the mark.

    Who may write in a folder can exchange its files between the two.
    """
    assert store.path is not None
    number = 1 + secrets.randbelow(1 << 30)
    store.execute(f"PRAGMA user_version={number}")
    if made.read(100)[60:64] != number.to_bytes(4, "big"):
        raise UserError(
            f"another user exchanges files in {str(store.path.parent)!r} just now: keep the tree elsewhere (--tree)"
        )
    store.execute("PRAGMA user_version=0")


def _file_id(file: Path | None) -> tuple[int, int] | None:
    """Return what tells a file from another one under the same name; None when there is none."""
    try:
        state = None if file is None else file.stat()
    except OSError:
        return None
    return None if state is None else (state.st_dev, state.st_ino)


def sync_folder(folder: Path) -> None:
    """Have a name that was made in a folder survive the end of the machine, where the system can."""
    with suppress(OSError):
        _sync(folder)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def reading_only(file: Path) -> str:
    """Return the URI to open a file that cannot be written, without a file beside it that would keep its owner out."""
    wal = file.with_name(file.name + "-wal")
    # Without a log there is nothing to share with a writer; SQLite would want to make one nevertheless.
    quiet = not wal.exists() or wal.stat().st_size == 0
    return file.absolute().as_uri() + ("?mode=ro&immutable=1" if quiet else "?mode=ro")
