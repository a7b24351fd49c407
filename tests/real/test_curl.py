"""The lines of docs/api.md, run by a shell with the real curl and `metatree`, in the order in which they stand."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests
from metatree_agents.service.serving import listen

pytestmark = pytest.mark.real
PAGE = Path(__file__).parents[2] / "docs" / "api.md"
_AGENTS = ("agents", "agent", "answer-agent", "retry-agent", "cancel-agent")
NOT_THERE = {"/api/get-tree-file", "/api/admin/requeue", *(f"/api/admin/{name}" for name in _AGENTS)}
"""Answered 404 where nothing was published, and nothing has failed, as the page says."""
_OUT = "%{stderr}CAME %{http_code} %{method} %{url}\\n"
CURL = f'curl() {{ command curl --silent --show-error --write-out "{_OUT}" "$@"; }}'
CHATS = "/v1/chat/completions"


class Reader:
    """Who follows the page, in a folder of its own: a shell that keeps its variables, and one server at a time."""

    def __init__(self, folder: Path) -> None:
        with listen("127.0.0.1", 0) as free:
            self.port: int = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._folder = folder
        self._server: subprocess.Popen[bytes] | None = None
        self._said = folder / "said"
        path = f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"
        self._env = {"PATH": path, "HOME": str(folder), "METATREE_CACHE_DIR": str(folder / "cache")}

    def run(self, lines: str) -> list[tuple[int, str, str]]:
        """Run lines in a shell; return (status, method, path) of each request."""
        lines = lines.replace("http://127.0.0.1:8080", self.url)
        state = (
            f"[ -f state ] && . ./state; set -a\n{CURL}\n{lines}\nset +a; unset -f curl; export -p > state"
        )
        done = subprocess.run(
            ["bash", "-c", state],
            cwd=self._folder,
            env=self._env,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        came = re.findall(r"^CAME (\d+) (\w+) (\S+)$", done.stderr, re.M)
        assert len(came) == len(re.findall(r"(?:^|\()curl ", lines, re.M)), done.stderr + done.stdout
        of_curl = "metatree" not in lines  # which says what it does
        assert not re.search(r"(?m)^(?!CAME )\S" if of_curl else r"(?m)^metatree:", done.stderr), done.stderr
        assert done.returncode == 0, done.stderr
        self.printed = done.stdout
        return [(int(status), method, urlsplit(url).path) for status, method, url in came]

    def serve(self, command: str) -> None:
        """Start a server in the place of the one that runs."""
        self.stop()
        with self._said.open("wb") as out:
            self._server = subprocess.Popen(
                [*command.split(), "--port", str(self.port)],
                cwd=self._folder,
                env=self._env,
                stdout=out,
                stderr=out,
            )
        while b"listening on" not in self._said.read_bytes():
            assert self._server.poll() is None, self._said.read_text()
            threading.Event().wait(0.1)

    def stop(self) -> None:
        if self._server is not None:
            self._server.terminate()
            self._server.wait(60)

    def follow(self, block: str) -> list[tuple[int, str, str]]:
        """Do what a block says."""
        came = self.run(
            "".join(line for line in block.splitlines(True) if not line.startswith("metatree serve"))
        )
        for command in re.findall(r"^metatree serve.*$", block, re.M):
            self.serve(command)
        return came


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
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    reader, came = Reader(tmp_path), []
    try:
        for block in blocks:
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
