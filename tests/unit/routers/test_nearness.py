"""Nearness in meaning where a slow embedder compares the best files again."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from metatree_routers import TextEvidence, minilm, rank_files
from metatree_routers.nearness import MOST_SLOW, NEAREST, nearness

from metatree import Node, Tree

TITLE = "title"


class Angles:
    """Gives each text the direction that it names in degrees, the title 0, and remembers what it was asked."""

    def __init__(self, *, turned: bool = False) -> None:
        self.asked: list[str] = []
        self._turned = turned

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        self.asked += texts
        degrees = [0.0 if text == TITLE else float(text) for text in texts]
        angles = np.radians([90 - value if self._turned and value else value for value in degrees])
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


Files = st.lists(st.lists(st.integers(1, 89).map(str), max_size=8, unique=True), max_size=MOST_SLOW + 8)


def test_the_slow_one_has_the_last_word_on_the_best_files() -> None:
    files = [["10"], ["50"], ["80"]]
    assert np.argsort(-nearness(TITLE, files, Angles()).scores).tolist() == [0, 1, 2]
    assert np.argsort(-nearness(TITLE, files, Angles(), Angles(turned=True)).scores).tolist() == [2, 1, 0]


def test_the_slow_one_compares_what_is_nearest_in_the_first_files() -> None:
    files = [[str(degrees) for degrees in range(80, 80 - 3 * NEAREST, -3)] + ["85"]] * (MOST_SLOW + 3)
    slow = Angles(turned=True)
    near = nearness(TITLE, files, Angles(), slow)
    assert len(slow.asked) == MOST_SLOW * NEAREST + 1
    assert "85" not in slow.asked
    assert near.nearest == [0] * MOST_SLOW + [NEAREST - 1] * 3


@given(Files)
def test_the_best_files_change_places_among_themselves(files: list[list[str]]) -> None:
    before = nearness(TITLE, files, Angles()).scores
    after = nearness(TITLE, files, Angles(), Angles(turned=True)).scores
    told = [row for row, texts in enumerate(files) if texts]
    few, rest = told[:MOST_SLOW], told[MOST_SLOW:]
    assert after[rest].tolist() == before[rest].tolist()
    assert all(after[row] == 0 for row, texts in enumerate(files) if not texts)
    if few:
        assert np.isclose(after[few].mean(), before[few].mean(), atol=1e-6)
        assert after[few].std() <= before[few].std() + 1e-6


def test_with_minilm_few_definitions_are_embedded_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    class Counted:
        asked = 0

        def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
            Counted.asked += len(texts)
            return np.ones((len(texts), minilm.DIMENSIONS), dtype=np.float32)

    monkeypatch.setenv("METATREE_EMBEDDING", "minilm")
    monkeypatch.setattr(minilm, "minilm_embedder", Counted)
    tree = Tree.create()
    for number in range(MOST_SLOW + 5):
        path = f"lib/jar{number}.py"
        tree.add(Node(path, path, kind="file", attributes={"path": path}), tree.root)
        for name in range(NEAREST + 3):
            said = Node(
                f"{path}::copy{name}",
                f"copy{name}",
                "Copy the cookies.",
                kind="definition",
                content="cookies",
            )
            tree.add(said, path)
    evidence = TextEvidence(tree)
    evidence.refresh()
    Counted.asked = 0
    assert rank_files(evidence, tree, "Cookies are not copied", 3)
    assert Counted.asked == MOST_SLOW * NEAREST + 1
