"""metatree, and a greedy descent with metatree's own prompts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks.peers.made_tree import Code, MadeTree, written
from benchmarks.peers.prompts import StubReader, StubRouter, decide, read
from benchmarks.peers.stub import Stub
from metatree import Evidence, Node, Option, ReadRequest, RouteRequest, Tree, search
from metatree.testing.parts import PlainComposer, PlainDescriber, ScriptedToolCaller


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
    """metatree's search, with the stub as its router's and its reader's model."""

    def __init__(
        self, tree: Tree, stub: Stub, *, router: StubRouter | None = None, evidence: Evidence | None = None
    ) -> None:
        self._tree = tree
        self._evidence = evidence
        self._router = router or StubRouter(stub)
        self._reader = StubReader(stub)

    def search(self, question: str) -> str:
        return search(
            question,
            tree=self._tree,
            router=self._router,
            reader=self._reader,
            tool_caller=ScriptedToolCaller({}),
            composer=PlainComposer(),
            describer=PlainDescriber(),
            evidence=self._evidence or False,
        ).answer


class Greedy:
    """Goes down by one choice at each level, reads the leaf where it ends, and stops."""

    def __init__(self, made: MadeTree, stub: Stub) -> None:
        self._made = made
        self._stub = stub

    def search(self, question: str) -> str:
        made = self._made
        here: Code = ()
        while children := made.children(here):
            node = node_of(made, here) if here else Node(id=".", title="Root")
            options = tuple(Option(written(c), made.title(c), made.description(c)) for c in children)
            decision = decide(self._stub, RouteRequest((question,), "", node, options))
            chosen = next((c for c in children if written(c) == decision.choice), None)
            if chosen is None:
                return ""
            here = chosen
        node = node_of(made, here)
        reading = read(self._stub, ReadRequest(node, made.content(here), (question,)))
        return reading.answers[0].answer if reading.answers else ""
