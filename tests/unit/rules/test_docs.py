"""What docs/rules.md says is what happens."""

from __future__ import annotations

import doctest
import importlib.util
import re
from pathlib import Path

import pytest

from metatree.rules import Program

ROOT = Path(__file__).parents[3]


def test_the_examples_of_the_page_run() -> None:
    result = doctest.testfile(str(ROOT / "docs" / "rules.md"), module_relative=False)
    assert result.attempted > 10
    assert result.failed == 0


ACTIONS = ("(! ", "(!! ", "(- ", "(:= ")


def test_what_those_who_come_from_elsewhere_are_told_to_write_is_read() -> None:
    """The last column of the tables: conditions, actions, or what stands behind them."""
    page = (ROOT / "docs" / "rules-coming-from.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| .* \| `(.*)` \|$", page, re.MULTILINE)
    assert len(rows) > 35
    functions = {"my-function": bool, "f": bool}
    for row in (row.replace("\\|", "|") for row in rows):
        around = "(<b> on <c>) (<o> on <c>) (<b> w <x>) as <f>"
        if row.startswith("(conditions"):
            text = row.replace("conditions", around).replace("actions", "(! <b> is done)")
        elif row.startswith('"'):
            text = f"({around} -> {row})"
        elif row.startswith(ACTIONS):
            text = f'({around} -> {row} "r")'
        else:
            text = f'({row} -> "r")'
        (production,) = Program.parse(text, functions=functions).productions
        assert production.conditions


def test_the_programs_of_the_page_are_read() -> None:
    page = (ROOT / "docs" / "rules.md").read_text(encoding="utf-8")
    (toml,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    assert Program.from_toml(toml).memory().query("(species <s> -)") == [{"s": "rabbit"}]


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
