"""What lies above and beside each node, as arrays: its ancestors level by level, and its neighbours in the text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int32]

SHORT = 40
"""A text of at most so many terms is read together with its neighbours; the longer it is, the less they say of it."""

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
    """The places of all nodes in the tree; the root is left out everywhere, since it stands for everything."""

    above: tuple[Ints, ...]
    """(n,) for each level: the parent, its parent, …; -1 where there is none."""
    depth: Ints
    """(n,) how many ancestors each node has."""
    by_depth: tuple[Ints, ...]
    """The live nodes of each depth."""
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
        sums = values.copy()
        for nodes in reversed(self.by_depth[1:]):
            mine = nodes[sums[nodes] > 0]
            np.add.at(sums, self.above[0][mine], sums[mine])
        return sums


def ancestry_of(table: Nodes) -> Ancestry:
    """Compute the places of all nodes."""
    n = len(table)
    parent = np.where(table.alive & (table.parent > 0), table.parent, np.int32(-1))
    above: list[Ints] = []
    depth = np.zeros(n, dtype=np.int32)
    at = parent
    while (at >= 0).any():
        above.append(at)
        depth += at >= 0
        at = np.where(at >= 0, parent[np.maximum(at, 0)], np.int32(-1))
    live = np.flatnonzero(table.alive)[1:]
    by_depth = tuple(live[depth[live] == level].astype(np.int32) for level in range(len(above) + 1))
    before, after = _neighbours(table, live)
    own = table.lengths.sum(axis=1)
    ancestry = Ancestry(
        tuple(above),
        depth,
        by_depth,
        table.alive & ~table.is_leaf & (np.arange(n) > 0),
        own,
        before,
        after,
        np.minimum(np.float32(1), SHORT / np.maximum(own, 1)).astype(np.float32),
    )
    return Ancestry(
        ancestry.above,
        depth,
        by_depth,
        ancestry.is_inner,
        ancestry.sums_below(np.where(table.alive, own, np.float32(0))),
        before,
        after,
        ancestry.nearness,
    )


def _neighbours(table: Nodes, live: npt.NDArray[np.intp]) -> tuple[Ints, Ints]:
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
