"""The tree: nodes in a fixed order under one root, kept in SQLite, open at once whatever its size."""

from __future__ import annotations

import logging
import os
import posixpath
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path
from shlex import quote
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from metatree._util.links import real
from metatree._util.named_file import typed_path
from metatree.errors import BrokenStore, UntrustedStore, UserError
from metatree.node import Node
from metatree.storage.store import Store, sync_folder, writable
from metatree.storage.trust import NAMED_FILE, sign
from metatree.trees.content import Contents, file_of
from metatree.trees.edits import Editor, create_root
from metatree.trees.layer import ROOT, Layer
from metatree.trees.overlay import Overlay
from metatree.trees.source_types import SourceRef, load_builder
from metatree.trees.sources import (
    FOLDER,
    is_path,
    source_of,
    source_record,
    sources_of,
    tree_path,
)

if TYPE_CHECKING:
    import networkx

    from metatree.shared import Sharing
    from metatree.trees.content import Files
    from metatree.trees.source_types import Progress

__all__ = ["ROOT", "Tree"]

INDEX = "index.db"
MEMORY = "memory.db"

_log = logging.getLogger("metatree")
_PURGE_ROWS = 10_000
_TEXTS_PAGE = 500


def memory_advice(folder: Path) -> str:
    """Return what to do where the memory in the folder of a tree cannot be read."""
    return (
        f"put back a copy of it, or move {folder / MEMORY}* away to go on without what was added to the tree"
    )


class Tree:
    """Nodes in a fixed order under one root.

    A tree that was built has two files: `index.db`, which can be built again from the sources, and `memory.db`
    with everything that was added, moved, deleted or described otherwise through this class; the second is laid
    over the first. A tree made by hand is one file, or in memory. Where a parameter takes a node, an id or a
    `Node` will do. Threads may share a tree; processes may open the same files.

    Example:
        >>> tree = Tree.create(":memory:")
        >>> _ = tree.add(Node(id="a", title="Auth", description="Login and tokens"), parent=tree.root)
        >>> _ = tree.add(Node(id="a1", title="tokens.py", content="TTL = 60"), parent="a")
        >>> [node.title for node in tree.children("a")], tree.ancestors("a1"), tree.content("a1")
        (['tokens.py'], ['.', 'a'], 'TTL = 60')
    """

    root: str = ROOT

    def __init__(self, memory: Store, index: Store | None = None, *, path: Path | None = None) -> None:
        """Use `Tree.create` or `Tree.open`."""
        self.path = None if path is None else path.absolute()
        """The folder or file it lives in, None for one in memory."""
        base = Path() if self.path is None else self.path if self.path.is_dir() else self.path.parent
        self._folder = real(base)  # where it was opened: a link may come in the place of a folder above it
        self.memory = memory
        """The store of what was added to the tree, and of runs and boards."""
        self.index = memory if index is None else index
        """The store of what can be built again, the same one in a one-file tree."""
        self._memory = Layer(memory)
        self._built = None if index is None else Layer(index)
        self._overlay = Overlay(self._memory, self._built)
        self._editor = Editor(self._overlay)
        self.scratch: dict[str, Any] = {}
        """What users of this object keep with it while it lives, such as an index that was read; by their own names."""
        self.shared: Sharing | None = None
        """Where its runs, tool calls and boards are kept for several machines; None for its own memory."""
        self.files: Files | None = None
        """What gives the files that nodes were built from, where they are not on this machine; None for the disk."""

    # making and opening

    @classmethod
    def create(
        cls,
        path: str | Path = ":memory:",
        *,
        title: str = "memory",
        description: str = "",
        source_root: str | Path | None = None,
    ) -> Self:
        """Make a tree in one file, or in memory.

        Args:
            path: a file that does not exist yet, or `:memory:`.
            title: what the root is called.
            description: what the root says.
            source_root: the folder that the `source` of its nodes is read from, if there are such nodes; of it are
                read the files that nodes name which are added here, and not those of nodes that are imported.

        Raises:
            UserError: the file exists.
        """
        file = None if str(path) == ":memory:" else typed_path(path)
        if file is not None and file.exists():
            raise UserError(f"{str(file)!r} exists: open it with Tree.open, or choose another path")
        store = Store.open(":memory:" if file is None else file)
        layer = Layer(store)
        create_root(layer, Node(ROOT, title, description, kind="folder"))
        if source_root is not None:
            source = SourceRef(str(typed_path(source_root).resolve()))
            with store.transaction():
                layer.set_fact("sources", [source_record(source, None)])
                layer.name_files([""])
                sign(store)
        return cls(store, path=file)

    @classmethod
    def open(cls, path: str | Path, *, trust: bool = False) -> Self:
        """Open a tree: a `.metatree` folder, a folder that has one, or a one-file tree.

        Where its folder cannot be written it can be read; what writes raises `UserError`. A `memory.db` that somebody
        else made is left alone, with a warning: nothing of it is read, and nothing can be added.

        Args:
            path: the folder or the file.
            trust: whether the tree is used whoever made it, with the commands and addresses that it names.

        Raises:
            UserError: there is no tree; the message says how to build one.
            UntrustedStore: somebody else made it; the message says how to accept it.
            BrokenStore: a file is damaged; the message says what to do.
        """
        if not isinstance(path, str | os.PathLike):
            raise UserError(f"Tree.open takes the path of a tree or of its source, not {path!r}")
        place = typed_path(path)
        if place.is_dir():
            folder = place if (place / INDEX).exists() else place / FOLDER
            source = folder.parent if folder.name == FOLDER else place
            if not (folder / INDEX).exists():
                raise UserError(
                    f"there is no tree in {str(place)!r}: make one with `metatree build {quote(str(source))}`"
                )
            return cls._open_folder(folder, trust)
        if not place.exists():
            raise UserError(f"there is nothing at {str(place)!r}: make a tree with `metatree build PATH`")
        if place.name in (INDEX, MEMORY) and (place.parent / INDEX).exists():
            return cls._open_folder(place.parent, trust)
        store = Store.open(place, create=False, trust=trust)
        if not Layer(store).has(ROOT):
            store.close()
            raise UserError(f"{str(place)!r} is a metatree store without a tree in it")
        made = cls(store, path=place)
        if not store.read_only and Layer(store).fact(NAMED_FILE) is None:
            made._editor.begin_list_of_files()
        return made

    @classmethod
    def _open_folder(cls, folder: Path, trust: bool) -> Self:
        beside = folder.name == FOLDER
        named = quote(str(folder.parent)) if beside else f"SOURCE --tree {quote(str(folder))}"
        again = f"build it again with `metatree build {named}`, nothing that was added is lost"
        keep = memory_advice(folder)
        index = None
        try:
            index = Store.open(folder / INDEX, create=False, advice=again, trust=trust)
            if not Layer(index).has(ROOT):
                raise BrokenStore(
                    f"{folder / INDEX} has no root; {again}", path=str(folder / INDEX), reason="begun"
                )
            if (folder / MEMORY).exists():
                memory = cls._memory_of(folder / MEMORY, keep, trust)
            elif writable(folder / MEMORY):
                memory = Store.open(folder / MEMORY, advice=keep)
                sync_folder(folder.absolute().parent)
            else:
                memory = Store.open(":memory:")  # nothing was added, and nothing can be
                memory.freeze()
        except BaseException as exc:
            if index is not None:
                index.close()
            if isinstance(exc, BrokenStore) and exc.reason == "newer" and index is None:
                raise BrokenStore(f"{exc}, or {again}", path=exc.path, reason=exc.reason) from exc
            raise
        return cls(memory, index, path=folder)

    @staticmethod
    def _memory_of(file: Path, advice: str, trust: bool) -> Store:
        """Open a memory; in the place of one that somebody else made comes an empty one that cannot be written."""
        try:
            return Store.open(file, create=False, advice=advice, trust=trust)
        except UntrustedStore as exc:
            _log.warning("%s", exc)
            memory = Store.open(":memory:")
            memory.freeze(f"nothing can be added: {exc}")
            return memory

    def close(self) -> None:
        """Reclaim some of what was deleted, and close the files; closing twice is allowed."""
        if not self.memory.closed:
            if not self.memory.read_only and self._memory.has_detached():
                self.purge()
            self.memory.close()
        self.index.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # reading

    @contextmanager
    def synced(self) -> Iterator[None]:
        """Notice now what others wrote to the tree, and not again in this thread until the block ends.

        For many reads in a row: each looks for itself otherwise, which is half of what a short one costs.
        """
        with self._overlay.synced():
            yield

    def get(self, node: str | Node) -> Node:
        """Return a node with the content that the tree keeps.

        Raises:
            UnknownNode: it is not in the tree; has up to three suggestions.
        """
        return self._overlay.required(_id(node))

    def find(self, node: str | Node) -> Node | None:
        """Return a node with the content that the tree keeps, None when it is not in the tree."""
        self._overlay.sync()
        return self._overlay.node(_id(node))

    def __contains__(self, node: str | Node) -> bool:
        self._overlay.sync()
        return self._overlay.contains(_id(node))

    def children(self, node: str | Node = ROOT) -> list[Node]:
        """Return the children of a node in order.

        Content that the tree keeps is left out; `has_content` is right, and `get` or `content` has the text.

        Raises:
            UnknownNode: the node is not in the tree.
        """
        self._overlay.require(_id(node))
        return [child for _, child in self._overlay.children(_id(node))]

    def child_count(self, node: str | Node = ROOT) -> int:
        """Return the number of children of a node; raises as `children` does."""
        self._overlay.require(_id(node))
        return self._overlay.child_count(_id(node))

    def child_total(self, nodes: Sequence[str]) -> int:
        """Return the number of children of several nodes together, which must be in the tree: that is not looked up."""
        self._overlay.sync()
        return self._overlay.child_total(nodes)

    def child_counts(self, nodes: Sequence[str]) -> dict[str, int]:
        """Return the number of children of each of several nodes, which must be in the tree: that is not looked up."""
        self._overlay.sync()
        return self._overlay.child_counts(nodes)

    def child_page(self, node: str | Node = ROOT, *, start: int = 0, count: int = 100) -> list[Node]:
        """Return `count` children of a node from number `start` on, as `children` has them, without reading the rest.

        Raises:
            UnknownNode: the node is not in the tree.
        """
        self._overlay.require(_id(node))
        ids = self._overlay.child_page(_id(node), max(0, start), max(0, count))
        nodes = self._overlay.nodes(ids)
        return [_listed(nodes[node_id][0]) for node_id in ids if node_id in nodes]

    def child_number(self, node: str | Node) -> int:
        """Return how many siblings come before a node, 0 for the root; raises `UnknownNode`."""
        parent = self.parent(node)
        return 0 if parent is None else self._overlay.child_number(parent, _id(node))

    def parent(self, node: str | Node) -> str | None:
        """Return the id of the parent, None for the root; raises `UnknownNode`."""
        chain = self._overlay.required_chain(_id(node))
        return chain[1] if len(chain) > 1 else None

    def ancestors(self, node: str | Node) -> list[str]:
        """Return the ids from the root down to the parent, none for the root; raises `UnknownNode`."""
        return self._overlay.required_chain(_id(node))[:0:-1]

    def ways(self, nodes: Iterable[str]) -> dict[str, list[str]]:
        """Return what `ancestors` does for those of several nodes that are in the tree, at once."""
        self._overlay.sync()
        return {node: chain[:0:-1] for node, chain in self._overlay.chains(nodes).items()}

    def walk(self, node: str | Node = ROOT, *, depth: int | None = None) -> Iterator[tuple[int, Node]]:
        """Yield a node and what lies under it, each parent before its children, with the depth below the start.

        Content that the tree keeps is left out. The tree may change meanwhile.

        Args:
            node: where to start; depth 0.
            depth: how deep to go, None for all the way.
        """
        pending: list[Iterator[Node]] = [iter([replace(self.get(node), content=None)])]
        while pending:
            current = next(pending[-1], None)
            if current is None:
                pending.pop()
                continue
            level = len(pending) - 1
            yield level, current
            if depth is None or level < depth:
                self._overlay.sync()
                pending.append(iter([child for _, child in self._overlay.children(current.id)]))

    def ids(self, kinds: Collection[str]) -> list[str]:
        """Return the ids of all nodes of these kinds, in no order."""
        self._overlay.sync()
        candidates = {node_id for layer in self._overlay.layers for node_id in layer.ids(kinds)}
        return [node_id for node_id in candidates if self._overlay.contains(node_id)]

    def content(self, node: str | Node) -> str:
        """Return the text of a node, read from its source when the tree does not keep it.

        Raises:
            UnknownNode: it is not in the tree.
            UserError: it has no content, or its source cannot be read.
            StaleSource: the source changed after the tree was built.
        """
        return Contents(self.index, self.sources(), self.files).read(self.get(node))

    def links(self, node: str | Node, kind: str | None = None) -> list[tuple[str, str]]:
        """Return (kind, target id) of the links that leave a node, without those to nodes that are not there."""
        return self._links(node, kind, "target", "source")

    def links_to(self, node: str | Node, kind: str | None = None) -> list[tuple[str, str]]:
        """Return (kind, source id) of the links that arrive at a node, without those from nodes that are not there."""
        return self._links(node, kind, "source", "target")

    def all_links(self) -> Iterator[tuple[str, str, str]]:
        """Yield (source id, kind, target id) of all links between nodes that are there, in no order."""
        self._overlay.sync()
        yielded: set[tuple[str, str, str]] = set()
        for layer in self._overlay.layers:
            for link in layer.store.rows("SELECT source, kind, target FROM link"):
                if (
                    link not in yielded
                    and self._overlay.contains(link[0])
                    and self._overlay.contains(link[2])
                ):
                    yielded.add((link[0], link[1], link[2]))
                    yield link[0], link[1], link[2]

    def link_totals(self, nodes: Collection[str], kind: str) -> dict[str, int]:
        """Return how many links of a kind arrive at each of these nodes; nodes without any are left out."""
        totals: Counter[str] = Counter()
        for layer in self._overlay.layers:
            for start in range(0, len(ids := sorted(nodes)), _TEXTS_PAGE):
                page = ids[start : start + _TEXTS_PAGE]
                marks = ",".join("?" * len(page))
                sql = f"SELECT target, count(*) FROM link WHERE kind = ? AND target IN ({marks}) GROUP BY target"
                for target, total in layer.store.rows(sql, (kind, *page)):
                    totals[target] += total
        return dict(totals)

    def _links(self, node: str | Node, kind: str | None, wanted: str, given: str) -> list[tuple[str, str]]:
        self._overlay.require(_id(node))
        sql = f"SELECT kind, {wanted} FROM link WHERE {given} = :node AND (:kind IS NULL OR kind = :kind)"
        links: dict[tuple[str, str], None] = {}
        for layer in self._overlay.layers:
            links.update(dict.fromkeys(layer.store.rows(sql, {"node": _id(node), "kind": kind})))
        return sorted(pair for pair in links if self._overlay.contains(pair[1]))

    def __len__(self) -> int:
        self._overlay.sync()
        return self._overlay.count()

    def resolve(self, text: str) -> str:
        """Return the id that a person means: an id, a path with `./` or a `/` at its end, or a path of the system.

        Raises:
            UnknownNode: nothing fits; has up to three suggestions.
        """
        found = self.resolved(text)
        if found is None:
            raise self._overlay.unknown(text)
        return found

    def resolved(self, text: str) -> str | None:
        """Return what `resolve` does, None when nothing fits, without looking for what may be meant."""
        self._overlay.sync()
        path = text.strip().replace("\\", "/")
        candidates = [
            text,
            text.strip(),
            posixpath.normpath(path) if path else "",
            *self._tree_paths(text.strip()),
        ]
        for candidate in candidates:
            if candidate and self._overlay.contains(candidate):
                return candidate
        return None

    def _tree_paths(self, text: str) -> Iterator[str]:
        """Yield what a path of the system is called in the tree, when it lies in the source."""
        if "\0" in text:
            return
        absolute = typed_path(text).absolute()
        for source in self.sources():
            root = Path(source.location)
            for way in (Path(os.path.normpath(absolute)), absolute.resolve()):
                for base in (root, root.resolve()) if is_path(source) else ():
                    if way.is_relative_to(base):
                        yield tree_path(source, way.relative_to(base).as_posix())

    @property
    def source_root(self) -> Path | None:
        """The folder that the tree is of, None for a tree made by hand and for one of several sources."""
        sources = self.sources()
        return Path(sources[0].location) if sources and not sources[0].mount else None

    def sources(self) -> list[SourceRef]:
        """Return what the tree was built from, in order."""
        return sources_of(Layer(self.index), self._folder)

    def source_of(self, node: str | Node) -> SourceRef | None:
        """Return the source that a node came from, or that of the nearest node above it which came from one.

        None for what lies above several sources, or under no node that came from a source; raises `UnknownNode`.
        """
        sources = self.sources()
        for node_id in reversed([*self.ancestors(node), _id(node)]) if sources else ():
            if self._built is None or self._built.has(node_id):
                return source_of(sources, node_id)
        return None

    def file_of(self, node: str | Node) -> Path | None:
        """Return the file or folder on this machine that a node came from, as `source_of` finds it.

        Never a path outside of the source; None when it is not there. Of a database in a file it is that file.
        """
        source, current = self.source_of(node), self.get(node)
        if source is None:
            return None
        for node_id in reversed(self.ancestors(node)) if current.path is None else ():
            current = self.get(node_id)
            if current.path is not None:
                break
        return file_of(self.index, source, current)

    def refresh(self, *, progress: Progress | None = None) -> None:
        """Bring the tree up to date with what it was built from; only what changed is read again.

        One of several sources that cannot be read keeps its nodes, and its top node says so in `attributes["note"]`.

        Raises:
            UserError: it was not built from a source, or nothing is installed that can.
        """
        if not any(source.type for source in self.sources()):
            raise UserError(f"{self!r} was not built from a source, so there is nothing to refresh it from")
        load_builder().refresh(self, progress=progress)

    def stale(self) -> bool:
        """Whether `refresh` would change something: a look at names, sizes and times; False for a tree by hand."""
        return any(source.type for source in self.sources()) and load_builder().stale(self)

    def omissions(self) -> list[tuple[str, str]]:
        """Return the paths that the build left out, each with the reason, in order."""
        rows = self.index.rows("SELECT path, reason FROM omission ORDER BY path")
        return [(path, reason) for path, reason in rows]

    def info(self) -> dict[str, Any]:
        """Return figures on the tree.

        Returns:
            `nodes`, `kinds` (kind -> number), `omissions`, `built_at` (Unix time or None), `source_root`,
            `sources` (their locations), `path`, `index_bytes`, `memory_bytes`.
        """
        self._overlay.sync()
        root = self.source_root
        return {
            "nodes": self._overlay.count(),
            "kinds": self._overlay.kinds(),
            "omissions": self.index.value("SELECT count(*) FROM omission"),
            "built_at": Layer(self.index).fact("built_at"),
            "source_root": None if root is None else str(root),
            "sources": [source.location for source in self.sources()],
            "path": None if self.path is None else str(self.path),
            "index_bytes": 0 if self._built is None else self.index.size_bytes(),
            "memory_bytes": self.memory.size_bytes(),
        }

    # writing

    def add(self, node: Node, parent: str | Node = ROOT, *, before: str | None = None) -> Node:
        """Add a node under a parent, as its last child or before another one; return it with its digest.

        An id that was deleted may be used again; what was under it stays deleted.

        Raises:
            UserError: the id is in use, or a field cannot be kept.
            UnknownNode: the parent, or the node to put it before, is not there.
        """
        return self._editor.add(node, _id(parent), before)

    def add_many(self, nodes: Iterable[tuple[Node, str]]) -> int:
        """Add nodes, each with the id of its parent, in order; parents first. Return how many.

        All are added or none. Much faster than `add` for thousands of nodes; memory stays flat.

        Raises: as `add`.
        """
        return self._editor.add_many(nodes)

    def is_imported(self, node: str | Node) -> bool:
        """Whether a node came by an import or with a memory that was accepted: nothing is fetched for what it says."""
        node_id = _id(node)
        return self._memory.is_imported(node_id) or (
            self._has_imported_index() and self._built is not None and self._built.is_imported(node_id)
        )

    def hides_path(self, node: str | Node) -> bool:
        """Whether the path that a node says is nobody's: it is imported, and no file is compared with what it says.

        Files of an index that was accepted where it cannot be written are read if they are the very ones.
        """
        if self._memory.is_imported(_id(node)):
            return True
        compared = self.index.accepted and any(source.type for source in self.sources())
        return not compared and self.is_imported(node)

    def has_imported(self) -> bool:
        """Whether any node came so."""
        return self._memory.has_imported() or self._has_imported_index()

    def _has_imported_index(self) -> bool:
        """Whether the nodes of the index were accepted with it; those that were built anew come from its sources."""
        return self._built is not None and self._built.has_imported()

    def add_imported(self, node: Node, parent: str) -> None:
        """Add a node that somebody else made, as the last one under a parent; raises as `add`."""
        self._editor.add(node, parent, None, own=False)

    def update(self, node: Node) -> Node:
        """Give a node other words, content, source, provenance or attributes; return it with its digest.

        Of a built node only title and description can be changed (and the provenance that says by whom); they
        stay when the tree is built again. Content that a listing left out is kept.

        Raises:
            UnknownNode: it is not in the tree.
            UserError: it is a built node and more than its words would change.
        """
        return self._editor.update(node)

    def move(self, node: str | Node, parent: str | Node, *, before: str | None = None) -> None:
        """Put a node, with all that lies under it, below another parent.

        Raises:
            UserError: it is the root, or the parent lies under the node.
            UnknownNode: one of them is not in the tree.
        """
        self._editor.move(_id(node), _id(parent), before)

    def delete(self, node: str | Node) -> None:
        """Take a node, with all that lies under it, out of the tree; its source is left alone.

        Raises:
            UserError: it is the root.
            UnknownNode: it is not in the tree.
        """
        self._editor.delete(_id(node))

    def link(self, source: str | Node, target: str | Node, kind: str) -> None:
        """Join two nodes by a link of some kind, besides the tree; joining them again changes nothing."""
        with self.memory.transaction():
            self._overlay.require(_id(source))
            self._overlay.require(_id(target))
            self.memory.execute(
                "INSERT OR IGNORE INTO link(source, kind, target) VALUES (?, ?, ?)",
                (_id(source), kind, _id(target)),
            )

    def unlink(self, source: str | Node, target: str | Node, kind: str) -> None:
        """Take back a link that was added with `link`; one that is not there is no error."""
        self.memory.execute(
            "DELETE FROM link WHERE source = ? AND kind = ? AND target = ?", (_id(source), kind, _id(target))
        )

    def purge(self, rows: int = _PURGE_ROWS) -> int:
        """Reclaim at most so many rows of what was deleted from the memory layer; return how many it were."""
        return self._editor.purge(rows)

    # for indexes

    @property
    def sequence(self) -> int:
        """The number of the latest change; grows."""
        self._overlay.sync()
        return self._numbers()[2]

    def _numbers(self) -> tuple[int, int, int]:
        memory = self._memory.last_seq()
        built = 0 if self._built is None else self._built.last_seq()
        # Lost: one counter by the clock, under which a change of one file can be committed behind a token of the other.
        return built, memory, built << 32 | memory

    def changes(self, since: int = 0) -> Iterator[tuple[int, str, bool]]:
        """Yield (number, id, still there) of what changed after a number, in order of their numbers.

        A number that was yielded, or `sequence` as it was before the first, continues from there. All ids that
        went with a deleted node are yielded; a moved node is yielded alone, without what lies under it.
        """
        self._overlay.sync()
        built, memory, _ = self._numbers()
        since_built, since_memory = since >> 32, since & 0xFFFFFFFF
        if self._built is not None:
            for seq, node_id, row in self._built.changes(since_built, built):
                exists = self._overlay.contains(node_id, row=bool(row))
                yield seq << 32 | since_memory, node_id, exists
        for seq, node_id, row in self._memory.changes(since_memory, memory):
            number = built << 32 | seq
            exists = self._overlay.contains(node_id, row=bool(row))
            for below in self._overlay.covered(node_id) if exists else self._overlay.below(node_id):
                if not self._overlay.contains(below):
                    yield number, below, False
            yield number, node_id, exists

    def to_networkx(self, node: str | Node = ROOT, *, depth: int | None = None) -> networkx.DiGraph:
        """Return a node and what lies under it as a directed graph; see `metatree.trees._drawing.to_networkx`."""
        from metatree.trees._drawing import to_networkx

        return to_networkx(self, node, depth=depth)

    def texts(self, ids: Iterable[str]) -> Iterator[tuple[Node, str | None, str]]:
        """Yield those of the nodes that are there, in order, each with its parent's id and its content.

        Much faster than `find`, `parent` and `content` for many nodes: a file is read once for neighbours in it.
        The content is empty where there is none, and where the source changed or cannot be read.
        """
        contents = Contents(self.index, self.sources(), self.files, steady=True)
        pending = iter(ids)
        while page := list(islice(pending, _TEXTS_PAGE)):
            self._overlay.sync()
            nodes = self._overlay.nodes(page)
            contents.expect(node for node, _ in nodes.values())
            for node_id in page:
                if node_id in nodes:
                    node, parent = nodes[node_id]
                    yield node, parent, contents.of(node)

    def nodes(self, ids: Iterable[str]) -> Iterator[Node]:
        """Yield those of the nodes that are there, with kept content; what is in their sources is not read."""
        pending = iter(ids)
        while page := list(islice(pending, _TEXTS_PAGE)):
            self._overlay.sync()
            yield from (node for node, _ in self._overlay.nodes(page).values())

    def __repr__(self) -> str:
        return f"Tree({':memory:' if self.path is None else str(self.path)!r})"


def _listed(node: Node) -> Node:
    """Return a node as a listing has it: without the content that the tree keeps."""
    return node if node.content is None else replace(node, content=None, content_kept=True)


def _id(node: str | Node) -> str:
    return node.id if isinstance(node, Node) else node
