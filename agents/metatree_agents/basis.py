"""What an answer stands on: the source, its commit, the age of the index, and what has changed since."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from metatree import Tree
from metatree.trees.sources import public_location, real_place


@dataclass(frozen=True, slots=True)
class Basis:
    """The state of a tree and of what it was built from, at one moment."""

    source: str
    """Where it was built from; several are joined by commas, empty for a tree by hand."""
    commit: str | None
    """Commit of the source's git work tree; None outside of git, and for several sources."""
    dirty: bool | None
    """Whether tracked files differ from that commit; None where that is not known."""
    indexed_at: str | None
    """When the index was last brought up to date, ISO 8601 in UTC; None for a tree by hand."""
    changed_since: int
    """How many files are new, gone or changed since then."""
    stale: bool
    """Whether anything of the source has changed since then: an answer may miss it."""

    @property
    def line(self) -> str:
        """What a model reads of it."""
        parts = [self.source or "a tree made by hand"]
        if self.commit is not None:
            state = {True: ", work tree differs", False: "", None: ", work tree not compared"}[self.dirty]
            parts.append(f"commit {self.commit[:12]}{state}")
        if self.indexed_at is not None:
            parts.append(f"indexed {self.indexed_at}")
        if self.stale:
            files = f"{self.changed_since} file(s) changed since" if self.changed_since else "changed since"
            parts.append(f"stale: true, {files}")
        return "basis: " + "; ".join(parts)


def basis_of(tree: Tree) -> Basis:
    """Return what the answers of a tree stand on now; looks at names, sizes and times of all files."""
    from metatree_memory_tools.build.build import changed_files
    from metatree_memory_tools.git.state import work_tree_state

    sources = [source for source in tree.sources() if source.type]
    folder = Path(sources[0].location) if len(sources) == 1 and sources[0].type == "folder" else None
    if folder is not None and real_place(sources[0]) != folder:
        folder = None  # a link leads elsewhere now: that is another folder's commit
    commit, dirty = work_tree_state(folder) if folder is not None and folder.is_dir() else (None, None)
    built_at = tree.info()["built_at"]
    stale = tree.stale()
    return Basis(
        source=", ".join(public_location(source.location) for source in sources),
        commit=commit,
        dirty=dirty,
        indexed_at=None
        if built_at is None
        else datetime.fromtimestamp(float(built_at), UTC).isoformat(timespec="seconds"),
        changed_since=changed_files(tree) if stale else 0,
        stale=stale,
    )
