"""One file, read and outlined: the part of a build that is worth doing on several cores."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

from metatree.errors import UserError
from metatree.memory_type import MemoryType, Outline, Part, SourceFile
from metatree.node import Node, Source
from metatree.source import digest_bytes, read_inside
from metatree.text import is_binary
from metatree_memory_tools.scan import Found

LEFT_OUT = "-"
"""Name of the reader of a file that has no node."""

_RACE_NS = 50_000_000
_COARSE_RACE_NS = 2_000_000_000


@dataclass(frozen=True, slots=True)
class FileNodes:
    """What a build keeps of one file."""

    path: str
    size: int
    mtime_ns: int
    """-1 when the file was so fresh that another change might leave the time as it is."""
    digest: str
    encoding: str = ""
    reader: str = LEFT_OUT
    nodes: tuple[tuple[Node, str], ...] = ()
    """Each with the id of its parent, parents first; the first is the file's own. None: it is left out."""
    facts: dict[str, Any] = field(default_factory=dict)
    problem: str = ""
    """Why it is left out, or not read in full."""
    same: bool = False
    """Whether its bytes are as they were, so that nothing else was looked at."""


@cache
def memory_types() -> tuple[MemoryType, ...]:
    """Return the installed memory types, those that know most first; plain text, which takes everything, last."""
    from importlib.metadata import entry_points

    from metatree_memory_tools.markdown import Markdown
    from metatree_memory_tools.plain_text import PlainText
    from metatree_memory_tools.python_code import PythonCode

    own: dict[str, MemoryType] = {"python": PythonCode(), "markdown": Markdown()}
    others = [
        entry.load()()
        for entry in entry_points(group="metatree.memory_types")
        if entry.name not in (*own, "text")
    ]
    return (*others, *own.values(), PlainText())


def reader_names() -> list[str]:
    """Return what the installed memory types are called as readers of a file."""
    return [_reader(kind) for kind in memory_types()]


def _reader(kind: MemoryType) -> str:
    return f"{kind.name} {kind.version}"


def read_file(root: Path, found: Found, max_file_bytes: int, known: tuple[str, str] | None) -> FileNodes:
    """Read one file and return its nodes; never raises for what a file holds or how it can be reached.

    Args:
        root: the source.
        found: the file.
        max_file_bytes: a larger file becomes a node without content.
        known: digest and reader of the file as it was built before.
    """
    now = time.time_ns()
    try:
        if found.size > max_file_bytes:
            return _huge(root, found, max_file_bytes)
        data, state = read_inside(
            root, found.path if found.raw is None else found.raw, limit=max_file_bytes + 1
        )
    except UserError as exc:
        return FileNodes(found.path, found.size, found.mtime_ns, "", problem=str(exc))
    except OSError as exc:
        return FileNodes(found.path, found.size, -1, "", problem=f"cannot be read: {exc.strerror}")
    age = now - state.st_mtime_ns
    fresh = age < (_COARSE_RACE_NS if state.st_mtime_ns % 1_000_000_000 == 0 else _RACE_NS)
    mtime_ns = -1 if fresh else state.st_mtime_ns
    digest = digest_bytes(data)
    if is_binary(data):
        return FileNodes(found.path, state.st_size, mtime_ns, digest, problem="a binary file")
    if found.path.lower().endswith((".svg", ".svgz")):
        return FileNodes(found.path, state.st_size, mtime_ns, digest, problem="a picture")
    kind = next(kind for kind in memory_types() if kind.recognises(found.path, data[:256]))
    reader = _reader(kind)
    if known == (digest, reader):
        return FileNodes(found.path, state.st_size, mtime_ns, digest, reader=reader, same=True)
    file = SourceFile(found.path, data)
    outline = kind.outline(file)
    facts: dict[str, Any] = {"summary": outline.summary, "imports": outline.imports}
    if found.raw is not None:
        facts["raw"] = found.raw.hex()
    return FileNodes(
        found.path,
        state.st_size,
        mtime_ns,
        digest,
        file.encoding,
        reader,
        tuple(_nodes(file, digest, outline, kind.source_type)),
        facts,
        outline.problem,
    )


def _huge(root: Path, found: Found, limit: int) -> FileNodes:
    head, _ = read_inside(root, found.path if found.raw is None else found.raw, limit=8192)
    if is_binary(head):
        return FileNodes(found.path, found.size, found.mtime_ns, "", problem="a binary file")
    note = f"too large to be read ({found.size / 1e6:.1f} MB, the limit is {limit / 1e6:.1f} MB)"
    attributes = {"path": found.path, "size_bytes": found.size, "note": note}
    name = found.path.rpartition("/")[2]
    description = f"A file of {found.size / 1e6:.1f} MB: {note}."
    node = Node(found.path, _title(name), description, kind="file", attributes=attributes)
    node = _digested(node, f"{found.size} {found.mtime_ns}")
    reader = f"huge {limit}"
    return FileNodes(
        found.path, found.size, found.mtime_ns, "", "", reader, ((node, _folder(found.path)),), {}, note
    )


def _nodes(file: SourceFile, digest: str, outline: Outline, source_type: str) -> list[tuple[Node, str]]:
    attributes = dict(outline.attributes)
    attributes["size_bytes"] = len(file.data)
    source = None
    if not outline.parts and file.text.strip():
        source = Source(type=source_type, path=file.path)
    else:
        attributes["path"] = file.path
    node = Node(
        file.path, _title(file.name), outline.description, kind="file", source=source, attributes=attributes
    )
    found = [(_digested(node, digest if source else ""), _folder(file.path))]
    _add_parts(found, file, outline.parts, file.path, source_type)
    return found


def _add_parts(
    found: list[tuple[Node, str]], file: SourceFile, parts: tuple[Part, ...], parent: str, source_type: str
) -> None:
    for part in parts:
        attributes = {**part.attributes, "start_line": part.start_line, "end_line": part.end_line}
        source, held = None, ""
        if part.parts:
            attributes["path"] = file.path
        else:
            ranges = part.ranges if len(part.ranges) > 1 else ()
            source = Source(
                type=source_type,
                path=file.path,
                start_line=part.start_line,
                end_line=part.end_line,
                parts=ranges,
            )
            lines = file.lines
            held = "\n".join(
                "\n".join(lines[first - 1 : last])
                for first, last in ranges or ((part.start_line, part.end_line),)
            )
        node_id = file.path + part.id
        node = Node(
            node_id,
            _title(part.title),
            part.description,
            kind=part.kind,
            source=source,
            attributes=attributes,
        )
        found.append((_digested(node, held), parent))
        _add_parts(found, file, part.parts, node_id, source_type)


def _digested(node: Node, held: str) -> Node:
    """Return a node with a digest of what it says and holds, but not of where in the file it is."""
    text = f"{node.kind}\0{node.title}\0{node.description}\0{held}"
    object.__setattr__(node, "digest", blake2b(text.encode("utf-8", "replace"), digest_size=16).hexdigest())
    return node


def _title(name: str) -> str:
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in name)


def _folder(path: str) -> str:
    return path.rpartition("/")[0] or "."
