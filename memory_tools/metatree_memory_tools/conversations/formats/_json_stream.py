"""JSON read as a stream: the values at chosen places of a document, one by one, in memory for one of them.

The standard library's decoder takes whole texts; here it is given one value after the other. Lost: ijson (3.6,
October 2026, BSD): one more thing to install for what people expect to work, and it ends at the first byte that is no
UTF-8).
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from metatree_memory_tools.conversations.formats.message import CutOff, encoding_of, text_of

Path = tuple[str, ...]
"""Where a value is: the names of members, `*` for an item of a list."""

_BLOCK = 1 << 18
_MOST_CHARS = 1 << 26
"""A longer value is not read."""
_MOST_PARTS = 3_000_000
"""Nor one of more lists, objects and commas: the shortest of them take 50 times as much when they are parsed."""
_MOST_VALUES = 3_000_000
"""No more values of a document are read: a bomb of short ones would take minutes."""
_NEAR_END = 64
_BLANK = " \t\r\n\ufeff"
_BEHIND = frozenset(" \t\r\n,]}")


def values(stream: BinaryIO, inside: Callable[[Path], bool]) -> Iterator[tuple[Path, Any]]:
    """Yield the values of a document with their places, in order; what they hold is not told apart any further.

    Args:
        inside: whether a list or an object at a place is gone into, and not given as a whole.

    Raises:
        CutOff: the document ends, or is no JSON, at some place; what comes before it was given.
    """
    yield from _Reader(stream, inside).value(())


class _Reader:
    def __init__(self, stream: BinaryIO, inside: Callable[[Path], bool]) -> None:
        self._stream = stream
        self._inside = inside
        self._text = ""
        self._at = 0
        self._held = b""
        self._decoder: codecs.IncrementalDecoder | None = None
        self._begun = False
        self._ended = False
        self._json = json.JSONDecoder(strict=False)
        self._seen = 0

    def value(self, path: Path) -> Iterator[tuple[Path, Any]]:
        opening = self._peek()
        if opening not in ("[", "{") or not self._inside(path):
            yield path, self._whole()
            return
        self._at += 1
        closing = "]" if opening == "[" else "}"
        while (char := self._peek()) != closing:
            if char == ",":
                self._at += 1
                continue
            name = "*"
            if opening == "{":
                name = str(self._whole())
                if self._peek() != ":":
                    raise CutOff("it is no JSON")
                self._at += 1
            yield from self.value((*path, name))
        self._at += 1

    def _peek(self) -> str:
        while True:
            while self._at < len(self._text):
                char = self._text[self._at]
                if char not in _BLANK:
                    return char
                self._at += 1
            if not self._more():
                raise CutOff("it ends in the middle")

    def _whole(self) -> Any:
        while True:
            try:
                value, end = self._json.raw_decode(self._text, self._at)
            except json.JSONDecodeError as exc:
                unended = exc.msg.startswith("Unterminated") or exc.pos >= len(self._text) - _NEAR_END
                if not unended:
                    raise CutOff("it is no JSON from some place on") from exc
                if not self._more():
                    raise CutOff("it ends in the middle") from exc
                continue
            except (ValueError, RecursionError) as exc:
                raise CutOff("it has a value that is no JSON, or nested too deeply") from exc
            if not isinstance(value, str | list | dict) and self._text[end : end + 1] not in _BEHIND:
                # A number that is cut in two is one, too: `1` of `1.5e3`.
                if not self._more():
                    raise CutOff(
                        "it is no JSON from some place on"
                        if end < len(self._text)
                        else "it ends in the middle"
                    )
                continue
            self._at = end
            self._seen += 1
            if self._seen > _MOST_VALUES:
                raise CutOff(f"it has more than {_MOST_VALUES:,} values")
            return value

    def _more(self) -> bool:
        """Read on; twice as much of a value each time, so that a long one is not parsed again and again."""
        if self._ended:
            return False
        kept = self._text[self._at :]
        if len(kept) > _MOST_CHARS:
            raise CutOff(f"it has a value of more than {_MOST_CHARS >> 20} million characters")
        data = self._stream.read(max(_BLOCK, len(kept)))
        self._ended = not data
        self._text, self._at = kept + self._decoded(data), 0
        if sum(map(self._text.count, "[{,")) > _MOST_PARTS:
            raise CutOff(f"it has a value of more than {_MOST_PARTS:,} parts")
        return bool(data) or len(self._text) > len(kept)

    def _decoded(self, data: bytes) -> str:
        if not self._begun:
            self._begun = True
            codec = encoding_of(data)
            if codec.startswith("utf-16"):
                self._decoder = codecs.getincrementaldecoder(codec)("replace")
        if self._decoder is not None:
            return self._decoder.decode(data, final=self._ended)
        data = self._held + data
        cut = 0 if self._ended else _begun(data)
        self._held = data[len(data) - cut :]
        return text_of(data[: len(data) - cut])


def _begun(data: bytes) -> int:
    """Return how many bytes at the end are the beginning of a character in UTF-8."""
    for back in range(1, min(4, len(data) + 1)):
        byte = data[-back]
        if byte >= 0xC0:
            return back if back < (2 if byte < 0xE0 else 3 if byte < 0xF0 else 4) else 0
        if byte < 0x80:
            break
    return 0
