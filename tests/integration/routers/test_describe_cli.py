"""`metatree describe`: what it takes first, then the words, then menus that show them."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from metatree_agents.cli._main import run
from metatree_routers.llm._tokens import counter_for

from metatree.testing._model_server import ModelRequest, ModelServer, status

pytestmark = pytest.mark.integration

WORDS = "Says how many lanterns hang in the harbour and who lights them in the evening"


def describing(request: ModelRequest) -> Any:
    """A model that describes whatever it is shown, and chooses nothing."""
    labels = re.findall(r"^Item ([A-Z]+)$", request.user, re.MULTILINE)
    if labels:
        return {"items": [{"item": label, "title": "T", "description": WORDS} for label in labels]}
    return {"reason": "", "choice": "none", "ruled_out": []}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A folder of 30 modules: 91 nodes."""
    for number in range(30):
        file = tmp_path / "source" / f"m{number}.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"def f{number}(): ...\n\n\ndef g{number}(): ...\n")
    return tmp_path / "source"


@pytest.fixture
def server(serve: Callable[..., ModelServer], monkeypatch: pytest.MonkeyPatch) -> ModelServer:
    """A server of `stub/model`, which has no price."""
    made = serve(describing, models=["stub/model", "gpt-4o-mini"])
    monkeypatch.setenv("OPENAI_BASE_URL", made.url)
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    return made


def described(source: Path, *arguments: str, model: str = "stub/model") -> int:
    return run(["describe", "--source", str(source), "--router", f"openai/{model}", *arguments])


def test_it_says_what_it_takes_and_asks_nobody_by_itself(
    server: ModelServer, source: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert described(source, "--dry-run") == 0
    said = capsys.readouterr().err
    assert "91 nodes to describe with stub/model: 5 requests, about " in said
    assert "no price of this model is known" in said
    assert described(source) == 2
    assert "nobody is at a terminal to ask" in capsys.readouterr().err
    assert described(source, "--dry-run", "--json", model="gpt-4o-mini") == 0
    about = json.loads(capsys.readouterr().out)
    assert about["described"] is None
    assert (about["estimate"]["requests"], about["estimate"]["nodes"]) == (5, 91)
    assert 0 < about["estimate"]["cost_usd"] < 0.01
    assert server.requests == []


@pytest.mark.parametrize(("reply", "code", "requests"), [("y\n", 0, 5), ("n\n", 2, 0), ("", 2, 0)])
def test_who_is_at_the_terminal_is_asked(
    server: ModelServer, source: Path, monkeypatch: pytest.MonkeyPatch, reply: str, code: int, requests: int
) -> None:
    terminal = io.StringIO(reply)
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr("sys.stdin", terminal)
    assert described(source) == code
    assert len(server.requests) == requests


def test_what_was_estimated_is_what_it_takes(
    server: ModelServer, source: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert described(source, "--yes", "--json", model="gpt-4o-mini") == 0
    about = json.loads(capsys.readouterr().out)
    done, planned = about["described"], about["estimate"]
    assert (done["written"], done["calls"], done["failed"]) == (91, planned["requests"], {})
    assert done["calls"] == len(server.requests)
    count = counter_for("gpt-4o-mini").text
    sent = sum(count(request.system) + count(request.user) for request in server.requests)
    assert planned["tokens_in"] == pytest.approx(sent, rel=0.4)
    assert done["cost_usd"] > 0


def test_it_goes_on_where_it_stopped_and_then_has_nothing_to_do(
    server: ModelServer, source: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert described(source, "--yes", "--max-calls", "2") == 3
    assert "left for the next time (the last: max_calls=2 was reached" in capsys.readouterr().err
    assert described(source, "--yes") == 0
    assert len(server.requests) == 5
    assert described(source) == 0, "nobody is asked where nothing is to do"
    assert "all is described: 91 nodes as they were" in capsys.readouterr().err
    assert len(server.requests) == 5


def test_menus_show_what_was_paid_for(server: ModelServer, source: Path) -> None:
    assert described(source, "--yes", "--under", "m7.py") == 0
    asked = len(server.requests)
    arguments = ["ask", "Who lights the lanterns of the harbour?", "--source", str(source)]
    run([*arguments, "--router", "openai/stub/model"])
    menus = [request.user for request in server.requests[asked:] if "choice" in request.system]
    assert any(WORDS in menu for menu in menus), "all of it, and found by its words"


@pytest.mark.parametrize("bad", ["no JSON at all", status(500, "out of order"), {"items": []}])
def test_a_model_that_brings_nothing_is_not_asked_on(
    server: ModelServer,
    source: Path,
    capsys: pytest.CaptureFixture[str],
    bad: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("metatree_routers.llm.describe_tree.BACKOFF_S", 0.0)
    for number in range(100):
        file = source / f"n{number}.py"
        file.write_text(f"def f{number}(): ...\n\n\ndef g{number}(): ...\n")
    server.answer = lambda request: bad
    assert described(source, "--yes", "--json") == 5
    told = capsys.readouterr()
    done = json.loads(told.out)["described"]
    assert done["written"] == 0
    assert len(done["failed"]) == 391
    assert done["calls"] == len(server.requests) <= 24, (
        "four side by side, three attempts each, twice at most"
    )
    assert "brought nothing" in told.err


@pytest.mark.parametrize(
    ("router", "says"),
    [
        (None, "no model is named: write --router openai/MODEL"),
        ("embedded", "'embedded' writes no text"),
        ("systemone/nano@http://127.0.0.1:1/v1", "writes no text: name a chat model"),
    ],
)
def test_what_cannot_write_says_so(
    source: Path, capsys: pytest.CaptureFixture[str], router: str | None, says: str
) -> None:
    arguments = ["describe", "--source", str(source), *(["--router", router] if router else [])]
    assert run(arguments) == 2
    assert says in capsys.readouterr().err


def test_a_wrong_key_is_one_line(
    serve: Callable[..., ModelServer],
    source: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", serve(api_key="right").url)
    monkeypatch.setenv("OPENAI_API_KEY", "wrong")
    assert described(source, "--yes") == 2
    assert "check OPENAI_API_KEY" in capsys.readouterr().err
