"""The file that a node is from, where it has pages and a browser shows it: a PDF, opened at the page of a quote.

Only what the tree was built from, as it was then: other bytes are another file, and one in which something looked like
a secret would show what texts have masked.
"""

from __future__ import annotations

import json
import os
import re
import time
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import chain
from typing import BinaryIO, Final

from fastapi import APIRouter, Request
from fastapi.responses import Response, StreamingResponse
from metatree_memory_tools.text.lines import text_of

from metatree import Tree
from metatree._util.secret_text import secrets_in
from metatree.errors import UserError
from metatree.trees.content import file_state, shows_secrets
from metatree.trees.source_files import digest_bytes
from metatree_agents.service.web._browse import pdf_page_of
from metatree_agents.service.web._guard import Entered, Id
from metatree_agents.service.web._memory_pages import reading, tree_named
from metatree_agents.service.web._replies import PRIVATE, redirect
from metatree_agents.service.web._state import Web

router = APIRouter()
MOST_BYTES: Final = 100_000_000
_MASKED: Final = re.compile(r"\*{6}|(?:[:=\"'(]|password)\s{0,3}\*{3}")
_MOST_UNPACKED: Final = 20_000_000
_ESCAPE: Final = re.compile(rb"\\(?:([0-7]{1,3})|\r?\n|\r)|<([0-9A-Fa-f\s]{16,40000})>")
"""PDF 32000-1, 7.3.4: parts of a literal string, which goes on behind a backslash, and hexadecimal strings."""
_LONG_STRING: Final = re.compile(rb"<[0-9A-Fa-f\s]{40000}")
_STREAM: Final = re.compile(rb">>\s*stream\r?\n")
_PACKED: Final = re.compile(rb"(?<!end)stream\s*[\x08\x18\x28\x38\x48\x58\x68\x78](?s:.)")
"""RFC 1950, 2.2: with which byte what zlib packs begins. Viewers do not look at its checksum."""
_PICTURE: Final = re.compile(rb"/Subtype\s*/Image\b[^()#%]*\Z")
_NO_PICTURE: Final = re.compile(rb"[(#%]|/ObjStm")
"""Texts, comments, names with escapes: by these, something else can look like a picture."""
_PIECE: Final = 4_096
_MOST_READ: Final = 20_000_000
_MOST_STREAMS: Final = 300_000
_MOST_S: Final = 10.0
_BLOCK: Final = 1_000_000
_OVERLAP: Final = 20_000
"""Bytes that are looked at together, and once more with those behind them: no key is longer."""
_WORDS: Final = re.compile(rb"[\0\t\n\r -~]{8,}")
_BEGINS: Final = b"%PDF-"
_LOOKED_AT: Final = 1_024
"""Bytes at the beginning among which a PDF says that it is one."""
# The viewer of a browser is a page of its own, which the policy of pages would forbid to show anything.
_POLICY: Final = "default-src 'none'; object-src 'self'; style-src 'unsafe-inline'; frame-ancestors 'none'"


@router.get("/file")
async def file_page(request: Request, session: Entered, node: Id, tree: str = "") -> Response:
    """Give the PDF that a node is from; where its text has something masked, the page of the node, which says so."""
    named = await tree_named(request, session, tree)
    async with Web.of(request).looking:
        pdf = await reading(request, named, _pdf_of, node)
    if pdf is None:
        return redirect("/node", id=node, tree=tree or None, masked=1)
    ascii_name = "".join(
        sign if sign.isascii() and (sign.isalnum() or sign in "._-") else "_" for sign in pdf.name
    )
    headers = {
        **PRIVATE,
        "Content-Security-Policy": _POLICY,
        "Content-Length": str(pdf.size),
        "Content-Disposition": f'inline; filename="{ascii_name}"',
    }
    return StreamingResponse(pdf.pieces(), media_type="application/pdf", headers=headers)


class _Pdf:
    """A PDF that was looked at, to be read again for who asked: kept in memory, a few of them would fill it."""

    def __init__(self, file: BinaryIO, name: str, data: bytes) -> None:
        self.name, self.size = name, len(data)
        self._file = file
        self._digests = [digest_bytes(data[at : at + _BLOCK]) for at in range(0, len(data), _BLOCK)]

    def pieces(self) -> Iterator[bytes]:
        """Yield what was looked at; ends with an OSError where the file has changed since."""
        with self._file:
            self._file.seek(0)
            for digest in self._digests:
                piece = self._file.read(_BLOCK)
                if digest_bytes(piece) != digest:
                    raise OSError(f"{self.name} changed while it was sent")
                yield piece


def _pdf_of(tree: Tree, node_id: str) -> _Pdf | None:
    """Return the PDF of a node; raises `UnknownNode` and `UserError`.

    None where something of it is masked, which the PDF would show: in its text, in what it says of itself, or in its
    notes and links; or where that cannot be known.
    """
    node = tree.get(node_id)
    known = None if pdf_page_of(node) is None or node.path is None else file_state(tree.index, node.path)
    file = None if known is None else tree.file_of(node)
    if known is None or file is None or node.path is None:
        raise UserError(f"there is no PDF of {node.title or node.id!r} on this server")
    if known.size > MOST_BYTES:
        raise UserError(f"{node.path!r} is larger than {MOST_BYTES // 1_000_000} MB: open it where it lies")
    with ExitStack() as stack:
        try:
            opened = stack.enter_context(open(file, "rb", opener=_without_waiting))
            data = opened.read(known.size + 1)
        except OSError as exc:
            raise UserError(f"{node.path!r} cannot be read: {exc.strerror}") from None
        if digest_bytes(data) != known.digest:
            raise UserError(f"{node.path!r} is not as it was when the memory was built: build it again")
        if _BEGINS not in data[:_LOOKED_AT]:
            raise UserError(f"{node.path!r} is no PDF")
        source = tree.source_of(node.path)
        shows = source is not None and shows_secrets(source)
        if not shows and (_is_cut(tree, node.path) or _is_masked(tree, node.path) or holds_secret(data)):
            return None
        stack.pop_all()  # it stays open
        return _Pdf(opened, file.name, data)


def _without_waiting(path: str, flags: int) -> int:
    """Open a file that may be a pipe by now."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


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
            texts = {bytes(block), *(each.replace(b"\0", b"") for each in (bytes(block), said))}
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
    digits = b"".join(escape[2].split())
    return b"(" + bytes.fromhex((digits + b"0" * (len(digits) % 2)).decode()) + b")"


def _parts(pdf: bytes) -> Iterator[bytes | None]:
    """Yield what is not packed in a PDF, and what is packed by zlib, as its pages are: also what no reader counts.

    None where there is more than is unpacked. What begins as a stream may be a text that says so: the words in it are
    looked at, too, and it is unpacked up to its own end.
    """
    at = 0
    while at < len(pdf):
        end = pdf.find(b"endstream", at)
        end = end if end >= 0 else len(pdf)
        stream = _STREAM.search(pdf, at, end)
        plain = stream.start() if stream else end
        for first, last in chain([(at, plain)], (word.span() for word in _WORDS.finditer(pdf, plain, end))):
            for start in range(first, last, _BLOCK):
                yield pdf[start : min(start + _BLOCK, last)]
            yield b"\n"
        at = end + len(b"endstream")
    room, read = _MOST_UNPACKED, 0
    for number, begins in enumerate(_PACKED.finditer(pdf)):
        if number >= _MOST_STREAMS:
            yield None
        if _is_picture(pdf[max(0, begins.start() - _LOOKED_AT) : begins.start()]):
            continue
        packed, at, size = zlib.decompressobj(-zlib.MAX_WBITS), begins.end(), _PIECE
        while size and at < len(pdf) and not packed.eof:
            before = packed.copy()
            try:
                unpacked = packed.decompress(pdf[at : at + size], room)
            except zlib.error:  # viewers show what comes before what is damaged
                packed, size = before, size // 16
                continue
            at, room = at + size, max(1, room - len(unpacked))
            read += size - len(packed.unused_data)
            yield unpacked
            if packed.unconsumed_tail or read > _MOST_READ + len(pdf):
                yield None
        yield b"\n"


def _is_picture(said: bytes) -> bool:
    """Whether what stands before a stream says plainly that it is a picture, which is not unpacked."""
    return bool(_PICTURE.search(said)) and not _NO_PICTURE.search(said[said.rfind(b"endobj") + 1 :])


def _is_cut(tree: Tree, path: str) -> bool:
    """Whether not all of the text of a file was read: what was not may have something that would be masked."""
    return bool(tree.index.rows("SELECT 1 FROM omission WHERE path = ?", (path,)))


def _is_masked(tree: Tree, path: str) -> bool:
    """Whether something is masked in the text of a file, or in what its nodes say of it."""
    if any(map(_MASKED.search, text_of(tree, path).lines)):
        return True
    said = ([node.title, node.description, dict(node.attributes)] for _, node in tree.walk(path))
    return any(_MASKED.search(json.dumps(each)) for each in said)
