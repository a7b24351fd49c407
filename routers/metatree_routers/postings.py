"""Posting lists: which nodes hold a term, how often, and in which field.

A posting list is a numpy record array of `POSTING`. A batch of nodes becomes one segment: a posting list for each
term, written once and never changed; a later segment supersedes what an earlier one says of the same node.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from metatree_routers.text import Vocabulary

POSTING = np.dtype([("node", "<i4"), ("content", "<u2"), ("title", "u1"), ("about", "u1")])
"""One node that holds a term: its number, and how often the term is in each field (saturating)."""

FIELDS = ("title", "about", "content")
_LIMITS = (255, 255, 65_535)
_N_FIELDS = len(FIELDS)

Postings = npt.NDArray[Any]
"""(n,) array of `POSTING`."""


class SegmentBuilder:
    """Collects the texts of nodes and turns them into posting lists; not shared between threads.

    Args:
        vocabulary: one that other batches have filled, so that words known from there cost less.
    """

    def __init__(self, vocabulary: Vocabulary | None = None) -> None:
        self._vocabulary = Vocabulary() if vocabulary is None else vocabulary
        self._nodes = array("i")
        self._raw = array("i")
        self._ends = array("q")
        self._exact_terms = array("q")
        self._exact_slots = array("q")

    def __len__(self) -> int:
        return len(self._nodes)

    @property
    def raw_tokens(self) -> int:
        """How many raw tokens were added: a measure of the memory that `build` takes (about 40 bytes each)."""
        return len(self._raw)

    def add(self, node: int, *, title: str, about: str, content: str, exact: Iterable[str] = ()) -> None:
        """Add the text of one node, once for each node.

        Args:
            exact: terms that are kept as they are, as part of the title; they do not count for its length.
        """
        slot = len(self._nodes) * _N_FIELDS
        self._nodes.append(node)
        for text in (title, about, content):
            if text:
                self._raw.extend(self._vocabulary.encode(text))
            self._ends.append(len(self._raw))
        for term in exact:
            self._exact_terms.append(self._vocabulary.number(term))
            self._exact_slots.append(slot)

    def build(self) -> Segment:
        """Give the posting lists and the lengths of the nodes added so far."""
        n_slots = max(len(self._ends), _N_FIELDS)
        raw = np.frombuffer(self._raw, dtype=np.int32) if self._raw else np.zeros(0, np.int32)
        ends = np.frombuffer(self._ends, dtype=np.int64) if self._ends else np.zeros(n_slots, np.int64)
        slots = np.repeat(np.arange(n_slots, dtype=np.int64), np.diff(ends, prepend=0))
        term, slot = _expand(raw, slots, *self._vocabulary.expand_all())
        lengths = np.bincount(slot, minlength=n_slots).reshape(-1, _N_FIELDS)
        if self._exact_terms:
            term = np.concatenate([term, np.frombuffer(self._exact_terms, dtype=np.int64)])
            slot = np.concatenate([slot, np.frombuffer(self._exact_slots, dtype=np.int64)])
        keys = term * n_slots + slot
        keys.sort()
        starts = np.flatnonzero(np.diff(keys, prepend=-1))
        times = np.diff(starts, append=len(keys))
        keys = keys[starts]
        return _segment(
            self._vocabulary.terms,
            np.array(self._nodes, dtype=np.int32),
            lengths,
            keys // n_slots,
            keys % n_slots,
            times,
        )


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

    def lists(self) -> Iterator[tuple[str, bytes]]:
        """Yield each term, in order, with its posting list as bytes."""
        data = self._records.tobytes()
        size = POSTING.itemsize
        starts = self._starts.tolist()
        for number in sorted(range(len(self._terms)), key=self._terms.__getitem__):
            if starts[number] == starts[number + 1]:  # a word of another batch
                continue
            yield self._terms[number], data[starts[number] * size : starts[number + 1] * size]

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


def _expand(
    raw: npt.NDArray[np.int32], slots: npt.NDArray[np.int64], terms: array[int], counts: array[int]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Replace each raw token by its terms."""
    # Copies, since an array whose buffer is shared cannot grow.
    sizes, flat = np.array(counts, dtype=np.int64), np.array(terms, dtype=np.int64)
    first = np.cumsum(sizes) - sizes
    times = sizes[raw]
    total = int(times.sum())
    within = np.arange(total, dtype=np.int64) - np.repeat(np.cumsum(times) - times, times)
    return flat[np.repeat(first[raw], times) + within], np.repeat(slots, times)


def _segment(
    terms: list[str],
    nodes: npt.NDArray[np.int32],
    lengths: npt.NDArray[np.int64],
    term: npt.NDArray[np.int64],
    slot: npt.NDArray[np.int64],
    times: npt.NDArray[np.int64],
) -> Segment:
    """Join the three fields of the same term and node to one posting; `term` and `slot` are sorted."""
    position, field = slot // _N_FIELDS, slot % _N_FIELDS
    first = np.ones(len(term), dtype=bool)
    if len(term):
        first[1:] = (np.diff(term) != 0) | (np.diff(position) != 0)
    group = np.cumsum(first) - 1
    records = np.zeros(int(first.sum()), dtype=POSTING)
    records["node"] = nodes[position[first]] if len(term) else 0
    for number, (name, limit) in enumerate(zip(FIELDS, _LIMITS, strict=True)):
        mine = field == number
        records[name][group[mine]] = np.minimum(times[mine], limit)
    starts = np.searchsorted(term[first], np.arange(len(terms) + 1))
    return Segment(terms, starts.astype(np.int64), records, nodes, lengths[: len(nodes)])
