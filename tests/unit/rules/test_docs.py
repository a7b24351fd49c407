"""What docs/rules.md says is what happens."""

from __future__ import annotations

import doctest
import importlib.util
from pathlib import Path

import pytest

from metatree.rules import Program

ROOT = Path(__file__).parents[3]


def test_the_examples_of_the_page_run() -> None:
    result = doctest.testfile(str(ROOT / "docs" / "rules.md"), module_relative=False)
    assert result.attempted > 10
    assert result.failed == 0


def test_the_program_of_the_example_runs() -> None:
    program = Program.parse(
        (ROOT / "examples" / "river_crossing" / "river.rules").read_text(encoding="utf-8")
    )
    report = program.shell().run(program.facts, seed=program.seed)
    assert (report.ended, report.cycles) == ("accepted", 11)


def test_the_control_shell_example_answers_and_stops(capsys: pytest.CaptureFixture[str]) -> None:
    path = ROOT / "examples" / "control_shell.py"
    spec = importlib.util.spec_from_file_location("control_shell", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.main() == 0
    output = capsys.readouterr().out
    assert "When are invoices due? Invoices are sent on the first of each month" in output
    assert "Who founded the company? (nothing was found)" in output
    assert "The run ended: accepted (the resolver stopped the run)" in output
    assert "Calling a colleague" not in output
