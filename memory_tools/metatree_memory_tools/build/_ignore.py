"""What a folder's own rules, and good sense, leave out of a tree."""

from __future__ import annotations

import os
import stat
from bisect import bisect_left
from pathlib import Path

from metatree.errors import UserError
from metatree.trees.source_files import read_inside
from metatree_memory_tools.git.ignore import MOST_RULES_BYTES, IgnoreRules, rules_for
from metatree_memory_tools.git.index import tracked_below
from metatree_memory_tools.git.place import Place, is_repository, place_of

_TOOL_FOLDERS = frozenset(
    [
        "__pycache__",
        "node_modules",
        ".venv",
        ".tox",
        ".nox",
        ".eggs",
        ".mypy_cache",
        ".ruff_cache",
        ".pytest_cache",
        ".hypothesis",
        ".hg",
        ".svn",
        ".idea",
        ".gradle",
        ".terraform",
    ]
)


def is_tool_folder(name: str) -> bool:
    """Whether tools make a folder of this name again at any time."""
    return name in _TOOL_FOLDERS or name.endswith(".egg-info")


class Tracked:
    """The files below a folder that git tracks, whatever its rules ignore.

    Lost: the set of all folders that they lie in, which takes gigabytes for an index that was made to.
    """

    def __init__(self, root: Path, base: str) -> None:
        """Read the index.

        Args:
            root: the folder.
            base: its path in the repository around it, as `rules_above` gives it.
        """
        top = root.parents[base.count("/") - 1] if base else root
        place = _place(top)
        self._files = frozenset() if place is None else tracked_below(place.own, base)
        self._sorted = sorted(self._files)

    def has(self, path: bytes, *, folder: bool) -> bool:
        """Whether git tracks a file, or anything in a folder."""
        if not folder:
            return path in self._files
        begin = path + b"/"
        at = bisect_left(self._sorted, begin)
        return at < len(self._sorted) and self._sorted[at].startswith(begin)


def rules_above(root: Path) -> tuple[IgnoreRules | None, str, bool]:
    """Return the rules that a git repository around a folder has for it, and the folder's path there.

    Returns:
        The rules of the repository's root down to the folder above `root`, with those of `.git/info/exclude`,
        or None outside of a repository; the path of `root` in it, with a `/` at its end unless it is empty; and
        whether there are more than are followed.
    """
    tops = [folder for folder in (root, *root.parents) if (folder / ".git").exists()]
    if not tops:
        return None, "", False
    # What git passes over, as an archive may bring it, takes no rules away; where all are damaged, the last has rules.
    top = next(filter(is_repository, tops), tops[-1])
    inside = root.relative_to(top).parts
    folders = ["".join(part + "/" for part in inside[:depth]) for depth in range(len(inside) + 1)]
    read = [("", exclude_of(top)), *((each, _read(top, f"{each}.gitignore")) for each in folders[:-1])]
    rules, is_cut = rules_for(folders[-1], [(each, text) for each, (text, _) in read])
    return rules, folders[-1], is_cut or any(more for _, (_, more) in read)


def exclude_of(top: Path) -> tuple[str, bool]:
    """Return what `.git/info/exclude` says of a folder, and whether it says more, as where it is a link.

    Also where the repository is refused for what else is in it. Git follows such a link; what it leads to may be
    private, and whether something is left out would tell.
    """
    place = _place(top)
    if place is None and (top / ".git").is_symlink():
        return "", False
    folder = top / ".git" if place is None else place.shared
    return ("", True) if (folder / "info" / "exclude").is_symlink() else _read(folder, "info/exclude")


def _place(top: Path) -> Place | None:
    """Return where the repository of a folder is, None if there is none that is its own."""
    try:
        return place_of(top) if (top / ".git").exists() else None
    except (OSError, UserError, ValueError):  # a name with NUL in it is none
        return None


def _read(folder: Path, name: str) -> tuple[str, bool]:
    try:
        return rules_text(folder, name)
    except (OSError, UserError, ValueError):  # a name with NUL in it is none
        return "", False


def rules_text(folder: Path, name: str | bytes) -> tuple[str, bool]:
    """Return the whole lines that a file of rules begins with, and whether there are more; none of what is no file.

    A link is none, as for git's own `.gitignore`: what it leads to may be private, or never end.

    Raises:
        OSError: it cannot be read.
        UserError: a link of another user took its place meanwhile.
    """
    if not stat.S_ISREG(Path(folder, os.fsdecode(name)).lstat().st_mode):
        return "", False
    data, _ = read_inside(folder, name, limit=MOST_RULES_BYTES + 1)
    more = len(data) > MOST_RULES_BYTES
    return (data[: data.rfind(b"\n") + 1] if more else data).decode("utf-8", "surrogateescape"), more
