"""An empty argument is refused by every command, in a message that says which one it is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from metatree_agents.cli._main import app, run


def _with_arguments(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], int]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _with_arguments(command, (*path, name))
        elif count := sum(parameter.param_type_name == "argument" for parameter in command.params):
            yield (*path, name), count


@pytest.mark.parametrize(
    ("path", "count"),
    [pytest.param(*each, id=" ".join(each[0])) for each in _with_arguments(typer.main.get_command(app()))],
)
def test_an_empty_argument_is_named(
    path: tuple[str, ...],
    count: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("METATREE_SECRET", "secret")
    needed = {"worker": ["--server", "http://127.0.0.1:9", "--user", "one"], "serve": ["--port", "0"]}
    assert run([*path, *[""] * count, *needed.get(path[-1], [])]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert re.search(r"''|'[^']+': it is empty|the \w+ is empty|after @", shown.err), shown.err
    assert not re.search(r"\b(of|is|not|no) ?[:;,.]", shown.err), shown.err
    assert list(tmp_path.iterdir()) == []
