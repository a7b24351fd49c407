"""Why nothing was found."""

from __future__ import annotations

from pathlib import Path

import pytest
from metatree_agents import nothing_found
from metatree_agents.nothing_found import why_empty
from metatree_memory_tools import build_tree

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


def test_where_what_was_left_out_is_listed_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# Tea\nTea is hot.\n")
    (tmp_path / "b.bin").write_bytes(b"\0\1")
    with build_tree(tmp_path) as tree:
        assert "(1 file was left out of the tree: `metatree show --omitted`)" in why_empty(tree, "zeppelin")
