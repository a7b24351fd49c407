"""Building the tree of a folder, and bringing it up to date.

A build walks over the folder, compares names, sizes and times with what it knows, reads what differs, and writes
in batches: one transaction holds some files with all their nodes. A build that is killed leaves a tree that the
next build completes.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from metatree.errors import BrokenStore, TransientError, UserError
from metatree.layer import ROOT, Layer
from metatree.memory_type import Progress
from metatree.node import Node
from metatree.overlay import above
from metatree.source import digest_bytes, read_inside
from metatree.store import Store, writable
from metatree.tree import FOLDER, INDEX, Tree, check_source, plant, source_record, sources_of
from metatree_memory_tools import folder as folders
from metatree_memory_tools.git_log import drop_history, history_stale, read_history
from metatree_memory_tools.imports import Modules, targets
from metatree_memory_tools.index_writer import IndexWriter, arrange
from metatree_memory_tools.reading import LEFT_OUT, FileNodes, read_file, reader_names
from metatree_memory_tools.renames import Renames
from metatree_memory_tools.scan import Found, Scan, scan

MAX_FILE_BYTES = 2_000_000
"""A larger file becomes a node without content."""

_BATCH_FILES = 200
_LOCK_S = 120.0


def build_tree(
    source: str | Path,
    *,
    out: str | Path | None = None,
    progress: Progress | None = None,
    include_secrets: bool = False,
    max_file_bytes: int = MAX_FILE_BYTES,
    history: bool | None = None,
    wait_s: float = _LOCK_S,
) -> Tree:
    """Build the tree of a folder, or bring it up to date, and open it.

    Only files whose size or time changed are looked at, and only those whose bytes changed are read again. Files
    that git ignores, secrets, links, binary and special files are left out; `Tree.omissions` lists them.

    Args:
        source: the folder.
        out: where the tree is kept, a folder; None for `.metatree` in the source.
        progress: called as `progress(done, total, path)` while files are read.
        include_secrets: whether files that are likely to hold keys or passwords become nodes.
        max_file_bytes: a larger file becomes a node without content.
        history: whether the commits of the git repository around it are read too, up to the one that is checked out;
            None leaves it as it was, at first without. What could not be read is among the omissions as `.git`.
        wait_s: how long to wait for another build of the same tree.

    Raises:
        UserError: the source is no folder, or cannot be read, or `out` holds the tree of another folder; when
            that folder is not there any more, it was renamed, and its tree becomes that of the source.
        TransientError: another build of this tree is under way.
        BrokenStore: `memory.db` is damaged; a damaged index is built anew.

    Example:
        >>> import tempfile, pathlib
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pathlib.Path(folder, "a.py").write_text("def f(x):\\n    'Add one.'\\n    return x + 1\\n")
        ...     with build_tree(folder) as tree:
        ...         tree.get("a.py::f").description
        'def f(x) — Add one.'
    """
    if not isinstance(source, str | Path):
        raise UserError(f"build_tree takes the path of a folder, not {source!r}")
    if isinstance(source, str) and "://" in source:
        raise UserError(f"{source!r} is an address: save it to a folder first and build that")
    root = Path(source).expanduser()
    if not root.is_dir():
        what = "is a file" if root.exists() else "does not exist"
        raise UserError(f"{str(source)!r} {what}: give the folder that the tree is to be built from")
    root = root.resolve()
    place = root / FOLDER if out is None else Path(out).expanduser().absolute()
    try:
        place.mkdir(parents=True, exist_ok=True)
        if place.name == FOLDER and not (place / ".gitignore").exists():
            (place / ".gitignore").write_text("*\n")
    except OSError as exc:
        raise UserError(
            f"cannot make the folder {str(place)!r}: {exc.strerror}; give another one as `out`"
        ) from exc
    options = {"include_secrets": include_secrets, "max_file_bytes": max_file_bytes, "history": history}
    _bring_up_to_date(root, place, options, progress, wait_s, check=True)
    return Tree.open(place)


class FolderBuilder:
    """Brings trees of folders up to date; installed as `folder`."""

    def refresh(self, tree: Tree, *, progress: Progress | None = None) -> None:
        """Read what changed since the tree was built."""
        _, root, options = tree.sources()[0]
        if tree.path is None or not root.is_dir():
            raise UserError(
                f"the source {str(root)!r} is not there any more: build a tree of where it is now"
            )
        _bring_up_to_date(root, tree.path, options, progress, _LOCK_S)

    def stale(self, tree: Tree) -> bool:
        """Whether a file or folder came, went or has another size or time; False when the source is gone."""
        _, root, options = tree.sources()[0]
        layer = Layer(tree.index)
        if tree.path is None or not root.is_dir():
            return False
        if layer.fact("building") or layer.fact("readers") != reader_names():
            return True
        found = _scan(root, tree.path, options)
        known = IndexWriter(layer).known_files()
        if found.files.keys() != known.keys():
            return True
        if options.get("history") and history_stale(root, tree.index):
            return True
        return any(_differs(root, file, known[path]) for path, file in found.files.items())


folder_builder = FolderBuilder()


def _scan(root: Path, place: Path, options: dict[str, Any]) -> Scan:
    exclude = place.resolve().relative_to(root).as_posix() if place.resolve().is_relative_to(root) else ""
    try:
        return scan(root, include_secrets=bool(options.get("include_secrets")), exclude=exclude)
    except OSError as exc:
        raise UserError(f"cannot read the folder {str(root)!r}: {exc.strerror}") from exc


def _known_folders(layer: Layer) -> set[str]:
    return {
        row[0] for row in layer.store.rows("SELECT id FROM node WHERE kind = 'folder' AND id <> ?", (ROOT,))
    }


def _differs(root: Path, file: Found, known: tuple[int, int, str, str]) -> bool:
    """Whether a file is another one than was built, by size and time; by its bytes when the time says nothing."""
    if file.size != known[0]:
        return True
    if known[1] != -1:
        return file.mtime_ns != known[1]
    try:
        return digest_bytes(read_inside(root, file.raw or file.path)[0]) != known[2]
    except (OSError, UserError):
        return known[3] != LEFT_OUT


def _bring_up_to_date(
    root: Path,
    place: Path,
    options: dict[str, Any],
    progress: Progress | None,
    wait_s: float,
    *,
    check: bool = False,
) -> None:
    """Bring the index up to date; one that is damaged, or of a newer version, is thrown away and built anew.

    With `check` it is read as a whole first, since an update passes over what did not change.
    """
    if not writable(place / INDEX):
        raise UserError(
            f"cannot write in {str(place)!r}: change its permissions, or keep the tree in another folder with --tree"
            " (`out` of build_tree)"
        )
    with lock(place, wait_s):
        try:
            if check and (place / INDEX).exists():
                with Store.open(place / INDEX) as store:
                    store.check()
            _update(root, place, options, progress)
        except BrokenStore as exc:
            if exc.reason == "foreign" or Path(exc.path).name != INDEX:
                raise
            for end in ("", "-wal", "-shm"):
                (place / (INDEX + end)).unlink(missing_ok=True)
            _update(root, place, options, progress)


def _update(root: Path, place: Path, options: dict[str, Any], progress: Progress | None) -> None:
    with Store.open(place / INDEX) as store:
        layer = Layer(store)
        check_source((kept for _, kept, _ in sources_of(layer, place)), root)
        if not layer.has(ROOT):
            plant(layer, Node(ROOT, root.name or str(root), kind="folder"))
        if options.get("history") is None:
            options = {
                **options,
                "history": any(kept.get("history") for _, _, kept in sources_of(layer, place)),
            }
        record = [source_record("folder", root, place, options)]
        if layer.fact("sources") != record:
            layer.set_fact("sources", record)
        _Build(root, layer, options, _scan(root, place, options), progress).run()
        if not options["history"]:
            drop_history(store)
        elif note := read_history(root, store, progress=progress):
            store.execute("INSERT OR REPLACE INTO omission(path, reason) VALUES ('.git', ?)", (note,))


@contextmanager
def lock(place: Path, wait_s: float) -> Iterator[None]:
    """Keep other builds of the same tree out; the system lets go of the lock when the process dies."""
    with closing(sqlite3.connect(place / "build.lock", timeout=wait_s, isolation_level=None)) as connection:
        try:
            connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as exc:
            text = f"another build of {str(place)!r} is under way: wait for it, or stop it"
            raise TransientError(text, retry_after_s=wait_s) from exc
        except sqlite3.DatabaseError as exc:
            raise UserError(f"{str(place / 'build.lock')!r} is damaged ({exc}): delete it") from exc
        yield


class _Build:
    """One run over a folder."""

    def __init__(
        self, root: Path, layer: Layer, options: dict[str, Any], found: Scan, progress: Progress | None
    ) -> None:
        self.root = root
        self.layer = layer
        self.store = layer.store
        self.writer = IndexWriter(layer)
        self.max_file_bytes = int(options.get("max_file_bytes") or MAX_FILE_BYTES)
        self.found = found
        self.progress = progress
        self.known = self.writer.known_files()
        self.known_folders = _known_folders(layer)
        self.present = set(self.known_folders)
        self.left_out = {path for path, known in self.known.items() if known[3] == LEFT_OUT}
        self.children = self._children()
        self.positions: dict[str, int] = {}
        self.again: set[str] = set()
        self.removed: set[str] = set()
        self.other_readers = layer.fact("readers") != reader_names()

    def run(self) -> None:
        """Compare, read and write."""
        files, known = self.found.files, self.known
        unfinished = bool(self.layer.fact("building")) or self.layer.fact("built_at") is None
        gone = [path for path in known if path not in files]
        self.again = self._named_like_parts(gone)
        changed = [
            file
            for path, file in files.items()
            if path not in known or path in self.again or self._must_read(file)
        ]
        if not (changed or gone or unfinished):
            with self.store.transaction():
                self.writer.omissions({**self.found.omissions, **self._void()})
            return
        renames = Renames(gone, known)
        with self.store.transaction():
            self.layer.set_fact("building", True)
            self._clear_way(gone)
            self.layer.set_fact("readers", reader_names())
        touched: set[str] = set()
        for batch in self._read(changed):
            with self.store.transaction():
                for file in batch:
                    if file.path not in known and (old := renames.source(file.path, file.digest, file.size)):
                        self._remove(old)
                        self.writer.renamed(old, file.path)
                    if file.nodes:
                        self._have_folder(file.path.rpartition("/")[0])
                    self.writer.file(file, self._position(file.path), files)
                    if not file.same:
                        touched.add(file.path)
                        self.left_out.discard(file.path)
                        if file.reader == LEFT_OUT:
                            self.left_out.add(file.path)
        with self.store.transaction():
            for path in gone:
                self._remove(path)
            void = self._void()
            present = _known_folders(self.layer)
            out_of_use = sorted(present - (self.found.folders.keys() - void.keys()), reverse=True)
            self.writer.erase(out_of_use)
            for old, new in renames.folders(out_of_use, present - self.known_folders):
                self.writer.renamed(old, new)
            self._link(touched, gone, unfinished)
            self._describe(None if unfinished else {*touched, *gone, *out_of_use}, void)
            self.writer.omissions({**self.found.omissions, **void})
            self.layer.set_fact("building", False)
            self.layer.set_fact("built_at", time.time())

    def _void(self) -> dict[str, str]:
        """Return the folders in which no file has a node, each with the reason to leave it out."""
        used: set[str] = set()
        for path in self.found.files:
            if path not in self.left_out:
                while (path := path.rpartition("/")[0]) and path not in used:
                    used.add(path)
        return dict.fromkeys(
            (path for path in self.found.folders if path not in used), "nothing in it can be read"
        )

    def _have_folder(self, path: str) -> None:
        """Put in a folder, and those above it, if they are not there; what they say comes when all is read."""
        if not path or path in self.present:
            return
        self._have_folder(path.rpartition("/")[0])
        self.present.add(path)
        name = path.rpartition("/")[2]
        node = Node(path, name, kind="folder", attributes={"path": path}, digest="-")
        self.writer.folder(node, self._position(path))

    def _remove(self, path: str) -> None:
        """Remove a file that is gone; once, since something else may have taken its id."""
        if path not in self.removed:
            self.removed.add(path)
            self.writer.remove_file(path)

    def _named_like_parts(self, gone: Iterable[str]) -> set[str]:
        """Return the files whose parts get other ids because a file came or went that has the id of one."""
        came = (path for path in self.found.files if path not in self.known)
        odd = (path for path in (*came, *gone) if "#" in path or "::" in path)
        return {owner for path in odd for owner in above(path) if owner in self.found.files}

    def _must_read(self, file: Found) -> bool:
        size, mtime_ns, _, reader = self.known[file.path]
        if self.other_readers:
            return True
        if reader.startswith("huge ") and reader != f"huge {self.max_file_bytes}":
            return True
        if (file.size, file.mtime_ns) != (size, mtime_ns):
            return True
        return file.size > self.max_file_bytes and reader != LEFT_OUT and not reader.startswith("huge ")

    def _children(self) -> dict[str, list[str]]:
        """Return the paths in each folder, in the order of the tree: folders, then files, by name."""
        children: dict[str, list[str]] = {ROOT: []}
        for group in (self.found.folders, self.found.files):
            for path in group:
                children.setdefault(path.rpartition("/")[0] or ROOT, []).append(path)
        return children

    def _position(self, path: str) -> int:
        """Return where a file or folder stands among its siblings."""
        if path not in self.positions:
            folder = path.rpartition("/")[0] or ROOT
            known = {node_id: position for position, node_id in self.layer.child_places(folder)}
            wanted = self.children[folder]
            places = arrange(wanted, {node_id: known[node_id] for node_id in wanted if node_id in known})
            self.layer.reposition((places[i], i) for i in wanted if i in known and known[i] != places[i])
            self.positions.update(places)
        return self.positions[path]

    def _clear_way(self, gone: list[str]) -> None:
        """Remove what is gone and whose id is needed: a file for a folder or a part, a folder for a file."""
        for path in gone:
            if path in self.found.folders or self.again:
                self._remove(path)
        for path in sorted(self.known_folders, reverse=True):
            if path in self.found.files:
                for below in gone:
                    if below.startswith(path + "/"):
                        self._remove(below)
                below_ids = self.layer.subtree(path)
                self.writer.erase(list(below_ids))
                self.present -= below_ids.keys()

    def _read(self, changed: list[Found]) -> Iterator[list[FileNodes]]:
        batch: list[FileNodes] = []
        for number, file in enumerate(changed):
            if self.progress is not None:
                self.progress(number, len(changed), file.path)
            known = None if file.path in self.again else self.known.get(file.path)
            batch.append(
                read_file(
                    self.root, file, self.max_file_bytes, None if known is None else (known[2], known[3])
                )
            )
            if len(batch) >= _BATCH_FILES:
                yield batch
                batch = []
        if self.progress is not None:
            self.progress(len(changed), len(changed), "")
        yield batch

    def _link(self, touched: set[str], gone: Iterable[str], everything: bool) -> None:
        """Bring the links for imports up to date: of all files when modules came or went, else of what changed."""
        modules = {path for path in self.found.files if path.endswith((".py", ".pyi"))}
        known = {path for path in self.known if path.endswith((".py", ".pyi"))}
        rows = self.store.rows("SELECT path, json_extract(facts, '$.imports') FROM file WHERE facts <> '{}'")
        said = {path: json.loads(imports) for path, imports in rows if imports and imports != "[]"}
        handed_on = any(path.rpartition("/")[2].startswith("__init__.") for path in touched)
        everything = everything or handed_on or modules != known or any(path in known for path in gone)
        index = Modules(modules)
        for path in sorted(said.keys() | touched if everything else touched):
            if path in self.found.files:
                self.writer.links(path, "imports", targets(path, said.get(path, ()), index, said))

    def _describe(self, touched: set[str] | None, void: Mapping[str, str]) -> None:
        """Describe the folders above what was touched, all with None; a folder says what lies in it."""
        used = self.found.folders.keys() - void.keys()
        above = {ROOT, *used}
        if touched is not None:
            above = {ROOT}
            for path in touched:
                while path := path.rpartition("/")[0]:
                    above.add(path)
        weights: dict[str, int] = {}
        for path, file in self.found.files.items():
            folder = path
            while folder := folder.rpartition("/")[0]:
                weights[folder] = weights.get(folder, 0) + file.size
        rows = self.store.rows(
            "SELECT path, json_extract(facts, '$.summary') FROM file WHERE reader <> ?", (LEFT_OUT,)
        )
        summaries = dict(rows)
        for path in sorted(above & {ROOT, *used}):
            children = [
                folders.Child(name.rpartition("/")[2], True, weights.get(name, 0))
                if name in used
                else folders.Child(
                    name.rpartition("/")[2], False, self.found.files[name].size, summaries[name] or ""
                )
                for name in self.children.get(path, ())
                if name in used or name in summaries
            ]
            title = (self.root.name or str(self.root)) if path == ROOT else path.rpartition("/")[2]
            text = folders.describe(children)
            digest = digest_bytes(f"folder\0{title}\0{text}".encode("utf-8", "replace"))
            attributes = {"path": path, "children": len(children)}
            node = Node(path, title, text, kind="folder", attributes=attributes, digest=digest)
            self.writer.folder(node, 0 if path == ROOT else self._position(path))
