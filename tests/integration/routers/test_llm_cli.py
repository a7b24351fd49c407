"""`--router openai/MODEL`, `METATREE_MODEL`, and what `doctor` says of a model."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from metatree_agents.cli._main import run
from metatree_routers.self_test import MENUS, PASSAGES

from metatree.testing._model_server import HTML, ModelRequest, ModelServer, status

pytestmark = pytest.mark.integration


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A folder with two files."""
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "tokens.py").write_text('"""Tokens of a login."""\n\nTTL = 3600  # tokens live for one hour\n')
    (folder / "draw.py").write_text('"""Draw circles."""\n\n\ndef circle(): ...\n')
    return folder


@pytest.mark.parametrize("by", ["--router", "METATREE_MODEL", "METATREE_ROUTER"])
def test_ask_goes_through_the_model_that_is_named(
    serve: Callable[..., ModelServer],
    right_model: Any,
    source: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    by: str,
) -> None:
    server = serve(right_model("tokens.py", "TTL"), models=["stub/model"])
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    arguments = ["ask", "How long do tokens live?", "--source", str(source), "--json"]
    if by == "--router":
        arguments += ["--router", "openai/stub/model"]
    else:
        monkeypatch.setenv(by, "stub/model" if by == "METATREE_MODEL" else "openai/stub/model")
    assert run(arguments) == 0
    reply = json.loads(capsys.readouterr().out)
    assert reply["answer"] == "one hour"
    assert reply["answers"][0]["sources"][0]["quote"] == "TTL = 3600"
    assert reply["usage"]["model_calls"] == len(server.requests) > 0
    assert reply["usage"]["tokens_in"] > 0


def test_a_wrong_key_ends_with_one_line_that_says_so(
    serve: Callable[..., ModelServer],
    source: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    server = serve(api_key="right")
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-wrong-one")
    assert run(["ask", "How long do tokens live?", "--source", str(source), "--router", "openai/m"]) == 5
    captured = capsys.readouterr()
    assert "check OPENAI_API_KEY" in captured.err
    assert "sk-wrong-one" not in captured.err + captured.out
    assert "Traceback" not in captured.err


@pytest.mark.parametrize(
    ("router", "says"), [("openai/m", "OPENAI_API_KEY"), ("openai", "no model is named")]
)
def test_settings_that_are_missing_are_wrong_use(
    source: Path, capsys: pytest.CaptureFixture[str], router: str, says: str
) -> None:
    assert run(["ask", "q", "--source", str(source), "--router", router]) == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    ("router", "says"),
    [
        ("gpt-5-mini", "set OPENAI_API_KEY"),
        ("claude-opus-5", "write anthropic/claude-opus-5"),
        ("gemini-3-flash", "write gemini/gemini-3-flash"),
        ("anthropic/claude", "set ANTHROPIC_API_KEY"),
        ("gemini/flash", "set GEMINI_API_KEY"),
        ("openrouter/openai/gpt-4o", "set OPENROUTER_API_KEY"),
        ("qwen3:8b", "write ollama/qwen3:8b"),
        ("litellm/some", "write openai/some"),
        ("litellm/groq/some", "write openai/groq/some"),
        ("ollama/", "write ollama/MODEL"),
        ("systemone/x", "set SYSTEMONE_BASE_URL"),
        ("decisions/x", "set OPENAI_API_KEY"),
        ("logits/", "write systemone/MODEL"),
        ("nonsense", "no router 'nonsense' is installed"),
    ],
)
def test_names_work_or_say_what_to_type(
    source: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    router: str,
    says: str,
) -> None:
    for name in ("OPENAI", "ANTHROPIC", "GEMINI", "OPENROUTER"):
        monkeypatch.delenv(f"{name}_API_KEY", raising=False)
    assert run(["ask", "q", "--source", str(source), "--router", router]) == 2
    assert says in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("host", ["{host}", "http://{host}", "http://{host}/v1/"])
def test_a_model_of_ollama_is_asked_where_ollama_is(
    serve: Callable[..., ModelServer], source: Path, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    server = serve({"choice": "A", "answers": []})
    monkeypatch.setenv("OLLAMA_HOST", host.format(host=server.url.split("/")[2]))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-openai")
    run(["find", "How long?", "-k", "1", "--source", str(source), "--router", "ollama/qwen3:8b"])
    assert server.requests[0].body["model"] == "qwen3:8b"
    assert "sk-of-openai" not in str(server.requests[0].headers)


def test_doctor_finds_out_how_a_model_answers(
    serve: Callable[..., ModelServer],
    source: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    server = serve({"choice": "A"}, modes=("json",))
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    assert run(["doctor", "--source", str(source), "--router", "openai/stub"]) == 0
    reply = next(line for line in capsys.readouterr().out.splitlines() if "language model" in line)
    assert "in the mode json, after 3 calls" in reply
    assert run(["doctor", "--source", str(source), "--router", "openai/stub"]) == 0
    assert "after" not in capsys.readouterr().out.rpartition("language model")[2], "it was remembered"


def test_doctor_says_what_a_model_is_worth(
    serve: Callable[..., ModelServer],
    source: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """One takes the first option of each menu and says that no text answers; the other knows."""
    known = {menu[0]: menu[1].partition(":")[0] for menu in MENUS}

    def first(request: Any) -> Any:
        return {"choice": "A"} if "choice" in request.system else {"answers": [], "notes": ""}

    def knows(request: Any) -> Any:
        if "choice" in request.system:
            right = next((title for question, title in known.items() if question in request.user), "login")
            return {"choice": request.label(right)}
        text = next(text for question, text, _ in PASSAGES if question in request.user)
        holds = next(holds for question, _, holds in PASSAGES if question in request.user)
        said = [{"question": "Q1", "answer": text, "quote": text.split("\n")[0]}] if holds else []
        return {"answers": said, "notes": ""}

    lines = []
    for model in (first, knows):
        monkeypatch.setenv("OPENAI_BASE_URL", serve(model).url)
        assert run(["doctor", "--source", str(source), "--router", "openai/stub"]) == 0
        said = capsys.readouterr().out
        lines.append(next(line for line in said.splitlines() if "self-test" in line))
    assert "(8 without a model)" in lines[0] and "worse than no model" in lines[0]
    assert "right in 10 of 10 menus" in lines[1] and "3 of 3 passages" in lines[1]
    assert "it can be used" in lines[1]


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (status(401, "Incorrect API key provided"), "check OPENAI_API_KEY"),
        (status(404, "model 'stub' not found", kind="model_not_found"), "is 'stub' the model's name there?"),
        (status(404, "404 page not found"), "usually ends with /v1"),
        (HTML, "usually ends with /v1"),
        (status(503, "the model is loading"), "the model is loading"),
        ("hello", "no JSON object"),
    ],
)
def test_doctor_says_what_is_wrong(
    serve: Callable[..., ModelServer],
    source: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    reply: Any,
    says: str,
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", serve(reply).url)
    monkeypatch.setenv("METATREE_MODEL", "stub")
    for router in ([], ["--router", "openai/stub"]):
        assert run(["doctor", "--source", str(source), "--json", *router]) == 5
        checks = {check["name"]: check for check in json.loads(capsys.readouterr().out)["checks"]}
        assert not checks["language model"]["ok"]
        assert says in checks["language model"]["detail"]
    assert not checks["model self-test"]["ok"]
    assert "it gives no usable answers" in checks["model self-test"]["detail"]


def test_doctor_asks_nobody_when_no_model_is_named(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", "--source", str(source), "--json"]) == 0
    checks = {check["name"]: check for check in json.loads(capsys.readouterr().out)["checks"]}
    assert "none named" in checks["language model"]["detail"]


@pytest.mark.parametrize(("second", "code"), [("still invented", 1), ("TTL = 3600", 0)])
def test_a_quote_that_is_not_in_the_text_is_asked_for_once_more_and_then_marked(
    serve: Callable[..., ModelServer],
    source: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    second: str,
    code: int,
) -> None:
    asked: list[str] = []

    def reply(request: ModelRequest) -> Any:
        if "You read one text" not in request.system:
            return {"reason": "", "choice": "A", "ruled_out": []}
        asked.append(request.user)
        quote = second if len(asked) > 1 else "the answer is forty-two"
        return {"answers": [{"question": "Q1", "answer": "It is 42.", "quote": quote, "complete": True}]}

    monkeypatch.setenv("OPENAI_BASE_URL", serve(reply, models=["m"]).url)
    arguments = ["ask", "How long do tokens live?", "--source", str(source), "--router", "openai/m"]
    arguments += ["--start", "tokens.py"]
    assert run([*arguments, "--json"]) == code
    answer = json.loads(capsys.readouterr().out)["answers"][0]
    assert len(asked) == 2
    assert "the quote does not stand in the text" not in asked[0]
    assert "the quote does not stand in the text" in asked[1]
    assert answer["verified"] is (code == 0)
    assert answer["sources"][0]["quote"] == ("" if code else second)
    asked.clear()
    assert run(arguments) == code
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "It is 42. [1]"
    assert ("(not in the source)" in printed) is bool(code)
