"""Texts of documents kept in the user's cache folder, so that each is taken out of its file once.

Not in the tree, which stays small and can be handed on.
"""

from __future__ import annotations

import contextlib
import json
import os
import zlib
from pathlib import Path

from metatree._util.links import real
from metatree._util.named_file import read_regular
from metatree._util.private import private_folder, write_whole
from metatree_memory_tools.documents._document_text import Extracted

MOST_BYTES = 300_000_000
"""When there is more, what was not used for longest goes."""


_MOST_PACKED = 20_000_000
_MOST_UNPACKED = 60_000_000
"""Bytes of one text; what is kept is bounded to fewer."""


class KeptTexts:
    """A folder with one compressed file for each text. A failure is a miss, whatever it is, and so is a link.

    Args:
        folder: made when something is kept, for this user alone: documents may be private.
        most_bytes: how large it may become.
    """

    def __init__(self, folder: Path, most_bytes: int = MOST_BYTES) -> None:
        self._folder = folder
        self._place = real(folder)
        self._most_bytes = most_bytes

    def get(self, key: str) -> Extracted | None:
        """Return what is kept under a key, None when there is nothing that can be read."""
        path = self._folder / key
        if path.is_symlink() or not self._is_there():
            return None
        try:
            unpacked = zlib.decompressobj()
            data = unpacked.decompress(read_regular(path, _MOST_PACKED), _MOST_UNPACKED)
            if not unpacked.eof:  # it is none of ours: a cache in a checkout
                return None
            result = Extracted.of_json(json.loads(data)).bounded()
            os.utime(path)
        except (OSError, ValueError, KeyError, TypeError, zlib.error, MemoryError):
            return None
        return result

    def put(self, key: str, text: Extracted) -> None:
        """Keep a text under a key of letters, digits, dots, hyphens and `+`."""
        if not self._is_there():
            return
        with contextlib.suppress(OSError, MemoryError):
            private_folder(self._folder)
            packed = zlib.compress(
                json.dumps(text.as_json(), ensure_ascii=False).encode("utf-8", "surrogatepass"), 1
            )
            write_whole(self._folder / key, packed, mode=0o600)
            self._make_room()

    def _is_there(self) -> bool:
        """Whether the folder is where it was: git, for example, may put a link in its place meanwhile."""
        return real(self._folder) == self._place

    def _make_room(self) -> None:
        with os.scandir(self._folder) as entries:
            states = [(entry.stat(follow_symlinks=False), entry.path) for entry in entries]
        files = sorted((state.st_mtime, state.st_size, path) for state, path in states)
        total = sum(size for _, size, _ in files)
        for _, size, path in files:
            if total <= self._most_bytes:
                return
            with contextlib.suppress(OSError):
                Path(path).unlink()
                total -= size
