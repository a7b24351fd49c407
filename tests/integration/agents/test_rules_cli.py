"""`metatree rules`, end to end."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from metatree_agents.cli._main import run
from metatree_agents.cli.schemas.search import RulesOutput

from metatree.rules import Program

pytestmark = pytest.mark.integration

RIVER = Path(__file__).parents[3] / "examples" / "river_crossing" / "river.rules"


@dataclass
class Done:
    returncode: int
    stdout: str
    stderr: str


Rules = Callable[..., Done]


@pytest.fixture
def rules(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Rules:
    """Return a function that runs the command in this process, on a file or on a text."""

    def run_rules(*arguments: str | Path, text: str | None = None, typed: str = "") -> Done:
        if text is not None:
            program = tmp_path / "program.rules"
            program.write_text(text, encoding="utf-8")
            arguments = tuple(program if argument == "-" else argument for argument in arguments)
        monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
        code = run(["rules", *map(str, arguments)])
        out, err = capsys.readouterr()
        return Done(code, out, err)

    return run_rules


def test_a_program_runs_and_prints_what_fires(rules: Rules) -> None:
    done = rules(RIVER)
    assert done.returncode == 0, done.stderr
    assert 'Production "start trip" can add: 4' in done.stdout
    assert "reached accepting state" in done.stdout
    assert "(a3 includes a4)" in done.stdout


def test_json_trace_and_picture(rules: Rules, tmp_path: Path, conforms: Callable[[Any, Any], None]) -> None:
    trace, picture = tmp_path / "trace.json", tmp_path / "schedule.dot"
    done = rules(RIVER, "--json", "--trace", trace, "--picture", picture, "--query", "(<t> includes a4)")
    shape = json.loads(done.stdout)
    conforms(shape, RulesOutput)
    assert (shape["ended"], shape["cycles"], shape["answers"]) == ("accepted", 11, [{"t": "a3"}])
    assert len(json.loads(trace.read_text())["trace"]) == 11
    assert picture.read_text().startswith("digraph schedule {")


def test_stepping_waits_and_can_be_ended(rules: Rules) -> None:
    done = rules(RIVER, "--step", typed="\n\nq\n")
    assert done.returncode == 5
    assert done.stdout.count("Transitioned to state") == 3
    assert "ended after this cycle" in done.stderr
    assert rules(RIVER, "--step", typed="\n").returncode == 0, "nobody there any more: it goes on to the end"


def test_a_limit_is_kept(rules: Rules) -> None:
    done = rules(RIVER, "--cycles", "3")
    assert done.returncode == 3
    assert "The run ended: limit (cycles)" in done.stdout


def test_why_not_says_what_is_missing(rules: Rules) -> None:
    done = rules("-", "--why-not", "coloured", text='(a on b) ((<x> on <y>) (<x> colour <c>) -> "coloured")')
    assert done.returncode == 1
    assert '"coloured" cannot fire: no fact fits: (<x> colour <c>)' in done.stdout


def test_a_program_without_a_schedule_is_matched(rules: Rules, conforms: Callable[[Any, Any], None]) -> None:
    text = '(a on b) ((<x> on <y>) -> "on") ((<x> on <y>) -> (! <y> under <x>) "turn")'
    done = rules("-", text=text)
    assert done.returncode == 0
    assert '"on": 1 token' in done.stdout
    shape = json.loads(rules("-", "--json", text=text).stdout)
    conforms(shape, RulesOutput)
    assert shape["ended"] == "matched"
    assert "(b under a)" in shape["facts"]


def test_a_run_that_is_stuck_says_what_it_expected(rules: Rules) -> None:
    text = (
        '(a on b)\n((<x> on <y>) -> "on")\n((<x> in <y>) -> "in")\nschedule {\na = 0; b = 1; main = a b;\n}\n'
    )
    done = rules("-", text=text)
    assert done.returncode == 1
    assert '"in" cannot fire: no fact fits: (<x> in <y>)' in done.stdout


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("(a on b", "line 1, column 8: found the end of the text"),
        ("(a on b)\nresolver quick\n", "there is no resolver 'quick'"),
        ("", "the program is empty"),
    ],
)
def test_mistakes_are_one_line(rules: Rules, text: str, says: str) -> None:
    done = rules("-", text=text)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_picture_needs_a_schedule(rules: Rules, tmp_path: Path) -> None:
    assert "no schedule" in rules("-", "--picture", tmp_path / "a.dot", text="(a on b)").stderr
    assert "use .dot or .mmd" in rules(RIVER, "--picture", tmp_path / "a.png").stderr


def test_runs_of_a_control_shell_are_listed_with_those_of_searches(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["build", "."]) == 0
    program = Program.parse(RIVER.read_text(encoding="utf-8"))
    journal = project / ".metatree" / "memory.db"
    program.shell().run(program.facts, seed=1, run_id="crossing", journal=journal)
    capsys.readouterr()
    assert run(["runs"]) == 0
    assert "crossing" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("\n\n(a on", "line 3, column 6: found the end of the text"),
        ("\n" + "(" * 3000, "line 2, column 68: brackets are nested more than 64 deep"),
        (
            '((<x> on <y>) ((2 * "a") = "aa") -> "n")',
            "line 1, column 21: found '\"a\"', expected a number or a",
        ),
        (
            '(a on b)\n((<x> on <y>) (<z> > 2) -> "n")',
            "line 2, column 1: production 'n': the test (<z> > 2) uses <z>",
        ),
    ],
)
def test_a_malformed_program_is_reported_with_file_line_and_column(
    rules: Rules, tmp_path: Path, text: str, says: str
) -> None:
    done = rules("-", text=text)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{tmp_path / 'program.rules'}: {says}" in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_a_program_in_which_something_failed_ends_with_exit_code_5(
    monkeypatch: pytest.MonkeyPatch, rules: Rules
) -> None:
    from metatree.rules.shell import knowledge, program

    def fails(firing: knowledge.Firing) -> None:
        raise ValueError("no")

    monkeypatch.setattr(program, "commit_all", fails)
    done = rules("-", text='(a on b)\n((<x> on <y>) -> "n")\nresolver first\nall "n"\n')
    assert done.returncode == 5
    assert "The run has failed in state 1" in done.stdout
    assert 'a firing of "n" failed for (x=a y=b): ValueError: no' in done.stdout


def test_toml_functions_and_what_was_inferred(
    rules: Rules, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, conforms: Callable[[Any, Any], None]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pricing_functions.py").write_text("FUNCTIONS = {'is-dear': lambda n: n > 100}\nOTHER = 3\n")
    (tmp_path / "shop.toml").write_text(
        'facts = ["(tea costs 120) (cup costs 5)"]\n[[rules]]\nname = "dear"\n'
        'when = "(<x> costs <n>) (#is-dear(<n>))"\nthen = "(! <x> is dear)"\n'
    )
    done = rules("shop.toml", "--functions", "pricing_functions:FUNCTIONS")
    assert done.returncode == 0, done.stderr
    assert '# (tea is dear)  by "dear" (x=tea n=120)' in done.stdout
    done = rules("shop.toml", "--functions", "pricing_functions:FUNCTIONS", "--json")
    data = json.loads(done.stdout)
    conforms(data, RulesOutput)
    assert data["inferred"] == [{"fact": "(tea is dear)", "by": ['"dear" (x=tea n=120)']}]
    for arguments, says in [
        ((), "there is no function #is-dear"),
        (("--functions", "pricing_functions:OTHER"), "is no dict of names and functions, but int"),
        (("--functions", "pricing_functions:NONE"), "cannot be imported"),
        (("--functions", "pricing_functions"), "give MODULE:NAME"),
    ]:
        done = rules("shop.toml", *arguments)
        assert done.returncode == 2
        assert says in done.stderr


def test_rules_that_come_to_no_rest_fail_and_say_so(rules: Rules) -> None:
    done = rules("-", text='(a n 1)\n((a n <x>) -> (! a n (<x> + 1)) "count up")\n')
    assert done.returncode == 5
    assert "more than 100,000 facts follow from one change, the last by 'count up'" in done.stderr


def test_the_trace_says_what_was_inferred(rules: Rules) -> None:
    done = rules(
        "-",
        text='(a on b)\n((<x> on <y>) -> (! <y> under <x>) "turn")\n((<y> under <x>) -> (!! <y> seen -) "see")\n'
        "schedule {\n s = 1; main = s+;\n}\n",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == 'Inferred (b under a) by "turn" (x=a y=b)'
    assert '# (b under a)  by "turn" (x=a y=b)' in done.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="the system bounds the memory of a process")
def test_what_matches_is_bounded_in_memory(rules: Rules) -> None:
    facts = "\n".join(f"(n{number} is x)" for number in range(1_500))
    done = rules("-", "--memory", "100", text=facts + '((<a> is x) (<b> is x) (<c> is x) -> "all")')
    assert done.returncode == 3 and "more than 100 MB" in done.stderr, done.stderr
    assert rules(RIVER).returncode == 0


def test_an_error_shows_the_beginning_of_a_long_word(rules: Rules) -> None:
    done = rules("-", text=f"(a b {'1' * 5_000})")
    assert done.returncode == 2 and "at most 1,000 digits" in done.stderr and len(done.stderr) < 400
