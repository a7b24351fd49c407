"""Which tree a command works on when `--source` and `--tree` do not agree."""

from __future__ import annotations

from pathlib import Path

import pytest
from metatree_agents.cli.app import run

pytestmark = pytest.mark.integration


@pytest.mark.parametrize(
    "command", [["files", "refunds"], ["ask", "refunds?"], ["find", "refunds"], ["show"], ["runs"]]
)
def test_a_tree_of_another_folder_answers_nothing(
    project: Path, tmp_path: Path, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    other, kept = tmp_path / "other", str(tmp_path / "kept")
    other.mkdir()
    (other / "b.py").write_text("B = 1\n")
    assert run(["build", str(project), "--tree", kept]) == 0
    capsys.readouterr()
    for given in (command, ["build", str(other)]):
        option = [] if given[0] == "build" else ["--source", str(other)]
        assert run([*given, *option, "--tree", kept]) == 2
        shown = capsys.readouterr()
        assert f"this tree is of '{project}', not of '{other}'" in shown.err
        assert not shown.out
    assert run(["show", "--source", ".", "--tree", kept]) == 0


def test_a_question_to_a_folder_that_was_renamed(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = str(tmp_path / "kept")
    assert run(["build", ".", "--tree", kept]) == 0
    moved = project.rename(tmp_path / "moved")
    assert run(["files", "refunds", "--source", str(moved), "--tree", kept]) == 0
    assert "guide.md" in capsys.readouterr().out
