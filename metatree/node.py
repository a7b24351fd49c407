"""A node: one thing that can be found, with a title, a description and, perhaps, content."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
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

    @property
    def has_content(self) -> bool:
        """Whether there is something to read, in the tree or in the source."""
        return self.content is not None or self.source is not None
