"""The index of a tree that grows while it is indexed: the same as one that is made afterwards."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from metatree_memory_tools import build_tree
from metatree_routers.index import follower as follower_module
from metatree_routers.index import index as index_module
from metatree_routers.index.follower import IndexFollower
from metatree_routers.index.index import IndexSnapshot, TextIndex

from metatree import Node, Tree

pytestmark = pytest.mark.integration

WORDS = ["cat", "dog", "getURL", "half_open", "naïve", "running", "café", "x1"]


def said(tree: Tree) -> dict[str, list[tuple[str, list[int]]]]:
    """What the index of a tree says of each term: the nodes that have it, and how often in which field."""

    def look(snapshot: IndexSnapshot) -> dict[str, list[tuple[str, list[int]]]]:
        found = snapshot.postings(list(snapshot.terms("", "\U0010ffff")))
        ids = snapshot.ids({int(row["node"]) for rows in found.values() for row in rows})
        return {
            term: sorted(
                (ids[int(row["node"])], [int(row[name]) for name in ("title", "about", "content")])
                for row in rows
            )
            for term, rows in found.items()
            if len(rows)
        }

    return TextIndex(tree).query(look)


def grower(tree: Tree, rng: random.Random, steps: int) -> Callable[[], bool]:
    """Return what says whether a tree still grows, and has it grow, change and shrink a little each time."""
    there: list[str] = []
    left = steps

    def growing() -> bool:
        nonlocal left
        if not left:
            return False
        left -= 1
        for _ in range(rng.randint(0, 30)):
            text = " ".join(rng.choices(WORDS, k=rng.randint(0, 20)))
            what = rng.random()
            if what < 0.7 or not there:
                there.append(f"n{steps - left}-{len(there)}-{rng.random()}")
                tree.add(Node(there[-1], rng.choice(WORDS), content=text), tree.root)
            elif what < 0.9:
                tree.update(Node(rng.choice(there), rng.choice(WORDS), content=text))
            else:
                tree.delete(there.pop(rng.randrange(len(there))))
        return True

    return growing


@pytest.mark.parametrize("seed", range(20))
def test_a_tree_that_changes_while_it_is_followed_is_indexed_as_it_is_at_the_end(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_module, "BATCH_NODES", 40)
    monkeypatch.setattr(index_module, "_PAGE", 7)
    monkeypatch.setattr(index_module, "_PAUSE_S", 0.0)
    tree = Tree.create()
    index = TextIndex(tree)
    index.follow(grower(tree, random.Random(seed), 25))
    assert index.store.sequence() == tree.sequence
    followed = said(tree)
    index.store.clear()
    index.refresh()
    assert followed == said(tree) and followed


def test_another_writer_ends_it_and_a_refresh_does_the_rest() -> None:
    tree = Tree.create()
    index, grow = TextIndex(tree), grower(tree, random.Random(1), 10)

    def growing() -> bool:
        more = grow()
        TextIndex(tree).refresh()
        return more

    index.follow(growing)
    index.refresh()
    followed = said(tree)
    index.store.clear()
    index.refresh()
    assert followed == said(tree)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number in range(30):
        (tmp_path / f"f{number}.py").write_text(f"def function_{number}():\n    return {number}\n")
    return tmp_path


def test_a_process_indexes_what_is_built_after_it_was_started(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follower_module, "cores", lambda: 2)
    build_tree(folder).close()
    seen: list[tuple[int, int]] = []
    follower = IndexFollower()
    follower.start(folder / ".metatree")
    (folder / "late.py").write_text("def latecomer():\n    return 'zanzibar'\n")
    with build_tree(folder) as tree:
        follower.finish(lambda done, total: seen.append((done, total)))
        assert TextIndex(tree).store.sequence() == tree.sequence
        assert "zanzibar" in said(tree)
        follower.close()


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_process_that_is_killed_leaves_the_rest_to_a_refresh(
    folder: Path, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follower_module, "cores", lambda: 2)
    follower = IndexFollower()
    with build_tree(folder) as tree:
        follower.start(folder / ".metatree")
        assert follower._process is not None
        if when == "after":
            while TextIndex(tree).store.generation() == 0:
                follower.finish()
        follower._process.kill()
        follower.finish()
        follower.close()
        assert "function_7" in {*said_after_refresh(tree)}


def said_after_refresh(tree: Tree) -> dict[str, list[tuple[str, list[int]]]]:
    TextIndex(tree).refresh()
    return said(tree)
