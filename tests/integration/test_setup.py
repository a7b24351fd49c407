"""The first command on a fresh machine: which Python it takes, and what it says when there is none."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]


def _program(folder: Path, name: str, script: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def _setup(venv: Path, wanted: str, path: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [ROOT / ".ci" / "setup", venv, wanted],
        text=True,
        capture_output=True,
        check=False,
        env={"PATH": f"{path}:/usr/bin:/bin" if wanted else f"{path}"},
    )


def _without_python(folder: Path) -> Path:
    """Return a folder with the few tools that the script calls and no Python but those put there later."""
    for tool in ("dirname", "rm"):
        _program(folder, tool, f'exec {shutil.which(tool)} "$@"')
    return folder


def test_no_python_is_said_with_a_remedy(tmp_path: Path) -> None:
    done = _setup(tmp_path / "venv", "", _without_python(tmp_path / "bin"))
    assert done.returncode == 1
    assert "metatree needs Python 3.11 or later" in done.stderr
    assert "apt install python3.11" in done.stderr


def test_too_old_a_python_is_named(tmp_path: Path) -> None:
    tools = _without_python(tmp_path / "bin")
    _program(tools, "python3", 'case "$2" in *sys.exit*) exit 1;; *) echo "python3 is Python 3.8.10";; esac')
    done = _setup(tmp_path / "venv", "", tools)
    assert done.returncode == 1
    assert "(python3 is Python 3.8.10)" in done.stderr


def test_named_python_that_will_not_do_is_named(tmp_path: Path) -> None:
    done = _setup(tmp_path / "venv", "/nowhere/python3.7", tmp_path)
    assert done.returncode == 1
    assert "/nowhere/python3.7 is not one" in done.stderr


def test_first_python_that_is_recent_enough_is_taken(tmp_path: Path) -> None:
    tools = _without_python(tmp_path / "bin")
    _program(tools, "python3.11", "exit 127")  # a shim without a Python behind it
    log = tmp_path / "log"
    _program(tools, "python3.12", f'echo "$@" >> {log}; case "$1" in --version) echo Python 3.12.1;; esac')
    _setup(tmp_path / "venv", "", tools)
    assert f"-m venv {tmp_path / 'venv'}" in log.read_text()
