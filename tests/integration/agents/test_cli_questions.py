"""`metatree questions` and `answer`: from another process, with a run that waits and one that has stopped."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from metatree_agents.cli._main import run
from metatree_agents.cli.schemas import search

pytestmark = pytest.mark.integration

METATREE = Path(sys.executable).with_name("metatree")
QUESTION = "xylophone zeppelin quokka?"


def _open(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    capsys.readouterr()
    assert run(["questions", "--json"]) in (0, 1)
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["questions"]
    return found


def test_answer_takes_a_stopped_run_up(
    project: Path, capsys: pytest.CaptureFixture[str], conforms: Callable[[Any, Any], None]
) -> None:
    assert run(["ask", QUESTION, "--human", "--run", "r1"]) == 4
    told = capsys.readouterr().err
    (question,) = _open(capsys)
    assert f"answer it with: metatree answer {question['id']} TEXT" in told
    conforms({"questions": [question]}, search.QuestionsOutput)
    assert (question["question"], question["run"]) == (QUESTION, "r1")
    assert run(["questions"]) == 0
    assert capsys.readouterr().out == f"{question['id']}  {QUESTION}\n"
    assert run(["answer", question["id"][:4], "In the zoo", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    conforms(printed, search.AskOutput)
    assert (printed["answer"], printed["ended"]) == ("In the zoo", "answered")
    assert run(["questions"]) == 1
    assert "no question is open" in capsys.readouterr().err


def test_an_answer_of_a_person_is_shown_as_a_persons(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["ask", QUESTION, "--human", "--run", "r1"]) == 4
    (question,) = _open(capsys)
    assert run(["answer", question["id"], "In the zoo"]) == 0
    assert capsys.readouterr().out == "In the zoo [1]\n\nSources\n  [1] a person\n"


def test_answer_wakes_the_run_that_waits_in_another_process(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["build", "."]) == 0
    command = [str(METATREE), "ask", QUESTION, "--human", "--wait", "60", "--json"]
    asking = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not (questions := _open(capsys)) and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(0.5)  # let it come to its wait
    assert run(["answer", questions[0]["id"], "In the zoo"]) == 0
    out, err = asking.communicate(timeout=60)
    assert asking.returncode == 0, err
    assert json.loads(out)["answer"] == "In the zoo"


def test_wrong_id_and_second_answer_are_wrong_use(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ask", QUESTION, "--human", "--run", "r1"]) == 4
    (question,) = _open(capsys)
    assert run(["answer", "nothing", "x"]) == 2
    assert "no item 'nothing'" in capsys.readouterr().err
    assert run(["answer", question["id"], "first"]) == 0
    capsys.readouterr()
    assert run(["answer", question["id"], "second"]) == 2
    assert "has an answer already: 'first'" in capsys.readouterr().err
