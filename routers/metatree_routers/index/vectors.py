"""The vectors of a small tree's nodes: they follow the tree when a question needs them, not when it is indexed.

Loading the embeddings takes longer than indexing the words of a small tree; a question loads them anyway. In a large
tree, vectors are made for the candidates of a question only, and none are kept.

Vectors are made of title, description and beginning: better than the best of several passages (the beginning of a
page says what it is), in a third of the time. MiniLM's, which are slow, are made when the tree is indexed. Lost:
making them with the words, which was half of what indexing a small tree cost, and left out those of a tree that had
been large.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from metatree.node import Node
from metatree_routers.embeddings.static import Embedder, quantise
from metatree_routers.index.fields import NodeText
from metatree_routers.index.store import VECTOR_CHUNK, IndexStore

MOST_VECTORS = 5_000
"""Up to so many nodes, the vectors of all are kept, so that a node without a common word can be found."""

Progress = Callable[[int, int], None]
"""Called with (nodes done, nodes to do)."""


class FollowedTree(Protocol):
    """What is needed of a tree; `metatree.trees.tree.Tree` has it."""

    def changes(self, since: int) -> Iterator[tuple[int, str, bool]]: ...
    def texts(self, ids: Iterable[str]) -> Iterator[tuple[Node, str | None, str]]: ...
    def __len__(self) -> int: ...


class NodeVectors:
    """The vectors of all nodes that are indexed; threads may share it.

    Args:
        store: where they are kept, with the numbers of the nodes; where nothing can be written, they are made for
            this process alone.
        embedder: gives what makes them, asked when it is needed; None for no vectors.
        embedding: its name; vectors of another one are made again.
    """

    def __init__(
        self,
        tree: FollowedTree,
        store: IndexStore,
        embedder: Callable[[], Embedder | None] | None,
        embedding: str,
    ) -> None:
        self._tree = tree
        self._store = store
        self._embedder = embedder
        self._embedding = embedding
        self._lock = threading.Lock()
        self._known: tuple[int, npt.NDArray[np.int8]] | None = None

    def refresh(self, progress: Progress | None = None) -> npt.NDArray[np.int8]:
        """Make the vectors of nodes that are new or changed since the last time; cheap when none are.

        What is done is kept as it goes, so work that is cut off goes on where it was.

        Returns:
            (n, dimensions) by number of the node; zeros for one that has no tokens. Numbers may lie behind the end.
        """
        embedder = self._embedder() if self._embedder is not None else None
        if embedder is None:
            return np.zeros((0, 0), np.int8)
        with self._lock:
            while True:
                generation = self._store.generation()
                if self._known is not None and self._known[0] == generation:
                    return self._known[1]
                vectors = self._followed(generation, embedder, progress)
                if vectors is not None:
                    self._known = generation, vectors
                    return vectors

    def _followed(
        self, generation: int, embedder: Embedder, progress: Progress | None
    ) -> npt.NDArray[np.int8] | None:
        """Bring what is kept up to date; None when somebody else has changed the index meanwhile."""
        since, vectors = self._store.vectors(self._embedding)
        done, store = 0, self._store
        for until, ids in self._changed(since, store.sequence()):
            heads = {node.id: _head(node, content) for node, _, content in self._tree.texts(ids)}
            numbers = store.numbers(heads)
            rows = np.array(list(numbers.values()), dtype=np.int64)
            vectors = _placed(vectors, rows, quantise(embedder.embed([heads[id_] for id_ in numbers])))
            if not store.write_vectors(generation, self._embedding, (since, until), rows, vectors):
                return None
            since = until
            done += len(ids)
            if progress is not None:
                progress(done, max(len(self._tree), done))
        return vectors

    def _changed(self, since: int, end: int) -> Iterator[tuple[int, list[str]]]:
        """Yield (sequence number reached, ids of nodes) for what the index has taken in, some nodes at a time."""
        ids: dict[str, None] = {}
        for sequence, group in groupby(self._tree.changes(since), key=lambda change: change[0]):
            if sequence > end:
                break
            ids.update((id_, None) for _, id_, there in group if there)
            if len(ids) >= VECTOR_CHUNK:
                yield sequence, list(ids)
                ids.clear()
        if since < end:
            yield end, list(ids)


def _head(node: Node, content: str) -> str:
    """Return what the vector of a node is made of; the root stands for everything, and says nothing."""
    return (NodeText("", "", "") if node.id == "." else NodeText.of(node, content)).head()


def _placed(vectors: npt.NDArray[np.int8], rows: npt.NDArray[np.int64], fresh: Any) -> npt.NDArray[np.int8]:
    """Put vectors into their rows, in an array that is large enough: the one before may be read meanwhile."""
    if not len(rows):
        return vectors
    larger = np.zeros((max(len(vectors), int(rows.max()) + 1), fresh.shape[1]), dtype=np.int8)
    if len(vectors):
        larger[: len(vectors)] = vectors
    larger[rows] = fresh
    return larger
