"""Clients that were written from the page of the wire format alone: a whole conversation in processes of their own."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from metatree import Tree

from .conftest import SECRETS, Served
from .seed_only.server import Server
from .test_engine import tree, working  # noqa: F401  # a fixture

pytestmark = pytest.mark.integration
HERE = Path(__file__).parent / "seed_only"


def started(script: str, url: str, name: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-I", str(HERE / script), url, name, SECRETS[name][1]]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def lines(process: subprocess.Popen[str]) -> Iterator[dict[str, Any]]:
    assert process.stdout is not None
    for line in process.stdout:
        yield json.loads(line)


def test_a_whole_conversation_of_two_processes_that_know_only_the_page(serve: Callable[..., Served]) -> None:
    service = serve(lease_s=3.0, claim_timeout_s=1.0, answer_timeout_s=1.0)
    frontend = started("frontend.py", service.url, "Frontend_1")
    engine = None
    try:
        seen = lines(frontend)
        assert [next(seen, {}).get("what") for _ in range(2)] == ["logged in", "waits"]
        engine = started("engine.py", service.url, "Inference_1")
        rest = list(seen)
        assert frontend.wait(60) == 0, frontend.communicate()[1]
        did = list(lines(engine))
        assert engine.wait(60) == 0, engine.communicate()[1]
    finally:
        for process in (frontend, engine):
            if process is not None:
                process.kill()
                process.communicate()
    assert [one["what"] for one in rest] == ["answer"] * 3 + ["matches", "recommended", "end"]
    assert rest[-1]["imported"] == did[-1]["imported"] == [], "nothing of ours"
    claims = [one for one in did if one["what"] == "claim"]
    assert claims[0]["topic"] == "DGQIn+5troxI", "the topic that has waited longest"
    assert claims[0]["queries"] == [
        {"1": "What is the meaning of life?"},
        {"2": "What is your favorite color?"},
    ]
    assert claims[1]["queries"] == [{"1": "What is the capital of Mali?"}]
    slow = [one for one in claims if {"2": "Take your time."} in one["queries"]]
    assert len(slow) == 2, "open again when no answer came in time"
    answers = [one for one in did if one["what"] == "answer"]
    assert all(one["statuses"] == [200, 200, 409] for one in answers), (
        "the first wins, the same again is fine"
    )
    assert answers[1]["earlier"] == ["What is the meaning of life?"]
    wishes = [one["wish"] for one in did if one["what"] == "lookup"]
    assert [(wish["Count"], wish["Threshold"]) for wish in wishes] == [(5, 1.0), (1, 1.0)]


def test_the_scripts_import_nothing_but_requests_and_the_standard_library() -> None:
    allowed = {"requests", *sys.stdlib_module_names}
    for script in HERE.glob("*.py"):
        for line in script.read_text().splitlines():
            if line.startswith(("import ", "from ")):
                assert line.split()[1].partition(".")[0] in allowed, (script.name, line)


def test_our_engine_works_for_a_server_that_has_the_documented_routes_alone(tree: Tree) -> None:  # noqa: F811
    fragment = "weigh a parcel"
    mark = hashlib.sha1(fragment.encode()).hexdigest()[:12]
    server = Server(
        {"Inference_1": SECRETS["Inference_1"][1]},
        "DGQIn+5troxI",
        [{"2": "How are the lines of an invoice added up?"}, {"3": "When is a reminder sent to a customer?"}],
        {"Fragment": fragment, "Fingerprint": mark, "Count": 2, "Threshold": 1.0},
    )
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    try:
        with working(server, tree), server.changed:
            done = server.changed.wait_for(lambda: len(server.answers) == 2 and server.matches, 60)
        assert done
    finally:
        server.shutdown()
        server.server_close()
        serving.join()
    assert "value added tax" in " ".join(server.answers[2]["Answer"])
    assert "thirty days" in " ".join(server.answers[3]["Answer"])
    assert server.answers[2]["Topic"] == "DGQIn+5troxI" and server.answers[2]["Think"]
    assert 1 <= len(server.matches[mark]) <= 2 and "\n.....\n" in server.matches[mark][0]
