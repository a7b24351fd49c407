"""`files_to_edit` without a model walks to the files in the order in which the index ranks them."""

from __future__ import annotations

import email
import shutil
from pathlib import Path

from metatree_agents import files_to_edit
from metatree_agents.code import locate
from metatree_memory_tools import build_tree
from metatree_routers import TextEvidence, rank_files, text_evidence

ISSUE = "Header folding breaks encoded words\n\n`email.header.Header.encode` splits an encoded word at maxlinelen."


def test_the_walk_finds_the_files_that_the_index_ranks_first(tmp_path: Path) -> None:
    assert email.__file__ is not None
    shutil.copytree(Path(email.__file__).parent, tmp_path / "email", ignore=shutil.ignore_patterns("*.pyc"))
    with build_tree(tmp_path) as tree:
        evidence = text_evidence(tree)
        assert isinstance(evidence, TextEvidence)
        ranked = [file.path for file in rank_files(evidence, tree, ISSUE, 8)]
        assert [file.path for file in files_to_edit(ISSUE, tree, k=8)] == ranked
        assert ranked[0] == "email/header.py"


def test_files_that_are_not_accepted_lead_no_search_astray(tmp_path: Path) -> None:
    """Evidence in files that may not be listed would have the router walk through all of them."""
    words = "def encode(header):\n    return fold(header, maxlinelen)\n"
    for number in range(60):
        (tmp_path / f"test_{number}.py").write_text(words * 3, encoding="utf-8")
    (tmp_path / "header.py").write_text("def fold(header):\n    return header\n", encoding="utf-8")
    with build_tree(tmp_path) as tree:
        files, result = locate(ISSUE, tree, 5, accept=lambda node: not node.title.startswith("test_"))
        assert [file.path for file in files] == ["header.py"]
        assert result.usage.router_calls <= 3
