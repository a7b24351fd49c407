"""A tree as a source of another tree: what it says is mounted there, read-only, and read through it.

It is copied by its words and read through for its content; its change token is the fingerprint. Lost: a search that
walks from tree to tree (marks, evidence and counts are of one store).
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from metatree._util.secret_text import masked, without_secrets
from metatree.errors import MetatreeError, UntrustedStore, UserError
from metatree.node import Node, Source
from metatree.notes.notes import IMPORTED_KIND
from metatree.storage.store import STORE_HEAD, Store, is_store_head
from metatree.trees.content import Contents, shows_secrets
from metatree.trees.layer import ROOT, Layer
from metatree.trees.source_types import Progress, SourceRef
from metatree.trees.sources import FOLDER
from metatree.trees.tree import INDEX, Tree

_OPEN = 8
_BETWEEN = 1000
_OF_TREE = re.compile(
    r"\..*|build\.lock|[\w.-]+\.db(?:-wal|-shm|-journal|\.images|-servers)?|desktop\.ini|Thumbs\.db|README.*"
)
"""What is in the folder of a tree, by its name, also what systems and people put into any folder."""


class TreeSource:
    """Trees: a `.metatree` folder, or a tree in one file. `tree:FOLDER` takes the tree of a folder, not its files.

    Nodes keep their ids below the mount, and content is read where that tree reads it. Its change token is the
    fingerprint. Where it has nodes of the tree that it is mounted into, these are cut off, so trees may refer to one
    another.
    """

    name = "tree"
    version = "1"
    on_disk = True

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._opened: dict[str, tuple[int, Tree, Contents]] = {}

    def recognises(self, location: str) -> bool:
        """Whether it is a file with a tree; a `.metatree` folder is known as one without asking."""
        return _is_store(Path(location))

    def fingerprint(self, source: SourceRef) -> str | None:
        """Return the identity of the tree with the number of its latest change."""
        with self._lock:
            tree, _ = self._tree(source)
            return f"{_identity(tree)} {tree.sequence}"

    def nodes(self, source: SourceRef, *, progress: Progress | None) -> Iterator[tuple[Node, str | None]]:
        """Yield the nodes of the tree, down to where the tree begins that it is mounted into."""
        with _open(source) as tree:
            within, identity = source.options.get("within"), _identity(tree)
            if identity == within:
                raise UserError("a tree cannot be a source of itself")
            total = len(tree)
            parents: list[str] = []
            of_others = tree.has_imported()
            hides = not shows_secrets(source) and any(map(shows_secrets, tree.sources()))
            skipped: int | None = None
            for number, (depth, node) in enumerate(tree.walk()):
                if progress is not None and number % _BETWEEN == 0:
                    progress(number, total, node.id)
                if skipped is not None and depth > skipped:
                    continue
                skipped = None
                del parents[depth:]
                seen = _text(tree, node) if of_others and tree.is_imported(node) else _seen(source, node)
                if hides:  # what nodes say in words is masked by whoever takes them
                    seen = replace(seen, attributes=without_secrets(seen.attributes, masked)[0])
                if depth == 0:
                    seen = replace(seen, attributes={**seen.attributes, "tree": identity})
                elif within is not None and node.attributes.get("tree") == within:
                    skipped = depth
                    note = "the tree that this one lies in: its nodes are not repeated here"
                    seen = replace(seen, attributes={**seen.attributes, "note": note})
                yield seen, parents[-1] if parents else None
                parents.append(node.id)

    def links(self, source: SourceRef) -> Iterator[tuple[str, str, str]]:
        """Yield (from, kind, to) of the links in the tree."""
        with _open(source) as tree:
            yield from tree.all_links()

    def content(self, source: SourceRef, ref: Source) -> str:
        """Return the content that the tree has for a node."""
        with self._lock:
            tree, contents = self._tree(source)
            return contents.read(tree.get(ref.path))

    def file_of(self, source: SourceRef, path: str) -> Path | None:
        """Return the file that a node of the tree came from."""
        with self._lock:
            tree, _ = self._tree(source)
            return tree.file_of(path)

    def _tree(self, source: SourceRef) -> tuple[Tree, Contents]:
        """Return a tree that stays open, anew when its file was replaced."""
        file = _file(source)
        try:
            number = file.stat().st_ino
        except OSError:
            number = -1
        known = self._opened.pop(source.location, None)
        if known is not None and known[0] != number:
            known[1].close()
            known = None
        if known is None:
            tree = _open(source)
            known = number, tree, Contents(tree.index, tree.sources())
        self._opened[source.location] = known
        while len(self._opened) > _OPEN:
            _, oldest, _ = self._opened.pop(next(iter(self._opened)))
            oldest.close()
        return known[1], known[2]


def is_tree(folder: Path) -> bool:
    """Whether a folder is that of a tree, as `.metatree` is; one with a file of another program called so is none.

    Nor is a folder of files that somebody has put an index into: none of its files would be read.
    """
    index = folder / INDEX
    if folder.name == FOLDER or not _is_store(index):
        return index.is_file() and folder.name == FOLDER
    if all(_OF_TREE.fullmatch(each.name) for each in folder.iterdir()):
        return True
    try:
        Store.open(index, create=False).close()
    except UntrustedStore:
        return False
    except MetatreeError:  # and whoever reads it says what is wrong
        pass
    return True


def _is_store(file: Path) -> bool:
    if not file.is_file():
        return False
    with file.open("rb") as stream:
        return is_store_head(stream.read(STORE_HEAD))


def _file(source: SourceRef) -> Path:
    place = Path(source.location)
    if not place.is_dir():
        return place
    return (place if is_tree(place) else place / FOLDER) / INDEX


def _open(source: SourceRef) -> Tree:
    tree = Tree.open(source.location)
    if not tree.memory.read_only:
        tree.memory.freeze()
    return tree


def _identity(tree: Tree) -> str:
    return str(Layer(tree.index).fact("generation"))


def _text(tree: Tree, node: Node) -> Node:
    """Return a node that somebody else made, in that tree, as it is mounted: as a text, which nothing goes by."""
    attributes = {name: node.attributes[name] for name in ("was", "said") if name in node.attributes}
    content = tree.get(node.id).content
    return replace(node, content=content, source=None, kind=IMPORTED_KIND, attributes=attributes)


def _seen(source: SourceRef, node: Node) -> Node:
    """Return a node as it is mounted: its content is asked for by its id."""
    attributes = dict(node.attributes)
    ref = None
    if node.has_content:
        inner = node.source
        lines = (inner.start_line, inner.end_line, inner.parts) if inner is not None else (None, None, ())
        ref = Source(type="tree", path=node.id, start_line=lines[0], end_line=lines[1], parts=lines[2])
        attributes.pop("path", None)
    elif node.path is not None and node.id != ROOT:
        attributes["path"] = f"{source.mount}/{node.id}"
    else:
        attributes.pop("path", None)
    return replace(node, content=None, content_kept=False, source=ref, attributes=attributes)
