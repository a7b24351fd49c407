"""Pick the line of a text that matches best."""

from __future__ import annotations

from collections.abc import Mapping

from metatree_routers.text import term_counts

MAX_LINES = 5_000
MAX_LINE_CHARS = 240


def best_line(text: str, weights: Mapping[str, float]) -> str:
    """Return the line that holds the most weight, trimmed; the first line with words when none matches.

    Example:
        >>> best_line("import os\\n\\ndef follow(url):\\n    return url", {"follow": 2.0, "url": 1.0})
        'def follow(url):'
    """
    best, best_score, first = "", 0.0, ""
    for line in text.split("\n", MAX_LINES)[:MAX_LINES]:
        terms = term_counts(line[:2_000])
        if not first and terms:
            first = line
        score = sum(weights.get(term, 0.0) for term in terms)
        if score > best_score:
            best, best_score = line, score
    return _trimmed((best or first).strip(), weights)


def _trimmed(line: str, weights: Mapping[str, float]) -> str:
    """Cut a long line down to the window that holds the most weight."""
    if len(line) <= MAX_LINE_CHARS:
        return line
    starts = range(0, min(len(line), 20_000), MAX_LINE_CHARS // 2)
    windows = [line[start : start + MAX_LINE_CHARS] for start in starts]
    return max(
        windows, key=lambda window: sum(weights.get(term, 0.0) for term in term_counts(window))
    ).strip()
