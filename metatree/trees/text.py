"""Bytes of a text file as text and lines, the same for whoever builds nodes and whoever reads them."""

from __future__ import annotations

import codecs
import io
import re
import tokenize
from contextlib import suppress

from metatree.node import Source

_HEAD = 8192
"""How much of a file decides whether it is binary."""

_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_WIDE = {"utf-16", "utf-32"}
_CHARACTERS = re.compile(
    r"ascii|utf-8(?:-sig)?|iso8859-\d+|cp(?:125\d|437|720|737|775|85\d|86[0-35-9]|874|932|949|950|1006|1125)"
    r"|koi8-[rtu]|mac-[a-z]+|gb2312|gbk|gb18030|big5(?:hkscs)?|shift_jis|euc_(?:jp|kr)|kz1048|ptcp154|tis-620"
)
"""Encodings in which ASCII is ASCII. Others of Python turn bytes into another text (`punycode`, in quadratic time)."""


def is_binary(data: bytes) -> bool:
    """Whether bytes are no text: a NUL near the start and no byte order mark that would explain it."""
    return b"\0" in data[:_HEAD] and not any(data.startswith(bom) for bom, _ in _BOMS)


def decode(data: bytes, *, python: bool = False) -> tuple[str, str]:
    """Return the text of a file and the name of its encoding; every sequence of bytes has one.

    A byte order mark decides, then the declaration in Python source (PEP 263) where ASCII is ASCII in what it
    names, then UTF-8, then Latin-1. Bytes that are no character in UTF-16 or UTF-32 become U+FFFD, as where the last
    one is cut off.
    Ends of lines become `\\n`.

    Example:
        >>> decode("día".encode("latin-1"))
        ('día', 'latin-1')
    """
    candidates = [encoding for bom, encoding in _BOMS if data.startswith(bom)][:1]
    if python and not candidates and b"coding" in _two_lines(data):
        with suppress(SyntaxError):
            declared = tokenize.detect_encoding(io.BytesIO(data).readline)[0]
            candidates += [declared] if _CHARACTERS.fullmatch(codecs.lookup(declared).name) else []
    for encoding in (*candidates, "utf-8"):
        try:
            return as_text(data, encoding), encoding
        except (UnicodeError, LookupError):
            continue
    return as_text(data, "latin-1"), "latin-1"


def _two_lines(data: bytes) -> bytes:
    """Return the lines that may declare an encoding."""
    first = data.find(b"\n")
    second = data.find(b"\n", first + 1) if first >= 0 else -1
    return data[:second] if second >= 0 else data


def as_text(data: bytes, encoding: str) -> str:
    """Return bytes as text in an encoding, with every end of line as `\\n`."""
    text = data.decode(encoding, "replace" if encoding in _WIDE else "strict")
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def encodable(text: str) -> str:
    """Return a text with `?` for each lone surrogate, which no store, tokenizer or wire takes.

    Example:
        >>> encodable("half \\ud83d of it")
        'half ? of it'
    """
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def lines_of(text: str) -> list[str]:
    """Return the lines of a text without their ends; only `\\n` ends a line, as for Python and for editors.

    Example:
        >>> lines_of("a\\n\\fb\\n")
        ['a', '\\x0cb']
    """
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    return lines


def cut(text: str, source: Source) -> str:
    """Return the lines of a text that a source names; all of it when it names none."""
    if source.start_line is None or source.end_line is None:
        return text
    return cut_lines(lines_of(text), source)


def cut_lines(lines: list[str], source: Source) -> str:
    """Return those lines that a source names."""
    ranges = source.parts or ((source.start_line or 1, source.end_line or len(lines)),)
    return "\n".join("\n".join(lines[first - 1 : last]) for first, last in ranges)


def line_in_file(source: Source, line: int) -> int:
    """Return which line of its file a line of the text is that `cut` makes of a source; both count from 1."""
    if not source.parts:
        return (source.start_line or 1) + line - 1
    for first, last in source.parts:
        if line <= last - first + 1:
            return first + line - 1
        line -= last - first + 1
    return source.parts[-1][1]
