"""Histories and databases on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from metatree_agents.cli._main import run

from tests.integration.git_repository import Repository

pytestmark = pytest.mark.integration


def test_a_history_is_asked_for_once_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    repository = Repository(tmp_path / "repo")
    repository.commit("Add waiting", {"wait.py": "def wait():\n    return 5\n"})
    repository.commit("Wait longer", {"wait.py": "def wait():\n    return 30\n"})
    monkeypatch.chdir(repository.root)
    assert run(["build", ".", "--json"]) == 0
    assert "history" not in json.loads(capsys.readouterr().out)["trees"][0]["kinds"]
    assert run(["build", ".", "--history", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["trees"][0]["kinds"]["history"] == 1
    repository.commit("Wait even longer", {"wait.py": "def wait():\n    return 60\n"})
    assert run(["ask", 'Which commit added "return 5"?', "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert "Ann: Add waiting" in answer["answer"]
    nodes = {source["node"] for each in answer["answers"] for source in each["sources"]}
    assert nodes >= {"wait.py::@history"}
    assert run(["show", "wait.py::@history"]) == 0
    assert "3 commits" in capsys.readouterr().out
    assert run(["build", ".", "--no-history", "--json"]) == 0
    assert "history" not in json.loads(capsys.readouterr().out)["trees"][0]["kinds"]


def test_what_is_missing_of_a_history_is_shown_with_what_was_left_out(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(project.parent))
    assert run(["build", ".", "--history"]) == 0
    said = capsys.readouterr().err
    assert "warning: the history was not read: " in said and "lies in no git repository" in said
    assert run(["build", "."]) == 0
    assert "the history was not read" not in capsys.readouterr().err
    assert run(["show", "--omitted"]) == 0
    assert "lies in no git repository" in capsys.readouterr().out


@pytest.mark.parametrize(
    "address",
    ["postgresql://ann:hunter2@127.0.0.1:1/x", "nosuch://ann:hunter2@h/x", "postgresql://ann:hunter2@h:no/x"],
)
@pytest.mark.parametrize("option", [[], ["--json"]])
def test_a_password_in_an_address_is_never_printed(
    address: str,
    option: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["build", address, "--tree", "tree", *option]) in (2, 5)
    shown = capfd.readouterr()
    assert "hunter2" not in shown.out + shown.err
    written = b"".join(path.read_bytes() for path in (tmp_path / "tree").glob("*"))
    assert b"hunter2" not in written
