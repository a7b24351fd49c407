"""What is shown of the text that answers: whole statements, and of code the signature and the lines that matter."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

from metatree.node import Node
from metatree_routers.passages.candidates import is_code_text
from metatree_routers.passages.pieces import piece_at
from metatree_routers.passages.statement import LEFT_OUT, is_cut

MOST_CODE_LINES = 20
"""About how many lines of code are shown; a definition that is not longer is shown whole."""
_SIGNATURE_LINES = 8
_DOCSTRING_LINES = 3


_DOCUMENTS = frozenset(
    {".md", ".rst", ".txt", ".html", ".pdf", ".docx", ".pptx", ".xlsx", ".epub", ".odt", ".ipynb"}
)


def shown(node: Node, content: str, quote: str, release: str = "") -> str:
    """Return a quote as it is shown, below its release; a document that is full of code is a document."""
    is_document = PurePosixPath(node.path or "").suffix.lower() in _DOCUMENTS
    is_code = not is_document and is_code_text(node, content)
    begins, ends = piece_at(node, content, max(0, content.find(quote)))
    # Only where a content begins is a signature.
    text = excerpt(content[begins:ends], quote, is_code=is_code and begins == 0)
    return f"{release}\n{LEFT_OUT}\n{text}" if release and release not in text else text


def excerpt(content: str, quote: str, *, is_code: bool) -> str:
    """Return a quote as it is shown: `…` stands in a line of its own where something is left out.

    Example:
        >>> code = "def f(a):\\n    'Do.'\\n" + "    b()\\n" * 20 + "    return a"
        >>> print(excerpt(code, "    return a", is_code=True))
        def f(a):
            …
            return a
    """
    at = content.find(quote)
    if at < 0:
        return quote
    if is_code:
        return _of_code(content, at, at + len(quote))
    return f"{quote}\n{LEFT_OUT}" if is_cut(content, at + len(quote)) else quote


def _of_code(content: str, start: int, end: int) -> str:
    lines = content.strip("\n").split("\n")
    skipped = len(content) - len(content.lstrip("\n"))
    if len(lines) <= MOST_CODE_LINES:
        return "\n".join(lines)
    first = content.count("\n", 0, start) - skipped
    last = content.count("\n", 0, end) - skipped
    head = _head(lines)
    shown = lines[max(first, head) : last + 1]
    del shown[max(4, MOST_CODE_LINES - head) :]
    last = max(first, head) + len(shown) - 1
    before = [*lines[:head], *([_mark(lines, first)] if first > head else [])]
    after = [_mark(lines, last)] if any(line.strip() for line in lines[last + 1 :]) else []
    return "\n".join([*before, *shown, *after])


def _head(lines: Sequence[str]) -> int:
    """Return how many lines the signature takes, and the beginning of the docstring."""
    end = next(
        (n for n, line in enumerate(lines[:_SIGNATURE_LINES]) if line.rstrip().endswith((":", "{", ";"))), 0
    )
    for quotes in ('"""', "'''"):
        if end + 1 < len(lines) and lines[end + 1].lstrip(" rRuU").startswith(quotes):
            for n in range(end + 1, min(len(lines), end + 1 + _DOCSTRING_LINES)):
                if not lines[n].strip():
                    return n
                if quotes in lines[n].replace(quotes, "", n == end + 1):
                    return n + 1
            return min(len(lines), end + 1 + _DOCSTRING_LINES)
    return end + 1


def _mark(lines: Sequence[str], near: int) -> str:
    """Return the mark for lines that are left out, as far indented as those beside it."""
    line = lines[near] if lines[near].strip() else lines[near - 1]
    return " " * (len(line) - len(line.lstrip())) + LEFT_OUT
