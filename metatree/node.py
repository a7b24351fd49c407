"""A node: one thing that can be found, with a title, a description and, perhaps, content."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where a node's content is read from when it is needed."""

    type: str = "text"
    """Name of the memory type that reads it; `text` is a range of lines of a text file."""
    path: str
    """Path of the file, relative to the root folder of the tree, with `/`."""
    start_line: int | None = None
    """First line, counted from 1; None for the whole file."""
    end_line: int | None = None
    """Last line, included; None for the whole file."""
    parts: tuple[tuple[int, int], ...] = ()
    """The ranges of lines between `start_line` and `end_line` that belong to it, when these are not all of them."""


@dataclass(frozen=True, slots=True)
class Node:
    """One thing in memory, among the tools, or among the actions.

    Example:
        >>> Node(id="a1", title="tokens.py", description="Issue and check tokens", content="...").has_content
        True
    """

    id: str
    """Unique in its tree. Built trees use paths: `src/app.py`, `src/app.py::Class.method`, `docs/a.md#install`."""
    title: str
    """A few words; shown in menus."""
    description: str = ""
    """One or two sentences that say what is found here; a router decides by it."""
    content: str | None = None
    """The text itself, when the tree keeps it. None when there is none, or when `source` says where it is."""
    kind: str = "note"
    """What it is: `folder`, `file`, `definition`, `section`, `note`, `tool`, `action`, …"""
    source: Source | None = None
    """Where the content is read from, when the tree does not keep it."""
    provenance: Mapping[str, Any] = field(default_factory=dict)
    """For a node that a tool or an agent made: tool, arguments, call, run, who, when. Empty for a built node."""
    attributes: Mapping[str, Any] = field(default_factory=dict)
    """What its memory type knows besides (language, signature, size_bytes, note …); JSON values."""
    digest: str = ""
    """Hash of what the node says and holds; set by the tree when empty. A changed digest is a changed node."""

    content_kept: bool = False
    """Whether the tree keeps the content; a listing leaves the text itself out, `Tree.get` has it."""

    @property
    def has_content(self) -> bool:
        """Whether there is something to read, in the tree or in the source."""
        return self.content is not None or self.source is not None or self.content_kept

    @property
    def path(self) -> str | None:
        """Path of the file or folder that it was built from, relative to the source; None for any other node.

        None, too, for a path that leads out of any source, as a node that somebody else made may have it.
        """
        path = self.attributes.get("path") if self.source is None else self.source.path
        text = "" if path is None else str(path)
        return text if text and text[0] != "/" and not (".." in text and ".." in text.split("/")) else None

    @property
    def lines(self) -> tuple[int, int] | None:
        """First and last line of a part of a file in it, from 1; None for a whole file and for any other node."""
        source = self.source
        if source is not None and source.type == "conversation":  # its numbers are those of turns
            return None
        if source is not None and source.parts:
            return source.parts[0][0], source.parts[-1][1]
        first, last = self.attributes.get("start_line"), self.attributes.get("end_line")
        if source is not None and source.type == "text":
            first, last = source.start_line, source.end_line
        return (first, last) if isinstance(first, int) and isinstance(last, int) else None


def place_of(node: Node) -> str:
    """Return where a node stands in its source, `path` or `path:first-last`; empty when it is part of no file.

    Example:
        >>> place_of(Node("f", "f", attributes={"path": "a.py", "start_line": 3, "end_line": 9}))
        'a.py:3-9'
    """
    path, lines = node.path or "", node.lines
    return f"{path}:{lines[0]}-{lines[1]}" if path and lines is not None else path


def digest_of(node: Node) -> str:
    """Return the hash of what a node says and holds: 32 hexadecimal digits.

    Where it lies in its source is part of it only when the tree does not keep its content.
    """
    parts: list[Any] = [node.kind, node.title, node.description, node.content]
    if node.source is not None:
        source = node.source
        parts.append([source.type, source.path, source.start_line, source.end_line, source.parts])
    if node.attributes:
        parts.append(dict(node.attributes))
    text = json.dumps(parts, sort_keys=True, ensure_ascii=False)
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
