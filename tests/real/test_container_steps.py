"""What the Containerfile does, step by step, in a folder: no engine is needed, so the base image is this machine.

Its `COPY` lines are followed, so that a file that is missing in the image is missing here; then its `RUN` line
installs, its command starts, and its health check asks.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.real
ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "Containerfile").read_text(encoding="utf-8").replace("\\\n", " ")
STARTS_S = 120


def _line(instruction: str, beginning: str = "") -> str:
    """Return what stands behind the one instruction of this kind that begins so."""
    (found,) = re.findall(rf"^\s*{instruction} ({re.escape(beginning)}.*)$", TEXT, re.MULTILINE)
    return str(found)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of what the first stage installs."""
    folder = tmp_path_factory.mktemp("image")
    (source := folder / "src").mkdir()
    for line in re.findall(r"^COPY (?!--)(.+) \S+$", TEXT, re.MULTILINE):
        for name in line.split():
            if (ROOT / name).is_dir():
                shutil.copytree(
                    ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__", ".metatree")
                )
            else:
                shutil.copy(ROOT / name, source / name)
    step = _line("RUN", "python3 -m venv").replace("python3 -m venv", f"{sys.executable} -m venv")
    step = step.replace("/opt/metatree", str(folder / "opt"))
    done = subprocess.run(["sh", "-ec", step], cwd=source, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    shutil.rmtree(source)  # nothing of it may be needed later
    return folder / "opt"


def test_the_second_stage_takes_over_all_that_was_installed() -> None:
    assert _line("COPY", "--from=build") == "--from=build /opt/metatree /opt/metatree"
    assert "PATH=/opt/metatree/bin:$PATH" in _line("ENV")


def test_its_command_starts_and_its_health_check_passes(installed: Path, tmp_path: Path) -> None:
    source, data = tmp_path / "source", tmp_path / "data"
    source.mkdir()
    data.mkdir(mode=0o700)
    (source / "soup.md").write_text("# Soup\n\nThe soup takes 40 minutes.\n")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    command = [*json.loads(_line("ENTRYPOINT")), *json.loads(_line("CMD", '["serve"'))]
    places = {
        "/source": str(source),
        "/data/tree": str(data / "tree"),
        "/data/service.db": str(data / "service.db"),
    }
    # The image listens for all of its network, a test for this machine alone.
    command = [places.get(word, word).replace("0.0.0.0", "127.0.0.1") for word in command]
    environment = {
        "PATH": f"{installed / 'bin'}:{os.environ['PATH']}",
        "HOME": str(data),
        "XDG_CACHE_HOME": str(data / "cache"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    log = tmp_path / "log"
    with log.open("w") as output:
        server = subprocess.Popen(
            [installed / "bin" / command[0], *command[1:], "--port", port],
            cwd=data,
            env=environment,
            stdout=output,
            stderr=output,
        )
    try:
        health = json.loads(re.findall(r"^HEALTHCHECK .* CMD (\[.+\])$", TEXT, re.MULTILINE)[0])
        check = [installed / "bin" / health[0], *(word.replace("8080", port) for word in health[1:])]
        ends = time.monotonic() + STARTS_S
        while subprocess.run(check, env=environment, capture_output=True, check=False).returncode:
            assert server.poll() is None, log.read_text()
            assert time.monotonic() < ends, log.read_text()
            time.sleep(0.5)
        server.terminate()  # as STOPSIGNAL says
        assert server.wait(30) == 0, log.read_text()
    finally:
        server.kill()
        server.wait()
    assert (data / "tree").is_dir() and (data / "service.db").is_file()


def test_pip_is_not_in_the_image(installed: Path) -> None:
    assert not (installed / "bin" / "pip").exists()
