"""Texts of many nodes of a tree, with each source file read once for neighbours in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from metatree.errors import MetatreeError
from metatree.memory_type import SourceFile, load_memory_type
from metatree.node import Node
from metatree.source import FileState, read_source
from metatree.text import as_text, cut_lines, decode, lines_of


@dataclass(slots=True)
class _File:
    path: str
    data: bytes
    text: str
    lines: list[str] | None = None


class Texts:
    """Reads the content of nodes, and remembers the latest file.

    Args:
        root: the folder that sources are relative to, None when there is none.
        state: what was known of a file when its nodes were built.
    """

    def __init__(self, root: Path | None, state: Callable[[str], FileState | None]) -> None:
        self._root = root
        self._state = state
        self._file: _File | None = None

    def of(self, node: Node) -> str:
        """Return the content of a node; empty when it has none, or when its source changed or cannot be read."""
        if node.content is not None:
            return node.content
        if node.source is None or self._root is None:
            return ""
        try:
            file = self._open(self._root, node)
            if node.source.type != "text":
                return load_memory_type(node.source.type).content(
                    SourceFile(file.path, file.data), node.source
                )
        except MetatreeError:
            return ""
        if node.source.start_line is None or node.source.end_line is None:
            return file.text
        if file.lines is None:
            file.lines = lines_of(file.text)
        return cut_lines(file.lines, node.source)

    def _open(self, root: Path, node: Node) -> _File:
        assert node.source is not None
        path = node.source.path
        if self._file is None or self._file.path != path:
            known = self._state(path)
            data = read_source(root, node.id, node.source, known)
            text = ""
            if node.source.type == "text":
                text = decode(data)[0] if known is None else as_text(data, known.encoding)
            self._file = _File(path, data, text)
        return self._file
