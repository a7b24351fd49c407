"""Why nothing was found."""

from __future__ import annotations

import pytest
from metatree_agents import nothing_found
from metatree_agents.nothing_found import why_empty

from metatree import Node, Tree


@pytest.fixture
def tree() -> Tree:
    tree = Tree.create(":memory:")
    tree.add(Node("a.py", "a.py", kind="file", content="x"))
    tree.add(Node("a.py::charge_card", "charge_card", kind="definition", content="y"), parent="a.py")
    return tree


@pytest.mark.parametrize("many", [0, 5_000])
def test_the_nearest_names_are_listed_in_trees_of_any_size(
    tree: Tree, monkeypatch: pytest.MonkeyPatch, many: int
) -> None:
    monkeypatch.setattr(nothing_found, "_MANY", many)
    assert why_empty(tree, "where is charge_cart?", "a.py") == (
        f"nothing below a.py was found for 'where is charge_cart?' in {len(tree)} nodes; "
        "nearest names: a.py::charge_card"
    )
    assert why_empty(tree, "qqq").endswith("; no name is near: use words of the source")


def test_of_a_long_question_its_end_is_said(tree: Tree) -> None:
    assert "for '…zeppelin' in" in why_empty(tree, "word " * 50 + "zeppelin")
