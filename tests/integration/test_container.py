"""The container file and the example beside it name what is there; building it needs a network and is done by hand."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import typer
import yaml
from metatree_agents.cli._main import app

pytestmark = pytest.mark.integration
ROOT = Path(__file__).parents[2]
CONTAINER = (ROOT / "Containerfile").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def options_of(command: str) -> set[str]:
    group = typer.main.get_command(app())
    parameters = group.commands[command].params  # type: ignore[attr-defined]
    return {option for parameter in parameters for option in parameter.opts}


def test_all_that_a_wheel_holds_is_copied_and_nothing_else() -> None:
    copied = {name for line in re.findall(r"^COPY (?!--)(.+) \S+$", CONTAINER, re.M) for name in line.split()}
    packages = {
        path.partition("/")[0] for path in PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    }
    assert copied == packages | {"pyproject.toml", PROJECT["project"]["readme"], "LICENSE"}
    assert all((ROOT / name).exists() for name in copied)
    ignored = (ROOT / ".dockerignore").read_text().split()
    assert {line[1:] for line in ignored if line.startswith("!")} == copied


def test_extras_and_options_are_known() -> None:
    (extras,) = re.findall(r"'\.\[([a-z,]+)\]'", CONTAINER)
    assert set(extras.split(",")) <= set(PROJECT["project"]["optional-dependencies"])
    (command,) = re.findall(r'^CMD (\["serve".+\])$', CONTAINER, re.M)
    assert set(re.findall(r"--[a-z-]+", command)) <= options_of("serve")
    server = yaml.safe_load((ROOT / "examples" / "compose.yaml").read_text())["services"]["server"]
    assert server["command"][0] == "serve"
    assert {word.partition("=")[0] for word in server["command"][1:]} <= options_of("serve")


def test_it_does_not_run_as_root() -> None:
    (user,) = re.findall(r"^USER (\d+):\d+$", CONTAINER, re.M)
    assert int(user) > 0
