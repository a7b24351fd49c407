"""The keys of a document as it is written, where marks stand beside them that a reader takes away.

Behind a letter a key is known by nobody, and readers of many formats put one there: the name of an image, the word
before a comment or an empty element. So the marks are looked at before they go, and what is a key there is masked
wherever it comes up in the text. Lost: to have each reader keep all apart that stands apart, which libraries do not.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from typing import Final

from metatree._util.secret_text import shaped_keys
from metatree.trees.text import decode

_MARKED: Final = (".xml", ".xhtml", ".html", ".htm", ".rels", ".opf", ".ncx")
_MOST_BYTES: Final = 40_000_000
"""Of an archive; what comes behind them is known by the text alone."""
_MOST_KEYS: Final = 2_000
_PIECE_CHARS: Final = 1_000_000
_OVERLAP_CHARS: Final = 10_000


def written_keys(kind: str, data: bytes) -> frozenset[str]:
    """Return the keys that have a form of their own in a document, each once: those of the first 40 MB of markup.

    Args:
        kind: its format; a PDF has no text that can be looked at so.
        data: the file.
    """
    keys = set[str]()
    for text in _written(kind, data):
        for at in range(0, len(text), _PIECE_CHARS):
            keys |= shaped_keys(text[at : at + _PIECE_CHARS + _OVERLAP_CHARS])
            if len(keys) >= _MOST_KEYS:
                return frozenset(keys)
    return frozenset(keys)


def _written(kind: str, data: bytes) -> Iterator[str]:
    if kind == "pdf":
        return
    if not data.startswith(b"PK"):
        yield decode(data)[0]
        return
    left = _MOST_BYTES
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for info in archive.infolist():
            if info.filename.lower().endswith(_MARKED) and info.file_size <= left:
                left -= info.file_size
                yield decode(archive.read(info))[0]
