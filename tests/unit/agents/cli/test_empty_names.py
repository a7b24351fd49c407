"""An empty argument or option is refused by every command, in a message that says which one it is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from metatree_agents.cli._main import app, run

Command = tuple[str, ...]
NOTHING = {"--context", "--why"}
"""Options whose empty text says what leaving them out says."""


def _commands(group: Any, path: Command = ()) -> Iterator[tuple[Command, Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, (*path, name))
        else:
            yield (*path, name), command


def _arguments(command: Any) -> list[Any]:
    return [parameter for parameter in command.params if parameter.param_type_name == "argument"]


def _with_arguments() -> Iterator[tuple[Command, int]]:
    for path, command in _commands(typer.main.get_command(app())):
        if arguments := _arguments(command):
            yield path, len(arguments)


def _with_options() -> Iterator[tuple[Command, int, str]]:
    for path, command in _commands(typer.main.get_command(app())):
        for parameter in command.params:
            if parameter.param_type_name == "option" and not parameter.is_flag:
                option = max(parameter.opts, key=len)
                yield path, sum(one.required for one in _arguments(command)), option


@pytest.fixture
def refusal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    """Run a command in an empty folder, which stays empty, and return why it is refused."""

    def refused(*words: str) -> str:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("METATREE_SECRET", "secret")
        assert run([*words]) == 2
        shown = capsys.readouterr()
        assert shown.out == "" and list(tmp_path.iterdir()) == []
        return shown.err

    return refused


@pytest.mark.parametrize(
    ("path", "count"), [pytest.param(*each, id=" ".join(each[0])) for each in _with_arguments()]
)
def test_an_empty_argument_is_named(refusal: Callable[..., str], path: Command, count: int) -> None:
    needed = {"worker": ["--server", "http://127.0.0.1:9", "--user", "one"], "serve": ["--port", "0"]}
    said = refusal(*path, *[""] * count, *needed.get(path[-1], []))
    assert re.search(r"''|'[^']+': it is empty|the \w+ is empty|after @", said), said
    assert not re.search(r"\b(of|is|not|no) ?[:;,.]", said), said


@pytest.mark.parametrize(
    ("path", "count", "option"),
    [
        pytest.param(*each, id=" ".join((*each[0], each[2])))
        for each in _with_options()
        if each[2] not in NOTHING
    ],
)
def test_an_empty_option_is_named(
    refusal: Callable[..., str], path: Command, count: int, option: str
) -> None:
    """A variable of the shell that is not set makes one: `--tree "$KB"`."""
    said = refusal(*path, *["x"] * count, option, "")
    assert f"Invalid value for '{option}'" in said, said
