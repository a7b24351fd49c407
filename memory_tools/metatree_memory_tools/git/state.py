"""Which commit a folder is at, and whether its files differ from it."""

from __future__ import annotations

from pathlib import Path

from metatree_memory_tools.git._command import GitFailed, git_text

_LIMIT_S = 10.0


def work_tree_state(root: Path) -> tuple[str | None, bool | None]:
    """Return (commit, whether tracked files differ from it); (None, None) for a folder that git does not know.

    The second is None when git takes too long to say it.
    """
    try:
        commit = git_text(root, "rev-parse", "--verify", "HEAD", timeout_s=_LIMIT_S)
    except (GitFailed, OSError):
        return None, None
    try:
        changes = git_text(
            root, "status", "--porcelain", "--untracked-files=no", "--", ".", timeout_s=_LIMIT_S
        )
    except (GitFailed, OSError):
        return commit, None
    return commit, bool(changes)
