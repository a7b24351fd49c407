"""Which embeddings are used: the setting, what is missing, and vectors of another embedding."""

from __future__ import annotations

import pytest
from metatree_routers import rank_files
from metatree_routers.embeddings import _minilm as minilm
from metatree_routers.embeddings.choose import embedder_of, embedding_set
from metatree_routers.embeddings.static import static_embedder
from metatree_routers.evidence.evidence import TextEvidence

from metatree.errors import MissingExtra, UserError
from metatree.node import Node
from metatree.trees.tree import Tree


def test_the_setting_chooses_the_embeddings(monkeypatch: pytest.MonkeyPatch) -> None:
    assert embedding_set() == "static"
    monkeypatch.setenv("METATREE_EMBEDDING", "none")
    assert embedding_set() == "none"
    assert embedder_of("none") is None
    assert embedder_of("static") is static_embedder
    monkeypatch.setenv("METATREE_EMBEDDING", "big")
    with pytest.raises(UserError, match="static, minilm, none"):
        embedding_set()


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, note_tree: Tree) -> None:
    monkeypatch.setenv("METATREE_EMBEDDING", "minilm")
    monkeypatch.setattr(minilm, "PACKAGE", "a_package_that_nobody_has")
    monkeypatch.setattr(minilm, "_loaded", [])
    with pytest.raises(MissingExtra, match=r"metatree\[minilm\]"):
        TextEvidence(note_tree).score(["tokens"])


def test_files_are_ranked_without_a_slow_embedder(monkeypatch: pytest.MonkeyPatch) -> None:
    with Tree.create() as tree:
        tree.add(Node("a.py", "a.py", "Follow a bridge.", kind="file", content="def bridge(): pass"))
        plain = rank_files(TextEvidence(tree), tree, "The bridge is not followed")
        monkeypatch.setenv("METATREE_EMBEDDING", "minilm")
        monkeypatch.setattr(minilm, "PACKAGE", "a_package_that_nobody_has")
        monkeypatch.setattr(minilm, "_loaded", [])
        assert rank_files(TextEvidence(tree), tree, "The bridge is not followed") == plain != []
