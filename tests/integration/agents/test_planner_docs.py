"""The page on the planner: its examples do what it says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from metatree_agents.planner import Domain

pytestmark = pytest.mark.integration

PAGE = (Path(__file__).parents[3] / "docs" / "planner.md").read_text()


def _blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, flags=re.DOTALL)


def test_the_first_example_is_killed_and_goes_on(tmp_path: Path) -> None:
    file = tmp_path / "trip.py"
    file.write_text(_blocks("python")[0])
    first = subprocess.run(
        [sys.executable, file, "--killed"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (first.returncode, first.stdout) == (-9, "book train\nbook hotel\n")
    second = subprocess.run(
        [sys.executable, file, "trip-1"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert second.stdout == "book hotel\ncomplete\n"


def test_the_second_example_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    example = _blocks("python")[1]
    exec(compile(example, "planner.md", "exec"), {"__name__": "example"})
    assert capsys.readouterr().out == "complete [None, 'from home to market', 'seen', 'bread for 3']\n"


def test_the_domain_in_toml_is_one(tmp_path: Path) -> None:
    (text,) = _blocks("toml")
    file = tmp_path / "delivery.toml"
    file.write_text(text)
    assert [action.kind for action in Domain.from_file(file).library.actions.values()] == ["task", "rule"]
