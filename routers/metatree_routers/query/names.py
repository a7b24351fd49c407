"""Names as people say them: `flat hash map` for `FlatHashMap`, `flat_hash_map` and `flatHashMap`."""

from __future__ import annotations

import re

from metatree_routers.query.terms import STOP_WORDS

MOST_WORDS = 4
"""Neighbouring words that are taken for one name."""
LEAST_CHARS = 3
_WORD = re.compile(r"\w+")
_NAMED = re.compile(r"`?([A-Za-z_]\w*(?:(?:\.|::|#)[A-Za-z_]\w*)*)(?:\(\))?`?")
_LIKE_NO_WORD = re.compile(r"[_.:#]|[a-z0-9][A-Z]|[A-Z]{2}[a-z]{2}")
_SIGNS = re.compile(r"[\W_]+")


def squashed(name: str) -> str:
    """Return a name without case and signs.

    Example:
        >>> squashed("flat_hash_map"), squashed("HTTPAdapter")
        ('flathashmap', 'httpadapter')
    """
    return _SIGNS.sub("", name).lower()


def name_parts(question: str) -> tuple[str, ...]:
    """Return the parts of a name, where a question is that and nothing else; no word is one.

    Example:
        >>> name_parts("`adapters.HTTPAdapter::send()`"), name_parts("super_len"), name_parts("redirects")
        (('adapters', 'HTTPAdapter', 'send'), ('super_len',), ())
    """
    named = _NAMED.fullmatch(question.strip())
    if named is None or _LIKE_NO_WORD.search(named[1]) is None:
        return ()
    return tuple(re.split(r"\.|::|#", named[1]))


def names_asked(question: str) -> dict[str, tuple[str, ...]]:
    """Return what may be a name in a question: its words, and neighbouring ones joined -> the words.

    Example:
        >>> list(names_asked("the flat hash map"))
        ['theflat', 'theflathash', 'theflathashmap', 'flat', 'flathash', 'flathashmap', 'hash', 'hashmap', 'map']
    """
    words = _WORD.findall(question)
    asked: dict[str, tuple[str, ...]] = {}
    for first in range(len(words)):
        for last in range(first + 1, min(first + MOST_WORDS, len(words)) + 1):
            name = squashed("".join(words[first:last]))
            if len(name) >= LEAST_CHARS and (last - first > 1 or name not in STOP_WORDS):
                asked.setdefault(name, tuple(words[first:last]))
    return asked
