"""Small real models on loopback: SmolLM2 with 135 million parameters, served by llama.cpp, and sparrow-decider.

They prove the protocols and say nothing about quality: these tests ask whether answers are valid, never whether they
are right.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from metatree import Node, Tree

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".venv-model"


@pytest.fixture(scope="session")
def model_url() -> Iterator[str]:
    """The base URL of the model's server, a child process that ends with the tests."""
    python = FOLDER / "venv" / "bin" / "python"
    if not python.exists():
        pytest.fail("the model is not there: run `make test-model`")
    command = [str(python), str(Path(__file__).with_name("serve.py")), str(FOLDER / "model.gguf")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        assert server.stdin is not None and server.stdout is not None
        late = threading.Timer(120, server.kill)
        late.start()
        url = server.stdout.readline().strip()
        late.cancel()
        try:
            assert url.startswith("http://127.0.0.1:"), "the server did not start"
            yield url
        finally:
            server.stdin.close()
            try:
                server.wait(10)
            except subprocess.TimeoutExpired:
                server.kill()


@pytest.fixture(scope="session")
def decision_url() -> Iterator[str]:
    """The base URL of a decision model's server, a child process that ends with the tests."""
    python = FOLDER / "venv" / "bin" / "python"
    if not python.exists():
        pytest.fail("the model is not there: run `make test-model`")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(python), "-m", "sparrow_decider.cli", "serve", "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            for _ in range(600):
                with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                    break
                time.sleep(0.1)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            server.kill()


@pytest.fixture(autouse=True)
def environment(model_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Name the model in the environment, as a user would."""
    monkeypatch.setenv("OPENAI_BASE_URL", model_url)
    monkeypatch.setenv("METATREE_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def tree() -> Iterator[Tree]:
    """Two branches with three leaves."""
    with Tree.create(":memory:") as made:
        made.add(Node("auth", "Auth", "Login and tokens"))
        made.add(Node("draw", "Draw", "Circles and squares"))
        made.add(Node("auth/tokens", "tokens.py", "How long tokens live", "TTL = 3600  # one hour"), "auth")
        made.add(Node("auth/login", "login.py", "The login form", "def login(): ..."), "auth")
        made.add(Node("draw/circle", "circle.py", "Draw a circle", "def circle(): ..."), "draw")
        yield made


def run_metatree(*arguments: str, timeout_s: float = 300) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process of its own."""
    program = Path(sys.executable).with_name("metatree")
    return subprocess.run(
        [program, *arguments],
        text=True,
        capture_output=True,
        check=False,
        timeout=timeout_s,
        env=dict(os.environ),
    )


@pytest.fixture
def metatree() -> object:
    """Return `run_metatree`."""
    return run_metatree
