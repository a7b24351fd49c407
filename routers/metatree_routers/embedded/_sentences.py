"""Cut prose into sentences, list items and headings."""

from __future__ import annotations

import re
from collections.abc import Iterator

_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[A-Z0-9\"'(\[])|\n\s*\n|\n(?=\s*(?:[-*+#>|]|\d+\.)\s)")
_ABBREVIATION = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|vs|cf|al|Fig|Eq|Sec|No|Dr|Mr|Mrs|Ms|St|Inc|Ltd|Co|Corp|Jr|Sr|U\.S|approx)|\b[A-Z])\.$"
)


def sentences(text: str) -> Iterator[tuple[int, int]]:
    """Give the (start, end) of each sentence, list item or heading, without the white space around it.

    Example:
        >>> text = "It works, e.g. Here. Then it stops.\\n\\n- one\\n- two"
        >>> [text[a:b] for a, b in sentences(text)]
        ['It works, e.g. Here.', 'Then it stops.', '- one', '- two']
    """
    start = 0
    for end in _SENTENCE_END.finditer(text):
        piece = text[start : end.start()]
        if "\n" not in end.group() and _ABBREVIATION.search(piece[-12:]):
            continue
        yield from _trimmed(text, start, end.start() + _closing(end.group()))
        start = end.end()
    yield from _trimmed(text, start, len(text))


def _closing(separator: str) -> int:
    return len(separator) - len(separator.lstrip("\"')]"))


def _trimmed(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    if start < end:
        yield start, end
