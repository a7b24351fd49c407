"""Tools that change something, on the command line: --allow, the question on the board, or at the terminal."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from metatree_agents.cli._main import run
from metatree_agents.cli.schemas import search

from metatree import Node, Tree, plugins, tool
from metatree.notes.permissions import Permissions
from metatree.tools.tool import Tool

pytestmark = pytest.mark.integration

QUESTION = "What is the colour of the quokka?"
TOOL = """
from pathlib import Path
from metatree import Node, tool

@tool(kind="exploratory", kinds=["folder", "file", "section"], changes=True, reuse="run")
def look_up(node: Node) -> str:
    "Ask the zoo."
    with Path("calls.txt").open("a") as calls:
        calls.write(node.id + "\\n")
    return "The colour of the quokka is brown."
"""


@pytest.fixture
def calls() -> list[str]:
    return []


@pytest.fixture
def zoo(calls: list[str]) -> Iterator[Tool]:
    """A tool that changes something, plugged into every search of this process."""

    @tool(kind="exploratory", kinds=["folder", "file", "section"], changes=True, reuse="run")
    def look_up(node: Node) -> str:
        "Ask the zoo."
        calls.append(node.id)
        return "The colour of the quokka is brown."

    plugins.register(plugins.TOOLS, "zoo", look_up)
    yield look_up
    plugins.unregister(plugins.TOOLS, "zoo")


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "zoo.md").write_text("# Animals\n\nThe quokka has a colour.\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", None)
    return tmp_path


def test_a_run_waits_for_the_permission_and_goes_on_with_the_answer(
    small: Path, zoo: Tool, calls: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["ask", QUESTION, "--json"]) == 4
    printed = capsys.readouterr()
    assert json.loads(printed.out)["ended"] == "waiting"
    command = printed.err.partition("answer it with: metatree answer ")[2].split()[0]
    assert calls == []
    assert run(["questions"]) == 0
    assert "May look_up be called with {} at" in capsys.readouterr().out
    assert run(["answer", command, "always"]) == 0
    assert "The colour of the quokka is brown." in capsys.readouterr().out
    assert len(calls) == 1
    assert run(["ask", QUESTION]) == 0, "it was permitted for good"
    assert len(calls) == 2


def test_no_is_a_no(small: Path, zoo: Tool, calls: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ask", QUESTION]) == 4
    question = capsys.readouterr().err.partition("answer it with: metatree answer ")[2].split()[0]
    while (code := run(["answer", question, "no"])) == 4:  # the next node that the tool works on
        question = capsys.readouterr().err.partition("answer it with: metatree answer ")[2].split()[0]
    assert code == 1
    assert calls == []


def test_allow_is_for_one_run_and_one_tool(
    small: Path, zoo: Tool, calls: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["ask", QUESTION, "--allow", "look_up"]) == 0
    assert len(calls) == 1
    assert "look_up was called with {} at zoo.md" in capsys.readouterr().err
    assert run(["ask", QUESTION]) == 4


@pytest.mark.parametrize("name", ["zoo:1:look_up", "look_up", "Ask the ZOO"])
def test_allow_takes_the_last_part_of_an_id_and_the_title(small: Path, name: str, calls: list[str]) -> None:
    plugins.register(plugins.TOOLS, "zoo", _zoo(calls, "zoo:1:look_up"))
    try:
        assert run(["ask", QUESTION, "--allow", name]) == 0
    finally:
        plugins.unregister(plugins.TOOLS, "zoo")
    assert len(calls) == 1


def test_allow_of_no_tool_lists_those_there_are(
    small: Path, zoo: Tool, calls: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    run(["build", "."])
    capsys.readouterr()
    assert run(["ask", QUESTION, "--allow", "look"]) == 2
    said = capsys.readouterr().err
    assert said == "metatree: --allow 'look' fits no tool: those that ask for permission are look_up\n"
    assert calls == []


def test_allow_of_several_tools_asks_which(
    small: Path, calls: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    plugins.register(plugins.TOOLS, "zoo", [_zoo(calls, "a:look_up"), _zoo(calls, "b:look_up")])
    try:
        assert run(["ask", QUESTION, "--allow", "look_up"]) == 2
    finally:
        plugins.unregister(plugins.TOOLS, "zoo")
    assert "--allow 'look_up' fits 2 tools: name one, of a:look_up, b:look_up" in capsys.readouterr().err


def test_allow_is_needless_where_no_tool_asks(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ask", QUESTION, "--allow", "look_up"]) == 2
    assert "fits no tool: none here asks for permission" in capsys.readouterr().err


def _zoo(calls: list[str], name: str) -> Tool:
    @tool(kind="exploratory", name=name, title="Ask the zoo", changes=True, reuse="run")
    def look_up(node: Node) -> str:
        "Ask the zoo."
        calls.append(node.id)
        return "The colour of the quokka is brown."

    return look_up


def test_permissions_are_listed_and_taken_back(
    small: Path,
    zoo: Tool,
    calls: list[str],
    capsys: pytest.CaptureFixture[str],
    conforms: Callable[[Any, Any], None],
) -> None:
    assert run(["build", "."]) == 0
    assert run(["plugins", "--permissions"]) == 1
    with Tree.open(small) as tree:
        Permissions(tree.memory).grant(zoo, who="ann")
    capsys.readouterr()
    assert run(["plugins", "--permissions", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    conforms(told, search.PermissionsOutput)
    assert [(p["tool"], p["who"]) for p in told["permissions"]] == [("look_up", "ann")]
    assert run(["plugins", "--permissions"]) == 0
    assert "look_up  may be called without asking; ann said so on" in capsys.readouterr().out
    assert run(["plugins", "--revoke", "look"]) == 2
    assert "those that have one: look_up" in capsys.readouterr().err
    assert run(["plugins", "--revoke", "look_up"]) == 0
    assert run(["ask", QUESTION]) == 4
    assert calls == []


def _at_terminal(folder: Path, answer: str) -> tuple[int, str]:
    """Ask at a real terminal, give an answer when the question comes, and return exit code and output."""
    site = folder / "site"
    info = site / "zoo-1.dist-info"
    info.mkdir(parents=True)
    (site / "zoo_tool.py").write_text(TOOL)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: zoo\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[metatree.tools]\nzoo = zoo_tool:look_up\n")
    (folder / "project").mkdir()
    (folder / "project" / "zoo.md").write_text("# Animals\n\nThe quokka has a colour.\n")
    parent, child = pty.openpty()
    process = subprocess.Popen(
        [str(Path(sys.executable).with_name("metatree")), "ask", QUESTION],
        cwd=folder / "project",
        env={**os.environ, "PYTHONPATH": str(site), "TERM": "dumb"},
        stdin=child,
        stdout=child,
        stderr=child,
    )
    os.close(child)
    seen = ""
    asked = 0
    while select.select([parent], [], [], 60)[0]:
        try:
            seen += os.read(parent, 4096).decode(errors="replace")
        except OSError:
            break
        if seen.count("[N]o: ") > asked:
            asked += 1
            os.write(parent, answer.encode() + b"\n")
    code = process.wait(30)
    os.close(parent)
    return code, seen


@pytest.mark.parametrize(("answer", "code", "called"), [("y", 0, True), ("always", 0, True), ("", 1, False)])
def test_at_a_terminal_the_person_is_asked(tmp_path: Path, answer: str, code: int, called: bool) -> None:
    ended, seen = _at_terminal(tmp_path, answer)
    assert "look_up may change something outside of the memory: Ask the zoo." in seen
    assert ended == code, seen
    assert (tmp_path / "project" / "calls.txt").exists() is called
    with Tree.open(tmp_path / "project") as tree:
        kept = [each.tool for each in Permissions(tree.memory).all()]
    assert kept == (["look_up"] if answer == "always" else [])
