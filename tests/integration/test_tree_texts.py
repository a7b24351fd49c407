"""`Tree.texts`: what `find`, `parent` and `content` say, for many nodes at once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from metatree_memory_tools import build_tree

from metatree.errors import MetatreeError
from metatree.node import Node
from metatree.trees.tree import Tree

pytestmark = pytest.mark.integration


def _project(folder: Path) -> Path:
    (folder / "pkg").mkdir(parents=True)
    (folder / "pkg" / "a.py").write_text(
        '"""A."""\nimport os\n\n\nclass C:\n    x = 1\n\n    def f(self):\n        return 1\n\n\ndef g():\n    pass\n'
    )
    (folder / "pkg" / "latin.py").write_bytes(
        "# -*- coding: latin-1 -*-\ndef día():\n    return 'ñ'\n".encode("latin-1")
    )
    (folder / "read.md").write_text("# Title\nWords.\n\n## Part\nMore words.\n")
    return folder


def _one_by_one(tree: Tree, ids: list[str]) -> list[tuple[Node, str | None, str]]:
    rows = []
    for id_ in ids:
        node = tree.find(id_)
        if node is not None:
            try:
                content = tree.content(id_) if node.has_content else ""
            except MetatreeError:
                content = ""
            rows.append((node, tree.parent(id_), content))
    return rows


def test_texts_are_those_of_the_single_calls(tmp_path: Path) -> None:
    with build_tree(_project(tmp_path / "src")) as tree:
        ids = [node.id for _, node in tree.walk()]
        assert len(ids) > 8
        found = list(tree.texts([*ids, "gone"]))
        assert found == _one_by_one(tree, ids)
        assert any("ñ" in text for _, _, text in found)
        # with a memory layer over it: added, moved, described otherwise, deleted
        tree.add(Node(id="note", title="note", content="kept"), "pkg/a.py")
        tree.move("read.md", "pkg")
        tree.update(replace(tree.get("pkg/a.py"), description="other words"))
        tree.delete("pkg/latin.py")
        after = list(tree.texts([*ids, "note"]))
        assert after == _one_by_one(tree, [*ids, "note"])
        assert len(after) < len(ids) + 1


def test_a_source_that_changed_has_no_text(tmp_path: Path) -> None:
    project = _project(tmp_path / "src")
    with build_tree(project) as tree:
        (project / "pkg" / "a.py").write_text("something = 'else'\n")
        texts = {node.id: text for node, _, text in tree.texts(["pkg/a.py::g", "read.md#part"])}
        assert texts.get("pkg/a.py::g") == ""
        assert all(text for id_, text in texts.items() if id_ != "pkg/a.py::g")


def test_texts_of_a_tree_made_by_hand() -> None:
    tree = Tree.create()
    tree.add(Node(id="a", title="a", content="one"))
    tree.add(Node(id="b", title="b"), "a")
    assert [(node.id, parent, text) for node, parent, text in tree.texts(["b", "a", "b"])] == [
        ("b", "a", ""),
        ("a", ".", "one"),
        ("b", "a", ""),
    ]
