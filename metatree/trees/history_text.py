"""A history as text: the line of a commit, and the content and description of a file's `history` node."""

from __future__ import annotations

import time
from collections import Counter
from functools import lru_cache

from metatree.storage.store import Store
from metatree.trees.history import Commit, commits_below, names_of, said_of

SOURCE_TYPE = "history"
"""What `Source.type` says of nodes whose content is made of the history tables; `Source.path` is the file's path."""

MAX_LISTED = 400
_NAMES = 3


def day(at: int) -> str:
    """Return a day as `2024-05-17`, in universal time.

    Example:
        >>> day(1_700_000_000)
        '2023-11-14'
    """
    try:
        return time.strftime("%Y-%m-%d", time.gmtime(at))
    except (OverflowError, OSError, ValueError):
        return "an unknown day"


def commit_line(commit: Commit) -> str:
    """Return hash, day, author and subject of a commit on one line."""
    return _line(commit.hash, commit.at, commit.author, commit.subject)


@lru_cache(maxsize=4_096)  # most commits touched several files
def _line(name: str, at: int, author: str, subject: str) -> str:
    return f"{name[:10]} {day(at)} {author}: {subject}"


def history_content(store: Store, path: str, source: str = "", *, limit: int = MAX_LISTED) -> str:
    """Return the commits of a file, or of a folder, newest first, a line for each."""
    # An index asks this of every file: the rest of a commit, its message above all, is left where it is.
    rows = said_of(store, path, source, limit=limit + 1)
    if not rows:
        below = commits_below(store, path, source, limit=limit + 1)
        rows = [(commit.hash, commit.at, commit.author, commit.subject) for commit in below]
    lines = [_line(*row) for row in rows[:limit]]
    names = names_of(store, path, source)
    if len(names) > 1:
        lines.append(f"Earlier names: {', '.join(name for name in names if name != path)}")
    if len(rows) > limit:
        lines.append("… and older commits")
    return "\n".join(lines)


def history_description(commits: int, first: int, last: int, authors: Counter[str], latest: str) -> str:
    """Say how many commits there are, when, by whom most, and what the latest is.

    Args:
        commits: how many, at least one.
        first: time of the oldest, in seconds of Unix time.
        last: time of the newest.
        authors: how many commits each author made.
        latest: subject of the newest.
    """
    number = f"{commits:,} commits" if commits != 1 else "1 commit"
    begin, end = day(first), day(last)
    when = f"from {begin} to {end}" if begin != end else f"on {begin}"
    names = [name for name, _ in authors.most_common(_NAMES)]
    by = "mostly by" if len(authors) > len(names) else "by"
    return f"{number} {when}, {by} {', '.join(names)}. Latest: {latest}"
