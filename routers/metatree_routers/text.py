"""Turn text into index terms: identifiers split, words stemmed, names kept whole as well.

A *raw token* is what the eye sees as one word: `parse_header`, `HTTPAdapter`, `os.path.join`, `redirects`. It is
expanded into *terms*: the stems of its parts, and the whole in lower case when it has several parts. Expansion is
remembered for each raw token, so a token costs a regular expression once and a dictionary look-up ever after.
"""

from __future__ import annotations

import re
import threading
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import count, islice
from typing import Any

MAX_TOKEN_CHARS = 80
"""Longer raw tokens (encoded data, minified code) are cut here."""

_RAW = re.compile(r"\w+(?:\.[^\W\d]\w*)*")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_SPACES = bytes(
    32 if code < 128 and not (chr(code).isalnum() or chr(code) in "_.") else code for code in range(256)
)
"""Signs that no raw token holds; cutting a text there first gives the same raw tokens."""
_SELF = ("self.", "cls.")
_WIDE = re.compile("[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff]")
"""Scripts written without spaces between words; cut into pairs of characters."""
_FIRST_WIDE = "\u2e80"

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


def _stemmer() -> Any:
    global _local
    if _local is None:
        _local = _Local()
    return _local.stemmer


@lru_cache(maxsize=131_072)
def _stem(word: str) -> str:
    stemmed: str = _stemmer().stemWord(word)
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
    """
    raw = raw[:MAX_TOKEN_CHARS]
    if "." not in raw:
        return _name_terms(raw)
    terms = [term for name in raw.split(".") for term in _name_terms(name)]
    lower = raw.lower()
    return tuple(terms) if lower.startswith(_SELF) else (*terms, lower)


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


@lru_cache(maxsize=131_072)
def _name_terms(name: str) -> tuple[str, ...]:
    """Give the terms of a word or an identifier without dots."""
    lower = name.lower()
    if name.isascii():
        if lower.isalpha() and (name == lower or name[1:] == lower[1:]):
            return () if lower in STOP_WORDS else (_stem(lower),)
        parts = (
            lower.split("_") if name == lower and lower.replace("_", "").isalpha() else _PART.findall(name)
        )
    else:
        parts = name.split("_")
    terms = []
    for part in filter(None, parts):
        word = part.lower()
        if word in STOP_WORDS or (len(word) < 2 and len(parts) > 1 and word.isdigit()):
            continue
        if _WIDE.search(word):
            terms += [word[i : i + 2] for i in range(len(word) - 1)] or [word]
        else:
            terms.append(_stem(word))
    if len(parts) > 1:
        whole = lower.strip("_")
        if whole and whole not in terms:
            terms.append(whole)
    return tuple(terms)


@lru_cache(maxsize=65_536)
def _expand_cached(raw: str) -> tuple[str, ...]:
    return expand(raw)


def terms(text: str) -> list[str]:
    """Give all terms of a text, in order, with repetitions.

    Example:
        >>> terms("Where are the redirects of getURL followed?")
        ['redirect', 'get', 'url', 'geturl', 'follow']
    """
    return [term for raw in raw_tokens(text) for term in _expand_cached(raw[:MAX_TOKEN_CHARS])]


def term_counts(text: str) -> Counter[str]:
    """Count the terms of a text."""
    counts: Counter[str] = Counter()
    for raw, times in Counter(raw_tokens(text)).items():
        for term in _expand_cached(raw[:MAX_TOKEN_CHARS]):
            counts[term] += times
    return counts


class Vocabulary:
    """Numbers chunks of text and terms while many texts are indexed; not shared between threads.

    `encode` gives each chunk its number at the speed of `str.split` and a dictionary look-up. What is in the chunks
    that came up is found out later, once for each and all together (`expand_all`).
    """

    def __init__(self) -> None:
        self._term_number = _counting()
        self._chunk_number = _counting()
        self._flat = array("i")
        self._sizes = array("i")

    @property
    def terms(self) -> list[str]:
        """Term of each term number."""
        return list(self._term_number)

    def number(self, term: str) -> int:
        """Give the number of a term, a fresh one when it is not known."""
        return self._term_number[term]

    def encode(self, text: str) -> Iterable[int]:
        """Give the chunk numbers of a text: what stands between its spaces and ASCII signs other than dots."""
        # Bytes are translated ten times as fast as characters.
        spaced = text.encode("utf-8", "surrogatepass").translate(_SPACES).decode("utf-8", "surrogatepass")
        return map(self._chunk_number.__getitem__, spaced.split())

    def expand_all(self) -> tuple[array[int], array[int]]:
        """Give the term numbers of all chunks, one chunk after the other, and how many terms each has."""
        number, flat, sizes = self._term_number.__getitem__, self._flat, self._sizes
        chunks = list(islice(self._chunk_number, len(sizes), None))
        words = {chunk: chunk.lower() for chunk in chunks if _is_plain_word(chunk)}
        stems = dict(zip(words, _stemmer().stemWords(list(words.values())), strict=True))
        for chunk in chunks:
            word = words.get(chunk)
            if word is not None:
                if word in STOP_WORDS:
                    sizes.append(0)
                else:
                    flat.append(number(stems[chunk]))
                    sizes.append(1)
                continue
            inner = chunk.strip(".")  # the end of a sentence, an ellipsis
            terms = [number(term) for raw in _RAW.findall(inner) for term in expand(raw)]
            flat.extend(terms)
            sizes.append(len(terms))
        return flat, sizes

    def __len__(self) -> int:
        return len(self._term_number)


def _counting() -> defaultdict[str, int]:
    """Give a dictionary that numbers what it is asked for, without a call of Python for what is not known."""
    return defaultdict(count().__next__)


def _is_plain_word(chunk: str) -> bool:
    """Whether a chunk is one word in lower case, or one with a capital at its beginning, which has at most one term."""
    if len(chunk) > MAX_TOKEN_CHARS or not chunk.isalpha():
        return False
    if chunk.isascii():
        return chunk.islower() or chunk[1:].islower()
    return max(chunk) < _FIRST_WIDE


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
