"""Blackboards of an archive, their items and images, into a tree."""

from __future__ import annotations

import json
import os
import re
import tempfile
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

from metatree._util.private import private_folder
from metatree._util.secret_text import redacted
from metatree.notes.archive._report import MergeConflict
from metatree.notes.archive._rows import Merge, scalar, text
from metatree.storage.trust import IMPORTED_RUN

_ITEM = (
    *("section", "data", "tokens", "version", "at", "agent", "run", "step", "round", "sources", "audience"),
    *("pinned", "image", "base", "synced"),
)

ASKED: Final = re.compile(r"(?P<run>.*):q\d+", re.DOTALL)
"""Id of the item that a run asks a person with."""


class BoardMerge(Merge):
    """Merges boards by name, items by id: the later version stays."""

    def all(self, *, permissions: bool) -> None:
        """Merge all of them; what answers a question of a run of one's own, only with `permissions`."""
        _ = self.store.images_folder  # raises here, or no archive would be sound
        self._boards(permissions)
        self.each("images", self._image)

    def _boards(self, permissions: bool) -> None:
        numbers: dict[str, int] = {}
        for place, row in enumerate(self.archive.rows("boards"), start=1):
            with self.sound("boards", place):
                name = text(row["name"])
                number_row = self.store.row("SELECT number FROM board WHERE name = ?", (name,))
                if number_row is None:
                    inserted = self.store.rows(
                        "INSERT INTO board(name, parent, made_at) VALUES (?, ?, ?) RETURNING number",
                        (name, numbers.get(row["parent"]), float(row["made_at"])),
                    )
                    number_row = inserted[0]
                numbers[name] = int(number_row[0])
        for place, row in enumerate(self.archive.rows("items"), start=1):
            with self.sound("items", place):
                if permissions or self._answers_nobody(row):
                    self._item(numbers[row["board"]], row)

    def _answers_nobody(self, row: dict[str, Any]) -> bool:
        """Whether no run of this user would take an item for a person's answer, now or when it will have begun."""
        asks = ASKED.fullmatch(text(row["id"]))
        if asks is None and row["section"] != "questions":
            return True
        return asks is not None and self.layer.has_fact(IMPORTED_RUN + asks["run"])

    def _item(self, board: int, row: dict[str, Any]) -> None:
        names = _ITEM
        json.loads(text(row["data"]))
        values = {name: scalar(row[name]) for name in names}
        stored = self.store.row(
            "SELECT number, version, data, at, removed FROM item WHERE board = ? AND id = ?",
            (board, text(row["id"])),
        )
        following = "(SELECT coalesce(max(changed), 0) + 1 FROM item WHERE board = ?)"
        if stored is None:
            self.store.execute(
                f"INSERT INTO item(board, id, removed, {', '.join(names)}, changed)"
                f" VALUES (?, ?, 0, {', '.join('?' * len(names))}, {following})",
                (board, row["id"], *values.values(), board),
            )
            self.report.count("items", new=True)
            return
        number, version, data, at, removed = stored
        if at == values["at"] and int(values["version"]) > version and not removed:
            sets = ", ".join(f"{name} = ?" for name in names)
            self.store.execute(
                f"UPDATE item SET {sets}, changed = {following} WHERE number = ?",
                (*values.values(), board, number),
            )
        elif (
            values["data"] not in (data, redacted(data)[0])
            and not removed
            and (at != values["at"] or version == values["version"])
        ):
            self.report.conflicts.append(MergeConflict("item", row["id"], "the one that the tree has"))
        self.report.count("items", new=False)

    def _image(self, row: dict[str, Any]) -> None:
        names = ("size", "width", "height", "look", "thumbnail", "thumbnail_width", "thumbnail_height")
        name = text(row["name"])
        content = self.archive.image(name)
        folder = self.store.images_folder
        if content is None or folder is None:
            return
        if blake2b(content, digest_size=16).hexdigest() != name.partition(".")[0]:
            raise ValueError(f"the image {name} is not what its name says")
        _put(folder, name, content)
        small = self.archive.image(row["thumbnail"])
        if small is not None:
            _put(folder, row["thumbnail"], small)
        values = {key: scalar(row[key]) for key in names}
        if small is None:
            values |= {"thumbnail": None, "thumbnail_width": None, "thumbnail_height": None}
        new = self.store.execute(
            f"INSERT OR IGNORE INTO image(name, {', '.join(names)}) VALUES (?{', ?' * len(names)})",
            (name, *values.values()),
        )
        self.report.count("images", bool(new))


def _put(folder: Path, name: str, content: bytes) -> None:
    """Write a file whole; one that is there is the same, since its name is its hash, unless it is a link."""
    if (folder / name).exists() and not (folder / name).is_symlink():
        return
    private_folder(folder)
    number, part = tempfile.mkstemp(prefix=".", suffix=".part", dir=folder)
    with os.fdopen(number, "wb") as out:
        out.write(content)
    Path(part).replace(folder / name)
