"""The texts of nodes, from the tree or from the source that they came from."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from metatree._util.secret_text import masked
from metatree.errors import MetatreeError, StaleSource, UserError
from metatree.node import Node, Source
from metatree.storage.store import Store
from metatree.storage.trust import NAMED_FILE
from metatree.trees.history_text import SOURCE_TYPE as HISTORY
from metatree.trees.history_text import history_content
from metatree.trees.layer import Layer
from metatree.trees.masking import masked_data
from metatree.trees.source_files import FileState, read_source, stamp
from metatree.trees.source_types import (
    SourceFile,
    SourceRef,
    file_traits_of,
    load_memory_type,
    load_source_type,
    traits_of,
)
from metatree.trees.sources import FILES, check_place, disk_root, inner_path, source_of
from metatree.trees.text import as_text, cut_lines, decode, is_binary, lines_of

Files = Callable[[str], bytes]
"""Gives the bytes of a file by the digest that it had when its nodes were built. Raises UserError."""


@dataclass(slots=True)
class _File:
    path: str
    inner: str
    data: bytes
    text: str
    raw: str | bytes
    stamp: tuple[int, ...] | None
    lines: list[str] | None = None
    of_type: SourceFile | None = None
    """As its memory type sees it: one for all of its nodes, since types keep what they have read of one."""


class Contents:
    """Reads the content of nodes, and remembers the latest file; for one thread.

    Args:
        index: the store that knows the files of the tree.
        sources: what the tree was built from.
        files: gives the files where they are not on this machine; None for the disk.
        steady: whether the texts of one file that are asked for in a row come from one reading of it, without a look
            whether it has changed meanwhile.
    """

    def __init__(
        self,
        index: Store,
        sources: Sequence[SourceRef],
        files: Files | None = None,
        *,
        steady: bool = False,
    ) -> None:
        self._index = index
        self._files = files
        self._sources = sources
        self._steady = steady
        self._file: _File | None = None
        self._roots: dict[str, Path] = {}
        self._states: dict[str, FileState] = {}

    def expect(self, nodes: Iterable[Node]) -> None:
        """Find out at once what is known of the files of these nodes, whose content is asked for next."""
        paths = {node.source.path for node in nodes if node.content is None and node.source is not None}
        self._states = file_states(self._index, paths)

    def of(self, node: Node) -> str:
        """Return the content of a node; empty when it has none, or when its source changed or cannot be read."""
        if node.content is None and node.source is None:
            return ""
        try:
            return self.read(node)
        except (MetatreeError, OSError):
            return ""

    def read(self, node: Node) -> str:
        """Return the content of a node.

        Raises:
            UserError: it has no content, or its source cannot be read.
            StaleSource: the source changed after the tree was built.
        """
        if node.content is not None:
            return node.content
        if node.source is None:
            raise UserError(f"node {node.id!r} has no content of its own; look at its children")
        source = source_of(self._sources, node.source.path)
        if source is None:
            raise UserError(f"node {node.id!r} has a source, but the tree does not know in which folder")
        if source.type not in FILES:
            self._check_given(node, source)
            inner = replace(node.source, path=inner_path(source, node.source.path))
            check_place(source)
            text = _content_of_type(
                source.type, node.id, load_source_type(source.type).content, source, inner
            )
            return text if shows_secrets(source) else masked(text)[0]
        if node.source.type == HISTORY:
            return history_content(self._index, inner_path(source, node.source.path), source.mount)
        file = self._open(source, node.id, node.source)
        if node.source.type != "text":
            reference = replace(node.source, path=file.inner)
            kind = load_memory_type(node.source.type)
            if file.of_type is None:
                file.of_type = SourceFile(file.inner, file.data, shows_secrets(source))
            result = _content_of_type(node.source.type, node.id, kind.content, file.of_type, reference)
            return result if file.of_type.secrets else masked(result)[0]
        if node.source.start_line is None or node.source.end_line is None:
            return file.text
        if file.lines is None:
            file.lines = lines_of(file.text)
        return cut_lines(file.lines, node.source)

    def _check_given(self, node: Node, source: SourceRef) -> None:
        """Refuse to ask a source for what it did not give: a node that was added may name anything on a server.

        Lost: whatever the server says itself to have (it would have to be asked, at each node that is read).
        """
        assert node.source is not None
        if self._index.accepted:
            raise UserError(
                f"the tree of somebody else cannot be written, so what its nodes name is not asked of"
                f" {source.location!r}: build a tree of your own from it, or name its folder in METATREE_TRUST"
            )
        given = (node.id, node.source.type, node.source.path)
        sql = "SELECT 1 FROM node WHERE id = ? AND source_type = ? AND source_path = ?"
        if self._index.row(sql, given) is None:
            raise UserError(
                f"node {node.id!r} does not come from {source.location!r}: it is not read from there"
            )

    def _open(self, source: SourceRef, node_id: str, ref: Source) -> _File:
        cached = self._file
        if cached is not None and cached.path == ref.path and self._steady:
            return cached
        if self._files is not None:
            if cached is None or cached.path != ref.path:
                cached = self._file = self._recorded_file(self._files, source, node_id, ref)
            return cached
        root = self._root(source)
        if cached is None or cached.path != ref.path or not self._is_same(root, cached):
            inner = inner_path(source, ref.path)
            known = self._states.get(ref.path) or file_state(self._index, ref.path)
            if known is None and not is_named(self._index, source, ref.path):
                raise UserError(
                    f"{inner!r} is no file that the tree was built from, or that a program of yours named: it is not"
                    " read"
                )
            raw = inner if known is None or known.raw is None else known.raw
            before = None if self._steady else stamp(root, raw)
            data = read_source(root, node_id, inner, known)
            named = known is None and not shows_secrets(source) and not is_binary(data)
            if named and ref.type != "text":
                named = not file_traits_of(load_memory_type(ref.type)).encoded(inner, data)
            # What an index of somebody else says of a file does not decide whether keys in it are shown.
            foreign = self._index.accepted and ref.type == "text" and not shows_secrets(source)
            if named or foreign or (known is not None and known.masked):
                data = masked_data(inner, data)
            text = ""
            if ref.type == "text":
                text = decode(data)[0] if known is None else as_text(data, known.encoding)
            cached = self._file = _File(ref.path, inner, data, text, raw, before)
        return cached

    def _root(self, source: SourceRef) -> Path:
        """Return the folder of a source; a path costs more to make than a small file to read."""
        root = self._roots.get(source.mount)
        if root is None:
            root = disk_root(source)
            assert root is not None
            self._roots[source.mount] = root
        return root

    def _recorded_file(self, files: Files, source: SourceRef, node_id: str, ref: Source) -> _File:
        """Return a file as it was when its nodes were built: what is asked for by its digest cannot have changed."""
        known = file_state(self._index, ref.path)
        if known is None:
            raise StaleSource(node_id)
        inner, data = inner_path(source, ref.path), files(known.digest)
        if known.masked:
            data = masked_data(inner, data)
        text = as_text(data, known.encoding) if ref.type == "text" else ""
        return _File(ref.path, inner, data, text, inner if known.raw is None else known.raw, None)

    def _is_same(self, root: Path, cached: _File) -> bool:
        """Whether a file is as it was read."""
        return self._steady or (cached.stamp is not None and cached.stamp == stamp(root, cached.raw))


def shows_secrets(source: SourceRef) -> bool:
    """Whether a source is read with the keys and passwords in it."""
    return bool(source.options.get("include_secrets") or source.options.get("secrets"))


def _content_of_type(name: str, node_id: str, content: Callable[..., str], *arguments: Any) -> str:
    """Return what a type says is the text of a node; whatever else it raises becomes an error that callers know."""
    try:
        text = content(*arguments)
    except (MetatreeError, OSError):
        raise
    except Exception as exc:
        raise UserError(f"the type {name!r} cannot read {node_id!r}: {type(exc).__name__}: {exc}") from exc
    if not isinstance(text, str):
        raise UserError(f"the type {name!r} gave {type(text).__name__} as the text of {node_id!r}")
    return text


def file_state(index: Store, path: str) -> FileState | None:
    """Return what was known of a file when its nodes were built, None when it is no file of the tree."""
    return file_states(index, [path]).get(path)


def file_states(index: Store, paths: Collection[str]) -> dict[str, FileState]:
    """Return what was known of files when their nodes were built; what was left out of the tree is none of them."""
    # By the size and the time that somebody else wrote down, any file would be the one that nodes were built from.
    mtime = "-1" if index.accepted else "mtime_ns"
    rows = index.rows(
        f"SELECT path, size, {mtime}, digest, encoding, facts, ctime_ns FROM file"
        " WHERE reader <> '-' AND path IN (SELECT value FROM json_each(?))",
        (json.dumps(list(paths)),),
    )
    return {path: _state(*known) for path, *known in rows}


def _state(
    size: int, mtime_ns: int, digest: str, encoding: str, facts: str | None, ctime_ns: int
) -> FileState:
    # What most files have is a long list of imports: it takes as long to be read as the file itself.
    values = json.loads(facts) if facts and ('"raw"' in facts or '"masked"' in facts) else {}
    raw, masked = values.get("raw"), bool(values.get("masked"))
    return FileState(size, mtime_ns, digest, encoding, bytes.fromhex(raw) if raw else None, ctime_ns, masked)


def is_named(index: Store, source: SourceRef, path: str) -> bool:
    """Whether a program of this user named a file to a tree that was made by hand, which was built from none.

    Nodes that came by an import, from another machine, or with a store that was accepted have named none: below the
    folder of such a tree may be anything, such as `.env`.
    """
    return not source.type and Layer(index).fact(NAMED_FILE + path) is not None


def file_of(index: Store, source: SourceRef, node: Node) -> Path | None:
    """Return the file or folder on this machine that a node came from, None when there is none in the source."""
    try:
        check_place(source)
        root, path = disk_root(source), node.path
    except UserError:  # something else was put in its place, of which nothing is asked
        return None
    if root is None:
        find = traits_of(load_source_type(source.type)).file_of
        if find is not None:
            return None if path is None else find(source, inner_path(source, path))
        place = Path(source.location)
        return place if place.is_absolute() and place.exists() else None
    if path is None or path == ".":
        return Path(source.location) if path == "." else None
    known = file_state(index, path)
    inner = inner_path(source, path)
    may_be_file = known is not None or is_named(index, source, path)
    file = root / (
        inner if known is None or known.raw is None else known.raw.decode("utf-8", "surrogateescape")
    )
    inside = file.resolve().is_relative_to(root.resolve())
    return file if inside and (file.is_dir() or (may_be_file and file.exists())) else None
