"""The tools of a git history: who changed what, when and why; a commit opened as a node."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

from pydantic import Field

from metatree.errors import UserError
from metatree.node import Node
from metatree.tools.tool import ToolGroup, tool
from metatree.trees.content import shows_secrets
from metatree.trees.history import commits_below, commits_of, find_commits
from metatree.trees.history_text import commit_line, day
from metatree.trees.layer import ROOT, Layer
from metatree.trees.source_types import SourceRef
from metatree.trees.sources import check_place, inner_path, source_of
from metatree.trees.tree import Tree
from metatree_memory_tools.git._show import CommitText, blame_text, changes_of_text, commit_text
from metatree_memory_tools.node_ids import HISTORY_KIND, HISTORY_SUFFIX

COMMIT = "commit"
"""Kind of the nodes of commits that were opened."""

_FOLDERS = (HISTORY_KIND, "file", "folder")
_NAME = re.compile(r"[0-9a-f]{7,40}")
_COMMIT_HELP = "Hash of the commit; empty for the latest one that changed this file."


@tool(
    kind="exploratory",
    title="who changed which lines",
    kinds=(HISTORY_KIND, "file"),
    reuse="run",
    timeout_s=60.0,
)
def blame(
    node: Node,
    tree: Tree,
    first: Annotated[int, Field(ge=0, description="First line; 0 for the first of the node.")] = 0,
    last: Annotated[int, Field(ge=0, description="Last line; 0 for the last of the node.")] = 0,
) -> str:
    """Say who last changed or wrote each line, when, and why: the author and the commit of the lines (git blame)."""
    root, source, path = _place(tree, node)
    start, end = node.attributes.get("start_line"), node.attributes.get("end_line")
    return blame_text(
        root,
        path,
        first or int(start or 1),
        last or (int(end) if end else None),
        secrets=shows_secrets(source),
    )


@tool(kind="exploratory", title="log of a file or folder", kinds=_FOLDERS, reuse="run")
def git_log(
    node: Node,
    tree: Tree,
    words: Annotated[str, Field(description="Only commits whose message has all of these words.")] = "",
    author: Annotated[str, Field(description="Only commits by authors with this in their name.")] = "",
    since: Annotated[str, Field(description="Only commits from this day on, as in 2024-05-17.")] = "",
    until: Annotated[str, Field(description="Only commits up to this day.")] = "",
    limit: Annotated[int, Field(ge=1, le=200)] = 50,
) -> str:
    """List the commits that changed this file or folder, under all its names: when, by which author, what for."""
    _, source, path = _place(tree, node)
    commits = commits_of(tree.index, path, source.mount) or commits_below(tree.index, path, source.mount)
    wanted = words.casefold().split()
    lines = []
    for commit in commits:
        message = f"{commit.subject}\n{commit.body}".casefold()
        if (
            all(word in message for word in wanted)
            and author.casefold() in commit.author.casefold()
            and (not since or day(commit.at) >= since)
            and (not until or day(commit.at)[: len(until)] <= until)
        ):
            lines.append(commit_line(commit))
    more = [f"… and {len(lines) - limit:,} more"] if len(lines) > limit else []
    if not lines:
        raise UserError(f"none of {len(commits):,} commits fits")
    return "\n".join(lines[:limit] + more)


@tool(
    kind="exploratory",
    title="show a commit",
    kinds=(HISTORY_KIND, "file", COMMIT),
    reuse="run",
    timeout_s=60.0,
)
def show_commit(node: Node, tree: Tree, commit: Annotated[str, Field(description=_COMMIT_HELP)] = "") -> str:
    """Show the message and the changes of a commit: why it was made, what it changed, which files it touched."""
    return _commit(tree, node, commit)[1].text


@tool(
    kind="exploratory", title="when a text was added or removed", kinds=_FOLDERS, reuse="run", timeout_s=60.0
)
def find_change(
    node: Node,
    tree: Tree,
    term: Annotated[str, Field(description="A piece of a line, exactly as it is or was.", min_length=2)],
) -> str:
    """Find the commits that added, introduced, removed or deleted a text in this file or folder, with these lines."""
    root, source, path = _place(tree, node)
    return changes_of_text(root, path, term, secrets=shows_secrets(source), left_out=_left_out(tree, source))


@tool(kind="interactive", title="open a commit as a node", kinds=_FOLDERS, timeout_s=60.0)
def open_commit(
    node: Node,
    tree: Tree,
    commit: Annotated[
        str, Field(description="Hash of the commit, or HEAD for the latest one.", min_length=1)
    ],
) -> Node:
    """Open a commit as a node of its own, with its message and changes, to come back to it."""
    source, text = _commit(tree, node, commit)
    name = f"{source.mount}:{text.hash}" if source.mount else text.hash
    return Node(
        f"commit:{name}",
        f"{text.hash[:10]} {text.subject}"[:200],
        f"Commit of {text.author}, {text.day}, {_files(text)}",
        content=text.text,
        kind=COMMIT,
        attributes={
            "hash": text.hash,
            "author": text.author,
            "day": text.day,
            "files": list(text.files[:100]),
        },
    )


def _commit(tree: Tree, node: Node, name: str) -> tuple[SourceRef, CommitText]:
    root, source, path = _place(tree, node)
    wanted = name.strip() or str(node.attributes.get("hash", ""))
    if not wanted:
        made = commits_of(tree.index, path, source.mount, limit=1) or commits_below(
            tree.index, path, source.mount, limit=1
        )
        if not made:
            raise UserError(f"no commit is known that changed {path!r}")
        wanted = made[0].hash
    elif _NAME.fullmatch(wanted.lower()) and (known := find_commits(tree.index, wanted, source.mount)):
        if len(known) > 1:
            raise UserError(
                f"{wanted!r} may be any of {', '.join(each.hash[:12] for each in known)}: give more of it"
            )
        wanted = known[0].hash
    return source, commit_text(root, wanted, secrets=shows_secrets(source), left_out=_left_out(tree, source))


def _left_out(tree: Tree, source: SourceRef) -> list[str]:
    """Return the paths of what a build has left out of a source as none to be seen, for what is in it, too."""
    sources = tree.sources()
    left_out = (
        (path, why) for path, why in tree.omissions() if why.startswith(("may hold secrets", "ignored by"))
    )
    return [inner_path(source, path) for path, _ in left_out if source_of(sources, path) == source]


def _place(tree: Tree, node: Node) -> tuple[Path, SourceRef, str]:
    """Return the folder that a node's history is of, its source, and the file's or folder's path in it."""
    source = tree.source_of(node)
    if source is None or source.type != "folder" or not source.options.get("history"):
        raise UserError(f"node {node.id!r} comes from no source that was built with its history")
    path = node.path
    for above in reversed(tree.ancestors(node)) if path is None else ():
        if (path := tree.get(above).path) is not None:
            break
    path = (path or source.mount or ROOT).removesuffix(HISTORY_SUFFIX) or ROOT
    if not Layer(tree.index).has(path):  # a file that was left out, which a node of somebody else names
        raise UserError(f"{path!r} is no file or folder that the tree was built from")
    inner = inner_path(source, path) or "."
    if inner.startswith("/") or ".." in inner.split("/"):
        raise UserError(f"{inner!r} lies outside of the source")
    check_place(source)
    return Path(source.location), source, inner


def _files(commit: CommitText) -> str:
    number = len(commit.files)
    listing = ", ".join(commit.files[:3]) + (", …" if number > 3 else "")
    return f"{number:,} file{'' if number == 1 else 's'}: {listing}" if number else "no files"


HISTORY_TOOLS = ToolGroup(
    "history",
    "ask the git history",
    "Who changed, wrote or removed it, when and why: the author of lines, the commits, what a commit changed",
    (blame, git_log, show_commit, find_change, open_commit),
)
"""The tool tree of git histories."""
