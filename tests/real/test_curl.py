"""The lines of docs/api.md, run by a shell with the real curl and `metatree`, in the order in which they stand."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.shell_reader import Reader, blocks_of

pytestmark = pytest.mark.real
PAGE = Path(__file__).parents[2] / "docs" / "api.md"
_AGENTS = ("agents", "agent", "answer-agent", "retry-agent", "cancel-agent")
NOT_THERE = {"/api/get-tree-file", "/api/admin/requeue", *(f"/api/admin/{name}" for name in _AGENTS)}
"""Answered 404 where nothing was published, and nothing has failed, as the page says."""
CHATS = "/v1/chat/completions"


@contextmanager
def answering(reader: Reader) -> Iterator[None]:
    """Answer what is asked in chats meanwhile, as another engine."""
    reader.run("metatree service keys add Inference_2 --source house")
    headers = {"Authorization": f"Bearer {reader.printed.strip()}"}
    ended = threading.Event()

    def call(method: str, route: str, **given: Any) -> Any:
        return requests.request(
            method, f"{reader.url}/api/{route}", headers=headers, timeout=120, **given
        ).json()

    def work() -> None:
        while not ended.wait(0.2):
            claimed = call("GET", "get-new-queries")
            topic = claimed["Topic"] or ""
            for query in claimed["Queries"] or ():
                ((seq, text),) = query.items()
                if topic.startswith("chat-"):
                    given = {"Topic": topic, "Seq": int(seq), "Query": text, "Answer": ["Nine."]}
                    call("POST", "give-new-answer", json=given)
            if topic and not topic.startswith("chat-"):
                call("POST", "hand-back", json={"Topic": topic, "Lease": claimed["Lease"]})

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    yield
    ended.set()


def test_every_route_has_a_line_that_runs(tmp_path: Path) -> None:
    reader, came = Reader(tmp_path), list[tuple[int, str, str]]()
    try:
        for block in blocks_of(PAGE):
            if CHATS in block:
                with answering(reader):
                    came += reader.follow(block)
            else:
                came += reader.follow(block)
        described = requests.get(f"{reader.url}/openapi.json", timeout=60).json()["paths"]
    finally:
        reader.stop()
    wrong = [each for each in came if each[0] != (404 if each[2] in NOT_THERE else 200)]
    assert wrong == []
    routes = {(method.upper(), path) for path, methods in described.items() for method in methods}
    ran = {(method, path.replace("/models/metatree", "/models/{name}")) for _, method, path in came}
    assert routes - ran == set(), "each route has a line"
    assert ran <= routes
