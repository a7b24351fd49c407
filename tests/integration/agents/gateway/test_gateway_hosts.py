"""`metatree install --gateway`: one gateway in the place of a host's servers, and back."""

from __future__ import annotations

import json
import stat
import tomllib
from pathlib import Path
from typing import Any

import pytest
from metatree_agents.cli._main import run
from metatree_agents.gateway.servers_file import entries

pytestmark = pytest.mark.integration

CURSOR = """{
  // mine
  "mcpServers": {
    "git": {"command": "uvx", "args": ["mcp-server-git"]},
    "shop": {"url": "https://shop.example/mcp", "headers": {"Authorization": "Bearer s3cret-s3cret"}},
    "figma": {"url": "https://mcp.figma.example/mcp"},
    "asks": {"command": "npx", "env": {"KEY": "${input:key}"}},
    "off": {"command": "npx", "disabled": true},
    "local": {"url": "http://127.0.0.1:3845/mcp"},
  },
}
"""
CODEX = """# What I like
model = "gpt-5.2-codex"

[mcp_servers.docs]
command = "npx"
args = ["-y", "docs-mcp"]

[mcp_servers.docs.env]
TOKEN = "x"

[mcp_servers.git]
command = "uvx"

[profiles.max]
effort = "high"
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    for file, text in ((".cursor/mcp.json", CURSOR), (".codex/config.toml", CODEX)):
        (tmp_path / file).parent.mkdir()
        (tmp_path / file).write_text(text)
    return tmp_path


def cursor(home: Path) -> dict[str, Any]:
    text = (home / ".cursor/mcp.json").read_text().replace("// mine", "")
    servers: dict[str, Any] = json.loads(text.replace("},\n  },\n}", "}\n  }\n}"))["mcpServers"]
    return servers


def test_a_gateway_comes_in_the_place_of_the_servers_and_goes_again(home: Path) -> None:
    for _ in range(2):  # a second time changes nothing
        assert run(["install", "cursor", "codex", "--gateway"]) == 0
        file = home / ".local/state/metatree/gateway/cursor.json"
        assert set(cursor(home)) == {"figma", "asks", "off", "metatree", "metatree-gateway"}
        entry = cursor(home)["metatree-gateway"]
        assert entry["args"] == ["gateway", "--servers", str(file)]
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        fronted = entries([file], [], folder=home)
        assert [each.name for each in fronted] == ["git", "shop", "local"]
        assert fronted[1].settings["headers"] == {"Authorization": "Bearer s3cret-s3cret"}
        codex = tomllib.loads((home / ".codex/config.toml").read_text())
        assert set(codex["mcp_servers"]) == {"metatree", "metatree-gateway"} and codex["profiles"]["max"]
        assert "# What I like" in (home / ".codex/config.toml").read_text()
    assert run(["uninstall"]) == 0
    assert (home / ".cursor/mcp.json").read_text() == CURSOR
    assert (home / ".codex/config.toml").read_text() == CODEX
    assert not list((home / ".local/state/metatree").rglob("cursor.json"))


def test_servers_come_back_into_a_file_that_was_changed_meanwhile(home: Path) -> None:
    assert run(["install", "cursor", "codex", "--gateway"]) == 0
    path = home / ".cursor/mcp.json"
    path.write_text(path.read_text().replace('"figma": {', '"added": {"command": "x"},\n    "figma": {'))
    (home / ".codex/config.toml").write_text((home / ".codex/config.toml").read_text() + "\n# later\n")
    assert run(["install", "cursor", "--gateway"]) == 0
    assert "added" not in cursor(home)
    path.write_text(path.read_text() + "\n")
    assert run(["uninstall"]) == 0
    there = cursor(home)
    assert set(there) == {"git", "shop", "figma", "asks", "off", "local", "added"}
    assert (
        there["shop"]["headers"] == {"Authorization": "Bearer s3cret-s3cret"}
        and "// mine" in path.read_text()
    )
    codex = (home / ".codex/config.toml").read_text()
    assert tomllib.loads(codex)["mcp_servers"] == tomllib.loads(CODEX)["mcp_servers"] and "# later" in codex


def test_a_damaged_file_of_the_gateway_loses_nothing(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["install", "cursor", "--gateway"]) == 0
    path, kept = home / ".cursor/mcp.json", home / ".local/state/metatree/gateway/cursor.json"
    path.write_text(path.read_text() + "\n")
    before = path.read_text()
    kept.write_text("{")
    assert run(["install", "cursor", "--gateway", "--source", "."]) == 5
    assert path.read_text() == before
    assert run(["uninstall", "cursor"]) == 5
    assert path.read_text() == before and kept.exists()
    assert "left alone" in capsys.readouterr().out


def test_what_is_shown_first_changes_nothing(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["install", "cursor", "--gateway", "--dry-run"]) == 0
    shown = capsys.readouterr().out
    assert "would be" in shown and "metatree-gateway" in shown
    assert (home / ".cursor/mcp.json").read_text() == CURSOR and not (home / ".local").exists()


def test_a_gateway_is_offered_and_is_not_for_projects(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["install", "cursor"]) == 0
    assert "cursor has 3 other servers: `metatree install cursor --gateway`" in capsys.readouterr().err
    assert run(["install", "cursor", "--gateway", "--project"]) == 2
