"""The page of examples: every block of it runs, in the folder that it describes."""

from __future__ import annotations

import contextlib
import http.server
import io
import json
import mailbox
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest

from metatree import plugins

pytestmark = pytest.mark.integration

EXAMPLES = Path(__file__).parents[2] / "examples"
PAGE = (EXAMPLES / "README.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
MAILS = (
    ("ann", "Kettle", "The kettle of the office is broken."),
    ("bob", "Re: Kettle", "A new kettle comes on Monday."),
    ("bob", "Lunch", "Lunch is at noon."),
    ("bob", "Re: Kettle", "It came today."),
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the examples with what the page speaks of, as the current folder."""
    for name in ("metatree-mailbox", "tea"):
        shutil.copytree(EXAMPLES / name, tmp_path / name)
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "area.py").write_text("def area(radius):\n    return 3 * radius**2\n")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "house.md").write_text("# House\n\nThe house opens at nine.\n")
    box = mailbox.mbox(tmp_path / "inbox.mbox")
    for sender, subject, text in MAILS:
        mail = EmailMessage()
        mail["From"], mail["Subject"], mail["Date"] = sender, subject, "Mon, 4 May 2026 10:00:00 +0000"
        mail.set_content(text)
        box.add(mail)
    box.close()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _block(section: str, kind: str) -> str:
    found = re.search(rf"^```{kind}\n(.*?)^```$", SECTIONS[section], re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


def _printed(code: str) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "examples/README.md", "exec"), {"__name__": "__main__"})
    return out.getvalue()


def _commands(section: str, **env: str) -> list[subprocess.CompletedProcess[str]]:
    """Run the commands of a section, with the programs of this environment; return how each ended."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = []
    for line in _block(section, "sh").splitlines():
        if not line.startswith("pip "):
            command = ["sh", "-c", line]
            done.append(
                subprocess.run(
                    command,
                    env={**os.environ, "PATH": path, **env},
                    capture_output=True,
                    text=True,
                    check=False,
                )
            )
            assert done[-1].returncode == 0, (line, done[-1].stderr)
    return done


def test_function(folder: Path) -> None:
    assert _printed(_block("A function", "python")) == _block("A function", "text")


def test_class(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(folder / "metatree-mailbox")
    try:
        assert _printed(_block("A class", "python")) == _block("A class", "text")
    finally:
        plugins.unregister(plugins.SOURCES, "mailbox")
        sys.modules.pop("metatree_mailbox", None)


def test_the_page_shows_the_file_as_it_is() -> None:
    shown = _block("A class", "py")
    assert shown == (EXAMPLES / "metatree-mailbox/metatree_mailbox.py").read_text(encoding="utf-8")
    assert _block("A package", "toml") in (EXAMPLES / "metatree-mailbox/pyproject.toml").read_text(
        encoding="utf-8"
    )


def test_package(folder: Path) -> None:
    """Installed by pip, beside metatree."""
    (line,) = [line for line in _block("A package", "sh").splitlines() if line.startswith("pip install")]
    package = shlex.split(line)[-1]
    # Built with the hatchling that is here: an environment of its own for that takes more than all else.
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "-q", "--no-deps"]
    pip += ["--no-build-isolation", "--no-index", "--no-compile"]
    done = subprocess.run([*pip, "--target", "site", package], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    _, asked = _commands("A package", PYTHONPATH=str(folder / "site"))
    assert "A new kettle comes on Monday." in asked.stdout
    listed = subprocess.run(
        [str(Path(sys.executable).with_name("metatree")), "plugins", "--json"],
        env={**os.environ, "PYTHONPATH": str(folder / "site")},
        capture_output=True,
        check=True,
    )
    (plugin,) = [p for p in json.loads(listed.stdout)["plugins"] if p["name"] == "mailbox"]
    assert (plugin["package"], plugin["version"], plugin["tools"]) == (
        "metatree-mailbox",
        "1.0",
        ["correspondents"],
    )


def test_mcp_server(folder: Path) -> None:
    _, asked = _commands("An MCP server")
    assert "The water for green tea has 75 degrees." in asked.stdout


@pytest.fixture
def tea_house() -> Iterator[str]:
    """The API that the description is of, on loopback."""

    class Stock(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps({"stock": "There are 7 tins of oolong in stock."}).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Stock) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def test_openapi_description(folder: Path, tea_house: str, monkeypatch: pytest.MonkeyPatch) -> None:
    description = folder / "tea" / "tea_api.json"
    description.write_text(description.read_text().replace("127.0.0.1:8000", tea_house))
    monkeypatch.setitem(
        SECTIONS,
        "An OpenAPI description",
        SECTIONS["An OpenAPI description"].replace("127.0.0.1:8000", tea_house),
    )
    _, asked = _commands("An OpenAPI description")
    assert "7 tins of oolong" in asked.stdout


def test_links_lead_somewhere() -> None:
    targets = re.findall(r"\]\((?!https?:|#)([^)#]+)", PAGE)
    assert [target for target in targets if not (EXAMPLES / target).exists()] == []
