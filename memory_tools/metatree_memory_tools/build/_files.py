"""Reading the files of one source, a folder or a single file, and writing what changed.

What is compared are names, sizes and times; what differs is read, and written in batches: one transaction holds some
files with all their nodes. A build that is killed leaves a tree that the next build completes.

The status time (ctime) counts beside size and modification time; it moves when a mode or a link changes too, which
costs one look at the bytes.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from metatree.errors import UserError
from metatree.node import Node
from metatree.notes.left_out import OPTION
from metatree.trees.layer import ROOT, Layer
from metatree.trees.overlay import above
from metatree.trees.source_files import digest_bytes, read_inside
from metatree.trees.source_types import Progress, SourceRef
from metatree.trees.sources import disk_root
from metatree.trees.text import decode
from metatree_memory_tools.build import _folder as folders
from metatree_memory_tools.build._index_writer import IndexWriter, SourceState, arrange, parent_of
from metatree_memory_tools.build._pool import HUGE_BYTES, FileReader, Workers
from metatree_memory_tools.build._read_file import LEFT_OUT, FileNodes, reader_names
from metatree_memory_tools.build._renames import Renames
from metatree_memory_tools.build._scan import Scan, ScannedFile
from metatree_memory_tools.code.imports import Modules, targets
from metatree_memory_tools.code.references import Files
from metatree_memory_tools.file_names import name_text
from metatree_memory_tools.memory_types import memory_types

MAX_FILE_BYTES = 2_000_000
"""A larger file becomes a node without content."""

_BATCH_FILES = 200
_BATCH_NODES = 20_000
"""Nodes of a file that were read take a kilobyte or more each."""


class FilesBuild:
    """One run over a folder, or over one file that is a source by itself."""

    def __init__(
        self,
        source: SourceRef,
        layer: Layer,
        scan: Scan,
        progress: Progress | None,
        *,
        position: int = 0,
        state: SourceState,
        workers: Workers,
    ) -> None:
        options = source.options
        self.source = source
        root = disk_root(source)
        assert root is not None
        self.root = root
        self.layer = layer
        self.store = layer.store
        self.state = state
        self.writer = IndexWriter(layer, source.mount)
        self.top = source.mount or ROOT
        self.prefix = f"{source.mount}/" if source.mount else ""
        self.types = memory_types()
        self.max_file_bytes = int(options.get("max_file_bytes") or MAX_FILE_BYTES)
        self.scan = scan
        self.workers = workers
        self.progress = progress
        self.known = self.writer.known_files()
        self.known_folders = self.writer.known_folders()
        self.first = not self.known and state.get("built_at") is None
        """Whether nothing was ever read, so that there is nothing to compare with."""
        self.present = self.known_folders | ({self.top} if layer.has(self.top) else set())
        self.left_out = {path for path, known in self.known.items() if known.reader == LEFT_OUT}
        self.children = self._children()
        self.positions: dict[str, int] = {self.top: position}
        self.again: set[str] = set()
        self.removed: set[str] = set()
        self.secrets = bool(options.get("include_secrets"))
        self.readers = reader_names(self.types, secrets=self.secrets)
        self.room = {
            reader: each.traits.max_file_bytes for reader, each in zip(self.readers, self.types, strict=True)
        }
        """Up to which size a type reads files, where it says so."""
        self.other_readers = state.get("readers") != self.readers
        self.left_out_parts = frozenset(options.get(OPTION, ()))
        self.others_left_out = (state.get(OPTION) or []) != sorted(self.left_out_parts)
        self.leaving = {
            reader for reader, each in zip(self.readers, self.types, strict=True) if each.traits.leaves_out
        }
        """Readers of files that can be read without some of their parts."""

    def run(self) -> None:
        """Compare, read and write."""
        files, known = self.scan.files, self.known
        unfinished = any(map(self.state.get, ("building", "note"))) or self.state.get("built_at") is None
        removed = [path for path in known if path not in files]
        self.again = self._named_like_parts(removed)
        changed = [
            file
            for path, file in files.items()
            if path not in known or path in self.again or self._must_read(file)
        ]
        changed.sort(key=lambda file: file.size > HUGE_BYTES)  # when nothing else needs room
        undated = [
            (files[path].ctime_ns, path)
            for path, was in known.items()
            if was.ctime_ns == -1 and path in files and was.dated(*_dates(files[path]))
        ]
        if not (changed or removed or unfinished):
            with self.store.transaction():
                self._note_left_out()
                self.writer.status_times(undated)
                self.writer.omissions({**self.scan.omissions, **self._void()})
            return
        renames = Renames(removed, known)
        paths = files.keys() | self.scan.folders.keys()
        taken = paths if any("#" in path or "::" in path for path in paths) else None
        with self.store.transaction():
            self.state.set("building", True)
            self.writer.status_times(undated)
            self._clear_way(removed)
            self.state.set("readers", self.readers)
        touched: set[str] = set()
        for batch in self._read(changed):
            with self.store.transaction():
                touched |= self._write(batch, renames, taken)
        with self.store.transaction():
            for path in removed:
                self._remove(path)
            void = self._void()
            present = self.writer.known_folders()
            out_of_use = sorted(present - (self.scan.folders.keys() - void.keys()), reverse=True)
            self.writer.erase(out_of_use)
            for old, new in renames.folders(out_of_use, present - self.known_folders):
                self.writer.renamed(old, new)
            self._link(touched, removed, unfinished)
            if self.source.type != "file":
                self._describe(None if unfinished else {*touched, *removed, *out_of_use}, void)
            self.writer.omissions({**self.scan.omissions, **void})
            self.state.set("building", False)
            self._note_left_out()
            self.state.set("note", None)
            self.state.set("built_at", time.time())

    def _write(self, batch: Sequence[FileNodes], renames: Renames, taken: Collection[str] | None) -> set[str]:
        """Write files; return the paths of those that are not as they were."""
        touched: set[str] = set()
        fresh: list[tuple[FileNodes, int]] = []
        for file in batch:
            if file.path not in self.known and (old := renames.source(file.path, file.digest, file.size)):
                self._remove(old)
                self.writer.renamed(old, file.path)
            if file.nodes:
                self._have_folder(parent_of(file.path))
            position = self._position(file.path)
            is_new = self.first and file.path != self.top
            if is_new and taken is None:
                fresh.append((file, position))
            else:
                self.writer.file(file, position, taken, fresh=is_new)
            if not file.same:
                touched.add(file.path)
                self.left_out.discard(file.path)
                if file.reader == LEFT_OUT:
                    self.left_out.add(file.path)
        self.writer.new_files(fresh)
        return touched

    def _note_left_out(self) -> None:
        if self.others_left_out:
            self.state.set(OPTION, sorted(self.left_out_parts))

    def _void(self) -> dict[str, str]:
        """Return the folders in which no file has a node, each with the reason to leave it out."""
        used: set[str] = set()
        for path in self.scan.files:
            if path not in self.left_out:
                while (path := path.rpartition("/")[0]) and path not in used:
                    used.add(path)
        return dict.fromkeys(
            (path for path in self.scan.folders if path not in used), "nothing in it can be read"
        )

    def _have_folder(self, path: str) -> None:
        """Put in a folder, and those above it, if they are not there; what they say comes when all is read."""
        if path == ROOT or path in self.present:
            return
        self._have_folder(parent_of(path))
        self.present.add(path)
        name = path.rpartition("/")[2]
        node = Node(path, name, kind="folder", attributes={"path": path}, digest="-")
        self.writer.folder(node, self._position(path))

    def _remove(self, path: str) -> None:
        """Remove a file that is gone; once, since something else may have taken its id."""
        if path not in self.removed:
            self.removed.add(path)
            self.writer.remove_file(path)

    def _named_like_parts(self, removed: Iterable[str]) -> set[str]:
        """Return the files whose parts get other ids because a file came or went that has the id of one."""
        added = (path for path in self.scan.files if path not in self.known)
        odd = (path for path in (*added, *removed) if "#" in path or "::" in path)
        return {owner for path in odd for owner in above(path) if owner in self.scan.files}

    def _must_read(self, file: ScannedFile) -> bool:
        known = self.known[file.id]
        reader = known.reader
        if self.other_readers or (file.alone and self.state.get("note")) or self._lacks_others(reader):
            return True
        if reader.startswith("huge ") and reader != f"huge {self.max_file_bytes}":
            return True
        if not known.dated(file.size, file.mtime_ns, file.ctime_ns):
            return True
        room = max(self.max_file_bytes, self.room.get(reader, 0))
        return file.size > room and reader != LEFT_OUT and not reader.startswith("huge ")

    def _children(self) -> dict[str, list[str]]:
        """Return the paths in each folder, in the order of the tree: folders, then files, by name."""
        children: dict[str, list[str]] = {self.top: []}
        for group in (self.scan.folders, self.scan.files):
            for path in group:
                children.setdefault(parent_of(path), []).append(path)
        return children

    def _position(self, path: str) -> int:
        """Return where a file or folder stands among its siblings."""
        if path not in self.positions:
            folder = parent_of(path)
            known = {node_id: position for position, node_id in self.layer.child_places(folder)}
            wanted = self.children[folder]
            places = arrange(wanted, {node_id: known[node_id] for node_id in wanted if node_id in known})
            self.layer.reposition((places[i], i) for i in wanted if i in known and known[i] != places[i])
            self.positions.update(places)
        return self.positions[path]

    def _clear_way(self, removed: list[str]) -> None:
        """Remove what is gone and whose id is needed: a file for a folder or a part, a folder for a file."""
        for path in removed:
            if path in self.scan.folders or self.again:
                self._remove(path)
        for path in sorted(self.known_folders, reverse=True):
            if path in self.scan.files:
                for below in removed:
                    if below.startswith(path + "/"):
                        self._remove(below)
                below_ids = self.layer.subtree(path)
                self.writer.erase(list(below_ids))
                self.present -= below_ids.keys()

    def _read(self, changed: list[ScannedFile]) -> Iterator[list[FileNodes]]:
        reader = FileReader(self.root, self.max_file_bytes, self.secrets, self.left_out_parts)
        batch: list[FileNodes] = []
        nodes = 0
        read = reader.read_all([(file, self._before(file)) for file in changed], self.types, self.workers)
        for number, file in enumerate(changed):
            if self.progress is not None:
                self.progress(number, len(changed), file.id)
            batch.append(next(read))
            nodes += len(batch[-1].nodes)
            if len(batch) >= _BATCH_FILES or nodes >= _BATCH_NODES:
                yield batch
                batch.clear()  # whoever was given it is done
                nodes = 0
        if self.progress is not None:
            self.progress(len(changed), len(changed), "")
        yield batch

    def _before(self, file: ScannedFile) -> tuple[str, str] | None:
        """Return digest and reader of a file in the build before; None for one that is read whatever they are."""
        known = self.known.get(file.id)
        if known is None or file.id in self.again or (file.alone and self.state.get("note")):
            return None
        return None if self._lacks_others(known.reader) else (known.digest, known.reader)

    def _lacks_others(self, reader: str) -> bool:
        """Whether other parts of the files of a reader are passed over now than when they were read."""
        return self.others_left_out and reader in self.leaving

    def _link(self, touched: set[str], removed: Iterable[str], everything: bool) -> None:
        """Bring the links for imports up to date: of all files when modules came or went, else of what changed."""
        cut = len(self.prefix)
        modules = {file.path for file in self.scan.files.values() if file.path.endswith((".py", ".pyi"))}
        known = {path[cut:] for path in self.known if path.endswith((".py", ".pyi"))}
        imports = self._facts("imports")
        handed_on = any(path.rpartition("/")[2].startswith("__init__.") for path in touched)
        all_modules = (
            everything or handed_on or modules != known or any(path[cut:] in known for path in removed)
        )
        index = Modules(modules)
        wanted = {path[cut:] for path in touched}
        for path in sorted(imports.keys() | (wanted & modules) if all_modules else wanted & modules):
            if self.prefix + path in self.scan.files:
                linked = targets(path, imports.get(path, ()), index, imports)
                wanted_links = [self.prefix + target for target in linked]
                self.writer.links(self.prefix + path, "imports", wanted_links, fresh=self.first)
        self._follow_references(wanted - modules, everything or self.scan.files.keys() != self.known.keys())

    def _follow_references(self, wanted: set[str], everything: bool) -> None:
        """Bring the links of other files up to date: of all when files or packages came or went, else of some."""
        references, declares = self._facts("references"), self._facts("declares")
        if not (references.keys() | declares.keys()) and not everything:
            return
        everything = everything or not wanted.isdisjoint(declares)
        paths = [file.path for file in self.scan.files.values()]
        files = Files(paths, declares, self._head)
        for path in sorted(references.keys() | wanted if everything else wanted):
            if self.prefix + path in self.scan.files:
                for kind, linked in files.targets(path, references.get(path, ())).items():
                    targets = [self.top if target == "." else self.prefix + target for target in linked]
                    self.writer.links(self.prefix + path, kind, targets, fresh=self.first)

    def _facts(self, fact: str) -> dict[str, list[Any]]:
        """Return one fact of every file that has it, by its path in the source."""
        rows = self.store.rows(
            f"SELECT path, json_extract(facts, '$.{fact}') FROM file"
            f" WHERE facts <> '{{}}' AND {self.writer.within('path')}"
        )
        cut = len(self.prefix)
        return {path[cut:]: json.loads(value) for path, value in rows if value and value != "[]"}

    def _head(self, path: str) -> str:
        """Return the beginning of a file, empty when it cannot be read."""
        try:
            return decode(read_inside(self.root, path, limit=65_536, links=False)[0])[0]
        except (OSError, UserError):
            return ""

    def _describe(self, touched: set[str] | None, void: Mapping[str, str]) -> None:
        """Describe the folders above what was touched, all with None; a folder says what lies in it."""
        used = self.scan.folders.keys() - void.keys()
        above = {self.top, *used}
        if touched is not None:
            above = {self.top}
            for path in touched:
                while path := path.rpartition("/")[0]:
                    above.add(path)
        weights: dict[str, int] = {}
        for path, file in self.scan.files.items():
            folder = path
            while folder := folder.rpartition("/")[0]:
                weights[folder] = weights.get(folder, 0) + file.size
        rows = self.store.rows(
            "SELECT path, json_extract(facts, '$.summary') FROM file"
            f" WHERE reader <> ? AND {self.writer.within('path')}",
            (LEFT_OUT,),
        )
        summaries = dict(rows)
        for path in sorted(above & {self.top, *used}):
            children = [
                folders.FolderEntry(name.rpartition("/")[2], True, weights.get(name, 0))
                if name in used
                else folders.FolderEntry(
                    name.rpartition("/")[2], False, self.scan.files[name].size, summaries[name] or ""
                )
                for name in self.children.get(path, ())
                if name in used or name in summaries
            ]
            title = name_text(self.root) if path == self.top else path.rpartition("/")[2]
            text = folders.describe(children)
            attributes: dict[str, Any] = {"path": path, "children": len(children)}
            if path in self.scan.notes:
                attributes["note"] = self.scan.notes[path]
                text = f"{text} It {attributes['note']}.".strip()
            digest = digest_bytes(f"folder\0{title}\0{text}".encode("utf-8", "replace"))
            node = Node(path, title, text, kind="folder", attributes=attributes, digest=digest)
            self.writer.folder(node, self._position(path))


def _dates(file: ScannedFile) -> tuple[int, int, int]:
    return file.size, file.mtime_ns, file.ctime_ns
