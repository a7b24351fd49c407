"""Trust in stores: a file is used only if this user made it on this machine, or accepted it.

A repository, an archive or a shared disk may bring a `.metatree` that somebody else prepared. What is in it could start
programs (the command of an MCP server), read files elsewhere, log people in, or speak in somebody's name. So each
store carries a *mark*: an HMAC under a key that this user keeps outside of all trees, over the store's own random id,
the sources that it names, and where it lies. Another key, another list of sources or another place has another mark.

There are two marks, and one that fits is enough: over the path (below the home folder: relative to it, so a home may
move) and over the inode, so a folder may be renamed. Files that cannot be written are accepted by a digest
of them in the user's own folder.

    METATREE_CONFIG_DIR    where the key is; `metatree` in the user's folder for settings by default
    METATREE_TRUST         folders whose trees are trusted without a mark, for containers and CI, joined as in PATH

Lost: a list of trusted paths alone (`git pull` replaces files below a path that was trusted, and git overwrites ignored
files without a word); a digest of the whole file (it changes with each write); the inode alone (a restored home has
others).
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import logging
import mmap
import os
import re
import secrets
import shlex
import sqlite3
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, Final, Protocol, TypeVar

from metatree._util.cache_folder import named_folder, named_folders
from metatree._util.git_objects import borrow
from metatree._util.private import publish
from metatree._util.process import absolute_libraries, absolute_path, environment_for_git, program
from metatree.errors import UntrustedStore, UserError
from metatree.storage.errors import primary_code

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
KEY_BYTES: Final = 32
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
_NAME: Final = re.compile(r"[a-z][a-z0-9_]*")
"""How all of ours are called: SQLite finds a table in any case, and a question to its list of tables does not."""
_SUPER_JOURNAL: Final = bytes.fromhex("d9d505f920a163d7")
"""How a rollback journal ends that names another file, which SQLite would delete (sqlite.org/fileformat.html, 3)."""
_SEAL: Final = "seal"
_GIT_S: Final = 10.0
_GIT_MEMORY: Final = 1_000_000_000
_LONGEST_NAME: Final = 4096
_MOST_FOLDERS: Final = 10_000
_MOST_ERRORS: Final = 1 << 16
# What the settings of a repository could have run, fetched, or said of where it is.
_GIT: Final = (
    "--no-optional-locks",
    *("-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}", "-c", "protocol.allow=never"),
    *("-c", "safe.bareRepository=explicit", "-c", "safe.directory=*"),
)
_GIT_ENVIRONMENT: Final = {
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_OPTIONAL_LOCKS": "0",
    "LC_ALL": "C",
}
_log = logging.getLogger("metatree")
T = TypeVar("T")


class _Store(Protocol):
    """What `sign` needs of a store."""

    path: Path | None

    def transaction(self) -> contextlib.AbstractContextManager[None]: ...
    def execute(self, sql: str, parameters: Any = ()) -> int: ...
    def rows(self, sql: str, parameters: Any = ()) -> list[tuple[Any, ...]]: ...


def config_folder() -> Path | None:
    """Return the folder of this user's settings, None where there is no home."""
    own = named_folder("METATREE_CONFIG_DIR")
    if own is not None:
        return own
    try:
        home = Path.home()
    except RuntimeError:
        return None
    if not home.is_absolute():  # it would be below the folder that is current
        return None
    if sys.platform == "win32":
        return Path(os.environ.get("APPDATA") or home / "AppData" / "Roaming") / "metatree"
    folder = os.environ.get("XDG_CONFIG_HOME", "")
    return (Path(folder) if folder.startswith("/") else home / ".config") / "metatree"


def user_key() -> bytes:
    """Return this user's key of 32 bytes, made at the first call.

    Where it can be kept nowhere it is good for this process, so what was built before is built again.
    """
    folder = config_folder()
    return _process_key() if folder is None else _stored_key(folder)


@lru_cache(maxsize=1)
def _process_key() -> bytes:
    if config_folder() is None:
        _log.warning(
            "this user has no home to keep a key in, so trees that are made now are not known again: set"
            " METATREE_CONFIG_DIR to a folder, or name theirs in METATREE_TRUST"
        )
    return secrets.token_bytes(KEY_BYTES)


@lru_cache(maxsize=8)
def _stored_key(folder: Path) -> bytes:
    file = folder / "trust.key"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not file.exists():
            _make_key(file)
        state = file.stat()
        key = file.read_bytes()
    except OSError as exc:
        _log.warning(
            "cannot keep a key in %s (%s), so trees that are made now are not known again: set METATREE_CONFIG_DIR"
            " to a folder that can be written",
            folder,
            exc.strerror,
        )
        return _process_key()
    if hasattr(os, "getuid") and state.st_uid not in (os.getuid(), 0):
        raise UserError(
            f"the key {str(file)!r} belongs to another user: remove it, or set METATREE_CONFIG_DIR to a folder of yours"
        )
    if len(key) != KEY_BYTES:
        raise UserError(
            f"the key {str(file)!r} is damaged: delete it, then accept your trees with `metatree trust`"
        )
    if os.name == "posix" and stat.S_IMODE(state.st_mode) & 0o077:
        with contextlib.suppress(OSError):
            file.chmod(0o600)
    return key


def _make_key(file: Path) -> None:
    """Write a key; of several processes that do so at the same time one is first, and all use that one."""
    part = file.with_name(f"{file.name}.{secrets.token_hex(8)}")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(secrets.token_bytes(KEY_BYTES))
            stream.flush()
            os.fsync(stream.fileno())
        publish(part, file)
    finally:
        part.unlink(missing_ok=True)


def is_exempt(file: Path) -> bool:
    """Whether a file lies in a folder that METATREE_TRUST names, and so does what it leads to, if it is a link."""
    folders = named_folders("METATREE_TRUST", *os.environ.get("METATREE_TRUST", "").split(os.pathsep))
    if not folders:
        return False
    trusted = [os.path.realpath(each) for each in folders]
    # A link elsewhere that leads here is somebody's who may write there.
    places = [Path(os.path.realpath(file.parent), file.name), Path(os.path.realpath(file))]
    return all(any(place.is_relative_to(each) for each in trusted) for place in places)


def check_files(file: Path) -> None:
    """Refuse a store whose files could lead SQLite elsewhere: links, pipes, journals of others, or of no store.

    Through a hard link too: SQLite would write what a log holds into the file that has another name elsewhere.

    Raises:
        UserError: the message says which file, and what to do.
    """
    names = [file, *(file.with_name(file.name + end) for end in ("-wal", "-shm", "-journal"))]
    folders = [file.with_name(file.name + ".images")]
    if file.parent.name == ".metatree":
        folders.append(file.parent)
    logs = []
    for path in (*names, *folders):
        try:
            state = path.lstat()
        except OSError:
            continue
        if stat.S_ISLNK(state.st_mode) and not is_exempt(path):
            raise UserError(
                f"{str(path)!r} is a link and is not followed: remove it, or name what it leads to with --tree"
            )
        if path in names and not stat.S_ISREG(state.st_mode) and not stat.S_ISLNK(state.st_mode):
            raise UserError(f"{str(path)!r} is not a regular file: remove it")
        if path in names[1:] and _is_of_another(state, file) and not is_exempt(path):
            raise UserError(
                f"{str(path)!r} belongs to another user, who may not write {file.name} and would change what you keep"
                " in it: delete it, and keep the tree where others cannot put files (--tree)"
            )
        if path in names[1:] and state.st_size:
            logs.append(path)
    texts = [log for log in logs if not log.name.endswith("-shm")]
    if texts and not file.exists():  # looked at after its logs: who makes it makes them later
        raise UserError(
            f"{str(texts[0])!r} belongs to no file, and would change a new {file.name}: delete it"
        )
    for log in texts:
        if log.name.endswith("-journal") and _ends_with(log, _SUPER_JOURNAL):
            raise UserError(f"{str(log)!r} names other files, and none of ours does: delete it")
        if log.name.endswith("-journal") and _uses_wal(file):
            raise UserError(f"{str(log)!r} is none of ours, which keep their changes in a -wal: delete it")
    if logs and (log_of_git := _tracked(logs)):
        raise UserError(
            f"git tracks {str(log_of_git)!r}, so it may change what you keep in {file.name}: stop what uses the tree,"
            " delete that file, and take it out of the repository (git rm --cached)"
        )
    for path in [*([file] if texts or _is_empty(file) else ()), *names[1:]]:
        if _has_other_names(path) and not is_exempt(path):
            raise UserError(
                f"{str(path)!r} has another name elsewhere (a hard link), and would be written there: delete it, or if"
                " it is yours put a copy in its place"
            )


def _has_other_names(file: Path) -> bool:
    """Whether a file is a hard link; one that another process is just giving its name is one for a moment."""
    for wait_s in (0.0, 0.02, 0.2):
        time.sleep(wait_s)
        try:
            if file.stat().st_nlink < 2:
                return False
        except OSError:
            return False
    return True


def _is_empty(file: Path) -> bool:
    try:
        return not file.stat().st_size
    except OSError:
        return False


def _is_of_another(log: os.stat_result, file: Path) -> bool:
    """Whether a log is of somebody who may not write the store, but may put files beside it."""
    try:
        store = file.stat()
    except OSError:
        return False
    if not hasattr(os, "geteuid") or log.st_uid in (os.geteuid(), 0, store.st_uid):
        return False
    return not store.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _uses_wal(file: Path) -> bool:
    """Whether a file is of the mode of all of ours, in which SQLite writes no journal and yet plays one back."""
    with file.open("rb") as stream:
        return stream.read(20)[18:] == b"\x02\x02"


def _ends_with(file: Path, magic: bytes) -> bool:
    with file.open("rb") as stream:
        stream.seek(max(0, file.stat().st_size - len(magic)))
        return stream.read() == magic


def _tracked(files: list[Path]) -> Path | None:
    """Return one of these files of a folder that git has in its index; asked where there are logs.

    git can put them there: a `-wal` with texts of others, or a `-shm` in the place of one that is in use, so that two
    programs do not know of each other and what one of them writes is lost.

    Raises:
        UserError: git cannot say; a `.metatree` may also be made to look like a repository.
    """
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="metatree-git-") as objects:
        # They are read where an index is sparse: it names a folder in the place of its files.
        asked = ("rev-parse", "--git-common-dir")
        shared = _said_by_git(files, objects, asked, lambda stream: stream.read(_LONGEST_NAME))
        if shared is None:
            return None
        place = files[0].absolute().parent / os.fsdecode(shared.removesuffix(b"\n"))
        borrow(Path(objects), place / "objects")
        # All of them, since a disk may have several names for one file, such as `memory.db-WAL`.
        names = ("ls-files", "-z", "--", ":(top)")
        return _said_by_git(files, objects, names, lambda stream: _first_match(files, _names(stream)))


def _said_by_git(
    files: list[Path], objects: str, arguments: Sequence[str], read: Callable[[IO[bytes]], T | None]
) -> T | None:
    """Return what a function makes of what git says in the folder of some files, None where there is no git.

    Args:
        objects: where git writes what it makes: it does where an index is sparse, through links in the folder's own.

    Raises:
        UserError: git cannot say.
    """
    import subprocess  # 10 ms that hardly any process needs
    from tempfile import TemporaryFile

    with TemporaryFile() as errors:
        try:
            process = subprocess.Popen(
                [program("git"), *_GIT, *arguments],
                cwd=files[0].parent,
                env=environment_for_git()
                | {**_GIT_ENVIRONMENT, "PATH": absolute_path(), **absolute_libraries()}
                | {"GIT_OBJECT_DIRECTORY": objects},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
            )
        except OSError:
            return None  # without git nothing was put there by it
        if sys.platform == "linux":
            import resource

            with contextlib.suppress(OSError, ValueError):  # it may be over already
                resource.prlimit(process.pid, resource.RLIMIT_DATA, (_GIT_MEMORY, _GIT_MEMORY))
        timer = threading.Timer(_GIT_S, process.kill)
        timer.start()
        try:
            with process:
                assert process.stdout is not None
                if found := read(process.stdout):
                    process.kill()
                    return found
            late = not timer.is_alive()
        finally:
            timer.cancel()
        if process.returncode == 0:
            return None
        errors.seek(0)
        lines = errors.read(_MOST_ERRORS).decode("utf-8", "replace").splitlines()
    # What follows may be a line or a value of a file of the machine that a link in `.git` leads to.
    fatal = [re.split(": | value '", line)[1] for line in lines if line.startswith("fatal: ")]
    message = f"it took longer than {_GIT_S:g} s" if late else "; ".join(fatal)[:300]
    if message.startswith("not a git repository"):
        return None
    raise UserError(
        f"git cannot say whether it tracks {str(files[0])!r} ({message}): mend the repository,"
        " or delete that file and what was not yet written from it is lost"
    )


def _names(stream: IO[bytes]) -> Iterator[bytes]:
    """Yield what NUL ends in a stream; not what is longer than a path can be, which an index can be made to hold."""
    rest = b""
    too_long = False
    while chunk := stream.read1(1 << 16):  # type: ignore[attr-defined]  # of a buffered reader, as a pipe is
        *names, rest = (rest + chunk).split(b"\0")
        for name in names:
            if not too_long and len(name) <= _LONGEST_NAME:
                yield name
            too_long = False
        if len(rest) > _LONGEST_NAME:
            rest, too_long = b"", True


def _first_match(files: list[Path], names: Iterable[bytes]) -> Path | None:
    """Return the first of the files of a folder that one of the names leads to, which begin at that folder."""
    folder = files[0].absolute().parent
    same: dict[bytes, bool] = {}
    for name in names:
        above = name.rpartition(b"/")[0]
        if above not in same:
            if len(same) >= _MOST_FOLDERS:
                same.clear()
            same[above] = _is_same(folder / os.fsdecode(above), folder)
        if not same[above]:
            continue
        if first := next((file for file in files if _is_same(folder / os.fsdecode(name), file)), None):
            return first
    return None


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False


def check(connection: sqlite3.Connection, file: Path, *, alone: bool | None = None) -> bool:
    """Refuse a store that somebody else made, and return whether it is this user's; one without any table is nobody's.

    What was accepted where it cannot be written is not: all that is in it is somebody else's.

    Reads nothing but the marks, from a table whose definition is ours to the letter, and only where no definition
    could run anything, now or later. `alone` is what `is_known_alone` said; None asks it.

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
            return True
        if _is_accepted(file, facts):
            return False
    raise untrusted(file)


def untrusted(file: Path) -> UntrustedStore:
    """Return the error for a store that somebody else made."""
    return UntrustedStore(
        f"{str(file)!r} was not made by you on this machine, or was copied here: it is not used;"
        f" `metatree trust {shlex.quote(str(file.parent))}` shows what is in it, and accepts it",
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
    state, _, content = mark.read_text().partition(" ")
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
        marks = json.loads(facts[mark_key()])
        return any(
            hmac.compare_digest(str(marks[kind]), _mark(key, facts, kind, where))
            for kind, where in _places(file)
        )
    except (KeyError, TypeError, ValueError):
        return False


def _places(file: Path, now: Path | None = None) -> Iterator[tuple[str, str]]:
    """Yield what tells where a file is: its path, from the home on if it lies there, and its inode.

    With `now`, it is still at that path. Of a file with several names no inode: one of them may be in the folder of
    somebody else, who would be believed what is in it, and be given what is added.
    """
    place = Path(os.path.realpath(file))
    path = str(place)
    with contextlib.suppress(RuntimeError, ValueError):
        path = f"~/{place.relative_to(os.path.realpath(Path.home())).as_posix()}"
    yield "path", path
    with contextlib.suppress(OSError):
        state = (now or place).stat()
        if state.st_nlink <= 1:
            yield "inode", str(state.st_ino)


def signature(what: str, content: bytes) -> str:
    """Return this user's mark for something that is no store, such as an export; `what` says the kind of thing."""
    return hmac.digest(user_key(), f"{what}:".encode() + content, hashlib.sha256).hex()


def mark_key() -> str:
    """Return the key in `meta` under which this user's marks are; other users have other keys, so all may have one."""
    return f"{FACTS}{hmac.digest(user_key(), b'name', hashlib.sha256).hex()[:16]}"


def _seal(key: bytes, facts: dict[str, str]) -> str:
    """Return what stays the same in a store of this user, wherever it lies and whatever it names."""
    return _mark(key, {name: facts[name] for name in facts if name == f"{FACTS}id"}, _SEAL, "")


def _mark(key: bytes, facts: dict[str, str], kind: str, where: str) -> str:
    about = [kind, where, facts.get(f"{FACTS}id"), facts.get("sources")]
    return hmac.digest(key, json.dumps(about).encode("utf-8", "surrogatepass"), hashlib.sha256).hex()
