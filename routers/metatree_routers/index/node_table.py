"""What a query needs of every node at once, as arrays: parent, kind, lengths, segment."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from metatree_routers.index.ancestry import MOST_LEVELS, Ancestry, ancestry_of

RECORD = np.dtype(
    [
        ("parent", "<i4"),
        ("segment", "<i4"),
        ("content", "<u4"),
        ("title", "<u2"),
        ("about", "<u2"),
        ("kind", "u1"),
        ("role", "u1"),
        ("digit_density", "u1"),
        ("", "V1"),
    ]
)
"""One node. `segment` is -1 for a number without a node; `parent` is -1 for the root."""

CHUNK = 4096
"""NodeTable are stored in blobs of so many."""

HOME_KINDS = frozenset({"file", "page", "document", "conversation", "session", "history"})
"""Kinds whose parts are read as one text: a part's evidence counts for the whole, and the other way round."""

_STEPS = 64
"""Levels that are climbed one by one: few trees have more."""

Ints = npt.NDArray[np.int32]
T = TypeVar("T")


class NodeTable:
    """The records of all nodes at one moment; never changed, so it can be shared between threads.

    Args:
        data: (n,) array of `RECORD`, indexed by node number.
        kinds: name of each kind number.
    """

    def __init__(self, data: npt.NDArray[Any], kinds: tuple[str, ...]) -> None:
        self.kinds = kinds
        self._concluded: dict[Callable[[NodeTable], Any], Any] = {}
        self.parent: Ints = np.ascontiguousarray(data["parent"])
        self.segment: Ints = np.ascontiguousarray(data["segment"])
        self.kind: npt.NDArray[np.uint8] = np.ascontiguousarray(data["kind"])
        self.digit_density: npt.NDArray[np.uint8] = np.ascontiguousarray(data["digit_density"])
        """(n,) how much of each content is digits; see the function `digit_density`."""
        self.lengths: npt.NDArray[np.float32] = np.stack(
            [data["title"], data["about"], data["content"]], axis=1
        ).astype(np.float32)
        """(n, 3) terms in title, about and content."""
        self.alive: npt.NDArray[np.bool_] = self._reached()
        """(n,) whether the number has a node that hangs on the root."""
        self.n_texts = max(0, int(np.count_nonzero(self.alive)) - 1)
        """How many nodes have words of their own: all but the root."""
        self.home: Ints = self._homes()
        """(n,) the nearest node, itself or above, that is read as one text; the node itself when there is none."""
        self.role: npt.NDArray[np.uint8] = data["role"][self.home]
        """(n,) the `Role` of the file that each node is of."""
        self.homes: Ints = np.flatnonzero(self.of_kind(HOME_KINDS) & self.alive).astype(np.int32)
        """(h,) the nodes that are read as one text."""
        self.home_row: Ints = self._home_rows()
        """(n,) where in `homes` the home of a node is; -1 for a node without one."""

    def __len__(self) -> int:
        return len(self.parent)

    @cached_property
    def is_leaf(self) -> npt.NDArray[np.bool_]:
        """(n,) whether nothing hangs on the node."""
        leaf = np.ones(len(self), dtype=bool)
        leaf[self.parent[self.alive & (self.parent >= 0)]] = False
        return leaf

    @cached_property
    def ancestry(self) -> Ancestry:
        """What lies above and beside each node."""
        return ancestry_of(self)

    def once(self, make: Callable[[NodeTable], T]) -> T:
        """Return what a function concludes from these records alone: asked once, and changed by nobody."""
        if make not in self._concluded:
            self._concluded[make] = make(self)
        result: T = self._concluded[make]
        return result

    def of_kind(self, kinds: Iterable[str]) -> npt.NDArray[np.bool_]:
        """Give a mask of the nodes of these kinds."""
        wanted = np.zeros(256, dtype=bool)
        wanted[[number for number, kind in enumerate(self.kinds) if kind in set(kinds)]] = True
        return np.asarray(wanted[self.kind])

    def _reached(self) -> npt.NDArray[np.bool_]:
        present = self.segment >= 0
        reached: npt.NDArray[np.bool_] = _ends(np.where(present, self.parent, np.int32(-1)), present) == 0
        return present & reached

    def _homes(self) -> Ints:
        home = np.arange(len(self), dtype=np.int32)
        is_home = self.of_kind(HOME_KINDS)
        return self._climb(home, is_home, default=home)

    def _home_rows(self) -> Ints:
        row = np.full(len(self), -1, dtype=np.int32)
        row[self.homes] = np.arange(len(self.homes), dtype=np.int32)
        return np.where(self.alive, row[self.home], np.int32(-1))

    def _climb(self, nodes: Ints, targets: npt.NDArray[np.bool_], default: Ints) -> Ints:
        """Give, for each node, the nearest target at or above it."""
        result = default.copy()
        open_ = np.flatnonzero(self.alive[nodes])
        at = nodes[open_]
        for _ in range(_STEPS):
            hit = targets[at]
            result[open_[hit]] = at[hit]
            up = self.parent[at]
            climbing = ~hit & (up >= 0)
            at, open_ = up[climbing], open_[climbing]
            if not len(open_):
                return result
        ends = _ends(np.where(targets, np.int32(-1), self.parent), self.alive)[at]
        hit = targets[ends]
        result[open_[hit]] = ends[hit]
        return result

    def nearest(self, nodes: Ints, targets: Iterable[int]) -> Ints:
        """Give, for each node, the nearest of the targets at or above it; -1 when there is none."""
        mask = np.zeros(len(self), dtype=bool)
        mask[list(targets)] = True
        return self._climb(np.asarray(nodes, dtype=np.int32), mask, np.full(len(nodes), -1, dtype=np.int32))

    def best_below(self, scores: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Give, for each node, the best score at it or up to `MOST_LEVELS` below it; `scores` has one for each node."""
        best = scores.copy()
        at = np.flatnonzero(scores > 0).astype(np.int32)
        values = scores[at]
        for _ in range(MOST_LEVELS):
            if not len(at):
                break
            up = self.parent[at]
            inside = up >= 0
            at, values = up[inside], values[inside]
            better = values > best[at]
            at, values = at[better], values[better]
            np.maximum.at(best, at, values)
        return best


def _ends(up: Ints, present: npt.NDArray[np.bool_]) -> Ints:
    """Give, for each node, the end of its way up, from node to node: (n,).

    In twice as many steps at a time (pointer jumping; Wyllie 1979), so that a chain of any length takes few. Links
    that were read at different moments may form a circle: its nodes end on themselves, somewhere.

    Args:
        up: (n,) where each node leads, -1 where its way ends.
        present: (n,) the nodes that are there; a way that comes to another one ends on it.
    """
    own = np.arange(len(up), dtype=np.int32)
    ends = np.where((up >= 0) & present, up, own)
    for _ in range(len(up).bit_length()):
        further = ends[ends]
        if np.array_equal(further, ends):
            break
        ends = further
    return ends
