"""The one shape that all exports of conversations are brought into, and the files that they are read from."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from typing import Any, BinaryIO, Protocol

HEAD = 8192
"""So many bytes of a file tell its format."""

NOBODY = "unknown"
"""Who speaks where an export does not say it."""

_HIGH = re.compile(rb"[\x80-\xff]+")
_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
_LINE_BYTES = 1 << 20
_MOST_LINES = 3_000_000
"""Of a file: empty ones take an archive next to nothing, and a format some microseconds each."""
_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


class CutOff(ValueError):
    """An export ends before it is complete, or is out of form from some place on; what came before it holds."""


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """What somebody wrote or said in a conversation."""

    id: str
    """What the export calls it; empty when it has no name, and is told from others by time, author and text."""
    author: str
    text: str
    at: str = ""
    """When, in ISO 8601; empty when it is not known."""
    reply: str = ""
    """The id of the message that it answers."""
    chat: str = ""
    """What the export calls the conversation; empty for the only one of a file."""
    title: str = ""
    """What people call the conversation."""


@dataclass
class ExportFile:
    """One file of an export, on the disk or in an archive."""

    path: str
    """Its name in the export, with `/`."""
    open: Callable[[], BinaryIO]
    beside: Callable[[str], ExportFile | None] = field(default=lambda path: None)
    """Another file of the same export, by its path."""
    shared: dict[str, object] = field(default_factory=dict)
    """What a format keeps in mind for the other files of the same export."""
    archive: str = ""
    """The path of the archive that it is in; empty on the disk."""

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]

    @cached_property
    def encoding(self) -> str:
        """The encoding of the text, by its first bytes."""
        return encoding_of(self._first)

    @cached_property
    def head(self) -> bytes:
        """The first bytes, without a mark of the encoding; of UTF-16 as UTF-8."""
        if self.encoding == "utf-8":
            return self._first.removeprefix(b"\xef\xbb\xbf")
        return self._first.decode(self.encoding, "replace").lstrip("\ufeff").encode("utf-8", "replace")

    @property
    def packed(self) -> bool:
        """Whether it begins as a zip archive does."""
        return self._first.startswith(b"PK")

    @cached_property
    def _first(self) -> bytes:
        with self.open() as stream:
            return stream.read(HEAD)

    def lines(self) -> Iterator[str]:
        """Yield the lines, without their ends, each in the encoding that it has; a longer one comes in pieces.

        Raises:
            CutOff: there are too many.
        """
        codec = self.encoding
        with self.open() as stream:
            if codec.startswith("utf-16"):
                import io

                for number, row in enumerate(io.TextIOWrapper(stream, codec, errors="replace")):
                    _count(number)
                    yield row.rstrip("\r\n").lstrip("\ufeff")
                return
            number = 0
            rest = b""
            while line := rest + stream.readline(_LINE_BYTES):
                rest = b""
                number += 1
                _count(number)
                if len(line) >= _LINE_BYTES and not line.endswith(b"\n"):
                    line, blank, rest = line.rpartition(b" ")  # no word is cut, which may be a key
                    line, rest = (line, rest) if blank else (rest, b"")
                yield text_of(line).rstrip("\r\n").lstrip("\ufeff")


def _count(lines: int) -> None:
    if lines > _MOST_LINES:
        raise CutOff(f"it has more than {_MOST_LINES:,} lines")


class Format(Protocol):
    """A format of exports. Its `messages` come as a stream, in the order of the file."""

    name: str
    """What people call it."""
    ordered: bool
    """Whether the order of its messages is that of the conversation, whatever their clocks say."""

    def recognises(self, file: ExportFile) -> bool:
        """Whether a file is of this format, by its beginning and, where that does not tell, its name."""
        ...

    def messages(self, file: ExportFile) -> Iterator[ChatMessage]:
        """Yield the messages of a file.

        Raises:
            CutOff: it ends, or is out of form, where more should come.
        """
        ...


def encoding_of(head: bytes) -> str:
    """Return the encoding of a text by its mark, or by the zeros of UTF-16."""
    for mark, codec in _MARKS:
        if head.startswith(mark):
            return codec
    if head[1::2].count(0) > len(head) // 4:
        return "utf-16-le"
    return "utf-16-be" if head[0::2].count(0) > len(head) // 4 else "utf-8"


def text_of(data: bytes) -> str:
    """Return bytes as a text: UTF-8, and what is none as Windows-1252, run by run, since programs mix both.

    Example:
        >>> text_of(b"caf\\xc3\\xa9 caf\\xe9")
        'café café'
    """
    try:
        return data.decode()
    except UnicodeDecodeError:
        return _HIGH.sub(_as_utf8, data).decode("utf-8", "replace")


def _as_utf8(run: re.Match[bytes]) -> bytes:
    try:
        run[0].decode()
    except UnicodeDecodeError:
        return run[0].decode("cp1252", "replace").encode()
    return run[0]


def key_of(name: str) -> str:
    """Return a name as a part of an id: as it is where that is short and plain, else a hash of it.

    Example:
        >>> key_of("1715939999.000200"), key_of("<a@example.org>")
        ('1715939999.000200', 'x54242dd68d4602ee')
    """
    return name if _KEY.fullmatch(name) else "x" + hashed(name)


def hashed(*parts: str) -> str:
    """Return 16 hexadecimal digits for some texts."""
    return blake2b("\0".join(parts).encode("utf-8", "replace"), digest_size=8).hexdigest()


def attached(names: list[str]) -> str:
    """Return a line that names attachments, empty for none.

    Example:
        >>> attached(["plan.pdf"])
        '[attached: plan.pdf]'
    """
    return f"[attached: {', '.join(names)}]" if names else ""


def joined(*texts: str) -> str:
    """Return texts that are not empty, one below the other."""
    return "\n".join(filter(None, (text.strip() for text in texts)))


def begins_key(text: str) -> bool:
    """Say whether a private key begins in a text: it stays as it is, since without one line nobody knows the others."""
    return "-----BEGIN " in text


def mappings(value: Any) -> list[Mapping[str, Any]]:
    """Return the objects in a list of an export; of what is no list, none."""
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []
