"""Turn text into index terms: identifiers split, words stemmed, names kept whole as well.

A *raw token* is what the eye sees as one word: `parse_header`, `HTTPAdapter`, `os.path.join`, `redirects`. It is
expanded into *terms*: the stems of its parts, and the whole in lower case when it has several parts. Expansion is
remembered for each raw token, so a token costs a regular expression once and a dictionary look-up ever after.
"""

from __future__ import annotations

import re
import threading
from collections import Counter
from functools import lru_cache
from typing import Any

MAX_TOKEN_CHARS = 80
"""Longer raw tokens (encoded data, minified code) are cut here."""

_RAW = re.compile(r"\w+(?:\.[^\W\d]\w*)*")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_HASH = re.compile(r"(?:0x)?(?=(?:[a-f]*[0-9]){3})[0-9a-f]{7,}")
"""The hash of a commit, an address in memory: one name, whose letters are no words."""
SELF_PREFIXES = ("self.", "cls.")
"""A dotted name that begins so is no term as a whole: the instance is called so everywhere."""
WIDE = re.compile("[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff]")
"""Scripts written without spaces between words; cut into pairs of characters."""

_STOPPED = (
    "a about above after again all also am an and any are as at be because been before being "
    "below between both but by can could did do does doing don down during each few for from "
    "further had has have having he her here hers him his how i if in into is it its just me "
    "more most my no nor not now of off on once only or other our out over own same she should "
    "so some such than that the their them then there these they this those through to too "
    "under until up very was we were what when where which while who whom why will with would "
    "you your self cls def "
)
STOP_WORDS = frozenset(_STOPPED.split())
"""Words of prose (and the three most frequent words of Python) that say nothing of the subject."""


class _Local(threading.local):
    """A stemmer for each thread: PyStemmer's objects are not safe to share."""

    def __init__(self) -> None:
        import Stemmer

        # The stemmer's own cache is off: `Vocabulary` and `lru_cache` remember more, and faster.
        self.stemmer: Any = Stemmer.Stemmer("english", 0)


_local: _Local | None = None


def stemmer() -> Any:
    """Return this thread's stemmer of English, with `stemWord` and `stemWords`."""
    global _local
    if _local is None:
        _local = _Local()
    return _local.stemmer


@lru_cache(maxsize=131_072)
def _stem(word: str) -> str:
    stemmed: str = stemmer().stemWord(word)
    return stemmed


def raw_tokens(text: str) -> list[str]:
    """Cut text into raw tokens: words, identifiers, dotted names, numbers.

    Example:
        >>> raw_tokens("os.path.join(base_url, 3.14)")
        ['os.path.join', 'base_url', '3', '14']
    """
    return _RAW.findall(text)


def expand(raw: str) -> tuple[str, ...]:
    """Give the terms of one raw token, stop words left out.

    Example:
        >>> expand("resolve_redirects"), expand("HTTPAdapter"), expand("The")
        (('resolv', 'redirect', 'resolve_redirects'), ('http', 'adapt', 'httpadapter'), ())
        >>> expand("3543129d226"), expand("utf8")
        (('3543129d226',), ('utf', 'utf8'))
    """
    raw = raw[:MAX_TOKEN_CHARS]
    if "." not in raw:
        return name_terms(raw)
    terms = [term for name in raw.split(".") for term in name_terms(name)]
    lower = raw.lower()
    return tuple(terms) if lower.startswith(SELF_PREFIXES) else (*terms, lower)


def spelled_terms(raw: str) -> tuple[tuple[str, str], ...]:
    """Give the terms of one raw token as `expand` does, each as it is written: a part of a name by itself.

    Example:
        >>> spelled_terms("resolve_redirects")
        (('resolv', 'resolve'), ('redirect', 'redirects'), ('resolve_redirects', 'resolve_redirects'))
        >>> spelled_terms("HTTPAdapter")
        (('http', 'HTTP'), ('adapt', 'Adapter'), ('httpadapter', 'HTTPAdapter'))
    """
    terms = expand(raw)
    if len(terms) < 2:
        return tuple((term, raw) for term in terms)
    pieces: dict[str, str] = {}
    for piece in _PART.findall(raw):
        for term in expand(piece):
            pieces.setdefault(term, piece)
    return tuple((term, pieces.get(term, raw)) for term in terms)


def name_terms(name: str) -> tuple[str, ...]:
    """Give the terms of a word or an identifier without dots."""
    return _terms_of_name(name) if _is_remembered(name) else _cut(name)


def _is_remembered(text: str) -> bool:
    """Say whether the terms of a text are worth the memory: a line of Chinese has many, and hardly comes twice."""
    return text.isascii() or not WIDE.search(text)


def _cut(name: str) -> tuple[str, ...]:
    lower = name.lower()
    parts = ascii_parts(name, lower) if name.isascii() else name.split("_")
    terms = []
    for part in filter(None, parts):
        word = part.lower()
        if word in STOP_WORDS or (len(word) < 2 and len(parts) > 1 and word.isdigit()):
            continue
        if WIDE.search(word):
            terms += [word[i : i + 2] for i in range(len(word) - 1)] or [word]
        else:
            terms.append(_stem(word))
    if len(parts) > 1:
        whole = lower.strip("_")
        if whole and whole not in terms:
            terms.append(whole)
    return tuple(terms)


_terms_of_name = lru_cache(maxsize=131_072)(_cut)


def ascii_parts(name: str, lower: str) -> list[str]:
    """Cut an identifier at underscores and where capitals say that a word begins."""
    if lower.isalpha() and (name == lower or name[1:] == lower[1:]):
        return [lower]
    if name == lower and lower.replace("_", "").isalpha():
        return lower.split("_")
    if _HASH.fullmatch(lower):
        return [lower]
    return _PART.findall(name)


def expand_cached(raw: str) -> tuple[str, ...]:
    """Give what `expand` gives, which is remembered for each raw token."""
    return _expanded(raw) if _is_remembered(raw) else expand(raw)


_expanded = lru_cache(maxsize=65_536)(expand)


def terms(text: str) -> list[str]:
    """Give all terms of a text, in order, with repetitions.

    Example:
        >>> terms("Where are the redirects of getURL followed?")
        ['redirect', 'get', 'url', 'geturl', 'follow']
    """
    return [term for raw in raw_tokens(text) for term in expand_cached(raw[:MAX_TOKEN_CHARS])]


def term_counts(text: str) -> Counter[str]:
    """Count the terms of a text."""
    counts: Counter[str] = Counter()
    for raw, times in Counter(raw_tokens(text)).items():
        for term in expand_cached(raw[:MAX_TOKEN_CHARS]):
            counts[term] += times
    return counts
