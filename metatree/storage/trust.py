"""Trust in stores: a file is used only if this user made it on this machine, or accepted it.

A repository, an archive or a shared disk may bring a `.metatree` that somebody else prepared. What is in it could start
programs (the command of an MCP server), read files elsewhere, log people in, or speak in somebody's name. So each
store carries a *mark*: an HMAC under this user's key (`metatree.storage.user_key`), over the store's own random id,
the sources that it names, and where it lies. Another key, another list of sources or another place has another mark.

There are two marks, and one that fits is enough: over the path (below the home folder: relative to it, so a home may
move) and over the inode, so a folder may be renamed. Files that cannot be written are accepted by a digest
of them in the user's own folder.

Lost: a list of trusted paths alone (`git pull` replaces files below a path that was trusted, and git overwrites ignored
files without a word); a digest of the whole file (it changes with each write); the inode alone (a restored home has
others).
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import mmap
import os
import re
import secrets
import shlex
import sqlite3
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final, Protocol

from metatree._util.private import private_folder
from metatree.errors import UntrustedStore, UserError
from metatree.storage._git_index import is_object, put_by_git, work_trees
from metatree.storage.errors import primary_code
from metatree.storage.store_files import is_exempt, is_of_another
from metatree.storage.user_key import config_folder, user_key

NAMED_IN: Final = "named_in"
"""Option of a source that is a command: the folder in which it was named, and is started."""
FACTS: Final = "trust:"
"""How the keys of the table `meta` begin under which the id and the marks of a store are kept."""
IMPORTED_RUN: Final = "imported-run:"
"""With the id of a run behind it: that somebody else began, with what is said to be a person's yes, and boards."""
IMPORTED_NODE: Final = "imported-node:"
"""With the id of a node behind it: that somebody else made, so nothing is asked, fetched or looked at for it.

Lost: a word in the node itself (replication compares rows to the letter, and whoever made the node wrote it), and the
nodes of sources alone (a page that a link led to is a node of the memory, and has links of its own).
"""
NAMED_FILE: Final = "named-file:"
"""With a path behind it: a file that a program of this user named to a tree made by hand; alone: such a list is kept.

Lost: a mark at each node that was imported (replication compares rows to the letter), the rules for names of secret
files (what is private has any name), and no file at all for nodes that were imported into any tree.
"""
OFFERED: Final = "offered_sources"
"""The fact that keeps what sources an index of somebody else named, when it was built anew in this user's name."""
_META: Final = "CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID"
LONGEST_VALUE: Final = 10_000_000
_LONGEST_STATEMENT: Final = 10_000
_OPERATIONS: Final = 20_000
"""Ten times what it takes to read the tables of a service, and one row; a schema takes 50 times its size of memory."""
_PLAIN: Final = re.compile(
    r"CREATE TABLE (?!.*\b(AS|CHECK|GENERATED|COLLATE|REFERENCES)\b)"
    r"|CREATE (UNIQUE )?INDEX \w+ ON \w+\([\w, ]+\)(\s+WHERE [\w '=]+( IN \([\w', ]+\))?)?$",
    re.IGNORECASE | re.DOTALL,
)
"""How all definitions of ours are: no trigger, view or virtual table, nothing that computes a value or compares texts
otherwise than to the letter."""
_MOST_BESIDE: Final = 20
"""Stores beside one that git has put there, which are refused with it, besides those of a tree."""
_OF_A_TREE: Final = ("index.db", "memory.db", "service.db", "agents.db")
_MOST_LEFT: Final = 1_000
"""Stores of which it is known how they were left; of others git is asked once more."""
_NAME: Final = re.compile(r"[a-z][a-z0-9_]*")
"""How all of ours are called: SQLite finds a table in any case, and a question to its list of tables does not."""
_SEAL: Final = "seal"


class _Store(Protocol):
    """What `sign` needs of a store."""

    path: Path | None

    def transaction(self) -> contextlib.AbstractContextManager[None]: ...
    def execute(self, sql: str, parameters: Any = ()) -> int: ...
    def rows(self, sql: str, parameters: Any = ()) -> list[tuple[Any, ...]]: ...


def check(
    connection: sqlite3.Connection, file: Path, *, alone: bool | None = None, by_git: bool | None = None
) -> bool:
    """Refuse a store that somebody else made, and return whether it is this user's; one without any table is nobody's.

    What was accepted where it cannot be written is not: all that is in it is somebody else's.

    Reads nothing but the marks, from a table whose definition is ours to the letter, and only where no definition
    could run anything, now or later. `alone` and `by_git` are what `is_known_alone` and `is_of_git` said; None asks.

    Raises:
        UntrustedStore: it has no mark of this user, or one for another place or other sources.
    """
    if is_exempt(file):
        return True
    try:
        with bounded(connection):
            if is_new(connection):
                return True
            facts = None if is_strange(connection) else facts_in(connection)
    except sqlite3.Error as exc:
        if not is_excess(exc, connection):
            raise
        facts = None
    if facts is not None and (is_known_alone(file) if alone is None else alone):
        if _fits(facts, file):
            if put_by_git(file):
                named = filter(Path.exists, map(file.with_name, _OF_A_TREE))
                for beside in {file, *named, *islice(file.parent.glob("*.db"), _MOST_BESIDE)}:
                    if beside == file or put_by_git(beside):
                        _keep_state("refused", beside)
                raise UserError(
                    f"git has put {str(file)!r} there with your mark in it, so what others commit would pass for yours:"
                    " put a copy of your own in its place, or delete it, and then take it out of the repository"
                    " (git rm --cached); `metatree trust` then shows what is in it, and accepts it"
                )
            if is_of_git(file) if by_git is None else by_git:
                _keep_state("refused", file)
                raise untrusted(file, "was put there by git, and is unchanged since")
            return True
        if _is_accepted(file, facts):
            return False
    raise untrusted(file)


def is_of_git(file: Path) -> bool:
    """Whether a store is, to the byte, one that git has put there, though it may not list it any more.

    One that is as a process of this user left it is not. To be asked before the file is opened: it is read.
    """
    if _has_state("refused", file):
        return True
    return not _has_state("left", file) and is_object(file)


def keep_refused(file: Path) -> None:
    """Keep that git has put a store there, though it was opened by who passes over marks, and is not as it was."""
    _keep_state("refused", file)


def keep_left(file: Path) -> None:
    """Keep how a process of this user left a store, where git could exchange it."""
    if work_trees(file):
        _keep_state("left", file)


def _keep_state(what: str, file: Path) -> None:
    """Keep in which state a store was refused, or left: out of the repository, nothing tells that any more."""
    with contextlib.suppress(OSError):
        if (record := _record(what, file)) is None or _has_state(what, file):
            return
        private_folder(record.parent)
        if what == "left" and not record.exists():
            _make_room(record.parent)
        record.write_text(_size_and_time(file))


def _has_state(what: str, file: Path) -> bool:
    record = _record(what, file)
    try:
        return record is not None and record.read_text() == _size_and_time(file)
    except OSError:
        return False


def _record(what: str, file: Path) -> Path | None:
    folder = config_folder()
    return (
        None if folder is None else folder / what / _mark(user_key(), {}, what, dict(_places(file))["path"])
    )


def _make_room(folder: Path) -> None:
    """Take away the older half of the records in a folder when there are many."""
    records = list(folder.iterdir())
    if len(records) >= _MOST_LEFT:
        for record in sorted(records, key=lambda each: each.stat().st_mtime_ns)[: _MOST_LEFT // 2]:
            record.unlink(missing_ok=True)


def _size_and_time(file: Path) -> str:
    state = file.stat()
    return f"{state.st_size} {state.st_mtime_ns}"


def untrusted(
    file: Path, why: str = "was not made by you on this machine, or was copied here"
) -> UntrustedStore:
    """Return the error for a store that somebody else made."""
    # The stores of a tree are accepted together; of a folder without one, the command would take its `.metatree`.
    shown = file.parent if file.with_name(_OF_A_TREE[0]).exists() else file
    return UntrustedStore(
        f"{str(file)!r} {why}: it is not used;"
        f" `metatree trust {shlex.quote(str(shown))}` shows what is in it, and accepts it",
        path=str(file),
    )


def is_known_alone(file: Path) -> bool:
    """Whether a store that has a mark of this user has it without its log, too; True where there is no log.

    A log of one's own beside a file that came in the place of the one before, by git for example, has one's own mark,
    and all that it does not hold would be believed of the other file. To be asked before the file is opened for
    writing: whoever closes it then writes the log into it.

    The file must hold the seal, anywhere. Lost: to read it as a database without its log, which it is none of when a
    disk was full, or a process killed, while the log was written into it.
    """
    log = _log_of(file)
    for wait_s in (0.0, 0.02, 0.2):  # another process may just be writing from the log into the file
        time.sleep(wait_s)
        try:
            if is_exempt(file) or not log.stat().st_size:
                return True
            with contextlib.closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as both:
                both.execute("PRAGMA trusted_schema=OFF")
                with bounded(both):
                    facts = None if is_strange(both) else facts_in(both)
            if facts is None or not _fits(facts, file) or _SEAL not in facts[mark_key()]:
                return True  # what is used of it is decided by its marks alone
            with file.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as whole:
                if whole.find(_seal(user_key(), facts).encode()) >= 0:
                    return True
        except (sqlite3.Error, OSError, ValueError):  # and who opens it says what is wrong
            return True
    return False


def is_beside_log_of_another(file: Path, *, by_git: bool) -> bool:
    """Whether git has put a store beside a log that is not its own, and nothing may be written into either.

    Who has it open for writing and closes it last writes the log into it, and then it is no longer as git has put it
    there, and passes for one's own.
    """
    try:
        return _log_of(file).stat().st_size > 0 and (by_git or put_by_git(file))
    except OSError:
        return False


def is_new(connection: sqlite3.Connection) -> bool:
    """Whether a file has no table yet, nor other pages, whose list could give those out twice that are in use."""
    if connection.execute("PRAGMA page_count").fetchone()[0] > 1:
        return False
    return connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is None


def is_strange(connection: sqlite3.Connection) -> bool:
    """Whether a file defines what no store of ours does, and what would run when it is used."""
    # In UTF-16, ids and keys come in another order than the ranges have by which they are found.
    if connection.execute("PRAGMA encoding").fetchone() != ("UTF-8",):
        return True
    return not all(
        _NAME.fullmatch(str(name)) and _NAME.fullmatch(str(table)) and (sql is None or _PLAIN.match(str(sql)))
        for name, table, sql in connection.execute("SELECT name, tbl_name, sql FROM sqlite_master")
    )


def is_plain(connection: sqlite3.Connection) -> bool:
    """Whether a file that is used whoever made it defines nothing that would run; False where that costs too much."""
    try:
        with bounded(connection):
            return not is_strange(connection)
    except sqlite3.Error as exc:
        if is_excess(exc, connection):
            return False
        raise


def is_excess(exc: sqlite3.Error, connection: sqlite3.Connection) -> bool:
    """Whether reading was given up since it went beyond what is `bounded`."""
    match primary_code(exc):
        case sqlite3.SQLITE_INTERRUPT | sqlite3.SQLITE_TOOBIG:
            return True
        case sqlite3.SQLITE_CORRUPT:  # a definition is damaged, or too long for the bound
            return _has_long_definition(connection)
    return False


def _has_long_definition(connection: sqlite3.Connection) -> bool:
    """Whether a definition is too long for the bound; none of them is read as one, so a damaged one does not matter."""
    try:
        with bounded(connection):
            connection.execute("PRAGMA writable_schema=ON")
            longer = "SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE length(sql) > ?)"
            return bool(connection.execute(longer, (_LONGEST_STATEMENT,)).fetchone()[0])
    except sqlite3.Error:
        return False
    finally:
        connection.execute(
            "PRAGMA writable_schema=RESET"
        )  # and what was read of the definitions is forgotten


def sign(store: _Store, place: Path | None = None, *, seen: dict[str, str] | None = None) -> None:
    """Mark a store as this user's, with the sources that it names now; nothing in memory needs it.

    Args:
        store: the store.
        place: where its file will be, when it is made under another name.
        seen: what it named when the user looked, as `signed_facts` has it.

    Raises:
        UserError: it names other sources than were `seen`.
    """
    if store.path is None:
        return
    with store.transaction():
        if seen is not None and signed_facts(store) != seen:
            raise UserError(f"{str(store.path)!r} was changed meanwhile: look at it again")
        store.execute(
            "INSERT OR IGNORE INTO meta(key, value) VALUES (?, ?)",
            (f"{FACTS}id", json.dumps(secrets.token_hex(16))),
        )
        key, facts = user_key(), signed_facts(store)
        marks = {
            kind: _mark(key, facts, kind, where) for kind, where in _places(place or store.path, store.path)
        }
        marks[_SEAL] = _seal(key, facts)
        store.execute(
            "INSERT OR REPLACE INTO meta(key, value) VALUES (?, ?)", (mark_key(), json.dumps(marks))
        )


def is_marked(store: _Store) -> bool:
    """Whether a store has a mark of this user for its place and its sources, also where no mark is asked for."""
    if store.path is None:
        return True
    keys = (f"{FACTS}id", mark_key(), "sources")
    return _fits(dict(store.rows("SELECT key, value FROM meta WHERE key IN (?, ?, ?)", keys)), store.path)


def signed_facts(store: _Store) -> dict[str, str]:
    """Return what a mark is over: the id and the sources of a store, as it keeps them."""
    return dict(store.rows("SELECT key, value FROM meta WHERE key IN (?, 'sources')", (f"{FACTS}id",)))


def acceptance(file: Path) -> Path | None:
    """Return the file that says in which state a store was accepted that cannot be written; None without a home."""
    folder = config_folder()
    if folder is None:
        return None
    return folder / "accepted" / _mark(user_key(), {}, "accepted", dict(_places(file))["path"])


def accepted_state(file: Path, facts: dict[str, str]) -> str:
    """Return what `acceptance` keeps of a store as it is now, but for `content_digest`."""
    state, log = file.stat(), _log_of(file)
    sizes = [state.st_size, log.stat().st_size if log.exists() else 0]
    return _mark(user_key(), facts, "accepted", json.dumps([*sizes, state.st_mtime_ns]))


def content_digest(file: Path) -> str:
    """Return a digest of a store and of its log, which `acceptance` keeps: who owns a disk sets sizes and times."""
    whole = hashlib.sha256()
    for each in (file, _log_of(file)):
        with contextlib.suppress(FileNotFoundError), each.open("rb") as stream:
            whole.update(hashlib.file_digest(stream, "sha256").digest() if each.stat().st_size else b"")
    return whole.hexdigest()


def _is_accepted(file: Path, facts: dict[str, str]) -> bool:
    mark = acceptance(file)
    if mark is None or not mark.exists():
        return False
    state, _, content = mark.read_text().partition("\n")[0].partition(" ")
    # The sizes fit, so a file of a terabyte that somebody else made is not read to refuse it.
    return state == accepted_state(file, facts) and content == content_digest(file)


def _log_of(file: Path) -> Path:
    return file.with_name(file.name + "-wal")


@contextlib.contextmanager
def bounded(connection: sqlite3.Connection) -> Iterator[None]:
    """Bound what reading from an unknown file may cost, in time and in memory."""
    limits = {
        sqlite3.SQLITE_LIMIT_LENGTH: LONGEST_VALUE,
        sqlite3.SQLITE_LIMIT_SQL_LENGTH: _LONGEST_STATEMENT,
    }
    before = {limit: connection.setlimit(limit, most) for limit, most in limits.items()}
    calls = iter(range(_OPERATIONS // 1000))
    connection.set_progress_handler(lambda: next(calls, None) is None, 1000)
    try:
        yield
    finally:
        connection.set_progress_handler(None, 0)
        for limit, most in before.items():
            connection.setlimit(limit, most)


def facts_in(connection: sqlite3.Connection) -> dict[str, str] | None:
    """Return the sources, the id and the marks of this user, by key; None where the table or a value is not ours."""
    row = connection.execute(
        "SELECT sql FROM sqlite_master WHERE type = 'table' AND name = 'meta'"
    ).fetchone()
    if row is None or row[0] != _META:
        return None
    keys = (f"{FACTS}id", mark_key(), "sources", OFFERED)
    rows = connection.execute("SELECT key, value FROM meta WHERE key IN (?, ?, ?, ?)", keys).fetchall()
    return dict(rows) if all(isinstance(value, str) for _, value in rows) else None


def _fits(facts: dict[str, str], file: Path) -> bool:
    key = user_key()
    try:
        if is_of_another(file.stat()):  # who may have been given a copy with the mark
            return False
        marks = json.loads(facts[mark_key()])
        return any(
            hmac.compare_digest(str(marks[kind]), _mark(key, facts, kind, where))
            and (kind == "path" or not _leads_out(facts, file))
            for kind, where in _places(file)
        )
    except (KeyError, TypeError, ValueError, OSError):
        return False


def _leads_out(facts: dict[str, str], file: Path) -> bool:
    """Whether a source, or where a command is started, is kept by a way out of the folder with the tree.

    Where that is moved, it leads to another folder.
    """
    inside = 1 if file.parent.name == ".metatree" else 0
    records = json.loads(facts.get("sources", "[]"))
    ways = [str(record.get("place", ".")) for record in records]
    ways += [str((record.get("options") or {}).get(NAMED_IN, ".")) for record in records]
    # Without the current folder, as `relpath` would take it: near the root of the disk there is nothing further up.
    return any(Path(os.path.normpath(way)).parts[: inside + 1].count(os.pardir) > inside for way in ways)


def _places(file: Path, now: Path | None = None) -> Iterator[tuple[str, str]]:
    """Yield what tells where a file is: its path, from the home on if it lies there, and its inode.

    With `now`, it is still at that path. Of a file with several names no inode: one of them may be in the folder of
    somebody else, who would be believed what is in it, and be given what is added.
    """
    place = Path(os.path.realpath(file))
    path = str(place)
    with contextlib.suppress(RuntimeError, ValueError):
        home = Path.home()
        if home.is_absolute():  # of any other one it would depend on the current folder
            path = f"~/{place.relative_to(os.path.realpath(home)).as_posix()}"
    yield "path", path
    with contextlib.suppress(OSError):
        state = (now or place).stat()
        if state.st_nlink <= 1:
            yield "inode", str(state.st_ino)


def mark_key() -> str:
    """Return the key in `meta` under which this user's marks are; other users have other keys, so all may have one."""
    return f"{FACTS}{hmac.digest(user_key(), b'name', hashlib.sha256).hex()[:16]}"


def _seal(key: bytes, facts: dict[str, str]) -> str:
    """Return what stays the same in a store of this user, wherever it lies and whatever it names."""
    return _mark(key, {name: facts[name] for name in facts if name == f"{FACTS}id"}, _SEAL, "")


def _mark(key: bytes, facts: dict[str, str], kind: str, where: str) -> str:
    about = [kind, where, facts.get(f"{FACTS}id"), facts.get("sources")]
    return hmac.digest(key, json.dumps(about).encode("utf-8", "surrogatepass"), hashlib.sha256).hex()
