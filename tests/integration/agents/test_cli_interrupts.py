"""Ctrl-C, output that cannot be written and warnings: one clear line each."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from pathlib import Path

import pytest
from metatree_agents.cli._main import run

pytestmark = pytest.mark.integration

METATREE = Path(sys.executable).with_name("metatree")


def _interrupt(*arguments: object, **options: object) -> None:
    raise KeyboardInterrupt


def _shell(command: str) -> subprocess.CompletedProcess[str]:
    command = command.replace("metatree", str(METATREE))
    return subprocess.run(["bash", "-c", command], text=True, capture_output=True, check=False, timeout=120)


def test_ctrl_c_during_a_build_says_what_is_kept_and_how_to_go_on(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("metatree_memory_tools.build_tree", _interrupt)
    assert run(["build", ".", "--tree", "t"]) == 5
    assert capsys.readouterr().err == (
        "metatree: cancelled; what was read is kept: go on with `metatree build . --tree t`\n"
    )


def test_ctrl_c_outside_of_a_search_is_exit_code_5_too(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(["build", "."])
    monkeypatch.setattr("metatree.runs", _interrupt)
    capsys.readouterr()
    assert run(["runs"]) == 5
    assert "cancelled" in capsys.readouterr().err


@pytest.mark.parametrize("module", ["metatree_agents.cli._main", "typer", "metatree"])
def test_ctrl_c_while_the_commands_are_loaded(module: str) -> None:
    program = (
        "import sys\n"
        "class Interrupted:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {module!r}: raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupted())\n"
        "from metatree_agents.cli import main\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "runs"], text=True, capture_output=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (
        5,
        "metatree: cancelled before anything was done: run it again\n",
    )


def test_closed_standard_output_is_refused(project: Path) -> None:
    done = _shell("metatree find refunds >&-")
    assert done.returncode == 2
    assert done.stderr.startswith("metatree: standard output is closed: ")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
@pytest.mark.parametrize("arguments", ["build .", "--help"])
def test_full_disk_is_one_clear_line(arguments: str, project: Path) -> None:
    done = _shell(f"metatree {arguments} >/dev/full")
    assert done.returncode == 5
    *_, line = done.stderr.splitlines()
    assert line.startswith("metatree: cannot write")
    assert "No space left on device; " in line
    assert "Exception ignored" not in done.stderr


def test_closed_standard_error_disturbs_no_json(project: Path) -> None:
    done = _shell("metatree find refunds --json 2>&-")
    assert done.returncode == 0
    assert json.loads(done.stdout)["nodes"]


def test_without_a_command_the_whole_help_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "\n  doctor " in shown.err
    assert "-h, --help" in shown.err


def test_warning_is_one_line_and_its_traceback_comes_with_debug(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def warns(*arguments: object, **options: object) -> list[object]:
        for _ in range(2):
            try:
                raise ZeroDivisionError("a bug")
            except ZeroDivisionError:
                logging.getLogger("metatree").warning("the evidence raised", exc_info=True)
        return []

    run(["build", "."])
    monkeypatch.setattr("metatree.runs", warns)
    capsys.readouterr()
    assert run(["runs"]) == 1
    warning, _ = capsys.readouterr().err.splitlines()
    assert warning == (
        "metatree: warning: the evidence raised (ZeroDivisionError: a bug; --debug shows the traceback)"
    )
    assert run(["runs", "--debug"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_folder_that_may_not_be_read_is_wrong_use(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def forbidden(self: Path) -> bool:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr("metatree_agents.cli.commands._trees.has_tree", forbidden)
    assert run(["runs"]) == 2
    assert ".metatree: Permission denied; change its rights, or say with --tree" in capsys.readouterr().err


def test_folder_without_rights_names_the_option_in_every_command(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("os.access", lambda *_: False)  # rights do not bind a test that root runs
    assert run(["build", "."]) == 2
    assert ".metatree: Permission denied; change its rights, or say with --tree" in capsys.readouterr().err

    def forbidden(self: Path) -> bool:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr("metatree_agents.cli.commands.doctor.has_tree", forbidden)
    assert run(["doctor"]) == 5
    assert "FAIL  tree             .metatree: Permission denied; change its rights" in capsys.readouterr().out


def test_tree_that_cannot_be_made_names_the_option(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["build", ".", "--tree", "README.md/tree"]) == 2
    assert "say with --tree where else" in capsys.readouterr().err


def test_run_that_exists_names_the_command_that_goes_on(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["find", "refunds", "--run", "mine"]) == 0
    capsys.readouterr()
    assert run(["find", "refunds", "--run", "mine"]) == 2
    assert "go on with `metatree resume mine`, or give --run another name" in capsys.readouterr().err
