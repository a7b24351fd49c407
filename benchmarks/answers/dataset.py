"""What a set is: questions, the sources that they are asked of, and what makes an answer to one right."""

from __future__ import annotations

import hashlib
import html
import json
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from metatree_memory_tools import build_tree

from metatree import Node, Tree

LINES = 12
"""Lines of a passage of the baseline."""


@dataclass(frozen=True, slots=True)
class Question:
    """One question; `pattern` says what is right, or `gold` and `answer` do where there is none."""

    id: str
    source: str
    kind: str
    text: str
    answerable: bool
    pattern: str = ""
    """Found in the text of a right answer, without regard to case, in single blanks."""
    parts: tuple[str, ...] = ()
    """A pattern for each thing that is asked, where there are several."""
    gold: frozenset[str] = frozenset()
    """Nodes that hold the answer."""
    answer: str = ""
    """In the words of the set."""


@dataclass(frozen=True, slots=True)
class Passage:
    """Lines of a file or a node; `node` is the path of the file, or the id of the node."""

    node: str
    text: str


class Source(Protocol):
    """What questions are asked of."""

    @property
    def key(self) -> str:
        """A hash of what the tree is made from, so that it is made once."""
        ...

    def build(self, place: Path) -> Tree:
        """Build the tree in a folder that is not there yet."""
        ...

    def passages(self) -> Iterable[Passage]:
        """Yield what the baseline searches."""
        ...


@dataclass(slots=True)
class QuestionSet:
    """Questions and their sources by name."""

    name: str
    questions: Sequence[Question]
    sources: Mapping[str, Source]
    others: Mapping[str, str] = field(default_factory=dict)
    """Source -> the wrong one that its questions are asked of too; the next one where it is not named."""

    def other(self, source: str) -> str:
        """Return a source that does not answer the questions of this one."""
        names = list(self.sources)
        return self.others.get(source) or names[(names.index(source) + 1) % len(names)]


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder of files, whose tree is that of `metatree build`; implements `Source`."""

    path: Path
    digest: str
    """Of the archive that it was unpacked from."""

    @property
    def key(self) -> str:
        """The archive's hash, with that of the code that builds: a change of a builder is a change of the tree."""
        return digest([self.digest, _code("metatree", "trees"), _code("metatree_memory_tools")])

    def build(self, place: Path) -> Tree:
        """Build the tree as `metatree build` does."""
        return build_tree(str(self.path), out=place)

    def passages(self) -> Iterator[Passage]:
        """Yield twelve lines after the other of each text file; HTML without its tags, lines kept."""
        for path in sorted(path for path in self.path.rglob("*") if path.is_file() and not path.is_symlink()):
            data = path.read_bytes()
            if b"\0" in data:
                continue
            text = data.decode("utf-8", "replace")
            if path.suffix in (".html", ".htm"):
                text = html.unescape(re.sub(r"</?[A-Za-z!][^>]*>", "", text))
            yield from cut(path.relative_to(self.path).as_posix(), text)


@dataclass(frozen=True, slots=True)
class Nodes:
    """Nodes of a collection that is no folder: a conversation, a filing, papers; implements `Source`."""

    title: str
    nodes: Sequence[tuple[Node, str]]
    """(node, id of its parent), parents first; `.` is the root."""

    @property
    def key(self) -> str:
        """A hash of the nodes."""
        return digest(
            [
                json.dumps([node.id, node.title, node.description, node.content, node.kind, above])
                for node, above in self.nodes
            ]
        )

    def build(self, place: Path) -> Tree:
        """Make the tree by `Tree.create`."""
        tree = Tree.create(place, title=self.title)
        tree.add_many(self.nodes)
        return tree

    def passages(self) -> Iterator[Passage]:
        """Yield twelve lines after the other of each node with content."""
        for node, _ in self.nodes:
            if node.content:
                yield from cut(node.id, node.content)


def cut(node: str, text: str) -> Iterator[Passage]:
    """Yield passages of twelve lines; empty ones are left out.

    Example:
        >>> [len(passage.text.splitlines()) for passage in cut("a", "x\\n" * 30)]
        [12, 12, 6]
    """
    lines = text.split("\n")
    for first in range(0, len(lines), LINES):
        piece = "\n".join(lines[first : first + LINES])
        if piece.strip():
            yield Passage(node, piece)


def ready(source: Source, name: str, work: Path, index: Callable[[Tree], None]) -> Tree:
    """Open the tree of a source, built and indexed first if it is not in the work folder yet."""
    place = work / "trees" / f"{name}-{source.key[:12]}"
    if not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place.parent, prefix="unfinished-") as folder:
            unfinished = Path(folder) / "tree"
            with source.build(unfinished) as tree:
                index(tree)
            try:
                unfinished.rename(place)
            except OSError:
                if not place.exists():  # another run was faster
                    raise
    return Tree.open(place)


def _code(package: str, *folders: str) -> str:
    """Return a hash of the Python files of a package, or of folders in it."""
    module = __import__(package)
    root = Path(module.__file__ or "").parent.joinpath(*folders)
    return digest([path.read_text(encoding="utf-8") for path in sorted(root.rglob("*.py"))])


def digest(texts: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(texts).encode("utf-8", "surrogatepass")).hexdigest()
