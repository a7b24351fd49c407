"""`metatree ask --service`: what a person at a terminal sees of a service, and what programs read."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import requests
from metatree_agents.cli._main import run
from metatree_agents.cli.commands.service import asking
from metatree_memory_tools import build_tree

from metatree import Tree

from .conftest import SECRETS, Served
from .test_engine import working

pytestmark = pytest.mark.integration
Serve = Callable[..., Served]
QUESTION = "How many watts has the lamp in the hall?"


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[Tree]:
    folder = tmp_path / "house"
    folder.mkdir()
    (folder / "hall.md").write_text("# Hall\n\nThe lamp in the hall has nine watts.\n")
    (folder / "bath.md").write_text("# Bath\n\nThe towels hang behind the door of the bath.\n")
    with build_tree(folder) as made:
        yield made


@pytest.fixture
def asked(serve: Serve, tree: Tree, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The options that ask a service whose engine has a tree."""
    service = serve(answer_timeout_s=20.0, claim_timeout_s=5.0, memory=tree)
    monkeypatch.setenv("METATREE_SECRET", SECRETS["User_1"][1])
    with working(service, tree):
        yield ["--service", service.url, "--user", "User_1"]


def test_an_answer_has_numbers_and_links_to_the_page(
    asked: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["ask", QUESTION, *asked, "--topic", "lamps"]) == 0
    said = capsys.readouterr().out
    assert re.search(r"nine watts\. \[1\]$", said, re.M), said
    assert re.search(r"^  \[1\] hall\.md, line 3(  Hall)?$", said, re.M), said
    link = re.search(r"http\S+/node\?\S+", said)
    assert link is not None and "id=hall.md" in link[0] and "topic=lamps" in link[0]
    assert requests.get(link[0], timeout=60).status_code == 200, "the page, or its log-in"
    assert run(["ask", *asked, "--topic", "lamps"]) == 0
    assert capsys.readouterr().out == said, "the answer of a topic is printed again, and nothing is asked"
    assert run(["ask", *asked, "--topic", "nothing"]) == 2


def test_the_json_has_the_names_of_ask_besides_those_of_the_wire(
    asked: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["ask", QUESTION, *asked, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    source = said["sources"][0]
    assert source["Node"] == source["node"] == "hall.md" or source["node"].startswith("hall.md")
    assert (source["number"], source["quote"], source["lines"]) == (
        source["Number"],
        source["Quote"],
        source["Lines"],
    )
    assert source["place"] == "hall.md" and source["said_by"] == "" and "/node?" in source["link"]
    assert said["question"] == QUESTION and said["cited"].endswith("[1]")
    assert run(["ask", "Which lamp of the bath is broken?", *asked, "--json"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert said["closest"] and said["closest"][0]["quote"] and "link" in said["closest"][0]


def test_what_is_not_answered_shows_the_passages_that_come_closest(
    asked: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["ask", "Which lamp of the bath is broken?", *asked]) == 1
    said = capsys.readouterr().out
    assert "Closest passages:" in said and re.search(r"^  \| .*(lamp|bath)", said, re.M), said


def test_what_is_quoted_is_shown_without_its_markup() -> None:
    quote = "Prompts\n-------\n\nThis *hides* what is typed:\n\n.. click:example::\n\n    click.prompt()"
    answer = {"Answer": quote.split("\n\n"), "Sources": [{"Quote": quote, "Number": 1, "Node": "a"}]}
    shown = "\n".join(asking._cited(answer, plain=True))
    assert "----" not in shown and "click:example" not in shown and "    click.prompt()" in shown
    assert list(asking._cited(answer)) == [f"{quote} [1]"], "in JSON it is as it stands"


def test_a_follow_up_says_how_it_was_read(asked: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    run(["ask", "Where do the towels hang?", *asked, "--topic", "towels"])
    capsys.readouterr()
    run(["ask", "How many of those are there?", *asked, "--topic", "towels"])
    said = capsys.readouterr().out
    assert said.startswith("Read as a question about “Where do the towels hang?”")
    run(["ask", *asked, "--topic", "towels", "--json"])
    assert json.loads(capsys.readouterr().out)["notes"] == [said.partition("\n")[0]]


def test_a_key_says_whose_it_is(
    serve: Serve, tree: Tree, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    service = serve(answer_timeout_s=20.0, claim_timeout_s=5.0)
    monkeypatch.setenv("METATREE_SECRET", service.keys["User_1"])
    with working(service, tree):
        assert run(["ask", QUESTION, "--service", service.url]) == 0
        said = capsys.readouterr()
        assert "nine watts" in said.out and f"{service.url}/thread?topic=" in said.err
        assert "no engine" not in said.err
        assert run(["ask", "Why do wombats sneeze?", "--service", service.url]) == 1
        said = capsys.readouterr()
        assert "Closest passages" in said.out or "No passage comes close: try other words." in said.out
    assert len(service.user.get("user-topics", OnBehalfOf="User_1").json()) == 2
    monkeypatch.setenv("METATREE_SECRET", SECRETS["User_1"][1])
    assert run(["ask", QUESTION, "--service", service.url]) == 2
    assert "--user" in capsys.readouterr().err


def test_ctrl_c_leaves_the_service_searching_and_says_how_to_see_the_answer(
    serve: Serve, tree: Tree, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    service = serve(answer_timeout_s=5.0, claim_timeout_s=5.0)
    monkeypatch.setenv("METATREE_SECRET", SECRETS["User_1"][1])
    command = [sys.executable, "-c", "from metatree_agents.cli import main; main()", "ask", QUESTION]
    command += ["--service", service.url, "--user", "User_1"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ}) as asking:
        assert asking.stderr is not None
        assert asking.stderr.readline().startswith("asked in the topic")
        assert "no engine is connected" in asking.stderr.readline()
        asking.send_signal(signal.SIGINT)
        said = asking.stderr.read()
    assert "the service goes on" in said and asking.returncode != 0
    later = re.search(r"`metatree (ask [^`]+)`", said)
    assert later is not None, said
    with working(service, tree):
        assert run(later[1].split()) == 0
    assert "nine watts" in capsys.readouterr().out
    topics = service.user.get("user-topics", OnBehalfOf="User_1").json()
    (topic,) = topics
    assert len(service.user.get("get-topic-thread", Topic=topic).json()) == 1, "it was asked once"


def test_a_wrong_secret_makes_nobody_an_engine(
    service: Served, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("METATREE_SECRET", "wrong")
    assert run(["ask", QUESTION, "--service", service.url, "--user", "User_1"]) == 2
    said = capsys.readouterr().err
    assert "--role" not in said and "*API keys*" in said and "ends the one before" in said


def test_without_a_question_it_says_what_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ask"]) == 2 and "say what to find out" in capsys.readouterr().err
    assert run(["ask", "--service", "http://127.0.0.1:9", "--user", "A"]) == 2
    assert "--topic" in capsys.readouterr().err


def test_a_search_that_was_stopped_and_one_that_asks_say_what_to_do(
    serve: Serve, tree: Tree, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    service = serve(memory=tree)
    monkeypatch.setenv("METATREE_SECRET", SECRETS["User_1"][1])
    to = ["--service", service.url, "--user", "User_1", "--topic"]
    for topic in ("stopped", "waits"):
        assert service.user.ask(QUESTION, topic=topic, user="User_1").ok
    assert service.user.post("stop-query", {"Topic": "stopped", "Seq": 1}).ok
    assert run(["ask", *to, "stopped"]) == 1
    assert "The search was stopped before it found an answer." in capsys.readouterr().out
    lease = next(
        given["Lease"]
        for _ in range(2)
        if (given := service.engine.get("get-new-queries").json())["Topic"] == "waits"
    )
    asks = [{"Key": "1", "Question": QUESTION, "Kind": "question"}]
    body = {"Topic": "waits", "Seq": 1, "Lease": lease, "Questions": asks}
    assert service.engine.post("ask-person", body).ok
    assert run(["ask", *to, "waits"]) == 4
    said = capsys.readouterr().out
    assert f"It asks: {QUESTION}" in said and "Answer it on its page: http" in said and "topic=waits" in said
