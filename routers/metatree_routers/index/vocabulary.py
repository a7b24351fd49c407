"""Number the chunks and the terms of many texts while they are indexed.

What stands between spaces is a *chunk*: a word, or a few raw tokens (see `query.terms`). Most chunks come again and
again, so each is looked into once.

What is in a chunk is found out once a batch, for all chunks that were not known: `encode_all` is dictionary look-ups
without a call of Python. Texts are cut at signs by translating bytes, ten times as fast as characters, and many
together, with a mark between them. Lost: a small dictionary for each page of texts before the large one (no faster).
"""

from __future__ import annotations

import re
from array import array
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import count, islice
from typing import Any

from metatree_routers.query.terms import (
    MAX_TOKEN_CHARS,
    SELF_PREFIXES,
    STOP_WORDS,
    WIDE,
    ascii_parts,
    name_terms,
    raw_tokens,
    stemmer,
)

_SPACES = bytes(
    32 if code < 128 and not (chr(code).isalnum() or chr(code) in "_.") else code for code in range(256)
)
"""Signs that no raw token holds; cutting a text there first gives the same raw tokens."""
_MARK = b"\0"
_SPACES_AND_MARKS = _MARK + _SPACES[1:]
TEXT_END = 0
"""The chunk number of the mark between texts that are encoded together; it has no terms."""


_WIDE_BYTE = re.compile(b"[\xe2-\xef]")
"""With one of these begin all letters of `WIDE`, and none of the alphabets of two bytes."""

MOST_WORDS = 250_000
"""A vocabulary of more is given up after a batch: its words cost memory, some 400 bytes each."""


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
        self._measured = self._words = 0

    @property
    def terms(self) -> list[str]:
        """Term of each term number."""
        return list(self._term_number)

    @property
    def words(self) -> int:
        """About how many words are known: a chunk of many letters, such as a name in camelCase, has several."""
        fresh = len(self._chunk_number) - self._measured
        self._measured += fresh
        self._words += words_in(islice(reversed(self._chunk_number), fresh))
        return self._words

    def number(self, term: str) -> int:
        """Give the number of a term, a fresh one when it is not known."""
        return self._term_number[term]

    def encode(self, text: str) -> Iterable[int]:
        """Give the chunk numbers of a text: what stands between its spaces and ASCII signs other than dots."""
        # Bytes are translated ten times as fast as characters.
        spaced = text.encode("utf-8", "surrogatepass").translate(_SPACES)
        return map(self._chunk_number.__getitem__, spaced.split())

    def encode_all(self, spaced: bytes) -> Iterable[int]:
        """Give the chunk numbers of many texts, one after the other, each with `TEXT_END` behind it.

        Args:
            spaced: what `spaced_texts` gives for them.
        """
        return map(self._chunk_number.__getitem__, spaced.split())

    def expand_all(self) -> tuple[array[int], array[int]]:
        """Give the term numbers of all chunks, one chunk after the other, and how many terms each has."""
        flat, sizes = self._flat, self._sizes
        # From the end: going over those of before would take the square of a batch's pieces.
        fresh = list(islice(reversed(self._chunk_number), len(self._chunk_number) - len(sizes)))
        chunks = [chunk.decode("utf-8", "surrogatepass") for chunk in reversed(fresh)]
        # Most chunks are one word, in lower case or with a capital at its beginning, which has at most one term.
        plain = {
            chunk: chunk.lower()
            for chunk in chunks
            if chunk.isalpha()
            and len(chunk) <= MAX_TOKEN_CHARS
            and ((chunk.islower() or chunk[1:].islower()) if chunk.isascii() else not WIDE.search(chunk))
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
            numbers = names.of_chunk(chunk.strip("."))  # the end of a sentence, an ellipsis
            flat.extend(numbers)
            sizes.append(len(numbers))
        return flat, sizes

    def __len__(self) -> int:
        return len(self._term_number)


def words_in(chunks: Iterable[bytes]) -> int:
    """Return about how many words chunks have: one for each eight letters, and one for what is left.

    Of Chinese and the like each letter begins a word of its own, of three bytes.
    """
    return sum(
        1 + len(chunk) // (8 if chunk.isascii() or not _WIDE_BYTE.search(chunk) else 3) for chunk in chunks
    )


def spaced_texts(texts: Sequence[str]) -> bytes:
    """Return many texts in one, with spaces for signs that no raw token holds and a mark behind each."""
    joined = "\n\0\n".join([*texts, ""])
    if joined.count("\0") != len(texts):
        joined = "\n\0\n".join([*(text.replace("\0", " ") for text in texts), ""])
    return joined.encode("utf-8", "surrogatepass").translate(_SPACES_AND_MARKS)


class _WordNumbers(dict[str, int]):
    """Number of the term of a word in lower case; -1 for a stop word."""

    def __init__(self, term_number: dict[str, int], words: Iterable[str]) -> None:
        self._term_number = term_number
        self._stem = stemmer().stemWord
        distinct = list(dict.fromkeys(words))
        stems = stemmer().stemWords(distinct)
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
        numbers = self[name] = tuple(self.of_name(name))
        return numbers

    def of_chunk(self, chunk: str) -> Sequence[int]:
        """Give the numbers of the terms of a chunk of text, which may hold several raw tokens."""
        if chunk.isascii() and "." not in chunk and len(chunk) <= MAX_TOKEN_CHARS:
            return self.of_name(chunk)
        tokens = raw_tokens(chunk)
        return [number for raw in tokens for number in self._of_token(raw[:MAX_TOKEN_CHARS])]

    def _of_token(self, raw: str) -> Sequence[int]:
        """Give the numbers of what `expand` gives."""
        if "." not in raw:
            return self[raw]
        numbers = [number for name in raw.split(".") for number in self[name]]
        lower = raw.lower()
        if not lower.startswith(SELF_PREFIXES):
            numbers.append(self._term_number[lower])
        return numbers

    def of_name(self, name: str) -> Sequence[int]:
        """Give the numbers of what `name_terms` gives for a word or an identifier without dots."""
        if name.isdecimal():
            return (self._words[name],)
        lower = name.lower()
        if name.isascii():
            parts = ascii_parts(name, lower)
        elif "_" in name or WIDE.search(name):
            return [self._term_number[term] for term in name_terms(name)]
        else:
            parts = [lower]
        words = self._words
        if len(parts) < 2:
            return [number for part in parts if (number := words[part.lower()]) >= 0]
        numbers = [
            number
            for part in parts
            if part and (len(part) > 1 or not part.isdigit()) and (number := words[part.lower()]) >= 0
        ]
        whole = lower.strip("_")
        if whole and (number := self._term_number[whole]) not in numbers:
            numbers.append(number)
        return numbers


def _counting(*known: Any) -> defaultdict[Any, int]:
    """Give a dictionary that numbers what it is asked for, without a call of Python for what is not known."""
    return defaultdict(count(len(known)).__next__, zip(known, count()))
