"""Which tree a command works on: found beside its source, built when missing, refreshed when stale."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from errno import EACCES
from pathlib import Path
from typing import TYPE_CHECKING

from metatree.errors import UserError
from metatree_agents.cli.exits import Cancelled
from metatree_agents.cli.progress import build_bar
from metatree_agents.cli.screen import note, visible

if TYPE_CHECKING:
    from metatree import Tree

_LISTED = 5
FOLDER = ".metatree"
"""Name of the folder that a tree lives in, beside its source."""


def ready_tree(source: Path | None, tree: Path | None, *, refresh: bool = True) -> Tree:
    """Open the tree of a source, built first when it is missing and refreshed when it is stale.

    Args:
        source: a folder; None for the current folder, or for whatever `tree` was built from.
        tree: where the tree lives; None for `.metatree` beside the source.
        refresh: whether a stale tree is brought up to date.

    Raises:
        UserError: there is no such folder, or what is at `tree` is not a tree, or the tree of another folder.
    """
    place = place_of(source, tree)
    if not has_tree(place):
        if tree is not None and source is None:
            raise UserError(f"no tree at {str(tree)!r}: build one with `metatree build SOURCE --tree {tree}`")
        source = source or Path()
        _refuse_whole_disk(source)
        return build(source, tree)
    opened = _open(place, source)
    if source is not None and opened.source_root is not None and not opened.source_root.is_dir():
        opened.close()
        return build(source, tree)  # the folder was renamed: what it was built from is not there any more
    if refresh and opened.stale():
        began = time.monotonic()
        with _resumable("cancelled; what was read is kept: the same command again goes on"):
            with build_bar("refreshing the tree") as progress:
                opened.refresh(progress=progress)
            _index(opened)
        note(f"refreshed the tree, {_seconds(began)}")
    return opened


def existing_tree(source: Path | None, tree: Path | None) -> Tree:
    """Open a tree that was built before, as it is.

    Raises:
        UserError: there is none, with the command that builds it; or it is the tree of another folder.
    """
    place = place_of(source, tree)
    if not has_tree(place):
        what = f"--tree {tree}" if tree is not None else ""
        command = f"metatree build {source or '.'} {what}".rstrip()
        raise UserError(f"no tree at {str(place)!r}: build one with `{command}`")
    return _open(place, source)


def node_named(tree: Tree, text: str) -> str:
    """Return the id of the node that a person names: by what `Tree.resolve` takes, or by the end of one id alone.

    An end begins behind a `/`, `::`, `#` or `.`; one behind a `.` counts only when there is no other.

    Raises:
        UserError: several ids end so; the message lists up to five.
        UnknownNode: none does.
    """
    from metatree.errors import UnknownNode

    try:
        return tree.resolve(text)
    except UnknownNode:
        end = text.strip()
        ids = [known for known in tree.ids(tree.info()["kinds"]) if end and known.endswith(end)]
        for behind in (("/", "::", "#"), (".",)):
            found = sorted(known for known in ids if known.removesuffix(end).endswith(behind))
            if len(found) == 1:
                return found[0]
            if found:
                listed = ", ".join(map(repr, found[:_LISTED])) + (", …" if len(found) > _LISTED else "")
                raise UserError(f"{len(found):,} nodes end in {text!r}: name one, of {listed}") from None
        raise


def build(source: Path, tree: Path | None, *, history: bool | None = None) -> Tree:
    """Build the tree of a source, with a bar on a terminal and one line on standard error at the end.

    Args:
        source: the folder.
        tree: where the tree is kept; None for `.metatree` beside the source.
        history: whether its git history is read too; None leaves it as it was.

    Raises:
        UserError: there is no such folder.
    """
    from metatree_memory_tools import build_tree

    _make_place(place_of(source, tree))
    began = time.monotonic()
    command = f"metatree build {source}" + (f" --tree {tree}" if tree is not None else "")
    with _resumable(f"cancelled; what was read is kept: go on with `{command}`"):
        with build_bar(f"building {visible(str(source))}") as progress:
            built = build_tree(source, out=tree, history=history, progress=progress)
        _index(built)
    note(f"built the tree of {visible(str(source))}: {len(built):,} nodes, {_seconds(began)}")
    return built


@contextmanager
def _resumable(message: str) -> Iterator[None]:
    """Turn Ctrl-C while a tree is built into an error that says how to go on."""
    try:
        yield
    except KeyboardInterrupt as interrupt:
        raise Cancelled(message) from interrupt


def path_inside(file: str, tree: Tree) -> str | None:
    """Return the path of a file relative to the source of a tree; None when it lies elsewhere."""
    root, path = tree.source_root, Path(file).expanduser().resolve()
    if root is None or not path.is_relative_to(root.resolve()):
        return None
    return path.relative_to(root.resolve()).as_posix()


def denied(error: PermissionError) -> str:
    """Return what to do about a file or folder that may not be read or written."""
    what = f"{error.filename}: {error.strerror}" if error.filename else str(error)
    return f"{what}; change its rights, or say with --tree where else the tree may live"


def _make_place(place: Path) -> None:
    """Make the folder of a tree, so that a folder that cannot be made is explained in the words of the options."""
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"cannot make the folder {str(place)!r}: {error.strerror}; say with --tree where else the tree may live"
        ) from error
    if not os.access(place, os.R_OK | os.W_OK | os.X_OK):
        raise UserError(denied(PermissionError(EACCES, os.strerror(EACCES), str(place))))


def _open(place: Path, source: Path | None) -> Tree:
    """Open a tree; with a source, that must not be another one than the tree was built from."""
    from metatree import Tree
    from metatree.tree import check_source

    opened = Tree.open(place)
    try:
        if source is not None:
            check_source((kept for _, kept, _ in opened.sources()), _folder(source))
    except BaseException:
        opened.close()
        raise
    return opened


def _index(tree: Tree) -> None:
    """Bring the text index up to date under a bar of its own, so that no question has to wait for it."""
    from metatree_routers import TextEvidence

    with build_bar("indexing its words") as progress:
        report = None if progress is None else lambda done, total: progress(done, total, "")
        TextEvidence(tree, progress=report).refresh()


def has_tree(place: Path) -> bool:
    """Say whether a built tree, or a tree in one file, is at this place."""
    return (place / "index.db").exists() if place.is_dir() else place.exists()


def place_of(source: Path | None, tree: Path | None) -> Path:
    """Return where the tree of a source lives, whether it is there or not.

    Raises:
        UserError: there is no such source.
    """
    if tree is not None:
        return tree.expanduser()
    return _folder(source or Path()) / FOLDER


def _folder(source: Path) -> Path:
    source = source.expanduser()
    if not source.exists():
        raise UserError(f"no folder {str(source)!r}: check the path, or name another folder")
    if not source.is_dir():
        raise UserError(f"{str(source)!r} is a file: name the folder that it is in")
    return source


def _refuse_whole_disk(source: Path) -> None:
    """A forgotten `cd` must not start to read a whole home folder or disk."""
    folder = source.expanduser().resolve()
    if folder in (Path(folder.anchor), Path.home()):
        raise UserError(
            f"{str(folder)!r} is a whole {'disk' if folder == Path(folder.anchor) else 'home folder'}: "
            f"name a folder with --source, or build its tree first with `metatree build {source}`"
        )


def _seconds(began: float) -> str:
    return f"{time.monotonic() - began:.1f} s"
