"""metatree with its shipped prompts, and a greedy descent with the same prompts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

from benchmarks.peers.made_tree import Code, MadeTree, written
from benchmarks.peers.shipped import shipped
from benchmarks.peers.stub import Stub
from metatree import Evidence, Node, Option, ReadRequest, Router, RouteRequest, Tree, search


def make_tree(made: MadeTree, path: Path | None) -> Tree:
    """Lay the made tree out as a metatree, in a file or in memory."""
    tree = Tree.create(":memory:" if path is None else path)
    tree.add_many(_nodes(made, tree.root))
    return tree


def _nodes(made: MadeTree, root: str) -> Iterator[tuple[Node, str]]:
    for code in made.walk():
        yield node_of(made, code), written(code[:-1]) or root


def node_of(made: MadeTree, code: Code) -> Node:
    """Return the node of a code."""
    content = made.content(code) if len(code) == made.depth else None
    return Node(id=written(code), title=made.title(code), description=made.description(code), content=content)


class Metatree:
    """metatree's search, with a router and the reader that it brings.

    Args:
        tree: what is searched.
        router: makes the router, anew for each condition: what one model was worth says nothing of the next.
        evidence: the text index; False for none.
    """

    def __init__(
        self, tree: Tree, router: Callable[[], Router], evidence: Evidence | Literal[False] = False
    ) -> None:
        self._tree, self._make, self._evidence = tree, router, evidence
        self._router = router()

    def begin(self) -> None:
        """Forget what is known of the model."""
        self._router = self._make()

    def search(self, question: str) -> str:
        return search(question, tree=self._tree, router=self._router, evidence=self._evidence).answer


class Greedy:
    """Goes down by one choice at each level, reads the leaf where it ends, and stops."""

    def __init__(self, made: MadeTree, stub: Stub) -> None:
        self._made = made
        self._suite = shipped(stub).suite()

    def search(self, question: str) -> str:
        return asyncio.run(self._descend(question))

    async def _descend(self, question: str) -> str:
        made = self._made
        here: Code = ()
        while children := made.children(here):
            node = node_of(made, here) if here else Node(id=".", title="Root")
            options = tuple(Option(written(c), made.title(c), made.description(c)) for c in children)
            decision = await self._suite.router.route(RouteRequest((question,), "", node, options))
            chosen = next((c for c in children if written(c) == decision.choice), None)
            if chosen is None:
                return ""
            here = chosen
        node = node_of(made, here)
        reading = await self._suite.reader.read(ReadRequest(node, made.content(here), (question,)))
        return reading.answers[0].answer if reading.answers else ""
