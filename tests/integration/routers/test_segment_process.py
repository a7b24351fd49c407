"""The index of a large tree, made with a process of its own: the same, also when that process is killed."""

from __future__ import annotations

import random
import re
import string
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from metatree_routers.index import _segment_process, postings
from metatree_routers.index import index as index_module
from metatree_routers.index.index import TextIndex
from metatree_routers.index.store import Batch

from metatree import Node, Tree

pytestmark = pytest.mark.integration

WORDS = ["cat", "dog", "getURL", "half_open", "a.b.c", "naïve", "你好", "running", "café", "x1", "--no-ff"]


def made() -> Tree:
    tree, rng = Tree.create(), random.Random(3)
    for number in range(300):
        text = " ".join(rng.choices(WORDS, k=rng.randint(0, 40)))
        tree.add(Node(id=f"n{number}", title=f"{rng.choice(WORDS)} {number}", content=text), tree.root)
    return tree


@pytest.fixture
def tree(monkeypatch: pytest.MonkeyPatch) -> Tree:
    """A tree that is indexed in three batches."""
    monkeypatch.setattr(index_module, "BATCH_NODES", 120)
    return made()


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """A tree of a hundred nodes is large, and its texts are sent in small pieces; the processes that were started."""
    processes: list[subprocess.Popen[bytes]] = []
    start = _segment_process._start

    def counted() -> subprocess.Popen[bytes]:
        processes.append(start())
        return processes[-1]

    monkeypatch.setattr(_segment_process, "_start", counted)
    monkeypatch.setattr(_segment_process, "_PIECE_CHARS", 500)
    monkeypatch.setattr(index_module, "MIN_NODES", 100)
    monkeypatch.setattr(index_module, "cores", lambda: 2)
    return processes


def everything(tree: Tree) -> dict[str, list[Any]]:
    """All that the index holds, table by table."""
    store = tree.index
    names = [
        row[0] for row in store.rows("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
    ]
    return {
        name: store.rows(f'SELECT * FROM "{name}" ORDER BY 1, 2')
        for name in names
        if name.startswith("text_")
    }


@pytest.fixture
def alone(tree: Tree) -> dict[str, list[Any]]:
    """What the index of such a tree holds that this process made by itself."""
    other = made()
    TextIndex(other).refresh()
    rows = everything(other)
    assert len(rows["text_segment"]) == 3
    return rows


def test_same(tree: Tree, alone: object, started: list[subprocess.Popen[bytes]]) -> None:
    TextIndex(tree).refresh()
    assert everything(tree) == alone
    assert len(started) == 1 and started[0].poll() is not None


@pytest.mark.parametrize("beside", [True, False])
@pytest.mark.parametrize("words", ["few", "many"])
def test_a_batch_ends_at_so_many_different_words(
    started: list[subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch, words: str, beside: bool
) -> None:
    monkeypatch.setattr(index_module, "BATCH_WORDS", 1_000)
    monkeypatch.setattr(index_module, "cores", lambda: 2 if beside else 1)
    monkeypatch.setattr(postings, "_PENDING_CHARS", 500)
    tree = Tree.create()
    for number in range(300):
        text = " ".join(f"w{number if words == 'many' else 0}x{n}" for n in range(20))
        tree.add(Node(id=f"n{number}", title="Tea", content=text), tree.root)
    TextIndex(tree).refresh()
    assert len(started) == beside
    segments = len(everything(tree)["text_segment"])
    assert segments == 1 if words == "few" else 5 <= segments <= 7


@pytest.mark.skipif(sys.platform != "linux", reason="what a process took at most is in a file of Linux")
def test_texts_of_nothing_but_different_words_take_no_more_with_each_batch() -> None:
    """Of 600,000 names a process took 350 MB, beside the 200 of a build."""
    helper, letters, rng = _segment_process.SegmentProcess(), string.ascii_letters, random.Random(5)
    try:
        for _ in range(2):
            for node in range(5_000):
                names = ("".join(rng.choices(letters, k=7)) for _ in range(60))
                helper.add(node, title="Tea", about="", content=" ".join(names))
            helper.end()
            helper.segment()
        said = Path(f"/proc/{helper._process.pid}/status").read_text()
    finally:
        helper.close()
    most = re.search(r"VmHWM:\s*(\d+) kB", said)
    assert most is not None and int(most[1]) < 280_000, most


def test_killed(
    tree: Tree,
    alone: object,
    started: list[subprocess.Popen[bytes]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It ends after the first segment: what it has not given is made here."""
    give = _segment_process.SegmentProcess.segment

    def killed(self: _segment_process.SegmentProcess) -> object:
        segment = give(self)
        started[0].kill()
        return segment

    monkeypatch.setattr(_segment_process.SegmentProcess, "segment", killed)
    TextIndex(tree).refresh()
    assert everything(tree) == alone


def test_another_writer(
    tree: Tree,
    alone: object,
    started: list[subprocess.Popen[bytes]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It indexes the first batch meanwhile: what was read for the next ones is read again."""
    give, index = _segment_process.SegmentProcess.segment, TextIndex(tree)

    def late(self: _segment_process.SegmentProcess) -> object:
        monkeypatch.setattr(_segment_process.SegmentProcess, "segment", give)
        batch = Batch(index.store.generation(), index.store.sequence())
        index._prepare(batch, index_module._Numbers(index.store), 0, None)
        assert index.store.write(batch)
        return give(self)

    monkeypatch.setattr(_segment_process.SegmentProcess, "segment", late)
    assert index.refresh() == 301 - 120
    assert everything(tree) == alone


def test_not_started(
    tree: Tree, alone: object, started: list[subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused() -> subprocess.Popen[bytes]:
        raise OSError("no memory")

    monkeypatch.setattr(_segment_process, "_start", refused)
    TextIndex(tree).refresh()
    assert everything(tree) == alone
    assert not started
