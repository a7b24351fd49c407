"""What lies above and beside each node, as arrays: the nodes level by level, and their neighbours in the text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int32]

SHORT = 40
"""A text of at most so many terms is read together with its neighbours; the longer it is, the less they say of it."""

MOST_LEVELS: Final = 1_000
"""How many levels down nodes are read together with what they lie in."""

_IN_SEQUENCE = frozenset({"page", "document", "conversation", "session"})
"""Kinds whose parts follow each other: what stands before and after a part belongs to it."""


class Nodes(Protocol):
    """What must be known of all nodes to place them, as arrays; `NodeTable` is it."""

    parent: Ints
    home: Ints
    alive: npt.NDArray[np.bool_]
    lengths: Floats

    @property
    def is_leaf(self) -> npt.NDArray[np.bool_]:
        """(n,) whether nothing hangs on the node."""
        ...

    def of_kind(self, kinds: Iterable[str]) -> npt.NDArray[np.bool_]:
        """Give a mask of the nodes of these kinds."""
        ...

    def __len__(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Ancestry:
    """The places of all nodes in the tree; the root is left out everywhere, since it stands for everything.

    What passes from node to node goes level by level, each node once. Lost: the ancestors of all nodes for each level,
    of which a chain of 20,000 nodes has gigabytes.
    """

    parent: Ints
    """(n,) what each node hangs on; -1 for what hangs on the root, or on nothing."""
    by_depth: tuple[Ints, ...]
    """The live nodes of each depth, down to `MOST_LEVELS`; what lies deeper is in none, and neither gives nor takes."""
    is_inner: npt.NDArray[np.bool_]
    """(n,) whether something hangs on the node."""
    lengths: Floats
    """(n,) terms in and below each node."""
    before: Ints
    """(n,) the neighbour before, inside the same text; -1 where there is none."""
    after: Ints
    nearness: Floats
    """(n,) how much the neighbours of a node count, in [0, 1]: 1 for short texts."""

    def sums_below(self, values: Floats) -> Floats:
        """Sum over each node and all that hangs on it: (n,)."""
        return _sums_below(values, self.parent, self.by_depth)

    def sums_above(self, values: Floats) -> Floats:
        """Sum over all that each node hangs on: (n,)."""
        sums = np.zeros_like(values)
        for nodes in self.by_depth[1:]:
            above = self.parent[nodes]
            sums[nodes] = sums[above] + values[above]
        return sums

    def products_above(self, values: Floats) -> Floats:
        """Multiply over all that each node hangs on: (n,), 1 for what hangs on the root."""
        products = np.ones_like(values)
        for nodes in self.by_depth[1:]:
            above = self.parent[nodes]
            products[nodes] = products[above] * values[above]
        return products

    def with_above(self, mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Add to a mask of nodes what they hang on."""
        wider = mask.copy()
        for nodes in reversed(self.by_depth[1:]):
            wider[self.parent[nodes[wider[nodes]]]] = True
        return wider

    def above(self, node: int) -> Iterator[int]:
        """Yield what a node hangs on, the nearest first, `MOST_LEVELS` at most."""
        for _ in range(MOST_LEVELS):
            node = int(self.parent[node])
            if node < 0:
                return
            yield node


def ancestry_of(table: Nodes) -> Ancestry:
    """Compute the places of all nodes."""
    n = len(table)
    parent = np.where(table.alive & (table.parent > 0), table.parent, np.int32(-1))
    live = np.flatnonzero(table.alive)[1:].astype(np.int32)
    by_depth = tuple(_levels(parent, live))
    before, after = _neighbours(table, live)
    own = table.lengths.sum(axis=1)
    return Ancestry(
        parent,
        by_depth,
        table.alive & ~table.is_leaf & (np.arange(n) > 0),
        _sums_below(np.where(table.alive, own, np.float32(0)), parent, by_depth),
        before,
        after,
        np.minimum(np.float32(1), SHORT / np.maximum(own, 1)).astype(np.float32),
    )


def _levels(parent: Ints, live: Ints) -> Iterator[Ints]:
    """Yield the live nodes of each depth, in their order, each looked at once."""
    by_parent = live[np.argsort(parent[live], kind="stable")]
    parents = parent[by_parent]
    level = by_parent[: np.searchsorted(parents, 0)]
    for _ in range(MOST_LEVELS):
        if not len(level):
            return
        yield level
        starts, ends = np.searchsorted(parents, level), np.searchsorted(parents, level, side="right")
        counts = ends - starts
        first = np.repeat(starts - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts)
        level = np.sort(by_parent[first + np.arange(counts.sum())])


def _sums_below(values: Floats, parent: Ints, by_depth: Sequence[Ints]) -> Floats:
    sums = values.copy()
    for nodes in reversed(by_depth[1:]):
        mine = nodes[sums[nodes] > 0]
        np.add.at(sums, parent[mine], sums[mine])
    return sums


def _neighbours(table: Nodes, live: Ints) -> tuple[Ints, Ints]:
    """Give the leaves before and after each leaf under the same parent, in the order in which they were numbered."""
    n = len(table)
    before, after = np.full(n, -1, dtype=np.int32), np.full(n, -1, dtype=np.int32)
    in_sequence = table.of_kind(_IN_SEQUENCE)
    leaves = live[table.is_leaf[live] & (table.parent[live] > 0)]
    leaves = leaves[in_sequence[table.home[leaves]] & (table.home[leaves] != leaves)]
    leaves = leaves[np.argsort(table.parent[leaves], kind="stable")]
    same = table.parent[leaves[1:]] == table.parent[leaves[:-1]]
    before[leaves[1:][same]] = leaves[:-1][same]
    after[leaves[:-1][same]] = leaves[1:][same]
    return before, after
