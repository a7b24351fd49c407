"""The index: equal to a second opinion, to itself built anew, and alive under changes."""

from __future__ import annotations

import random
import threading
from pathlib import Path

import bm25s
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from metatree_routers.evidence.signals.matching import PART, match
from metatree_routers.index._posting_blocks import unpack
from metatree_routers.index.index import IndexSnapshot, TextIndex
from metatree_routers.index.node_table import NodeTable
from metatree_routers.index.postings import Postings, SegmentBuilder
from metatree_routers.index.store import MAX_SEGMENTS
from metatree_routers.index.vocabulary import Vocabulary
from metatree_routers.query.terms import terms

from metatree.node import Node
from metatree.trees.tree import Tree
from tests.profiles import examples

WORDS = (
    "cat",
    "dog",
    "bird",
    "fish",
    "tree",
    "moon",
    "sun",
    "rain",
    "snow",
    "wind",
    "getURL",
    "half_open",
    "a.b.c",
)


def _scores(index: TextIndex, question: str) -> dict[str, float]:
    def query(reader: IndexSnapshot) -> dict[str, float]:
        parts = match(reader, dict.fromkeys(terms(question), 1.0)).parts
        ids = reader.ids(np.flatnonzero(parts))
        return {id_: float(parts[number]) for number, id_ in ids.items()}

    return index.query(query)


def _text(rng: random.Random) -> str:
    return " ".join(rng.choices(WORDS, k=rng.randint(1, 30)))


@pytest.mark.parametrize("seed", range(5))
def test_bm25_equals_bm25s(seed: int) -> None:
    """The second opinion: bm25s with its defaults, over the same terms."""
    rng = random.Random(seed)
    texts = [_text(rng) for _ in range(40)]
    tree = Tree.create()
    tree.add_many((Node(id=f"n{i}", title="", content=text), tree.root) for i, text in enumerate(texts))
    index = TextIndex(tree)
    index.refresh()
    second = bm25s.BM25(k1=PART.k1, b=PART.b, method="lucene")
    second.index([terms(text) for text in texts], show_progress=False)
    for _ in range(10):
        question = " ".join(rng.sample(WORDS, 3))
        wanted = list(dict.fromkeys(terms(question)))
        expected = second.get_scores(wanted)
        result = _scores(index, question)
        for i in range(len(texts)):
            assert result.get(f"n{i}", 0.0) == pytest.approx(float(expected[i]), rel=1e-4)


def _tree(texts: dict[str, str]) -> Tree:
    tree = Tree.create()
    tree.add_many(
        (Node(id=id_, title=f"title {id_}", content=text), tree.root) for id_, text in texts.items()
    )
    return tree


def _everything(index: TextIndex) -> dict[str, list[tuple[str, int, int, int]]]:
    """Give every posting, by ids and not by numbers, so that two indexes can be compared."""
    blocks = index.store._db.rows("SELECT data FROM text_posting")
    known = {term for (block,) in blocks for term, _ in unpack(block)}

    def query(reader: IndexSnapshot) -> dict[str, list[tuple[str, int, int, int]]]:
        ids = reader.ids(range(len(reader.table)))
        return {
            term: sorted(
                (ids[int(p["node"])], int(p["content"]), int(p["title"]), int(p["about"])) for p in rows
            )
            for term, rows in reader.postings(known).items()
        }

    return index.query(query)


operation = st.one_of(
    st.tuples(st.just("add"), st.integers(0, 12), st.integers(0, 10_000)),
    st.tuples(st.just("edit"), st.integers(0, 12), st.integers(0, 10_000)),
    st.tuples(st.just("delete"), st.integers(0, 12), st.just(0)),
    st.tuples(st.just("move"), st.integers(0, 12), st.integers(0, 12)),
    st.tuples(st.just("refresh"), st.just(0), st.just(0)),
)


@settings(max_examples=examples(60))
@given(st.lists(operation, max_size=40))
def test_an_index_that_followed_changes_equals_a_fresh_one(operations: list[tuple[str, int, int]]) -> None:
    tree = Tree.create()
    index = TextIndex(tree, batch_tokens=20)
    for what, number, value in operations:
        id_ = f"n{number}"
        text = _text(random.Random(value))
        if what == "add" and id_ not in tree:
            parent = f"n{value % 13}"
            tree.add(Node(id=id_, title=id_, content=text), parent if parent in tree else tree.root)
        elif what == "edit" and id_ in tree:
            tree.update(Node(id=id_, title=f"again {id_}", content=text))
        elif what == "delete" and id_ in tree:
            tree.delete(id_)
        elif what == "move" and id_ in tree:
            parent = f"n{value}"
            if parent in tree and id_ not in [parent, *tree.ancestors(parent)]:
                tree.move(id_, parent)
        elif what == "refresh":
            index.refresh()
    index.refresh()

    copy = Tree.create()
    for _, node in tree.walk():
        if node.id != tree.root:
            copy.add(tree.get(node.id), tree.parent(node.id) or copy.root)
    fresh = TextIndex(copy)
    fresh.refresh()
    assert _everything(index) == _everything(fresh)
    parents = {id_: tree.parent(id_) for _, node in tree.walk() for id_ in [node.id]}
    assert _parents(index) == parents
    for question in ("cat dog", "getURL moon"):
        assert _scores(index, question) == pytest.approx(_scores(fresh, question), rel=1e-5)


def _parents(index: TextIndex) -> dict[str, str | None]:
    def query(reader: IndexSnapshot) -> dict[str, str | None]:
        alive = np.flatnonzero(reader.table.alive)
        ids = reader.ids(range(len(reader.table)))
        return {ids[n]: ids.get(int(reader.table.parent[n])) for n in alive.tolist()}

    return index.query(query)


def test_only_what_changed_is_indexed_again() -> None:
    tree = _tree({f"n{i}": f"cat number{i}" for i in range(50)})
    index = TextIndex(tree)
    assert index.refresh() == 51
    assert index.refresh() == 0
    tree.update(Node(id="n7", title="n7", content="dog"))
    assert index.refresh() == 1
    assert "n7" not in _scores(index, "cat") and list(_scores(index, "dog")) == ["n7"]
    tree.delete("n8")
    assert index.refresh() == 1
    assert len(_scores(index, "cat")) == 48


def test_a_name_of_many_words_counts_as_many() -> None:
    """A batch of 270,000 names in camelCase had a million and a half different terms, and took 800 MB."""
    names = ["".join(f"Kettle{'abcdefgh'[at]}{number}" for at in range(8)) for number in range(100)]
    builder = SegmentBuilder()
    builder.add(1, title="", about="", content=" ".join(names) * 2)
    builder.build()
    assert 700 <= builder.new_words <= 1_100
    again = Vocabulary()
    builder = SegmentBuilder(again)
    builder.add(1, title="", about="", content="tea " * 1_000)
    builder.build()
    assert builder.new_words <= 2


@pytest.mark.parametrize(("alphabet", "least"), [("字", 0.9), ("가", 0.9), ("ж", 0.1)])
def test_text_without_blanks_between_its_words_counts_by_its_letters(alphabet: str, least: float) -> None:
    """Five pages of 760,000 Chinese letters counted as a third of their words, and took 780 MB."""
    first, letters = ord(alphabet), 20_000
    rng = random.Random(3)
    lines = [
        "".join(chr(first + rng.randrange(30 if alphabet == "ж" else 5_000)) for _ in range(40))
        for _ in range(letters // 40)
    ]
    builder = SegmentBuilder()
    builder.add(1, title="", about="", content="\n".join(lines))
    segment = builder.build()
    assert least * letters <= builder.new_words <= 1.2 * letters
    if alphabet != "ж":
        assert builder.new_words == pytest.approx(len(segment._terms), rel=0.2)


def test_small_segments_are_merged_and_nothing_is_lost() -> None:
    tree = Tree.create()
    index = TextIndex(tree)
    for i in range(3 * MAX_SEGMENTS):
        tree.add(Node(id=f"n{i}", title="", content=f"cat z{chr(97 + i)}"))
        index.refresh()
    assert index.store.statistics()["segments"] <= MAX_SEGMENTS
    assert len(_scores(index, "cat")) == 3 * MAX_SEGMENTS
    assert all(list(_scores(index, f"z{chr(97 + i)}")) == [f"n{i}"] for i in range(3 * MAX_SEGMENTS))


def test_an_index_of_another_version_is_built_again() -> None:
    tree = _tree({"a": "cat"})
    TextIndex(tree).refresh()
    tree.index.execute("UPDATE text_meta SET value = '0' WHERE key = 'version'")
    index = TextIndex(tree)
    assert index.refresh() == 2
    assert list(_scores(index, "cat")) == ["a"]


def test_an_index_whose_numbers_are_mostly_dead_is_built_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("metatree_routers.index.index._LEAST_DEAD", 5)
    tree = Tree.create()
    index = TextIndex(tree)
    for i in range(30):
        tree.add(Node(id=f"n{i}", title="", content="cat"))
        index.refresh()
        if i:
            tree.delete(f"n{i}")
    index.refresh()
    assert index.store.next_number() < 20
    assert list(_scores(index, "cat")) == ["n0"]


@pytest.mark.integration
def test_two_processes_share_an_index(tmp_path: Path) -> None:
    """Two trees over one file stand for two processes: each has its own connection."""
    with Tree.create(tmp_path / "tree.db") as first, Tree.open(tmp_path / "tree.db") as second:
        one, two = TextIndex(first), TextIndex(second)
        first.add(Node(id="a", title="", content="cat"))
        assert one.refresh() == 2
        assert two.refresh() == 0
        assert list(_scores(two, "cat")) == ["a"]
        second.add(Node(id="b", title="", content="cat dog"))
        assert two.refresh() == 1
        assert sorted(_scores(one, "cat")) == ["a", "b"]


@pytest.mark.integration
def test_threads_refresh_and_ask_at_once(tmp_path: Path) -> None:
    failures: list[BaseException] = []
    with Tree.create(tmp_path / "tree.db") as tree:
        index = TextIndex(tree, batch_tokens=30)

        def write(start: int) -> None:
            try:
                for i in range(start, start + 25):
                    tree.add(Node(id=f"n{i}", title="", content=f"cat word{i}"))
                    index.refresh()
            except BaseException as exc:
                failures.append(exc)

        def ask() -> None:
            try:
                sizes = [len(_scores(index, "cat")) for _ in range(60)]
                assert sizes == sorted(sizes)
            except BaseException as exc:
                failures.append(exc)

        threads = [threading.Thread(target=write, args=(n * 100,)) for n in range(2)]
        threads += [threading.Thread(target=ask) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        index.refresh()
        assert failures == []
        assert len(_scores(index, "cat")) == 50


@pytest.mark.parametrize("text", ["", "\x00", "🙂", "the of and", "a" * 200_000, "x " * 50_000])
def test_odd_content_is_indexed(text: str) -> None:
    tree = Tree.create()
    tree.add(Node(id="plain", title="plain", content="cat"))
    tree.add(Node(id="odd", title="odd", content=text))
    index = TextIndex(tree)
    index.refresh()
    assert list(_scores(index, "cat")) == ["plain"]
    assert list(_scores(index, "odd")) == ["odd"]


def test_the_latest_posting_lists_are_read_once_and_anew_after_a_change() -> None:
    tree = Tree.create()
    tree.add(Node("a", "a", content="cat and dog"), tree.root)
    index = TextIndex(tree)
    index.refresh()

    def holders() -> int:
        return index.query(lambda reader: len(reader.postings(["cat"]).get("cat", ())))

    with pytest.MonkeyPatch.context() as patch:
        asked: list[object] = []
        read = index.store._read_postings

        def noted(table: NodeTable, of: frozenset[str]) -> dict[str, Postings]:
            asked.append(of)
            return read(table, of)

        patch.setattr(index.store, "_read_postings", noted)
        assert (holders(), holders(), len(asked)) == (1, 1, 1)
        tree.add(Node("b", "b", content="another cat"), tree.root)
        index.refresh()
        assert (holders(), len(asked)) == (2, 2)
