"""Posting lists packed in blocks: many short lists make one row of a table, so a segment is written in few rows.

A block is a count, the lengths of each term and of its list, the terms, the lists; the lengths are little-endian
32-bit numbers. Terms are in order within a block and from block to block, so the first terms of all blocks of a
segment tell which block a term is in.

With blocks of 64 terms a segment is some thousand rows of SQLite, not a hundred thousand. Lost: a row for each term,
whose insertion was a seventh of the index's CPU.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import accumulate

import numpy as np
import numpy.typing as npt

MOST_TERMS = 64
MOST_BYTES = 16_384
"""A block is closed when it has so many terms or bytes; a longer list is a block of its own."""

MOST_HEAD_BYTES = 8_192
"""More are not read of a block for its terms: room for all of them, but for those that are not words."""
_NUMBER = np.dtype("<u4")


def pack(lists: Iterable[tuple[str, bytes]]) -> Iterator[tuple[str, bytes]]:
    """Yield the first term of each block and the block.

    Args:
        lists: terms, in order, with their lists.

    Example:
        >>> [(first, dict(unpack(block))) for first, block in pack([("a", b"1"), ("b", b"22")])]
        [('a', {'a': b'1', 'b': b'22'})]
    """
    terms: list[str] = []
    parts: list[bytes] = []
    size = 0
    for term, data in lists:
        if terms and (len(terms) >= MOST_TERMS or size + len(data) > MOST_BYTES):
            yield terms[0], _block(terms, parts)
            terms, parts, size = [], [], 0
        terms.append(term)
        parts.append(data)
        size += len(data)
    if terms:
        yield terms[0], _block(terms, parts)


def pack_joined(
    terms: Sequence[str], data: memoryview, ends: npt.NDArray[np.int64]
) -> Iterator[tuple[str, bytes]]:
    """Yield what `pack` yields, of lists that lie one behind the other: a block costs one copy, whatever is in it.

    Args:
        terms: in order.
        data: all lists, in the order of the terms, as bytes.
        ends: (n,) where in `data` the list of each term ends.
    """
    names = [_encoded(term) for term in terms]
    name_lengths = np.fromiter(map(len, names), dtype=_NUMBER, count=len(names))
    lengths = np.diff(ends, prepend=0).astype(_NUMBER)
    ends_of = ends.tolist()
    first, start = 0, 0
    while first < len(terms):
        last = min(first + MOST_TERMS, bisect_right(ends_of, start + MOST_BYTES, first + 1))
        last = max(last, first + 1)
        end = ends_of[last - 1]
        head = np.array([last - first], dtype=_NUMBER).tobytes()
        counts = name_lengths[first:last].tobytes() + lengths[first:last].tobytes()
        yield terms[first], b"".join([head, counts, *names[first:last], data[start:end]])
        first, start = last, end


def _block(terms: Sequence[str], parts: Sequence[bytes]) -> bytes:
    names = [_encoded(term) for term in terms]
    lengths = [len(terms), *map(len, names), *map(len, parts)]
    return b"".join([np.array(lengths, dtype=_NUMBER).tobytes(), *names, *parts])


def unpack(block: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the terms of a block with their lists."""
    count = int(np.frombuffer(block, _NUMBER, 1)[0])
    lengths = np.frombuffer(block, _NUMBER, 2 * count, _NUMBER.itemsize).tolist()
    ends = list(accumulate(lengths, initial=(2 * count + 1) * _NUMBER.itemsize))
    for at in range(count):
        term = block[ends[at] : ends[at + 1]].decode("utf-8", "surrogatepass")
        yield term, block[ends[count + at] : ends[count + at + 1]]


def terms_of(head: bytes) -> Iterator[str]:
    """Yield the terms of a block, of which the first `MOST_HEAD_BYTES` suffice.

    Example:
        >>> [list(terms_of(block)) for _, block in pack([("a", b"1"), ("bc", b"22")])]
        [['a', 'bc']]
    """
    count = int(np.frombuffer(head, _NUMBER, 1)[0])
    lengths = np.frombuffer(head, _NUMBER, count, _NUMBER.itemsize).tolist()
    at = (2 * count + 1) * _NUMBER.itemsize
    for length in lengths:
        yield head[at : at + length].decode("utf-8", "replace")
        at += length


def lists_in(block: bytes, wanted: Collection[str]) -> Iterator[tuple[str, bytes]]:
    """Yield those of the terms that a block has, with their lists.

    Example:
        >>> [dict(lists_in(block, ["b", "bc", "d"])) for _, block in pack([("abc", b"1"), ("bc", b"22")])]
        [{'bc': b'22'}]
    """
    count = int(np.frombuffer(block, _NUMBER, 1)[0])
    lengths = np.frombuffer(block, _NUMBER, 2 * count, _NUMBER.itemsize).tolist()
    ends = list(accumulate(lengths, initial=(2 * count + 1) * _NUMBER.itemsize))
    for term in wanted:
        name = _encoded(term)
        place = block.find(name, ends[0], ends[count])
        while place >= 0:
            at = (
                bisect_right(ends, place, 0, count) - 1 if name else 0
            )  # the empty term begins where the next does
            if ends[at] == place and ends[at + 1] == place + len(name):
                yield term, block[ends[count + at] : ends[count + at + 1]]
                break
            place = block.find(name, place + 1, ends[count])


def places(firsts: Sequence[str], terms: Iterable[str]) -> dict[int, set[str]]:
    """Say in which block each term would be: number of the block -> terms.

    Args:
        firsts: the first term of each block.
    """
    result: dict[int, set[str]] = {}
    for term in terms:
        block = bisect_right(firsts, term) - 1
        if block >= 0:
            result.setdefault(block, set()).add(term)
    return result


def _encoded(term: str) -> bytes:
    return term.encode("utf-8", "surrogatepass")
