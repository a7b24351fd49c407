"""Posting lists: which nodes hold a term, how often, and in which field.

A posting list is a numpy record array of `POSTING`. A batch of nodes becomes one segment: a posting list for each
term, written once and never changed; a later segment supersedes what an earlier one says of the same node.

A batch is sorted by the order of its terms, not by their numbers, so posting lists lie as they are written and a
block is one copy. Words become terms piece by piece: the memory of an array over the whole batch costs more to get
from the system than to fill.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from metatree_routers.index._posting_blocks import pack_joined
from metatree_routers.index.vocabulary import TEXT_END, Vocabulary, spaced_texts

POSTING = np.dtype([("node", "<i4"), ("content", "<u2"), ("title", "u1"), ("about", "u1")])
"""One node that holds a term: its number, and how often the term is in each field (saturating)."""

FIELDS = ("title", "about", "content")
_LIMITS = (255, 255, 65_535)
_FIELD_BITS = 2
_SLOTS = 1 << _FIELD_BITS
"""Places of a node in the stream of texts: one for each field, and one that stays empty."""
_PENDING_CHARS = 1 << 18
_PIECE = 1 << 16
TOKEN_CHARS = 8
"""A raw token takes about so many characters of code; texts that are not cut yet are counted by it."""

Postings = npt.NDArray[Any]
"""(n,) array of `POSTING`."""


class SegmentBuilder:
    """Collects the texts of nodes and turns them into posting lists; not shared between threads.

    Args:
        vocabulary: one that other batches have filled, so that words known from there cost less.
    """

    def __init__(self, vocabulary: Vocabulary | None = None) -> None:
        self._vocabulary = Vocabulary() if vocabulary is None else vocabulary
        self._words_before = self._vocabulary.words
        self._nodes = array("i")
        self._raw = array("i")
        self._pending: list[str] = []
        self._pending_chars = 0
        self._exact_terms = array("q")
        self._exact_slots = array("q")

    def __len__(self) -> int:
        return len(self._nodes)

    @property
    def raw_tokens(self) -> int:
        """About how many raw tokens were added: a measure of the memory that `build` takes (about 40 bytes each)."""
        return len(self._raw) + self._pending_chars // TOKEN_CHARS + len(self._pending)

    @property
    def new_words(self) -> int:
        """How many words came up that the vocabulary did not have (some 300 bytes each, at the end)."""
        return self._vocabulary.words - self._words_before

    def add(self, node: int, *, title: str, about: str, content: str, exact: Iterable[str] = ()) -> None:
        """Add the text of one node, once for each node.

        Args:
            exact: terms that are kept as they are, as part of the title; they do not count for its length.
        """
        self._add_exact(node, exact)
        self._pending += fields_of(title, about, content)
        self._pending_chars += len(title) + len(about) + len(content)
        if self._pending_chars > _PENDING_CHARS:
            self._cut()

    def add_spaced(self, nodes: Iterable[tuple[int, Iterable[str]]], spaced: bytes) -> None:
        """Add the texts of many nodes, each with its exact terms; `spaced` are all their `fields_of`, one by one."""
        self._cut()
        for node, exact in nodes:
            self._add_exact(node, exact)
        self._raw.extend(self._vocabulary.encode_all(spaced))

    def _add_exact(self, node: int, exact: Iterable[str]) -> None:
        slot = len(self._nodes) << _FIELD_BITS
        self._nodes.append(node)
        for term in exact:
            self._exact_terms.append(self._vocabulary.number(term))
            self._exact_slots.append(slot)

    def _cut(self) -> None:
        """Cut the texts that wait, all together: most are a few words, and each call costs more than these."""
        self._raw.extend(self._vocabulary.encode_all(spaced_texts(self._pending)))
        self._pending.clear()
        self._pending_chars = 0

    def build(self) -> Segment:
        """Give the posting lists and the lengths of the nodes added so far."""
        self._cut()
        raw = np.frombuffer(self._raw, dtype=np.int32) if self._raw else np.zeros(0, np.int32)
        flat, sizes = (np.array(each, dtype=np.int64) for each in self._vocabulary.expand_all())
        exact = (
            np.frombuffer(self._exact_terms, dtype=np.int64) if self._exact_terms else np.zeros(0, np.int64)
        )
        terms, rank = _in_order(self._vocabulary.terms, exact, raw, flat, sizes)
        # A key is a term's place above a slot; the terms of the vocabulary become keys, so that those of the texts are.
        shift = max(((len(self._nodes) << _FIELD_BITS) - 1).bit_length(), _FIELD_BITS)
        rank <<= shift
        keys, lengths = _expand(raw, rank[flat], sizes)
        if len(exact):
            slots = np.frombuffer(self._exact_slots, dtype=np.int64)
            keys = np.concatenate([keys, rank[exact] | slots])
        keys.sort()
        nodes = np.array(self._nodes, dtype=np.int32)
        lengths = lengths.reshape(-1, _SLOTS)[:, : len(FIELDS)]
        return _segment(terms, nodes, lengths, keys, shift)


def fields_of(title: str, about: str, content: str) -> tuple[str, ...]:
    """Return the texts of a node in the order of their places in the stream; see `spaced_texts`."""
    return title, about, content, ""


class Segment:
    """The posting lists of a batch of nodes."""

    def __init__(
        self, terms: list[str], starts: npt.NDArray[np.int64], records: Postings, nodes: Any, lengths: Any
    ) -> None:
        self._terms = terms
        self._starts = starts
        self._records = records
        self.nodes: npt.NDArray[np.int32] = nodes
        """(n,) numbers of the nodes of the batch, in the order they were added."""
        self.lengths: npt.NDArray[np.int64] = lengths
        """(n, 3) terms in title, about and content."""

    def blocks(self) -> Iterator[tuple[str, bytes]]:
        """Yield the posting lists of all terms in blocks, see `_posting_blocks`, each with its first term."""
        return pack_joined(
            self._terms, self._records.view(np.uint8).data, self._starts[1:] * POSTING.itemsize
        )

    def postings(self, term: str) -> Postings:
        """Give the posting list of one term; for tests and experiments, since it searches."""
        number = self._terms.index(term) if term in self._terms else -1
        return (
            self._records[self._starts[number] : self._starts[number + 1]]
            if number >= 0
            else self._records[:0]
        )


def decode(data: bytes) -> Postings:
    """Give a posting list back from its bytes, without a copy."""
    return np.frombuffer(data, dtype=POSTING)


def _in_order(
    known: list[str],
    exact: npt.NDArray[np.int64],
    raw: npt.NDArray[np.int32],
    flat: npt.NDArray[np.int64],
    sizes: npt.NDArray[np.int64],
) -> tuple[list[str], npt.NDArray[np.int64]]:
    """Give the terms of a batch in order, and the place of each term of the vocabulary among them.

    Sorting by place instead of number lays the posting lists one behind the other as they are written.
    """
    here = np.zeros(len(sizes), dtype=bool)
    here[raw] = True
    used = np.zeros(len(known), dtype=bool)  # the vocabulary has words of other batches too
    used[flat[np.repeat(here, sizes)]] = True
    used[exact] = True
    numbers = np.flatnonzero(used).tolist()
    numbers.sort(key=known.__getitem__)
    rank = np.zeros(len(known), dtype=np.int64)
    rank[numbers] = np.arange(len(numbers))
    return [known[number] for number in numbers], rank


def _expand(
    raw: npt.NDArray[np.int32], keys: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Replace each raw token by the keys of its terms, with the slot; give the number of terms of each slot too.

    It goes by pieces, since the memory of a large array costs more to get from the system than to fill.
    """
    starts = np.cumsum(sizes) - sizes
    pieces = [raw[at : at + _PIECE] for at in range(0, len(raw), _PIECE)]
    result = np.empty(sum(int(sizes[piece].sum()) for piece in pieces), dtype=np.int64)
    text_ends = [np.zeros(1, np.int64)]
    done = slot = 0
    for piece in pieces:
        times = sizes[piece]
        ends = np.cumsum(times)
        total = int(ends[-1])
        marks = piece == TEXT_END  # each text ends with one, which has no term
        text_ends.append(ends[marks] + done)
        at = np.repeat(starts[piece] + times - ends, times)
        at += np.arange(total)
        keys_here = result[done : done + total]
        np.take(keys, at, out=keys_here)
        keys_here |= np.repeat(np.cumsum(marks) + slot, times)
        done += total
        slot += int(np.count_nonzero(marks))
    borders = np.concatenate(text_ends)
    return result, borders[1:] - borders[:-1]


def _segment(
    terms: list[str],
    nodes: npt.NDArray[np.int32],
    lengths: npt.NDArray[np.int64],
    keys: npt.NDArray[np.int64],
    shift: int,
) -> Segment:
    """Join the fields of the same term and node to one posting; `keys` are sorted."""
    starts = np.flatnonzero(_changes(keys))
    times = np.diff(starts, append=len(keys))
    keys = keys[starts]
    field = (keys & _SLOTS - 1).astype(np.uint8)
    keys >>= _FIELD_BITS
    first = _changes(keys)
    group = np.cumsum(first) - 1
    keys = keys[first]
    records = np.zeros(len(keys), dtype=POSTING)
    shift -= _FIELD_BITS
    records["node"] = nodes[keys & (1 << shift) - 1] if len(keys) else 0
    for number, (name, limit) in enumerate(zip(FIELDS, _LIMITS, strict=True)):
        mine = np.flatnonzero(field == number)
        records[name][group[mine]] = np.minimum(times[mine], limit)
    ends = np.searchsorted(keys, np.arange(len(terms) + 1) << shift)
    return Segment(terms, ends.astype(np.int64), records, nodes, lengths)


def _changes(keys: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Say which keys are others than the one before."""
    changes = np.ones(len(keys), dtype=bool)
    np.not_equal(keys[1:], keys[:-1], out=changes[1:])
    return changes
