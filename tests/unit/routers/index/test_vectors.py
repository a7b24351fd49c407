"""Vectors of nodes: they follow the tree when they are asked for, and go on where they were cut off."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from metatree_routers.embeddings.static import Vectors, quantise
from metatree_routers.evidence.evidence import TextEvidence
from metatree_routers.index import vectors as vectors_module
from metatree_routers.index.index import TextIndex
from metatree_routers.index.store import take_memory_anew

from metatree.node import Node
from metatree.storage.store import Store
from metatree.trees.edits import create_root
from metatree.trees.layer import Layer
from metatree.trees.tree import Tree
from tests.profiles import examples


class _Counting:
    """Embeds a text by its letters, and counts the texts; fails when it has had its fill."""

    def __init__(self, most: int = 10**9, letters: int = 8) -> None:
        self.embedded = 0
        self.most = most
        self.letters = letters

    def __call__(self) -> _Counting:
        return self

    def embed(self, texts: Sequence[str]) -> Vectors:
        if self.embedded + len(texts) > self.most:
            raise OSError("no memory left")
        self.embedded += len(texts)
        counts = np.array(
            [[text.count(chr(97 + i)) for i in range(self.letters)] for text in texts], np.float32
        )
        counts = counts.reshape(len(texts), self.letters)
        lengths = np.linalg.norm(counts, axis=1, keepdims=True)
        return np.asarray(counts / np.maximum(lengths, 1e-9), dtype=np.float32)


def _index(tree: Tree, embedder: _Counting, name: str = "letters") -> TextIndex:
    return TextIndex(tree, embedder=embedder, embedding=name)


def _of(index: TextIndex, node_id: str) -> list[int]:
    index.refresh()
    vectors = index.vectors.refresh()
    row: list[int] = vectors[index.store.numbers([node_id])[node_id]].tolist()
    return row


def _expected(text: str) -> list[int]:
    row: list[int] = quantise(_Counting().embed([text]))[0].tolist()
    return row


def test_the_index_of_words_makes_no_vectors() -> None:
    with Tree.create() as tree:
        tree.add(Node("a", "abc", "aab"))
        embedder = _Counting()
        assert _index(tree, embedder).refresh() > 0
        assert embedder.embedded == 0


def test_vectors_follow_the_tree() -> None:
    with Tree.create() as tree:
        tree.add(Node("a", "abc", "aab"))
        tree.add(Node("b", "bb", ""))
        embedder = _Counting()
        index = _index(tree, embedder)
        assert _of(index, "a") == _expected("abc aab")
        assert embedder.embedded == 3  # with the root
        assert _of(index, "b") == _expected("bb")
        assert embedder.embedded == 3
        tree.update(Node("b", "ccc", ""))
        tree.add(Node("c", "hhg", ""))
        tree.delete("a")
        assert (_of(index, "b"), _of(index, "c")) == (_expected("ccc"), _expected("hhg"))
        assert embedder.embedded == 5


def test_another_index_on_the_same_store_makes_none_again() -> None:
    with Tree.create() as tree:
        tree.add(Node("a", "abc", "aab"))
        _of(_index(tree, _Counting()), "a")
        other = _Counting()
        assert _of(_index(tree, other), "a") == _expected("abc aab")
        assert other.embedded == 0


def test_vectors_of_another_embedding_are_made_again_without_the_words() -> None:
    with Tree.create() as tree:
        tree.add(Node("a", "abc", "aab"))
        _of(_index(tree, _Counting()), "a")
        other = _index(tree, _Counting(letters=3), "three letters")
        assert other.refresh() == 0
        assert other.vectors.refresh().shape[1] == 3
        assert _index(tree, _Counting()).vectors.refresh().shape[1] == 8


def test_work_that_is_cut_off_goes_on_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors_module, "VECTOR_CHUNK", 4)
    with Tree.create() as tree:
        for number in range(20):
            tree.add(Node(f"n{number}", "abcdefgh"[number % 8] * 3, ""))
        index = _index(tree, _Counting(most=12))
        index.refresh()
        with pytest.raises(OSError, match="no memory"):
            index.vectors.refresh()
        rest = _Counting()
        again = _index(tree, rest)
        assert [_of(again, f"n{number}") for number in range(20)] == [
            _expected("abcdefgh"[number % 8]) for number in range(20)
        ]
        assert rest.embedded == 21 - 12


def test_where_nothing_can_be_written_they_are_made_for_the_process() -> None:
    with Tree.create() as tree:
        tree.add(Node("a", "abc", "aab"))
        _index(tree, _Counting()).refresh()
        tree.index.freeze()
        embedder = _Counting()
        index = _index(tree, embedder)
        assert _of(index, "a") == _of(index, "a") == _expected("abc aab")
        assert embedder.embedded == 2


def test_a_tree_that_shrinks_has_the_vectors_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes that were there while the tree was too large for vectors are found without a common word, too."""
    from metatree_routers.evidence.signals import meaning

    monkeypatch.setattr(meaning, "MOST_VECTORS", 6)
    titles = ["doctor", "bridge", "apple", "window", "lamp", "stone", "river"]
    with Tree.create() as tree:
        tree.add_many((Node(title, title, ""), ".") for title in titles)
        evidence = TextEvidence(tree)
        question = ["physician bridge"]
        assert [scored.node_id for scored in evidence.rank(question)] == ["bridge"]
        tree.delete("river")
        assert [scored.node_id for scored in evidence.rank(question)] == ["bridge", "doctor"]


STEPS = st.tuples(st.sampled_from("abcd"), st.sampled_from(["set", "delete", "ask"]), st.integers(0, 7))


@settings(max_examples=examples(40))
@given(st.lists(STEPS, max_size=20))
def test_they_are_those_of_the_texts_whatever_was_done(steps: list[tuple[str, str, int]]) -> None:
    with Tree.create() as tree:
        index = _index(tree, _Counting())
        there: dict[str, str] = {}
        for name, what, number in [*steps, ("a", "ask", 0)]:
            title = "abcdefgh"[number] * 2
            if what == "set":
                if name in there:
                    tree.update(Node(name, title, ""))
                else:
                    tree.add(Node(name, title, ""))
                there[name] = title
            elif what == "delete" and name in there:
                tree.delete(name)
                del there[name]
            elif what == "ask":
                assert {each: _of(index, each) for each in there} == {
                    each: _expected(text) for each, text in there.items()
                }


@pytest.mark.integration
def test_two_processes_follow_one_tree(tmp_path: Path) -> None:
    """What one has written while the other computed is not overwritten by less."""
    with Tree.create(tmp_path / "tree.db") as one, Tree.open(tmp_path / "tree.db") as two:
        for number in range(3):
            one.add(Node(f"n{number}", "abc"[number] * 3, ""))
        _index(one, _Counting()).refresh()

        class Slow(_Counting):
            def embed(self, texts: Sequence[str]) -> Vectors:
                if not self.embedded:
                    _of(_index(two, _Counting()), "n0")
                return super().embed(texts)

        slow = _index(one, Slow())
        assert [_of(slow, f"n{n}") for n in range(3)] == [_expected("abc"[n]) for n in range(3)]
        other = _index(two, _Counting(most=0))
        assert [_of(other, f"n{n}") for n in range(3)] == [_expected("abc"[n]) for n in range(3)]


def test_what_is_not_indexed_yet_has_its_vector_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors_module, "VECTOR_CHUNK", 1)
    with Tree.create() as tree:
        index = _index(tree, _Counting())
        index.refresh()
        tree.add(Node("a", "abc", ""))
        index.vectors.refresh()
        assert _of(index, "a") == _expected("abc")


def test_a_writer_that_was_overtaken_writes_nothing() -> None:
    with Tree.create() as tree:
        tree.add(Node("a", "abc", ""))
        index = _index(tree, _Counting())
        vectors = _of(index, "a")
        tables = index.store
        end, rows, zeros = tables.sequence(), np.array([0, 1]), np.zeros((2, 8), np.int8)
        assert not tables.write_vectors(tables.generation(), "letters", (end - 1, end), rows, zeros)
        assert not tables.write_vectors(tables.generation() - 1, "letters", (end, end), rows, zeros)
        assert not tables.write_vectors(tables.generation(), "others", (end, end), rows, zeros)
        assert _of(_index(tree, _Counting(most=0)), "a") == vectors
        assert tables.write_vectors(
            tables.generation(), "others", (0, end), np.array([300]), np.ones((301, 8), np.int8)
        )
        assert [tables.vectors("letters")[0], len(tables.vectors("letters")[1])] == [0, 0]
        assert not tables.vectors("others")[1][:256].any()


def test_an_index_from_another_machine_has_vectors_for_the_memory_of_this_one() -> None:
    with Store.open(":memory:") as index, Store.open(":memory:") as one, Store.open(":memory:") as two:
        create_root(Layer(index), Node(".", "", "", kind="folder"))
        there = Tree(one, index)
        there.add_many((Node(name, name * 3, ""), ".") for name in "abc")
        assert _of(_index(there, _Counting()), "a") == _expected("aaa")
        take_memory_anew(index)
        here = Tree(two, index)
        here.add(Node("d", "ddd", ""))
        assert _of(_index(here, _Counting()), "d") == _expected("ddd")
