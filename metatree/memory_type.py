"""How a file becomes nodes, and how a whole source becomes a tree: two protocols and the data that they pass.

A package offers an implementation by entry point: `metatree.memory_types` for files (a class, or another callable
without arguments), `metatree.builders` for whole sources (an object). The core knows how to read a range of lines of
a text file; everything else is asked of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from metatree.errors import UserError
from metatree.node import Source
from metatree.text import decode, lines_of

if TYPE_CHECKING:
    from metatree.tree import Tree

Progress = Callable[[int, int, str], None]
"""Called with the number of files done, the number of files to do, and the path at work."""


@dataclass(frozen=True)
class SourceFile:
    """One file as its memory type sees it; nothing is decoded before it is asked for."""

    path: str
    """Relative to the source, with `/`."""
    data: bytes

    @cached_property
    def _decoded(self) -> tuple[str, str]:
        return decode(self.data, python=self.path.endswith((".py", ".pyi", ".pyw")))

    @property
    def text(self) -> str:
        """The text, with every end of line as `\\n`."""
        return self._decoded[0]

    @property
    def encoding(self) -> str:
        """The encoding that `text` was read in."""
        return self._decoded[1]

    @cached_property
    def lines(self) -> list[str]:
        """The lines without their ends; line 1 is `lines[0]`."""
        return lines_of(self.text)

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One node below a file. A part with parts below it has no content of its own."""

    id: str
    """Follows the path of the file in the node's id: `::Class.method`, `#install`."""
    title: str
    description: str = ""
    kind: str = "section"
    start_line: int
    """First line, counted from 1."""
    end_line: int
    """Last line, included."""
    ranges: tuple[tuple[int, int], ...] = ()
    """The ranges of lines that belong to it, when these are not all from first to last."""
    parts: tuple[Part, ...] = ()
    attributes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """What a file says of itself. A file without parts is one node with all of the content."""

    description: str = ""
    parts: tuple[Part, ...] = ()
    attributes: Mapping[str, Any] = field(default_factory=dict)
    summary: str = ""
    """One sentence that may stand for its folder too (a README, an `__init__.py`)."""
    imports: tuple[tuple[int, str, tuple[tuple[str, str], ...]], ...] = ()
    """For links: (level, module, ((name, as), …)), as Python has them; no names for `import module`."""
    problem: str = ""
    """Why it could not be read in full, in a few words."""


class MemoryType(Protocol):
    """Says which files it knows, what lies in them, and what their nodes hold."""

    name: str
    """What it is installed as, so that it can be asked for content."""
    source_type: str
    """What `Source.type` says of its nodes: its name, or `text` when their content is lines of the file."""
    version: str
    """A file read by another version is read again."""

    def recognises(self, path: str, head: bytes) -> bool:
        """Whether this type knows a file, by its path and its first bytes."""
        ...

    def outline(self, file: SourceFile) -> Outline:
        """Return what lies in a file; must not raise for any bytes, and must not read anything else."""
        ...

    def content(self, file: SourceFile, source: Source) -> str:
        """Return the text of one node."""
        ...


class Builder(Protocol):
    """Turns a source of one type into a tree, and brings it up to date."""

    def refresh(self, tree: Tree, *, progress: Progress | None = None) -> None:
        """Bring the built layer of a tree up to date with its source."""
        ...

    def stale(self, tree: Tree) -> bool:
        """Whether a refresh would change something; quick, and without reading unchanged files."""
        ...


def load_builder(name: str) -> Builder:
    """Return the builder that is installed under a name.

    Raises:
        UserError: there is none.
    """
    found: Builder = _load("metatree.builders", name)
    return found


def load_memory_type(name: str) -> MemoryType:
    """Return the memory type that is installed under a name.

    Raises:
        UserError: there is none.
    """
    found: MemoryType = _load("metatree.memory_types", name)()
    return found


def _load(group: str, name: str) -> Any:
    from importlib.metadata import entry_points  # slow to import, and needed by few

    for entry in entry_points(group=group, name=name):
        return entry.load()
    raise UserError(f"nothing is installed for {name!r} ({group}): install the package that built this tree")
