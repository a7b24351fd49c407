"""Whether a PDF has a secret in what no reader of its pages gives: what it says of itself, notes, links, appearances.

Streams are unpacked where viewers unpack them by zlib; what is packed in another way, nobody here can know.
"""

from __future__ import annotations

import base64
import re
import time
import zlib
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final

from metatree._util.secret_text import secrets_in

_MOST_UNPACKED: Final = 20_000_000
_ESCAPE: Final = re.compile(rb"\\(?:([0-7]{1,3})|\r?\n|\r|(?=[^nrtbf()\\]))|<([^<>()]{16,40000})>")
"""PDF 32000-1, 7.3.4: parts of a literal string, which goes on behind a backslash, and hexadecimal strings."""
_NO_DIGITS: Final = re.compile(rb"[^0-9A-Fa-f]+")
_LANGUAGE: Final = re.compile(rb"\x1b[a-z]{2}(?:[A-Z]{2})?\x1b")
"""7.9.2.2: in which language the text behind it is."""
_LONG_STRING: Final = re.compile(rb"<[0-9A-Fa-f\s]{40000}")
_STREAM: Final = re.compile(rb">>\s*stream\r?\n")
_PACKED: Final = re.compile(rb"(?<!end)stream\s*[\x08\x18\x28\x38\x48\x58\x68\x78](?s:.)")
"""RFC 1950, 2.2: with which byte what zlib packs begins. Viewers do not look at its checksum."""
_PICTURE: Final = re.compile(rb"/Subtype\s*/Image\b[^()#%]*\Z")
_DRAWN: Final = re.compile(rb"[()#%]|/ObjStm|/BBox")
"""Texts, comments, names with escapes: by these, something else can look like a picture. What is drawn has a box."""
_HEX: Final = re.compile(rb"#([0-9A-Fa-f]{2})")
_FILTER: Final = re.compile(rb"/Filter(?![A-Za-z])\s*(\[[^\]]{0,200}\]|/[A-Za-z0-9.]+)?")
"""7.4: in which ways a stream is packed; one of a signature has a dot in its name."""
_AS_TEXT: Final = [b"ASCII85Decode"]
_BY_ZLIB: Final[tuple[list[bytes], ...]] = ([], [b"FlateDecode"])
_DIFFERENCES: Final = re.compile(rb"/Predictor\s*(?!1\b)")
"""7.4.4.4: bytes are differences of those before them, as in tables of places."""
_MOST_SIGNS: Final = 100_000
_PLACES: Final = re.compile(rb"/Type\s*/XRef\b")
_PIECE: Final = 4_096
_MOST_READ: Final = 20_000_000
_MOST_STREAMS: Final = 300_000
_MOST_S: Final = 10.0
_LOOKED_AT: Final = 1_024
"""Bytes before a stream among which a picture has said all that it is."""
_BLOCK: Final = 1_000_000
_OVERLAP: Final = 20_000
"""Bytes that are looked at together, and once more with those behind them: no key is longer."""
_WORDS: Final = re.compile(rb"[\0\t\n\r -~]{8,}")


def holds_secret(pdf: bytes) -> bool:
    """Whether something looks like a secret in what a PDF says of itself, and in its notes and links.

    Also where that cannot be known: of one that is encrypted, has more in it, or in one string, than is looked at, or
    takes too long.
    """
    if b"/Encrypt" in pdf:
        return True
    block, until = bytearray(), time.monotonic() + _MOST_S
    for part in chain(_parts(pdf), [b"\n" * _BLOCK]):
        if part is None:
            return True
        for start in range(0, len(part), _BLOCK):
            block += part[start : start + _BLOCK]
            if len(block) < _BLOCK:
                continue
            said = _ESCAPE.sub(_unescaped, block)
            if _LONG_STRING.search(block):
                return True
            texts = {
                bytes(block),
                *(_LANGUAGE.sub(b"", each.replace(b"\0", b"")) for each in (bytes(block), said)),
            }
            if any(time.monotonic() > until or secrets_in(each.decode("latin-1")) for each in texts):
                return True
            del block[:-_OVERLAP]
    return False


def _unescaped(escape: re.Match[bytes]) -> bytes:
    """Return what an octal escape or a string of hexadecimal digits stands for."""
    if escape[1]:
        return bytes([int(escape[1], 8) & 0xFF])
    if escape[2] is None:
        return b""
    digits = _NO_DIGITS.sub(b"", escape[2])
    return b"(" + bytes.fromhex((digits + b"0" * (len(digits) % 2)).decode()) + b")"


def _parts(pdf: bytes) -> Iterator[bytes | None]:
    """Yield what is not packed in a PDF, and what is packed by zlib, as its pages are: also what no reader counts.

    None where there is more than is unpacked, or something packed in another way. What begins as a stream may be a text
    that says so: the words in it are looked at, too, and it is unpacked up to its own end.
    """
    at, texts, size = 0, list[bytes](), 0
    while at < len(pdf):
        end = pdf.find(b"endstream", at)
        end = end if end >= 0 else len(pdf)
        stream = _STREAM.search(pdf, at, end)
        plain = stream.start() if stream else end
        is_known, is_text = _way_of_packing(pdf[at:plain])
        if stream and is_text:
            size += end - plain
            text = _of_ascii85(pdf[stream.end() : end]) if size <= _MOST_UNPACKED else None
            yield text
            texts.append(b"stream\n" + (text or b""))
        if not is_known:
            yield None
        for first, last in chain([(at, plain)], (word.span() for word in _WORDS.finditer(pdf, plain, end))):
            for start in range(first, last, _BLOCK):
                yield pdf[start : min(start + _BLOCK, last)]
            yield b"\n"
        at = end + len(b"endstream")
    yield from _unpacked([pdf, *texts])


def _way_of_packing(said: bytes) -> tuple[bool, bool]:
    """Return whether what is said before a stream packs it in a way that is known, and whether as ASCII first."""
    if _is_picture(said, len(said)):
        return True, False
    object_ = said[said.rfind(b"endobj") + 1 :]
    if _DIFFERENCES.search(said) and not (_PLACES.search(object_) and not _DRAWN.search(object_)):
        return False, False
    is_text = False
    if said.count(b"#") > _MOST_SIGNS:
        return False, False
    for found in _FILTER.finditer(_HEX.sub(lambda digits: bytes([int(digits[1], 16)]), said)):
        if found[1] is None:
            return False, False
        ways = found[1].strip(b"[]/ \t\r\n").replace(b"/", b" ").split()
        is_text |= ways[:1] == _AS_TEXT
        if ways[ways[:1] == _AS_TEXT :] not in _BY_ZLIB and b"." not in found[1]:
            return False, False
    return True, is_text


def _of_ascii85(data: bytes) -> bytes | None:
    """Return what a text of ASCII85 stands for; None where it is none."""
    try:
        return base64.a85decode(
            data.partition(b"~>")[0].strip().removeprefix(b"<~"), ignorechars=b" \t\r\n\f\0"
        )
    except ValueError:
        return None


def _unpacked(bodies: Iterable[bytes]) -> Iterator[bytes | None]:
    """Yield what is packed by zlib; None where there is more than is unpacked."""
    room, read, number = _MOST_UNPACKED, 0, 0
    most = _MOST_READ
    for body in bodies:
        most += len(body)
        for begins in _PACKED.finditer(body):
            number += 1
            if number > _MOST_STREAMS:
                yield None
            if _is_picture(body, begins.start()):
                continue
            packed, at, size = zlib.decompressobj(-zlib.MAX_WBITS), begins.end(), _PIECE
            while size and at < len(body) and not packed.eof:
                before = packed.copy()
                try:
                    unpacked = packed.decompress(body[at : at + size], room)
                except zlib.error:  # viewers show what comes before what is damaged
                    packed, size = before, size // 16
                    continue
                at, room = at + size, max(1, room - len(unpacked))
                read += size - len(packed.unused_data)
                yield unpacked
                if packed.unconsumed_tail or read > most:
                    yield None
            yield b"\n"


def _is_picture(body: bytes, at: int) -> bool:
    """Whether what stands before a place says plainly that a picture begins there, which is not unpacked."""
    first = max(0, at - _LOOKED_AT)
    end = body.rfind(b"endobj", first, at)
    if end < 0 and first:
        return False
    said = body[max(first, end + 1) : at]
    return bool(_PICTURE.search(said)) and not _DRAWN.search(said)
