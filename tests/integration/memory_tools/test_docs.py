"""The examples of docs/web.md and docs/servers.md run, with servers on loopback in place of those that they name."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from metatree.testing._web_server import Reply, WebServer

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[3]
SERVERS = Path(__file__).parent / "servers"


def _run(page: str, *replaced: tuple[str, str]) -> dict[str, Any]:
    names: dict[str, Any] = {}
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert blocks
    for block in blocks:
        for old, new in replaced:
            block = block.replace(old, new)
        exec(compile(block, page, "exec"), names)
    return names


def test_examples_of_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    guide = "<title>Guide</title><h1>Guide</h1><p>A token is valid for 60 minutes.</p>"
    with WebServer({"/guide": guide, "/search": Reply('{"results": []}', kind="application/json")}) as server:
        monkeypatch.setenv("METATREE_WEB_ALLOW", server.host)
        names = _run(
            "web.md", ("https://docs.example.org", server.url), ("http://127.0.0.1:8888", server.url)
        )
        assert "60 minutes" in capsys.readouterr().out
        assert "/search?q=When" in " ".join(server.paths())
        names["tree"].close()


def test_examples_of_servers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WEATHER_KEY", "k")
    command = f"{sys.executable} {SERVERS / 'weather.py'}"
    table = json.dumps({"command": sys.executable, "args": [str(SERVERS / "weather.py")]})
    description = Reply((SERVERS / "shop.yaml").read_bytes(), kind="application/yaml")
    with WebServer({"/openapi.json": description}) as server:
        monkeypatch.setenv("METATREE_WEB_ALLOW", server.host)
        names = _run(
            "servers.md",
            ("https://docs.example.org", server.url),
            ('{"command": "uvx", "args": ["weather-server"]}', table),
            ("uvx weather-server", command),
        )
    assert "Forecast for Oslo: rain, 7 degrees." in capsys.readouterr().out
    assert names["tree"].children()[0].title == "Little shop"
    names["tree"].close()
