"""Checks that a quote which a model gives stands in the text that it read."""

from __future__ import annotations

import re


def quote_in(content: str, quote: str) -> str:
    """Return the words of a quote as they stand in the content, or '' where they do not.

    White space may differ: models fold line breaks and indentation. Letters, signs and case may not.
    """
    if quote in content:
        return quote
    words = quote.split()
    if not words or " ".join(words) not in " ".join(content.split()):
        return ""
    match = re.search(r"\s+".join(map(re.escape, words)), content)
    return match.group() if match else ""
