"""Reading a source that is no folder of files, and writing what changed: the part that all source types share.

A source that fails is a note on its top node, never an error of the build, since a search of the others goes on. A
source out of reach does not make a tree stale: each search would wait for it.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from itertools import chain, islice
from typing import Any

from metatree._util.secret_text import SHAPES_VERSION, masked, shapes_masked
from metatree.errors import UserError
from metatree.node import Node, digest_of
from metatree.trees.content import shows_secrets
from metatree.trees.layer import GAP, ROOT, Layer
from metatree.trees.source_types import Progress, SourceRef, SourceType, source_traits_of
from metatree_memory_tools.build._index_writer import IndexWriter, SourceState

_BATCH = 500
_PAGE = 10_000


def read_by(source: SourceRef, kind: SourceType) -> str:
    """Return what a source was read by: another type, or more that is masked, has it read again."""
    return f"{kind.version}{'+' if shows_secrets(source) else '-'}{SHAPES_VERSION}"


class SourceBuild:
    """One run over a source.

    Nodes come in batches, each written in one transaction; a node with the digest that it had before is not written.
    What did not come is erased at the end, and only when the source was read to its end.
    """

    def __init__(
        self,
        source: SourceRef,
        layer: Layer,
        kind: SourceType,
        progress: Progress | None,
        *,
        position: int,
        state: SourceState,
    ) -> None:
        self.source = source
        self.layer = layer
        self.kind = kind
        self.progress = progress
        self.position = position
        self.state = state
        self.writer = IndexWriter(layer, source.mount)
        self.seen = _Seen()
        self.counts: dict[str, int] = {}
        self.links: set[tuple[str, str, str]] = set()

    def run(self) -> None:
        """Read and write.

        Raises:
            MetatreeError: the source cannot be read, or its type gives what cannot be nodes.
        """
        fingerprint = self.kind.fingerprint(self.source)
        finished = not self.state.get("building") and not self.state.get("note")
        if (
            finished
            and fingerprint is not None
            and fingerprint == self.state.get("fingerprint")
            and read_by(self.source, self.kind) == self.state.get("version")
        ):
            return
        self.state.set("building", True)
        with closing(self.seen):
            self._read(fingerprint)

    def _read(self, fingerprint: str | None) -> None:
        nodes = self._placed(self.kind.nodes(self.source, progress=self.progress))
        while batch := list(islice(nodes, _BATCH)):
            with self.layer.store.transaction():
                self._write(batch)
        if not self.seen:
            raise UserError(f"the type {self.kind.name!r} gave no node for {self.source.location!r}")
        links = self._links()
        with self.layer.store.transaction():
            self.writer.all_links(links)
            self.writer.erase([node_id for node_id in self._known_ids() if node_id not in self.seen])
            self.writer.omissions({})
            for name, value in (
                ("fingerprint", fingerprint),
                ("version", read_by(self.source, self.kind)),
                ("note", None),
                ("building", False),
                ("built_at", time.time()),
            ):
                self.state.set(name, value)

    def _placed(self, nodes: Iterator[tuple[Node, str | None]]) -> Iterator[tuple[Node, str, int]]:
        """Yield nodes as the tree has them, each with its parent and its position."""
        for node, parent in nodes:
            if not self.seen:
                if node.id != ROOT:
                    raise UserError(
                        f"the first node of type {self.kind.name!r} is {node.id!r}, not its top '.'"
                    )
                placed, above, position = self._mounted(node), ROOT, self.position
            else:
                above = self._id(parent or ROOT)
                placed = self._mounted(node)
                if not node.id or above not in self.seen or placed.id in self.seen:
                    what = "comes twice" if placed.id in self.seen else f"has no parent {parent!r} before it"
                    raise UserError(f"a node {node.id!r} of type {self.kind.name!r} {what}")
                position = self.counts[above] = self.counts.get(above, 0) + GAP
            self.seen.add(placed.id)
            for kind, target in node.attributes.get("linked", ()):
                self.links.add((placed.id, str(kind), self._id(str(target))))
            yield placed, above, position

    def _id(self, inner: str) -> str:
        return self.source.mount if inner == ROOT else f"{self.source.mount}/{inner}"

    def _mounted(self, node: Node) -> Node:
        source = node.source
        if source is not None:
            source = replace(source, type=self.source.type, path=f"{self.source.mount}/{source.path}")
        # All of it at once first: one by one takes three times as long, and hardly any node has a secret.
        said = "\n".join((node.title, node.description, node.content or "", *_texts_in(node.attributes)))
        public = _clean if self._public(said) == _clean(said) else self._public
        placed = replace(
            node,
            id=_clean(self._id(node.id)),
            title=public(node.title),
            description=public(node.description),
            content=None if node.content is None else public(node.content),
            attributes=node.attributes if public is _clean else self._public_in(dict(node.attributes)),
            source=source,
        )
        return placed if placed.digest else replace(placed, digest=digest_of(placed))

    def _public(self, text: str) -> str:
        text = _clean(text)
        return text if shows_secrets(self.source) else masked(text)[0]

    def _public_in(self, value: Any) -> Any:
        """Return what attributes have, without keys in their texts; a name before a text tells of none here."""
        if isinstance(value, str):
            return value if shows_secrets(self.source) else shapes_masked(value)
        if isinstance(value, dict):
            return {self._public_in(name): self._public_in(each) for name, each in value.items()}
        return [self._public_in(each) for each in value] if isinstance(value, list | tuple) else value

    def _write(self, batch: list[tuple[Node, str, int]]) -> None:
        layer = self.layer
        known = layer.nodes(node.id for node, _, _ in batch)
        seq = layer.next_seq()
        fresh = []
        for node, parent, position in batch:
            if node.id not in known:
                fresh.append((seq, node, parent, position))
                seq += 1
                continue
            before, place = known[node.id][0], layer.place(node.id)
            if place is not None and place[0] != parent:
                layer.put(node.id, seq, parent, position)
                seq += 1
            elif place is not None and place[1] != position:
                layer.reposition([(position, node.id)])
            if before.digest != node.digest:
                layer.rewrite(seq, node)
                seq += 1
            elif replace(before, content_kept=False) != node:
                layer.rewrite(None, node)
        layer.insert(fresh)

    def _links(self) -> set[tuple[str, str, str]]:
        """Return the links between nodes that came, in the ids of the tree."""
        for one, kind, other in source_traits_of(self.kind).links(self.source):
            self.links.add((self._id(one), str(kind), self._id(other)))
        return {link for link in self.links if link[0] in self.seen and link[2] in self.seen}

    def _known_ids(self) -> Iterator[str]:
        """Yield the ids of the source that the layer has, page by page."""
        last = ""
        own = self.writer.within("id")
        while rows := self.layer.store.rows(
            f"SELECT id FROM node WHERE {own} AND id > ? ORDER BY id LIMIT {_PAGE}", (last,)
        ):
            yield from (row[0] for row in rows)
            last = rows[-1][0]


class _Seen:
    """The ids that came, on the disk: a source may have more nodes than fit into the memory."""

    def __init__(self) -> None:
        # A database without a name is a file that is gone when it is closed.
        self._store = sqlite3.connect("", isolation_level=None)
        self._store.executescript(
            "PRAGMA journal_mode=OFF; PRAGMA cache_size=-8000;"
            " CREATE TABLE seen (id TEXT PRIMARY KEY) WITHOUT ROWID; BEGIN"
        )
        self._some = False

    def __bool__(self) -> bool:
        return self._some

    def __contains__(self, node_id: str) -> bool:
        return self._store.execute("SELECT 1 FROM seen WHERE id = ?", (node_id,)).fetchone() is not None

    def add(self, node_id: str) -> None:
        self._some = True
        self._store.execute("INSERT INTO seen VALUES (?)", (node_id,))

    def close(self) -> None:
        self._store.close()


def _texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for each in chain.from_iterable(value.items()) if isinstance(value, Mapping) else value:
            yield from _texts_in(each)


def _clean(text: str) -> str:
    """Return a text without halves of surrogate pairs, which a store cannot hold."""
    return text.encode("utf-8", "replace").decode()
