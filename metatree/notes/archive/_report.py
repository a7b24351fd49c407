"""What came of an import: how much was new, how much was known, and where tree and archive differ."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class MergeConflict:
    """Something that the tree and the archive say differently."""

    what: str
    """`node`, `override`, `run`, `item`."""
    id: str
    kept: str
    """What was done, in words."""


@dataclass(slots=True)
class Imported:
    """What came of an import."""

    added: dict[str, int] = field(default_factory=dict)
    """Kind of thing -> how many are new."""
    known: dict[str, int] = field(default_factory=dict)
    """Kind of thing -> how many were there already."""
    conflicts: list[MergeConflict] = field(default_factory=list)
    permissions_left_out: int = 0
    wishes_left_out: int = 0
    deletions_left_out: int = 0
    """Of built nodes."""
    merged: bool = True
    """False for an export of somebody else, of which texts alone were taken."""
    folder: str | None = None
    """Id of the node that what is new lies below then; None when nothing is new."""
    left_out: dict[str, int] = field(default_factory=dict)
    """Kind of thing -> how many were left out then."""

    def count(self, what: str, new: bool) -> None:
        """Count one thing."""
        where = self.added if new else self.known
        where[what] = where.get(what, 0) + 1
