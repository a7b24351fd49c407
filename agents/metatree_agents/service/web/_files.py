"""The file that a node is from, where it has pages and a browser shows it: a PDF, opened at the page of a quote.

Only what the tree was built from, as it was then: other bytes are another file, and one in which something looked like
a secret would show what texts have masked.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import ExitStack
from typing import BinaryIO, Final

from fastapi import APIRouter, Request
from fastapi.responses import Response, StreamingResponse
from metatree_memory_tools.text.lines import text_of

from metatree import Tree
from metatree.errors import UserError
from metatree.trees.content import file_state, shows_secrets
from metatree.trees.source_files import digest_bytes
from metatree_agents.service.web._browse import pdf_page_of
from metatree_agents.service.web._guard import Entered, Id
from metatree_agents.service.web._memory_pages import reading, tree_named
from metatree_agents.service.web._pdf_secrets import holds_secret
from metatree_agents.service.web._replies import PRIVATE, redirect
from metatree_agents.service.web._state import Web

router = APIRouter()
MOST_BYTES: Final = 100_000_000
_MASKED: Final = re.compile(r"\*{6}|(?:[:=\"'(]|password)\s{0,3}\*{3}")
_BLOCK: Final = 1_000_000
"""Bytes that are read at once."""
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


def _is_cut(tree: Tree, path: str) -> bool:
    """Whether not all of the text of a file was read: what was not may have something that would be masked."""
    return bool(tree.index.rows("SELECT 1 FROM omission WHERE path = ?", (path,)))


def _is_masked(tree: Tree, path: str) -> bool:
    """Whether something is masked in the text of a file, or in what its nodes say of it."""
    if any(map(_MASKED.search, text_of(tree, path).lines)):
        return True
    said = ([node.title, node.description, dict(node.attributes)] for _, node in tree.walk(path))
    return any(_MASKED.search(json.dumps(each)) for each in said)
