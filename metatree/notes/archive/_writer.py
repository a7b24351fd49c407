"""Write an archive: one consistent look at the memory of a tree, put in place whole or not at all."""

from __future__ import annotations

import hashlib
import json
import os
import time
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from metatree._util.links import real
from metatree._util.named_file import typed_path
from metatree._util.secret_text import redacted, without_secrets
from metatree._util.zips import open_archive, read_member
from metatree.errors import UserError
from metatree.notes.archive.format import (
    EXPORTED_TABLES,
    FORMAT,
    HERE,
    IMAGES,
    LEFT_OUT_TABLES,
    LONGEST_MANIFEST,
    MANIFEST,
    MEMBERS,
    PERMISSION_FACTS,
    SHAREABLE_FACTS,
    VERSION,
    checked_line,
    line_of,
    mark_of,
    with_places,
)
from metatree.storage.schema import FILES
from metatree.storage.store import Store
from metatree.storage.trust import IMPORTED_RUN
from metatree.trees.layer import ROOT, Layer
from metatree.trees.source_files import digest_bytes, read_inside
from metatree.trees.tree import Tree
from metatree.version import RELEASE

_LARGE_THUMBNAIL = 1_000_000
Progress = Callable[[str, int], None]
"""Called with the name of a member and the number of its lines."""


@dataclass(slots=True)
class Exported:
    """What an archive holds."""

    path: str
    counts: dict[str, int] = field(default_factory=dict)
    """Member -> lines."""
    secrets: int = 0
    """How many texts that look like secrets were left out."""
    left_out: tuple[str, ...] = ()
    """Tables that this version does not know how to carry."""
    bytes: int = 0


def export_memory(tree: Tree, path: str | Path, *, progress: Progress | None = None) -> Exported:
    """Write what cannot be built again to a file: added nodes, descriptions, links, runs, calls, boards, permissions.

    What looks like a secret is replaced by a remark. An archive that is there is replaced at the end, at once; what is
    killed before leaves it as it was. Others may write to the tree meanwhile; the archive has it as it was at the
    beginning.

    Raises:
        UserError: the folder cannot be written, or there is another kind of file at the path.
    """
    file = typed_path(path)
    _check(file)
    report = Exported(str(file))
    part = file.with_name(f".{file.name}.{os.getpid()}.part")
    _sweep(file)
    try:
        part.unlink(missing_ok=True)  # never through a link
        with (
            _snapshot(tree) as store,
            os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out,
        ):
            with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, allowZip64=True) as archive:
                _write(tree, store, archive, report, progress)
            out.flush()
            os.fsync(out.fileno())
        part.replace(file)
    except OSError as exc:
        raise UserError(f"cannot write {str(file)!r}: {exc.strerror or exc}; choose another place") from exc
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
    report.bytes = file.stat().st_size
    return report


def _check(file: Path) -> None:
    if file.is_dir():
        raise UserError(f"{str(file)!r} is a folder: name a file")
    if not file.parent.is_dir():
        raise UserError(f"there is no folder {str(file.parent)!r}: make it, or name a file elsewhere")
    if file.exists() and file.stat().st_size:
        try:
            with open_archive(file) as archive:
                ours = json.loads(read_member(archive, MANIFEST, LONGEST_MANIFEST)).get("format") == FORMAT
        except (
            OSError,
            ValueError,
            KeyError,
            zipfile.BadZipFile,
            zlib.error,
            EOFError,
            AttributeError,
            NotImplementedError,
            RecursionError,
        ):
            ours = False
        if not ours:
            raise UserError(
                f"{str(file)!r} is there and no export of metatree: it is not overwritten; name another file"
            )


def _sweep(file: Path) -> None:
    """Remove what exports to this file left behind that were killed."""
    for part in file.parent.glob(f".{file.name}.*.part"):
        pid = part.name.split(".")[-2]
        # One that somebody else named so is left where it is.
        with suppress(OSError, ValueError, OverflowError):
            if not _is_alive(int(pid)):
                part.unlink(missing_ok=True)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


@contextmanager
def _snapshot(tree: Tree) -> Iterator[Store]:
    """Give a store that stays as it is, whatever others write meanwhile."""
    path = tree.memory.path
    if path is None:
        with tree.memory.transaction():
            yield tree.memory
        return
    with Store.open(path, create=False) as store:
        store.execute("BEGIN")
        store.rows("SELECT 1 FROM sqlite_master LIMIT 1")  # the look begins with the first read
        yield store


def _write(
    tree: Tree, store: Store, archive: zipfile.ZipFile, report: Exported, progress: Progress | None
) -> None:
    makers: dict[str, Iterable[dict[str, Any]]] = {
        "nodes": _nodes(store),
        "overrides": _table(store, "override", "id"),
        "links": _table(store, "link", "source, kind, target"),
        "facts": _facts(store),
        "runs": _runs(store),
        "journal": _journal(tree, store),
        "mail": store.records(
            "SELECT run.id AS run, name, value, at FROM mail JOIN run ON run.number = mail.run ORDER BY mail.number",
        ),
        "calls": _calls(store),
        "boards": store.records(
            "SELECT board.name, made.name AS parent, board.made_at FROM board LEFT JOIN board made"
            " ON made.number = board.parent ORDER BY board.number",
        ),
        # Removed items have nothing left to carry.
        "items": store.records(
            "SELECT (SELECT name FROM board WHERE board.number = item.board) AS board, id, section, data, tokens,"
            " version, at, agent, run, step, round, sources, audience, pinned, image, base, synced FROM item"
            " WHERE removed = 0 ORDER BY number"
        ),
        "images": _table(store, "image", "name"),
        "rule_facts": store.records(
            "SELECT memory, id, attribute, value, provenance FROM fact ORDER BY number"
        ),
        "rule_tokens": _table(store, "rule_token", "memory, production, token, state"),
        "permissions": _permissions(store),
    }
    assert tuple(makers) == MEMBERS
    digests: dict[str, str] = {}
    for name, rows in makers.items():
        number, digest = 0, hashlib.sha256()
        with archive.open(f"{name}.jsonl", "w", force_zip64=True) as out:
            for row in rows:
                number += 1
                try:
                    line = (
                        checked_line(
                            line_of(
                                _without_secrets(row, report, redacted if name == "nodes" else _redacted_json)
                            )
                        )
                        + b"\n"
                    )
                except UserError as exc:
                    raise UserError(
                        f"row {number} of {name} cannot be exported ({exc}): nothing was written"
                    ) from exc
                out.write(line)
                digest.update(line)
        report.counts[name], digests[name] = number, digest.hexdigest()
        if progress is not None:
            progress(name, number)
    folder = tree.memory.images_folder
    for row in _table(store, "image", "name"):
        most = max(row["size"], _LARGE_THUMBNAIL)
        for name in (row["name"], row["thumbnail"]):
            content = _image(folder, name, most) if name and folder is not None else None
            if content is not None:
                archive.writestr(IMAGES + name, content, zipfile.ZIP_STORED)
    tables = {row[0] for row in store.rows("SELECT name FROM sqlite_master WHERE type = 'table'")}
    unknown = [
        table
        for table in sorted(tables - EXPORTED_TABLES - LEFT_OUT_TABLES)
        if not table.startswith(("text_", "sqlite_")) and store.row(f'SELECT 1 FROM "{table}" LIMIT 1')
    ]
    report.left_out = tuple(unknown)
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "metatree": RELEASE,
        "schema": FILES.version,
        "made_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "counts": report.counts,
        "secrets_left_out": report.secrets,
        "digests": digests,
    }
    archive.writestr(MANIFEST, json.dumps({**manifest, "mark": mark_of(manifest)}, indent=2))


def _image(folder: Path, name: str, most: int) -> bytes | None:
    """Return an image as it was kept; None for a link, and for anything else that came in its place."""
    try:
        content, _ = read_inside(folder.resolve(), name, limit=most + 1)
    except (OSError, UserError):
        return None
    digest, _, end = name.partition(".")
    if len(content) > most or (folder / name).is_symlink():
        return None
    return content if end.startswith("thumbnail") or digest_bytes(content) == digest else None


def _without_secrets(value: Any, report: Exported, hide: Callable[[str], tuple[str, int]]) -> Any:
    clean, number = without_secrets(value, hide)
    report.secrets += number
    return clean


def _redacted_json(text: str) -> tuple[str, int]:
    """Return a column without secrets, also behind the line breaks in the texts of one that holds JSON."""
    number = 0
    if text[:1] in ("{", "[", '"'):
        with suppress(ValueError, RecursionError):
            clean, number = without_secrets(json.loads(text), _redacted_json)
            text = json.dumps(clean, ensure_ascii=False) if number else text
    text, more = redacted(text)
    return text, number + more


def _table(store: Store, table: str, order: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of a table, without the number of their change, which means nothing elsewhere."""
    for row in store.records(f"SELECT * FROM {table} ORDER BY {order}"):
        row.pop("seq", None)
        yield row


def _nodes(store: Store) -> Iterator[dict[str, Any]]:
    """Yield the nodes that hang somewhere, with their content, in the order of their places."""
    for row in store.records(
        "SELECT id, parent, position, home, kind, title, description, source_type, source_path, start_line, end_line,"
        " parts, provenance, attributes, (SELECT text FROM content WHERE content.id = node.id) AS content FROM node"
        " WHERE parent IS NOT NULL AND id <> ? ORDER BY seq",
        (ROOT,),
    ):
        yield _unpacked(row, "parts", "provenance", "attributes")


def _unpacked(row: dict[str, Any], *names: str) -> dict[str, Any]:
    """Return a row with what some of its columns hold as JSON."""
    return row | {name: json.loads(row[name]) if row[name] else None for name in names}


def _facts(store: Store) -> Iterator[dict[str, Any]]:
    for key, value in store.rows("SELECT key, value FROM meta ORDER BY key"):
        if key.startswith(SHAREABLE_FACTS):
            yield {"key": key, "value": json.loads(value)}


def _permissions(store: Store) -> Iterator[dict[str, Any]]:
    for key, value in Layer(store).facts(PERMISSION_FACTS).items():
        yield {"key": key, "value": value}


def _runs(store: Store) -> Iterator[dict[str, Any]]:
    """Yield runs; those that others began say so: no yes in them is this user's, wherever they go."""
    theirs = {key.removeprefix(IMPORTED_RUN) for key in Layer(store).fact_keys(IMPORTED_RUN)}
    for row in store.records("SELECT id, machine, ended FROM run ORDER BY number"):
        yield row | ({"imported": True} if row["id"] in theirs else {})


def _journal(tree: Tree, store: Store) -> Iterator[dict[str, Any]]:
    tree_places = {} if tree.path is None else {str(tree.path): HERE, str(real(tree.path)): HERE}
    memory = tree.memory.path
    board_places = {} if memory is None else {str(memory.resolve()): HERE}
    for row in store.records(
        "SELECT run.id AS run, seq, kind, at, effect, body, used FROM journal JOIN run ON run.number = journal.run"
        " ORDER BY run.number, seq"
    ):
        row = _unpacked(row, "body", "used")
        if row["seq"] == 0:
            row["body"] = with_places(row["body"], tree_places, board_places)
        yield row


def _calls(store: Store) -> Iterator[dict[str, Any]]:
    for row in _table(store, "call", "hash"):
        del row["owner"], row["expires_at"]  # who is at work on it now
        yield _unpacked(row, "result")
