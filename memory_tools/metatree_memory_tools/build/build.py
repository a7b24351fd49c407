"""Building a tree from its sources, and bringing it up to date, one source after the other."""

from __future__ import annotations

import logging
import os
import shlex
import sqlite3
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from metatree._util.named_file import typed_path
from metatree._util.open_folder import opened
from metatree._util.private import private_folder
from metatree._util.secret_text import masked
from metatree.errors import (
    BrokenStore,
    MetatreeError,
    StoreReplaced,
    TransientError,
    UntrustedStore,
    UserError,
)
from metatree.node import Node, digest_of
from metatree.notes.left_out import OPTION, left_out
from metatree.storage.acceptance import survey
from metatree.storage.errors import ELSEWHERE, file_error, is_busy, replaced, store_error, unwritable
from metatree.storage.store import Store, writable
from metatree.storage.store_files import check_files, whole
from metatree.storage.trust import OFFERED
from metatree.trees.edits import create_root
from metatree.trees.layer import GAP, ROOT, Layer
from metatree.trees.source_files import digest_bytes, read_inside
from metatree.trees.source_types import (
    BuiltTree,
    Progress,
    SourceRef,
    SourceType,
    load_source_type,
    source_traits_of,
)
from metatree.trees.sources import (
    FILES,
    FOLDER,
    check_place,
    check_source,
    disk_root,
    is_path,
    public_location,
    source_record,
    sources_of,
)
from metatree.trees.tree import INDEX, Tree
from metatree_memory_tools.build._files import MAX_FILE_BYTES, FilesBuild
from metatree_memory_tools.build._index_writer import BuiltFile, IndexWriter, SourceState
from metatree_memory_tools.build._mounts import arrange_sources, describe_root
from metatree_memory_tools.build._pool import Workers
from metatree_memory_tools.build._read_file import LEFT_OUT, reader_names
from metatree_memory_tools.build._scan import Scan, ScannedFile, scan, scan_file
from metatree_memory_tools.build._source import SourceBuild, read_by
from metatree_memory_tools.build.history import bring_history, is_history_stale, with_history
from metatree_memory_tools.build.source_spec import Given, located, mounted
from metatree_memory_tools.file_names import name_text
from metatree_memory_tools.memory_types import memory_types

_LOCK_S = 120.0
_log = logging.getLogger("metatree")


def build_tree(
    source: Given,
    *more: Given,
    out: str | Path | None = None,
    progress: Progress | None = None,
    include_secrets: bool = False,
    max_file_bytes: int = MAX_FILE_BYTES,
    history: bool | None = None,
    wait_s: float = _LOCK_S,
) -> Tree:
    """Build the tree of one or several sources, or bring it up to date, and open it.

    Only files whose size or time changed are looked at, and only those whose bytes changed are read again. Files
    that git ignores, secrets, links, binary and special files are left out; `Tree.omissions` lists them.

    The tree of one folder has its paths as ids. Any other tree has a node for each source below its root, and every
    id begins with that node's, such as `docs/install.md` or `handbook.pdf#p3`. A source that cannot be read keeps
    the nodes that it had, and says so in `attributes["note"]`; the others are read nevertheless. Sources that are
    not given any more leave the tree, with their nodes.

    Args:
        source: a folder, a file, an address or another location that an installed type reads, `TYPE:LOCATION`, or
            a `SourceRef`, which also says the mount; a table of an MCP server with `command` and `args`, or `url`.
        more: further sources.
        out: where the tree is kept, a folder; None for `.metatree` in the source when that is one folder, in the
            current folder otherwise.
        progress: called as `progress(done, total, what)` while sources are read.
        include_secrets: whether files that are likely to hold keys or passwords become nodes.
        max_file_bytes: a larger file becomes a node without content.
        history: whether the commits of the git repositories around folders are read too, up to those that are checked
            out; None leaves it as it was, at first without. What could not be read is among the omissions as `.git`.
        wait_s: how long to wait for another build of the same tree.

    Raises:
        UserError: a source is not there, nothing reads it, or `out` holds the tree of other sources; when these are
            not there any more, they were renamed, and the tree becomes that of the source.
        TransientError: another build of this tree is in progress.
        BrokenStore: `memory.db` is damaged; a damaged index is built anew.

    Example:
        >>> import tempfile, pathlib
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pathlib.Path(folder, "a.py").write_text("def f(x):\\n    'Add one.'\\n    return x + 1\\n")
        ...     with build_tree(folder) as tree:
        ...         tree.get("a.py::f").description
        'def f(x) — Add one.'
    """
    for given in (source, *more):
        if not isinstance(given, str | Path | SourceRef | Mapping):
            raise UserError(f"build_tree takes paths, addresses and sources, not {given!r}")
    options = {"include_secrets": include_secrets, "max_file_bytes": max_file_bytes, "history": history}
    kept_in = typed_path(out).absolute() if out is not None else None
    sources = located((source, *more), options, None if more else kept_in and kept_in.resolve())
    place = kept_in or place_of(sources)
    check_files(place / INDEX)
    try:
        private_folder(place)
        if place.name == FOLDER:
            ignore_all(place)
    except OSError as exc:
        raise file_error(exc, "cannot make the folder", place, ELSEWHERE) from exc
    _bring_up_to_date(sources, place, progress, wait_s, check=True)
    return Tree.open(place)


def ignore_all(folder: Path) -> None:
    """Have git pass over a folder, whatever a clone says of it; what is no file is left alone."""
    text = b"*\n"
    with opened(folder.parent.resolve(), [folder.name]) as place:
        name, at = place.name(".gitignore"), place.descriptor
        with suppress(FileNotFoundError):
            state = os.stat(name, dir_fd=at, follow_symlinks=False)
            if not stat.S_ISREG(state.st_mode):
                return
            if state.st_size == len(text) and read_inside(folder, ".gitignore", links=False)[0] == text:
                return
            os.unlink(name, dir_fd=at)  # and not written into: it may be another name of a file elsewhere
        with suppress(FileExistsError), place.create(".gitignore") as stream:  # of another process
            stream.write(text)


def place_of(sources: Sequence[SourceRef]) -> Path:
    """Return where the tree of some sources is kept when nothing else is said: in the folder, or the current one."""
    alone = len(sources) == 1 and sources[0].type == "folder" and not sources[0].mount
    return (Path(sources[0].location) if alone else Path.cwd()) / FOLDER


class TreeBuilder:
    """Brings trees up to date with their sources; installed as `sources`."""

    def refresh(self, tree: BuiltTree, *, progress: Progress | None = None) -> None:
        """Read what changed since the tree was built."""
        sources = tree.sources()
        if tree.path is None or tree.path.is_file():
            raise UserError(f"{tree!r} is kept in one file, which cannot be built")
        if not tree.path.is_dir():
            raise replaced(tree.path)
        tree.index.check_place()
        if not sources[0].mount and not Path(sources[0].location).is_dir():
            raise UserError(
                f"the source {sources[0].location!r} is not there any more: build a tree of where it is now"
            )
        _bring_up_to_date(sources, tree.path, progress, _LOCK_S)

    def stale(self, tree: BuiltTree) -> bool:
        """Whether a source changed, by names, sizes and times, or by its fingerprint; False for one out of reach."""
        if tree.path is None:
            return False
        try:
            tree.index.check_place()
        except StoreReplaced:
            return True  # and refreshing it says so
        layer = Layer(tree.index)
        return any(_stale(source, layer, tree.path) for source in tree.sources())


tree_builder = TreeBuilder()


def _stale(source: SourceRef, layer: Layer, place: Path) -> bool:
    state = SourceState(layer, source.mount)
    failed = bool(state.get("note"))
    if state.get("building") and not failed:
        return True
    try:
        check_place(source)
    except UserError:
        return True  # and reading it says why not
    if source.type not in FILES:
        try:
            kind = load_source_type(source.type)
            fingerprint = kind.fingerprint(_without_forgotten(source, kind, place))
        except Exception:  # what cannot be reached is not read by a search that goes by
            return False
        if fingerprint is None:
            return failed
        now = (fingerprint, read_by(source, kind))
        return failed or now != (state.get("fingerprint"), state.get("version"))
    root = disk_root(source)
    if root is None or not Path(source.location).exists():
        return False
    if failed or state.get("readers") != reader_names(
        memory_types(), secrets=bool(source.options.get("include_secrets"))
    ):
        return True
    if (state.get(OPTION) or []) != left_out(place, source.mount):
        return True
    if is_history_stale(source, layer):
        return True
    scan_result = _scan(source, place)
    known = IndexWriter(layer, source.mount).known_files()
    if scan_result.files.keys() != known.keys():
        return True
    return any(_differs(root, file, known[path]) for path, file in scan_result.files.items())


def changed_files(tree: BuiltTree) -> int:
    """Count the files that are new, gone, or others than were built.

    Sources that are no folders or files have none, nor has one that a link leads away from now, which is not read.
    """
    count = 0
    if tree.path is None:
        return 0
    layer = Layer(tree.index)
    for source in tree.sources():
        try:
            root = disk_root(source)
        except UserError:
            continue
        if source.type not in FILES or root is None or not Path(source.location).exists():
            continue
        try:
            files = _scan(source, tree.path).files
        except UserError:  # a link came in its place
            continue
        known = IndexWriter(layer, source.mount).known_files()
        count += len(files.keys() ^ known.keys())
        count += sum(_differs(root, files[path], known[path]) for path in files.keys() & known.keys())
    return count


def _scan(source: SourceRef, place: Path, progress: Progress | None = None) -> Scan:
    root = Path(source.location)
    try:
        if source.type == "file":
            return scan_file(root, source.mount)
        exclude = place.resolve().relative_to(root).as_posix() if place.resolve().is_relative_to(root) else ""
        secrets = bool(source.options.get("include_secrets"))
        result = scan(root, include_secrets=secrets, exclude=exclude, progress=progress)
    except OSError as exc:
        raise UserError(f"cannot read the {source.type} {str(root)!r}: {exc.strerror}") from exc
    return result.below(source.mount) if source.mount else result


def _differs(root: Path, file: ScannedFile, known: BuiltFile) -> bool:
    """Whether a file is another one than was built, by size and times; by its bytes when these say nothing."""
    if file.size != known.size:
        return True
    if known.mtime_ns != -1:
        return not known.dated(file.size, file.mtime_ns, file.ctime_ns)
    try:
        return digest_bytes(read_inside(root, file.raw or file.path, links=False)[0]) != known.digest
    except (OSError, UserError):
        return known.reader != LEFT_OUT


def _bring_up_to_date(
    sources: Sequence[SourceRef],
    place: Path,
    progress: Progress | None,
    wait_s: float,
    *,
    check: bool = False,
) -> None:
    """Bring the index up to date; one that is damaged, or of a newer version, is thrown away and built anew.

    With `check` it is read as a whole first, since an update passes over what did not change.
    """
    if not writable(place / INDEX):
        raise unwritable(place / INDEX)
    with lock(place, wait_s):
        offered: list[dict[str, Any]] = []
        try:
            if check and (place / INDEX).exists():
                with Store.open(place / INDEX) as store:
                    store.check()
            _update(sources, place, progress)
        except (BrokenStore, UntrustedStore) as exc:
            if Path(exc.path) != place / INDEX or (isinstance(exc, BrokenStore) and exc.reason == "foreign"):
                raise
            # One that the user named may be a link; a `.metatree` is none, or has become one just now.
            with opened(
                place.parent.resolve() / place.name if place.name == FOLDER else place.resolve()
            ) as folder:
                if isinstance(exc, UntrustedStore):
                    state = survey(place / INDEX)
                    offered = state.offered or state.sources
                    _log.warning(
                        "the index in %s was not made by you: it is built again, from %s",
                        *_named(place, sources),
                    )
                else:
                    _log.warning("%s: built anew", str(exc).partition(";")[0])
                for end in ("-wal", "-shm", "-journal", ""):  # a log is never left without its file
                    with suppress(FileNotFoundError):
                        os.unlink(folder.name(INDEX + end), dir_fd=folder.descriptor)
            _update(sources, place, progress)
        _remember_offer(place, offered)


def _named(place: Path, sources: Sequence[SourceRef]) -> tuple[str, str]:
    return str(place), ", ".join(public_location(source.location) for source in sources)


def _remember_offer(place: Path, offered: list[dict[str, Any]]) -> None:
    """Keep what sources an index of somebody else named, for `metatree trust` to show; they are not read."""
    with Store.open(place / INDEX) as store:
        layer = Layer(store)
        if offered and offered != layer.fact("sources"):
            layer.set_fact(OFFERED, offered)
            _log.warning(
                "%s: %d sources that it named are not used: `metatree trust %s` shows them",
                place,
                len(offered),
                shlex.quote(str(place)),
            )


def _update(given: Sequence[SourceRef], place: Path, progress: Progress | None) -> None:
    with Store.open(place / INDEX) as store:
        layer = Layer(store)
        if layer.has_imported():
            raise UserError(
                f"{str(place)!r} holds nodes that somebody else made by hand: build your tree elsewhere (--tree"
                f" FOLDER), with {f'tree:{place}'!r} among its sources to have them too"
            )
        known = sources_of(layer, place.resolve())
        check_source([source for source in known if not _is_unread(source, layer)], given)
        sources = [with_history(source, known) for source in mounted(given, known)]
        if not layer.has(ROOT):
            create_root(layer, Node(ROOT, name_text(Path(sources[0].location)), kind="folder"))
        arrange_sources(layer, known, sources, [source_record(source, place) for source in sources])
        for number, source in enumerate(sources, start=1):
            if source.mount:
                _read_or_note(source, layer, place, progress, number * GAP)
            else:
                _read(source, layer, place, progress, 0)
        if sources[0].mount:
            describe_root(layer, sources)


def _is_unread(source: SourceRef, layer: Layer) -> bool:
    """Whether nothing of a source was ever read, so that a tree need not stay one of it."""
    state = SourceState(layer, source.mount)
    failed = state.get("note") or state.get("built_at") is None
    return bool(failed) and not layer.child_count(source.mount or ROOT)


def _read(source: SourceRef, layer: Layer, place: Path, progress: Progress | None, position: int) -> None:
    state = SourceState(layer, source.mount)
    check_place(source)
    if source.type in FILES:
        source = replace(source, options={**source.options, OPTION: left_out(place, source.mount)})
        is_new = state.get("built_at") is None
        with Workers() as workers:
            scan_result = _scan(source, place, workers.started_by(progress) if is_new else progress)
            FilesBuild(
                source, layer, scan_result, progress, position=position, state=state, workers=workers
            ).run()
        bring_history(source, layer, progress)
    else:
        kind = load_source_type(source.type)
        if source.type == "tree":
            source = replace(source, options={**source.options, "within": layer.fact("generation")})
        source = _without_forgotten(source, kind, place)
        SourceBuild(source, layer, kind, progress, position=position, state=state).run()


def _without_forgotten(source: SourceRef, kind: SourceType, place: Path) -> SourceRef:
    """Return a source with what its type is to pass over, where it can."""
    if not source_traits_of(kind).leaves_out:
        return source
    return replace(source, options={**source.options, OPTION: left_out(place, source.mount)})


def _read_or_note(
    source: SourceRef, layer: Layer, place: Path, progress: Progress | None, position: int
) -> None:
    """Read one of several sources; when that fails its top node says so, and what was read before stays."""
    try:
        _read(source, layer, place, progress, position)
    except Exception as exc:
        if isinstance(exc, BrokenStore) and exc.path == str(layer.store.path):
            raise  # the index of this tree, not a store that is the source
        note = str(exc) if isinstance(exc, MetatreeError) else f"{type(exc).__name__}: {exc}"
        if not isinstance(exc, MetatreeError):
            _log.warning("reading %s failed", source.location, exc_info=True)
        _note(source, layer, masked(f"cannot be read: {note}")[0], position)


def _note(source: SourceRef, layer: Layer, note: str, position: int) -> None:
    writer = IndexWriter(layer, source.mount)
    with layer.store.transaction():
        top = layer.node(source.mount)
        if top is None:
            name = name_text(Path(source.location)) if is_path(source) else source.mount
            top = Node(source.mount, name, note, kind="file" if source.type == "file" else "folder")
        top = replace(top, attributes={**top.attributes, "note": note}, digest="")
        writer.folder(replace(top, digest=digest_of(top)), position)
        layer.store.execute("INSERT OR REPLACE INTO omission VALUES (?, ?)", (source.mount, note))
        SourceState(layer, source.mount).set("note", note)


@contextmanager
def lock(place: Path, wait_s: float) -> Iterator[None]:
    """Keep other builds of the same tree out; the system lets go of the lock when the process dies."""
    check_files(place / "build.lock")
    with closing(_locked(place / "build.lock", wait_s)):
        yield


def _locked(file: Path, wait_s: float) -> sqlite3.Connection:
    connection = None
    try:
        connection = sqlite3.connect(whole(file), timeout=wait_s, isolation_level=None)
        connection.execute("BEGIN EXCLUSIVE")
    except sqlite3.Error as exc:
        if connection is not None:
            connection.close()
        if is_busy(exc):
            text = f"another build of {str(file.parent)!r} is under way: wait for it, or stop it"
            raise TransientError(text, retry_after_s=wait_s) from exc
        raise store_error(exc, file, advice=": delete it") from exc
    return connection
