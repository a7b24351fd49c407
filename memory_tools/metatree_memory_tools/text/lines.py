"""The lines of the files that a tree was built from, for tools: never from outside of the source."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from metatree.errors import UserError
from metatree.node import Node
from metatree.trees.content import file_state, shows_secrets
from metatree.trees.masking import masked_file
from metatree.trees.source_files import digest_bytes, read_inside
from metatree.trees.source_types import MemoryType, SourceFile, file_traits_of, load_memory_type
from metatree.trees.sources import FILES, disk_root, inner_path
from metatree.trees.text import decode, is_binary, lines_of
from metatree.trees.tree import Tree
from metatree_memory_tools.memory_types import memory_types

MAX_BYTES = 200_000_000
MOST_UNREAD_BYTES = 10_000_000
"""Of a file that was too large for a build to look into, which takes thirty times its size of memory to be masked."""
_HEAD = 8192


@dataclass(frozen=True, slots=True)
class FileText:
    """One file as its nodes see it."""

    path: str
    """Its id in the tree."""
    lines: list[str]
    pages: tuple[int, ...] = ()
    """First line of each page; empty when it has none."""

    def page_of(self, line: int) -> int:
        """Return the number of the page that a line is on; 0 without pages."""
        from bisect import bisect_right

        return bisect_right(self.pages, line)


def path_of(tree: Tree, node: Node) -> str:
    """Return the path, in the tree, of the file or folder that a node came from.

    Raises:
        UserError: it came from none.
    """
    if tree.hides_path(node):
        raise UserError(f"node {node.id!r} was made elsewhere: no file is read for what it says")
    path = node.path
    for node_id in reversed(tree.ancestors(node)) if path is None and node.id in tree else ():
        path = tree.get(node_id).path
        if path is not None:
            break
    if path is None:
        raise UserError(f"node {node.id!r} does not come from a file: choose one that does")
    return path


def files_below(tree: Tree, path: str) -> list[str]:
    """Return the paths of the files with a node in a folder, or of the one file itself, in order."""
    rows = tree.index.rows("SELECT path FROM file WHERE reader <> '-' ORDER BY path")
    if path == tree.root:
        return [row[0] for row in rows]
    return [row[0] for row in rows if row[0] == path or row[0].startswith(path + "/")]


def without_lines(tree: Tree, path: str) -> int:
    """Return how many files in a folder are no text of lines, by their types: databases, letters, conversations."""
    readers = dict(tree.index.rows("SELECT path, reader FROM file WHERE reader <> '-'"))
    return sum(not _is_of_lines(_kind_of(readers[file])) for file in files_below(tree, path))


def _is_of_lines(kind: MemoryType | None) -> bool:
    return kind is None or kind.source_type == "text" or file_traits_of(kind).text is not None


def _type_of(path: str, head: bytes) -> MemoryType | None:
    found = (each for each in memory_types() if each.knows(path, head, binary=is_binary(head)))
    return next((each.kind for each in found), None)


def _kind_of(reader: str) -> MemoryType | None:
    name = reader.rpartition(" ")[0]
    return load_memory_type(name) if name not in ("", "huge") else None


def text_of(tree: Tree, path: str) -> FileText:
    """Return the lines of a file of the tree; for a document those of the text taken out of it.

    Raises:
        UserError: it is no file of the tree, cannot be read, or is none of lines: a database, letters, conversations.
    """
    source = tree.source_of(path)
    row = tree.index.row("SELECT reader FROM file WHERE path = ? AND reader <> '-'", (path,))
    if source is None or source.type not in FILES or row is None:
        raise UserError(f"{path!r} is no file of this tree: give the path of one")
    inner = inner_path(source, path)
    known = file_state(tree.index, path)
    unread = row[0].startswith("huge ")
    try:
        if tree.files is not None and known is not None:
            data = tree.files(known.digest)
        else:
            raw = inner if known is None or known.raw is None else known.raw
            root = disk_root(source)
            assert root is not None
            limit = MOST_UNREAD_BYTES + 1 if unread else MAX_BYTES
            data, _ = read_inside(root, raw, limit=limit, links=False)
    except OSError as exc:
        raise UserError(f"{path!r} cannot be read: {exc.strerror}") from exc
    if tree.index.accepted and (known is None or digest_bytes(data) != known.digest):
        raise UserError(
            f"{path!r} is not the file that the tree of somebody else was built from: it is not read"
        )
    if unread and len(data) > MOST_UNREAD_BYTES:
        raise UserError(f"{path!r} is too large to be read")
    kind = _type_of(inner, data[:_HEAD]) if unread else _kind_of(row[0])
    traits = file_traits_of(kind) if kind is not None else None
    document = traits.text if traits else None
    # What its bytes hold is masked where it is taken out of them, and not here.
    if document is None and (is_binary(data) or not _is_of_lines(kind)):
        raise UserError(f"{path!r} is no text of lines: read the nodes in it")
    is_decoded = traits is not None and (traits.binary or traits.encoded(inner, data[:_HEAD]))
    if not (shows_secrets(source) or is_binary(data) or is_decoded):
        data, _, secret = masked_file(inner, data)
        if secret and unread:  # a build leaves such a file out, and did not look into this one
            raise UserError(f"{path!r} may hold secrets, so that no line of it is read: {secret}")
    if document is None:
        return FileText(path, lines_of(decode(data, python=inner.endswith((".py", ".pyi", ".pyw")))[0]))
    text = document(SourceFile(inner, data, shows_secrets(source)))
    return FileText(path, text.lines, tuple(page.line for page in text.pages))


def texts_of(tree: Tree, paths: list[str]) -> Iterator[FileText]:
    """Yield the lines of files, without those that cannot be read any more."""
    for path in paths:
        try:
            yield text_of(tree, path)
        except UserError:
            continue


def node_at(tree: Tree, path: str, line: int) -> str:
    """Return the id of the smallest node of a file that a line lies in."""
    at = path
    while True:
        inside = [
            child
            for child in tree.children(at)
            if _first(child) and _first(child) <= line <= int(child.attributes.get("end_line") or 0)
        ]
        exact = [child for child in inside if child.source is None or _holds(child, line)]
        if not exact:
            return at
        at = max(exact, key=_first).id


def _first(node: Node) -> int:
    return int(node.attributes.get("start_line") or 0)


def _holds(node: Node, line: int) -> bool:
    parts = node.source.parts if node.source is not None else ()
    return not parts or any(first <= line <= last for first, last in parts)
