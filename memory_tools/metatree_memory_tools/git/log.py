"""Reading the history of a folder from git into the index store of its tree, and what is new of it later.

Only what led to the commit that is checked out is read. Merges are passed over: what they bring together was done by
the commits that they merge.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from metatree._util.secret_text import SHAPES_VERSION, masked
from metatree.storage.store import Store
from metatree.trees.history import state_key
from metatree.trees.layer import Layer
from metatree.trees.source_types import Progress
from metatree_memory_tools.file_names import path_text
from metatree_memory_tools.git._command import GitFailed, Objects, objects_of, repository_of
from metatree_memory_tools.git._dates import seconds_of
from metatree_memory_tools.git._history_writer import HistoryWriter, ReadCommit, clear_history
from metatree_memory_tools.git.place import Place
from metatree_memory_tools.text.descriptions import word_end

MAX_COMMITS = 100_000
"""Older commits are left out."""

MAX_BODY_CHARS = 20_000
_BATCH = 2_000
_BATCH_FILES = 100_000
_MOST_FILES = 100_000
"""Of a commit that changes more files, as many are kept."""
_LONGEST_PATH = 1_000
"""A longer one is of no file of a tree, and trees in trees make it of a few bytes."""
_MOST_CHANGES = 5_000_000
_MOST_CHANGED_CHARS = 300_000_000
_MOST_NAMES = 500_000
"""That its files ever had; each takes some 750 bytes while a history is read."""
_SHALLOW_BYTES = 10_000_000
_FIELDS = 7
_HASH = re.compile(r"[0-9a-f]{40,64}")


def read_history(
    root: Path, store: Store, *, source: str = "", limit: int = MAX_COMMITS, progress: Progress | None = None
) -> str:
    """Bring the history of a folder up to date and return what is missing and why, an empty text when nothing is.

    Args:
        root: a folder in the work tree of a git repository; only commits that touch files in it are read.
        store: the index store of its tree.
        source: the mount of the source.
        limit: at most so many commits, the newest.
        progress: called with the number of commits read, their number or 0 when that is not known, and a text.

    Never raises for what git says: that becomes the note.
    """
    try:
        return _LogReader(root, store, source, limit, progress).run()
    except GitFailed as exc:
        note = f"the history was not read: {exc}"
        with store.transaction():
            state = _state(store, source) or _NOTHING
            _keep(store, source, {**state, "note": note, "failed": True})
        return note


def history_stale(root: Path, store: Store, *, source: str = "", limit: int = MAX_COMMITS) -> bool:
    """Whether another commit is checked out than was read; False when git cannot tell."""
    state = _state(store, source)
    if state is None:
        return True
    try:
        repository = repository_of(root)
    except GitFailed:
        return False
    head, shallow = repository.head, _shallow(repository.place)
    return bool(
        state["failed"]
        or (head, shallow, limit, SHAPES_VERSION)
        != (state["head"], state["shallow"], state["limit"], state["shapes"])
    )


def drop_history(store: Store, *, source: str = "") -> None:
    """Take the history of a source out of the store."""
    if _state(store, source) is not None:
        with store.transaction():
            clear_history(store, source)


_NOTHING: dict[str, Any] = {
    "head": "",
    "shallow": "",
    "shapes": "",
    "limit": 0,
    "commits": 0,
    "note": "",
    "epoch": 0,
    "prefix": "",
    "failed": False,
    "reading": False,
}


def _state(store: Store, source: str) -> dict[str, Any] | None:
    state = Layer(store).fact(state_key(source))
    return None if state is None else {**_NOTHING, **state}


def _keep(store: Store, source: str, state: dict[str, Any]) -> None:
    Layer(store).set_fact(state_key(source), state)


def _shallow(place: Place) -> str:
    """Return the commits at which a shallow clone ends."""
    file = place.shared / "shallow"
    found: list[str] = []
    with suppress(OSError, ValueError):
        if file.is_file() and file.stat().st_size <= _SHALLOW_BYTES:
            found = file.read_text("ascii").split()
    return " ".join(sorted(filter(_HASH.fullmatch, found)))


class _LogReader:
    def __init__(self, root: Path, store: Store, source: str, limit: int, progress: Progress | None) -> None:
        self.root = root
        self.store = store
        self.source = source
        self.limit = max(1, limit)
        self.progress = progress
        self.state = _state(store, source) or dict(_NOTHING)

    def run(self) -> str:
        repository = repository_of(self.root)
        if repository.place.bare:
            raise GitFailed(
                f"{str(self.root)!r} is a bare repository, without files: clone it and build the clone"
            )
        prefix, head, shallow = repository.prefix, repository.head, _shallow(repository.place)
        now = {
            "head": head,
            "shallow": shallow,
            "limit": self.limit,
            "prefix": prefix,
            "shapes": SHAPES_VERSION,
        }
        before = self.state
        if before["reading"] or any(before[name] != now[name] for name in now if name != "head"):
            before = {**_NOTHING, "epoch": before["epoch"] + bool(before["head"])}
            with self.store.transaction():
                clear_history(self.store, self.source)
        if head and before["head"] != head:
            known = before["head"] if _HASH.fullmatch(before["head"]) else ""
            with objects_of(self.root) as objects:
                if known and not _is_ancestor(objects, known, head):
                    known = self._go_back(objects, known, head)
                    before = {**before, "epoch": before["epoch"] + 1}
                self._read(objects, head, known, shallow, {**before, **now})
        elif not head:
            with self.store.transaction():
                clear_history(self.store, self.source)
        count = self._count()
        note = self._note(head, shallow, count)
        with self.store.transaction():
            _keep(
                self.store,
                self.source,
                {**_NOTHING, **now, "commits": count, "note": note, "epoch": before["epoch"]},
            )
        return note

    def _count(self) -> int:
        return int(
            self.store.rows("SELECT count(*) FROM history_commit WHERE source = ?", (self.source,))[0][0]
        )

    def _note(self, head: str, shallow: str, count: int) -> str:
        if not head:
            return "nothing has been committed in this repository yet"
        if not count:
            return "no commit of the repository around it touches a file of this folder"
        notes = []
        if shallow:
            notes.append("the clone is shallow, so the history ends early (`git fetch --unshallow`)")
        if count >= self.limit:
            notes.append(f"only the newest {self.limit:,} commits were read")
        return "; ".join(notes)

    def _go_back(self, objects: Objects, known: str, head: str) -> str:
        """Forget what does not lead to `head` and return the commit that reading goes on from, empty for the start."""
        if self._count() < self.limit:
            try:
                base = objects.text("merge-base", known, head)
                dropped = objects.text("rev-list", known, f"^{head}").split()
            except GitFailed:
                base = ""
            # Names of files are followed forwards alone, so renames that are taken back mean reading anew.
            if base and not self._renames(dropped):
                with self.store.transaction():
                    HistoryWriter(self.store, self.source).forget(dropped)
                return known
        with self.store.transaction():
            clear_history(self.store, self.source)
        return ""

    def _renames(self, hashes: list[str]) -> bool:
        sql = (
            "SELECT 1 FROM history_commit JOIN history_touch USING (number) WHERE source = ? AND status <> 'M'"
            " AND hash IN (SELECT value FROM json_each(?)) LIMIT 1"
        )
        return self.store.row(sql, (self.source, json.dumps(hashes))) is not None

    def _read(self, objects: Objects, head: str, known: str, shallow: str, state: dict[str, Any]) -> None:
        # A reading that is killed half-way is seen by this mark, and the next one begins anew.
        with self.store.transaction():
            _keep(self.store, self.source, {**state, "head": known, "reading": True})
            writer = HistoryWriter(self.store, self.source)
        try:
            self._read_into(writer, objects, head, known, shallow, renames=True)
        except GitFailed as exc:
            if "unable to read" not in str(exc):
                raise
            # A clone without contents cannot compare files, and must not fetch them.
            with self.store.transaction():
                writer.clear()
            self._read_into(writer, objects, head, "", shallow, renames=False)

    def _read_into(
        self, writer: HistoryWriter, objects: Objects, head: str, known: str, shallow: str, *, renames: bool
    ) -> None:
        mark = secrets.token_hex(16)
        arguments = [
            *("log", "-z", "--name-status", "--no-merges", "--reverse", "--date-order", "--encoding=UTF-8"),
            # Without it git passes over lines of development that were merged and left no trace.
            "--full-history",
            *objects.relative,
            *(f"--max-count={self.limit}", "--find-renames" if renames else "--no-renames"),
            f"--format=tformat:{mark}%x00%H%x00%P%x00%at%x00%an%x00%s%x00%b%x00",
            head,
            *([f"^{known}"] if known else []),
            *objects.below,
        ]
        ends = set(shallow.split())
        batch: list[ReadCommit] = []
        done = files = changes = chars = 0
        with objects.stream(*arguments) as pieces:
            for commit in _commits(pieces, mark.encode(), ends):
                batch.append(commit)
                files += len(commit.touched)
                changes += len(commit.touched)
                chars += sum(len(path) + len(old or "") for _, path, old in commit.touched)
                if changes > _MOST_CHANGES or chars > _MOST_CHANGED_CHARS:
                    raise GitFailed(
                        f"its commits change files more than {_MOST_CHANGES:,} times, or of long names"
                    )
                if len(batch) >= _BATCH or files >= _BATCH_FILES:
                    done, files = self._write(writer, batch, done), 0
            self._write(writer, batch, done)
        with self.store.transaction():
            writer.finish()

    def _write(self, writer: HistoryWriter, batch: list[ReadCommit], done: int) -> int:
        with self.store.transaction():
            done += writer.add(batch)
        batch.clear()
        if writer.names > _MOST_NAMES:
            raise GitFailed(f"its files had more than {_MOST_NAMES:,} names")
        if self.progress is not None:
            self.progress(done, done, "commits")
        return done


def _is_ancestor(objects: Objects, known: str, head: str) -> bool:
    try:
        objects.text("merge-base", "--is-ancestor", known, head)
    except GitFailed:
        return False
    return True


def _commits(pieces: Iterator[bytes], mark: bytes, ends: set[str]) -> Iterator[ReadCommit]:
    """Yield the commits in the output of `git log`: fields, then status and one or two paths of each file."""
    fields: list[str] = []
    touched: list[tuple[str, str, str | None]] = []
    piece = next(pieces, None)
    while piece is not None:
        if piece == mark:
            fields = [next(pieces, b"").decode("utf-8", "replace") for _ in range(_FIELDS - 1)]
            touched = []
            piece = next(pieces, None)
        while piece is not None and piece != mark:
            status = piece.lstrip(b"\n")[:1].decode("ascii", "replace")
            change: tuple[str, str, str | None] | None = None
            if status in ("R", "C"):
                old, new = path_text(next(pieces, b"")), path_text(next(pieces, b""))
                change = ("R", new, old) if status == "R" else ("A", new, None)
            elif status:
                change = (status, path_text(next(pieces, b"")), None)
            is_long = change is not None and max(len(change[1]), len(change[2] or "")) > _LONGEST_PATH
            if change is not None and not is_long and len(touched) < _MOST_FILES:
                touched.append(change)
            piece = next(pieces, None)
        hash_, parents, at, author, subject, body = fields
        # At the end of a shallow clone everything looks as if it had been added there.
        known = [] if hash_ in ends else touched
        body = body.strip()
        # Masked before it is cut: a key of which half is left is not known.
        subject, text = masked_message(subject, body[: word_end(body, 2 * MAX_BODY_CHARS)])
        author = masked(author)[0]
        if len(body) > MAX_BODY_CHARS:
            text = text[:MAX_BODY_CHARS] + " …"
        yield ReadCommit(hash_, parents, seconds_of(at), author, subject, text, known)


def masked_message(subject: str, body: str) -> tuple[str, str]:
    """Return both without what looks like secrets, which may go on behind the blank line between them, as keys do."""
    text = masked(f"{subject}\n\n{body}")[0]  # each letter stays in its place
    return text[: len(subject)], text[len(subject) + 2 :]
