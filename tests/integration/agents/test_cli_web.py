"""Pages of the web on the command line: as a source, and as what a search falls back on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from metatree_agents.cli._main import run

from metatree.testing._web_server import Reply, WebServer

pytestmark = pytest.mark.integration

QUESTION = "When does the last ferry to Hvar leave?"
FERRY = "<title>Ferry timetable</title><h1>Ferry timetable</h1><p>The last ferry to Hvar leaves at 20:30.</p>"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[WebServer]:
    with WebServer({"/ferry": FERRY}) as running:
        hits = {"results": [{"url": f"{running.url}/ferry", "title": "Ferry", "content": ""}]}
        running.routes["/search"] = Reply(json.dumps(hits), kind="application/json")
        monkeypatch.setenv("METATREE_WEB_ALLOW", running.host)
        yield running


def _json(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, Any]:
    code = run([*arguments, "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_a_page_is_a_source(
    server: WebServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    code, built = _json(capsys, "build", f"{server.url}/ferry")
    assert code == 0 and built["trees"][0]["kinds"]["page"] == 1
    code, said = _json(capsys, "ask", QUESTION)
    assert code == 0 and "20:30" in said["answer"]


def test_the_web_is_off_unless_it_is_asked_for(
    server: WebServer, project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said = _json(capsys, "ask", QUESTION)
    assert code == 1 and server.asked == []
    code, said = _json(capsys, "ask", QUESTION, "--web", server.url)
    assert code == 0 and "20:30" in said["answer"]
    assert said["answers"][0]["sources"][0]["node"] == f"page:{server.url}/ferry"
    monkeypatch.setenv("METATREE_SEARCH_URL", server.url)
    server.asked.clear()
    code, said = _json(capsys, "ask", "Is there a ferry to Korcula?")
    assert "/search" in server.paths()[0]


def test_a_wrong_address_is_reported_in_one_line(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ask", QUESTION, "--web", "file:///etc"]) == 2
    error = capsys.readouterr().err
    assert "is no address of a search engine" in error and error.count("\n") == 1


@pytest.mark.parametrize("options", [[], ["--json"], ["--human"]])
def test_a_search_engine_that_is_out_of_reach_is_reported(
    project: Path, options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["ask", QUESTION, "--web", "http://127.0.0.1:9", *options]) == (
        4 if "--human" in options else 1
    )
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("warning: ")]
    assert len(lines) == 1
    assert lines[0].startswith("warning: a fallback of the search failed: ") and "127.0.0.1:9" in lines[0]


def test_a_run_that_waits_goes_on_with_the_same_fallbacks(
    server: WebServer, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server.routes["/search"] = Reply('{"results": []}', kind="application/json")
    code, said = _json(capsys, "ask", QUESTION, "--web", server.url, "--human", "--run", "r1")
    assert code == 4
    code, said = _json(capsys, "resume", "r1", "--web", server.url, "--answer", "At 20:30.")
    assert code == 0 and said["answer"] == "At 20:30."
