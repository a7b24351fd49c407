"""What commits say of a file counts less than what files say, unless the question speaks of changes."""

from __future__ import annotations

from pathlib import Path

import pytest
from metatree_memory_tools import build_tree
from metatree_routers import TextEvidence

from tests.integration.git_repository import Repository

pytestmark = pytest.mark.integration

HISTORY = "till.py::@history"


def test_a_history_counts_in_full_where_changes_are_asked_for(tmp_path: Path) -> None:
    made = Repository(tmp_path / "shop")
    made.commit("Begin", {"till.py": "LEAST = 0\n", "notes.md": "Refunds of a gift card are paid in full.\n"})
    made.commit("Pay refunds of gift cards", {"till.py": "LEAST = 1\n"})
    with build_tree(made.root, out=tmp_path / "tree", history=True) as tree:
        evidence = TextEvidence(tree, embeddings=False)

        def share(question: str) -> float:
            scores = {scored.node_id: scored.score for scored in evidence.score([question])}
            return scores[HISTORY] / scores["notes.md"]

        asked = "are refunds of gift cards paid?"
        assert share(f"Why {asked}") == share(f"When {asked}") > 1.2 * share(f"How {asked}")
