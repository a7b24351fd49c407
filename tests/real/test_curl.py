"""The lines of docs/api.md, run by a shell with the real curl, in the order in which they stand there."""

from __future__ import annotations

import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import requests
from metatree_agents.service.settings import ServiceSettings

from tests.integration.service.conftest import SECRETS, Served, served

pytestmark = pytest.mark.real
PAGE = Path(__file__).parents[2] / "docs" / "api.md"
_AGENTS = ("agents", "agent", "answer-agent", "retry-agent", "cancel-agent")
NOT_THERE = {"/api/get-tree-file", "/api/admin/requeue", *(f"/api/admin/{name}" for name in _AGENTS)}
"""Answered 404 where nothing was published, and nothing has failed, as the page says."""
_OUT = "%{stderr}CAME %{http_code} %{method} %{url}\\n"
CURL = f'curl() {{ command curl --silent --show-error --write-out "{_OUT}" "$@"; }}'


@contextmanager
def answering(service: Served) -> Iterator[None]:
    """Answer what is asked in chats meanwhile, as an engine of its own."""
    ended = threading.Event()

    def work() -> None:
        while not ended.wait(0.2):
            claimed = service.other_engine.get("get-new-queries").json()
            if (claimed["Topic"] or "").startswith("chat-"):
                for query in claimed["Queries"]:
                    ((seq, text),) = query.items()
                    service.other_engine.answer(text, "Nine.", topic=claimed["Topic"], seq=int(seq))
            elif claimed["Topic"]:
                given = {"Topic": claimed["Topic"], "Lease": claimed["Lease"]}
                service.other_engine.post("hand-back", given)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def run(service: Served, script: str) -> list[tuple[int, str, str]]:
    """Run lines in a shell; return (status, method, path) of each request."""
    keys = {
        "FRONTEND_KEY": service.keys["Frontend_1"],
        "ENGINE_KEY": service.keys["Inference_1"],
        "ADMIN_KEY": service.keys["Admin_1"],
        "FRONTEND_SECRET": SECRETS["Frontend_1"][1],
    }
    done = subprocess.run(
        ["bash", "-c", f"{CURL}\n{script}"],
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", **keys},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    came = re.findall(r"^CAME (\d+) (\w+) (\S+)$", done.stderr, re.M)
    assert len(came) == len(re.findall(r"(?:^|\()curl ", script, re.M)), done.stderr + done.stdout
    assert not re.search(r"(?m)^(?!CAME )\S", done.stderr), done.stderr
    return [(int(status), method, urlsplit(url).path) for status, method, url in came]


def test_every_route_has_a_line_that_runs(tmp_path: Path) -> None:
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    settings = ServiceSettings(claim_timeout_s=0.2, answer_timeout_s=0.2)
    with served(tmp_path / "service.db", settings) as service:
        script = "".join(blocks).replace("http://127.0.0.1:8080", service.url)
        chats = script.index('curl -H "$FRONTEND" "$SERVICE/v1/models"')
        rest = script.index('curl -H "$ADMIN"', chats)
        set_up = "".join(re.findall(r"^[A-Z]+=(?!\$).*\n", blocks[0], re.M)).replace(
            "http://127.0.0.1:8080", service.url
        )
        came = run(service, script[:chats])
        with answering(service):
            came += run(service, set_up + script[chats:rest])
        came += run(service, set_up + script[rest:])
        described = requests.get(f"{service.url}/openapi.json", timeout=60).json()["paths"]
    wrong = [each for each in came if each[0] != (404 if each[2] in NOT_THERE else 200)]
    assert wrong == []
    routes = {(method.upper(), path) for path, methods in described.items() for method in methods}
    ran = {(method, path.replace("/models/metatree", "/models/{name}")) for _, method, path in came}
    assert routes - ran == set(), "each route has a line"
    assert ran <= routes
