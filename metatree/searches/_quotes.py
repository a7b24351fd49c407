"""Checks that a quote which a model gives stands in the text that it read."""

from __future__ import annotations

import re

_LEFT_OUT = re.compile(r"\s*(?:\[\s*(?:…|\.{3})\s*\]|…|\.{3})\s*")
# One sign for one, so that a place in the folded text is the same place in the text.
_GAP_CHARS = 1_000
"""Between the words of a quote that leaves some out, at most."""
_FOLDED = str.maketrans("‘’‚“”„–—‐‑\u00a0", "'''\"\"\"---- ")


def quote_in(content: str, quote: str) -> str:
    """Return the words of a quote as they stand in the content, or '' where they do not.

    White space, quotation marks and dashes may differ: models fold line breaks and straighten signs. Where `…` stands
    for words that were left out, all from the first to the last is returned. Letters and case may not differ.
    """
    if quote in content:
        return quote
    pieces = [words for piece in _LEFT_OUT.split(quote) if (words := piece.translate(_FOLDED).split())]
    folded = content.translate(_FOLDED)
    start = end = -1
    for words in pieces:
        pattern = re.compile(r"\s+".join(map(re.escape, words)))
        match = pattern.search(folded) if start < 0 else pattern.search(folded, end)
        if match is None or (start >= 0 and match.start() - end > _GAP_CHARS):
            return ""
        start, end = (match.start() if start < 0 else start), match.end()
    return content[start:end] if pieces else ""
