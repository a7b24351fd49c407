"""The keys of a document as it is written, where marks stand beside them that a reader takes away.

Behind a letter a key is known by nobody, and readers of many formats put one there: the name of an image, the word
before a comment or an empty element. So the marks are looked at before they go, and what is a key there is masked
wherever it comes up in the text. All parts of an archive are looked through, since any name and any beginning may be
that of one which a reader takes. Lost: to have each reader keep all apart that stands apart, which libraries do not;
a bound on what is looked through, behind which the rest was shown.
"""

from __future__ import annotations

import codecs
import io
import zipfile
import zlib
from collections.abc import Iterator
from typing import IO, Final

from metatree._util.secret_text import shaped_keys
from metatree.errors import UserError
from metatree.trees.text import decode
from metatree_memory_tools.documents._html import decoded_page

_MOST_BYTES: Final = 250_000_000
"""Of an archive, unpacked; what unpacks to more readers refuse before, but for one part of it."""
_MOST_KEYS: Final = 2_000
_ARCHIVES: Final = frozenset({"docx", "epub", "odt", "pptx", "xlsx"})
_PIECE: Final = 1_000_000
_OVERLAP_CHARS: Final = 100_000
_DAMAGED: Final = (zipfile.BadZipFile, zlib.error, OSError, EOFError)
_CANNOT_BE_READ: Final = (NotImplementedError, RuntimeError)
"""A part is encrypted, or packed in an unknown way."""


def written_keys(kind: str, data: bytes) -> frozenset[str]:
    """Return the keys that have a form of their own in a document, each once.

    Args:
        kind: its format; a PDF has no text that can be looked at so.
        data: the file.

    Raises:
        UserError: it has too many, or too much to look through; the message says so in a few words.
    """
    keys = set[str]()
    for text in _written(kind, data):
        keys |= shaped_keys(text)
        if len(keys) > _MOST_KEYS:
            raise UserError(f"left out: it holds more than {_MOST_KEYS:,} keys or passwords")
    return frozenset(keys)


def _written(kind: str, data: bytes) -> Iterator[str]:
    if kind == "pdf":
        return
    if kind not in _ARCHIVES:
        text = decoded_page(data) if kind == "html" else decode(data)[0]
        for at in range(0, len(text), _PIECE):
            yield text[at : at + _PIECE + _OVERLAP_CHARS]
        return
    if not zipfile.is_zipfile(io.BytesIO(data)):
        return
    left = _MOST_BYTES
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for info in archive.infolist():
            if (left := left - info.file_size) < 0:
                raise UserError(
                    f"refused: it unpacks to more than {_MOST_BYTES / 1e6:g} MB, as a zip bomb does"
                )
            try:
                with archive.open(info) as part:
                    yield from _pieces(part)
            except _CANNOT_BE_READ:  # by no reader either
                continue
            except _DAMAGED as exc:  # a reader may have some of it that was not looked through
                raise UserError("damaged: a part of it cannot be unpacked") from exc


def _pieces(part: IO[bytes]) -> Iterator[str]:
    """Yield the text of a part, in pieces that overlap: a key is in one of them as a whole.

    Of UTF-16 and UTF-32, in which each sign of a key has a zero or three beside it, these are taken out.
    """
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    before = ""
    while piece := part.read(_PIECE):
        text = before + decoder.decode(piece).replace("\0", "")
        yield text
        before = text[-_OVERLAP_CHARS:]
