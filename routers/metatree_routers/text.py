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
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import count, islice
from typing import Any

MAX_TOKEN_CHARS = 80
"""Longer raw tokens (encoded data, minified code) are cut here."""

_RAW = re.compile(r"\w+(?:\.[^\W\d]\w*)*")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_HASH = re.compile(r"(?:0x)?(?=(?:[a-f]*[0-9]){3})[0-9a-f]{7,}")
"""The hash of a commit, an address in memory: one name, whose letters are no words."""
_SPACES = bytes(
    32 if code < 128 and not (chr(code).isalnum() or chr(code) in "_.") else code for code in range(256)
)
"""Signs that no raw token holds; cutting a text there first gives the same raw tokens."""
_MARK = b"\0"
_SPACES_AND_MARKS = _MARK + _SPACES[1:]
TEXT_END = 0
"""The chunk number of the mark between texts that are encoded together; it has no terms."""
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
        >>> expand("3543129d226"), expand("utf8")
        (('3543129d226',), ('utf', 'utf8'))
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
    parts = _ascii_parts(name, lower) if name.isascii() else name.split("_")
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


def _ascii_parts(name: str, lower: str) -> list[str]:
    """Cut an identifier at underscores and where capitals say that a word begins."""
    if lower.isalpha() and (name == lower or name[1:] == lower[1:]):
        return [lower]
    if name == lower and lower.replace("_", "").isalpha():
        return lower.split("_")
    if _HASH.fullmatch(lower):
        return [lower]
    return _PART.findall(name)


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

    `encode` gives each chunk its number at the speed of `bytes.split` and a dictionary look-up. What is in the chunks
    that came up is found out later, once for each and all together (`expand_all`).
    """

    def __init__(self) -> None:
        self._term_number: defaultdict[str, int] = _counting()
        self._chunk_number: defaultdict[bytes, int] = _counting(_MARK)
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
        spaced = text.encode("utf-8", "surrogatepass").translate(_SPACES)
        return map(self._chunk_number.__getitem__, spaced.split())

    def encode_all(self, texts: Sequence[str]) -> Iterable[int]:
        """Give the chunk numbers of many texts, one after the other, each with `TEXT_END` behind it."""
        joined = "\n\0\n".join([*texts, ""])
        if joined.count("\0") != len(texts):
            joined = "\n\0\n".join([*(text.replace("\0", " ") for text in texts), ""])
        spaced = joined.encode("utf-8", "surrogatepass").translate(_SPACES_AND_MARKS)
        return map(self._chunk_number.__getitem__, spaced.split())

    def expand_all(self) -> tuple[array[int], array[int]]:
        """Give the term numbers of all chunks, one chunk after the other, and how many terms each has."""
        flat, sizes = self._flat, self._sizes
        fresh = islice(self._chunk_number, len(sizes), None)
        chunks = [chunk.decode("utf-8", "surrogatepass") for chunk in fresh]
        # Most chunks are one word, in lower case or with a capital at its beginning, which has at most one term.
        plain = {
            chunk: chunk.lower()
            for chunk in chunks
            if chunk.isalpha()
            and len(chunk) <= MAX_TOKEN_CHARS
            and ((chunk.islower() or chunk[1:].islower()) if chunk.isascii() else not _WIDE.search(chunk))
        }
        words = _WordNumbers(self._term_number, plain.values())
        names = _NameNumbers(self._term_number, words)
        for chunk in chunks:
            word = plain.get(chunk)
            if word is not None:
                number = words[word]
                if number >= 0:
                    flat.append(number)
                sizes.append(number >= 0)
                continue
            found = names.of_chunk(chunk.strip("."))  # the end of a sentence, an ellipsis
            flat.extend(found)
            sizes.append(len(found))
        return flat, sizes

    def __len__(self) -> int:
        return len(self._term_number)


class _WordNumbers(dict[str, int]):
    """Number of the term of a word in lower case; -1 for a stop word."""

    def __init__(self, term_number: dict[str, int], words: Iterable[str]) -> None:
        self._term_number = term_number
        self._stem = _stemmer().stemWord
        distinct = list(dict.fromkeys(words))
        stems = _stemmer().stemWords(distinct)
        super().__init__(zip(distinct, map(term_number.__getitem__, stems), strict=True))
        self.update(dict.fromkeys(STOP_WORDS, -1))

    def __missing__(self, word: str) -> int:
        number = self[word] = self._term_number[self._stem(word)]
        return number


class _NameNumbers(dict[str, tuple[int, ...]]):
    """Numbers of the terms of names: what `expand` gives, for many names at once."""

    def __init__(self, term_number: dict[str, int], words: _WordNumbers) -> None:
        super().__init__()
        self._term_number = term_number
        self._words = words

    def __missing__(self, name: str) -> tuple[int, ...]:
        found = self[name] = tuple(self.of_name(name))
        return found

    def of_chunk(self, chunk: str) -> Sequence[int]:
        """Give the numbers of the terms of a chunk of text, which may hold several raw tokens."""
        if chunk.isascii() and "." not in chunk and len(chunk) <= MAX_TOKEN_CHARS:
            return self.of_name(chunk)
        tokens = _RAW.findall(chunk)
        return [number for raw in tokens for number in self._of_token(raw[:MAX_TOKEN_CHARS])]

    def _of_token(self, raw: str) -> Sequence[int]:
        """Give the numbers of what `expand` gives."""
        if "." not in raw:
            return self[raw]
        found = [number for name in raw.split(".") for number in self[name]]
        lower = raw.lower()
        if not lower.startswith(_SELF):
            found.append(self._term_number[lower])
        return found

    def of_name(self, name: str) -> Sequence[int]:
        """Give the numbers of what `_name_terms` gives for a word or an identifier without dots."""
        if name.isdecimal():
            return (self._words[name],)
        lower = name.lower()
        if name.isascii():
            parts = _ascii_parts(name, lower)
        elif "_" in name or _WIDE.search(name):
            return [self._term_number[term] for term in _name_terms(name)]
        else:
            parts = [lower]
        words = self._words
        if len(parts) < 2:
            return [number for part in parts if (number := words[part.lower()]) >= 0]
        found = [
            number
            for part in parts
            if part and (len(part) > 1 or not part.isdigit()) and (number := words[part.lower()]) >= 0
        ]
        whole = lower.strip("_")
        if whole and (number := self._term_number[whole]) not in found:
            found.append(number)
        return found


def _counting(*known: Any) -> defaultdict[Any, int]:
    """Give a dictionary that numbers what it is asked for, without a call of Python for what is not known."""
    return defaultdict(count(len(known)).__next__, zip(known, count()))


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
