"""Which commit a folder is at, and whether its files differ from it."""

from __future__ import annotations

import os
import re
from pathlib import Path

from metatree.errors import UserError
from metatree_memory_tools.git._command import GitFailed, GitLate, Objects, objects_of
from metatree_memory_tools.git.place import place_of

_LIMIT_S = 10.0
_ELSEWHERE = re.compile(rb"[\t/\\]\.\.(?:[\0/\\]|$)|\t[/\\]")
"""A path in an index, as an archive may bring one, that leads out of the work tree: git compares what lies there."""
_MODULE = re.compile(rb"(?:^|\0)160000 [^\t\0]*\t([^\0]+)")
"""A submodule in an index: git reads the repository that its `.git` leads to."""
_late: dict[Path, bool] = {}
"""Folders of which git once said nothing in time, with whether it had said the commit: a pipe is waited for once."""


def work_tree_state(root: Path) -> tuple[str | None, bool | None]:
    """Return (commit, whether tracked files differ from it); (None, None) for a folder that git does not know.

    The second is None when git takes too long to say it. Submodules are not looked into. No filter runs, so a file that
    one makes (git-lfs) differs once it was written since it was checked out. What the repository has no such commit of
    is none: a reference may be a link to any file that begins with so many digits.
    """
    status = ("status", "--porcelain", "--untracked-files=no", "--ignore-submodules=all", "--no-renames")
    commit, says_commit = None, _late.get(root)
    if says_commit is False:
        return None, None
    try:
        with objects_of(root, work_tree=True, timeout_s=_LIMIT_S) as objects:
            if objects.text("cat-file", "-t", objects.head, timeout_s=_LIMIT_S) == "commit":
                commit = objects.head
                if says_commit or _leads_elsewhere(objects):
                    return commit, None
                return commit, bool(objects.output(*status, *objects.below, timeout_s=_LIMIT_S))
    except GitLate:
        _late[root] = commit is not None
    except (GitFailed, OSError):
        pass
    return commit, None


def _leads_elsewhere(objects: Objects) -> bool:
    """Whether git would look at what lies outside of a work tree to say whether its files have changed."""
    listed = objects.output("ls-files", "-z", "--stage", timeout_s=_LIMIT_S)
    if _ELSEWHERE.search(listed):
        return True
    for name in _MODULE.findall(listed):
        folder = objects.top / os.fsdecode(name)
        try:
            if os.path.lexists(folder / ".git"):
                place_of(folder)
        except (UserError, OSError, ValueError):
            return True
    return False
