"""The texts of nodes by their numbers in the index, read from the tree when a closer look is taken."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from metatree.node import Node
from metatree_routers.index.fields import NodeText
from metatree_routers.index.index import IndexedTree, IndexSnapshot


class NodeTexts:
    """The texts of nodes by number; for the signals that read them."""

    def __init__(self, tree: IndexedTree, snapshot: IndexSnapshot) -> None:
        self._tree = tree
        self._snapshot = snapshot

    def _of(self, numbers: Sequence[int], take: Callable[[Node, str], str]) -> list[str]:
        ids = self._snapshot.ids(numbers)
        texts = {node.id: take(node, content) for node, _, content in self._tree.texts(sorted(ids.values()))}
        return [texts.get(ids[number], "") for number in numbers]

    def nodes(self, numbers: Sequence[int]) -> dict[int, tuple[Node, str]]:
        """Return (node, content) of those of the nodes that are there."""
        ids = self._snapshot.ids(numbers)
        of = {id_: number for number, id_ in ids.items()}
        return {of[node.id]: (node, content) for node, _, content in self._tree.texts(sorted(of))}

    def importers(self, ids: Collection[str]) -> dict[str, int]:
        """Return by how many files each of these files is imported; those that none imports are left out."""
        return self._tree.link_totals(ids, "imports")

    def heads(self, numbers: Sequence[int]) -> list[str]:
        """Return the beginnings that vectors are made of."""
        return self._of(numbers, lambda node, content: NodeText.of(node, content).head())

    def titles(self, numbers: Sequence[int]) -> list[str]:
        """Return the titles."""
        ids = self._snapshot.ids(numbers)
        titles = {node.id: node.title for node in self._tree.nodes(ids.values())}
        return [titles.get(ids[number], "") for number in numbers]

    def contents(self, numbers: Sequence[int]) -> list[str]:
        """Return the contents, or the descriptions of nodes without any."""
        return self._of(numbers, lambda node, content: content or node.description)

    def signatures(self, numbers: Sequence[int]) -> list[str]:
        """Return the titles, descriptions and contents."""
        return self._of(numbers, lambda node, content: f"{node.title}\n{node.description}\n{content}")
