"""Titles as names: found in the text of another node, they lead to the second hop of a question.

`evidence.signals.multi_hop` looks for them in the best texts.

A title counts only where it is written like a name, kept as a term of its own; of up to eight nodes with that title,
the best. Lost: titles of one node alone (MuSiQue -3: articles are in several passages), and titles of sections and
tools ("Search", "Introduction" are in every text).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from metatree.node import Node

MOST_WORDS = 8
MOST_CHARS = 6_000

_WORD = re.compile(r"\w+")
_DISAMBIGUATION = re.compile(r"\s*\([^()]*\)$")
_NAMEABLE = frozenset({"document", "article", "entity", "note", "table"})
_MARK = "~"


def title_term(node: Node) -> str | None:
    """Return the term under which a node is found by its title; None when the title is no name.

    Example:
        >>> title_term(Node(id="a", title="Lilu (mythology)", kind="document"))
        '~lilu'
    """
    if node.kind not in _NAMEABLE:
        return None
    words = _WORD.findall(_DISAMBIGUATION.sub("", node.title))
    if not words or len(words) > MOST_WORDS or not words[0][0].isupper():
        return None
    return _term(words)


def title_terms_in(text: str) -> Iterator[str]:
    """Yield the terms of all titles that a text may have in it: runs of words that begin with a capital or a digit."""
    words = _WORD.findall(text[:MOST_CHARS])
    for first, word in enumerate(words):
        if word[0].isupper() or word[0].isdigit():
            for last in range(first + 1, min(first + MOST_WORDS, len(words)) + 1):
                if last - first > 1 or word[0].isupper():
                    yield _term(words[first:last])


def _term(words: Sequence[str]) -> str:
    return _MARK + " ".join(words).lower()
