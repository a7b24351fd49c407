"""How files and other sources become nodes: the protocols of memory types, and the data that they pass.

A package offers an implementation by entry point, a class or another callable without arguments: a `MemoryType` of
files in the group `metatree.memory_types`, a `SourceType` of whole sources in `metatree.sources`. A program may bring
its own with `register_type`. The core knows how to read a range of lines of a text file; everything else is asked of
them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from metatree import plugins
from metatree.errors import UserError
from metatree.node import Node, Source
from metatree.trees.text import decode, lines_of

if TYPE_CHECKING:
    from pathlib import Path

    from metatree.storage.store import Store

T = TypeVar("T")
Progress = Callable[[int, int, str], None]
"""Called with the number of things done, the number to do (0 when it is not known), and what is at work."""


@dataclass(frozen=True, slots=True)
class SourceRef:
    """One source of a tree: where it is, how it is read, and under which node of the tree it lies."""

    location: str
    """A path (absolute once it belongs to a tree), a URL, a data source name, a command line."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of its type; JSON values."""
    mount: str = ""
    """Id of its top node in a tree of several sources; empty for the folder that a tree is of as a whole."""
    type: str = ""
    """Name of the type that reads it: `folder`, `file`, or that of a `SourceType`; empty when it is not found yet."""


@dataclass(frozen=True)
class SourceFile:
    """One file as its memory type sees it; nothing is decoded before it is asked for."""

    path: str
    """Relative to the source, with `/`."""
    data: bytes
    """The bytes; of a text file with `*` in place of what looks like a secret, unless `secrets`."""
    secrets: bool = False
    """Whether texts that a type takes out of a file that is no text may hold secrets."""
    left_out: frozenset[str] = frozenset()
    """What parts have as their attribute `identity` that a type is to pass over, where its traits say that it can."""

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
class OutlinePart:
    """One node below a file. A part with parts below it has no content of its own."""

    id: str
    """Follows the path of the file in the node's id: `::Class.method`, `#install`."""
    title: str
    description: str = ""
    kind: str = "section"
    start_line: int
    """First line, counted from 1; 0 for a part that holds no text."""
    end_line: int
    """Last line, included."""
    ranges: tuple[tuple[int, int], ...] = ()
    """The ranges of lines that belong to it, when these are not all from first to last."""
    parts: tuple[OutlinePart, ...] = ()
    attributes: Mapping[str, Any] = field(default_factory=dict)
    digest: str = ""
    """Hash of its text, from a type whose content is not those lines of the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """What a file says of itself. A file without parts is one node with all of the content."""

    description: str = ""
    parts: tuple[OutlinePart, ...] = ()
    attributes: Mapping[str, Any] = field(default_factory=dict)
    summary: str = ""
    """One sentence that may stand for its folder too (a README, an `__init__.py`)."""
    imports: tuple[tuple[int, str, tuple[tuple[str, str], ...]], ...] = ()
    """For links: (level, module, ((name, as), …)), as Python has them; no names for `import module`."""
    references: tuple[tuple[str, str], ...] = ()
    """For links to other files of the source: (language, what it says), or (`link`, address)."""
    declares: tuple[tuple[str, str], ...] = ()
    """What other files may call it by: (language, package or namespace)."""
    problem: str = ""
    """Why it could not be read in full, in a few words."""
    empty: bool = False
    """Whether there is nothing to read in it although it has bytes."""


class NotOfType(Exception):
    """Raised by `MemoryType.outline`: seen whole, the file is none of this type, and the next type is asked."""


class MemoryType(Protocol):
    """Says which files it knows, what lies in them, and what their nodes hold.

    Optional are the attributes and methods of `FileTraits` and `TypeTraits`.
    """

    name: str
    """What it is installed as, so that it can be asked for content."""
    source_type: str
    """What `Source.type` says of its nodes: its name, or `text` when their content is lines of the file."""
    version: str
    """A file read by another version is read again."""

    def recognises(self, path: str, head: bytes) -> bool:
        """Whether this type knows a file, by its path and its first bytes, up to 8,192."""
        ...

    def outline(self, file: SourceFile) -> Outline:
        """Return what lies in a file; must not read anything else.

        Raises:
            NotOfType: it only looked like a file of this type. Nothing else is raised for any bytes.
        """
        ...

    def content(self, file: SourceFile, source: Source) -> str:
        """Return the text of one node."""
        ...


class SourceType(Protocol):
    """Turns a whole source that is no folder of files into nodes: a database, a server, a page, a history.

    One object serves all sources of its type, from any thread. Optional are the attributes and methods of
    `SourceTraits` and `TypeTraits`.
    """

    name: str
    """What it is installed as; `NAME:LOCATION` makes it read a location that it would not recognise."""
    version: str
    """A source read by another version is read again."""

    def recognises(self, location: str) -> bool:
        """Whether this type reads a location (a path, a URL, …), told from the location alone or a few first bytes.

        A folder is never asked about: it is read as a folder of files unless `NAME:` says otherwise.
        """
        ...

    def fingerprint(self, source: SourceRef) -> str | None:
        """Return a text that is another one when the source has changed, cheaply; None when only reading tells.

        Raises:
            MetatreeError: it cannot be reached.
        """
        ...

    def nodes(self, source: SourceRef, *, progress: Progress | None) -> Iterator[tuple[Node, str | None]]:
        """Yield each node with the id of its parent, parents first; the first is the top, with the id `.` and None.

        Ids are relative to the source, unique in it and the same for the same thing the next time; siblings come in
        their order. A node's text is kept when `content` is given; with `source=Source(type=NAME, path=KEY)` it is
        asked for when it is needed. A node whose text is not kept should have a `digest` that changes with the text.
        `attributes["linked"]`, pairs of a kind and an id of the source, become links to these nodes.

        Raises:
            MetatreeError: it cannot be read (any further); its top node will say so, and what was there stays.
        """
        ...

    def content(self, source: SourceRef, ref: Source) -> str:
        """Return the text of a node by its `source`, whose path is the key that `nodes` gave.

        Raises:
            MetatreeError: it cannot be read now.
        """
        ...


class BuiltTree(Protocol):
    """What a builder needs to know of a tree; `Tree` is one."""

    path: Path | None
    """The folder or file it lives in, None for one in memory."""
    index: Store
    """The store of what was built."""

    def sources(self) -> list[SourceRef]:
        """Return what it was built from, in order."""
        ...


class Builder(Protocol):
    """Turns sources into a tree, and brings it up to date."""

    def refresh(self, tree: BuiltTree, *, progress: Progress | None = None) -> None:
        """Bring the built layer of a tree up to date with its sources."""
        ...

    def stale(self, tree: BuiltTree) -> bool:
        """Whether a refresh would change something; quick, and without reading unchanged files."""
        ...


def load_builder() -> Builder:
    """Return the builder of trees that is installed.

    Raises:
        UserError: there is none.
    """
    builder: Builder = plugins.load("metatree.builders", "sources")
    return builder


def load_memory_type(name: str) -> MemoryType:
    """Return the memory type of files that is installed or registered under a name.

    Raises:
        UserError: there is none.
    """
    memory_type: MemoryType = _type(plugins.MEMORY_TYPES, name)
    return memory_type


def load_source_type(name: str) -> SourceType:
    """Return the type of sources that is installed or registered under a name.

    Raises:
        UserError: there is none.
    """
    source_type: SourceType = _type(plugins.SOURCES, name)
    return source_type


@dataclass(frozen=True, slots=True)
class TypeTraits:
    """What a type of files or of sources may have besides its protocol, with what holds where it has not."""

    tools: Sequence[Any] = ()
    """`Tool`s and `ToolGroup`s, the type's own tool tree, which a search offers on the nodes of its sources that the
    tools say they work on."""
    tools_of: Callable[[Any, SourceRef], Iterable[Any]] = lambda tree, source: ()
    """Such a sequence for one source of a tree, where every source has tools of its own."""
    answers_outside_tree: bool = False
    """Whether the tools of a type of files know what no node holds; a search then offers them without a model too."""
    file_of: Callable[[SourceRef, str], Path | None] | None = None
    """The file on this machine that a node came from, by the path of its `source`."""


@dataclass(frozen=True, slots=True)
class FileTraits:
    """How a type of files reads them, with what holds where it does not say."""

    binary: bool = False
    """Whether it reads files that are no text."""
    max_file_bytes: int = 0
    """Up to which size it reads files, where that is above the usual limit of a build; of plain text, which takes up to
    fourteen times its size of memory while it is looked through for keys, no more than 20 MB are read so."""
    larger: str = ""
    """What is written before the name of a file that is too large, in a command that reads it piece by piece."""
    encoded: Callable[[str, bytes], bool] = lambda path, head: False
    """Whether the text of a file, by its path and first bytes, stands in it in another way, as that of a letter does in
    base64. What is read of such a file is masked, and not the file: its lines may break a key in two."""
    leaves_out: bool = False
    """Whether it reads a file without the parts that `SourceFile.left_out` names."""
    text: Callable[[SourceFile], Any] | None = None
    """The `lines` and `pages` of a file whose nodes do not name lines of the file itself."""


@dataclass(frozen=True, slots=True)
class SourceTraits:
    """What a build asks of a type of sources besides its nodes."""

    links: Callable[[SourceRef], Iterable[tuple[str, str, str]]] = lambda source: ()
    """(id, kind, id) for links between nodes of the source; called after `nodes`."""
    kept_location: Callable[[str], str] = str
    """A location as it may be written down, without a password."""
    kept_options: Callable[[SourceRef], Mapping[str, Any]] = lambda source: source.options
    """The options of a source as they are written down when a build is given it."""
    known_options: Callable[[SourceRef], Mapping[str, Any]] = lambda source: source.options
    """The options of a source that a tree has already, or that somebody else named, when a build is given it again:
    what `kept_options` takes from the current folder is not to be taken for it."""
    leaves_out: bool = False
    """Whether it reads a source without the nodes whose attribute `identity` is in the option `left_out`."""
    command: bool = False
    """Whether a location is a command line, whose program is one of PATH where its name has no `/`."""
    on_disk: bool = False
    """Whether a location is a file or a folder of this machine, which is there when it is named first."""
    file_or_address: bool = False
    """Whether a location that is no address is a file of this machine, which is there when it is named first."""


# Three classes and not one, since asking for the tools of a type imports them, which a build has no use for.
def traits_of(kind: MemoryType | SourceType) -> TypeTraits:
    """Return what a type offers to a search besides its protocol; no other place asks a type for it by name."""
    return _declared(kind, TypeTraits)


def answers_outside_tree(kind: MemoryType | SourceType) -> bool:
    """Return that trait alone, without the tools of the type."""
    return bool(getattr(kind, "answers_outside_tree", False))


def file_traits_of(kind: MemoryType) -> FileTraits:
    """Return how a type reads files; no other place asks a type for it by name."""
    return _declared(kind, FileTraits)


def source_traits_of(kind: SourceType) -> SourceTraits:
    """Return what a build may ask of a type; no other place asks a type for it by name."""
    return _declared(kind, SourceTraits)


def _declared(kind: object, traits: type[T]) -> T:
    names = [each.name for each in fields(traits)]  # type: ignore[arg-type]  # T is one of the three
    return traits(**{name: getattr(kind, name) for name in names if hasattr(kind, name)})


def register_type(kind: MemoryType | SourceType) -> None:
    """Bring a type for as long as this process lives, without a package around it; `build_tree` then knows it.

    A process that reads such a tree needs it too.
    """
    group = plugins.SOURCES if hasattr(kind, "nodes") else plugins.MEMORY_TYPES
    if group == plugins.MEMORY_TYPES and not hasattr(kind, "outline"):
        raise UserError(f"{kind!r} is no type: a type of files has `outline`, a type of sources has `nodes`")
    plugins.register(group, kind.name, kind)


def _type(group: str, name: str) -> Any:
    try:
        return plugins.instance(group, name)
    except UserError as exc:
        if name in plugins.names(group):
            raise
        raise UserError(
            f"nothing is installed for {name!r} ({group}): install the package that built this tree"
        ) from exc
