"""Files with times that no database holds, and names and values of thousands of digits."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from metatree_memory_tools import build_tree

from metatree import search

pytestmark = pytest.mark.integration
DIGITS = "1" * 4_500


@pytest.mark.parametrize("when", [13_569_465_600, -13_569_465_600])
def test_a_file_from_after_the_year_2262_is_read_and_disturbs_nothing(tmp_path: Path, when: int) -> None:
    names = {"a.md": b"# Tea\n\nThe kettle is blue.\n", "b.bin": b"\0\1\2" * 99, ".env": b"A=b\n"}
    names["huge.txt"] = b"tea is good\n" * 200_000
    for name, data in names.items():
        (tmp_path / name).write_bytes(data)
        os.utime(tmp_path / name, (when, when))
    if (tmp_path / "a.md").stat().st_mtime_ns // 1_000_000_000 != when:
        pytest.skip("the file system has no such times")
    (tmp_path / "b.md").write_text("# Pot\n\nThe pot is red.\n")
    with build_tree(tmp_path) as tree:
        assert {node.id for node in tree.children()} == {"a.md", "b.md", "huge.txt"}
        assert "blue" in tree.content("a.md") and not tree.stale()
        assert search(["What is blue?"], tree=tree).closest or search(["What is blue?"], tree=tree).answers
    (tmp_path / "a.md").write_text("# Tea\n\nThe kettle is gold.\n")
    os.utime(tmp_path / "a.md", (when, when))
    with build_tree(tmp_path) as tree:
        assert "gold" in tree.content("a.md")


def test_names_and_values_of_thousands_of_digits_end_nothing(tmp_path: Path) -> None:
    said = [{"speaker": "Ann", "text": "The kettle is blue."}]
    (tmp_path / "a.json").write_text(json.dumps({f"session_{DIGITS}": said, "session_1": said}))
    (tmp_path / "b.json").write_text(f'{{"messages": {DIGITS}}}')
    (tmp_path / "c.md").write_text(f"---\ndate: {DIGITS}\n---\n\n# Kettle {DIGITS}\n\nThe kettle is blue.\n")
    with build_tree(tmp_path) as tree:
        assert dict(tree.omissions()) == {}
        assert any(node.kind == "turn" for _, node in tree.walk())
        search([f"Which kettle is {DIGITS}?"], tree=tree)
