"""One walk over a folder: which files and folders a tree is made of, and what is left out and why.

A folder of more than 100,000 entries is cut, with a note, through a heap, so that an endless listing needs no memory.
"""

from __future__ import annotations

import heapq
import os
import re
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final

from metatree._util.open_folder import open_folder
from metatree._util.secret_files import is_secret
from metatree.errors import UserError
from metatree.trees.source_files import mtime_of
from metatree.trees.source_types import Progress
from metatree_memory_tools.build._ignore import Tracked, exclude_of, is_tool_folder, rules_above, rules_text
from metatree_memory_tools.file_names import path_text
from metatree_memory_tools.git.ignore import IgnoreRules, SettingsRules, settings_rules

_OWN: Final = (".git", ".metatree")
_OWN_FILES: Final = re.compile(
    r"(?:(?:index|memory|service|agents)\.db|build\.lock)(?:[-.].*)?", re.IGNORECASE
)
"""What a tree writes where it is kept: not to be read, where that is the folder that it is of."""
MAX_DEPTH = 100
"""Folders deeper than this are left out."""

OF_MEMORY: Final = ("memories:", "wishes:", "conversations:", "memory:", "import:", "commit:", "block:")
"""How ids begin of what a tree is told and what agents note in it, and of no file: see `metatree.notes`, which no build
needs to load, `metatree_memory_tools.conversations` and `git`."""
MAX_PATH = 1_000
"""What has a longer path below the source, in characters, is left out: it is the id of each of its nodes."""

MAX_ENTRIES = 100_000
"""Of a folder that holds more files and folders, so many come into the tree, the first by name."""

_REPORT_EACH = 1_000
_TRACKED_ALONE: Final = "of what lies in it, that alone is read which git tracks"
_MOST_PATTERNS = 100_000
"""Patterns with wildcards of all files of rules.

Of a folder whose rules are not known whole, that alone is read which git tracks. Lost: to follow those that are known,
so that a stranger's many patterns had files read that the user's own leave out.
"""


@dataclass(frozen=True, slots=True)
class ScannedFile:
    """A regular file."""

    path: str
    """Relative to the source, with `/`; bytes that are not UTF-8 are shown as `\\xe9`."""
    size: int
    mtime_ns: int
    ctime_ns: int
    raw: bytes | None = None
    """The path as the file system has it, when that is not UTF-8."""
    mount: str = ""
    """Id of the source's top node in a tree of several sources."""
    alone: bool = False
    """Whether the file is a source by itself, so that its node is that top node."""

    @property
    def id(self) -> str:
        """Id of its node, which is its path in the tree."""
        return self.path if not self.mount else self.mount if self.alone else f"{self.mount}/{self.path}"


@dataclass(slots=True)
class Scan:
    """What a walk found."""

    files: dict[str, ScannedFile] = field(default_factory=dict)
    """By path in the tree, in its order."""
    folders: dict[str, None] = field(default_factory=dict)
    """Paths of folders with something in them, each after the one above it; the source itself is left out."""
    omissions: dict[str, str] = field(default_factory=dict)
    """Path -> reason."""
    notes: dict[str, str] = field(default_factory=dict)
    """What the node of a folder says besides: path -> note; the source itself is `.`."""

    def below(self, mount: str) -> Scan:
        """Return the same with every path below the top node of a source."""
        files = (replace(file, mount=mount) for file in self.files.values())
        return Scan(
            {file.id: file for file in files},
            {f"{mount}/{path}": None for path in self.folders},
            {f"{mount}/{path}": reason for path, reason in self.omissions.items()},
            {mount if path == "." else f"{mount}/{path}": note for path, note in self.notes.items()},
        )


def scan(
    root: Path, *, include_secrets: bool = False, exclude: str = "", progress: Progress | None = None
) -> Scan:
    """Walk over a folder.

    Args:
        root: the folder.
        include_secrets: whether files that are likely to hold keys or passwords belong to the tree.
        exclude: path of one folder inside that is passed over in silence, where the tree itself is kept; of `.` the
            files of the tree alone.
        progress: called every thousand entries, with a total of 0, since nobody knows how many there will be.

    Symbolic links are not followed: what they lead to inside the folder is found in its own place.

    Raises:
        OSError: the folder itself cannot be read.
        UserError: its settings cannot, so that nobody knows what they leave out.
    """
    rules, base, is_cut = rules_above(root)
    walk = _Walk(os.fsencode(root), include_secrets, exclude, base, progress)
    walk.settings = settings_rules(root)
    if is_cut:
        walk.result.notes["."] = (
            "the rules of the repository around it are not followed whole, since there are too many or"
            f" .git/info/exclude is a link: {_TRACKED_ALONE}"
        )
    walk.folder("", b"", rules, base, 0, shut=is_cut)
    return walk.result


def scan_file(file: Path, mount: str) -> Scan:
    """Look at one file that is a source by itself; it may be a secret, or ignored, since it was asked for.

    Raises:
        OSError: it is not there.
        UserError: it is no regular file, or a link, which came in its place.
    """
    if file.is_symlink():
        where = os.path.realpath(file)
        raise UserError(f"{str(file)!r} is a link to {where!r} now: build the tree of that to have it read")
    state = file.stat()
    if not stat.S_ISREG(state.st_mode):
        raise UserError(f"{str(file)!r} is neither a file nor a folder")
    name = os.fsencode(file.name)
    path = path_text(name)
    raw = None if path.encode() == name else name
    return Scan(
        {mount: ScannedFile(path, state.st_size, mtime_of(state), state.st_ctime_ns, raw, mount, alone=True)}
    )


def _id_of(path: bytes) -> tuple[int, int] | None:
    try:
        state = os.stat(path)
    except OSError:
        return None
    return state.st_dev, state.st_ino


class _Walk:
    def __init__(
        self, root: bytes, include_secrets: bool, exclude: str, base: str, progress: Progress | None
    ) -> None:
        self.root = root
        self.progress = progress
        self.seen = 0
        self.patterns_left = _MOST_PATTERNS
        self.base = base
        self.tracked: Tracked | None = None
        self.top = path_text(root).rstrip("/") + "/"
        self.include_secrets = include_secrets
        self.exclude = exclude
        self.own = {_id_of(os.path.join(root, os.fsencode(name))) for name in (exclude, *_OWN) if name}
        self.result = Scan()
        self.settings: SettingsRules | None = None

    def folder(
        self,
        path: str,
        raw: bytes,
        rules: IgnoreRules | None,
        base: str,
        depth: int,
        *,
        shut: bool = False,
        above: int | None = None,
    ) -> bool:
        """Walk over one folder and return whether anything in it belongs to the tree.

        With `shut` it is ignored itself, and of what lies in it that alone is not which git tracks. `above` is the
        descriptor of the folder that it lies in.
        """
        try:
            descriptor = self.opened(raw, above)
        except OSError as exc:
            return self.unread(path, exc)
        try:
            return self.inside(path, raw, rules, base, depth, descriptor, shut=shut)
        finally:
            if descriptor is not None:
                os.close(descriptor)

    def place(self, raw: bytes) -> Path:
        """Return where something in the source lies."""
        return Path(os.fsdecode(os.path.join(self.root, raw)))

    def opened(self, raw: bytes, above: int | None) -> int | None:
        """Open a folder of the source, and never one that a link leads to by now; None where that cannot be done.

        It stays open while the folders in it are walked over: each is one name to open from there.
        """
        if os.scandir not in os.supports_fd:
            return None
        flags = os.O_RDONLY | os.O_DIRECTORY
        if above is None:
            return open_folder(self.root, raw.split(b"/") if raw else (), flags)
        return os.open(raw.rpartition(b"/")[2], flags | os.O_NOFOLLOW, dir_fd=above)

    def unread(self, path: str, exc: OSError) -> bool:
        """Leave out a folder that cannot be read; the source itself must be."""
        if not path:
            raise exc
        self.leave(path, f"cannot be read: {exc.strerror}")
        return False

    def inside(
        self,
        path: str,
        raw: bytes,
        rules: IgnoreRules | None,
        base: str,
        depth: int,
        descriptor: int | None,
        *,
        shut: bool,
    ) -> bool:
        """Walk over what lies in a folder; see `folder`."""
        try:
            with os.scandir(os.path.join(self.root, raw) if descriptor is None else descriptor) as entries:
                listed = self.first(entries, path)
                states = [_state_of(entry) for entry in listed]
        except OSError as exc:
            return self.unread(path, exc)
        if not listed and path:
            self.leave(path, "an empty folder")
            return False
        raw_names = [os.fsencode(entry.name) for entry in listed]
        names = set(raw_names)
        if b"pyvenv.cfg" in names and path:
            self.leave(path, "a virtual environment")
            return False
        prefix = f"{path}/" if path else ""
        # Rules speak of the bytes of a name, whatever it is shown as.
        named = os.fsdecode(raw) + "/" if raw else ""
        inside = base + named
        # Asked for by its name, whatever the listing says: the disk may have it as `.GITIGNORE`.
        text, more = self.rules_text(raw, descriptor)
        # That of the repository around the source is among the rules above.
        exclude, more_excluded = exclude_of(self.place(raw)) if path and b".git" in names else ("", False)
        what = ".gitignore" if more else ".git/info/exclude"
        note = (
            f"has a {what} that is a link or of more than a megabyte, and not followed whole"
            if more or more_excluded
            else ""
        )
        for each in filter(None, (exclude, text)):
            rules = IgnoreRules(inside, each, rules, self.patterns_left)
            self.patterns_left -= rules.added
            if rules.is_cut:
                note = "has a .gitignore of more patterns, or more with wildcards, than are followed"
        if note:
            self.result.notes[path or "."] = f"{note}: {_TRACKED_ALONE}"
            shut = True
        anything = False
        files = []
        taken: set[str] = set()
        holds_tree = not path and self.exclude == "."
        for raw_name, state in zip(raw_names, states, strict=True):
            name = path_text(raw_name)
            # Also by another name, where the disk has several for one folder.
            if name.casefold() in _OWN or (
                not isinstance(state, OSError) and state.st_ino and (state.st_dev, state.st_ino) in self.own
            ):
                continue
            inner, inner_raw = prefix + name, _join(raw, raw_name)
            if inner == self.exclude or (holds_tree and _OWN_FILES.fullmatch(name)):
                continue
            if len(inner) > MAX_PATH:
                self.leave(f"{inner[:MAX_PATH]}…", f"a path of more than {MAX_PATH:,} characters")
                continue
            if inner.startswith(OF_MEMORY):
                self.leave(inner, "its name is one of what is remembered")
                continue
            if name in taken:
                self.leave(inner + " (2)", "another name here is written in the same way")
                continue
            taken.add(name)
            if isinstance(state, OSError):
                self.leave(inner, f"cannot be read: {state.strerror}")
                continue
            is_folder = stat.S_ISDIR(state.st_mode)
            in_rules = os.fsdecode(raw_name)
            ignored = shut or (rules is not None and rules.ignores(inside + in_rules, folder=is_folder))
            if self.settings is not None and self.settings.ignores(named + in_rules, folder=is_folder):
                self.leave(inner, "ignored by the settings of the folder")
            elif ignored and not self.is_tracked(inner_raw, folder=is_folder):
                self.leave(inner, "ignored by .gitignore")
            elif is_folder:
                if is_tool_folder(name):
                    self.leave(inner, "made by tools")
                elif depth >= MAX_DEPTH:
                    self.leave(inner, f"more than {MAX_DEPTH} folders deep")
                else:
                    self.result.folders[inner] = None
                    if self.folder(inner, inner_raw, rules, base, depth + 1, shut=ignored, above=descriptor):
                        anything = True
                    else:
                        del self.result.folders[inner]
            elif self.wanted(inner, name, path, state, inner_raw):
                odd = None if inner.encode() == inner_raw else inner_raw
                files.append(ScannedFile(inner, state.st_size, mtime_of(state), state.st_ctime_ns, odd))
        for file in files:
            self.result.files[file.path] = file
        if path and not anything and not files:
            self.result.omissions.setdefault(path, "nothing in it can be read")
        return anything or bool(files)

    def first(self, entries: Iterable[os.DirEntry[Any]], path: str) -> list[os.DirEntry[Any]]:
        """Return the entries of a folder by name, at most `MAX_ENTRIES`, and say so where there are more."""
        count = 0

        def counted() -> Iterator[os.DirEntry[Any]]:
            nonlocal count
            for entry in entries:
                count += 1
                self.seen += 1
                if self.progress is not None and self.seen % _REPORT_EACH == 0:
                    self.progress(self.seen, 0, path)
                yield entry

        listed = list(islice(counting := counted(), MAX_ENTRIES))
        rest = next(counting, None)
        if rest is not None:  # a heap keeps the memory flat, whatever is to come
            listed = heapq.nsmallest(MAX_ENTRIES, chain(listed, [rest], counting), key=_name)
            note = f"holds {count:,} files and folders: the first {MAX_ENTRIES:,} by name are in the tree"
            self.result.notes[path or "."] = note
            self.leave(f"{path}/…" if path else "…", note)
            return listed
        return sorted(listed, key=_name)

    def is_tracked(self, raw: bytes, *, folder: bool) -> bool:
        """Whether git tracks a file, or anything in a folder; its index is read when this is first asked."""
        if self.tracked is None:
            self.tracked = Tracked(Path(os.fsdecode(self.root)), self.base)
        return self.tracked.has(raw, folder=folder)

    def rules_text(self, raw: bytes, descriptor: int | None) -> tuple[str, bool]:
        inner = os.path.join(raw, b".gitignore")
        try:
            # From the open folder: most have none, and a whole path takes long to make and to walk.
            name = os.path.join(self.root, inner) if descriptor is None else b".gitignore"
            os.stat(name, dir_fd=descriptor, follow_symlinks=False)
            return rules_text(Path(os.fsdecode(self.root)), inner)
        except (OSError, UserError):
            return "", False

    def wanted(self, path: str, name: str, folder: str, state: os.stat_result, raw: bytes) -> bool:
        """Whether what is no folder is a file that the tree can have."""
        mode = state.st_mode
        if stat.S_ISLNK(mode):
            self.leave(path, self.link_reason(raw))
        elif not stat.S_ISREG(mode):
            kind = "a pipe" if stat.S_ISFIFO(mode) else "a socket" if stat.S_ISSOCK(mode) else "a device"
            self.leave(path, f"{kind}, not a file")
        elif not self.include_secrets and is_secret(name, (self.top + folder).rstrip("/")):
            self.leave(path, "may hold secrets")
        else:
            return True
        return False

    def link_reason(self, raw: bytes) -> str:
        try:
            target = os.path.realpath(os.path.join(self.root, raw))
        except OSError:
            return "a symbolic link"
        base = os.path.realpath(self.root)
        if target != base and not target.startswith(base + os.sep.encode()):
            return "a symbolic link that leads out of the source"
        if not os.path.exists(target):
            return "a symbolic link that leads nowhere"
        return f"a symbolic link to {path_text(os.path.relpath(target, base))}"

    def leave(self, path: str, reason: str) -> None:
        self.result.omissions[path] = reason


def _name(entry: os.DirEntry[Any]) -> bytes:
    return os.fsencode(entry.name)


def _state_of(entry: os.DirEntry[Any]) -> os.stat_result | OSError:
    try:
        return entry.stat(follow_symlinks=False)
    except OSError as exc:
        return exc


def _join(raw: bytes, name: bytes) -> bytes:
    return raw + b"/" + name if raw else name
