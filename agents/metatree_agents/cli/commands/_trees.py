"""Which tree a command works on: found beside its source, built when missing, refreshed when stale."""

from __future__ import annotations

import gc
import os
import re
import shlex
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from errno import EACCES, EDQUOT, ENOSPC, EROFS
from pathlib import Path
from typing import TYPE_CHECKING, Final

from metatree._util.named_file import typed_path
from metatree._util.private import private_folder
from metatree.errors import BrokenStore, UntrustedStore, UserError
from metatree.storage.errors import file_error, is_mounted_read_only, unwritable
from metatree.storage.store import writable
from metatree.trees.source_types import SourceRef
from metatree.trees.sources import is_remote, known_source, public_location, refuse_link_out
from metatree_agents.cli import _config as config
from metatree_agents.cli import _options as options
from metatree_agents.cli._errors import Cancelled, denied
from metatree_agents.cli._output import counted, note, remark, visible, word
from metatree_agents.cli.printing.progress import BuildProgress, build_bar

if TYPE_CHECKING:
    from metatree_routers.index.follower import IndexFollower

    from metatree import Tree

_LISTED = 5
_ACTING: Final = re.compile(r"(?:mcp|openapi):", re.IGNORECASE)
"""Sources that start a program, or whose text says what is called."""
FOLDER = ".metatree"
"""Name of the folder that a tree lives in, beside its source."""


@dataclass(frozen=True, slots=True)
class TreeOptions:
    """Which tree a command works on."""

    source: options.Source = None
    """What it was built from; None for the current folder, or for whatever the tree at `tree` was built from."""
    tree: options.TreePath = None
    """Where it lives; None for `.metatree` beside the source, or in the current folder when there are several sources
    or it is no folder."""

    def place(self) -> Path:
        """Return where the tree lives, whether it is there or not.

        Raises:
            UserError: there is no such source.
        """
        return place_of(self.source, self.tree)

    def ready(self, *, refresh: bool = True) -> Tree:
        """Open the tree, built first when it is missing and, unless `refresh` is False, refreshed when it is stale.

        Raises:
            UserError: there is no such folder, or what is at `tree` is not a tree, or the tree of another folder.
        """
        sources, tree, place = self.source, self.tree, self.place()
        if not has_tree(place):
            if tree is not None and not sources:
                raise UserError(
                    f"no tree at {str(tree)!r}: build one with `metatree build SOURCE --tree {word(str(tree))}`"
                )
            sources = sources or ["."]
            for source in sources:
                _refuse_whole_disk(Path(source))
            return build(sources, tree)
        try:
            opened = _open(place, sources)
        except UntrustedStore:
            if tree is not None or not writable(place / "index.db"):
                raise
            return build(sources or ["."], tree)  # says so, and takes nothing from it
        except BrokenStore as exc:
            if exc.reason != "begun" or (tree is not None and not sources):
                raise
            return build(sources or ["."], tree)  # its first build got nowhere, as on a full disk
        if sources and _others(opened, sources):
            opened.close()
            return build(sources, tree)  # a folder was renamed, or the list is another one
        if sources and not _is_folder(sources):
            _name_other_sources(opened, sources)
        if refresh and opened.stale():
            _refresh(opened)
        return opened

    def existing(self) -> Tree:
        """Open the tree as it is.

        Raises:
            UserError: there is none, with the command that builds it; or it is the tree of another folder.
        """
        place = self.place()
        if not has_tree(place):
            named = [word(public_location(each)) for each in self.source or ["."]]
            what = ["--tree", word(str(self.tree))] if self.tree is not None else []
            command = " ".join(["metatree", "build", *named, *what])
            raise UserError(f"no tree at {str(place)!r}: build one with `{command}`")
        return _open(place, self.source)


def _name_other_sources(tree: Tree, sources: Sequence[str]) -> None:
    """Say that a tree has other sources than those that were named, and how to search one alone."""
    from metatree_memory_tools.build.source_spec import located

    named = {(source.type, source.location) for source in located(sources, {})}
    others = [each for each in tree.sources() if (each.type, each.location) not in named]
    mounts = [each.mount for each in tree.sources() if (each.type, each.location) in named and each.mount]
    if others:
        alone = f"; --start {word(mounts[0])} searches that alone" if len(mounts) == 1 else ""
        note(f"the tree here has {counted(len(others), 'other source')}, too{visible(alone)}")


def _refresh(tree: Tree) -> None:
    """Bring a stale tree up to date; one that can only be read stays as it is, with a warning."""
    if tree.index.read_only:
        note("warning: the source has changed since the tree was built, and the tree can only be read")
        return
    gc.enable()  # a command that ends soon does without
    began = time.monotonic()
    with _resumable("cancelled; what was read is kept: the same command again goes on"):
        with build_bar("refreshing the tree") as progress:
            tree.refresh(progress=progress)
        _index(tree)
    remark(f"refreshed the tree, {_seconds(began)}")


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
            matches = sorted(known for known in ids if known.removesuffix(end).endswith(behind))
            if len(matches) == 1:
                return matches[0]
            if matches:
                listed = ", ".join(map(repr, matches[:_LISTED])) + (", …" if len(matches) > _LISTED else "")
                raise UserError(f"{len(matches):,} nodes end in {text!r}: name one, of {listed}") from None
        raise


def build(
    sources: Sequence[str],
    tree: Path | None,
    *,
    history: bool | None = None,
    add: bool = False,
    remove: Sequence[str] = (),
) -> Tree:
    """Build the tree of some sources, with a bar on a terminal and one line on standard error at the end.

    Args:
        sources: what it is built from.
        tree: where the tree is kept; None for the default place.
        history: whether its git history is read too; None leaves it as it was.
        add: whether the sources join those of the tree that is there, in the current folder unless `tree` says where.
        remove: sources that leave that tree; the others stay.

    Raises:
        UserError: there is no such source, or no tree to add it to.
    """
    from metatree_memory_tools import build_tree
    from metatree_memory_tools.build.history import missing_history
    from metatree_routers.index.follower import IndexFollower

    gc.enable()  # a command that ends soon does without
    known: list[SourceRef] = []
    if add or remove:
        tree = tree or Path(FOLDER)
        with TreeOptions(None, tree).existing() as before:
            left = _without(before.sources(), remove)
        known = [known_source(each) for each in left]  # the build would follow a link that git has put there
    place = place_of(sources, tree)
    for source in sources:
        if _is_whole_disk(typed_path(source).resolve()):
            note(
                f"warning: {visible(source)} is a whole home folder or disk: Ctrl-C, and name a folder, to stop"
            )
    _make_place(place)
    began = time.monotonic()
    named = ", ".join(visible(public_location(source)) for source in sources)
    named = named or ", ".join(visible(public_location(source.location)) for source in known)
    command = f"metatree build {'--add ' * add}{' '.join(word(public_location(each)) for each in sources)}"
    command += "".join(f" --remove {word(public_location(each))}" for each in remove)
    command += f" --tree {word(str(tree))}" if tree is not None else ""
    with (
        _resumable(f"cancelled; what was read is kept: go on with `{command}`"),
        closing(IndexFollower()) as follower,
    ):
        with build_bar(f"building {named}") as progress:
            # Of one source that is no folder, each process would have all of its nodes: three times the memory.
            is_folders = all(typed_path(each).is_dir() for each in sources)
            report = _followed(progress, follower, place) if is_folders else progress
            built = build_tree(*known, *_named(sources), out=tree, history=history, progress=report)
        _index(built, follower)
    # No colon behind the name: one such as `secret` would have what follows hidden in the log of a service.
    remark(f"built the tree of {named} in {_seconds(began)}: {counted(len(built), 'node')}")
    if tree is None and not _is_folder(sources):
        remark(f"it is in {visible(str(place))}: ask it from this folder, or from elsewhere with --tree")
    for each in built.sources():
        if each.type == "openapi" and (server := each.options.get("server")):
            note(f"operations of {visible(each.mount)} are called at {visible(public_location(server))}")
    for mount, text in noted(built).items():
        note(f"warning: {visible(mount)} {visible(text)}")
    for mount, why in missing_history(built.omissions()) if history else ():
        note(f"warning: {f'{visible(mount)}: ' if mount else ''}{visible(why)}")
    return built


def _named(sources: Sequence[str]) -> list[str | SourceRef]:
    """Return sources such that those of the user's own settings start and call nothing of the current folder.

    A server that they name is one of the home, and is started there; a description of an interface that lies here is
    not called.
    """
    own = config.own_sources() if any(_ACTING.match(each) for each in sources) else set()
    return [_of_settings(each) if each in own and _ACTING.match(each) else each for each in sources]


def _of_settings(text: str) -> str | SourceRef:
    kind, _, location = text.partition(":")
    location = location.strip()
    if is_remote(location):
        return text
    if kind.lower() == "openapi":
        return text if Path(location).is_absolute() else SourceRef(location, {"server": ""}, type="openapi")
    home = os.path.expanduser("~")  # noqa: PTH111  # where there is no home, that says so
    is_file = "/" in location and len(location.split()) == 1
    return SourceRef(os.path.join(home, location) if is_file else location, {"named_in": home}, type="mcp")  # noqa: PTH118


def _without(sources: Sequence[SourceRef], removed: Sequence[str]) -> list[SourceRef]:
    """Return sources without some; raises `UserError` for one that is not among them, and when none would be left."""
    left = list(sources)
    for text in removed:
        leaving = [source for source in left if is_named(source, text)]
        if not leaving:
            names = ", ".join(visible(public_location(source.location)) for source in sources)
            raise UserError(f"{public_location(text)!r} is no source of this tree; its sources: {names}")
        left = [source for source in left if source not in leaving]
    if removed and not left:
        raise UserError("no source would be left: delete the folder .metatree to be rid of the tree")
    return left


def is_named(source: SourceRef, text: str) -> bool:
    """Whether somebody means a source of a tree by a text: as it was named to the build, or by its top node."""
    names = {
        source.location,
        public_location(source.location),
        f"{source.type}:{source.location}",
        source.mount,
    }
    said = {text, text.rstrip("/"), str(typed_path(text).resolve())}
    kind, mark, rest = text.partition(":")
    if mark and rest:  # `mcp:./server`, which is kept by its whole path
        place = str(typed_path(rest).resolve())
        said |= {f"{kind}:{place}", f"{kind}:{shlex.quote(place)}"}
    return bool(text) and not names.isdisjoint(said)


def noted(tree: Tree) -> dict[str, str]:
    """Return what the top nodes of a tree's sources say of their state, by id: those that could not be read."""
    tops = (tree.find(source.mount) for source in tree.sources() if source.mount)
    return {
        top.id: str(top.attributes["note"]) for top in tops if top is not None and "note" in top.attributes
    }


@contextmanager
def _resumable(message: str) -> Iterator[None]:
    """Turn Ctrl-C while a tree is built into an error that says how to go on."""
    try:
        yield
    except KeyboardInterrupt as interrupt:
        raise Cancelled(message) from interrupt


def path_inside(file: str, tree: Tree) -> str | None:
    """Return the place of a file among those to edit, as `FileToEdit.place` has it; None when it is in no source."""
    path = typed_path(file).resolve()
    for source in tree.sources():
        root = Path(source.location).resolve()
        if source.type == "folder" and path.is_relative_to(root):
            inner = path.relative_to(root).as_posix()
            return f"{source.location}/{inner}" if source.mount else inner
    return None


def _make_place(place: Path) -> None:
    """Make the folder of a tree, so that a folder that cannot be made is explained in the words of the options."""
    try:
        private_folder(place)
    except OSError as error:
        if error.errno in (ENOSPC, EDQUOT, EROFS):
            raise file_error(error, "cannot make the folder", place) from error
        raise UserError(
            f"cannot make the folder {str(place)!r}: {error.strerror}; say with --tree where else the tree may live"
        ) from error
    if not os.access(place, os.R_OK | os.W_OK | os.X_OK):
        if is_mounted_read_only(place):
            raise unwritable(place)
        raise UserError(denied(PermissionError(EACCES, os.strerror(EACCES), str(place))))


def _open(place: Path, sources: Sequence[str] | None) -> Tree:
    """Open a tree; with sources, it must have been built from one of them at least."""
    from metatree_memory_tools.build.source_spec import located

    from metatree import Tree
    from metatree.trees.sources import check_source

    opened = Tree.open(place)
    try:
        if sources:
            known = opened.sources()
            locations = {source.location for source in known}
            if not locations.intersection(sources):
                _refuse_parts(opened, sources)
                check_source(known, located(sources, {}))
    except BaseException:
        opened.close()
        raise
    return opened


def _refuse_parts(tree: Tree, sources: Sequence[str]) -> None:
    """Say of a file that is a part of the tree that it needs no tree of its own."""
    for source in sources:
        if typed_path(source).is_file() and (inside := path_inside(source, tree)) and inside in tree:
            raise UserError(
                f"{source!r} is a part of the tree here: --start {word(inside)} searches that alone"
            )


def _others(tree: Tree, sources: Sequence[str]) -> bool:
    """Whether a tree must be built of other sources than it was: one was renamed, or one of several is new."""
    if _is_folder(sources) and tree.source_root is not None:
        return not tree.source_root.is_dir()
    from metatree_memory_tools.build.source_spec import located

    known = {(source.type, source.location) for source in tree.sources()}
    return not {(source.type, source.location) for source in located(sources, {})} <= known


def _followed(progress: BuildProgress | None, follower: IndexFollower, place: Path) -> BuildProgress:
    """Return what reports the progress of a build, and has a large one indexed while it goes on."""
    from metatree_routers.index.follower import MIN_FILES

    def report(done: int, total: int, path: str) -> None:
        if done and total >= MIN_FILES:
            follower.start(place)
        if progress is not None:
            progress(done, total, path)

    return report


def _index(tree: Tree, follower: IndexFollower | None = None) -> None:
    """Bring the text index up to date under a bar of its own, so that no question has to wait for it."""
    from metatree_routers import TextEvidence

    with build_bar("indexing its words") as progress:
        report = None if progress is None else lambda done, total: progress(done, total, "")
        if follower is not None:
            follower.finish(report)
        TextEvidence(tree, progress=report).refresh()


def has_tree(place: Path) -> bool:
    """Say whether a built tree, or a tree in one file, is at this place."""
    return (place / "index.db").exists() if place.is_dir() else place.exists()


def place_of(sources: Sequence[str] | None, tree: Path | None) -> Path:
    """Return where the tree of some sources lives, whether it is there or not.

    Raises:
        UserError: there is no such source.
    """
    if tree is not None:
        return typed_path(tree)
    if _is_folder(sources or ["."]):
        folder = typed_path(sources[0] if sources else ".")
        refuse_link_out(folder)
        return folder / FOLDER
    from metatree_memory_tools.build.source_spec import located

    for source in sources or ():
        located([source], {})
    return Path(FOLDER)


def _is_folder(sources: Sequence[str]) -> bool:
    """Whether these are one folder, whose tree lives in it and has its paths as ids."""
    return len(sources) == 1 and typed_path(sources[0]).is_dir()


def _refuse_whole_disk(source: Path) -> None:
    """A forgotten `cd` must not start to read a whole home folder or disk."""
    folder = typed_path(source).resolve()
    if _is_whole_disk(folder):
        raise UserError(
            f"{str(folder)!r} is a whole {'disk' if folder == Path(folder.anchor) else 'home folder'}: "
            f"name a folder with --source, or build its tree first with `metatree build {word(str(source))}`"
        )


def _is_whole_disk(folder: Path) -> bool:
    """Whether a folder is a disk, or the home of this user, who may have none."""
    with suppress(RuntimeError):
        if folder == Path.home():
            return True
    return folder == Path(folder.anchor)


def _seconds(began: float) -> str:
    return f"{time.monotonic() - began:.1f} s"
