"""Which embeddings are used: the setting, what is missing, and vectors of another embedding."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from metatree_routers import rank_files
from metatree_routers.embeddings import _minilm as minilm
from metatree_routers.embeddings._safetensors import read_matrices
from metatree_routers.embeddings.choose import embedder_of, embedding_set
from metatree_routers.embeddings.static import static_embedder
from metatree_routers.evidence.evidence import TextEvidence
from metatree_routers.tokenizer import llama_tokenizer, package_file
from safetensors.numpy import save_file

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
    with pytest.raises(MissingExtra, match=r"metatree-memory\[minilm\]"):
        TextEvidence(note_tree).score(["tokens"])


def test_files_are_ranked_without_a_slow_embedder(monkeypatch: pytest.MonkeyPatch) -> None:
    with Tree.create() as tree:
        tree.add(Node("a.py", "a.py", "Follow a bridge.", kind="file", content="def bridge(): pass"))
        plain = rank_files(TextEvidence(tree), tree, "The bridge is not followed")
        monkeypatch.setenv("METATREE_EMBEDDING", "minilm")
        monkeypatch.setattr(minilm, "PACKAGE", "a_package_that_nobody_has")
        monkeypatch.setattr(minilm, "_loaded", [])
        assert rank_files(TextEvidence(tree), tree, "The bridge is not followed") == plain != []


def test_a_tokenizer_that_is_made_in_pieces_is_that_of_the_file() -> None:
    from tokenizers import Tokenizer

    whole, made = Tokenizer.from_file(str(package_file("tokenizers", "*tokenizer*.json"))), llama_tokenizer()
    whole.no_padding()
    whole.no_truncation()
    assert json.loads(made.to_str()) == json.loads(whole.to_str())
    text = "Where is getURL_2 of résumé.py followed? 漢字 \U0001f600 <s> \t\n"
    assert made.encode(text).ids == whole.encode(text).ids
    assert made.encode(text, add_special_tokens=False).tokens == (
        whole.encode(text, add_special_tokens=False).tokens
    )


def test_matrices_are_read_by_name_with_their_types(tmp_path: Path) -> None:
    arrays: dict[str, np.ndarray[Any, Any]] = {
        "a": np.arange(6, dtype=np.float32).reshape(2, 3),
        "b": np.array([[1.5], [2.5]], dtype=np.float16),
    }
    save_file(arrays, tmp_path / "two.safetensors", metadata={"format": "np"})
    read = read_matrices(tmp_path / "two.safetensors")
    assert read.keys() == arrays.keys()
    assert all(
        read[name].dtype == array.dtype and (read[name] == array).all() for name, array in arrays.items()
    )
    save_file({"c": np.array([1], dtype=np.int8)}, tmp_path / "bytes.safetensors")
    with pytest.raises(ValueError, match=r"bytes\.safetensors holds I8 \[1\]"):
        read_matrices(tmp_path / "bytes.safetensors")
