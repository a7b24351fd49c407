"""Pick the line of a text that matches best."""

from __future__ import annotations

from collections.abc import Mapping
from math import fsum

from metatree_routers.query.directives import is_bare_directive
from metatree_routers.query.terms import expand_cached, raw_tokens, term_counts

MAX_LINES = 5_000
MAX_LINE_CHARS = 240
MAX_READ_CHARS = 2_000
_FEW_FORMS = 50
"""Of the words of a question in a text, that are looked for one by one."""


def best_line(text: str, weights: Mapping[str, float]) -> str:
    """Return the line that holds the most weight, trimmed; the first line with words when none matches.

    Example:
        >>> best_line("import os\\n\\ndef follow(url):\\n    return url", {"follow": 2.0, "url": 1.0})
        'def follow(url):'
        >>> best_line("```sh\\nmetatree serve", {})
        'metatree serve'
    """
    lines = text.split("\n", MAX_LINES)[:MAX_LINES]
    matching: dict[str, tuple[str, ...]] = {}
    for raw in set(raw_tokens(text)):
        expanded = expand_cached(raw)
        if not weights.keys().isdisjoint(expanded):
            matching[raw] = tuple(term for term in expanded if term in weights)
    best, best_score = "", 0.0
    # Most lines have none of the words, and cutting a line costs more than looking for them.
    if len(matching) <= _FEW_FORMS:
        numbers = {number for raw in matching for number, line in enumerate(lines) if raw in line}
    else:
        numbers = {n for n, line in enumerate(lines) if not matching.keys().isdisjoint(raw_tokens(line))}
    for line in map(lines.__getitem__, sorted(numbers)):
        if not _says_something(line):
            continue
        line_terms = {term for raw in raw_tokens(line[:MAX_READ_CHARS]) for term in matching.get(raw, ())}
        score = fsum(map(weights.__getitem__, line_terms))  # the same in any order
        if score > best_score:
            best, best_score = line, score
    if not best:
        said = (line for line in lines if any(map(str.isalnum, line)) and _says_something(line))
        best = next(said, "") or next((line for line in lines if any(map(str.isalnum, line))), "")
    return _trimmed(best.strip(), weights)


def _says_something(line: str) -> bool:
    """Whether a line is more than the opening of a block: a directive, or the fence of code with its language."""
    return not is_bare_directive(line) and not line.lstrip().startswith(("```", "~~~"))


def _trimmed(line: str, weights: Mapping[str, float]) -> str:
    """Cut a long line down to the window that holds the most weight."""
    if len(line) <= MAX_LINE_CHARS:
        return line
    starts = range(0, min(len(line), 20_000), MAX_LINE_CHARS // 2)
    windows = [line[start : start + MAX_LINE_CHARS] for start in starts]
    return max(
        windows, key=lambda window: sum(weights.get(term, 0.0) for term in term_counts(window))
    ).strip()
