"""Looking into an export, before it is merged."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from heapq import nsmallest
from pathlib import Path
from typing import Any, Final

from metatree.notes.archive._reader import opened
from metatree.notes.archive.format import MEMBERS
from metatree.notes.feedback import FLAG
from metatree.notes.wishes import KIND as WISH
from metatree.storage.acceptance import names_in, tool_name

_TIME: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z?")
_NAMES: Final = 100
"""How many names of each kind a survey lists."""


@dataclass(slots=True)
class ArchiveSurvey:
    """What an export holds, as it says itself."""

    own: bool
    """Whether this user made it, with the key that is here."""
    made_at: str
    counts: dict[str, int] = field(default_factory=dict)
    """Kind of thing -> how many."""
    wishes: int = 0
    """How many of the nodes are standing wishes."""
    flags: int = 0
    authors: list[str] = field(default_factory=list)
    """In whose names its texts are."""
    permissions: list[str] = field(default_factory=list)
    """The tools that it would let run without asking."""
    unnamed: dict[str, int] = field(default_factory=dict)
    """How many `authors` and `permissions` there are besides those listed."""


def survey_archive(path: str | Path) -> ArchiveSurvey:
    """Look into an export, whoever made it; nothing of it is taken.

    Raises:
        UserError: there is no such file.
        BrokenStore: it is cut off, damaged, of another program, or of a newer version.
    """
    with opened(path) as archive:
        made_at = str(archive.manifest.get("made_at", ""))
        seen = ArchiveSurvey(
            archive.own, made_at if _TIME.fullmatch(made_at) else "a time that it does not say"
        )
        authors: set[str] = set()
        tools: set[str] = set()
        for member in MEMBERS:
            seen.counts[member] = 0
            for row in archive.rows(member):
                seen.counts[member] += 1
                for name in ("provenance", "attributes", "value"):
                    authors |= names_in(_object(row.get(name)))
                if member == "items" and row.get("agent"):
                    authors |= names_in({"who": row["agent"]})
                if member == "permissions":
                    tools.add(tool_name(_object(row.get("value"))))
                seen.wishes += member == "nodes" and row.get("kind") == WISH
                seen.flags += member == "facts" and str(row.get("key")).startswith(FLAG)
    seen.authors, seen.permissions = nsmallest(_NAMES, authors), nsmallest(_NAMES, tools)
    listed = {"authors": authors, "permissions": tools}
    seen.unnamed = {name: len(each) - _NAMES for name, each in listed.items() if len(each) > _NAMES}
    return seen


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
