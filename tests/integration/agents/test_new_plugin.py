"""`metatree new-plugin`: each package is installed as pip does it, its own tests pass, and it is of use."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest
from metatree_agents.cli._main import run
from metatree_agents.cli.new_plugins.package import PluginKind, make_package
from metatree_agents.cli.schemas._new_plugin import NewPluginOutput

from metatree import UserError

pytestmark = pytest.mark.integration

KINDS = get_args(PluginKind)
GROUPS = {
    "memory-type": "metatree.memory_types",
    "source": "metatree.sources",
    "tool": "metatree.tools",
    "router": "metatree.routers",
}
BIN = Path(sys.executable).parent


def _run(*command: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**os.environ, "PATH": os.pathsep.join([str(BIN), os.environ["PATH"]]), **environment},
        text=True,
        capture_output=True,
        check=False,
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_package_is_installed_tested_and_used(kind: PluginKind, tmp_path: Path) -> None:
    entry = f"very-{kind}"
    made = _run("metatree", "new-plugin", f"metatree-{entry}", "--kind", kind, "--json", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    package = Path(json.loads(made.stdout)["path"])
    # With the hatchling that is here: an environment of its own for that takes more than all else.
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "-q", "--no-deps")
    options = ("--no-build-isolation", "--no-index", "--no-compile", "--target", "site")
    done = _run(*pip, *options, package, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    site = str(tmp_path / "site")
    # In a folder of its own: pytest looks through the others of this user, which come and go, with a warning.
    alone = ("--basetemp", str(tmp_path / "alone"))
    tested = _run(sys.executable, "-m", "pytest", "-q", "-W", "error", *alone, cwd=package, PYTHONPATH=site)
    assert tested.returncode == 0, tested.stdout + tested.stderr
    listed = _run("metatree", "plugins", "--json", cwd=tmp_path, PYTHONPATH=site)
    assert listed.returncode == 0, listed.stdout
    (plugin,) = [each for each in json.loads(listed.stdout)["plugins"] if each["name"] == entry]
    assert (plugin["group"], plugin["package"], plugin["error"]) == (GROUPS[kind], f"metatree-{entry}", None)
    # What its README says to type, in the package itself.
    readme = (package / "README.md").read_text(encoding="utf-8")
    lines = readme.split("```sh\n")[1].split("```")[0].splitlines()
    assert lines[:2] == ["pip install -e '.[test]'    # so that its entry point is found", "pytest"]
    for line in lines[2:]:
        shown = _run("sh", "-c", line, cwd=package, PYTHONPATH=site)
        assert shown.returncode == 0, (line, shown.stdout, shown.stderr)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_written_is_in_form(kind: PluginKind, tmp_path: Path) -> None:
    made = make_package("metatree-x_y", kind, tmp_path / "a" / "b")
    assert sorted(str(f.relative_to(made.path)) for f in made.path.rglob("*") if f.is_file()) == list(
        made.files
    )
    project = tomllib.loads((made.path / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["entry-points"] == {GROUPS[kind]: {"x_y": made.object}}
    assert project["dependencies"] == ["metatree-memory"]
    for check in (("format", "--check"), ("check", "--select", "E,F,W,I,UP,B")):
        done = _run("ruff", *check, "--isolated", "--line-length", "110", ".", cwd=made.path)
        assert done.returncode == 0, done.stdout
    assert not [f for f in made.files if "$" in (made.path / f).read_text(encoding="utf-8")]
    assert len((made.path / "README.md").read_text(encoding="utf-8").splitlines()) <= 11


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Recipes", "is no name for a package"),
        ("a--b", "is no name for a package"),
        ("-a", "is no name for a package"),
        ("../a", "is no name for a package"),
        ("1a", "is no name for a package"),
        ("a" * 61, "is no name for a package"),
        ("a\n", "is no name for a package"),
        ("class", "is a word of Python"),
        ("match", "is a word of Python"),
        ("json", "is a module of Python"),
        ("tests", "is a module of Python"),
        ("metatree", "is installed"),
        ("metatree-memory", "is installed"),
        ("metatree-routers", "is installed"),
        ("pydantic", "is installed"),
        ("pydantic_core", "is installed"),
        ("metatree-1a", "begins with no letter"),
        ("metatree-https", "has a meaning of its own"),
        ("metatree-markdown", "a plug-in 'markdown' of 'metatree.memory_types' is installed"),
    ],
)
def test_a_name_that_cannot_be_used_is_refused(name: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=message):
        make_package(name, "memory-type", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_folder_that_is_there_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))  # as with `python -m`
    (tmp_path / "recipes").mkdir()
    (tmp_path / "file").write_text("")
    assert run(["new-plugin", "recipes"]) == 2
    assert "is there; name another folder with --out" in capsys.readouterr().err
    assert list((tmp_path / "recipes").iterdir()) == []
    assert run(["new-plugin", "recipes", "--out", "file/in"]) == 2
    assert run(["new-plugin", "recipes", "--kind", "builder"]) == 2
    capsys.readouterr()
    assert run(["new-plugin", "recipes", "--out", "other"]) == 0
    told = capsys.readouterr()
    assert str(tmp_path / "other" / "src" / "recipes" / "__init__.py") in told.out.splitlines()
    assert "pip install -e" in told.err


def test_nothing_is_left_of_what_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Path.write_text

    def full(self: Path, *args: Any, **named: Any) -> int:
        if self.name == "README.md":
            raise OSError(28, "No space left on device")
        return real(self, *args, **named)

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(Exception, match="No space left on device"):
        make_package("recipes", "tool", tmp_path / "recipes")
    assert list(tmp_path.iterdir()) == []


def test_json_is_as_its_schema_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], conforms: Callable[[Any, Any], None]
) -> None:
    assert run(["new-plugin", "recipes", "--kind", "tool", "--out", str(tmp_path / "r"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    conforms(told, NewPluginOutput)
    assert told["object"] == "recipes:tools"
    assert told["files"] == [
        "README.md",
        "pyproject.toml",
        "src/recipes/__init__.py",
        "tests/test_recipes.py",
    ]
