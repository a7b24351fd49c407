"""What a folder says of itself: its README or `__init__`, and the names of what weighs most in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from metatree_memory_tools.text.descriptions import DESCRIPTION_CHARS, first_sentence, with_names

_SPEAKERS = (
    "readme.md",
    "__init__.py",
    "readme.rst",
    "readme.txt",
    "readme",
    "readme.markdown",
    "index.md",
    "doc.go",
)


@dataclass(frozen=True, slots=True)
class FolderEntry:
    """A file or a folder in the folder."""

    name: str
    is_folder: bool
    weight: int
    """Bytes of it, for a folder of all below it."""
    summary: str = ""


def describe(children: Sequence[FolderEntry]) -> str:
    """Return a description of a folder."""
    summaries = {
        child.name.lower(): child.summary for child in children if child.summary and not child.is_folder
    }
    speaker = next((summaries[name] for name in _SPEAKERS if name in summaries), "")
    text = first_sentence(speaker)
    listed = sorted(
        (child for child in children if child.name.lower() not in _SPEAKERS),
        key=lambda child: (_aside(child.name), not child.is_folder, -child.weight, child.name),
    )
    folders = [child.name + "/" for child in listed if child.is_folder]
    files = [child.name for child in listed if not child.is_folder]
    if not text and len(listed) == 1 and listed[0].summary:
        text = first_sentence(listed[0].summary)
    return with_names(text, "Contains", folders + files, DESCRIPTION_CHARS)


def _aside(name: str) -> bool:
    """Whether a name is of little help to who looks for something."""
    return name.startswith((".", "_")) or name in ("conftest.py", "LICENSE", "setup.py")
