"""Backups of a service: all its tables at one moment, and the memory beside it, in one file with checksums.

The file is a ZIP of JSON lines, a member for each table, so what SQLite held can be restored to PostgreSQL and back.
Sessions of the web page are left out: people log in again. Copies of SQLite files are made by SQLite's online backup.

The memory is copied first: it remembers which recommendations of the service it has learned, and one that it has not
is learned again, while one that the service has not would be missed. A restored database has another name than the one
that was backed up (`identity`), so that a memory which is ahead of the backup misses nothing that comes later.

A restore is refused while somebody is at work there (`in_use`): SQLite leaves its write-ahead log for a file's only
connection alone, and each server on PostgreSQL shares a lock while it listens. A server that starts meanwhile is not
kept out.

Lost: pages of SQLite and `pg_dump` (its version must fit the server's, and SQLite cannot read it); the sockets of other
servers (not on Windows, nor between containers) and rows of presence (they outlive those who died) to know who is at
work; a warning alone, after which answers in progress go to topics that are not there.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import shutil
import sqlite3
import time
import zipfile
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, Final

from metatree._util.private import private_folder
from metatree._util.zips import open_archive, open_member, oversize, read_member
from metatree.errors import BrokenStore, TransientError, UserError
from metatree.notes.archive.format import MAX_LINE, checked_line
from metatree.storage.acceptance import accept, survey
from metatree.storage.errors import is_busy, is_damage, store_error
from metatree.storage.store import APPLICATION_ID, Store
from metatree.storage.store_files import LEAVE_LOG, check_files, whole
from metatree.version import RELEASE
from metatree_agents.service.database.database import ServiceDatabase, Transaction
from metatree_agents.service.database.identity import rename
from metatree_agents.service.database.schema import SERVICE
from metatree_agents.service.http.bodies import stamp
from metatree_agents.service.queue.turns import all_in_line

FORMAT: Final = 1
TABLES: Final[Mapping[str, tuple[str, ...]]] = {
    "service_user": ("name",),
    "service_nonce": ("name", "nonce"),
    "service_nonce_end": ("ends_at",),
    "service_use": ("name",),
    "service_key": ("hash",),
    "service_tree": ("name",),
    "service_tree_right": ("tree", "who"),
    "service_group": ("name", "member"),
    "topic": ("id",),
    "query": ("topic", "seq"),
    "progress": ("number",),
    "lookup": ("number",),
    "lookup_wish": ("topic", "seq", "lookup"),
    "recommendation": ("number",),
    "service_identity": ("number",),
    "chat": ("asked", "number"),
    "service_index": ("engine",),
    "tree_state": ("one",),
    "tree_version": ("version",),
    "tree_file": ("digest", "part"),
    "tree_memory": ("what", "id"),
}
"""The tables of a backup with their keys, in whose order they are read."""
LEFT_OUT: Final = ("service_session", "service_login", "service_server", "service_engine", "turn")
MEMORY: Final = "memory.db"
_OF_TREE: Final = re.compile(r"memory-([a-z0-9][a-z0-9_.-]{0,39})\.db")
"""The member that has the memory of a tree with a name."""
Memories = Path | Mapping[str, Path] | None
"""The SQLite file of the memory of one tree without a name, or those of trees by their names."""
_MANIFEST, _SUM = "manifest.json", "manifest.sha256"
_PAGE: Final = 1_000
_LARGE: Final = {"tree_file": 4}
"""How many rows of tables of large rows are read at once."""
_BATCH: Final = 100
_BATCH_BYTES: Final = 8_000_000
"""Rows that are put in at once, and of how many bytes of a backup."""
_CHUNK: Final = 1 << 20
_LONGEST_MANIFEST: Final = 1 << 20
MEMORY_WAIT_S: Final = 30.0
"""How long a copy of a SQLite file waits for who writes it."""


@dataclass(frozen=True, slots=True)
class Backup:
    """What a backup holds.

    Args:
        made_at: when, as `YYYY-MM-DDTHH:MM:SS` in UTC.
        schema: the version of the tables.
        tables: the number of rows of each.
        memory_bytes: size of the memories in it; None without any.
        memories: the names of the trees whose memories are in it, with their sizes; of one tree without a name "".
    """

    file: Path
    made_at: str
    schema: int
    tables: dict[str, int]
    memory_bytes: int | None
    memories: dict[str, int] = field(default_factory=dict)


async def back_up(
    database: ServiceDatabase, file: Path, *, memory: Memories = None, force: bool = False
) -> Backup:
    """Write a backup, read it again, and return what it holds; the service may be at work meanwhile.

    Args:
        memory: memories of trees, to be in it as well.
        force: whether a file that is there is replaced.

    Raises:
        UserError: there is such a file, or none can be written there.
        UntrustedStore: somebody else made the memory; see `metatree.storage.trust`.
    """
    if file.exists() and not force:
        raise UserError(f"{str(file)!r} is there already: name another file, or replace it with --force")
    part = file.with_name(file.name + ".part")
    try:
        part.unlink(missing_ok=True)  # never through a link
        # Secrets are in it.
        with os.fdopen(os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
            with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
                await _write(archive, database, _by_name(memory), part)
            stream.flush()
            os.fsync(stream.fileno())
        checked = verified(part)
        part.replace(file)
    except OSError as exc:
        raise UserError(f"cannot write {str(file)!r}: {exc.strerror or exc}") from exc
    finally:
        part.unlink(missing_ok=True)
    return replace(checked, file=file)


def _by_name(memory: Memories) -> Mapping[str, Path]:
    if memory is None:
        return {}
    return {"": memory} if isinstance(memory, Path) else memory


def _member(tree: str) -> str:
    return f"memory-{tree}.db" if tree else MEMORY


async def _write(
    archive: zipfile.ZipFile, database: ServiceDatabase, memories: Mapping[str, Path], part: Path
) -> None:
    contents: dict[str, Any] = {
        "format": FORMAT,
        "metatree": RELEASE,
        "schema": SERVICE.version,
        "made_at": stamp(database.clock()),
        "files": {},
        "tables": {},
    }
    for tree, memory in memories.items():
        # Where the memory lies: others may exchange files where the backup goes, and SQLite opens them by name.
        copy = memory.with_name(f"{memory.name}.{secrets.token_hex(4)}.copy")
        try:
            Store.open(memory, create=False).close()  # not one that somebody else made
            copy.unlink(missing_ok=True)
            check_files(copy)
            os.close(os.open(copy, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
            copy_sqlite(memory, copy)
            with copy.open("rb") as stream:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
            archive.write(copy, _member(tree))
            contents["files"][_member(tree)] = {"bytes": copy.stat().st_size, "sha256": digest}
        finally:
            copy.unlink(missing_ok=True)
    async with database.snapshot() as do:
        for table, key in TABLES.items():
            columns = await database.columns(do, table)
            digest, rows = await _write_table(archive, do, table, key, columns)
            contents["tables"][table] = {"columns": columns, "rows": rows, "sha256": digest}
    manifest = json.dumps(contents, indent=1).encode()
    archive.writestr(_MANIFEST, manifest)
    archive.writestr(_SUM, hashlib.sha256(manifest).hexdigest())


async def _write_table(
    archive: zipfile.ZipFile, do: Transaction, table: str, key: Sequence[str], columns: Sequence[str]
) -> tuple[str, int]:
    digest, rows = hashlib.sha256(), 0
    named, at = ", ".join(columns), [columns.index(name) for name in key]
    keys, marks = ", ".join(key), ", ".join("?" for _ in key)
    after: list[Any] = []
    most = _LARGE.get(table, _PAGE)
    with archive.open(f"{table}.jsonl", "w", force_zip64=True) as stream:
        while True:
            behind = f" WHERE ({keys}) > ({marks})" if after else ""
            page = await do.rows(f"SELECT {named} FROM {table}{behind} ORDER BY {keys} LIMIT {most}", *after)
            for row in page:
                line = json.dumps([_plain(value) for value in row], ensure_ascii=False).encode() + b"\n"
                digest.update(line)
                stream.write(line)
            rows += len(page)
            if len(page) < most:
                return digest.hexdigest(), rows
            after = [page[-1][each] for each in at]


def verified(file: Path) -> Backup:
    """Read a whole backup and return what it holds.

    Raises:
        BrokenStore: it is none, damaged, or of a newer version.
        UserError: it cannot be read.
    """
    if file.exists() and not file.is_file():  # to open a pipe is to wait for a writer
        raise UserError(f"cannot read {str(file)!r}: it is no file that `metatree service backup` wrote")
    try:
        with open_archive(file) as archive:
            if wrong := oversize(archive, str(file)):
                raise UserError(wrong)
            manifest = _manifest(archive, file)
            for table, recorded in manifest["tables"].items():
                with open_member(archive, f"{table}.jsonl") as stream:
                    _check(stream, recorded["sha256"], file)
            for name, recorded in manifest["files"].items():
                with open_member(archive, name) as stream:
                    _check(stream, recorded["sha256"], file)
        sizes = {_tree_of(name): _count(each["bytes"]) for name, each in manifest["files"].items()}
        rows = {table: _count(each["rows"]) for table, each in manifest["tables"].items()}
        if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z?", str(manifest["made_at"])):
            raise ValueError("it does not say when it was made")
        return Backup(
            file,
            str(manifest["made_at"]),
            manifest["schema"],
            rows,
            sum(sizes.values()) if sizes else None,
            sizes,
        )
    except OSError as exc:
        raise UserError(f"cannot read {str(file)!r}: {exc.strerror or exc}") from exc
    except (
        zipfile.BadZipFile,
        zlib.error,
        KeyError,
        AttributeError,
        ValueError,
        TypeError,
        EOFError,
        NotImplementedError,
        RecursionError,
    ) as exc:
        raise _broken(file, "it is cut off or changed") from exc


def _count(value: object) -> int:
    """Return a number of rows or bytes as a backup has it."""
    if type(value) is not int or not 0 <= value < 1 << 63:
        raise ValueError(f"{str(value)[:80]!r} is no count")
    return value


def _tree_of(member: str) -> str:
    """Return the name of the tree whose memory a member is."""
    found = _OF_TREE.fullmatch(member)
    return found[1] if found else ""


def _manifest(archive: zipfile.ZipFile, file: Path) -> dict[str, Any]:
    raw = read_member(archive, _MANIFEST, _LONGEST_MANIFEST)
    if hashlib.sha256(raw).hexdigest().encode() != read_member(archive, _SUM, _LONGEST_MANIFEST):
        raise _broken(file, "its list does not have its checksum")
    manifest: dict[str, Any] = json.loads(raw)
    if manifest["format"] > FORMAT or manifest["schema"] > SERVICE.version:
        raise BrokenStore(
            f"{str(file)!r} was written by metatree {manifest['metatree']}, which is newer: upgrade this one",
            path=str(file),
            reason="newer",
        )
    files = [name for name in manifest["files"] if name != MEMORY and not _OF_TREE.fullmatch(name)]
    unknown = [*(set(manifest["tables"]) - set(TABLES)), *files]
    if unknown:
        raise _broken(file, f"it has an unknown part {unknown[0]!r}")
    return manifest


def _check(stream: IO[bytes], known: str, file: Path) -> None:
    digest = hashlib.sha256()
    while chunk := stream.read(_CHUNK):
        digest.update(chunk)
    if digest.hexdigest() != known:
        raise _broken(file, "a part of it does not have its checksum")


async def restore(
    file: Path, database: ServiceDatabase, *, memory: Memories = None, force: bool = False
) -> Backup:
    """Put a backup in the place of what a database holds and return what it held.

    The tables are replaced together or not at all. Each memory is unpacked beside its place first and put there last,
    when the tables need nothing but their commit: only where that fails has a memory been replaced without them.

    Args:
        memory: where memories go; those of trees that are not named stay where they are, in the backup.
        force: whether what is there is replaced.

    Raises:
        BrokenStore: the backup is damaged; nothing was changed.
        UserError: something is there already, or at work there: it would go on with what it knows of the state before.
    """
    backup = verified(file)
    targets = {tree: target for tree, target in _by_name(memory).items() if tree in backup.memories}
    for target in targets.values():
        check_files(target)
    if await database.in_use():
        raise UserError(
            f"a server or another process is at work on {database.place}: stop it (`metatree serve`), then restore;"
            " nothing was changed"
        )
    replaced = {tree: _is_replaced(target) for tree, target in targets.items()}
    for tree, target in targets.items():
        if not replaced[tree] and _in_use(target):
            raise UserError(
                f"another process uses the memory in {str(target)!r}: stop it (`metatree serve`, `mcp`, a search), or"
                " leave the memory as it is with --no-memory; nothing was changed"
            )
    if not force:
        for target in targets.values():
            if target.exists():
                raise UserError(
                    f"there is a memory in {str(target)!r}: replace it with --force, or leave it with --no-memory"
                )
        async with database.transaction() as do:
            for table in ("service_user", "topic"):
                if await do.row(f"SELECT 1 FROM {table} LIMIT 1") is not None:
                    raise UserError("the database has users or topics already: replace them with --force")
    with open_archive(file) as archive:
        manifest = _manifest(archive, file)
        with ExitStack() as stack:
            came = {
                tree: stack.enter_context(_unpacked(archive, _member(tree), target))
                for tree, target in targets.items()
            }
            for tree, unpacked in came.items():
                if problem := survey(unpacked).problem:
                    raise _broken(file, f"of its memory{' of ' * bool(tree)}{tree}, {problem}")
            async with database.transaction() as do:
                for table in (*TABLES, *LEFT_OUT):
                    await do.execute(f"DELETE FROM {table}")
                for table, recorded in manifest["tables"].items():
                    await _fill(do, archive, table, recorded["columns"], await database.columns(do, table))
                # Copies of the tree elsewhere may be ahead of this one: by another name it is copied anew.
                await do.execute(
                    "UPDATE tree_state SET name = ?, publisher = NULL, publisher_until = 0",
                    secrets.token_hex(8),
                )
                await all_in_line(do)
                await database.recount(do, [table for table, key in TABLES.items() if key == ("number",)])
                await rename(do)
                for tree, unpacked in came.items():
                    _put(unpacked, targets[tree], replaced=replaced[tree])
    return backup


def _is_replaced(target: Path) -> bool:
    """Say whether a memory comes in the place of none, or of another's, or of a file that has a name elsewhere too."""
    return not (target.exists() and survey(target).trusted and _is_alone(target))


def _put(unpacked: Path, target: Path, *, replaced: bool) -> None:
    """Put a memory in its place."""
    if replaced:
        for end in ("-wal", "-shm", "-journal"):
            target.with_name(target.name + end).unlink(missing_ok=True)
        unpacked.replace(target)
    else:  # not in its place, so that who has it open sees the change
        copy_sqlite(unpacked, target)
    accept(target, own=True)  # who restores a backup trusts it


async def _fill(
    do: Transaction, archive: zipfile.ZipFile, table: str, columns: Sequence[str], known: Sequence[str]
) -> None:
    if not set(columns) <= set(known):
        raise UserError(f"the backup has a column of {table} that this version does not know: upgrade it")
    into = f"INSERT INTO {table}({', '.join(columns)}) VALUES "
    marks = f"({', '.join('?' for _ in columns)})"
    with open_member(archive, f"{table}.jsonl") as stream:
        for lines in _batches(iter(lambda: stream.readline(MAX_LINE + 1), b"")):
            rows = (_row(line, table, columns, Path(str(archive.filename))) for line in lines)
            values = [value for row in rows for value in row]
            await do.execute(into + ", ".join([marks] * len(lines)), *values)


def _batches(lines: Iterable[bytes]) -> Iterator[list[bytes]]:
    batch, size = list[bytes](), 0
    for line in lines:
        batch.append(line)
        size += len(line)
        if len(batch) >= _BATCH or size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _row(line: bytes, table: str, columns: Sequence[str], file: Path) -> list[Any]:
    try:
        row = [_from_json(value) for value in json.loads(checked_line(line))]
    except (ValueError, TypeError, KeyError, RecursionError) as exc:
        raise _broken(file, f"a row of {table} cannot be read") from exc
    if len(row) != len(columns) or any(isinstance(value, list) for value in row):
        raise _broken(file, f"a row of {table} does not have its {len(columns)} values")
    return row


def _plain(value: Any) -> Any:
    return {"base64": b64encode(value).decode()} if isinstance(value, bytes | memoryview) else value


def _from_json(value: Any) -> Any:
    return b64decode(value["base64"]) if isinstance(value, dict) else value


@contextmanager
def _unpacked(archive: zipfile.ZipFile, member: str, target: Path) -> Iterator[Path]:
    """Unpack a memory beside its place, while the block runs."""
    part = target.with_name(target.name + ".restored")
    try:
        try:
            private_folder(target.parent)
            part.unlink(missing_ok=True)
            check_files(part)
            with (
                open_member(archive, member) as stream,
                os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out,
            ):
                shutil.copyfileobj(stream, out)
        except OSError as exc:
            raise UserError(f"cannot write {str(target)!r}: {exc.strerror or exc}") from exc
        yield part
    finally:
        for end in ("", "-wal", "-shm"):
            part.with_name(part.name + end).unlink(missing_ok=True)


def _is_alone(file: Path) -> bool:
    return file.stat().st_nlink == 1


def _in_use(file: Path) -> bool:
    """Say whether any process has a SQLite file open; one that is damaged nobody can use."""
    if not file.exists():
        return False
    with closing(sqlite3.connect(whole(file), timeout=0)) as connection:
        try:
            connection.execute(LEAVE_LOG)
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.DatabaseError as exc:
            return is_busy(exc)
    return False


def copy_sqlite(source: Path, target: Path) -> None:
    """Copy a SQLite file as it is at one moment, by SQLite's online backup; others may be at work in both.

    Raises:
        BrokenStore: the source is none of metatree's, or damaged.
        MetatreeError: the target cannot be written, or either is being written by another process.
    """
    try:
        with (
            closing(sqlite3.connect(whole(source), timeout=MEMORY_WAIT_S)) as came,
            closing(sqlite3.connect(whole(target), timeout=MEMORY_WAIT_S)) as out,
        ):
            try:
                application = came.execute("PRAGMA application_id").fetchone()[0]
                sound = came.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok"
            except sqlite3.DatabaseError as exc:
                raise (_broken(source, str(exc)) if is_damage(exc) else store_error(exc, source)) from exc
            if application != APPLICATION_ID or not sound:
                raise _broken(source, "it is no store of metatree's")
            deadline = time.monotonic() + MEMORY_WAIT_S

            def not_for_ever(status: int, *_: int) -> None:
                if status in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED) and time.monotonic() > deadline:
                    raise TransientError(
                        f"{str(source)!r} or {str(target)!r} is being written by another process: try again",
                        retry_after_s=1.0,
                    )

            came.backup(out, progress=not_for_ever)
            with suppress(sqlite3.Error):
                out.execute(LEAVE_LOG)  # one file, where nobody else has it open
    except sqlite3.Error as exc:
        raise store_error(exc, target) from exc


def _broken(file: Path, why: str) -> BrokenStore:
    return BrokenStore(
        f"{str(file)!r} is damaged, or no backup of a service ({why}): use another copy", path=str(file)
    )
