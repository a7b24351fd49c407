"""The tree: nodes in a fixed order under one root, kept in SQLite, open at once whatever its size."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

from metatree.node import Node

ROOT = "."
"""Id of every tree's root node."""


class Tree:
    """INTERFACE (implementation follows): see the brief."""

    path: Path | None            # folder or file it lives in, None for ":memory:"
    root: str                    # always ROOT

    @classmethod
    def create(cls, path: str | Path = ":memory:", *, title: str = "memory", description: str = "") -> Self: ...
    @classmethod
    def open(cls, path: str | Path) -> Self: ...      # a .metatree folder, a folder that has one, or a one-file tree
    def close(self) -> None: ...

    # reading
    def get(self, node: str | Node) -> Node: ...              # UnknownNode with suggestions
    def find(self, node: str) -> Node | None: ...             # None when absent
    def children(self, node: str | Node) -> list[Node]: ...   # in order; inline content not loaded? see brief
    def parent(self, node: str | Node) -> str | None: ...
    def ancestors(self, node: str | Node) -> list[str]: ...   # from the root down to the parent; [] for the root
    def walk(self, node: str | Node = ROOT, *, depth: int | None = None) -> Iterator[tuple[int, Node]]: ...
    def content(self, node: str | Node) -> str: ...           # read from the source when the tree does not keep it
    def links(self, node: str | Node, kind: str | None = None) -> list[tuple[str, str]]: ...   # (kind, target id)
    def __len__(self) -> int: ...

    # writing (to the memory layer)
    def add(self, node: Node, parent: str | Node = ROOT, *, before: str | None = None) -> Node: ...
    def update(self, node: Node) -> Node: ...
    def move(self, node: str | Node, parent: str | Node, *, before: str | None = None) -> None: ...
    def delete(self, node: str | Node) -> None: ...
    def link(self, source: str, target: str, kind: str) -> None: ...

    # for indexes
    def changes(self, since: int) -> Iterator[tuple[int, str, bool]]: ...   # (sequence number, id, still there)
    @property
    def sequence(self) -> int: ...
