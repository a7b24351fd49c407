"""Any sequence of changes, checked against a tree made of dictionaries."""

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from metatree.errors import UnknownNode, UserError
from metatree.node import Node
from metatree.storage.store import Store
from metatree.trees.edits import create_root
from metatree.trees.layer import BUILT_GAP, ROOT, Layer
from metatree.trees.tree import Tree
from tests.profiles import examples

IDS = [f"n{number}" for number in range(12)]
BUILT = {
    "src": ROOT, "src/a.py": "src", "src/a.py::f": "src/a.py", "src/a.py::g": "src/a.py", "src/b.py": "src",
    "docs": ROOT,
}  # fmt: skip
names = st.sampled_from([*IDS, *BUILT])
anything = st.sampled_from([*IDS, *BUILT, ROOT])


class Changes(RuleBasedStateMachine):
    """One-file trees and built trees take the same changes, and an index that follows them has what they have."""

    @initialize(built=st.booleans())
    def start(self, built: bool) -> None:
        self.children: dict[str, list[str]] = {ROOT: []}
        self.titles = {ROOT: "root"}
        index = None
        if built:
            index = Store.open(":memory:")
            create_root(Layer(index), Node(ROOT, "root", kind="folder"))
            with index.transaction():
                layer = Layer(index)
                for number, (node_id, parent) in enumerate(BUILT.items()):
                    layer.insert(
                        [
                            (
                                number + 2,
                                Node(node_id, node_id, digest=node_id),
                                parent,
                                (number + 1) * BUILT_GAP,
                            )
                        ]
                    )
            for node_id, parent in BUILT.items():
                self.children[node_id] = []
                self.children[parent].append(node_id)
                self.titles[node_id] = node_id
            self.tree = Tree(Store.open(":memory:"), index)
        else:
            self.tree = Tree.create(title="root")
        self.index: dict[str, str] = {}
        self.token = 0

    def parent_of(self, node_id: str) -> str | None:
        return next((parent for parent, below in self.children.items() if node_id in below), None)

    def take_out(self, node_id: str) -> None:
        next(below for below in self.children.values() if node_id in below).remove(node_id)

    def subtree(self, node_id: str) -> list[str]:
        return [node_id, *(inner for child in self.children[node_id] for inner in self.subtree(child))]

    def place(self, node_id: str, parent: str, before: str | None) -> None:
        siblings = self.children[parent]
        siblings.insert(siblings.index(before) if before else len(siblings), node_id)

    def some_before(self, parent: str, choice: int, *, but: str | None = None) -> str | None:
        options = [None, *(child for child in self.children.get(parent, ()) if child != but)]
        return options[choice % len(options)]

    @rule(node_id=names, parent=anything, choice=st.integers(0, 5), title=st.sampled_from("xyz"))
    def add(self, node_id: str, parent: str, choice: int, title: str) -> None:
        before = self.some_before(parent, choice)
        if parent not in self.children:
            with pytest.raises(UnknownNode):
                self.tree.add(Node(node_id, title), parent)
        elif node_id in self.children:
            with pytest.raises(UserError, match="exists"):
                self.tree.add(Node(node_id, title), parent)
        else:
            self.tree.add(Node(node_id, title), parent, before=before)
            self.children[node_id] = []
            self.titles[node_id] = title
            self.place(node_id, parent, before)

    @rule(picked=st.lists(st.tuples(names, anything), max_size=4))
    def add_many(self, picked: list[tuple[str, str]]) -> None:
        new = {}
        for node_id, parent in picked:
            if (
                node_id not in self.children
                and node_id not in new
                and (parent in self.children or parent in new)
            ):
                new[node_id] = parent
        assert self.tree.add_many((Node(node_id, "many"), parent) for node_id, parent in new.items()) == len(
            new
        )
        for node_id, parent in new.items():
            self.children[node_id] = []
            self.titles[node_id] = "many"
            self.children[parent].append(node_id)

    @rule(node_id=anything, parent=anything, choice=st.integers(0, 5))
    def move(self, node_id: str, parent: str, choice: int) -> None:
        before = self.some_before(parent, choice, but=node_id)
        if node_id == ROOT or node_id not in self.children or parent not in self.children:
            with pytest.raises(UserError):
                self.tree.move(node_id, parent)
        elif parent in self.subtree(node_id):
            with pytest.raises(UserError, match="below itself"):
                self.tree.move(node_id, parent)
        else:
            self.tree.move(node_id, parent, before=before)
            self.take_out(node_id)
            self.place(node_id, parent, before)

    @rule(node_id=anything)
    def delete(self, node_id: str) -> None:
        if node_id == ROOT or node_id not in self.children:
            with pytest.raises(UserError):
                self.tree.delete(node_id)
            return
        self.tree.delete(node_id)
        self.take_out(node_id)
        for below in self.subtree(node_id):
            del self.children[below], self.titles[below]

    @rule(node_id=anything, title=st.sampled_from("pqr"))
    def update(self, node_id: str, title: str) -> None:
        if node_id not in self.children:
            with pytest.raises(UnknownNode):
                self.tree.update(Node(node_id, title))
            return
        self.tree.update(Node(node_id, title, kind=self.tree.get(node_id).kind))
        self.titles[node_id] = title

    @rule(rows=st.integers(1, 5))
    def purge(self, rows: int) -> None:
        self.tree.purge(rows)

    @rule()
    def follow(self) -> None:
        """Let an index take in what changed."""
        last = self.token
        for token, node_id, there in self.tree.changes(self.token):
            assert token >= last
            last = token
            if there:
                self.index[node_id] = self.tree.get(node_id).title
            else:
                assert self.tree.find(node_id) is None
                self.index.pop(node_id, None)
        self.token = self.tree.sequence
        assert last <= self.token
        assert self.index == self.titles

    @precondition(lambda self: hasattr(self, "tree"))
    @invariant()
    def same(self) -> None:
        for node_id in (*IDS, *BUILT, ROOT):
            if node_id in self.children:
                assert [node.id for node in self.tree.children(node_id)] == self.children[node_id]
                assert self.tree.child_count(node_id) == len(self.children[node_id])
                pages = [self.tree.child_page(node_id, start=at, count=2) for at in range(0, 12, 2)]
                assert [node for page in pages for node in page] == self.tree.children(node_id)[:12]
                for number, child in enumerate(self.children[node_id]):
                    assert self.tree.child_number(child) == number
                assert self.tree.parent(node_id) == self.parent_of(node_id)
                assert self.tree.get(node_id).title == self.titles[node_id]
            else:
                assert self.tree.find(node_id) is None and node_id not in self.tree
        every = [*IDS, *BUILT, ROOT]
        assert self.tree.ways(every) == {
            each: self.tree.ancestors(each) for each in every if each in self.children
        }
        assert {node.id for node in self.tree.nodes(every)} == {
            each for each in every if each in self.children
        }
        assert self.tree.child_total(list(self.children)) == sum(map(len, self.children.values()))
        assert len(self.tree) == len(self.children) == sum(self.tree.info()["kinds"].values())
        assert sorted(node.id for _, node in self.tree.walk()) == sorted(self.children)


Changes.TestCase.settings = settings(
    max_examples=examples(60), stateful_step_count=40, suppress_health_check=list(HealthCheck)
)
TestChanges = Changes.TestCase
